package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// judged is what the version that is asked for was judged by at the step it is at; nil before it has traffic.
func (r ProposalReport) judged() *rollout.Canary {
	if c := r.Proposal.Canary; c != nil && c.Candidate == r.Asked.Action.BuildID && r.Asked.Action.Evacuation == nil {
		return c
	}
	return nil
}

// evidenceLine is the evidence in a line.
func (r ProposalReport) evidenceLine() string {
	a, c := r.Asked.Action, r.judged()
	switch {
	case a.Kind != rollout.Ramp && a.Kind != rollout.Promote:
		return quoted(a.Reason, messageRunes) + "."
	case c == nil && a.From == 0:
		return "It has had no traffic yet: there is nothing to compare."
	case c == nil:
		return "There is no comparison."
	}
	var out string
	switch {
	case c.Problem != "":
		out = "**There is no comparison:** " + quoted(c.Problem, messageRunes) + "."
	case !c.Enough:
		out = fmt.Sprintf("**Too few to say:** %s since its ramp changed, %s of them failed%s.",
			countOf(c.CandidateCounts.Closed, "closed workflow"), rollout.Grouped(c.CandidateCounts.Failed), r.needed())
	default:
		out = fmt.Sprintf("Failed since its ramp changed: %s", failures(c.CandidateCounts))
		if c.Against != "" {
			out += fmt.Sprintf(", against %s on %s", failures(c.AgainstCounts), quotedBuild(c.Against))
		}
		out += ": " + opinion(*c) + "."
	}
	if n := c.Stuck.Candidate + c.Stuck.Unresolved; n > 0 {
		out += fmt.Sprintf(" **%s stuck, %s of them on %s for certain.**", are(int(n), "workflow"),
			rollout.Grouped(c.Stuck.Candidate), quotedBuild(c.Candidate))
	}
	return out
}

func (r ProposalReport) needed() string {
	a := r.strategy().Analysis
	switch {
	case a == nil:
		return ""
	case a.OnTooFewSamples == v1alpha1.SamplesAdvance:
		return fmt.Sprintf("; the spec wants %s, and goes on without them after %s",
			rollout.Grouped(int64(a.MinSamples)), a.MaxWait)
	}
	return fmt.Sprintf("; the spec wants %s", rollout.Grouped(int64(a.MinSamples)))
}

// failures is a rate and what it is of, such as 0.4% (12 of 2 981).
func failures(n rollout.ArmCounts) string {
	if n.Closed == 0 {
		return "none (0 of 0)"
	}
	return rollout.RateOf(n.Failed, n.Closed)
}

// opinion is what the sequential test says.
func opinion(c rollout.Canary) string {
	switch {
	case c.AboveCeiling:
		return "**more often than the spec allows**"
	case c.Worse:
		return "**it is worse**"
	}
	return "no proof that it is worse"
}

// evidence is what was counted and measured, with its age.
func (r ProposalReport) evidence() section {
	t := newGrid("What", "Found", "Age")
	obs := r.Snapshot.Observation
	read := old(r.Snapshot.Now, obs.At)
	if c := r.judged(); c != nil {
		r.comparison(t, *c, read)
	}
	r.queues(t, read)
	for _, g := range obs.Gates[:min(len(obs.Gates), maxRows)] {
		found := quotedName(string(g.State))
		if !g.ClosedAt.IsZero() {
			found += " at " + minute(g.ClosedAt)
		}
		if g.Reason != "" {
			found += ": " + quoted(g.Reason, messageRunes)
		}
		t.row("gate on "+quotedName(g.TaskQueue)+", "+quotedName(g.WorkflowID), found, read)
	}
	if n := len(obs.Gates) - maxRows; n > 0 {
		t.row("more gates", rollout.Grouped(int64(n)), "")
	}
	summary := ""
	if n := r.metrics(t); n > 0 {
		summary = fmt.Sprintf(", %s not fresh", rollout.Grouped(int64(n)))
	}
	if t.rows == 0 {
		return section{}
	}
	return section{"Evidence: " + countOf(int64(t.rows), "fact") + summary, t.b.String() +
		fmt.Sprintf("\nTraffic is only raised on a read of Temporal of the last %s.\n",
			v1alpha1.Duration{Duration: r.Snapshot.Limits.FactMaxAge})}
}

