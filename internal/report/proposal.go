package report

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// ProposalReport is what the pull request for one action says: what was decided on which facts, and why a person is
// asked.
type ProposalReport struct {
	Snapshot rollout.Snapshot
	Proposal rollout.Proposal
	Plan     rollout.Plan
	// Asked is the action that the pull request asks approval for, with policy's verdict on it.
	Asked rollout.Held
	// Scope says what the approval covers.
	Scope v1alpha1.ApprovalScope
	// Explanation says which rules passed; nil: only rules that found something are listed.
	Explanation *rollout.Explanation
	// Timetable of the rollout when all goes well; nil: none is shown.
	Timetable *rollout.Timetable
}

// Bounds of what is written, in bytes. GitHub takes 256 characters of a title and 65 536 of a body (source: its
// answers to longer ones), the others more; package forge takes titles and bodies that are a little shorter; Gitea's
// older versions draw no diagram of more than 5 000. No part of a body can crowd out another: the parts without a
// fold are short by construction, and each folded part has a bound of its own.
const (
	maxTitle   = 250
	maxBody    = 65_000
	maxSection = 13_000
	maxDiagram = 4_900
)

// factsEvery is what the time of the facts is rounded down to. A body changes with what it says, and by the clock no
// more often.
const factsEvery = 15 * time.Minute

// Body writes the body of the pull request, as Markdown that GitHub, GitLab, Gitea and Forgejo show alike. The first
// screen holds what is asked, the evidence in a line, how traffic moves, where the rollout stands, and how to answer;
// the rest is folded, but for the timetable at the end. Equal facts give equal bytes, and nothing of it is ever read
// back.
func (r ProposalReport) Body() string {
	var b strings.Builder
	b.WriteString(r.head())
	for _, s := range []section{r.evidence(), r.rules(), r.versions()} {
		if s.text != "" {
			b.WriteString(foldedText(s.summary, whole(s.text, maxSection)) + "\n")
		}
	}
	if s := r.timetable(); s.text != "" { // Gitea gives a diagram that was folded no height when it is unfolded
		b.WriteString("**" + s.summary + "**\n\n" + whole(s.text, maxSection) + "\n")
	}
	b.WriteString(r.foot())
	return b.String()
}

// section is one folded part. Its summary is our own words. Its text is lines that stand by themselves, but for a
// diagram, which is short.
type section struct{ summary, text string }

// whole is as many lines of a text as there is room for.
func whole(text string, room int) string {
	if len(text) <= room {
		return text
	}
	return text[:strings.LastIndex(text[:room], "\n")+1] +
		"\nThe rest is left out, since forges bound the size of this text.\n"
}

// Title is that of the pull request: like the subject of a commit.
func (r ProposalReport) Title() string {
	a, of := r.Asked.Action, r.Plan.Deployment.String()
	text := func(s string) string { return inTitle(unversioned(s)) }
	what := inTitle(title(a)) + " of " + text(of)
	switch {
	case a.Kind == rollout.Ramp:
		what = fmt.Sprintf("ramp %s to %s at %s", text(of), text(a.BuildID), rollout.Percent(a.To))
	case a.Kind == rollout.Promote:
		what = fmt.Sprintf("promote %s to %s", text(of), text(a.BuildID))
	case a.Kind == rollout.Unroute:
		what = fmt.Sprintf("take new workflows of %s from %s", text(of), text(a.BuildID))
	case a.Evacuation != nil && a.Evacuation.Target != "":
		what = fmt.Sprintf("move workflows of %s from %s to %s", text(of), text(a.BuildID), text(a.Evacuation.Target))
	case a.Evacuation != nil:
		what = fmt.Sprintf("%s workflows of %s on %s", inTitle(strings.ToLower(string(a.Evacuation.Stage))), text(of),
			text(a.BuildID))
	}
	return cutTitle(fmt.Sprintf("rampart(%s): %s", inTitle(r.Plan.Environment.Name), what))
}

