package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

var update = flag.Bool("update", false, "write the golden files anew")

var now = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// golden compares named texts with testdata/<name>.txtar.
func golden(t *testing.T, name string, files ...txtar.File) {
	t.Helper()
	got := txtar.Format(&txtar.Archive{Files: files})
	file := filepath.Join("testdata", name+".txtar")
	if *update {
		require.NoError(t, os.WriteFile(file, got, 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(string(want), string(got)))
}

func named(name string) (rollout.Name, v1alpha1.Environment) {
	ns, short, _ := strings.Cut(name, "/")
	return rollout.Name{Namespace: ns, Name: short}, v1alpha1.Environment{Name: "prod"}
}

// raising is a ramp that policy allows with a warning, beside a drained version that has to wait for a second read.
func raising() Decided {
	name, env := named("payments/checkout")
	ramp := rollout.Action{ID: "Ramp/v2@25%", Kind: rollout.Ramp, BuildID: "v2", From: 5, To: 25, Step: 2, Steps: 3, Row: "next-step",
		Reason: "ramp v2 from 5% to 25%"}
	keep := rollout.Action{ID: "Continue/v1", Kind: rollout.Continue, BuildID: "v1", From: 95, To: 95}
	watch := rollout.Action{ID: "Continue/v2", Kind: rollout.Continue, BuildID: "v2", From: 5, To: 5}
	down := rollout.Action{ID: "ScaleDown/v0", Kind: rollout.ScaleDown, BuildID: "v0", Reason: "v0 is Drained"}
	warning := rollout.Finding{Package: "rampart.rollout", Rule: "canary.rate", Effect: rollout.Warn, Message: "0.4% fail"}
	waived := rollout.Finding{Package: "rampart.rollout", Rule: "rollout.freeze", Effect: rollout.HoldEffect, Message: "frozen", Waived: "black-friday-fix"}
	return Decided{
		Snapshot: rollout.Snapshot{SpecPath: "workers/checkout.yaml", Record: rollout.Record{Dir: "deploy/payments/checkout",
			Files: map[string]rollout.File{"routing.yaml": {Hash: "1", Data: "a: 1\nb: 2\n"}, "old.yaml": {Hash: "2", Data: "gone\n"}}}},
		Proposal: rollout.Proposal{Target: &rollout.Target{BuildID: "v2", Status: rollout.StatusRamping, Attempt: 1}, Row: "next-step",
			State: rollout.State{Reason: rollout.Ramping, Message: "v2 gets 25% of new workflows"}, Actions: []rollout.Action{ramp, keep, watch, down}},
		Plan: rollout.Plan{Deployment: name, Environment: env, Row: "next-step", Actions: []rollout.Action{ramp}, NextDue: now.Add(time.Minute),
			Verdicts: rollout.Verdicts{Spec: rollout.Verdict{Effect: rollout.Warn, Findings: []rollout.Finding{{Rule: "spec.safety", Effect: rollout.Warn, Message: "short"}}},
				Actions: map[string]rollout.Verdict{
					ramp.ID: {Effect: rollout.Warn, Findings: []rollout.Finding{waived, warning}}, keep.ID: {Effect: rollout.Allow},
					watch.ID: {Effect: rollout.Warn, Findings: []rollout.Finding{warning}}, down.ID: {Effect: rollout.Allow}}},
			Raise: &rollout.RoutingCall{Basis: rollout.RoutingConfig{Current: "v1", HasRamp: true, Ramping: "v2", Percentage: 5},
				Steps: []rollout.RoutingStep{{Kind: rollout.SetRamp, BuildID: "v2", Percentage: 12.3}}},
			Gates: []rollout.GateStart{{TaskQueue: "checkout"}}, Deletions: []string{"v00"}, PolicyHash: "sha256:abc"},
		Files: []rollout.FileChange{
			{Path: "deploy/payments/checkout/new.yaml", Data: "new: \x1b[31mred\n"},
			{Path: "deploy/payments/checkout/old.yaml", Delete: true},
			{Path: "deploy/payments/checkout/routing.yaml", Data: "a: 1\nb: 3\n"},
			{Path: "deploy/payments/checkout/versions/v1/deployment.yaml", Blob: "0123"},
		},
	}
}

// held is a promotion that waits for a person; a rule that cannot be evaluated is among the findings.
func held() Decided {
	name, env := named("payments/invoice")
	promote := rollout.Action{ID: "Promote/v3", Kind: rollout.Promote, BuildID: "v3", From: 50, To: 100, Reason: "the last step is done"}
	verdict := rollout.Verdict{Effect: rollout.RequireApproval, Findings: []rollout.Finding{
		{Package: "rampart.rollout", Rule: "rollout.approval", Effect: rollout.RequireApproval, Message: "a reviewer\nhas to agree"},
		{Package: "rampart", Rule: "policy.broken", Effect: rollout.HoldEffect, Message: "undefined function f", Location: "policies/x.rego:3"}}}
	return Decided{
		Proposal: rollout.Proposal{Row: "last-step", Actions: []rollout.Action{promote}},
		Plan: rollout.Plan{Deployment: name, Environment: env, Row: "last-step", Held: []rollout.Held{{Action: promote, Verdict: verdict}},
			Verdicts: rollout.Verdicts{Spec: rollout.Verdict{Effect: rollout.Allow}, Actions: map[string]rollout.Verdict{}},
			Status: &v1alpha1.WorkerDeploymentStatus{Conditions: []v1alpha1.Condition{
				{Type: "Ready", Status: v1alpha1.False, Reason: "AwaitingApproval", Message: "a reviewer has to agree"},
				{Type: "Stalled", Status: v1alpha1.True, Reason: "AwaitingApproval"}}}},
	}
}

// lowering takes traffic back, which resolving added; refused is a plan that must not be carried out.
func lowering() Decided {
	name, env := named("shop/cart")
	continued := rollout.Action{ID: "Continue/v2", Kind: rollout.Continue, BuildID: "v2", From: 5, To: 5}
	back := rollout.Action{ID: "ResetRamp/v2", Kind: rollout.ResetRamp, BuildID: "v2", From: 5, Cause: rollout.CauseVerdict, Bar: "canary", Reason: "12% fail"}
	return Decided{
		Proposal: rollout.Proposal{Row: "pause", Actions: []rollout.Action{continued},
			State: rollout.State{Reason: rollout.RolledBack, Message: "v2 was turned back", Stalled: true}},
		Plan: rollout.Plan{Deployment: name, Environment: env, Row: "pause", Actions: []rollout.Action{back},
			Verdicts: rollout.Verdicts{Actions: map[string]rollout.Verdict{continued.ID: {Effect: rollout.RollbackEffect, Findings: []rollout.Finding{
				{Rule: "canary", Effect: rollout.RollbackEffect, Message: "12% fail"}}}}},
			Lower: &rollout.RoutingCall{Basis: rollout.RoutingConfig{Current: "", HasRamp: true, Ramping: "v2", Percentage: 5},
				Steps: []rollout.RoutingStep{{Kind: rollout.ClearRamp}}}},
	}
}

func refused() Decided {
	d := raising()
	d.Plan.Deployment.Name, d.Refused = "basket", "two steps in one"
	return d
}

func TestPlan(t *testing.T) {
	root := []File{NewFile(rollout.FileChange{Path: "deploy/kustomization.yaml", Data: "x\n"}, "", false)}
	p := NewPlan([]Decided{lowering(), raising(), refused(), held()}, root)
	require.True(t, p.Pending)
	var plain, colored bytes.Buffer
	require.NoError(t, p.WriteText(&plain, Plain))
	require.NoError(t, p.WriteText(&colored, Colored))
	require.NotContains(t, plain.String(), "\x1b", "what others wrote cannot reach the terminal")
	data, err := json.MarshalIndent(p, "", "  ")
	require.NoError(t, err)
	golden(t, "plan", txtar.File{Name: "text", Data: plain.Bytes()},
		txtar.File{Name: "colored", Data: []byte(strings.ReplaceAll(colored.String(), "\x1b", "ESC"))},
		txtar.File{Name: "json", Data: append(data, '\n')})
	var back Plan
	require.NoError(t, json.Unmarshal(data, &back))
	again, err := json.MarshalIndent(back, "", "  ")
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(string(data), string(again)))
}

// The order in which worker deployments were decided does not show.
func TestPlanIsSorted(t *testing.T) {
	all := []Decided{lowering(), raising(), refused(), held()}
	want := NewPlan(all, nil)
	for range 20 {
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		require.Empty(t, cmp.Diff(want, NewPlan(all, nil)))
	}
}

func TestPendingIsWhatWouldBeDone(t *testing.T) {
	for name, c := range map[string]struct {
		d    Decided
		want bool
	}{
		"held":    {held(), false},
		"lowered": {lowering(), true},
		"refused": {refused(), false},
		"gate":    {Decided{Plan: rollout.Plan{Gates: []rollout.GateStart{{TaskQueue: "q"}}}}, true},
		"batch":   {Decided{Plan: rollout.Plan{Batches: []rollout.BatchStart{{BuildID: "v1"}}}}, true},
		"delete":  {Decided{Plan: rollout.Plan{Deletions: []string{"v1"}}}, true},
		"files":   {Decided{Files: []rollout.FileChange{{Path: "x"}}}, true},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, NewPlan([]Decided{c.d}, nil).Pending) })
	}
}

