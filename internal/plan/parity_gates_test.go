package plan

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/parity"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// gated is a candidate with a first gate in a state on orders.
func gatedIs(state rollout.GateState) change {
	return all(candidate(), gate(v1alpha1.GateHold), gateIs(state, 1))
}

// onRefunds gives the candidate another workflow task queue, with its gate in a state there.
func onRefunds(state rollout.GateState) change {
	return func(g *given) {
		g.listed("v2").Queues = append(g.listed("v2").Queues, polled("refunds"))
		run := g.Observation.Gates[0]
		run.WorkflowID, run.TaskQueue, run.State = Look(g.Snapshot).pointGate().WorkflowID("refunds"), "refunds", state
		g.Observation.Gates = append(g.Observation.Gates, run)
	}
}

func activitiesOnly(g *given) {
	impatient(g)
	for _, tag := range []string{"v1", "v2"} {
		g.listed(tag).Queues[0].Type = rollout.QueueActivity
	}
}

// impatient: what the target's workers were to do is late.
func impatient(g *given) {
	second := int32(1)
	g.Spec.Spec.ProgressDeadlineSeconds = &second
}

// noCurrent: v2 is the first version, and no unversioned worker is on its queues.
func noCurrent(g *given) {
	unlisted("v1")(g)
	g.rec.Versions, g.rec.Promotions, g.Observation.Routing = g.rec.Versions[1:], nil, rollout.RoutingConfig{}
	desires("", "", 0)(g)
}

func gateParity() []parity.Case {
	const blocks = "routing does not move; the condition says Progressing, for ever"
	const said = "it is said as stalled, and with onFailure: Rollback the build is turned back"
	return []parity.Case{
		{Scenario: "a gate is needed", Controller: "starts it on each workflow task queue", Want: "GateRunning; StartGate v2 on [orders refunds]; start Smoke of v2, attempt 1, on orders; start Smoke of v2, attempt 1, on refunds",
			Got: plans(gatedIs(rollout.GateMissing), onRefunds(rollout.GateMissing))},
		{Scenario: "no gate", Controller: "starts none", Got: plans(candidate()), Want: "Ramping; Ramp v2 0->10 step 1/2; after the push SetRamp v2 10"},
		{Scenario: "no task queue yet", Controller: "starts none", Want: "WaitingForPollers; due in 5m0s",
			Got: plans(candidate(), gate(v1alpha1.GateHold), func(g *given) { g.listed("v2").Queues = nil })},
		{Scenario: "all run", Controller: "starts none", Got: plans(gatedIs(rollout.GateRunning), onRefunds(rollout.GateRunning)), Want: "GateRunning"},
		{Scenario: "incomplete: one task queue is without a run", Controller: "starts it there; routing does not move", Want: "GateRunning; StartGate v2 on [refunds]; start Smoke of v2, attempt 1, on refunds",
			Got: plans(gatedIs(rollout.GateCompleted), onRefunds(rollout.GateMissing))},
		{Scenario: "one failed", Controller: blocks, Got: plans(gatedIs(rollout.GateCompleted), onRefunds(rollout.GateFailed)), Want: "GateFailed (stalled)", Why: said},
		{Scenario: "one canceled", Controller: blocks, Got: plans(gatedIs(rollout.GateCompleted), onRefunds(rollout.GateCanceled)), Want: "GateFailed (stalled)", Why: said},
		{Scenario: "one terminated", Controller: blocks, Got: plans(gatedIs(rollout.GateCompleted), onRefunds(rollout.GateTerm)), Want: "GateFailed (stalled)", Why: said},
		{Scenario: "one timed out", Controller: blocks, Got: plans(gatedIs(rollout.GateCompleted), onRefunds(rollout.GateTimedOut)), Want: "GateFailed (stalled)", Why: said},
		{Scenario: "one runs still", Controller: "waits", Got: plans(gatedIs(rollout.GateCompleted), onRefunds(rollout.GateRunning)), Want: "GateRunning"},
		{Scenario: "a worker of activities only", Controller: "the gate never passes, and nothing says why", Want: "GateFailed (stalled)",
			Got: plans(candidate(), gate(v1alpha1.GateHold), activitiesOnly), Why: "it is said as stalled: the gate has to go, or the worker has to serve workflows"},
		{Scenario: "passed, no current version", Controller: "makes the target current", Want: "WaitingForPromotion; Promote v2 0->100; after the push SetCurrent v2",
			Got: plans(gatedIs(rollout.GateCompleted), noCurrent)},
		{Scenario: "passed, with a current version", Controller: "goes to the first step", Got: plans(gatedIs(rollout.GateCompleted)), Want: "Ramping; Ramp v2 0->10 step 1/2; after the push SetRamp v2 10"},
		{Scenario: "Manual", Controller: "starts the gates all the same", Got: plans(gatedIs(rollout.GateMissing), strategy(v1alpha1.Manual)), Want: "WaitingForPromotion",
			Why: "no gate can stop a person, so none runs"},
		{Scenario: "the gate's run was deleted in mid-ramp", Controller: "starts it again; the ramp stands still", Want: "Ramping; due in 9m0s",
			Got: plans(rampsAt(10, time.Minute), gate(v1alpha1.GateHold), gateIs(rollout.GateMissing, 1)),
			Why: "the first gate is for the first traffic; a step that needs one has its own"},
		{Scenario: "a template that changed under a custom build ID", Controller: "does not run the gate again", Want: "GateRunning; StartGate v2 on [orders]; start Smoke of v2, attempt 2, on orders",
			Got: plans(gatedIs(rollout.GateCompleted), custom("v2"), templateOf("v3"), func(g *given) {
				g.rec.Target.TemplateHash = hash("v3")
				g.rec.Target.Attempt = 2
				g.version("v2").TemplateHash = hash("v3")
			}, gateAnew),
			Why: "other pods are another candidate"},
	}
}

