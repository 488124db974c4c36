package preview

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/report"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/sim"
	"github.com/rampart-gitops/rampart/policy"
)

// ruleFact is the rule of a finding that says that a fact is not known.
const ruleFact = "policy.fact"

// ruleKey is a rule and how strict it was.
type ruleKey struct {
	pkg, rule string
	effect    rollout.Effect
}

// heard is the first time that a rule said something.
type heard struct {
	finding  rollout.Finding
	action   rollout.Action
	snapshot rollout.Snapshot
	proposal rollout.Proposal
}

// listener is a judge that remembers what policies said, and of what.
type listener struct {
	judge sim.Judge
	heard map[ruleKey]heard
	// candidate are the first proposals to raise a version, and to leave it the traffic that it is judged in. What
	// policies go by then may be what only the bot sees.
	candidate []heard
}

// Judge asks the judge behind.
func (l *listener) Judge(ctx context.Context, s rollout.Snapshot, p rollout.Proposal) rollout.Verdicts {
	out := l.judge.Judge(ctx, s, p)
	for _, a := range p.Actions {
		if !advances(a.Kind) {
			continue
		}
		for _, f := range out.Of(a.ID).Findings {
			key := ruleKey{f.Package, f.Rule, f.Effect}
			if _, there := l.heard[key]; !there {
				l.heard[key] = heard{f, a, s, p}
			}
		}
		judged := a.Raises() || a.Kind == rollout.Continue && p.Canary != nil && p.Canary.Candidate == a.BuildID
		known := func(h heard) bool { return h.action.Kind == a.Kind && (h.action.From > 0) == (a.From > 0) }
		if judged && !slices.ContainsFunc(l.candidate, known) {
			l.candidate = append(l.candidate, heard{action: a, snapshot: s, proposal: p})
		}
	}
	return out
}

// advances reports whether an action is part of what a spec asks for, and not of what becomes of others later.
func advances(k rollout.ActionKind) bool {
	switch k {
	case rollout.CreateVersion, rollout.UpdateVersion, rollout.ScaleVersion, rollout.Restore, rollout.StartGate,
		rollout.Ramp, rollout.Promote, rollout.Continue, rollout.Unroute:
		return true
	}
	return false
}

// span is when a rule holds something.
type span struct {
	from, until time.Time
	open        bool
}

// spans are when rules hold what the spec asks for.
func spans(t *rollout.Timetable) map[ruleKey]span {
	out := map[ruleKey]span{}
	if t == nil {
		return out
	}
	for _, e := range t.Entries {
		now := map[ruleKey]bool{}
		for _, h := range e.Held {
			for _, f := range h.Verdict.Findings {
				if f.Waived == "" && advances(h.Action.Kind) &&
					f.Effect.Strictness() >= rollout.RequireApproval.Strictness() {
					now[ruleKey{f.Package, f.Rule, f.Effect}] = true
				}
			}
		}
		for key := range now {
			s, there := out[key]
			if !there {
				s.from = e.At
			}
			s.until, s.open = time.Time{}, true
			out[key] = s
		}
		for key, s := range out {
			if s.open && !now[key] {
				s.until, s.open = e.At, false
				out[key] = s
			}
		}
	}
	return out
}

// sortSpec puts each rule that said something of the spec itself where it belongs.
func sortSpec(ctx context.Context, in Input, places *places, out *report.Previewed) {
	for _, spec := range in.Spec {
		seen := *in.After
		seen.Now = in.World.At.Time
		h := heard{finding: spec.Finding, snapshot: seen}
		f := newFinding(h)
		f.Line, f.Action = spec.Line, ""
		switch beyond := places.locate(ctx, h, &f); {
		case in.unknown(spec.Finding) || beyond:
			out.Unknown = append(out.Unknown, f)
		case f.Waived != "" || f.Effect.Strictness() <= rollout.Warn.Strictness():
			out.Warnings = append(out.Warnings, f)
		default:
			out.Objections = append(out.Objections, f)
		}
	}
}

// unknown reports whether a finding is about something that is not here.
func (in Input) unknown(f rollout.Finding) bool {
	return f.Rule == ruleFact || slices.Contains(in.Missing, f.Location)
}

// locate fills in where the rule of a finding is, and says whether it goes by what there is only after a merge.
func (p *places) locate(ctx context.Context, h heard, f *report.PreviewFinding) (beyond bool) {
	rule := p.rule(ctx, h)
	if f.Location == "" && rule != nil {
		f.Location = rule.Clauses[0].Location // sorted by what became of them
	}
	if beyond = p.beyondGit(rule); beyond {
		f.Message += " (goes by input." + commit + ", which is known only once it is merged)"
	}
	return beyond
}

// sort puts each rule that said something of an action where it belongs.
func (l *listener) sort(ctx context.Context, in Input, places *places, out *report.Previewed) {
	held := spans(out.Timetable)
	complete := out.Timetable != nil && out.Timetable.Outcome == rollout.OutcomeComplete
	for _, key := range slices.SortedFunc(maps.Keys(l.heard), compareKeys) {
		h := l.heard[key]
		when, holds := held[key]
		f := newFinding(h)
		f.From, f.Until = when.from, when.until
		beyond := places.locate(ctx, h, &f)
		switch {
		case in.unknown(h.finding) || beyond:
			out.Unknown = append(out.Unknown, f)
		case f.Waived != "" || key.effect.Strictness() <= rollout.Warn.Strictness():
			out.Warnings = append(out.Warnings, f)
		case key.effect == rollout.RequireApproval:
			out.Approvals = append(out.Approvals, f)
		case key.effect == rollout.RollbackEffect, holds && when.open && !complete, out.Timetable == nil:
			out.Objections = append(out.Objections, f)
		default:
			out.Waits = append(out.Waits, f)
		}
	}
	l.unseen(ctx, places, out)
}

