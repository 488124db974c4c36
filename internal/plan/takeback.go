package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// TakeBack is a person's wish that a build loses its traffic.
type TakeBack struct {
	// BuildID to turn back; "": the one that ramps, else the one that the spec asks for.
	BuildID string
	// To is the version that gets the traffic of a current one; "": the one before it.
	To string
	// By and Reason go into the bar against the build.
	By, Reason string
}

// TakenBack is how that wish is carried out: Plan.Lower goes to Temporal first, then Record into Git. It survives that
// the branch moves between the two.
type TakenBack struct {
	Plan rollout.Plan
	// Bar against the build; its BuildID is "" for a ramp to unversioned workers, which nothing bars.
	Bar v1alpha1.Bar
	// Said is what is done, or why nothing has to be.
	Said string
	// Done says that there is nothing to do in Git either.
	Done bool

	attempt int
	// was is the routing that was desired before, now the one that Plan.Lower makes.
	was, now rollout.RoutingConfig
	// asked is the desired routing as the record had it, which may be a merge or an edit that was not answered yet.
	asked rollout.RoutingConfig
	held  bool
}

// AskTakeBack says what more to read of Temporal for a TakeBack, as Ask does for a cycle.
func (v *View) AskTakeBack(w TakeBack) rollout.Ask {
	a := v.Ask()
	if !v.readable() || v.foreign() {
		return a
	}
	add(&a.Queues, v.losing(w), w.To)
	if w.To == "" {
		add(&a.Queues, v.predecessors()...)
	}
	slices.Sort(a.Queues)
	return a
}

// DecideTakeBack decides what a person's rollback does, by the same steps as the bot's own. The error says why it
// cannot be done.
func (v *View) DecideTakeBack(w TakeBack) (TakenBack, error) {
	if err := v.steerable(); err != nil {
		return TakenBack{}, err
	}
	id := v.losing(w)
	if id == "" && !v.actual.HasRamp {
		return TakenBack{}, fmt.Errorf("the spec of %s names no build now (%s): name the one that is to lose its "+
			"traffic with --build", v.s.Deployment, describe(v.actual))
	}
	t := TakenBack{attempt: max(v.attempt(id), 1), was: v.desired, asked: v.desired, held: v.rec.Hold != nil,
		Bar: v1alpha1.Bar{BuildID: id, By: w.By, Reason: w.Reason, At: v1alpha1.NewTime(v.now)}}
	t.Bar.TemplateHash = v.templateHash(id)
	if v.rec.Basis != nil {
		t.asked = desiredConfig(v.rec.Desired)
	}
	var move rollout.Action
	switch {
	case v.actual.HasRamp && v.actual.Ramping == id:
		if w.To != "" {
			return TakenBack{}, fmt.Errorf("%s ramps, and its traffic goes back to %s: --to is for a current version",
				orUnversioned(id), orUnversioned(v.actual.Current))
		}
		move = v.turnBack(id, rollout.CausePerson, w.By, w.Reason)
	case v.actual.Current == id:
		back, err := v.backTo(w.To)
		if err != nil {
			return TakenBack{}, err
		}
		if w.BuildID+w.To == "" && !v.mayReturn(back) {
			return TakenBack{}, fmt.Errorf("%s is current, and the rollback window in which %s comes back without "+
				"further ado is over. "+
				"If it is meant: rampart rollback %s --build %[1]s", id, back, v.s.Deployment)
		}
		move = v.rollback(back, rollout.CausePerson, w.Reason)
		move.Bar = w.By
	default:
		return v.withoutTraffic(t, w.BuildID != "")
	}
	if id == "" {
		move.Bar = ""
	}
	p := rollout.Proposal{Target: v.target, Row: "asked", Actions: []rollout.Action{move},
		State: rollout.State{Reason: rollout.RolledBack, Message: w.Reason, Stalled: true}}
	t.Plan = v.Resolve(p, rollout.Verdicts{})
	if t.Plan.Lower != nil {
		t.now = v.actual.AfterMove(move)
	}
	t.Said = headline(move)
	return t, nil
}

// Now is the routing once Plan.Lower was made.
func (t TakenBack) Now() rollout.RoutingConfig {
	if t.Plan.Lower == nil {
		return t.was
	}
	return t.now
}

// steerable says why the routing cannot be moved by us, nil if it can.
func (v *View) steerable() error {
	switch p := v.obs.Problem; {
	case v.s.Record.RoutingProblem != nil && !v.unreadable():
		return errors.New(v.s.Record.RoutingProblem.Message)
	case p != nil:
		return fmt.Errorf("read Temporal: %s", p.Message)
	case recordIn(v.s) == nil:
		return fmt.Errorf("%s has no record in %s yet: nothing of it is known to take traffic back to", v.s.Deployment,
			v.s.Record.Dir)
	case !v.readable():
		//nolint:staticcheck // a name
		return fmt.Errorf("Temporal cannot be asked about %s without its spec and connection", v.s.Deployment)
	case v.foreign():
		return errors.New(v.ownership())
	}
	return nil
}