// templateOf gives the spec another template, and leaves its build ID alone.
func templateOf(tag string) change {
	return func(g *given) { g.Spec.Spec.Template = template(tag) }
}

// gateAnew is a read for the gate that is asked for now: it has no run yet.
func gateAnew(g *given) {
	g.Observation.Gates = []rollout.GateRun{{
		WorkflowID: Look(g.Snapshot).pointGate().WorkflowID("orders"), TaskQueue: "orders", State: rollout.GateMissing}}
}

// gateOf gives the spec a first gate that is not started yet, with an input from where the spec says.
func gateOf(set func(*v1alpha1.Gate), known map[string]rollout.GateInput) change {
	return all(candidate(), gate(v1alpha1.GateHold), func(g *given) {
		set(g.Spec.Spec.Rollout.Gate)
		g.GateInputs = known
		gateAnew(g)
	})
}

// startsWith gives what the gate is started with.
func startsWith(set func(*v1alpha1.Gate), known map[string]rollout.GateInput) func(*testing.T) string {
	return func(t *testing.T) string {
		p := decide(t, twice(of(gateOf(set, known))), allowed)
		if len(p.Gates) == 0 {
			return told(p)
		}
		g := p.Gates[0].Gate
		out := fmt.Sprintf("start %s with input %q", g.WorkflowType, g.Input)
		if g.InputFrom != nil {
			out += fmt.Sprintf(" from %s, digest %s", g.InputFrom, g.InputDigest)
		}
		return out
	}
}

// decodes gives what is wrong with a gate as it is written, or "valid".
func decodes(gate string) func(*testing.T) string {
	return func(*testing.T) string {
		_, problems := v1alpha1.Decode("checkout.yaml", []byte(`{apiVersion: temporal.io/v1alpha1, kind: WorkerDeployment, metadata: {name: checkout},
spec: {workerOptions: {connectionRef: {name: c}, temporalNamespace: prod}, template: {spec: {containers: [{name: worker, image: "app:v1"}]}},
rollout: {strategy: AllAtOnce, gate: `+gate+`}}}`))
		if len(problems) == 0 {
			return "valid"
		}
		return fmt.Sprintf("%s: %s", problems[0].Path, problems[0].Message)
	}
}

