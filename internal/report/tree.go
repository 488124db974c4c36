package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// PolicyTree is why policy says what it says, rule by rule, on an input that was recorded or observed.
type PolicyTree struct {
	// DecisionID of the recorded decision that the input is of; "" where it is of a snapshot.
	DecisionID string `json:"decisionID,omitempty"`
	// At is the time of the input.
	At time.Time `json:"at"`
	// PolicyDigest of the policies now, which the explanations are by; RecordedDigest of those that decided then.
	PolicyDigest   string `json:"policyDigest"`
	RecordedDigest string `json:"recordedDigest,omitempty"`
	// Recorded is what was decided then about what is explained; nil where nothing was recorded.
	Recorded *rollout.Verdict `json:"recorded,omitempty"`
	// Explanations of the action that policy holds most, and of the spec where policy says something about it.
	Explanations []rollout.Explanation `json:"explanations"`
	// Others are the verdicts on other actions that are not plain allows.
	Others []OtherVerdict `json:"others,omitempty"`
}

// OtherVerdict is the verdict on an action that is not explained.
type OtherVerdict struct {
	Action string         `json:"action"`
	Effect rollout.Effect `json:"effect"`
	Rules  []string       `json:"rules,omitempty"`
}

// NewOtherVerdict sums a verdict up.
func NewOtherVerdict(action string, v rollout.Verdict) OtherVerdict {
	return OtherVerdict{Action: action, Effect: v.Effect, Rules: decisive(v)}
}

// decisive are the rules whose findings have the verdict's effect, each once.
func decisive(v rollout.Verdict) []string {
	var out []string
	for _, f := range v.Findings {
		if f.Effect == v.Effect && f.Waived == "" && !slices.Contains(out, f.Rule) {
			out = append(out, f.Rule)
		}
	}
	return out
}

// Bounds of a folded tree.
const (
	screenWidth = 100
	maxOpen     = 3
	maxPassed   = 6
	maxOthers   = 4
	maxWrapped  = 3
)

type treeWriter struct {
	b *strings.Builder
	View
}

// line writes one line that is cut to the screen's width in a folded tree, in a color; "": in none.
func (w treeWriter) line(indent int, text, color string) {
	text = oneLine(text)
	if most := screenWidth - indent; !w.All && utf8.RuneCountInString(text) > most {
		text = string([]rune(text)[:most-1]) + "…"
	}
	fmt.Fprintf(w.b, "%s%s\n", strings.Repeat(" ", indent), w.Style.paint(color, text))
}

// wrapped writes a text over several lines, a few in a folded tree. The lines after the first are indented further.
func (w treeWriter) wrapped(indent int, text, color string) {
	words := strings.Fields(oneLine(text))
	line, lines := "", 0
	for i, word := range words {
		next := strings.TrimSpace(line + " " + word)
		if line == "" || utf8.RuneCountInString(next) <= screenWidth-indent {
			line = next
			continue
		}
		if lines++; lines == maxWrapped && !w.All {
			w.line(indent, line+" "+strings.Join(words[i:], " "), color)
			return
		}
		w.line(indent, line, color)
		line = word
		if lines == 1 {
			indent += 4
		}
	}
	w.line(indent, line, color)
}

// WriteText prints the tree.
func (t *PolicyTree) WriteText(b *strings.Builder, view View) {
	w := treeWriter{b, view}
	w.b.WriteString("\n")
	source := "Policy on what was observed at " + when(t.At, w.Now)
	if t.DecisionID != "" {
		source = "Policy on the decision of " + when(t.At, w.Now)
	}
	w.line(0, source, "")
	if t.DecisionID != "" {
		w.line(2, "recorded as "+t.DecisionID, "")
	}
	if t.RecordedDigest != "" && t.RecordedDigest != t.PolicyDigest {
		w.line(2, fmt.Sprintf("by other policies (%s) than those that are explained here (%s)", short(t.RecordedDigest),
			short(t.PolicyDigest)), yellow)
	}
	if r := t.Recorded; r != nil && len(t.Explanations) > 0 && (r.Effect != t.Explanations[0].Verdict.Effect ||
		!slices.Equal(decisive(*r), decisive(t.Explanations[0].Verdict))) {
		w.line(2, "decided then: "+sum(r.Effect, decisive(*r)), yellow)
	}
	for _, x := range t.Explanations {
		w.explanation(x)
	}
	for i, o := range t.Others {
		if i == maxOthers && !w.All {
			w.line(2, fmt.Sprintf("and %d other actions (with --all)", len(t.Others)-i), "")
			break
		}
		w.line(2, o.Action+": "+sum(o.Effect, o.Rules), "")
	}
}