// Every kind of action has words of its own.
func TestTitles(t *testing.T) {
	three := int32(3)
	gate := &rollout.GateSpec{WorkflowType: "Smoke"}
	drift := &rollout.Drift{Kind: rollout.DriftRouting, Recorded: "v1", Actual: "v2"}
	var got []string
	for _, a := range []rollout.Action{
		{Kind: rollout.CreateVersion, BuildID: "v1"}, {Kind: rollout.UpdateVersion, BuildID: "v1", Update: rollout.UpdateConnection},
		{Kind: rollout.ScaleVersion, BuildID: "v1", Replicas: &three}, {Kind: rollout.Restore, BuildID: "v1"},
		{Kind: rollout.StartGate, BuildID: "v1", Gate: gate}, {Kind: rollout.Ramp, BuildID: "v1", From: 0, To: 12.5, Step: 1, Steps: 2},
		{Kind: rollout.Ramp, BuildID: "v1", From: 9, To: 4}, {Kind: rollout.Promote, BuildID: "v1"}, {Kind: rollout.ResetRamp},
		{Kind: rollout.Rollback, BuildID: "v1"}, {Kind: rollout.Continue, BuildID: "v1", From: 95}, {Kind: rollout.DriftAction, Drift: drift},
		{Kind: rollout.DriftAction, Drift: &rollout.Drift{Kind: rollout.DriftManifest, Path: "versions/v1/deployment.yaml"}},
		{Kind: rollout.ScaleDown, BuildID: "v1"}, {Kind: rollout.DeleteVersion, BuildID: "v1"}, {Kind: rollout.RemoveFiles, BuildID: "v1"},
		{Kind: rollout.SetAsideKind, BuildID: "v1"},
		{Kind: rollout.UpdateResources, BuildID: "v1", Resources: []rollout.ResourceWrite{{Template: "hpa", Object: []byte("{}")}, {Template: "pdb"}}},
		{Kind: rollout.SignalWorkflows, BuildID: "v1", Evacuation: &rollout.Evacuation{Open: 3}},
		{Kind: rollout.MoveWorkflows, BuildID: "v1", Evacuation: &rollout.Evacuation{Open: 3, Target: "v2"}},
		{Kind: rollout.CancelWorkflows, BuildID: "v1", Evacuation: &rollout.Evacuation{Open: 3}}, {Kind: rollout.TerminateWorkflows, BuildID: "v1"},
		{Kind: "Unheard", BuildID: "v1"},
	} {
		got = append(got, title(a))
	}
	require.Empty(t, cmp.Diff([]string{
		"create version v1", "update v1 in place (connection)", "scale v1 to 3 replicas", "restore v1, replicas left to its autoscaler",
		"start gate Smoke on v1", "ramp v1 from 0% to 12.5% (step 1 of 2)", "ramp v1 from 9% to 4%", "promote v1",
		"take traffic back from unversioned workers", "roll back to v1", "leave v1 with 95%", "drift of the routing: v1 recorded, v2 found",
		"drift of versions/v1/deployment.yaml", "scale down v1", "delete version v1 in Temporal", "remove the files of v1", "set aside v1",
		"update objects of v1: hpa, without pdb",
		"signal 3 workflows on v1",
		"move 3 workflows on v1 to v2", "cancel 3 workflows on v1", "terminate workflows on v1", "Unheard v1",
	}, got))
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(got))), len(got))
}

