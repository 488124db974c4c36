package plan

import (
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// View is a snapshot and what follows from it, which all functions of the rules look at. Look makes it, and it never
// changes. A cycle makes one of what Git says, by which Temporal is described; one with that description, by which the
// rest is asked for; and one with all that was read, by which it is decided. Code that needs one fact of a decision
// later, such as its Subject, makes one again: that takes two microseconds.
type View struct {
	s   *rollout.Snapshot
	now time.Time
	// spec is the one to judge by; nil: there is none.
	spec *v1alpha1.WorkerDeployment
	// unusable says why the spec, or its connection, cannot be used: then traffic is only lowered. Nil: they can.
	unusable *rollout.State
	// connection is by which its versions reach Temporal; nil: it is not in Git.
	connection *v1alpha1.Connection
	// rec is the record; its zero value if there is none.
	rec v1alpha1.RoutingSpec
	// target is what spec asks for; nil: nothing.
	target *rollout.Target
	obs    *rollout.Observation
	// actual is the routing as Temporal has it, desired as the record has it (actual, if there is no record).
	actual, desired rollout.RoutingConfig
	// promotions are the recorded ones and what is seen to be current.
	promotions []v1alpha1.Promotion
	// candidate judges the version that has new traffic; nil: none is judged.
	candidate *rollout.Canary
	// edit is what became of the desired routing in Git since the bot wrote it.
	edit edit
	// retire is the wish that the worker deployment ends, nil for none.
	retire *v1alpha1.Retire
}

// Look makes the view of a snapshot.
func Look(s rollout.Snapshot) *View {
	v := &View{s: &s, now: s.Now, spec: s.Spec, obs: &s.Observation, actual: s.Observation.Routing}
	v.desired = v.actual
	if rec := recordIn(&s); rec != nil {
		v.rec = *rec
	}
	if v.unreadable() {
		v.rec = earlierRecord(v.rec)
	}
	if v.startsAnew() {
		v.rec = v1alpha1.RoutingSpec{Hold: v.personsHold()}
	}
	if len(s.Lost) > 0 {
		v.rec.Versions = slices.Concat(v.rec.Versions, s.Lost)
	}
	v.retire = v.retirement()
	v.connection = v.findConnection()
	if v.unusable = v.unusableSpec(); v.unusable != nil {
		v.spec = v.lastGood()
	}
	if v.rec.Basis != nil {
		v.desired = desiredConfig(v.rec.Desired)
	}
	v.promotions = v.seenPromotions()
	v.target = v.findTarget()
	if v.edit = v.findEdit(); v.edit.isPutBack() {
		v.desired = desiredConfig(*v.rec.Decided)
	}
	v.candidate = v.canary()
	return v
}

// unmoved reports whether the routing is the one on which the bot decided last: nothing set it since, to the same
// traffic either.
func (v *View) unmoved() bool { return v.rec.Basis != nil && basisConfig(*v.rec.Basis).Same(v.actual) }

// startsAnew reports whether a record without versions is about another Temporal namespace, or server, than the spec in
// Git is now. Then nothing was left behind there, and nothing that it says of builds and the routing is about this one.
func (v *View) startsAnew() bool {
	return v.s.Spec != nil && v.s.SpecPath != "" && len(v.rec.Versions) == 0 &&
		v.rec.MinReader <= v1alpha1.RecordFormat &&
		(v.rec.TemporalNamespace != v.s.Spec.Spec.WorkerOptions.TemporalNamespace || v.anotherServer())
}

// personsHold is a hold by a person, nil for none: one that followed drift is about the routing as it was.
func (v *View) personsHold() *v1alpha1.Hold {
	if h := v.rec.Hold; h != nil && h.Kind != v1alpha1.HoldDrift && h.Kind != v1alpha1.HoldRejected {
		return h
	}
	return nil
}

// newSpec reports whether the spec asks for something else than when the record was written.
func (v *View) newSpec() bool {
	was := v.rec.Target
	return was != nil && v.target != nil && (was.BuildID != v.target.BuildID ||
		was.TemplateHash != v.target.TemplateHash)
}

// readable reports whether Temporal was read.
func (v *View) readable() bool {
	return v.obs.Problem == nil && !v.obs.At.IsZero() && v.obs.Exists != ""
}

// foreign reports whether the worker deployment is owned by someone else, or was released. Who has no identity owns
// nothing.
func (v *View) foreign() bool {
	own := v.s.Environment.ManagerIdentity
	return own == "" || v.released() || rollout.BelongsToOther(v.obs.ManagerIdentity, own)
}

// released reports whether a person handed the routing back.
func (v *View) released() bool { return v.rec.Hold != nil && v.rec.Hold.Kind == v1alpha1.HoldReleased }

func (v *View) findTarget() *rollout.Target {
	if v.spec == nil || v.retire != nil {
		return nil
	}
	id, from := rollout.BuildIDFor(v.spec.Spec, v.rec.Versions)
	t := &rollout.Target{BuildID: id, BuildIDFrom: from, TemplateHash: rollout.TemplateHash(v.spec.Spec), Attempt: 1,
		Since: v.now}
	if r := v.recorded(id); r != nil {
		t.Deployment = r.Deployment
		t.Attempt = r.Attempts + 1
	} else {
		t.Deployment = rollout.DeploymentName(v.s.Deployment.Name, id, v.takenNames())
	}
	if was := v.rec.Target; was != nil && was.BuildID == t.BuildID && was.TemplateHash == t.TemplateHash &&
		!v.retried(t) {
		t.Attempt, t.Since = was.Attempt, was.Since.Time
	}
	t.Status = v.status(id)
	return t
}

func (v *View) takenNames() []string {
	return slices.Concat(v.s.TakenNames, rollout.TakenBy(v.rec.Versions))
}

// recorded finds a version with files in Git, nil if there is none.
func (v *View) recorded(buildID string) *v1alpha1.RecordedVersion {
	return rollout.FindVersion(v.rec.Versions, buildID)
}

// find gives the first item of a list that fits, where it is in the list; nil for none.
func find[T any](list []T, fits func(*T) bool) *T {
	for i := range list {
		if fits(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

// retired reports whether Git has the version at 0 replicas with its guard off.
func retired(r *v1alpha1.RecordedVersion) bool {
	return r != nil && r.Guard == v1alpha1.GuardOff && r.Replicas != nil && *r.Replicas == 0
}

// earlierLife reports whether a promotion is over since before the version's files were made. The version was removed,
// which took proof that nothing needed it, and asked for again.
func (v *View) earlierLife(p v1alpha1.Promotion) bool {
	r := v.recorded(p.BuildID)
	return r != nil && !p.LeftAt.IsZero() && p.LeftAt.Before(r.CreatedAt.Time)
}

// everRouted reports whether the version had traffic at any time, by Git or by Temporal.
func (v *View) everRouted(buildID string) bool {
	if r := v.recorded(buildID); r != nil && !r.RoutedAt.IsZero() {
		return true
	}
	if slices.ContainsFunc(v.promotions, func(p v1alpha1.Promotion) bool {
		return p.BuildID == buildID && !v.earlierLife(p)
	}) {
		return true
	}
	o := v.obs.Version(buildID)
	return o != nil && !o.ActivatedAt().IsZero()
}

// status of a version as the last read has it. Gone is provisional here: removal asks for a second read.
func (v *View) status(buildID string) rollout.VersionStatus {
	if !v.readable() {
		return rollout.StatusUnknown
	}
	return v.statusIn(v.obs, buildID)
}

func (v *View) statusIn(obs *rollout.Observation, buildID string) rollout.VersionStatus {
	switch {
	case obs.Routing.Current == buildID && buildID != "":
		return rollout.StatusCurrent
	case obs.Routing.HasRamp && obs.Routing.Ramping == buildID:
		return rollout.StatusRamping
	}
	o := obs.Version(buildID)
	switch {
	case o == nil && retired(v.recorded(buildID)):
		return rollout.StatusGone
	case o == nil && v.everRouted(buildID):
		return rollout.StatusUnknown
	case o == nil:
		return rollout.StatusNotRegistered
	case o.Drainage == rollout.Draining:
		return rollout.StatusDraining
	case o.Drainage == rollout.Drained:
		return rollout.StatusDrained
	case v.everRouted(buildID):
		return rollout.StatusUnknown
	case o.Created:
		return rollout.StatusCreated
	}
	return rollout.StatusInactive
}

// fresh reports whether our read of Temporal is young enough to raise traffic on.
func (v *View) fresh() bool { return v.now.Sub(v.obs.At) <= v.s.Limits.FactMaxAge }

// share of new workflows that a version gets now.
func (v *View) share(buildID string) float64 { return rollout.AsWritten(v.actual.Share(buildID)) }

// hold is the hold that is in force, nil for none. One that followed drift, or the end of a proposal, ends when the
// spec asks for something else. Under Manual, one that followed drift ends when a person promotes the target, too.
func (v *View) hold() *v1alpha1.Hold {
	h := v.rec.Hold
	if h == nil {
		return v.rejection()
	}
	passing := h.Kind == v1alpha1.HoldDrift || h.Kind == v1alpha1.HoldRejected
	if passing && v.target != nil && (h.BuildID != v.target.BuildID || v.newSpec() ||
		h.Kind == v1alpha1.HoldDrift && v.promotedByHand()) {
		return nil
	}
	return h
}

// promotedByHand reports whether it is for a person to promote the target, and it is current.
func (v *View) promotedByHand() bool {
	return v.spec != nil && v.spec.Spec.Rollout.Strategy == v1alpha1.Manual && v.readable() &&
		v.target.BuildID == v.actual.Current
}

func desiredConfig(d v1alpha1.DesiredRouting) rollout.RoutingConfig {
	c := rollout.RoutingConfig{Current: d.Current}
	if d.Ramping != nil {
		c.HasRamp, c.Ramping, c.Percentage = true, d.Ramping.BuildID, float32(d.Ramping.Percentage)
	}
	return c
}

func desiredOf(c rollout.RoutingConfig) v1alpha1.DesiredRouting {
	d := v1alpha1.DesiredRouting{Current: c.Current}
	if c.HasRamp {
		d.Ramping = &v1alpha1.DesiredRamp{BuildID: c.Ramping, Percentage: rollout.AsWritten(c.Percentage)}
	}
	return d
}

func basisOf(c rollout.RoutingConfig) *v1alpha1.RoutingBasis {
	b := &v1alpha1.RoutingBasis{
		Current: c.Current, CurrentChangedAt: v1alpha1.NewTime(c.CurrentChangedAt), Revision: c.Revision,
		RampingChangedAt:    v1alpha1.NewTime(c.RampingChangedAt),
		PercentageChangedAt: v1alpha1.NewTime(c.PercentageChangedAt),
	}
	if c.HasRamp {
		b.Ramping = &v1alpha1.DesiredRamp{BuildID: c.Ramping, Percentage: rollout.AsWritten(c.Percentage)}
	}
	return b
}

func basisConfig(b v1alpha1.RoutingBasis) rollout.RoutingConfig {
	c := desiredConfig(v1alpha1.DesiredRouting{Current: b.Current, Ramping: b.Ramping})
	c.CurrentChangedAt, c.RampingChangedAt, c.PercentageChangedAt = b.CurrentChangedAt.Time, b.RampingChangedAt.Time,
		b.PercentageChangedAt.Time
	c.Revision = b.Revision
	return c
}
