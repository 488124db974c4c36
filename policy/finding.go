package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy/input"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// reading is what a rule set says, and what is wrong with it.
type reading struct {
	found, wrong []rollout.Finding
}

// findings are what the rule sets of a package say. What has the wrong shape is a finding that holds.
func (b *rulebook) findings(pkg string, r results) []rollout.Finding {
	out := r.failures
	for _, set := range parse.Contract()[pkg] {
		said := r.sets[set.Name]
		out = append(append(out, b.own(said.found)...), said.wrong...)
	}
	if b.total && len(r.sets) == 0 && len(r.failures) == 0 {
		out = append(out, rollout.Finding{Package: pkg, Rule: "policy.empty", Effect: rollout.HoldEffect,
			Message: "no rule of the package is defined, the library's neither: nothing was judged"})
	}
	return out
}

// own leaves out findings of rules that have no say in the book.
func (b *rulebook) own(found []rollout.Finding) []rollout.Finding {
	if b.only == nil {
		return found
	}
	return slices.DeleteFunc(found, func(f rollout.Finding) bool { return !b.only[f.Rule] })
}

// readSet reads a rule set. It fails where there is too much to read: leaving something out could leave out what is
// strictest.
func readSet(q query, set parse.RuleSet, t *ast.Term) (r reading, err error) {
	wrong := func(message string) {
		if r.wrong == nil {
			r.wrong = []rollout.Finding{{Package: q.pkg, Rule: "policy.shape", Effect: rollout.HoldEffect,
				Message: message, Location: q.places[set.Name]}}
		}
	}
	terms, ok := t.Value.(ast.Set)
	if !ok {
		wrong(fmt.Sprintf("%s is %s, not a set: write %s contains {\"rule\": …, \"msg\": …} if …", set.Name,
			input.Article(t), set.Name))
		return r, nil
	}
	if n := terms.Len(); n > maxRead {
		return r, fmt.Errorf("%s has %d findings, more than %d (%s)", set.Name, n, maxRead, q.places[set.Name])
	}
	for _, item := range terms.Slice() {
		f, err := readFinding(q.pkg, set, item)
		if err != nil {
			wrong(fmt.Sprintf("%s has %v", set.Name, err))
			continue
		}
		r.found = append(r.found, f)
	}
	return r, nil
}

// shapeError says what something is instead.
type shapeError string

func (s shapeError) Error() string { return string(s) }

func readFinding(pkg string, set parse.RuleSet, t *ast.Term) (rollout.Finding, error) {
	f := rollout.Finding{Package: pkg, Effect: set.Effect}
	o, ok := t.Value.(ast.Object)
	if !ok {
		return f, shapeError(input.Article(t) + findingExpected)
	}
	rule, _ := input.Text(o, "rule")
	msg, _ := input.Text(o, "msg")
	if rule == "" || msg == "" {
		return f, shapeError("an object " + lacking(o) + findingExpected)
	}
	f.Rule, f.Message = parse.Cut(rule, parse.MaxRule), parse.Cut(msg, parse.MaxMessage)
	if set.Name == parse.SetAction {
		answer, _ := input.Text(o, parse.SetAction)
		switch rollout.DriftAnswer(answer) {
		case rollout.DriftHold:
			f.Effect = rollout.HoldEffect
		case rollout.DriftAdopt, rollout.DriftRevert:
		default:
			return f, shapeError("an object without an action (revert, adopt or hold)")
		}
	}
	if until, ok := input.Text(o, "until"); ok {
		f.Until, _ = time.Parse(time.RFC3339, until) // a text that is not a time says nothing
	}
	f.Evidence = evidence(o)
	return f, nil
}

// findingExpected ends messages about a value that is not a finding.
const findingExpected = " where an object with the strings rule and msg is expected"

// lacking says what of a finding's name and message an object does not have.
func lacking(o ast.Object) string {
	var absent, wrong []string
	for _, key := range []string{"rule", "msg"} {
		v := o.Get(ast.InternedTerm(key))
		switch s, ok := input.Text(o, key); {
		case v == nil:
			absent = append(absent, key)
		case !ok:
			wrong = append(wrong, "whose "+key+" is "+input.Article(v))
		case s == "":
			wrong = append(wrong, "whose "+key+" is empty")
		}
	}
	if len(absent) > 0 {
		wrong = append([]string{"without " + strings.Join(absent, " and ")}, wrong...)
	}
	return strings.Join(wrong, ", ")
}

// evidence is the rest of a finding as JSON, nil if there is none. One that is too long is left out.
func evidence(o ast.Object) json.RawMessage {
	if o.Len() <= 2 {
		return nil
	}
	rest := map[string]any{}
	fail := o.Iter(func(k, v *ast.Term) error {
		key, ok := k.Value.(ast.String)
		if !ok || key == "rule" || key == "msg" {
			return nil
		}
		value, err := ast.JSON(v.Value)
		rest[string(key)] = value
		return err
	})
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if fail != nil || enc.Encode(rest) != nil || b.Len() > maxEvidence {
		return json.RawMessage(fmt.Sprintf(`{"omitted":"%d bytes"}`, b.Len()))
	}
	return bytes.TrimSpace(b.Bytes())
}

// conclude sorts and bounds findings, and gives the effect of the strictest that is not waived. Warnings allow.
func conclude(found []rollout.Finding) rollout.Verdict {
	slices.SortFunc(found, compareFindings)
	found = slices.CompactFunc(found, func(a, b rollout.Finding) bool { return compareFindings(a, b) == 0 })
	v := rollout.Verdict{Effect: rollout.Allow, Findings: found}
	if len(found) == 0 {
		v.Findings = nil
		return v
	}
	for _, f := range found {
		if f.Waived == "" && f.Effect.Strictness() > max(v.Effect.Strictness(), rollout.Warn.Strictness()) {
			v.Effect = f.Effect
		}
	}
	if n := len(found); n > maxFindings {
		v.Findings = append(slices.Clone(found[:maxFindings]),
			rollout.Finding{Package: "rampart", Rule: "policy.truncated",
				Effect: rollout.Warn, Message: fmt.Sprintf("more than %d findings: the rest is not shown",
					maxFindings)})
	}
	return v
}

// compareFindings orders by strictness, the strictest first, package, rule and message.
func compareFindings(a, b rollout.Finding) int {
	return cmp.Or(
		cmp.Compare(b.Effect.Strictness(), a.Effect.Strictness()),
		cmp.Compare(a.Package, b.Package), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message),
		cmp.Compare(a.Location, b.Location), bytes.Compare(a.Evidence, b.Evidence),
	)
}
