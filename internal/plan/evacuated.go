package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// The states of a stage in a status that no record has.
const (
	evacuationHeld    = "Held"
	evacuationWaiting = "Waiting"
)

// sortEvacuation takes a stage that policy allows; where a person has to be asked, it becomes a proposal in the record.
func (r *resolver) sortEvacuation(a rollout.Action, verdict rollout.Verdict) {
	if a.Evacuation.WantsApproval() {
		verdict = combine(verdict, rollout.Verdict{Effect: rollout.RequireApproval, Findings: []rollout.Finding{{
			Package: "rampart", Rule: "evacuation.approval", Effect: rollout.RequireApproval,
			Message: "moving and terminating workflows always wants a person's approval"}}})
	}
	switch {
	case verdict.Effect.Strictness() >= rollout.HoldEffect.Strictness():
		_, why := strictest(verdict)
		r.held = append(r.held, rollout.Held{Action: a, Verdict: verdict})
		r.notes = append(r.notes, note{a.BuildID, evacuationHeld, waiting{*a.Evacuation, why}})
	case verdict.Effect == rollout.RequireApproval && !a.Approved:
		r.held = append(r.held, rollout.Held{Action: a, Verdict: verdict})
		r.proposals = append(r.proposals, a)
	default:
		r.taken = append(r.taken, a)
	}
}

// note is what there is to say of a stage that is not in the record.
type note struct {
	buildID, state string
	waiting
}

func (r *resolver) noteWaits() {
	for i := range r.rec.Versions {
		ver := &r.rec.Versions[i]
		_, waits, _ := r.evacuate(ver)
		for _, w := range waits {
			r.notes = append(r.notes, note{ver.BuildID, evacuationWaiting, w})
		}
	}
}

// oneJob keeps one job to start, since a namespace takes one at a time. It keeps none on a version that this plan gives
// traffic, and none while another runs.
func (r *resolver) oneJob() {
	move := r.move()
	seen := false
	r.taken = slices.DeleteFunc(r.taken, func(a rollout.Action) bool {
		if a.Evacuation == nil {
			return false
		}
		routed := move != nil && (move.BuildID == a.BuildID && move.Kind != rollout.ResetRamp ||
			r.actual.AfterMove(*move).Current == a.BuildID)
		why := ""
		switch {
		case routed, a.Evacuation.Stage == v1alpha1.EvacuateByMove && move != nil && move.Lowers():
			return true
		case r.obs.Batches.OthersRun == rollout.Yes:
			why = fmt.Sprintf("batch job %s runs in the Temporal namespace, which takes one at a time",
				r.obs.Batches.Other)
		case r.obs.Batches.OthersRun != rollout.No:
			why = "it is not known whether another batch job runs in the Temporal namespace"
		case seen || r.jobRuns():
			why = "a batch job of this worker deployment runs"
		}
		if why != "" {
			r.notes = append(r.notes, note{a.BuildID, evacuationWaiting, waiting{*a.Evacuation, why}})
			return true
		}
		seen = true
		return false
	})
}

func (r *resolver) jobRuns() bool {
	return slices.ContainsFunc(r.obs.Batches.Jobs, func(j rollout.BatchJob) bool {
		return j.State == rollout.BatchRunning
	})
}

// nextEvacuations writes down what became of the stages, what is started with this plan, and what a person has to
// answer.
func (r *resolver) nextEvacuations(next *v1alpha1.RoutingSpec) {
	if !r.readable() || r.foreign() {
		return
	}
	for i := range next.Versions {
		ver := &next.Versions[i]
		list := r.endedEvacuations(ver)
		for _, s := range r.stages(ver) { // the record of a job that is there was lost
			job := r.obs.Batches.Job(s.JobID)
			found := job.State == rollout.BatchRunning || job.State == rollout.BatchCompleted ||
				job.State == rollout.BatchFailed
			if e := stage(&list, s); found && (e.State == "" || e.State == v1alpha1.EvacuationProposed ||
				e.State == v1alpha1.EvacuationApproved) {
				at := v1alpha1.NewTime(job.StartedAt)
				e.State, e.StartedAt, e.ApprovedAt = v1alpha1.EvacuationRunning, at, at
				r.outcome(ver.BuildID, e)
			}
		}
		for _, a := range r.proposals {
			if e := stage(&list, *a.Evacuation); a.BuildID == ver.BuildID && e.State == "" {
				e.State, e.ProposedAt = v1alpha1.EvacuationProposed, v1alpha1.NewTime(r.now)
				r.lines = append(r.lines, "propose to "+headline(a))
			}
		}
		r.reviewed(ver.BuildID, list)
		for _, a := range r.taken {
			if a.Evacuation == nil || a.BuildID != ver.BuildID {
				continue
			}
			if e := stage(&list, *a.Evacuation); e.State != v1alpha1.EvacuationRunning {
				now := v1alpha1.NewTime(r.now)
				if a.Approved {
					e.ApprovedAt = now
				}
				e.State, e.StartedAt = v1alpha1.EvacuationRunning, now
			}
		}
		ver.Evacuations = slices.DeleteFunc(list, func(e v1alpha1.RecordedEvacuation) bool { return e.State == "" })
		if len(ver.Evacuations) == 0 {
			ver.Evacuations = nil
		}
	}
}

// reviewed writes down where people review a stage, and that a person closed that.
func (r *resolver) reviewed(buildID string, list []v1alpha1.RecordedEvacuation) {
	is := r.s.Review
	for i := range list {
		e := &list[i]
		if e.State != v1alpha1.EvacuationProposed || !is.About(rollout.ReviewedStage(*e)) {
			continue
		}
		if is.URL != "" {
			e.PullRequest = is.URL
		}
		if is.Rejected {
			e.State, e.Message = v1alpha1.EvacuationDeclined,
				fmt.Sprintf("%s closed %s", orPerson(is.By), orProposal(is.URL))
			r.lines = append(r.lines, fmt.Sprintf("%s: %s, %s", stageHeadline(buildID, *e), e.State, e.Message))
		}
	}
}

