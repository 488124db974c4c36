package plan

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// jobs is the model of the server's batch jobs.
type jobs struct {
	byID map[string]*modelJob
	// other is a job of somebody else that runs.
	other string
	// started are the accepted starts, and refused those of jobs that had been started.
	started []rollout.BatchStart
	again   int
}

type modelJob struct {
	rollout.BatchJob
	buildID string
}

func (j jobs) copy() jobs {
	c := jobs{other: j.other, started: slices.Clone(j.started), again: j.again, byID: map[string]*modelJob{}}
	for id, job := range j.byID {
		one := *job
		c.byID[id] = &one
	}
	return c
}

// start accepts a job once, and one at a time.
func (s *server) start(b rollout.BatchStart) {
	if s.jobs.byID == nil {
		s.jobs.byID = map[string]*modelJob{}
	}
	if s.jobs.byID[b.Job.JobID] != nil {
		s.jobs.again++
		return
	}
	if s.down || s.jobs.other != "" || s.jobs.running() != nil {
		return
	}
	s.jobs.byID[b.Job.JobID] = &modelJob{rollout.BatchJob{JobID: b.Job.JobID, State: rollout.BatchRunning, StartedAt: s.now}, b.BuildID}
	s.jobs.started = append(s.jobs.started, b)
}

func (j jobs) running() *modelJob {
	for _, job := range j.byID {
		if job.State == rollout.BatchRunning {
			return job
		}
	}
	return nil
}

// endBatch ends what runs; it may have reached all workflows, or none.
func (s *server) endBatch(state rollout.BatchState, left int64) {
	s.jobs.other = ""
	if job := s.jobs.running(); job != nil {
		job.State, job.EndedAt, job.Total = state, s.now, 1
		if v := s.versions[job.buildID]; v != nil {
			v.open = left
		}
	}
}

func (s *server) observeBatches(ask *rollout.Ask, o *rollout.Observation) {
	for _, a := range ask.Batches {
		job := rollout.BatchJob{JobID: a.JobID, State: rollout.BatchMissing}
		if known := s.jobs.byID[a.JobID]; known != nil {
			job = known.BatchJob
		} else {
			add(&ask.OpenPinned, a.BuildID)
			o.Batches.OthersRun, o.Batches.Other = rollout.No, s.jobs.other
		}
		o.Batches.Jobs = append(o.Batches.Jobs, job)
	}
	runs := s.jobs.running()
	if runs != nil && !slices.ContainsFunc(ask.Batches, func(a rollout.BatchAsk) bool { return a.JobID == runs.JobID }) {
		o.Batches.Other = runs.JobID
	}
	if o.Batches.OthersRun == rollout.No && o.Batches.Other != "" {
		o.Batches.OthersRun = rollout.Yes
	}
}

func evacuateEvents(t *rapid.T, w *world) {
	draw := func(d ...time.Duration) v1alpha1.Duration { return lasting(rapid.SampledFrom(d).Draw(t, "after")) }
	switch rapid.SampledFrom([]string{"end", "spec", "force", "other"}).Draw(t, "evacuation") {
	case "spec":
		w.spec().Sunset.Evacuate = &v1alpha1.Evacuation{CancelAfter: draw(0, time.Minute), TerminateAfter: draw(0, time.Hour),
			ContinueAsNewSignal: &v1alpha1.EvacuationSignal{Name: "go", After: draw(0, time.Minute)},
			MoveTo:              &v1alpha1.EvacuationMove{Target: rapid.SampledFrom([]string{"Current", id("v1"), id("v3")}).Draw(t, "to"), After: draw(0, time.Hour)}}
	case "force":
		w.spec().Sunset.Evacuate = rapid.SampledFrom([]*v1alpha1.Evacuation{{TerminateAfter: lasting(time.Minute)}, {CancelAfter: lasting(time.Minute)},
			{MoveTo: &v1alpha1.EvacuationMove{Target: moveToCurrent}}}).Draw(t, "stage")
	case "end":
		w.server.endBatch(rapid.SampledFrom([]rollout.BatchState{rollout.BatchCompleted, rollout.BatchFailed}).Draw(t, "how"), rapid.Int64Range(0, 2).Draw(t, "left"))
	case "other":
		w.server.jobs.other = rapid.SampledFrom([]string{"", "cleanup"}).Draw(t, "other")
	}
}

