package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// TimetableText is a simulation for a person: one row for each cycle that did something or found something
// changed.
func TimetableText(t rollout.Timetable, style Style) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s), simulated from %s on, a cycle every %s\n\n",
		style.paint(bold, oneLine(t.Deployment.String())), oneLine(t.Environment),
		t.Start.UTC().Format(time.RFC3339), t.Interval)
	rows := [][]string{{"AFTER", "TIME", "WHAT", "TRAFFIC", "STATE", "HELD BY"}}
	for _, e := range t.Entries {
		for j, what := range happened(e) {
			row := []string{"", "", what, "", "", ""}
			if j == 0 {
				row = []string{e.After.String(), e.At.UTC().Format("2006-01-02 15:04:05"), what, traffic(e.Routing),
					dash(string(e.State.Reason)), dash(strings.Join(heldBy(e.Held), ", "))}
			}
			rows = append(rows, row)
		}
	}
	b.WriteString(aligned(rows))
	b.WriteString("\n" + conclusion(t, style) + "\n")
	return trimLines(b.String())
}

// happened are an entry's events and what was done, one line each.
func happened(e rollout.TimetableEntry) []string {
	var out []string
	for _, event := range e.Events {
		out = append(out, cut(oneLine(event), 120))
	}
	for _, line := range e.Commit {
		out = append(out, cut("commit: "+oneLine(line), 120))
	}
	for _, a := range e.Actions {
		if len(e.Commit) == 0 || a.Kind == rollout.DeleteVersion {
			out = append(out, cut(oneLine(title(a)), 120))
		}
	}
	if len(out) == 0 {
		out = append(out, "-")
	}
	return out
}

// traffic says how new workflows are shared out.
func traffic(r rollout.RoutingConfig) string {
	if r.Current == "" && !r.HasRamp {
		return "-"
	}
	out := []string{unversioned(r.Current) + " " + rollout.Percent(rollout.AsWritten(r.Share(r.Current)))}
	if r.HasRamp {
		out = append(out, unversioned(r.Ramping)+" "+rollout.Percent(rollout.AsWritten(r.Percentage)))
	}
	return oneLine(strings.Join(out, ", "))
}

// heldBy are the rules that hold something, sorted.
func heldBy(held []rollout.Held) []string {
	var out []string
	for _, h := range held {
		for _, f := range h.Verdict.Findings {
			if f.Waived == "" && f.Effect.Strictness() >= rollout.RequireApproval.Strictness() {
				out = append(out, oneLine(f.Rule))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func conclusion(t rollout.Timetable, style Style) string {
	end := after(t, t.End)
	switch t.Outcome {
	case rollout.OutcomeComplete:
		return fmt.Sprintf("%s after %s: %s. The last thing happens after %s.", style.paint(green, "Complete"),
			after(t, t.CompletedAt()), oneLine(t.State.Message), t.Entries[len(t.Entries)-1].After)
	case rollout.OutcomeTurnedBack:
		return fmt.Sprintf("%s: %s", style.paint(red, "Turned back"), oneLine(t.State.Message))
	case rollout.OutcomeHeld:
		return fmt.Sprintf("%s after %s, and nothing goes on by itself: %s: %s", style.paint(red, "Held"), end,
			t.State.Reason, oneLine(t.State.Message))
	}
	return fmt.Sprintf("%s after %s: %s: %s", style.paint(red, "The time is up"), end, t.State.Reason,
		oneLine(t.State.Message))
}

// after is how long after a simulation's start something is.
func after(t rollout.Timetable, at time.Time) string {
	return v1alpha1.Duration{Duration: at.Sub(t.Start)}.String()
}

func trimLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}