func TestSteps(t *testing.T) {
	strategy := v1alpha1.RolloutStrategy{Strategy: v1alpha1.Progressive, Gate: &v1alpha1.Gate{WorkflowType: "Smoke"},
		Steps: []v1alpha1.RolloutStep{{RampPercentage: 5}, {RampPercentage: 25, Gate: &v1alpha1.Gate{WorkflowType: "Deep"}}, {RampPercentage: 50}}}
	ramp := func(build string, p float64) Status {
		return Status{Target: "v2", Current: "v1", Ramping: &build, RampPercentage: &p}
	}
	for name, c := range map[string]struct {
		st   Status
		step int
		want []Progress
	}{
		"not begun":      {Status{Target: "v2", Current: "v1"}, 0, []Progress{ToCome, ToCome, ToCome, ToCome}},
		"first":          {ramp("v2", 5), 1, []Progress{Current, ToCome, ToCome, ToCome}},
		"second":         {ramp("v2", 25), 2, []Progress{Done, Current, ToCome, ToCome}},
		"between":        {ramp("v2", 30), 2, []Progress{Done, Current, ToCome, ToCome}},
		"below":          {ramp("v2", 1), 0, []Progress{ToCome, ToCome, ToCome, ToCome}},
		"last":           {ramp("v2", 50), 3, []Progress{Done, Done, Current, ToCome}},
		"promoted":       {Status{Target: "v2", Current: "v2"}, 3, []Progress{Done, Done, Done, Done}},
		"another's ramp": {ramp("v3", 25), 0, []Progress{ToCome, ToCome, ToCome, ToCome}},
	} {
		t.Run(name, func(t *testing.T) {
			step, steps := stepOf(strategy, c.st)
			require.Equal(t, []int{c.step, 3}, []int{step, steps})
			c.st.Step, c.st.Steps = step, steps
			var got []Progress
			var gates []string
			for _, s := range stepsOf(strategy, c.st) {
				got, gates = append(got, s.Progress), append(gates, s.GateBefore+">"+s.Gate)
			}
			require.Equal(t, c.want, got)
			require.Equal(t, []string{"Smoke>", ">Deep", ">", ">"}, gates)
		})
	}
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{-time.Second: "0s", 0: "0s", 999 * time.Millisecond: "0s", time.Second: "1s", 90 * time.Second: "1m30s",
		time.Hour: "1h", 25*time.Hour + time.Minute: "1d1h", 49*time.Hour - time.Minute: "2d", 400 * 24 * time.Hour: "400d"} {
		require.Equal(t, want, Age(d), d)
	}
}