func cutTitle(s string) string {
	const ellipsis = "…"
	if len(s) <= maxTitle {
		return s
	}
	s = s[:maxTitle-len(ellipsis)]
	for !utf8.ValidString(s) { // a character was cut in two
		s = s[:len(s)-1]
	}
	return s + ellipsis
}

// inTitle makes text of others fit for a title, where some forges know a little Markdown.
func inTitle(s string) string {
	return cut(strings.Map(func(c rune) rune {
		if unicode.IsLetter(c) || unicode.IsDigit(c) || unicode.Is(unicode.M, c) ||
			strings.ContainsRune(" ._-/+:,%…\u2011＠＃", c) {
			return c
		}
		return '_'
	}, tame(s)), 70)
}

// head is what everybody reads.
func (r ProposalReport) head() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s\n\n%s\n%s\n", r.what(), r.why(), r.routing(), mermaidFence(r.flow().text()))
	fmt.Fprintf(&b, "**If merged**, %s\n\n**To reject**, %s\n\n", r.merged(), r.rejected())
	return b.String()
}

// what is asked, in a line.
func (r ProposalReport) what() string {
	a := r.Asked.Action
	of := quotedName(r.Plan.Deployment.String()) + " in " + quotedName(r.Plan.Environment.Name)
	switch {
	case a.Kind == rollout.Ramp:
		step := ""
		if a.Step > 0 && a.Steps > 0 {
			step = fmt.Sprintf(", step %d of %d", a.Step, a.Steps)
		}
		return fmt.Sprintf("**Ramp %s from %s to %s** of the new workflows of %s%s.", quotedBuild(a.BuildID),
			rollout.Percent(a.From), rollout.Percent(a.To), of, step)
	case a.Kind == rollout.Promote:
		return fmt.Sprintf("**Promote %s** from %s to all new workflows of %s.", quotedBuild(a.BuildID),
			rollout.Percent(a.From), of)
	case a.Kind == rollout.Unroute:
		return fmt.Sprintf("**Take all new workflows from %s** of %s, which is left without a current version.",
			quotedBuild(a.BuildID), of)
	case a.Kind == rollout.UpdateVersion:
		return fmt.Sprintf("**Change the pods of %s in place** (a rolling update of a version with traffic, without "+
			"steps) of %s.", quotedBuild(a.BuildID), of)
	case a.Evacuation == nil:
		return fmt.Sprintf("**%s** of %s.", quotedName(title(a)), of)
	}
	e := *a.Evacuation
	what := map[v1alpha1.EvacuationStage]string{v1alpha1.EvacuateBySignal: "Signal", v1alpha1.EvacuateByMove: "Move",
		v1alpha1.EvacuateByCancel: "Cancel", v1alpha1.EvacuateByTermination: "Terminate"}[e.Stage]
	to := ""
	if e.Target != "" {
		to = " to " + quotedBuild(e.Target)
	}
	irreversible := ""
	if e.WantsApproval() {
		irreversible = " This cannot be taken back."
	}
	return fmt.Sprintf("**%s %s on %s%s**, of %s.%s", what, countOf(e.Open, "open workflow"), quotedBuild(a.BuildID),
		to, of, irreversible)
}

// why a person is asked, and what speaks for and against it.
func (r ProposalReport) why() string {
	out := []string{r.evidenceLine()}
	var asking []string
	for _, f := range r.Asked.Verdict.Findings {
		if f.Waived == "" && f.Effect == rollout.RequireApproval {
			asking = append(asking, quotedName(f.Rule)+": "+quoted(f.Text(), messageRunes))
		}
	}
	if n := len(asking); n > 0 {
		out = append(out, fmt.Sprintf("Approval is asked for by %s%s.", strings.Join(asking[:min(n, 2)], ", "),
			andMore(n-2)))
	}
	var waived []string
	for _, f := range r.Asked.Verdict.Findings {
		if rule := quotedName(f.Rule); f.Waived != "" && !slices.Contains(waived, rule) {
			waived = append(waived, rule)
		}
	}
	if n := len(waived); n > 0 {
		out = append(out, fmt.Sprintf("**Waived:** %s%s.", strings.Join(waived[:min(n, 2)], ", "), andMore(n-2)))
	}
	return strings.Join(out, " ")
}