// stage finds the entry of a stage, or adds one without a state.
func stage(list *[]v1alpha1.RecordedEvacuation, s rollout.Evacuation) *v1alpha1.RecordedEvacuation {
	if e := jobIn(*list, s.JobID); e != nil {
		return e
	}
	*list = append(*list, v1alpha1.RecordedEvacuation{Stage: s.Stage, Attempt: s.Attempt,
		Since: v1alpha1.NewTime(s.Since), Target: s.Target, Signal: s.Signal, JobID: s.JobID})
	return &(*list)[len(*list)-1]
}

// endedEvacuations are the entries of a version that stay, with the outcome of jobs that ended. What a person may not
// write is put back: an entry that does not say what the bot writes is proposed anew, or goes. A proposal goes with its
// reason: traffic came back, the workflows are gone, or the spec asks for something else.
func (r *resolver) endedEvacuations(ver *v1alpha1.RecordedVersion) []v1alpha1.RecordedEvacuation {
	stages := r.stages(ver)
	empty := openPinned(r.obs, ver.BuildID).None()
	known := r.unusable == nil && r.target != nil && r.View.status(ver.BuildID) != rollout.StatusUnknown
	var out []v1alpha1.RecordedEvacuation
	for _, e := range ver.Evacuations {
		now := slices.IndexFunc(stages, func(s rollout.Evacuation) bool { return s.JobID == e.JobID })
		asked := now >= 0
		old := len(stages) > 0 && !e.Since.Equal(stages[0].Since)
		switch {
		case !authentic(e):
			continue
		case e.State == v1alpha1.EvacuationRunning:
			r.outcome(ver.BuildID, &e)
		case e.Ended() && old:
			continue
		case e.Ended():
		case known && (!asked || empty):
			continue
		}
		out = append(out, e)
	}
	return out
}

// outcome writes down how the job of a running stage ended, if it did.
func (r *resolver) outcome(buildID string, e *v1alpha1.RecordedEvacuation) {
	job := r.obs.Batches.Job(e.JobID)
	now := v1alpha1.NewTime(r.now)
	switch {
	case job.State == rollout.BatchCompleted:
		e.State = v1alpha1.EvacuationCompleted
	case job.State == rollout.BatchFailed:
		e.State, e.Message = v1alpha1.EvacuationFailed, "the batch job failed"
	case job.State == rollout.BatchMissing && openPinned(r.obs, buildID).None():
		e.State, e.EndedAt = v1alpha1.EvacuationCompleted, now
	case job.State == rollout.BatchMissing && forgotten(*e, r.now):
		e.State, e.EndedAt, e.Message = v1alpha1.EvacuationFailed, now, "Temporal does not know the batch job any more"
	default:
		return
	}
	e.Total, e.Done, e.Failed = job.Total, job.Done, job.Failed
	if !job.EndedAt.IsZero() {
		e.EndedAt = v1alpha1.NewTime(job.EndedAt)
	}
	r.lines = append(r.lines, fmt.Sprintf("%s: %s, %s of %s workflows", stageHeadline(buildID, *e), e.State,
		rollout.Grouped(e.Done), rollout.Grouped(e.Total)))
}

// shownEvacuation is what a status says of the stages of a version.
func (r *resolver) shownEvacuation(ver v1alpha1.RecordedVersion) []v1alpha1.EvacuationStatus {
	var out []v1alpha1.EvacuationStatus
	said := map[string]note{}
	for _, n := range r.notes {
		if n.buildID == ver.BuildID {
			said[n.JobID] = n
		}
	}
	for _, e := range ver.Evacuations {
		s := v1alpha1.EvacuationStatus{Stage: e.Stage, State: string(e.State), Target: e.Target, JobID: e.JobID,
			StartedAt: e.StartedAt, EndedAt: e.EndedAt,
			Total: e.Total, Done: e.Done, Failed: e.Failed, Message: cmp.Or(e.Message, said[e.JobID].why)}
		if e.State == v1alpha1.EvacuationProposed {
			s.Message =
				"waits for approval: set its state to Approved, or to Declined, in spec.versions of routing.yaml"
			if e.PullRequest != "" {
				s.Message = "waits for approval: merge " + e.PullRequest + ", or close it"
			}
		}
		delete(said, e.JobID)
		out = append(out, s)
	}
	for _, n := range r.notes {
		if _, ok := said[n.JobID]; ok && n.buildID == ver.BuildID {
			out = append(out, v1alpha1.EvacuationStatus{Stage: n.Stage, State: n.state, Target: n.Target,
				JobID: n.JobID, Message: n.why})
		}
	}
	return out
}

func stageHeadline(buildID string, e v1alpha1.RecordedEvacuation) string {
	return headline(rollout.Action{Kind: rollout.EvacuationKind(e.Stage), BuildID: buildID,
		Evacuation: &rollout.Evacuation{Target: e.Target, Signal: e.Signal}})
}

func evacuationHeadline(a rollout.Action) string {
	switch a.Kind {
	case rollout.SignalWorkflows:
		return fmt.Sprintf("signal workflows on %s (%s)", a.BuildID, a.Evacuation.Signal)
	case rollout.MoveWorkflows:
		return fmt.Sprintf("move workflows from %s to %s", a.BuildID, a.Evacuation.Target)
	case rollout.CancelWorkflows:
		return "cancel workflows on " + a.BuildID
	}
	return "terminate workflows on " + a.BuildID
}
