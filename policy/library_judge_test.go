package policy

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// messages of the findings on one action.
func messages(t *testing.T, s rollout.Snapshot, a rollout.Action) (rollout.Effect, []string) {
	t.Helper()
	v := Compile(Config{}).Judge(t.Context(), s, proposal(a)).Of(a.ID)
	var out []string
	for _, f := range v.Findings {
		out = append(out, f.Message)
	}
	return v.Effect, out
}

// The evidence for removals, from a snapshot as it is: each kind is allowed on proof, and held when one read has none.
func TestRemovalsNeedProof(t *testing.T) {
	testneed.Plain(t)
	remove := func(kind rollout.ActionKind) rollout.Action {
		return rollout.Action{ID: "x", Kind: kind, BuildID: "v1"}
	}
	retire := func(s *rollout.Snapshot) {
		zero := int32(0)
		v := &s.Record.Routing.Spec.Versions[0]
		v.Replicas, v.Guard, v.RetiredAt = &zero, v1alpha1.GuardOff, stamp(time.Hour)
		s.Observation.Versions[0].Queues[0].Pollers.Count = 0
	}
	forget := func(s *rollout.Snapshot) {
		s.Observation.Versions = s.Observation.Versions[1:]
		s.Observation.Unlisted = map[string]rollout.Count{"v1": rollout.Counted(0)}
	}
	unused := func(s *rollout.Snapshot) {
		s.Record.Routing.Spec.Versions[0].RoutedAt = v1alpha1.Time{}
		s.Record.Routing.Spec.Promotions = s.Record.Routing.Spec.Promotions[1:]
		o := &s.Observation.Versions[0]
		o.Drainage, o.DrainageChangedAt, o.FirstActivatedAt = "", time.Time{}, time.Time{}
	}
	for name, tc := range map[string]struct {
		kind   rollout.ActionKind
		change []func(*rollout.Snapshot)
		spoil  func(*rollout.Snapshot) // of the first read
		want   string
	}{
		"drained": {rollout.ScaleDown, nil, func(s *rollout.Snapshot) { s.Observation.Versions[0].Drainage = rollout.Draining },
			"it has not been drained, or unused, for long enough"},
		"never routed": {rollout.ScaleDown, []func(*rollout.Snapshot){unused}, func(s *rollout.Snapshot) { s.Observation.Versions[0].OpenPinned = rollout.Count{} },
			"it is not known that no open workflow is pinned to it"},
		"never registered": {rollout.ScaleDown, []func(*rollout.Snapshot){unused, forget}, func(s *rollout.Snapshot) { s.Observation.Unlisted = nil },
			"it is not known that no open workflow is pinned to it"},
		"deleted": {rollout.DeleteVersion, []func(*rollout.Snapshot){retire}, func(s *rollout.Snapshot) { s.Observation.Routing.Current = "v1" },
			"it is the current version"},
		"removed": {rollout.RemoveFiles, []func(*rollout.Snapshot){retire, forget}, func(s *rollout.Snapshot) { s.Observation.Problem = &rollout.Problem{Message: "away"} },
			"an earlier read of this cycle failed"},
	} {
		t.Run(name, func(t *testing.T) {
			make := func() rollout.Snapshot {
				s := snapshot(t)
				for _, change := range tc.change {
					change(&s)
				}
				return s
			}
			s, first := make(), make()
			effect, found := messages(t, s, remove(tc.kind))
			require.Equal(t, rollout.Allow, effect, "%q", found)

			s.FirstRead = &first.Observation
			effect, found = messages(t, s, remove(tc.kind))
			require.Equal(t, rollout.Allow, effect, "%q", found)

			tc.spoil(&first)
			effect, found = messages(t, s, remove(tc.kind))
			require.Equal(t, rollout.HoldEffect, effect)
			require.Contains(t, found, tc.want)
		})
	}
	effect, found := messages(t, snapshot(t), remove(rollout.DeleteVersion))
	require.Equal(t, rollout.HoldEffect, effect)
	require.Equal(t, []string{"it has not been scaled down", "it is not known that its pollers are gone"}, found)
}

func TestRaisesNeedFreshReads(t *testing.T) {
	stale := snapshot(t)
	stale.Observation.At = ago(stale.Limits.FactMaxAge + time.Second)
	effect, found := messages(t, stale, ramp())
	require.Equal(t, rollout.HoldEffect, effect)
	require.Equal(t, []string{"Temporal's routing was not read just now"}, found)
	effect, _ = messages(t, stale, reset())
	require.Equal(t, rollout.Allow, effect)

	promote := rollout.Action{ID: "p", Kind: rollout.Promote, BuildID: "v3", From: 10, To: 100, Steps: 2}
	effect, found = messages(t, snapshot(t), promote)
	require.Equal(t, rollout.HoldEffect, effect)
	require.Equal(t, []string{"at 10% the last step is not done"}, found)

	first := snapshot(t)
	first.Observation.Routing = rollout.RoutingConfig{}
	effect, found = messages(t, first, promote)
	require.Equal(t, rollout.Allow, effect, "%q", found)
}

