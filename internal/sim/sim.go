package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/render"
)

// Judge is policy.
type Judge interface {
	Judge(ctx context.Context, s rollout.Snapshot, p rollout.Proposal) rollout.Verdicts
}

// Input is what a simulation is made of.
type Input struct {
	// Snapshot of the worker deployment as the repository has it, without an observation.
	Snapshot rollout.Snapshot
	// World is the script; its At must be set.
	World v1alpha1.SimulationSpec
	Judge Judge
	// Next says what is rolled out where the script pushes nothing.
	Next Next
}

// Next says what is rolled out after the spec as it is, where the script pushes nothing.
type Next string

// The values of Next; "" is not one of them.
const (
	// NextMadeUp is a made-up next image where the spec's version is current already, or, with no record, once its
	// first version is.
	NextMadeUp Next = "MadeUp"
	// NextNothing leaves it at the spec as it is.
	NextNothing Next = "Nothing"
)

// maxCycles that do something, in one simulation. A rollout has some ten.
const maxCycles = 2000

// ErrRestless is what a simulation ends with in which something is done over and over again.
var ErrRestless = errors.New("it does not come to rest")

// Run plays the rollout of a worker deployment's spec.
//
// Without a script's own pushes the rollout is that of the spec as it is, and of what Next says.
//
// The errors are those of a worker deployment that cannot be simulated (no usable spec, a record that cannot be read or
// that tells of a time after the start), of a context that ended, ErrRestless, and a plan that must not be (a defect of
// Rampart).
func Run(ctx context.Context, in Input) (rollout.Timetable, error) {
	if err := check(in); err != nil {
		return rollout.Timetable{}, err
	}
	s := newSimulation(in)
	return s.play(ctx, s.next)
}

// play goes from cycle to cycle. next gives the time of the next one that matters; false: nothing ever happens any
// more.
func (s *simulation) play(ctx context.Context, next func(context.Context, time.Time, decision) (time.Time, bool)) (
	rollout.Timetable, error) {
	name := s.snapshot.Deployment
	for t, n := s.start, 0; !t.After(s.end); {
		d, err := s.cycle(ctx, t)
		if err != nil {
			return s.table, fmt.Errorf("simulate %s: after %s: %w", name, t.Sub(s.start), err)
		}
		if d.acted {
			n++
		}
		if n > maxCycles {
			return s.table, fmt.Errorf("simulate %s: %w: more than %d cycles did something in %s", name, ErrRestless,
				maxCycles, t.Sub(s.start))
		}
		s.last = d
		at, ok := next(ctx, t, d)
		if !ok {
			s.conclude(t)
			return s.table, ctx.Err()
		}
		t = at
	}
	s.conclude(s.end)
	if s.table.Outcome == rollout.OutcomeHeld {
		s.table.Outcome = rollout.OutcomeTimeIsUp
	}
	return s.table, ctx.Err()
}

// simulation is one run: a bot on a repository and a Temporal that it makes up.
type simulation struct {
	bot        *reconcile.Reconciler
	script     v1alpha1.SimulationSpec
	start, end time.Time
	// snapshot is what is in Git.
	snapshot rollout.Snapshot
	temporal *temporal
	// root is the output's own kustomization.yaml.
	root   rollout.File
	pushes []push
	// asked are when people approve actions that wait for it, by the action's ID.
	asked map[string]approval
	// seen is until when the events of the world were told.
	seen  time.Time
	last  decision
	table rollout.Timetable
	// now is the time of the cycle. acted and committed say that the cycle did something, and committed it.
	now              time.Time
	acted, committed bool
}

// push is a change of the spec. One without a time comes when the rollout before it is complete.
type push struct {
	at    time.Time
	image string
}

type approval struct {
	at     time.Time
	action rollout.Action
}

func newSimulation(in Input) *simulation {
	s := &simulation{script: in.World, start: in.World.At.Time, end: in.World.At.Add(in.World.For.Duration),
		snapshot: in.Snapshot, temporal: newTemporal(in), asked: map[string]approval{}}
	s.seen = s.start.Add(-1)
	s.bot = s.newBot(in)
	s.table = rollout.Timetable{Deployment: in.Snapshot.Deployment, Environment: in.Snapshot.Environment.Name,
		Start: s.start, Interval: s.script.Interval}
	s.temporal.candidate = s.target()
	for _, p := range in.World.Pushes {
		s.pushes = append(s.pushes, push{s.start.Add(p.After.Duration), p.Image})
	}
	slices.SortStableFunc(s.pushes, func(a, b push) int { return a.at.Compare(b.at) })
	if len(s.pushes) == 0 && in.Next == NextMadeUp {
		s.pushes = s.nextPush()
	}
	return s
}

// nextPush makes up a push where the spec as it is leaves nothing to roll out.
func (s *simulation) nextPush() []push {
	r := s.temporal.routing
	next := push{image: nextImage(s.snapshot.Spec.Spec.Template.FirstImage)}
	switch {
	case s.snapshot.Spec.Spec.Template.FirstImage == "":
	case r.Current == "":
		return []push{next}
	case r.Current == s.target() && !r.HasRamp:
		next.at = s.start
		return []push{next}
	}
	return nil
}

// target is the build ID that the spec asks for.
func (s *simulation) target() string {
	id, _ := rollout.BuildIDFor(s.snapshot.Spec.Spec, s.snapshot.Record.Versions())
	return id
}

// decision is what is decided in one cycle, and on what.
type decision struct {
	snapshot rollout.Snapshot
	plan     rollout.Plan
	state    rollout.State
	// counts says that workflows were counted: what policy says may change by itself.
	counts bool
	// acted says that the cycle did something.
	acted bool
}

