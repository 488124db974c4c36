package rollout_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

func TestRoutingConfig(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	base := rollout.RoutingConfig{Current: "v1", Ramping: "v2", HasRamp: true, Percentage: 10,
		CurrentChangedAt: now, RampingChangedAt: now, PercentageChangedAt: now, Revision: 3}
	elsewhere := base
	elsewhere.CurrentChangedAt = now.In(time.FixedZone("", 3600))
	require.True(t, base.Same(elsewhere), "the same instant")
	for name, change := range map[string]func(*rollout.RoutingConfig){
		"current":       func(r *rollout.RoutingConfig) { r.Current = "v0" },
		"ramping":       func(r *rollout.RoutingConfig) { r.Ramping = "v3" },
		"a ramp":        func(r *rollout.RoutingConfig) { r.HasRamp = false },
		"percentage":    func(r *rollout.RoutingConfig) { r.Percentage = 11 },
		"current at":    func(r *rollout.RoutingConfig) { r.CurrentChangedAt = now.Add(1) },
		"ramping at":    func(r *rollout.RoutingConfig) { r.RampingChangedAt = now.Add(1) },
		"percentage at": func(r *rollout.RoutingConfig) { r.PercentageChangedAt = now.Add(1) },
		"revision":      func(r *rollout.RoutingConfig) { r.Revision = 4 },
	} {
		moved := base
		change(&moved)
		require.False(t, base.Same(moved), name)
		traffic := moved.Current != base.Current || moved.Ramping != base.Ramping || moved.HasRamp != base.HasRamp || moved.Percentage != base.Percentage
		require.Equal(t, !traffic, base.SameTraffic(moved), name)
	}
	require.Equal(t, []float32{90, 10, 0}, []float32{base.Share("v1"), base.Share("v2"), base.Share("v3")})
	require.Equal(t, float32(100), rollout.RoutingConfig{Current: "v1"}.Share("v1"))
	require.Equal(t, float32(100), rollout.RoutingConfig{Current: "v1", HasRamp: true, Ramping: "v2"}.Share("v1"), "a ramp at 0%")
	require.Equal(t, float32(70), rollout.RoutingConfig{Current: "v1", HasRamp: true, Percentage: 30}.Share("v1"), "a ramp to unversioned workers")
	require.Zero(t, rollout.RoutingConfig{}.Share("v1"))
}

func TestFreshUntilItsAge(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	p := rollout.Pollers{Known: true, Count: 1, LastAccess: now.Add(-90 * time.Second)}
	require.True(t, p.Fresh(now, 90*time.Second))
	require.False(t, p.Fresh(now.Add(1), 90*time.Second))
	require.False(t, rollout.Pollers{Count: 1, LastAccess: now}.Fresh(now, time.Minute))
	require.False(t, rollout.Pollers{Known: true, LastAccess: now}.Fresh(now, time.Minute))
	require.False(t, rollout.Pollers{Known: true, Count: 1}.Fresh(now, time.Minute))

	f := rollout.Fact{Value: []byte("1"), ObservedAt: now.Add(-time.Minute), MaxAge: time.Minute}
	require.True(t, f.Fresh(now))
	require.False(t, f.Fresh(now.Add(1)))
	f.Error = "no answer"
	require.False(t, f.Fresh(now))
	require.False(t, rollout.Fact{ObservedAt: now, MaxAge: time.Minute}.Fresh(now))
	require.False(t, rollout.Fact{Value: []byte("1"), MaxAge: time.Minute}.Fresh(now))
}

