package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Change says how a verdict is other than it was.
type Change string

// The changes of a verdict, the one to look at first coming first.
const (
	// Stricter asks for more than was asked for then.
	Stricter Change = "Stricter"
	// Looser asks for less.
	Looser Change = "Looser"
	// Otherwise asks for the same by other rules, or has another answer to drift.
	Otherwise Change = "Otherwise"
)

// Backtest is what recorded decisions would be by other policies.
type Backtest struct {
	// Since is the time of the earliest decision that was wanted.
	Since time.Time `json:"since"`
	// Decisions that were judged again or could not be, and of them those that differ.
	Decisions int `json:"decisions"`
	Differ    int `json:"differ"`
	// Stricter and Looser count decisions by the strictest change in them; the rest of those that differ are otherwise.
	Stricter int `json:"stricter"`
	Looser   int `json:"looser"`
	// Failed could not be evaluated: the input cannot be read, or a policy ended with an error.
	Failed int `json:"failed"`
	// Masked are not comparable: the policies read what was masked when they were recorded. They are not among those
	// that differ.
	Masked int `json:"masked"`
	// Rows are what differs, what failed and what is masked, sorted by time, worker deployment and action; More are
	// left out.
	Rows []BacktestRow `json:"rows"`
	More int           `json:"more,omitempty"`
}

// BacktestRow is one action of a decision whose verdict is another one, or a decision that says nothing.
type BacktestRow struct {
	ID         string    `json:"id"`
	At         time.Time `json:"at"`
	Deployment string    `json:"deployment"`
	// Action is the action's ID, "spec" for the spec; "" where the decision says nothing as a whole.
	Action string `json:"action,omitempty"`
	Change Change `json:"change,omitempty"`
	// Recorded and Now are the verdicts.
	Recorded *VerdictSum `json:"recorded,omitempty"`
	Now      *VerdictSum `json:"now,omitempty"`
	// Note says why there is no comparison.
	Note string `json:"note,omitempty"`
}

// VerdictSum is a verdict and the rules that decided.
type VerdictSum struct {
	Effect rollout.Effect      `json:"effect"`
	Drift  rollout.DriftAnswer `json:"drift,omitempty"`
	Rules  []string            `json:"rules,omitempty"`
}

// SumOf is what decided a verdict.
func SumOf(v rollout.Verdict) VerdictSum {
	out := VerdictSum{Effect: v.Effect, Drift: v.Drift, Rules: decisive(v)}
	slices.Sort(out.Rules)
	return out
}

func (s VerdictSum) text() string {
	out := sum(s.Effect, s.Rules)
	if s.Drift != "" {
		out += " (" + string(s.Drift) + ")"
	}
	return out
}

// Difference is how the verdict on one action, "" for the spec, is another one.
type Difference struct {
	Action        string
	Change        Change
	Recorded, Now rollout.Verdict
}

// Differences compares verdicts on one input, sorted by action. Findings that decide nothing, such as warnings, do not
// count.
func Differences(recorded, now rollout.Verdicts) []Difference {
	var out []Difference
	add := func(action string, was, is rollout.Verdict) {
		if change := changeOf(was, is); change != "" {
			out = append(out, Difference{action, change, was, is})
		}
	}
	add("", recorded.Spec, now.Spec)
	ids := map[string]bool{}
	for _, set := range []map[string]rollout.Verdict{recorded.Actions, now.Actions} {
		for id := range set {
			ids[id] = true
		}
	}
	for id := range ids {
		add(id, recorded.Of(id), now.Of(id))
	}
	slices.SortFunc(out, func(a, b Difference) int { return cmp.Compare(a.Action, b.Action) })
	return out
}

func changeOf(was, is rollout.Verdict) Change {
	a, b := SumOf(was), SumOf(is)
	switch n := cmp.Compare(is.Effect.Strictness(), was.Effect.Strictness()); {
	case n > 0:
		return Stricter
	case n < 0:
		return Looser
	case a.Drift != b.Drift || !slices.Equal(a.Rules, b.Rules):
		return Otherwise
	}
	return ""
}

// SortRows brings the rows into order.
func (b *Backtest) SortRows() {
	slices.SortFunc(b.Rows, func(x, y BacktestRow) int {
		return cmp.Or(x.At.Compare(y.At), cmp.Compare(x.Deployment, y.Deployment), cmp.Compare(x.ID, y.ID),
			cmp.Compare(x.Action, y.Action))
	})
}

// WriteText prints a table of what differs.
func (b Backtest) WriteText(w io.Writer, style Style) error {
	if len(b.Rows) == 0 {
		return nil
	}
	rows := [][]string{{"TIME", "WORKER DEPLOYMENT", "ACTION", "RECORDED", "NOW", "CHANGE", "DECISION"}}
	for _, r := range b.Rows {
		row := []string{r.At.UTC().Format(time.RFC3339), r.Deployment, dash(r.Action), "-", "-", string(r.Change), r.ID}
		if r.Recorded != nil {
			row[3] = r.Recorded.text()
		}
		if r.Now != nil {
			row[4] = r.Now.text()
		}
		if r.Note != "" {
			row[5] = r.Note
		}
		for i := range row {
			row[i] = oneLine(row[i])
		}
		rows = append(rows, row)
	}
	for line := range strings.Lines(aligned(rows)) {
		body := strings.TrimRight(line, " \n")
		switch {
		case strings.Contains(body, " "+string(Stricter)+" "):
			body = style.paint(red, body)
		case strings.Contains(body, " "+string(Looser)+" "):
			body = style.paint(yellow, body)
		}
		if _, err := fmt.Fprintln(w, body); err != nil {
			return err
		}
	}
	if b.More > 0 {
		_, err := fmt.Fprintf(w, "and %d more\n", b.More)
		return err
	}
	return nil
}

// Summary is one line.
func (b Backtest) Summary() string {
	return fmt.Sprintf("decisions: %d, differ: %d (stricter: %d, looser: %d), could not be evaluated: %d, masked: %d",
		b.Decisions, b.Differ, b.Stricter, b.Looser, b.Failed, b.Masked)
}