func gateInputParity() []parity.Case {
	name := corev1.LocalObjectReference{Name: "smoke"}
	inline := func(g *v1alpha1.Gate) { g.Input = []byte(`{"n":1}`) }
	configMap := func(g *v1alpha1.Gate) {
		g.InputFrom = &v1alpha1.GateInputSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: name, Key: "in"}}
	}
	secret := func(g *v1alpha1.Gate) {
		g.InputFrom = &v1alpha1.GateInputSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: name, Key: "in"}}
	}
	const mapKey, secretKey = "key in of ConfigMap payments/smoke", "key in of Secret payments/smoke"
	read := func(key string) map[string]rollout.GateInput {
		return map[string]rollout.GateInput{key: {Digest: "abc"}}
	}
	lost := func(key string) map[string]rollout.GateInput {
		return map[string]rollout.GateInput{key: {Problem: "no such file"}}
	}
	const asFiles = "the bot is given ConfigMaps and Secrets as files, and the decision has the content's hash only"
	return []parity.Case{
		{Scenario: "no gate, no input", Controller: "no input", Got: plans(candidate()), Want: "Ramping; Ramp v2 0->10 step 1/2; after the push SetRamp v2 10"},
		{Scenario: "no input", Controller: "starts without an argument", Got: startsWith(func(*v1alpha1.Gate) {}, nil), Want: `start Smoke with input ""`},
		{Scenario: "inline", Controller: "passes it as one JSON argument", Got: startsWith(inline, nil), Want: `start Smoke with input "{\"n\":1}"`},
		{Scenario: "input and inputFrom", Controller: "refuses", Want: "spec.rollout.gate.inputFrom: only one of input and inputFrom may be given",
			Got: decodes(`{workflowType: Smoke, input: {n: 1}, inputFrom: {secretKeyRef: {name: smoke, key: in}}}`)},
		{Scenario: "inputFrom without a reference", Controller: "refuses", Want: "spec.rollout.gate.inputFrom: one of configMapKeyRef, secretKeyRef is required", Got: decodes(`{workflowType: Smoke, inputFrom: {}}`)},
		{Scenario: "inputFrom with both references", Controller: "refuses", Want: "spec.rollout.gate.inputFrom.configMapKeyRef: only one of configMapKeyRef, secretKeyRef may be given",
			Got: decodes(`{workflowType: Smoke, inputFrom: {secretKeyRef: {name: smoke, key: in}, configMapKeyRef: {name: smoke, key: in}}}`)},
		{Scenario: "ConfigMap, data", Controller: "passes the key's content", Got: startsWith(configMap, read(mapKey)), Want: `start Smoke with input "" from key in of ConfigMap payments/smoke, digest abc`, Why: asFiles},
		{Scenario: "ConfigMap, binary data", Controller: "passes the key's content",
			Want: "the same: in a mounted volume both are files", Tests: []string{"cmd/rampart/cmdutil TestGateInputs"}, Why: asFiles},
		{Scenario: "ConfigMap, missing key", Controller: "PlanGenerationFailed", Got: startsWith(configMap, lost(mapKey)), Want: "PlanGenerationFailed (stalled)"},
		{Scenario: "Secret", Controller: "passes the key's content", Got: startsWith(secret, read(secretKey)), Want: `start Smoke with input "" from key in of Secret payments/smoke, digest abc`, Why: asFiles},
		{Scenario: "Secret, missing key", Controller: "PlanGenerationFailed", Got: startsWith(secret, lost(secretKey)), Want: "PlanGenerationFailed (stalled)"},
		{Scenario: "content that is not JSON", Controller: "the start fails in each cycle",
			Want: "PlanGenerationFailed, before anything starts", Tests: []string{"cmd/rampart/cmdutil TestGateInputs"}, Why: "it is seen where it is read"},
	}
}
