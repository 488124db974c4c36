package plan

import (
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// batches refuses batch jobs that could harm open workflows. A job evacuates a version that has no traffic and gets
// none, on counts of this cycle, while the bot owns the routing. It moves workflows only to a version with files and
// workers. It runs the stage that the commit names. A person has approved it if it moves or terminates workflows.
func (n *never) batches() {
	if len(n.p.Batches) > 1 {
		n.add("%d batch jobs would start at once", len(n.p.Batches))
	}
	for _, b := range n.p.Batches {
		obs := &n.s.Observation
		if n.foreign() || b.Identity == "" || b.Identity != n.s.Environment.ManagerIdentity {
			n.add("workflows on a version of %q would be evacuated by %q", obs.ManagerIdentity, b.Identity)
		}
		if age := n.s.Now.Sub(obs.At); obs.Problem != nil || obs.Exists != rollout.Yes || age > n.s.Limits.FactMaxAge {
			n.add("workflows on %s would be evacuated on facts that are %s old", b.BuildID, age)
		}
		if n.traffic(b.BuildID) {
			n.add("workflows on %s, which has traffic or gets it, would be evacuated", b.BuildID)
		}
		v := obs.Version(b.BuildID)
		if v == nil || v.Drainage == "" || !v.OpenPinned.Known || v.OpenPinned.N == 0 {
			n.add("workflows on %s would be evacuated, and it is not known that any stay on it", b.BuildID)
		}
		if obs.Batches.OthersRun != rollout.No {
			n.add("workflows on %s would be evacuated, and it is not known that no other batch job runs", b.BuildID)
		}
		if b.Job.Stage == v1alpha1.EvacuateByMove {
			n.takes(b)
		}
		n.recordedJob(b)
	}
}

// traffic reports whether a version has traffic, or is named by a call of this plan.
func (n *never) traffic(id string) bool {
	r := n.s.Observation.Routing
	if id == "" || r.Current == id || r.HasRamp && r.Ramping == id {
		return true
	}
	for _, call := range []*rollout.RoutingCall{n.p.Raise, n.p.Lower} {
		if call == nil {
			continue
		}
		for _, step := range call.Steps {
			if step.BuildID == id {
				return true
			}
		}
	}
	return n.s.Spec == nil || n.p.Target == nil || n.p.Target.BuildID == id
}

// takes: a version that workflows are moved to has files in Git, and fresh pollers on all queues of the one that they
// leave.
func (n *never) takes(b rollout.BatchStart) {
	if was := n.recorded(b.Job.Target); b.Job.Target == b.BuildID || was == nil || was.Guard != v1alpha1.GuardOn {
		n.add("workflows on %s would be moved to %s, whose files are not in Git", b.BuildID, b.Job.Target)
	}
	to, from := n.s.Observation.Version(b.Job.Target), n.s.Observation.Version(b.BuildID)
	if to == nil || from == nil || to.QueuesKnown != rollout.Yes || from.QueuesKnown != rollout.Yes ||
		len(to.Queues) == 0 {
		n.add("workflows on %s would be moved to %s, and the task queues of both are not known", b.BuildID,
			b.Job.Target)
		return
	}
	polled := map[string]bool{}
	for _, q := range to.Queues {
		if fresh := q.Pollers.Known && n.polled(q.Pollers); fresh {
			polled[string(q.Type)+"/"+q.Name] = true
		} else {
			n.add("workflows on %s would be moved to %s, whose task queue %s has no fresh poller", b.BuildID,
				b.Job.Target, q.Name)
		}
	}
	for _, q := range from.Queues {
		if !polled[string(q.Type)+"/"+q.Name] {
			n.add("workflows on %s would be moved to %s, which does not serve task queue %s", b.BuildID, b.Job.Target,
				q.Name)
		}
	}
}

// recordedJob: what starts is what the commit says, once, and approved where it has to be: by the record as a person
// left it.
func (n *never) recordedJob(b rollout.BatchStart) {
	var to *v1alpha1.RecordedEvacuation
	if n.p.Record != nil {
		if ver := rollout.FindVersion(n.p.Record.Versions, b.BuildID); ver != nil {
			to = jobIn(ver.Evacuations, b.Job.JobID)
		}
	}
	if to == nil || to.State != v1alpha1.EvacuationRunning || to.Stage != b.Job.Stage || to.Target != b.Job.Target ||
		to.Signal != b.Job.Signal {
		n.add("a batch job would start on %s that the record does not name", b.BuildID)
	}
	for _, j := range n.s.Observation.Batches.Jobs {
		if j.JobID == b.Job.JobID && j.State == rollout.BatchMissing {
			return
		}
	}
	n.add("batch job %s would start, and it is not known that it was not started before", b.Job.JobID)
}

// approved: moving and terminating wait for what only a person writes.
func (n *never) approved() {
	for _, b := range n.p.Batches {
		if b.Job.Stage != v1alpha1.EvacuateByMove && b.Job.Stage != v1alpha1.EvacuateByTermination {
			continue
		}
		var was *v1alpha1.RecordedEvacuation
		if ver := n.recorded(b.BuildID); ver != nil {
			was = jobIn(ver.Evacuations, b.Job.JobID)
		}
		if was == nil || was.ProposedAt.IsZero() ||
			was.State != v1alpha1.EvacuationApproved && was.ApprovedAt.IsZero() || was.Stage != b.Job.Stage {
			n.add("workflows on %s would be moved or terminated, which was not approved", b.BuildID)
		}
	}
}

func jobIn(list []v1alpha1.RecordedEvacuation, id string) *v1alpha1.RecordedEvacuation {
	return find(list, func(e *v1alpha1.RecordedEvacuation) bool { return e.JobID == id })
}
