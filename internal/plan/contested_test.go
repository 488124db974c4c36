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

// TestContested: of two environments that claim one worker deployment, the one that manages it in Temporal works in
// full. The other one, or both where the worker deployment has no manager, create and raise nothing and say so.
func TestContested(t *testing.T) {
	claimed := func(manager string, rivals ...rollout.Rival) change {
		return func(g *given) { g.Rivals, g.Observation.ManagerIdentity = rivals, manager }
	}
	another := rollout.Rival{Environment: "stage", ManagerIdentity: "rampart/stage"}
	for _, c := range []struct {
		name    string
		claimed change
		works   bool
		says    string
	}{
		{"its own", claimed(owner, another), true, ""},
		{"nobody's", claimed("", another), false, "the environments prod and stage both claim payments/checkout in Temporal namespace prod, and it has no manager there yet"},
		{"the other's", claimed("rampart/stage", another), false, `both claim payments/checkout in Temporal namespace prod, where it belongs to "rampart/stage", not to "rampart/prod"`},
		{"of one identity", claimed(owner, rollout.Rival{Environment: "stage", ManagerIdentity: owner}), false, "give each environment a managerIdentity of its own"},
		{"of two, one with its identity", claimed(owner, another, rollout.Rival{Environment: "test", ManagerIdentity: owner}), false, "environments prod and stage, test both claim"},
	} {
		t.Run(c.name, func(t *testing.T) {
			created := decide(t, of(asks("v2"), c.claimed), allowed)
			require.Equal(t, c.works, len(created.Versions) == 1)
			s := of(candidate(), c.claimed)
			raised := decide(t, s, allowed)
			require.Equal(t, c.works, raised.Raise != nil)
			require.Empty(t, oracle.Forbidden(s, raised))
			if c.works {
				return
			}
			ready := condition(raised.Status, v1alpha1.ConditionReady)
			require.Equal(t, string(rollout.InvalidSpec), ready.Reason)
			require.Contains(t, ready.Message, c.says)

			s.Rivals = nil
			s.Observation.ManagerIdentity = owner
			free := decide(t, s, allowed)
			g := &given{Snapshot: s}
			c.claimed(g)
			s = g.Snapshot
			require.NotEmpty(t, Never(s, free), "the guard knows it by itself")
			require.NotEmpty(t, oracle.Forbidden(s, free))
		})
	}
	lowered := decide(t, of(rampsAt(10, time.Minute), barsBuild("v2"), claimed(owner, rollout.Rival{Environment: "stage", ManagerIdentity: owner})), allowed)
	require.Equal(t, []string{"ClearRamp  0"}, sayCall(lowered.Lower), "traffic is taken back all the same")
	unread := of(candidate(), claimed("", another), func(g *given) {
		g.Observation = rollout.Observation{At: noon, Problem: &rollout.Problem{Reason: rollout.TemporalStateFetchFailed, Message: "away"}}
	})
	require.NotContains(t, condition(decide(t, unread, allowed).Status, v1alpha1.ConditionReady).Message, "both claim", "while Temporal is not read, nobody is told that it is another's")
}

// TestNeverContested: the last check tells a claim of another environment from one that is not known, or settled in
// Temporal.
func TestNeverContested(t *testing.T) {
	another := rollout.Rival{Environment: "stage", ManagerIdentity: "rampart/stage"}
	s := of(candidate())
	p := decide(t, s, allowed)
	for name, c := range map[string]struct {
		spoil   func(*rollout.Snapshot)
		refused bool
	}{
		"managed by nobody":        {func(s *rollout.Snapshot) { s.Observation.ManagerIdentity = "" }, true},
		"managed by the other one": {func(s *rollout.Snapshot) { s.Observation.ManagerIdentity = "rampart/stage" }, true},
		"of one identity":          {func(s *rollout.Snapshot) { s.Rivals[0].ManagerIdentity = owner }, true},
		"neither has an identity":  {func(s *rollout.Snapshot) { s.Environment.ManagerIdentity, s.Observation.ManagerIdentity = "", "" }, true},
		"not there yet":            {func(s *rollout.Snapshot) { s.Observation.Exists, s.Observation.ManagerIdentity = rollout.No, "" }, true},
		"its own":                  {func(*rollout.Snapshot) {}, false},
		"no other environment":     {func(s *rollout.Snapshot) { s.Rivals, s.Observation.ManagerIdentity = nil, "" }, false},
		"Temporal cannot be read": {func(s *rollout.Snapshot) {
			s.Observation.Problem, s.Observation.ManagerIdentity = &rollout.Problem{}, ""
		}, false},
		"not known whether it is":   {func(s *rollout.Snapshot) { s.Observation.Exists, s.Observation.ManagerIdentity = "", "" }, false},
		"Temporal was not read yet": {func(s *rollout.Snapshot) { s.Observation.At, s.Observation.ManagerIdentity = time.Time{}, "" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := s
			s.Rivals = []rollout.Rival{another}
			c.spoil(&s)
			found := strings.Join(Never(s, p), "\n")
			require.Equal(t, c.refused, strings.Contains(found, "another environment claims it, too"), found)
		})
	}
}
