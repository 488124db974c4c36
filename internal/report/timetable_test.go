package report

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// table is a simulation with all that an entry can have, and with text that wants to be something else.
func table() rollout.Timetable {
	at := func(d time.Duration) (time.Time, v1alpha1.Duration) {
		return now.Add(d), v1alpha1.Duration{Duration: d}
	}
	freeze := rollout.Finding{Rule: "rollout.freeze", Effect: rollout.HoldEffect, Message: "weekend"}
	waived := rollout.Finding{Rule: "rollout.steps", Effect: rollout.HoldEffect, Message: "too far", Waived: "hotfix"}
	warning := rollout.Finding{Rule: "canary.rate", Effect: rollout.Warn, Message: "0.4% fail"}
	promote := rollout.Action{ID: "Promote/v2", Kind: rollout.Promote, BuildID: "v2", From: 5, To: 100}
	name, env := named("payments/checkout")
	t := rollout.Timetable{Deployment: name, Environment: env.Name, Start: now, End: now.Add(26 * time.Hour), Interval: v1alpha1.Duration{Duration: 10 * time.Second},
		Target: "v2", Outcome: rollout.OutcomeComplete, State: rollout.State{Reason: rollout.RolloutComplete, Message: "v2 is the current version"}}
	add := func(d time.Duration, e rollout.TimetableEntry) {
		e.At, e.After = at(d)
		t.Entries = append(t.Entries, e)
	}
	add(0, rollout.TimetableEntry{Commit: []string{"create v2"}, State: rollout.State{Reason: rollout.WaitingForPollers},
		Routing: rollout.RoutingConfig{Current: "v1"}})
	add(30*time.Second, rollout.TimetableEntry{Events: []string{"push of app:v2\x1b[31m; # %%evil\n    section x :done"}, Commit: []string{"ramp v2 at 0.1%", "scale v1"},
		State: rollout.State{Reason: rollout.Ramping}, Routing: rollout.RoutingConfig{Current: "v1", HasRamp: true, Ramping: "v2", Percentage: 0.1}})
	add(10*time.Minute, rollout.TimetableEntry{State: rollout.State{Reason: rollout.PolicyHold, Message: "weekend", Stalled: true},
		Held:    []rollout.Held{{Action: promote, Verdict: rollout.Verdict{Effect: rollout.HoldEffect, Findings: []rollout.Finding{freeze, waived, warning}}}},
		Routing: rollout.RoutingConfig{Current: "v1", HasRamp: true, Ramping: "v2", Percentage: 5}})
	add(20*time.Minute, rollout.TimetableEntry{Actions: []rollout.Action{promote}, State: rollout.State{Reason: rollout.Ramping}, Routing: rollout.RoutingConfig{Current: "v2"}})
	add(20*time.Minute+10*time.Second, rollout.TimetableEntry{Commit: []string{"RolloutComplete: v2 is the current version"}, State: t.State, Routing: rollout.RoutingConfig{Current: "v2"}})
	add(25*time.Hour, rollout.TimetableEntry{Commit: []string{"drift: v0 was not what was written"}, State: t.State, Routing: rollout.RoutingConfig{Current: "v2"},
		Actions: []rollout.Action{{Kind: rollout.DeleteVersion, BuildID: "v0"}, {Kind: rollout.DriftAction, BuildID: "v0"}}})
	return t
}

func TestTimetable(t *testing.T) {
	write := func(in rollout.Timetable, style Style) string {
		text := TimetableText(in, style)
		require.Equal(t, text, TimetableText(in, style))
		return text
	}
	files := []txtar.File{{Name: "text", Data: []byte(write(table(), Plain))}, {Name: "mermaid", Data: []byte(Mermaid(table()))}}
	for _, outcome := range []rollout.Outcome{rollout.OutcomeTurnedBack, rollout.OutcomeHeld, rollout.OutcomeTimeIsUp} {
		in := table()
		in.Outcome, in.Entries = outcome, in.Entries[:3]
		in.State = rollout.State{Reason: rollout.PolicyHold, Message: "wee\x1bkend"}
		lines := strings.SplitAfter(write(in, Plain), "\n")
		files = append(files, txtar.File{Name: string(outcome), Data: []byte(lines[len(lines)-2] + strings.Split(Mermaid(in), "\n")[1] + "\n")})
	}
	golden(t, "timetable", files...)
	require.Contains(t, write(table(), Colored), green+"Complete"+reset)
	require.NotContains(t, write(table(), Plain), "\x1b")
}

// line is what a line of a chart may be. (Mermaid's own parser has seen charts of this form.)
var line = regexp.MustCompile(`^(gantt|    (title \S.*|dateFormat YYYY-MM-DD HH:mm:ss|axisFormat [%a-zA-Z :-]+|section [^:#;%]+|` +
	`[A-Za-z-][^:#;]* :((active|crit), )?\d{4}-\d\d-\d\d \d\d:\d\d:\d\d, \d{4}-\d\d-\d\d \d\d:\d\d:\d\d))$`)

func TestMermaidLines(t *testing.T) {
	in := table()
	in.Deployment.Name = "a:b;c#d%%e\nclick x"
	in.Entries[1].Routing.Ramping = "5%;\n%%{init: {}}%%"
	in.Entries[2].Held[0].Verdict.Findings[0].Rule = "x:y#z"
	in.Entries[0].State.Reason = ""
	for _, all := range []rollout.Timetable{table(), in, {Outcome: rollout.OutcomeHeld, Start: now}} {
		for l := range strings.SplitSeq(strings.TrimSuffix(Mermaid(all), "\n"), "\n") {
			require.Regexp(t, line, l)
			require.NotRegexp(t, `^ *.%`, l, "a comment")
		}
	}
}

func TestCompletedAt(t *testing.T) {
	in := table()
	require.Equal(t, now.Add(20*time.Minute+10*time.Second), in.CompletedAt())
	in.Entries[0].State.Reason = rollout.RolloutComplete
	require.Equal(t, now.Add(20*time.Minute+10*time.Second), in.CompletedAt(), "the last time")
	in.Outcome = rollout.OutcomeHeld
	require.Zero(t, in.CompletedAt())
}
