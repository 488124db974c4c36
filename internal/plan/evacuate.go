package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Workflows that stay on an old version are evacuated beside keeping it: nothing here touches a version's files or
// replicas. Each stage is one batch job, once for each time that the version lost its traffic. The stages follow each
// other by their times; one begins only after the job of the one before has ended. A proposal that was not answered
// does not hold up a later stage.

// jobMemory is how long Temporal is sure to know a job that ended: the shortest retention is a day. What it does not
// know after that may have run, and is not started again.
const jobMemory = 20 * time.Hour

// moveToCurrent is a move's target that stands for the current version.
const moveToCurrent = "Current"

// lostTrafficAt is when a version stopped being current or ramping, by the server, else by what was recorded; zero: not
// known.
func (v *View) lostTrafficAt(r *v1alpha1.RecordedVersion) time.Time {
	if o := v.obs.Version(r.BuildID); o != nil && !o.DeactivatedAt.IsZero() {
		return o.DeactivatedAt.UTC().Round(0)
	}
	if n := len(r.Evacuations); n > 0 {
		return r.Evacuations[n-1].Since.Time
	}
	for _, p := range slices.Backward(v.promotions) {
		if p.BuildID == r.BuildID {
			return p.LeftAt.Time
		}
	}
	return time.Time{}
}

// leftBehind reports whether a version is one that workflows are evacuated from: it had traffic, lost it, and gets none
// back.
func (v *View) leftBehind(r *v1alpha1.RecordedVersion) bool {
	if v.spec == nil || v.unusable != nil || v.target == nil || !v.readable() || v.foreign() ||
		r.BuildID == v.target.BuildID || retired(r) || v.wantedBack() == r.BuildID || v.lostTrafficAt(r).IsZero() {
		return false
	}
	// A drained version has none by the server's count; paused ones are seen when it could be scaled down.
	st := v.status(r.BuildID)
	return st == rollout.StatusDraining || st == rollout.StatusDrained && v.mayGo(r)
}

// stages are the stages of a version that was left behind, in their order, each with the ID of its job. A move without
// a target that it could have is left out.
func (v *View) stages(r *v1alpha1.RecordedVersion) []rollout.Evacuation {
	if v.spec == nil || v.sunset().Evacuate == nil || !v.leftBehind(r) {
		return nil
	}
	since := v.lostTrafficAt(r)
	attempt := 1
	for _, e := range r.Evacuations {
		attempt = max(attempt, e.Attempt)
		if !e.Since.Equal(since) {
			attempt = max(attempt, e.Attempt+1)
		}
	}
	var out []rollout.Evacuation
	for _, s := range rollout.EvacuationStages(v.sunset().Evacuate) {
		s.Attempt, s.Since = attempt, since
		if s.Target == moveToCurrent {
			s.Target = v.actual.Current
		}
		if s.Stage == v1alpha1.EvacuateByMove && (s.Target == "" || s.Target == r.BuildID) {
			continue
		}
		s.JobID = rollout.EvacuationJobID(v.s.Deployment, r.BuildID, s)
		out = append(out, s)
	}
	return out
}

// running is the stage of a version whose job runs, or is to, by the record; nil for none.
func running(r *v1alpha1.RecordedVersion) *v1alpha1.RecordedEvacuation {
	return find(r.Evacuations, func(e *v1alpha1.RecordedEvacuation) bool {
		return e.State == v1alpha1.EvacuationRunning && authentic(*e)
	})
}

// authentic reports whether an entry says what the bot writes: what runs or ran was started, and what wants approval
// was approved before.
func authentic(e v1alpha1.RecordedEvacuation) bool {
	switch e.State {
	case v1alpha1.EvacuationRunning, v1alpha1.EvacuationCompleted, v1alpha1.EvacuationFailed:
		return !e.StartedAt.IsZero() && (!e.ApprovedAt.IsZero() || !rollout.Evacuation{Stage: e.Stage}.WantsApproval())
	}
	return !e.ProposedAt.IsZero()
}

// entryOf finds the record of a stage, by its job; nil if there is none, or only one that the bot did not write.
func entryOf(r *v1alpha1.RecordedVersion, jobID string) *v1alpha1.RecordedEvacuation {
	return find(r.Evacuations, func(e *v1alpha1.RecordedEvacuation) bool {
		return e.JobID == jobID && authentic(*e)
	})
}

// restarted is the stage of an entry whose job has to be started: the record keeps what it is about, whatever the spec
// says now.
func restarted(e v1alpha1.RecordedEvacuation) rollout.Evacuation {
	return rollout.Evacuation{Stage: e.Stage, Attempt: e.Attempt, Since: e.Since.Time, Target: e.Target,
		Signal: e.Signal, JobID: e.JobID}
}

