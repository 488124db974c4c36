package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// batch is a batch job that frees a version of workflows, one after the other.
type batch struct {
	buildID       string
	job           rollout.Evacuation
	started, ends time.Time
	// total is how many workflows there were, frees the part of them that leaves, from 0 to 1.
	total  int64
	frees  float64
	failed bool
}

// progress of the job at t, from 0 to 1.
func (b batch) progress(t time.Time) float64 {
	if !t.Before(b.ends) {
		return 1
	}
	return max(0, t.Sub(b.started).Seconds()/b.ends.Sub(b.started).Seconds())
}

func (b batch) at(t time.Time) rollout.BatchJob {
	job := rollout.BatchJob{JobID: b.job.JobID, State: rollout.BatchRunning, Total: b.total,
		Done: whole(float64(b.total) * b.progress(t)), StartedAt: b.started}
	if t.Before(b.ends) {
		return job
	}
	job.State, job.EndedAt = rollout.BatchCompleted, b.ends
	if b.failed {
		job.State, job.Done, job.Failed = rollout.BatchFailed, 0, b.total
	}
	return job
}

// startBatch starts a batch job, unless there is one with its ID, or another runs.
func (m *temporal) startBatch(t time.Time, s rollout.BatchStart) {
	v := m.versions[s.BuildID]
	if _, there := m.batches[s.Job.JobID]; there || v == nil || m.away(t) || m.runningBatch(t, nil) != "" {
		return
	}
	script := v1alpha1.DefaultSimulatedEvacuation()
	for _, e := range m.script.Evacuations {
		if (e.Stage == "" || e.Stage == s.Job.Stage) && (e.BuildID == "" || e.BuildID == s.BuildID) {
			script = e
			break
		}
	}
	b := batch{buildID: s.BuildID, job: s.Job, started: t, ends: t.Add(script.Takes.Duration),
		total: m.open(s.BuildID, v, t), frees: script.Frees / 100, failed: script.Outcome == v1alpha1.BatchFails}
	if b.failed {
		b.frees = 0
	}
	m.batches[s.Job.JobID] = b
}

// runningBatch is a job that runs at t and was not asked for, "" for none.
func (m *temporal) runningBatch(t time.Time, asked []rollout.BatchAsk) string {
	for _, id := range slices.Sorted(maps.Keys(m.batches)) {
		wanted := slices.ContainsFunc(asked, func(a rollout.BatchAsk) bool { return a.JobID == id })
		if t.Before(m.batches[id].ends) && !wanted {
			return id
		}
	}
	return ""
}

// readBatches gives the batch jobs that are asked for. Of versions whose job is missing the open workflows are counted
// too.
func (m *temporal) readBatches(t time.Time, ask *rollout.Ask) rollout.Batches {
	var out rollout.Batches
	for _, a := range ask.Batches {
		b, ok := m.batches[a.JobID]
		if !ok {
			out.Jobs = append(out.Jobs, rollout.BatchJob{JobID: a.JobID, State: rollout.BatchMissing})
			ask.OpenPinned = append(slices.Clone(ask.OpenPinned), a.BuildID)
			continue
		}
		out.Jobs = append(out.Jobs, b.at(t))
	}
	out.OthersRun = rollout.No
	if other := m.runningBatch(t, ask.Batches); other != "" {
		out.OthersRun, out.Other = rollout.Yes, other
	}
	return out
}

// stays is the part of a version's workflows that no batch job has freed it of by t since it lost its traffic.
func (m *temporal) stays(id string, v *version, t time.Time) float64 {
	part := 1.0
	for _, job := range slices.Sorted(maps.Keys(m.batches)) {
		if b := m.batches[job]; b.buildID == id && !b.started.Before(v.DeactivatedAt) {
			part *= 1 - b.frees*b.progress(t)
		}
	}
	return part
}

// freedAt is when a batch job has freed a version of all of its workflows; zero: none does.
func (m *temporal) freedAt(id string, v *version) time.Time {
	var first time.Time
	for _, b := range m.batches {
		if b.buildID == id && b.frees == 1 && !b.started.Before(v.DeactivatedAt) &&
			(first.IsZero() || b.ends.Before(first)) {
			first = b.ends
		}
	}
	return first
}

// approve is what a person writes into routing.yaml who approves a stage.
func approve(record rollout.Record, jobID string) rollout.Record {
	if record.Routing == nil {
		return record
	}
	routing := *record.Routing
	routing.Spec.Versions = slices.Clone(routing.Spec.Versions)
	for i := range routing.Spec.Versions {
		v := &routing.Spec.Versions[i]
		v.Evacuations = slices.Clone(v.Evacuations)
		for j := range v.Evacuations {
			if e := &v.Evacuations[j]; e.JobID == jobID && e.State == v1alpha1.EvacuationProposed {
				e.State = v1alpha1.EvacuationApproved
			}
		}
	}
	record.Routing = &routing
	return record
}