func sum(e rollout.Effect, rules []string) string {
	if len(rules) == 0 {
		return string(e)
	}
	return string(e) + " by " + strings.Join(rules, ", ")
}

// short is a digest as far as a person compares it.
func short(digest string) string {
	_, hex, _ := strings.Cut(digest, ":")
	return cmp.Or(hex, digest)[:min(12, len(cmp.Or(hex, digest)))]
}

func (w treeWriter) explanation(x rollout.Explanation) {
	fmt.Fprintf(w.b, "  %s: %s\n", oneLine(cmp.Or(x.Action, "the spec")), w.Style.effect(x.Verdict.Effect))
	if x.Incomplete != "" {
		w.line(4, "not all is explained: "+x.Incomplete, yellow)
	}
	for i, f := range x.Others {
		if i == maxOpen && !w.All {
			w.line(4, fmt.Sprintf("and %d other problems (with --all)", len(x.Others)-i), "")
			break
		}
		w.finding(f)
	}
	open, passed, idle := 0, 0, []string{}
	for _, r := range x.Rules {
		switch {
		case w.All:
			w.unfolded(r)
		case r.Outcome == rollout.RuleIdle:
			idle = append(idle, r.Rule)
		case r.Outcome == rollout.RulePassed:
			if passed++; passed <= maxPassed {
				w.passed(r)
			}
		default:
			if open++; open <= maxOpen {
				w.open(r)
			}
		}
	}
	if n := open - maxOpen; n > 0 {
		w.line(4, fmt.Sprintf("and %d other rules that fired (with --all)", n), "")
	}
	if n := passed - maxPassed; n > 0 {
		w.line(4, fmt.Sprintf("and %d other rules that passed (with --all)", n), "")
	}
	if len(idle) > 0 {
		w.wrapped(4, fmt.Sprintf("%d not about this or not configured: %s", len(idle), strings.Join(idle, ", ")), "")
	}
}

// finding is one that no rule is behind.
func (w treeWriter) finding(f rollout.Finding) {
	w.wrapped(4, mark(rollout.RuleFailed)+f.Rule+": "+f.Text(), colorOf(rollout.RuleFailed))
}

func mark(o rollout.RuleOutcome) string {
	switch o {
	case rollout.RuleFailed:
		return "[!] "
	case rollout.RuleFired:
		return "[x] "
	case rollout.RuleWaived, rollout.RuleUnheard:
		return "[~] "
	}
	return "[ ] "
}

func colorOf(o rollout.RuleOutcome) string {
	switch o {
	case rollout.RuleFailed, rollout.RuleFired:
		return red
	case rollout.RuleWaived, rollout.RuleUnheard:
		return yellow
	case rollout.RulePassed:
		return green
	}
	return ""
}

// open shows a rule that decided: what it found, where, and what it saw.
func (w treeWriter) open(r rollout.RuleExplanation) {
	shown := 0
	for _, c := range r.Clauses {
		if c.Outcome == rollout.RulePassed || c.Outcome == rollout.RuleIdle {
			continue
		}
		if shown++; shown > maxOpen {
			break
		}
		w.head(r, c)
		w.findings(c)
		if len(c.True) == 0 && c.False != nil {
			w.line(6, c.False.Location+": "+c.False.Text, "")
		}
		for _, v := range telling(c) {
			w.line(8, v.Name+" = "+v.Value, "")
		}
	}
}

