package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// View says how an explanation is printed.
type View struct {
	Style Style
	// All says that nothing is folded.
	All bool
	// Now is what ages are as of.
	Now time.Time
}

// WriteText prints an explanation, on one screen unless it is unfolded.
func (e Explanation) WriteText(w io.Writer, view View) error {
	style, now := view.Style, view.Now
	var b strings.Builder
	st := e.Status
	fmt.Fprintf(&b, "%s (%s): %s\n", style.paint(bold, st.Name), st.Environment, st.Reason)
	fmt.Fprintf(&b, "  %s\n\n", oneLine(st.Message))
	e.writeFacts(&b, now)
	if e.Policy != nil {
		e.Policy.WriteText(&b, view)
	}
	e.writeSteps(&b, style, now)
	e.writeNotices(&b, now)
	e.writeVersions(&b, now)
	for _, l := range st.LeftBehind {
		fmt.Fprintf(&b, "\n%s\n  %s\n", oneLine(l.what(now)), oneLine(l.Do))
	}
	e.writePods(&b)
	if e.Decision != nil {
		fmt.Fprintf(&b, "\nDecided from the snapshot: %s\n", e.Decision.headline(style))
		e.Decision.writeDetails(&b, style)
	}
	switch {
	case e.Superseded != nil:
		fmt.Fprintf(&b, "\nThe last recorded decision is of %s, about an earlier state (%s).\nIt does not explain "+
			"this one; the next come to the ref within minutes. To see it: --action, or rampart history %s\n",
			when(e.Superseded.At, now), oneLine(e.Superseded.State), st.Name)
	case e.Policy == nil:
		b.WriteString("\nWhat policy says rule by rule: where decisions are recorded, or with --snapshot FILE (what " +
			"rampart observe writes)\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (e Explanation) writeFacts(b *strings.Builder, now time.Time) {
	st := e.Status
	line := func(label, format string, args ...any) {
		fmt.Fprintf(b, "%-9s "+format+"\n", append([]any{label}, args...)...)
	}
	if st.Since != nil {
		line("Since", "%s", when(*st.Since, now))
	}
	spec := dash(st.SpecPath)
	if !st.Observed {
		spec += " (the status is not about this spec)"
	}
	line("Spec", "%s", spec)
	target := dash(st.Target)
	if e.TargetSince != nil {
		target += fmt.Sprintf(", attempt %d, since %s", e.Attempt, when(*e.TargetSince, now))
	}
	line("Target", "%s", target)
	routing := Routing{Current: st.Current, Ramping: st.Ramping, Percentage: st.RampPercentage}
	line("Routing", "%s", routing.text())
	if st.Verdict != "" {
		what := st.Verdict
		if st.Action != "" {
			what = st.Action + ": " + what
		}
		if len(st.Rules) > 0 {
			what += " by " + strings.Join(st.Rules, ", ")
		}
		switch {
		case !st.Observed:
			what += " (about the spec before: no reason for what is so now)"
		case st.Since != nil:
			what += ", since " + when(*st.Since, now)
		}
		line("Decision", "%s", oneLine(what))
		for _, r := range st.Reasons {
			if st.Observed && r != st.Message {
				line("", "%s", oneLine(r))
			}
		}
	}
	if st.Refused != nil {
		line("Refused", "%s", oneLine(refusal(st.Refused)))
	}
	if e.RecordPath != "" {
		line("Record", "%s", e.RecordPath)
	}
	if st.OlderServer != "" {
		line("Server", "%s", oneLine(st.OlderServer))
	}
	for i := range st.UnusableTemplates {
		line("Template", "%s; what was made from it stays as it is",
			oneLine(unusableTemplates(st.UnusableTemplates[i:i+1])))
	}
}

func (e Explanation) writeSteps(b *strings.Builder, style Style, now time.Time) {
	if len(e.Steps) == 0 {
		return
	}
	b.WriteString("\nSteps\n")
	for i, s := range e.Steps {
		mark := map[Progress]string{Done: "[x]", Current: "[>]", ToCome: "[ ]"}[s.Progress]
		text := fmt.Sprintf("%s %s, pause %s", mark, rollout.Percent(s.RampPercentage), s.Pause)
		if i == len(e.Steps)-1 {
			text = mark + " promotion"
		}
		if s.GateBefore != "" {
			text += ", after gate " + oneLine(s.GateBefore)
		}
		if s.Gate != "" {
			text += ", with gate " + oneLine(s.Gate)
		}
		if s.Progress == Current {
			if at := e.Status.NextStepAt; at != nil {
				text += ", next step " + when(*at, now)
			}
			text = style.paint(bold, text)
		}
		fmt.Fprintf(b, "  %s\n", text)
	}
}

func (e Explanation) writeNotices(b *strings.Builder, now time.Time) {
	if len(e.Gates) > 0 {
		b.WriteString("\nGates\n")
	}
	for _, g := range e.Gates {
		fmt.Fprintf(b, "  %s on task queue %s: workflow %s\n", oneLine(g.Status), oneLine(g.TaskQueue),
			oneLine(g.WorkflowID))
	}
	write := func(title string, n Notice) {
		fmt.Fprintf(b, "\n%s by %s since %s\n  %s\n  to lift it: %s\n", title, oneLine(n.By), when(n.At, now),
			oneLine(n.Reason), n.Lift)
	}
	if e.Hold != nil {
		write("Held", *e.Hold)
	}
	others := 0
	for _, n := range e.Bars {
		if n.BuildID == e.Status.Target {
			write(n.BuildID+" barred", n)
		} else {
			others++
		}
	}
	if others > 0 {
		fmt.Fprintf(b, "\nBuilds barred beside it: %d (with -o json)\n", others)
	}
}

func (e Explanation) writeVersions(b *strings.Builder, now time.Time) {
	if len(e.Versions) == 0 {
		return
	}
	b.WriteString("\n")
	rows := [][]string{{"VERSION", "STATUS", "REPLICAS", "GUARD", "WAITS FOR"}}
	for _, v := range e.Versions {
		replicas := "autoscaled"
		if v.Replicas != nil {
			replicas = fmt.Sprint(*v.Replicas)
		}
		waits := dash(v.Waits)
		if v.WaitsUntil != nil {
			waits += ": " + when(*v.WaitsUntil, now)
		}
		rows = append(rows, []string{v.BuildID, dash(v.Status), replicas, string(v.Guard), waits})
	}
	b.WriteString(aligned(rows))
	if len(e.Unrecorded) > 0 {
		fmt.Fprintf(b, "\nTemporal knows versions that Git has no files of: %s\n",
			oneLine(strings.Join(e.Unrecorded, ", ")))
	}
	e.writeEvacuations(b, now)
}

func (e Explanation) writePods(b *strings.Builder) {
	switch {
	case e.Cluster == nil:
		return
	case !e.Cluster.Known():
		fmt.Fprintf(b, "\nPods are not known: %s\n", oneLine(e.Cluster.Problem))
		return
	case len(e.Cluster.Versions) == 0:
		return
	}
	b.WriteString("\n")
	rows := [][]string{{"PODS OF", "DESIRED", "READY", "AVAILABLE", "PROBLEMS"}}
	for _, v := range e.Cluster.Versions {
		said := ""
		if len(v.Problems) > 0 {
			said = v.Text()
		}
		rows = append(rows, []string{v.BuildID, fmt.Sprint(v.Desired), fmt.Sprint(v.Ready), fmt.Sprint(v.Available),
			dash(said)})
	}
	b.WriteString(aligned(rows))
}

func (e Explanation) writeEvacuations(b *strings.Builder, now time.Time) {
	first := true
	for _, v := range e.Versions {
		for _, s := range v.Evacuation {
			if first {
				b.WriteString("\nWorkflows that stay on old versions\n")
				first = false
			}
			fmt.Fprintf(b, "  %s: %s %s", oneLine(v.BuildID), s.Stage, oneLine(s.State))
			switch {
			case !s.EndedAt.IsZero():
				fmt.Fprintf(b, " %s, %s of %s workflows", when(s.EndedAt.Time, now), rollout.Grouped(s.Done),
					rollout.Grouped(s.Total))
			case !s.StartedAt.IsZero():
				fmt.Fprintf(b, " since %s", when(s.StartedAt.Time, now))
			}
			if s.Message != "" {
				fmt.Fprintf(b, ": %s", oneLine(s.Message))
			}
			b.WriteString("\n")
		}
	}
}