// comparison of the candidate with the current version.
func (r ProposalReport) comparison(t *grid, c rollout.Canary, read string) {
	for _, side := range []string{c.Candidate, c.Against} {
		v := r.Snapshot.Observation.Version(side)
		if side == "" || v == nil {
			continue
		}
		found := "not known: " + quoted(v.Closed.Reason, messageRunes)
		if n := v.Closed; n.Known {
			found = fmt.Sprintf("%s completed, %s failed, %s timed out, %s terminated, %s canceled, %s went on as new",
				rollout.Grouped(n.Completed), rollout.Grouped(n.Failed),
				rollout.Grouped(n.TimedOut), rollout.Grouped(n.Terminated), rollout.Grouped(n.Canceled),
				rollout.Grouped(n.ContinuedAsNew))
		}
		t.row("closed on "+quotedBuild(side)+" since "+minute(c.Since), found, read)
	}
	switch {
	case c.Problem != "":
		t.row("comparison", "none: "+quoted(c.Problem, messageRunes), read)
	default:
		t.row("comparison", fmt.Sprintf("%s; evidence %s, turned back at %s (powers of ten)", opinion(c),
			power(c.Evidence), power(c.Bound)), read)
	}
	if a := r.strategy().Analysis; a != nil && a.MaxFailureRate > 0 && c.Problem == "" {
		t.row("ceiling", fmt.Sprintf("at most %s may fail; evidence for more %s, turned back at %s",
			rollout.Percent(round(100*a.MaxFailureRate)), power(c.CeilingEvidence), power(c.Bound)), read)
	}
	stuck := fmt.Sprintf("%s on %s, %s on an unknown version", rollout.Grouped(c.Stuck.Candidate),
		quotedBuild(c.Candidate), rollout.Grouped(c.Stuck.Unresolved))
	if c.Stuck.Workflow != "" {
		stuck += "; one is " + quotedName(c.Stuck.Workflow)
	}
	if c.Stuck.Problem != "" {
		stuck = "not known: " + quoted(c.Stuck.Problem, messageRunes)
	}
	t.row("stuck workflows", stuck, read)
}

func power(x float64) string { return strconv.FormatFloat(x+0, 'f', 1, 64) }

func round(x float64) float64 {
	f, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 4, 64), 64)
	if err != nil {
		return x
	}
	return f
}

// queues are the backlogs of versions whose queues were asked for.
func (r ProposalReport) queues(t *grid, read string) {
	shown := 0
	for _, v := range r.Snapshot.Observation.Versions {
		for _, q := range v.Queues {
			if shown++; shown > maxRows {
				continue
			}
			found := "backlog not known"
			if b := q.Backlog; b.Known {
				found = countOf(b.Count, "task") + " wait"
				if b.Count > 0 {
					found += ", the oldest " + coarse(b.Age)
				}
			}
			if q.Pollers.Known {
				found += "; " + countOf(int64(q.Pollers.Count), "poller")
			}
			t.row(fmt.Sprintf("%s queue %s of %s", quotedName(string(q.Type)), quotedName(q.Name),
				quotedBuild(v.BuildID)), found, read)
		}
	}
	if n := shown - maxRows; n > 0 {
		t.row("more queues", rollout.Grouped(int64(n)), "")
	}
}

// metrics and other facts that policy judges by. It gives how many of them cannot be relied on.
func (r ProposalReport) metrics(t *grid) (unfit int) {
	now := r.Snapshot.Now
	for i, key := range slices.Sorted(maps.Keys(r.Snapshot.Facts)) {
		f := r.Snapshot.Facts[key]
		found, age := quoted(string(f.Value), nameRunes), old(now, f.ObservedAt)+", fresh"
		if !f.Fresh(now) {
			unfit++
			age = old(now, f.ObservedAt) + ", **stale**"
		}
		if f.Error != "" {
			found, age = "**not known:** "+quoted(f.Error, messageRunes), "-"
		}
		if f.Source != "" {
			found += " from " + quoted(f.Source, nameRunes)
		}
		if i < maxRows {
			t.row("metric "+quotedName(key), found,
				fmt.Sprintf("%s (limit %s)", age, v1alpha1.Duration{Duration: f.MaxAge}))
		}
	}
	if n := len(r.Snapshot.Facts) - maxRows; n > 0 {
		t.row("more metrics", rollout.Grouped(int64(n)), "")
	}
	return unfit
}

