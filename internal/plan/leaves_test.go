package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/oracle"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

var receipts = v1alpha1.RecordedQueue{Name: "receipts", Type: v1alpha1.ActivityQueue}

// alsoServes: v1 serves the activity task queue receipts, too, with a backlog.
func alsoServes(b rollout.Backlog) change { return alsoServesQueue("receipts", b) }

func alsoServesQueue(name string, b rollout.Backlog) change {
	return func(g *given) {
		q := polled(name)
		q.Type, q.Backlog = rollout.QueueActivity, b
		g.listed("v1").Queues = append(g.listed("v1").Queues, q)
	}
}

var (
	idleQueue   = rollout.Backlog{Known: true}
	busyQueue   = rollout.Backlog{Known: true, AddRate: 0.1}
	filledQueue = rollout.Backlog{Known: true, Count: 1}
)

// late: the target's workers had their time.
func late() change {
	return func(g *given) {
		g.rec.Target.Since = stamp(ago(601 * time.Second))
		g.version("v2").CreatedAt = stamp(ago(601 * time.Second))
	}
}

// names is a proposal of the first step that names task queues.
func names(approved bool, queues ...v1alpha1.RecordedQueue) change {
	return func(g *given) {
		g.rec.Proposal = &v1alpha1.RecordedProposal{BuildID: id("v2"), TemplateHash: hash("v2"), To: 10, LeavesBehind: queues, Since: stamp(ago(time.Minute))}
		if approved {
			g.rec.Proposal.Approved = &v1alpha1.Asked{By: "ada", At: stamp(ago(time.Second))}
		}
	}
}

// A task queue that the target does not serve is left behind if it is idle. One in use waits for workers, then for a
// person.
func TestQueueLeftBehind(t *testing.T) {
	agreed := func(g *given) { g.rec.Target.LeavesBehind = []v1alpha1.RecordedQueue{receipts} }
	other := v1alpha1.RecordedQueue{Name: "refunds", Type: v1alpha1.ActivityQueue}
	for name, c := range map[string]struct {
		given  change
		row    string
		reason rollout.Reason
		// leaves is what the call names; raised says whether there is one.
		raised bool
		leaves []v1alpha1.RecordedQueue
	}{
		"idle":                                {alsoServes(idleQueue), "first-step", rollout.Ramping, true, nil},
		"idle, and late":                      {all(alsoServes(idleQueue), late()), "first-step", rollout.Ramping, true, nil},
		"in use":                              {alsoServes(busyQueue), "wait-for-pollers", rollout.WaitingForPollers, false, nil},
		"with a backlog":                      {alsoServes(filledQueue), "wait-for-pollers", rollout.WaitingForPollers, false, nil},
		"not known":                           {alsoServes(rollout.Backlog{}), "wait-for-pollers", rollout.WaitingForPollers, false, nil},
		"in use, and late":                    {all(alsoServes(busyQueue), late()), "first-step", rollout.AwaitingApproval, false, nil},
		"not known, and late":                 {all(alsoServes(rollout.Backlog{}), late()), "first-step", rollout.AwaitingApproval, false, nil},
		"approved":                            {all(alsoServes(busyQueue), late(), names(true, receipts)), "first-step", rollout.Ramping, true, []v1alpha1.RecordedQueue{receipts}},
		"approved where each step is":         {all(alsoServes(busyQueue), late(), wantsApproval(v1alpha1.ScopeStep), names(true, receipts)), "first-step", rollout.Ramping, true, []v1alpha1.RecordedQueue{receipts}},
		"where each step is, not approved":    {all(alsoServes(busyQueue), late(), wantsApproval(v1alpha1.ScopeStep), names(false, receipts)), "first-step", rollout.AwaitingApproval, false, nil},
		"approved, without a word of it":      {all(alsoServes(busyQueue), late(), names(true)), "first-step", rollout.AwaitingApproval, false, nil},
		"named, and not approved":             {all(alsoServes(busyQueue), late(), names(false, receipts)), "first-step", rollout.AwaitingApproval, false, nil},
		"approved, and another one missing":   {all(alsoServes(busyQueue), alsoServesQueue("refunds", busyQueue), late(), names(true, receipts)), "first-step", rollout.AwaitingApproval, false, nil},
		"approved, and another one idle":      {all(alsoServes(busyQueue), alsoServesQueue("refunds", idleQueue), late(), names(true, receipts)), "first-step", rollout.Ramping, true, []v1alpha1.RecordedQueue{other, receipts}},
		"approved for this attempt":           {all(alsoServes(busyQueue), agreed), "first-step", rollout.Ramping, true, []v1alpha1.RecordedQueue{receipts}},
		"a name that no record can have":      {all(alsoServesQueue("a\nb", busyQueue), late()), "wait-for-pollers", rollout.WaitingForPollers, false, nil},
		"all at once":                         {all(alsoServes(busyQueue), late(), strategy(v1alpha1.AllAtOnce)), "all-at-once", rollout.AwaitingApproval, false, nil},
		"an edit of routing.yaml names none":  {all(alsoServes(busyQueue), late(), edits("v1", "v2", 10)), "edited-up", rollout.AwaitingApproval, false, nil},
		"its own workers have to be there":    {all(alsoServes(idleQueue), noPollers("v2")), "wait-for-pollers", rollout.WaitingForPollers, false, nil},
		"the queues of the current one alone": {func(g *given) { g.listed("v1").QueuesKnown = "" }, "wait-for-pollers", rollout.StaleFacts, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := of(candidate(), c.given)
			p := decide(t, s, allowed)
			require.Empty(t, oracle.Forbidden(s, p))
			require.Equal(t, c.row, p.Row)
			ready := condition(p.Status, v1alpha1.ConditionReady)
			require.Equal(t, string(c.reason), ready.Reason, ready.Message)
			require.Equal(t, c.raised, p.Raise != nil)
			if c.raised {
				require.ElementsMatch(t, c.leaves, p.Raise.LeavesBehind)
			}
			if c.reason == rollout.AwaitingApproval {
				require.Contains(t, ready.Message, "does not serve the activity task queue receipts")
				require.Contains(t, ready.Message, "rampart approve payments/checkout")
				require.Contains(t, p.Record.Proposal.LeavesBehind, receipts)
				require.Nil(t, p.Record.Proposal.Approved)
			}
		})
	}
	idle := decide(t, of(candidate(), alsoServes(idleQueue)), allowed)
	require.Contains(t, strings.Join(idle.Summary, "\n"), id("v2")+" leaves behind the activity task queue receipts (idle)")
	yes := decide(t, of(candidate(), alsoServes(busyQueue), late(), names(true, receipts)), allowed)
	require.Equal(t, []v1alpha1.RecordedQueue{receipts}, yes.Record.Target.LeavesBehind)
	require.Nil(t, yes.Record.Proposal)
	require.Contains(t, strings.Join(yes.Summary, "\n"), "receipts (approved)")
	// A queue that is used now and then does not change what is proposed.
	both := of(candidate(), alsoServes(busyQueue), alsoServesQueue("refunds", idleQueue), late(), names(false, receipts, other))
	require.Equal(t, both.Record.Routing.Spec.Proposal, decide(t, both, allowed).Record.Proposal)
	// Policy that allows everything, and one approval for a whole rollout, are about other things.
	scope := of(candidate(), alsoServes(busyQueue), late(), func(g *given) {
		g.Environment.Approval.Scope = v1alpha1.ScopeRollout
		g.rec.Target.Approved, g.rec.Target.ApprovedSteps = &v1alpha1.Asked{By: "ada"}, Look(g.Snapshot).timetable()
	})
	require.Nil(t, decide(t, scope, allowed).Raise)
}

