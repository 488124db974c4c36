package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// A task queue that the current version serves and the target does not would be left behind by a raise: its tasks go to
// workers without a version, or to none. An idle one may be left behind, which is the server's own rule. One in use
// waits for the target's workers until the deadline for progress, and then for a person's approval, which names it. So
// does an idle queue of workflows while the target serves none at all: its worker may just have registered its
// activities first.

// leftBehind are the task queues of the current version that a version does not serve. It gives those that are known to
// be idle and may be left behind, and the others.
func leftBehind(obs *rollout.Observation, id string) (idle, used []v1alpha1.RecordedQueue) {
	current, o := obs.Version(obs.Routing.Current), obs.Version(id)
	if current == nil || o == nil || current.BuildID == id {
		return nil, nil
	}
	for _, q := range current.Queues {
		if slices.ContainsFunc(o.Queues, func(own rollout.TaskQueue) bool {
			return own.Name == q.Name && own.Type == q.Type
		}) {
			continue
		}
		named := v1alpha1.RecordedQueue{Name: q.Name, Type: v1alpha1.QueueType(q.Type)}
		maybeNotYet := q.Type == rollout.QueueWorkflow && !slices.ContainsFunc(o.Queues, ofWorkflows)
		if q.Backlog.Known && q.Backlog.Count == 0 && q.Backlog.AddRate == 0 && !maybeNotYet {
			idle = append(idle, named)
		} else {
			used = append(used, named)
		}
	}
	return idle, used
}

func ofWorkflows(q rollout.TaskQueue) bool { return q.Type == rollout.QueueWorkflow }

// queuesLeft waits while the target does not serve a task queue of the current version that may be in use.
func queuesLeft(v *View) (outcome, bool) {
	current := v.actual.Current
	if current == "" {
		return outcome{}, false
	}
	if x := v.obs.Version(current); x == nil || x.QueuesKnown != rollout.Yes {
		return say(rollout.StaleFacts, "the task queues of %s, which has traffic, could not be read", current), true
	}
	_, used := leftBehind(v.obs, v.target.BuildID)
	if subset(used, v.mayLeave()) {
		return outcome{}, false
	}
	deadline, limit := v.pollerDeadline()
	o := say(rollout.WaitingForPollers, "version %s does not serve %s, which %s serves and which may be in use",
		v.target.BuildID, sayQueues(used), current)
	if at := slices.IndexFunc(used, func(q v1alpha1.RecordedQueue) bool { return !q.CanBeRecorded() }); at >= 0 {
		return stalled(rollout.WaitingForPollers, "%s. No approval can name %q: let %s serve it, or let it go idle",
			o.state.Message, used[at].Name, v.target.BuildID), true
	}
	if v.now.After(deadline) {
		return outcome{}, false // a person decides: leavesUnapproved
	}
	o.due = deadline
	o.state.Message += fmt.Sprintf(": its workers may take %s to come; then a person may approve that it is "+
		"left behind", limit.Round(time.Second))
	return o, true
}

// mayLeave are the task queues that a person approved to leave behind in this attempt.
func (v *View) mayLeave() []v1alpha1.RecordedQueue {
	if !v.goesOn() {
		return nil
	}
	return v.rec.Target.LeavesBehind
}

// leaves are the task queues in use that a raise leaves behind and that no person approved yet.
func (v *View) leaves(a rollout.Action) []v1alpha1.RecordedQueue {
	if !a.Raises() || !v.isTarget(a.BuildID) || a.Kind == rollout.Unroute {
		return nil
	}
	_, used := leftBehind(v.obs, a.BuildID)
	if subset(used, v.mayLeave()) || v.approved() && v.proposes(a) && subset(used, v.rec.Proposal.LeavesBehind) {
		return nil
	}
	return used
}

// unapproved is what a raise wants that leaves behind task queues in use.
func (v *View) unapproved(queues []v1alpha1.RecordedQueue) rollout.Verdict {
	return rollout.Verdict{Effect: rollout.RequireApproval, Findings: []rollout.Finding{{
		Package: "rampart", Rule: "queues.leftBehind", Effect: rollout.RequireApproval,
		Message: fmt.Sprintf("%s does not serve %s, which may be in use: tasks there find no worker of %[1]s. To "+
			"leave it behind: rampart approve %[3]s",
			v.target.BuildID, sayQueues(queues), v.s.Deployment)}}}
}

// nextLeaves are the task queues that the raise of this plan may leave behind, and those of the raises before it.
func (r *resolver) nextLeaves() []v1alpha1.RecordedQueue {
	next := slices.Clone(r.mayLeave())
	if move := r.move(); move != nil && move.Raises() && r.isTarget(move.BuildID) {
		_, used := leftBehind(r.obs, move.BuildID)
		next = union(next, used)
	}
	return next
}

// proposedLeaves are the task queues that a proposal names. Once named it keeps them, so that a queue which is used now
// and then changes nothing.
func (r *resolver) proposedLeaves(a rollout.Action) []v1alpha1.RecordedQueue {
	queues := r.leaves(a)
	if r.proposes(a) && len(queues) > 0 && subset(r.rec.Proposal.LeavesBehind, r.left(a.BuildID)) {
		queues = union(r.rec.Proposal.LeavesBehind, queues)
	}
	return queues
}

// left are all task queues that a raise leaves behind, idle or not.
func (v *View) left(id string) []v1alpha1.RecordedQueue {
	idle, used := leftBehind(v.obs, id)
	return union(idle, used)
}

// callLeaves are the task queues that a raise may find missing at the server. None is named where all that is missing
// is idle, which the server lets through.
func (v *View) callLeaves(id string) []v1alpha1.RecordedQueue {
	if _, used := leftBehind(v.obs, id); len(used) == 0 {
		return nil
	}
	return v.left(id)
}

// sayLeft is what a commit says of the task queues that a raise leaves behind, "" for none.
func (v *View) sayLeft(id string) string {
	idle, used := leftBehind(v.obs, id)
	var parts []string
	if len(idle) > 0 {
		parts = append(parts, sayQueues(idle)+" (idle)")
	}
	if len(used) > 0 {
		parts = append(parts, sayQueues(used)+" (approved)")
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("%s leaves behind %s", id, strings.Join(parts, ", "))
}

func sayQueues(queues []v1alpha1.RecordedQueue) string {
	names := make([]string, len(queues))
	for i, q := range queues {
		names[i] = "the " + q.String()
	}
	return list(names)
}

func subset(some, all []v1alpha1.RecordedQueue) bool {
	return !slices.ContainsFunc(some, func(q v1alpha1.RecordedQueue) bool { return !slices.Contains(all, q) })
}

func union(a, b []v1alpha1.RecordedQueue) []v1alpha1.RecordedQueue {
	out := slices.Clone(a)
	for _, q := range b {
		if !slices.Contains(out, q) {
			out = append(out, q)
		}
	}
	return out
}
