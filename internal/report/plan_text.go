package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/internal/printable"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// WriteText prints a plan for a person. It says what happens now, what is held and by which rule, how the routing moves
// and how the files change. Control characters of what others wrote do not reach the terminal.
func (p Plan) WriteText(w io.Writer, style Style) error {
	var b strings.Builder
	for _, d := range p.Deployments {
		d.write(&b, style)
	}
	for _, f := range p.Files {
		f.write(&b, style)
	}
	if len(p.Files) > 0 {
		b.WriteString("\n")
	}
	b.WriteString(p.summary() + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func (p Plan) summary() string {
	changing, files, routes, gates, held := 0, len(p.Files), 0, 0, 0
	for _, d := range p.Deployments {
		if d.Pending {
			changing++
		}
		files += len(d.Files)
		gates += len(d.Gates)
		if d.Routing != nil {
			routes++
		}
		for _, a := range d.Actions {
			if a.Outcome == Held {
				held++
			}
		}
	}
	out := fmt.Sprintf("Plan: %d of %d worker deployments would change. Files: %d. Routing changes: %d. Gate "+
		"workflows: %d.",
		changing, len(p.Deployments), files, routes, gates)
	if !p.Pending {
		out = fmt.Sprintf("Plan: nothing would change. Worker deployments: %d.", len(p.Deployments))
	}
	if held > 0 {
		out += fmt.Sprintf(" Held actions: %d.", held)
	}
	return out
}

func (d Deployment) write(b *strings.Builder, style Style) {
	fmt.Fprintf(b, "%s (%s): %s\n", style.paint(bold, d.Name), d.Environment, d.headline(style))
	d.writeDetails(b, style)
	for _, f := range d.Files {
		f.write(b, style)
	}
	b.WriteString("\n")
}

func (d Deployment) headline(style Style) string {
	reason := string(d.State.Reason)
	switch {
	case d.State.Stalled:
		reason = style.paint(red, reason)
	case d.State.Reason == rollout.RolloutComplete:
		reason = style.paint(green, reason)
	}
	return reason + ": " + oneLine(d.State.Message)
}

// writeDetails prints everything but the files.
func (d Deployment) writeDetails(b *strings.Builder, style Style) {
	line := func(label, format string, args ...any) {
		fmt.Fprintf(b, "  %-9s "+format+"\n", append([]any{label}, args...)...)
	}
	if d.Target != nil {
		line("target", "%s (%s)", d.Target.BuildID, d.Target.Status)
	}
	line("row", "%s", d.Row)
	if d.Refused != "" {
		line("refused", "%s", oneLine(d.Refused))
	}
	if len(d.Spec.Findings) > 0 {
		line("spec", "%s", style.effect(d.Spec.Effect))
		writeFindings(b, style, d.Spec.Findings)
	}
	for _, a := range d.Actions {
		if a.Outcome == Judged && a.Effect.Strictness() <= rollout.Allow.Strictness() && len(a.Findings) == 0 {
			continue
		}
		line(strings.ToLower(string(a.Outcome)), "%s: %s", oneLine(a.Title), style.effect(a.Effect))
		if a.Action.Reason != "" && !strings.HasPrefix(a.Action.Reason, a.Title) &&
			!strings.HasPrefix(a.Title, a.Action.Reason) {
			line("", "because %s", oneLine(a.Action.Reason))
		}
		writeFindings(b, style, a.Findings)
	}
	if r := d.Routing; r != nil {
		when := map[Order]string{BeforeCommit: "before the commit", AfterPush: "after the push"}[r.Order]
		line("routing", "%s -> %s, %s", r.Before.text(), r.After.text(), when)
	}
	for _, q := range d.Gates {
		line("gate", "started on task queue %s, after the push", oneLine(q))
	}
	for _, id := range d.Batches {
		line("batch", "job %s is started after the push", oneLine(id))
	}
	for _, id := range d.Deletions {
		line("delete", "version %s in Temporal", id)
	}
	if d.NextDue != nil {
		line("next", "%s", d.NextDue.UTC().Format(time.RFC3339))
	}
}

func writeFindings(b *strings.Builder, style Style, findings []rollout.Finding) {
	for _, f := range findings {
		fmt.Fprintf(b, "  %-9s   %s\n", "", findingText(f, style))
	}
}

// WriteVerdict prints a verdict and each of its findings.
func WriteVerdict(b *strings.Builder, about string, v rollout.Verdict, style Style) {
	fmt.Fprintf(b, "  %s: %s\n", oneLine(about), style.effect(v.Effect))
	for _, f := range v.Findings {
		fmt.Fprintf(b, "    %s\n", findingText(f, style))
	}
}

func findingText(f rollout.Finding, style Style) string {
	out := fmt.Sprintf("%s: %s: %s", oneLine(f.Rule), style.effect(f.Effect), oneLine(f.Text()))
	if f.Waived != "" {
		out += " [waived by " + oneLine(f.Waived) + "]"
	}
	return out
}

func (f File) write(b *strings.Builder, style Style) {
	if f.Diff == "" {
		fmt.Fprintf(b, "%s %s\n", strings.ToLower(string(f.Op)), f.Path)
		return
	}
	b.WriteString(style.diff(printable.Text(f.Diff)))
	if !strings.HasSuffix(f.Diff, "\n") {
		b.WriteString("\n")
	}
}