func andMore(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(", and %d more", n)
}

func are(n int, what string) string {
	if n == 1 {
		return "1 " + what + " is"
	}
	return countOf(int64(n), what) + " are"
}

// routing is a table of how new workflows are shared out, now and then.
func (r ProposalReport) routing() string {
	if e := r.Asked.Action.Evacuation; e != nil {
		return r.evacuated(*e)
	}
	before := r.Snapshot.Observation.Routing
	after := before
	if r.Asked.Action.Routes() {
		after = before.AfterMove(r.Asked.Action)
	}
	var all []string
	for _, c := range []rollout.RoutingConfig{before, after} {
		all = append(all, c.Current)
		if c.HasRamp {
			all = append(all, c.Ramping)
		}
	}
	t, seen := newGrid("New workflows", "now", "if merged"), map[string]bool{}
	for _, id := range all {
		if !seen[id] {
			seen[id] = true
			who := quotedBuild(id)
			if id == "" {
				who = "workers without a version, if any"
			}
			t.row(who, share(before, id), share(after, id))
		}
	}
	return t.b.String()
}

func share(c rollout.RoutingConfig, id string) string {
	out := rollout.Percent(rollout.AsWritten(c.Share(id)))
	switch {
	case c.HasRamp && c.Ramping == id:
		return out + ", ramping"
	case c.Current == id && id != "":
		return out + ", current"
	}
	return out
}

// evacuated says what happens to workflows; where new ones go stays as it is.
func (r ProposalReport) evacuated(e rollout.Evacuation) string {
	then := map[v1alpha1.EvacuationStage]string{v1alpha1.EvacuateBySignal: "sent a signal",
		v1alpha1.EvacuateByMove:   "moved to " + quotedBuild(e.Target),
		v1alpha1.EvacuateByCancel: "asked to cancel", v1alpha1.EvacuateByTermination: "terminated"}[e.Stage]
	if e.Signal != "" {
		then = "sent the signal " + quotedName(e.Signal)
	}
	t := newGrid("Open workflows pinned to", "now", "if merged")
	t.row(quotedBuild(r.Asked.Action.BuildID), rollout.Grouped(e.Open), then)
	return t.b.String() + "\nWhere new workflows go does not change. The version has had no traffic since " +
		minute(e.Since) + ".\n"
}

// merged says what happens then.
func (r ProposalReport) merged() string {
	a := r.Asked.Action
	out := []string{"it is decided again on fresh facts before anything is done."}
	id := quotedBuild(a.BuildID)
	switch {
	case a.Kind == rollout.Ramp:
		out = append(out, r.ramped(id)...)
	case a.Kind == rollout.Promote:
		out = append(out, fmt.Sprintf("If it still holds, %s becomes the current version at once.", id))
		if bake := r.bake(); bake > 0 {
			out = append(out, fmt.Sprintf("It is then judged for %s before the rollout is complete.",
				v1alpha1.Duration{Duration: bake}))
		}
		if before := r.Snapshot.Observation.Routing.Current; before != "" && r.Snapshot.Spec != nil {
			out = append(out, fmt.Sprintf("%s keeps its workers; for %s it can take its traffic back at once.",
				quotedBuild(before), v1alpha1.Duration{Duration: max(r.strategy().Rollback.Window.Duration, r.bake())}))
		}
	case a.Kind == rollout.Unroute:
		out = append(out, fmt.Sprintf("If it still holds, %s gets no new workflows; those that are open end on it.",
			id))
	case a.Kind == rollout.UpdateVersion:
		out = append(out, fmt.Sprintf("If it still holds, all workers of %s are restarted with the new template: "+
			"open workflows go on with its code.", id))
	case a.Evacuation != nil:
		out = append(out, "If it still holds, a batch job of Temporal does it, for the workflows that are open then.")
	}
	return strings.Join(append(out, "If it no longer holds, the bot puts `routing.yaml` back with the reason, and "+
		"proposes what holds then."), " ")
}