// next are the stages of a version that could be acted on now, and when the answer changes by itself. If a stage runs,
// it is that one alone. Else they are those that are due and have not ended, up to the first that needs no approval, or
// has it.
func (v *View) next(r *v1alpha1.RecordedVersion) (due []rollout.Evacuation, later time.Time) {
	stages := v.stages(r)
	if e := running(r); e != nil {
		return []rollout.Evacuation{restarted(*e)}, time.Time{}
	}
	for _, s := range stages {
		e := entryOf(r, s.JobID)
		if e != nil && e.Ended() {
			continue
		}
		if at := s.Since.Add(s.After); e == nil && v.now.Before(at) {
			return due, at
		}
		due = append(due, s)
		if e == nil && !s.WantsApproval() || e != nil && e.State == v1alpha1.EvacuationApproved {
			return due, time.Time{}
		}
	}
	return due, time.Time{}
}

// askEvacuation asks for the jobs of a version that could be acted on, and for the pollers that a move needs.
func (v *View) askEvacuation(a *rollout.Ask, r *v1alpha1.RecordedVersion) {
	due, _ := v.next(r)
	for _, e := range due {
		a.Batches = append(a.Batches, rollout.BatchAsk{BuildID: r.BuildID, JobID: e.JobID, Stage: e.Stage})
		if e.Stage == v1alpha1.EvacuateByMove {
			add(&a.Queues, r.BuildID, e.Target)
		}
	}
}

// waiting is a stage that is due and waits for something.
type waiting struct {
	rollout.Evacuation
	why string
}

// evacuate gives what is to be done about the workflows that stay on a version, and what waits.
func (v *View) evacuate(r *v1alpha1.RecordedVersion) (actions []rollout.Action, waits []waiting, later time.Time) {
	due, later := v.next(r)
	for _, e := range due {
		entry := entryOf(r, e.JobID)
		job := v.obs.Batches.Job(e.JobID)
		switch {
		case job.State == rollout.BatchUnread:
			waits = append(waits, waiting{e, "its batch job could not be read: " + job.Reason})
			continue
		case job.State != rollout.BatchMissing, entry != nil && forgotten(*entry, v.now):
			continue // recorded, and nothing to do
		case !v.leftBehind(r):
			continue // its version has traffic again, or is somebody else's
		}
		open := openPinned(v.obs, r.BuildID)
		if open.None() {
			continue
		}
		e.Open = open.N
		approved := entry != nil && (entry.State == v1alpha1.EvacuationApproved || !entry.ApprovedAt.IsZero())
		if ev := v.mayEvacuate(r, e); ev.answer != rollout.Yes {
			waits = append(waits, waiting{e, ev.why})
			continue
		}
		actions = append(actions, rollout.Action{Kind: rollout.EvacuationKind(e.Stage), BuildID: r.BuildID,
			Evacuation: &e, Approved: approved, Reason: evacuationReason(r.BuildID, e)})
	}
	return actions, waits, later
}

// forgotten reports whether Temporal may have dropped the job of a stage that was started.
func forgotten(e v1alpha1.RecordedEvacuation, now time.Time) bool {
	return e.State == v1alpha1.EvacuationRunning && now.Sub(e.StartedAt.Time) > jobMemory
}

// mayEvacuate answers whether everything is known that a stage needs. That is how many workflows there are and, for a
// move, that the server and the target take them.
func (v *View) mayEvacuate(r *v1alpha1.RecordedVersion, e rollout.Evacuation) evidence {
	if c := openPinned(v.obs, r.BuildID); !c.Known {
		return unknown("the open workflows pinned to %s could not be counted: %s", r.BuildID, c.Reason)
	}
	if !v.fresh() {
		return unknown("what is known of Temporal is too old")
	}
	if e.Stage != v1alpha1.EvacuateByMove {
		return yes()
	}
	if why := v.obs.Batches.CannotMove; why != "" {
		return no("%s", why)
	}
	to := v.recorded(e.Target)
	if to == nil {
		return no("version %s, which workflows are to be moved to, has no files in Git", e.Target)
	}
	if b := v.bar(to.BuildID, to.TemplateHash); b != nil {
		return no("version %s, which workflows are to be moved to, was turned back: %s", e.Target, b.Reason)
	}
	if ev := v.canTakeBack(e.Target); ev.answer != rollout.Yes {
		return ev
	}
	return v.serves(e.Target, r.BuildID)
}

func evacuationReason(buildID string, e rollout.Evacuation) string {
	what := map[v1alpha1.EvacuationStage]string{
		v1alpha1.EvacuateBySignal:      "are sent the signal " + e.Signal,
		v1alpha1.EvacuateByMove:        "are moved to " + e.Target,
		v1alpha1.EvacuateByCancel:      "are canceled",
		v1alpha1.EvacuateByTermination: "are terminated",
	}[e.Stage]
	return fmt.Sprintf("the workflows that stay on %s, which has had no traffic since %s, %s", buildID,
		e.Since.UTC().Format(time.RFC3339), what)
}

// proposeEvacuations looks at every version that was left behind, beside what comes next for its files.
func (v *View) proposeEvacuations(p *rollout.Proposal) {
	if v.unusable != nil {
		return
	}
	for i := range v.rec.Versions {
		actions, _, later := v.evacuate(&v.rec.Versions[i])
		propose(p, "evacuate", outcome{actions: actions, due: later})
	}
}

// evacuating reports whether the evacuation of a version moves by itself, or waits for a person.
func (v *View) evacuating(r *v1alpha1.RecordedVersion) bool {
	due, _ := v.next(r)
	return len(due) > 0
}