func compareKeys(a, b ruleKey) int {
	return cmp.Or(b.effect.Strictness()-a.effect.Strictness(), cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.rule, b.rule))
}

func newFinding(h heard) report.PreviewFinding {
	return report.PreviewFinding{Package: h.finding.Package, Rule: h.finding.Rule, Effect: h.finding.Effect,
		Message:  h.finding.Message,
		Location: h.finding.Location, Action: string(h.action.Kind) + " " + h.action.BuildID, Waived: h.finding.Waived}
}

// unseen adds the rules that found nothing in the simulation, and go by what is simulated there.
func (l *listener) unseen(ctx context.Context, places *places, out *report.Previewed) {
	there := map[string]bool{}
	for _, f := range out.Unknown {
		there[f.Rule] = true
	}
	for _, h := range l.candidate {
		x, ok := places.explain(ctx, h)
		if !ok {
			continue
		}
		for i := range x.Rules {
			r := &x.Rules[i]
			if r.Outcome != rollout.RulePassed || there[r.Rule] {
				continue
			}
			if seen := places.evidence(r); len(seen) > 0 {
				there[r.Rule] = true
				out.Unknown = append(out.Unknown, report.PreviewFinding{Package: r.Package, Rule: r.Rule,
					Location: r.Clauses[0].Location,
					Message:  "goes by " + strings.Join(seen, ", ") + ", which is not known here",
					Action:   string(h.action.Kind) + " " + h.action.BuildID})
			}
		}
	}
}

// observed are the parts of the input that the bot reads from Temporal, the cluster, metrics and gates, not from Git.
var observed = []string{"canary", "cluster", "facts", "gate", "versions"}

// commit is the part of the input that exists only after a merge: the commit, its author and its signature.
const commit = "git"

// evidence is what of that a rule that found nothing goes by. It is what the expression saw that was not true; where it
// saw nothing by itself, such as a negated helper, all that it leans on.
func (p *places) evidence(r *rollout.RuleExplanation) []string {
	found := map[string]bool{}
	for _, c := range r.Clauses {
		if c.Outcome != rollout.RulePassed {
			continue
		}
		names := c.Ahead
		opaque := true
		for x := c.False; x != nil; x = x.Because {
			names = append(slices.Clip(names), x.Values...)
			opaque = opaque && len(x.Values) == 0
		}
		for _, part := range append([]string{commit}, observed...) {
			named := slices.ContainsFunc(names, func(v rollout.NamedValue) bool {
				return isBelow(v.Name, "input."+part)
			})
			if named || opaque && !ours(c.Location) && p.policies.ClauseLooksAt(r.Package, c.Location, part) {
				found["input."+part] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// ours reports whether a clause is of the library, whose expressions are known to show what they go by.
func ours(location string) bool { return strings.HasPrefix(location, "rampart/") }

func isBelow(name, part string) bool {
	rest, ok := strings.CutPrefix(name, part)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// beyondGit reports whether a rule that fired goes by what there is only after a merge.
func (p *places) beyondGit(r *rollout.RuleExplanation) bool {
	return r != nil && slices.ContainsFunc(r.Clauses, func(c rollout.ClauseExplanation) bool {
		return c.Outcome != rollout.RulePassed && c.Outcome != rollout.RuleIdle &&
			p.policies.ClauseLooksAt(r.Package, c.Location, commit)
	})
}

// maxExplained is how many proposals of one worker deployment are looked at rule by rule.
const maxExplained = 8

// places finds where rules are. Explaining is slow: each action of a proposal is explained once.
type places struct {
	policies Policies
	known    map[string]rollout.Explanation
	asked    int
}

func (p *places) explain(ctx context.Context, h heard) (rollout.Explanation, bool) {
	key := h.snapshot.Now.String() + "\x00" + h.action.ID
	if x, ok := p.known[key]; ok {
		return x, true
	}
	if p.asked++; p.asked > maxExplained {
		return rollout.Explanation{}, false
	}
	d, err := policy.NewDocument(plan.Look(h.snapshot).JudgedBy(), h.proposal)
	if err != nil {
		return rollout.Explanation{}, false
	}
	x, err := p.policies.Explain(ctx, d, h.action.ID)
	if err != nil {
		return rollout.Explanation{}, false
	}
	p.known[key] = x
	return x, true
}

// rule explains the rule behind a finding; nil: it is not known.
func (p *places) rule(ctx context.Context, h heard) *rollout.RuleExplanation {
	x, ok := p.explain(ctx, h)
	if !ok {
		return nil
	}
	i := slices.IndexFunc(x.Rules, func(r rollout.RuleExplanation) bool {
		return r.Package == h.finding.Package && slices.ContainsFunc(r.Clauses, func(c rollout.ClauseExplanation) bool {
			return slices.ContainsFunc(c.Findings, func(f rollout.Finding) bool { return f.Rule == h.finding.Rule })
		})
	})
	if i < 0 {
		return nil
	}
	return &x.Rules[i]
}