func (r ProposalReport) bake() time.Duration {
	if a := r.strategy().Analysis; a != nil {
		return a.Bake.Duration
	}
	return 0
}

// ramped says what comes after a step.
func (r ProposalReport) ramped(id string) []string {
	step, later := r.askedStep(), r.later()
	first := fmt.Sprintf("If it still holds, %s gets %s at once", id, rollout.Percent(r.Asked.Action.To))
	if step != nil {
		first += fmt.Sprintf(", for %s at least", step.PauseDuration)
		if step.Gate != nil {
			first += ", and the gate " + quotedName(step.Gate.WorkflowType) + " has to pass there"
		}
	}
	next := "the promotion"
	if len(later) > 0 {
		next = rollout.Percent(later[0].RampPercentage)
	}
	second := fmt.Sprintf("After that, %s is proposed the same way.", next)
	switch {
	case r.Scope == v1alpha1.ScopeRollout:
		var all []string
		for _, s := range later[:min(len(later), maxTodo)] {
			all = append(all, fmt.Sprintf("%s for %s", rollout.Percent(s.RampPercentage), s.PauseDuration))
		}
		if n := len(later) - maxTodo; n > 0 {
			all = append(all, countOf(int64(n), "more step"))
		}
		second = fmt.Sprintf("**This approves the whole rollout:** what comes later goes on by itself, as long as "+
			"facts, gates and policy allow it: %s.",
			strings.Join(append(all, "the promotion"), ", "))
	case r.Snapshot.Environment.Approval.Mode != v1alpha1.PullRequest:
		second = fmt.Sprintf("After that comes %s; it is proposed like this where policy wants approval for it.", next)
	}
	return []string{first + ".", second}
}

// rejected says how to say no, and how to answer without a forge.
func (r ProposalReport) rejected() string {
	of := tameName(r.Plan.Deployment.String())
	out := fmt.Sprintf("close it: nothing moves, and the worker deployment is held at this step until `rampart "+
		"resume %s`.", of)
	switch {
	case r.Asked.Action.Evacuation != nil:
		out = "close it: this stage is declined, and the workflows stay where they are."
	case r.Asked.Action.Kind == rollout.Unroute:
		out = fmt.Sprintf("close it: nothing moves, and the worker deployment is held as it is until `rampart "+
			"resume %s`.", of)
	}
	which := r.which()
	return out + fmt.Sprintf(" Without a forge: `rampart approve %s%s`, `rampart reject %[1]s%[2]s`. The bot "+
		"lowers traffic without asking, also while this is open.", of, which)
}

// which are the flags by which an answer is about this proposal, and none that takes its place.
func (r ProposalReport) which() string {
	switch a := r.Asked.Action; {
	case a.Evacuation != nil:
		return " --stage " + string(a.Evacuation.Stage)
	case a.Kind == rollout.Ramp || a.Kind == rollout.Promote:
		return " --to " + strings.TrimSuffix(rollout.Percent(a.To), "%")
	}
	return ""
}

// foot says how old all of it is and what it is worth.
func (r ProposalReport) foot() string {
	return fmt.Sprintf("Facts of %s, rounded down to %s. Nothing in this text is read back: editing it changes "+
		"nothing. What counts is "+
		"`routing.yaml` on this branch.\n", minute(r.Snapshot.Now.Truncate(factsEvery)),
		v1alpha1.Duration{Duration: factsEvery})
}

// minute is a time as people compare it.
func minute(t time.Time) string {
	if t.IsZero() {
		return "an unknown time"
	}
	return t.UTC().Format("2006-01-02 15:04 UTC")
}
