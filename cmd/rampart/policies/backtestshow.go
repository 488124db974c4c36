package policies

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/internal/auditlog"
	"github.com/rampart-gitops/rampart/internal/printable"
	"github.com/rampart-gitops/rampart/internal/report"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// shown is one decision in full.
type shown struct {
	ID         string                `json:"id"`
	At         time.Time             `json:"at"`
	Deployment string                `json:"deployment"`
	Recorded   rollout.Verdicts      `json:"recorded"`
	Now        rollout.Verdicts      `json:"now"`
	Differs    []string              `json:"differs"`
	Masked     bool                  `json:"masked,omitempty"`
	Failed     string                `json:"failed,omitempty"`
	Policy     []rollout.Explanation `json:"policy,omitempty"`
}

// showBacktest shows one decision: what was said then and what is said now of all that differs, and why.
func showBacktest(ctx context.Context, a *cmdutil.App, source cmdutil.DecisionSource, b *backtest,
	f backtestFlags) error {
	d, err := oneDecision(ctx, source, f.show)
	if err != nil {
		return err
	}
	got, err := b.judge(ctx, d)
	if err != nil {
		return err
	}
	if got == nil {
		return fmt.Errorf("decision %s is of another environment than --env %s", d.ID, b.env)
	}
	if got.in.Document == nil || got.in.Verdicts == nil || got.engine == nil {
		return errors.New(got.failed)
	}
	return showDecision(ctx, a, d, *got, f)
}

// maxMatches are named where several decisions match.
const maxMatches = 10

// oneDecision finds the decision of an ID, or the only one whose ID begins so.
func oneDecision(ctx context.Context, source cmdutil.DecisionSource, id string) (one auditlog.Decision, err error) {
	found := map[string]auditlog.Decision{} // the first of each ID
	var ids []string
	for d, err := range source.Decisions(ctx, auditlog.Filter{}) {
		if err != nil {
			return one, err
		}
		if d.ID == id {
			return d, nil
		}
		if _, again := found[d.ID]; strings.HasPrefix(d.ID, id) && !again {
			found[d.ID] = d
			ids = append(ids, d.ID)
		}
	}
	switch len(ids) {
	case 0:
		return one, fmt.Errorf("there is no decision whose ID begins with %q", id)
	case 1:
		return found[ids[0]], nil
	}
	lines := []string{fmt.Sprintf("the IDs of %d decisions begin with %q: give more of one", len(ids), id)}
	for _, id := range ids[:min(len(ids), maxMatches)] {
		about, err := found[id].Deployment()
		if err != nil {
			return one, err
		}
		lines = append(lines, fmt.Sprintf("  %s %s %s", printable.Line(id),
			found[id].Timestamp.UTC().Format(time.RFC3339), printable.Line(about.String())))
	}
	if n := len(ids) - maxMatches; n > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", n))
	}
	return one, errors.New(strings.Join(lines, "\n"))
}

func showDecision(ctx context.Context, a *cmdutil.App, d auditlog.Decision, got rejudged, f backtestFlags) error {
	out := shown{ID: d.ID, At: d.Timestamp.UTC(), Deployment: got.in.Document.Deployment().String(),
		Recorded: *got.in.Verdicts, Now: got.now, Differs: []string{}, Masked: got.masked, Failed: got.failed}
	for _, x := range got.differences {
		explained, err := got.engine.Explain(ctx, got.in.Document, x.Action)
		if err != nil {
			return err
		}
		out.Policy = append(out.Policy, explained)
		out.Differs = append(out.Differs, x.Action)
	}
	err := a.Print(f.output.Value, out, func() error { return printShown(a, out, got.differences) })
	if err == nil && len(got.differences) > 0 && !got.masked {
		return cmdutil.Pending(nil)
	}
	return err
}

func printShown(a *cmdutil.App, s shown, differences []report.Difference) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s, decision %s\n", printable.Line(s.Deployment), s.At.Format(time.RFC3339),
		printable.Line(s.ID))
	if s.Failed != "" {
		fmt.Fprintf(&b, "could not be evaluated: %s\n", printable.Line(s.Failed))
	}
	if s.Masked {
		b.WriteString("not comparable: the policies read what is masked\n")
	}
	style := a.Style()
	for _, x := range differences {
		fmt.Fprintf(&b, "\n%s: %s\n", printable.Line(cmp.Or(x.Action, "the spec")), strings.ToLower(string(x.Change)))
		report.WriteVerdict(&b, "recorded", x.Recorded, style)
		report.WriteVerdict(&b, "now", x.Now, style)
	}
	if len(differences) == 0 {
		b.WriteString("no difference\n")
	}
	tree := report.PolicyTree{DecisionID: s.ID, At: s.At, PolicyDigest: s.Now.PolicyDigest,
		RecordedDigest: s.Recorded.PolicyDigest, Explanations: s.Policy}
	if len(s.Policy) > 0 {
		tree.WriteText(&b, report.View{Style: style, Now: a.Now()})
	}
	_, err := fmt.Fprint(a.Out, b.String())
	return err
}