func TestApprovalIsRequiredByParameters(t *testing.T) {
	e := Compile(Config{Data: []parse.DataFile{{Path: "data.yaml", Content: "rampart: {config: {rollout: {approval: {rules: [{environments: [prod], atLeast: 50, labels: {tier: gold}}]}}}}\n"}}})
	require.Empty(t, e.Problems())
	v := judge(t, e, ramp())
	require.Equal(t, rollout.RequireApproval, v.Effect)
	require.Equal(t, []rollout.Finding{{Package: "rampart.rollout", Rule: "rollout.approval", Effect: rollout.RequireApproval, Message: "Ramp in prod needs a reviewer"}}, v.Findings)
}

// A panic of the evaluator is an error like any other.
func TestPanicOfTheEvaluatorHoldsRaises(t *testing.T) {
	e := Compile(Config{})
	e.books[0].all.data = nil // the first look at data panics
	v := judge(t, e, ramp())
	require.Equal(t, rollout.HoldEffect, v.Effect)
	require.Contains(t, v.Findings[0].Message, "panic: ")
	require.Equal(t, rollout.Allow, judge(t, e, reset()).Effect)
}

// What the snapshot says of other rollouts decides whether one starts; the finding names who is in the way.
func TestConcurrencyCountsOtherRollouts(t *testing.T) {
	e := Compile(Config{Data: []parse.DataFile{{Path: "data.yaml", Content: "rampart: {config: {rollout: {concurrency: {max: 1, environments: [prod]}}}}\n"}}})
	require.Empty(t, e.Problems())
	start := ramp()
	start.From, start.To, start.Step = 0, 10, 1
	s := snapshot(t)
	s.Observation.Routing.HasRamp, s.Observation.Routing.Ramping, s.Observation.Routing.Percentage = false, "", 0
	p := proposal(start)
	require.Equal(t, rollout.Allow, e.Judge(t.Context(), s, p).Of(start.ID).Effect, "nobody is")

	s.Rollouts = []rollout.InProgress{{Deployment: rollout.Name{Namespace: "payments", Name: "refunds"}, BuildID: "r7", Since: ago(time.Hour)}}
	v := e.Judge(t.Context(), s, p).Of(start.ID)
	require.Equal(t, rollout.Verdict{Effect: rollout.HoldEffect, Findings: []rollout.Finding{{Package: "rampart.rollout", Rule: "rollout.concurrency",
		Effect: rollout.HoldEffect, Message: "1 of at most 1 rollouts at a time are in progress: payments/refunds",
		Evidence: []byte(`{"rollouts":["payments/refunds"]}`)}}}, v)

	s.Environment.Name = "staging"
	require.Equal(t, rollout.Allow, e.Judge(t.Context(), s, p).Of(start.ID).Effect, "the number holds in prod")

	begun := snapshot(t)
	begun.Rollouts = s.Rollouts
	require.Equal(t, rollout.Allow, e.Judge(t.Context(), begun, proposal(ramp())).Of(ramp().ID).Effect, "it goes on")
}

// Other rollouts are seen where one begins, the first of them by name; a spec is judged by itself.
func TestRolloutsBeside(t *testing.T) {
	e := of("package rampart.spec\n\nwarn contains {\"rule\": \"a\", \"msg\": \"seen\"} if input.rollouts\n",
		"package rampart.rollout\n\nwarn contains {\"rule\": \"a\", \"msg\": sprintf(\"%d %d\", [input.rollouts.count, count(input.rollouts.names)])}\n")
	s := snapshot(t)
	for i := range 12 {
		s.Rollouts = append(s.Rollouts, rollout.InProgress{Deployment: rollout.Name{Namespace: "payments", Name: fmt.Sprint("r", i)}})
	}
	require.Empty(t, e.Judge(t.Context(), s, proposal()).Of(ramp().ID).Findings, "it goes on, and asks nobody")

	start := ramp()
	start.From, start.To, start.Step = 0, 10, 1
	s.Observation.Routing.HasRamp, s.Observation.Routing.Ramping, s.Observation.Routing.Percentage = false, "", 0
	v := e.Judge(t.Context(), s, proposal(start))
	require.Empty(t, v.Spec.Findings)
	require.Empty(t, e.Judge(t.Context(), s, rollout.Proposal{}).Spec.Findings)
	require.Equal(t, "12 10", v.Of(start.ID).Findings[0].Message)
}