// old is how long ago something was, in words that do not change every few seconds.
func old(now, at time.Time) string {
	if at.IsZero() {
		return "unknown"
	}
	return coarse(now.Sub(at))
}

// coarse is a duration as a bound of minutes, or in whole hours or days.
func coarse(d time.Duration) string {
	for _, most := range []time.Duration{5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour} {
		if d < most {
			return "under " + v1alpha1.Duration{Duration: most}.String()
		}
	}
	unit := time.Hour
	if d >= 48*time.Hour {
		unit = 24 * time.Hour
	}
	return Age(d.Truncate(unit))
}

// rules are what policy found, and what it looked at and found nothing.
func (r ProposalReport) rules() section {
	t := newGrid("Rule", "Outcome", "Why")
	said := map[string]int64{}
	findings := r.Asked.Verdict.Findings
	for i, f := range findings {
		outcome := says(f)
		said[outcome]++
		if i >= maxRows {
			continue
		}
		why := quoted(f.Text(), messageRunes)
		if !f.Until.IsZero() {
			why += " until " + minute(f.Until)
		}
		if f.Waived != "" {
			outcome, why = "**waived**", why+"; waived: "+quoted(f.Waived, messageRunes)
		}
		t.row(quotedName(f.Rule), outcome, why)
	}
	text, idle := t.b.String()+leftOut(len(findings)), r.quietRules(said)
	text += idle
	if len(findings) == 0 && idle == "" {
		return section{}
	}
	var counts []string
	for _, outcome := range []string{outcomeTurnBack, outcomeHold, outcomeAsk, outcomeWaived, outcomeWarn, outcomeAllow,
		outcomePassed} {
		if n := said[outcome]; n > 0 {
			counts = append(counts, rollout.Grouped(n)+" "+outcome)
		}
	}
	return section{"Rules: " + strings.Join(counts, ", "), text}
}

// What becomes of a rule, in words.
const (
	outcomeTurnBack = "for turning back"
	outcomeHold     = "for holding"
	outcomeAsk      = "asking for approval"
	outcomeWaived   = "waived"
	outcomeWarn     = "warning"
	outcomeAllow    = "allowing"
	outcomePassed   = "passed"
)

func says(f rollout.Finding) string {
	if f.Waived != "" {
		return outcomeWaived
	}
	switch f.Effect {
	case rollout.Allow:
		return outcomeAllow
	case rollout.Warn:
		return outcomeWarn
	case rollout.RequireApproval:
		return outcomeAsk
	case rollout.RollbackEffect:
		return outcomeTurnBack
	}
	return outcomeHold
}

// quietRules are those that found nothing, with what they looked at, and those that do not count.
func (r ProposalReport) quietRules(said map[string]int64) string {
	x := r.Explanation
	if x == nil {
		return fmt.Sprintf("\nRules that passed are listed by `rampart explain %s`.\n",
			tameName(r.Plan.Deployment.String()))
	}
	t := newGrid("Rule", "Outcome", "Looked at")
	n, idle := 0, int64(0)
	for _, rule := range x.Rules {
		outcome := outcomePassed
		switch rule.Outcome {
		case rollout.RuleIdle:
			idle++
			continue
		case rollout.RuleUnheard:
			outcome = "does not count: its set could not be evaluated"
		case rollout.RulePassed:
			said[outcomePassed]++
		default:
			continue // among the findings
		}
		if n++; n <= maxRows {
			t.row(quotedName(rule.Rule), outcome, quoted(strings.Join(goesBy(rule), "; "), messageRunes))
		}
	}
	text := ""
	if n > 0 {
		text = "\n" + t.b.String() + leftOut(n)
	}
	if idle > 0 {
		text += fmt.Sprintf("\n%s not about this, or not configured.\n", are(int(idle), "other rule"))
	}
	if x.Incomplete != "" {
		text += "\nNot all is explained: " + quoted(x.Incomplete, messageRunes) + ".\n"
	}
	return text
}