// decide is what a cycle at t would decide. It changes nothing, so cycles to come can be tried.
func (s *simulation) decide(ctx context.Context, t time.Time) decision {
	s.now = t
	_, all, err := s.bot.Plan(ctx)
	if err != nil || len(all[0]) == 0 {
		return decision{}
	}
	return decided(all[0][0])
}

// decided is a decision of the bot as the timetable needs it.
func decided(made *rollout.Decision) decision {
	d := decision{snapshot: made.Snapshot, plan: made.Plan, state: made.Proposal.State}
	d.counts = len(plan.Look(made.Snapshot).Ask().Closed) > 0
	if st := d.plan.Status; st != nil {
		told, _ := rollout.StateOf(st.Conditions) // a plan's status has all conditions
		d.state.Reason, d.state.Message, d.state.Stalled = told.Reason, told.Message, told.Stalled
	}
	return d
}

func (s *simulation) cycle(ctx context.Context, t time.Time) (decision, error) {
	events, err := s.happen(t)
	if err != nil {
		return decision{}, err
	}
	s.now, s.acted, s.committed = t, false, false
	report, err := s.bot.Cycle(ctx)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return s.last, err
	}
	for _, why := range report.Failures {
		return s.last, fmt.Errorf("the plan was not carried out, which is a defect of Rampart: %s", why)
	}
	d := s.last
	if len(report.Decisions) > 0 {
		d = decided(report.Decisions[0])
	}
	d.acted = s.acted
	s.ask(t, d)
	if len(s.pushes) > 0 && s.pushes[0].at.IsZero() && d.state.Reason == rollout.RolloutComplete && !d.acted {
		s.pushes[0].at = s.after(t, t)
	}
	s.tell(t, d, events, s.committed)
	return d, nil
}

// ask hands what waits for approval to the people of the script, and forgets what does not any more.
func (s *simulation) ask(t time.Time, d decision) {
	waiting := map[string]bool{}
	for _, h := range d.plan.Held {
		waits := h.Verdict.Effect == rollout.RequireApproval && !h.Action.Kind.Removes() &&
			h.Action.Kind != rollout.DriftAction
		if !waits || s.script.Approvals.Answer != v1alpha1.AnswerApprove {
			continue
		}
		waiting[h.Action.ID] = true
		if _, there := s.asked[h.Action.ID]; !there {
			s.asked[h.Action.ID] = approval{s.answered(t, h.Action), h.Action}
		}
	}
	for _, a := range d.plan.Actions {
		delete(s.asked, a.ID)
	}
	if d.snapshot.Observation.Problem != nil {
		return // nothing is proposed then
	}
	for id, a := range s.asked {
		if _, proposed := d.plan.Verdicts.Actions[id]; !proposed || !waiting[id] && t.Before(a.at) {
			delete(s.asked, id)
		}
	}
}

// answered is when people approve an action that waits at t: some time after it was proposed, which may be before the
// start.
func (s *simulation) answered(t time.Time, a rollout.Action) time.Time {
	since := t
	if r := s.snapshot.Record.Routing; r != nil {
		if p := r.Spec.Proposal; p != nil && !p.Withdrawn && p.BuildID == a.BuildID && p.To == a.To {
			since = p.Since.Time
		}
	}
	if at := since.Add(s.script.Approvals.After.Duration); at.After(t) {
		return at
	}
	return s.after(t, t)
}

// tell makes an entry of a cycle in which something happened.
func (s *simulation) tell(t time.Time, d decision, events []string, committed bool) {
	e := rollout.TimetableEntry{At: t, After: v1alpha1.Duration{Duration: t.Sub(s.start)}, Events: events,
		Row: d.plan.Row, Actions: d.plan.Actions,
		Held: d.plan.Held, Routing: s.temporal.routing, State: d.state, NextDue: d.plan.NextDue}
	if committed {
		e.Commit = d.plan.Summary
		if len(d.plan.Actions) == 0 && render.StatesTold(d.snapshot.Record.LastStatus(), d.plan.Status) != nil {
			e.Commit = nil // it tells of states only, as the events do
		}
	}
	if n := len(s.table.Entries); n == 0 || d.acted || len(events) > 0 ||
		standing(e) != standing(s.table.Entries[n-1]) {
		s.table.Entries = append(s.table.Entries, e)
	}
}

// standing is where a rollout stands, in short: two entries with the same differ by what was done.
func standing(e rollout.TimetableEntry) string {
	return fmt.Sprintf("%s %v%s", e.State.Reason, e.State.Stalled, heldBack(e.Held))
}

func heldBack(held []rollout.Held) string {
	var b strings.Builder
	for _, h := range held {
		fmt.Fprintf(&b, "\n%s %s", h.Action.ID, h.Verdict.Effect)
		for _, f := range h.Verdict.Findings {
			fmt.Fprintf(&b, " %s", f.Rule)
		}
	}
	return b.String()
}

// known is what is decided, in short: two cycles with the same would tell the same.
func known(d decision) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %v", d.plan.Row, d.state.Reason, d.state.Stalled)
	for _, a := range d.plan.Actions {
		fmt.Fprintf(&b, "\n%s", a.ID)
	}
	b.WriteString(heldBack(d.plan.Held))
	return b.String()
}

func (s *simulation) conclude(end time.Time) {
	d := s.last
	s.table.End, s.table.Target, s.table.State = end, s.target(), d.state
	switch {
	case d.state.Reason == rollout.RolloutComplete && !d.state.Stalled && len(s.pushes) == 0:
		s.table.Outcome = rollout.OutcomeComplete
	case d.state.Reason == rollout.RolledBack:
		s.table.Outcome = rollout.OutcomeTurnedBack
	default:
		s.table.Outcome = rollout.OutcomeHeld
	}
}