// losing is the build that loses its traffic.
func (v *View) losing(w TakeBack) string {
	switch {
	case w.BuildID != "":
		return w.BuildID
	case v.actual.HasRamp:
		return v.actual.Ramping
	case v.target != nil:
		return v.target.BuildID
	}
	return ""
}

// backTo is the version that gets the traffic of the current one, or why there is none.
func (v *View) backTo(to string) (string, error) {
	current := v.actual.Current
	if to == "" {
		if to = v.predecessor(); to == "" {
			return "", fmt.Errorf("no version before %s can take its traffic: none was current before it, or they "+
				"were turned back or removed", current)
		}
	} else if err := v.mayBecomeCurrent(to); err != nil {
		return "", err
	}
	if e := v.canTakeBack(to); e.answer != rollout.Yes {
		return "", fmt.Errorf("traffic cannot go from %s back to %s: %s. Push the spec with that build again: the "+
			"bot brings its workers back", current, to, e.why)
	}
	return to, nil
}

func (v *View) mayBecomeCurrent(to string) error {
	switch {
	case to == v.actual.Current:
		return fmt.Errorf("%s is the current version already", to)
	case v.recorded(to) == nil && v.obs.Version(to) == nil:
		return fmt.Errorf("%s has no version %q, neither in Git nor in Temporal", v.s.Deployment, to)
	case lastPromotion(v.promotions, to) < 0:
		return fmt.Errorf("%s was never current: a rollback only goes to a version that was", to)
	}
	if b := v.bar(to, v.templateHash(to)); b != nil {
		return fmt.Errorf("%s was turned back itself, by %s: %s", to, b.By, b.Reason)
	}
	return nil
}

// withoutTraffic answers for a build that has no traffic to lose. A build that was turned back already is fine: a
// person who says it twice means the same build, not the one before it. So does a person who names no build, unless
// another build was promoted since. A mark that was not recorded is recorded now.
func (v *View) withoutTraffic(t TakenBack, named bool) (TakenBack, error) {
	id := t.Bar.BuildID
	b := v.bar(id, t.Bar.TemplateHash)
	if b == nil || !named && v.promotedSince(b) {
		err := fmt.Errorf("%s has no traffic (%s)", id, describe(v.actual))
		if v.actual.Current != "" {
			err = fmt.Errorf("%w. To take %s back: rampart rollback %s --build %[2]s", err, v.actual.Current,
				v.s.Deployment)
		}
		return TakenBack{}, err
	}
	t.Said = fmt.Sprintf("%s was turned back already, by %s: %s", id, b.By, b.Reason)
	t.Done = v.recordedBar(id, t.Bar.TemplateHash) != nil
	if !t.Done {
		t.Bar.Reason = b.Reason
	}
	return t, nil
}

// Record writes a rollback down in a record. That is the one it was decided on, or a later one, in which the bot may
// have written down itself what it saw of it.
func (t TakenBack) Record(rec v1alpha1.RoutingSpec) v1alpha1.RoutingSpec {
	next := cloneRecord(rec)
	if id := t.Bar.BuildID; id != "" {
		next.Bars = slices.DeleteFunc(next.Bars, func(b v1alpha1.Bar) bool {
			return b.BuildID == id && b.TemplateHash == t.Bar.TemplateHash
		})
		next.Bars = append(next.Bars, t.Bar)
		if ver := rollout.FindVersion(next.Versions, id); ver != nil {
			ver.TurnedBack = max(ver.TurnedBack, t.attempt)
		}
	}
	made := t.Plan.Record
	if made == nil {
		return next
	}
	if h := next.Hold; h != nil && h.Kind == v1alpha1.HoldDrift && !t.held {
		next.Hold = nil // it followed what we did
	}
	if desiredConfig(rec.Desired).SameTraffic(t.asked) {
		next.Desired, next.Decided, next.Basis = made.Desired, made.Decided, made.Basis
	}
	next.Promotions = made.Promotions
	return next
}

// AsIs is a routing as a record has it: as what is desired, and as the basis of that.
func AsIs(r rollout.RoutingConfig) (v1alpha1.DesiredRouting, *v1alpha1.RoutingBasis) {
	return desiredOf(r), basisOf(r)
}

// Describe says a routing in words, such as "current v1, v2 ramping at 5%".
func Describe(r rollout.RoutingConfig) string { return describe(r) }