func answerProposals(t *rapid.T, w *world) {
	proposed := func(v v1alpha1.RecordedVersion) bool {
		return slices.ContainsFunc(v.Evacuations, func(e v1alpha1.RecordedEvacuation) bool { return e.State == v1alpha1.EvacuationProposed })
	}
	if !slices.ContainsFunc(w.routing().Versions, proposed) {
		return
	}
	answer := mostly(t, v1alpha1.EvacuationApproved, v1alpha1.EvacuationDeclined, v1alpha1.EvacuationRunning)
	w.edit(func(r *v1alpha1.RoutingSpec) {
		for i := range r.Versions {
			for j := range r.Versions[i].Evacuations {
				if e := &r.Versions[i].Evacuations[j]; e.State == v1alpha1.EvacuationProposed {
					e.State = answer
				}
			}
		}
	})
}

// strandedOnV1 is v2 current, with workflows that stay on v1 and a spec that wants them moved at once and the rest done
// later.
func strandedOnV1(t require.TestingT) *world {
	w := currentV1(t)
	w.server.versions[id("v1")].open = 2
	w.push("v2")
	w.run(40 * time.Minute)
	w.spec().Sunset.Evacuate = &v1alpha1.Evacuation{MoveTo: &v1alpha1.EvacuationMove{Target: moveToCurrent},
		ContinueAsNewSignal: &v1alpha1.EvacuationSignal{Name: "go", After: lasting(3 * time.Hour)}, CancelAfter: lasting(4 * time.Hour), TerminateAfter: lasting(4 * time.Hour)}
	return w
}

// proposedForV1 is v2 current, with workflows on v1 whose end by force is proposed.
func proposedForV1(t require.TestingT) *world {
	w := currentV1(t)
	w.server.versions[id("v1")].open = 2
	w.spec().Sunset.Evacuate = &v1alpha1.Evacuation{TerminateAfter: lasting(time.Minute)}
	w.push("v2")
	w.run(40 * time.Minute)
	require.Equal(t, v1alpha1.EvacuationProposed, w.routing().Versions[0].Evacuations[0].State)
	return w
}

// TestEvacuationToTheEnd is v1's workflows from the promotion of v2 to their end: signaled, then terminated after a
// person's yes.
func TestEvacuationToTheEnd(t *testing.T) {
	w := currentV1(t)
	w.spec().Sunset.Evacuate = &v1alpha1.Evacuation{TerminateAfter: lasting(3 * time.Hour),
		ContinueAsNewSignal: &v1alpha1.EvacuationSignal{Name: "go", After: lasting(time.Hour)}}
	w.server.versions[id("v1")].open = 3
	w.push("v2")
	w.run(40 * time.Minute)
	require.Equal(t, "RolloutComplete*", w.reason())
	require.Empty(t, w.server.jobs.started)
	w.commits = nil
	w.run(time.Hour)
	w.server.endBatch(rollout.BatchCompleted, 1)
	w.run(2 * time.Hour)
	require.Len(t, w.server.jobs.started, 1)
	require.Equal(t, "RolloutComplete*", w.reason(), "the target does not wait")
	require.Equal(t, "Proposed", w.status().DeprecatedVersions[0].Evacuation[1].State)
	w.quiet(5, time.Minute)
	w.edit(func(r *v1alpha1.RoutingSpec) { r.Versions[0].Evacuations[1].State = v1alpha1.EvacuationApproved })
	w.run(time.Minute)
	require.Len(t, w.server.jobs.started, 2)
	w.server.endBatch(rollout.BatchCompleted, 0)
	w.run(30 * time.Hour)
	require.Equal(t, []string{
		"signal workflows on v1 (go)", "signal workflows on v1 (go): Completed, 0 of 1 workflows", "propose to terminate workflows on v1",
		"terminate workflows on v1", "terminate workflows on v1: Completed, 0 of 1 workflows",
		"RolloutComplete: v2 is the current version", // which tells that v1 has drained
		"scale down v1", "remove v1",
	}, w.commits)
}

// A bot that dies after the commit finds that its job was not started, and starts it; one that dies later starts none
// twice.
func TestEvacuationAfterACrash(t *testing.T) {
	for _, dies := range []site{beforeLower, afterCommit} {
		t.Run(fmt.Sprint(dies), func(t *testing.T) {
			w := currentV1(t)
			w.spec().Sunset.Evacuate = &v1alpha1.Evacuation{CancelAfter: lasting(time.Hour)}
			w.server.versions[id("v1")].open = 3
			w.push("v2")
			w.run(80 * time.Minute)
			require.Empty(t, w.server.jobs.started)
			w.server.tick(time.Hour)
			w.pods()
			w.dies = dies
			w.cycle()
			require.Empty(t, w.server.jobs.started)
			w.cycle()
			w.cycle()
			require.Len(t, w.server.jobs.started, 1)
			require.Zero(t, w.server.jobs.again)
			require.Equal(t, v1alpha1.EvacuationRunning, w.routing().Versions[0].Evacuations[0].State)
		})
	}
}