// telling are the values that say most of why a clause fired: those of its last expressions. What the action is, its
// reader knows.
func telling(c rollout.ClauseExplanation) []rollout.NamedValue {
	expressions := c.True
	if len(expressions) == 0 && c.False != nil {
		expressions = []rollout.Expression{*c.False}
	}
	var out []rollout.NamedValue
	for _, e := range slices.Backward(expressions) {
		for _, v := range e.Values {
			if len(out) < maxOpen && !slices.Contains(out, v) && !ofAction(v) {
				out = append(out, v)
			}
		}
	}
	return out
}

func ofAction(v rollout.NamedValue) bool { return strings.HasPrefix(v.Name, "input.action.") }

func (w treeWriter) head(r rollout.RuleExplanation, c rollout.ClauseExplanation) {
	text := fmt.Sprintf("%s%s: %s at %s", mark(c.Outcome), r.Rule, c.Set, c.Location)
	if r.Floor {
		text += ", demanded by the bot's configuration"
	}
	switch c.Outcome {
	case rollout.RuleUnheard:
		text += ": does not count, its set could not be evaluated"
	case rollout.RuleFailed:
		text += ": could not be evaluated"
	}
	w.line(4, text, colorOf(c.Outcome))
}

func (w treeWriter) findings(c rollout.ClauseExplanation) {
	for i, f := range c.Findings {
		if i == maxOpen && !w.All {
			w.line(6, fmt.Sprintf("and %d more", len(c.Findings)-i), "")
			break
		}
		text := fmt.Sprintf("%s: %s", f.Effect, f.Message)
		if !f.Until.IsZero() {
			text += ", until " + when(f.Until, w.Now)
		}
		if f.Waived != "" {
			text += " [waived by " + f.Waived + "]"
		}
		w.wrapped(6, text, "")
	}
}

// passed shows a rule that found nothing, and what it goes by.
func (w treeWriter) passed(r rollout.RuleExplanation) {
	text := mark(rollout.RulePassed) + r.Rule
	if seen := goesBy(r); len(seen) > 0 {
		text += ": " + strings.Join(seen, "; ")
	}
	w.wrapped(4, text, colorOf(rollout.RulePassed))
}

// goesBy is what the clauses of a rule that found nothing stopped at, and what the one that saw most goes by.
func goesBy(r rollout.RuleExplanation) []string {
	var seen []string
	var best rollout.ClauseExplanation
	most := -1
	add := func(values ...rollout.NamedValue) {
		for _, v := range values {
			if text := v.Name + " = " + v.Value; !slices.Contains(seen, text) && !ofAction(v) {
				seen = append(seen, text)
			}
		}
	}
	for _, c := range r.Clauses {
		if c.Outcome != rollout.RulePassed || c.False == nil {
			continue
		}
		in := innermost(c.False)
		if len(in.Values) == 1 && strings.HasSuffix(in.Text, in.Values[0].Name) {
			add(in.Values...)
		}
		if n := len(in.Values) + len(c.Ahead); n > most {
			most, best = n, c
		}
	}
	if best.False != nil {
		in := innermost(best.False)
		if len(seen) == 0 {
			seen = append(seen, in.Text)
			add(in.Values...)
		}
		add(best.Ahead...)
	}
	return seen
}

func innermost(e *rollout.Expression) *rollout.Expression {
	for e.Because != nil {
		e = e.Because
	}
	return e
}

func (w treeWriter) unfolded(r rollout.RuleExplanation) {
	for _, c := range r.Clauses {
		w.head(r, c)
		w.findings(c)
		for _, e := range c.True {
			w.expression(6, "true", e)
		}
		if c.False != nil {
			w.expression(6, "not true", *c.False)
		}
		for _, v := range c.Ahead {
			w.line(8, v.Name+" = "+v.Value, "")
		}
	}
}

func (w treeWriter) expression(indent int, what string, e rollout.Expression) {
	text := fmt.Sprintf("%s %s: %s", e.Location, what, e.Text)
	if e.Ways > 1 {
		text += fmt.Sprintf(" (%d ways)", e.Ways)
	}
	w.line(indent, text, "")
	for _, v := range e.Values {
		w.line(indent+2, v.Name+" = "+v.Value, "")
	}
	if e.Because != nil {
		w.expression(indent+2, "because not true", *e.Because)
	}
}