func TestActionKinds(t *testing.T) {
	for _, c := range []struct {
		action         rollout.Action
		lowers, raises bool
	}{
		{rollout.Action{Kind: rollout.Ramp, From: 10, To: 50}, false, true},
		{rollout.Action{Kind: rollout.Ramp, From: 10, To: 10}, false, true},
		{rollout.Action{Kind: rollout.Ramp, From: 50, To: 10}, true, false},
		{rollout.Action{Kind: rollout.Promote, From: 50, To: 100}, false, true},
		{rollout.Action{Kind: rollout.ResetRamp, From: 50}, true, false},
		{rollout.Action{Kind: rollout.Rollback, To: 100}, true, false},
		{rollout.Action{Kind: rollout.Continue}, false, false},
		{rollout.Action{Kind: rollout.ScaleDown}, false, false},
	} {
		require.Equal(t, c.lowers, c.action.Lowers(), "%v", c.action.Kind)
		require.Equal(t, c.raises, c.action.Raises(), "%v", c.action.Kind)
		require.Equal(t, c.lowers || c.raises, c.action.Routes(), "%v", c.action.Kind)
	}
	for _, k := range []rollout.ActionKind{rollout.ScaleDown, rollout.DeleteVersion, rollout.RemoveFiles} {
		require.True(t, k.Removes())
	}
	require.False(t, rollout.Restore.Removes())
}

func TestUnknownEffectsHold(t *testing.T) {
	order := []rollout.Effect{rollout.Allow, rollout.Warn, rollout.RequireApproval, rollout.HoldEffect, rollout.RollbackEffect}
	for i, e := range order {
		require.Equal(t, i, e.Strictness())
	}
	require.Equal(t, rollout.HoldEffect.Strictness(), rollout.Effect("maybe").Strictness())
	v := rollout.Verdicts{Actions: map[string]rollout.Verdict{"a": {Effect: rollout.Allow}, "b": {}}}
	require.Equal(t, rollout.Allow, v.Of("a").Effect)
	require.Equal(t, rollout.HoldEffect, v.Of("b").Effect)
	require.Equal(t, rollout.HoldEffect, v.Of("c").Effect)
}

// TestGateWorkflowID: the ID holds all that the gate's meaning depends on.
func TestGateWorkflowID(t *testing.T) {
	base := rollout.GateSpec{Deployment: rollout.Name{Namespace: "payments", Name: "checkout"}, BuildID: "v1", TemplateHash: "h", Point: "first",
		Attempt: 1, WorkflowType: "Smoke", Input: []byte(`1`), Timeout: time.Hour, OnFailure: v1alpha1.GateHold}
	seen := map[string]string{base.WorkflowID("orders"): "itself", base.WorkflowID("refunds"): "queue"}
	for name, change := range map[string]func(*rollout.GateSpec){
		"deployment": func(g *rollout.GateSpec) { g.Deployment.Name = "other" },
		"build":      func(g *rollout.GateSpec) { g.BuildID = "v2" },
		"template":   func(g *rollout.GateSpec) { g.TemplateHash = "i" },
		"point":      func(g *rollout.GateSpec) { g.Point = "step-1" },
		"attempt":    func(g *rollout.GateSpec) { g.Attempt = 2 },
		"type":       func(g *rollout.GateSpec) { g.WorkflowType = "Load" },
		"input":      func(g *rollout.GateSpec) { g.Input = []byte(`2`) },
	} {
		g := base
		change(&g)
		id := g.WorkflowID("orders")
		require.Empty(t, seen[id], name)
		seen[id] = name
	}
	same := base
	same.Timeout, same.OnFailure = time.Minute, v1alpha1.GateRollback
	require.Equal(t, base.WorkflowID("orders"), same.WorkflowID("orders"), "what is done about it is not what it is")
}

func TestMovedAt(t *testing.T) {
	at := func(h int) time.Time { return time.Date(2026, 3, 1, h, 0, 0, 0, time.UTC) }
	require.True(t, rollout.RoutingConfig{}.MovedAt().IsZero())
	require.Equal(t, at(3), rollout.RoutingConfig{CurrentChangedAt: at(1), RampingChangedAt: at(2), PercentageChangedAt: at(3)}.MovedAt())
	require.Equal(t, at(4), rollout.RoutingConfig{CurrentChangedAt: at(4), RampingChangedAt: at(2), PercentageChangedAt: at(3)}.MovedAt())
}