// A worker may register its activities first. Until a version serves workflows, an idle queue of workflows is not left
// behind.
func TestActivitiesComeFirst(t *testing.T) {
	activities := func(tag string) change {
		return func(g *given) { g.listed(tag).Queues[0].Type = rollout.QueueActivity }
	}
	alsoAnother := func(g *given) { g.listed("v2").Queues = append(g.listed("v2").Queues, polled("refunds")) }
	whole := func(g *given) { g.rec.Proposal.To = 100 }
	for name, c := range map[string]struct {
		given  change
		reason rollout.Reason
		raised bool
	}{
		"activities alone":           {activities("v2"), rollout.WaitingForPollers, false},
		"activities alone, and late": {all(activities("v2"), late()), rollout.AwaitingApproval, false},
		"approved": {all(activities("v2"), late(), names(true, v1alpha1.RecordedQueue{Name: "orders", Type: v1alpha1.WorkflowQueue}), whole),
			rollout.WaitingForPromotion, true},
		"workflows on another queue":          {all(activities("v2"), alsoAnother), rollout.WaitingForPromotion, true},
		"the current one has no workflows":    {all(activities("v1"), activities("v2"), alsoServes(idleQueue)), rollout.WaitingForPromotion, true},
		"workflows, and no activities so far": {alsoServes(idleQueue), rollout.WaitingForPromotion, true},
	} {
		t.Run(name, func(t *testing.T) {
			idle := func(g *given) { g.listed("v1").Queues[0].Backlog = idleQueue }
			s := of(candidate(), strategy(v1alpha1.AllAtOnce), idle, c.given)
			p := decide(t, s, allowed)
			require.Empty(t, oracle.Forbidden(s, p))
			require.Empty(t, Never(s, p))
			ready := condition(p.Status, v1alpha1.ConditionReady)
			require.Equal(t, string(c.reason), ready.Reason, ready.Message)
			require.Equal(t, c.raised, p.Raise != nil)
		})
	}
}

// The whole way: the current version's second task queue is in use, and a person approves once.
func TestQueueLeftBehindOnceApproved(t *testing.T) {
	w := newWorld(t)
	w.startV1()
	w.server.more = map[string][]rollout.TaskQueue{id("v1"): {{Name: "receipts", Type: rollout.QueueActivity, Unversioned: rollout.No, Backlog: busyQueue}}}
	w.push("v2")
	w.run(9 * time.Minute)
	require.Equal(t, "WaitingForPollers", w.reason())
	w.run(2 * time.Minute)
	require.Equal(t, "AwaitingApproval", w.reason())
	require.Empty(t, w.server.calls)
	w.quiet(3, time.Hour)
	w.edit(func(r *v1alpha1.RoutingSpec) {
		r.Proposal.Approved = &v1alpha1.Asked{By: "ada", At: stamp(w.server.now)}
	})
	w.run(30 * time.Minute)
	require.Equal(t, []string{"v2 10", "v2 50", "v2 current"}, w.server.calls)
	require.Equal(t, "RolloutComplete*", w.reason())

	// The way back needs no word of it.
	w.server.more[id("v2")] = []rollout.TaskQueue{{Name: "refunds", Type: rollout.QueueActivity, Unversioned: rollout.No, Backlog: busyQueue}}
	w.push("v1")
	w.cycle()
	require.Equal(t, "v1 current", w.server.calls[len(w.server.calls)-1])
}