// versions are those that have files, or that Temporal lists, with what is known of their end.
func (r ProposalReport) versions() section {
	lives := lifecycle{sunset: sunsetOf(r.Snapshot)}
	if st := r.Plan.Status; st != nil {
		lives.status = *st
	} else if was := r.Snapshot.Record.LastStatus(); was != nil {
		lives.status = *was
	}
	if t := r.Proposal.Target; t != nil {
		lives.target = t.BuildID
	}
	t, seen := newGrid("Version", "State", "New workflows", "Open workflows pinned to it", "Waits for"),
		map[string]bool{}
	add := func(v Version) {
		if seen[v.BuildID] = true; len(seen) > maxRows {
			return
		}
		waits := v.Waits
		if v.WaitsUntil != nil {
			waits += ": " + minute(*v.WaitsUntil)
		}
		waiting := "-"
		if waits != "" {
			waiting = quoted(waits, messageRunes)
		}
		t.row(quotedBuild(v.BuildID), r.state(v), share(r.Snapshot.Observation.Routing, v.BuildID), r.open(v.BuildID),
			waiting)
	}
	if rec := r.Snapshot.Record.Routing; rec != nil {
		lives.setAside = rec.Spec.SetAside
	}
	for _, v := range slices.Backward(r.Snapshot.Record.Versions()) {
		add(lives.of(v))
	}
	for _, v := range r.Snapshot.Observation.Versions {
		if !seen[v.BuildID] {
			add(Version{BuildID: v.BuildID, Waits: "nothing here: it has no files in Git"})
		}
	}
	if len(seen) == 0 {
		return section{}
	}
	return section{"Versions: " + rollout.Grouped(int64(len(seen))), t.b.String() + leftOut(len(seen))}
}

// state of a version, with its drainage.
func (r ProposalReport) state(v Version) string {
	o := r.Snapshot.Observation.Version(v.BuildID)
	switch {
	case o != nil && o.Drainage != "":
		return quotedName(cmp.Or(v.Status, string(o.Drainage))) + ", since " + minute(o.DrainageChangedAt)
	case v.Status == "":
		return "not known"
	}
	return quotedName(v.Status)
}

// open counts the open workflows that are pinned to a version, where that was asked.
func (r ProposalReport) open(id string) string {
	n, ok := r.Snapshot.Observation.Unlisted[id]
	if v := r.Snapshot.Observation.Version(id); v != nil {
		n, ok = v.OpenPinned, true
	}
	switch {
	case ok && n.Known:
		return rollout.Grouped(n.N)
	case n.Reason != "":
		return "not known: " + quoted(n.Reason, nameRunes)
	}
	return "not asked"
}

// timetable is how the rollout goes when all goes well.
func (r ProposalReport) timetable() section {
	if r.Timetable == nil {
		return section{}
	}
	return section{"Timetable, when all goes well", goingWell(onTheQuarter(*r.Timetable)) +
		fmt.Sprintf("\nSimulated; `rampart simulate %s` prints each cycle.\n", tameName(r.Plan.Deployment.String()))}
}

// onTheQuarter is a timetable that begins at a round time: one that is simulated again from a little later is the same.
func onTheQuarter(t rollout.Timetable) rollout.Timetable {
	return moved(t, t.Start.Truncate(factsEvery).Sub(t.Start))
}

// moved is a timetable that begins so much later.
func moved(t rollout.Timetable, by time.Duration) rollout.Timetable {
	t.Start, t.End, t.Entries = t.Start.Add(by), t.End.Add(by), slices.Clone(t.Entries)
	for i := range t.Entries {
		t.Entries[i].At = t.Entries[i].At.Add(by)
	}
	return t
}
