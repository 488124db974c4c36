package plan

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/parity"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// connects gives the plan for a ready version whose connection changed from one to another.
func connects(from, to v1alpha1.ConnectionSpec) func(*testing.T) string {
	return plans(func(g *given) {
		g.version("v1").ConnectionHash = from.Hash()
		g.rec.Connection = &v1alpha1.RecordedConnection{Name: g.Connection.Metadata.Name, Spec: from}
		g.Connection.Spec = to
	})
}

func connectionParity() []parity.Case {
	plain := v1alpha1.ConnectionSpec{HostPort: "temporal:7233"}
	mutual := func(name string) v1alpha1.ConnectionSpec {
		c := plain
		c.MutualTLSSecretRef = &v1alpha1.SecretReference{Name: name}
		return c
	}
	key := func(name, key string) v1alpha1.ConnectionSpec {
		c := plain
		c.APIKeySecretRef = &corev1.SecretKeySelector{Key: key}
		c.APIKeySecretRef.Name = name
		return c
	}
	at := func(hostPort, server string, c v1alpha1.ConnectionSpec) v1alpha1.ConnectionSpec {
		c.HostPort = hostPort
		if server != "" {
			c.TLS = &v1alpha1.ConnectionTLS{ServerName: server}
		}
		return c
	}
	const half = "changes its note of the connection, and leaves the pods' environment as it was"
	whole := "environment, references and volumes are rendered for the connection that is"
	const moved, stays = "InvalidSpec (stalled)", "a version stays on its server, or its workflows would lose their workers: it follows once the namespace there is known to be the same"
	return []parity.Case{
		{Scenario: "the version has no Deployment", Controller: "nothing to update", Got: plans(asks("v2")), Want: "WaitingForPollers; CreateVersion v2 x2; render files of v2 x2, guard on"},
		{Scenario: "same", Controller: "nothing", Got: connects(plain, plain), Want: "RolloutComplete"},
		{Scenario: "another certificate Secret", Controller: "updates", Got: connects(mutual("a"), mutual("b")), Want: "RolloutComplete; UpdateVersion v1 Connection x2; reconnect files of v1 x2, guard on"},
		{Scenario: "another address", Controller: "updates", Got: connects(plain, at("other:7233", "", plain)), Want: moved, Why: stays},
		{Scenario: "another address and Secret", Controller: "updates", Got: connects(mutual("a"), at("other:7233", "", mutual("b"))), Want: moved, Why: stays},
		{Scenario: "another server name", Controller: "updates", Got: connects(plain, at("temporal:7233", "temporal.internal", plain)), Want: "RolloutComplete; UpdateVersion v1 Connection x2; reconnect files of v1 x2, guard on"},
		{Scenario: "certificate Secret taken away", Controller: half, Got: connects(mutual("a"), plain), Want: "RolloutComplete; UpdateVersion v1 Connection x2; reconnect files of v1 x2, guard on", Why: whole},
		{Scenario: "certificate to API key", Controller: half, Got: connects(mutual("a"), key("b", "token")), Want: "RolloutComplete; UpdateVersion v1 Connection x2; reconnect files of v1 x2, guard on", Why: whole},
		{Scenario: "another API-key Secret", Controller: half, Got: connects(key("a", "token"), key("b", "token")), Want: "RolloutComplete; UpdateVersion v1 Connection x2; reconnect files of v1 x2, guard on", Why: whole},
		{Scenario: "another key of the API-key Secret", Controller: "is not noticed", Got: connects(key("a", "token"), key("a", "other")), Want: "RolloutComplete; UpdateVersion v1 Connection x2; reconnect files of v1 x2, guard on", Why: "the hash has mode and key in it"},
		{Scenario: "certificate Secret to API-key Secret of the same name", Controller: "is not noticed", Got: connects(mutual("a"), key("a", "token")), Want: "RolloutComplete; UpdateVersion v1 Connection x2; reconnect files of v1 x2, guard on", Why: "the hash has mode and key in it"},
		{Scenario: "a version that is scaled down", Controller: "updates it", Want: "RolloutComplete; due in 4h0m0s",
			Got: plans(promoted(100*time.Hour), drained("v1", 20*time.Hour), scaledDown("v1", 10*time.Hour), noPollers("v1"), staleConnection("v1")),
			Why: "it has no pods; what it needs comes when it is asked for again"},
		{Scenario: "temporalNamespace changed", Controller: "asks about the version in the new namespace, where its pods never come", Want: "InvalidSpec (stalled)",
			Got: plans(func(g *given) { g.Spec.Spec.WorkerOptions.TemporalNamespace = "other" }), Why: "it is refused, with the way to do it: its workflows would be left behind"},
	}
}

func templateParity() []parity.Case {
	withEnv := func(g *given) {
		g.Spec.Spec.Template = v1alpha1.PodTemplate{FirstImage: "app:v1",
			Raw: json.RawMessage(`{"spec":{"containers":[{"env":[{"name":"A","value":"1"}],"image":"app:v1","name":"worker"}]}}`)}
	}
	taken := func(g *given) { g.version("v1").BuildIDFrom = v1alpha1.BuildIDCustom }
	stable := all(custom("v1"), taken)
	const inPlace = "a rolling update in place"
	return []parity.Case{
		{Scenario: "the version has no Deployment", Controller: "nothing to update", Got: plans(asks("v2"), custom("v2")), Want: "WaitingForPollers; CreateVersion v2 x2; render files of v2 x2, guard on"},
		{Scenario: "no custom build ID, another image", Controller: "no drift: it is a new version", Got: plans(asks("v2")), Want: "WaitingForPollers; CreateVersion v2 x2; render files of v2 x2, guard on"},
		{Scenario: "same template", Controller: "nothing", Got: plans(stable), Want: "RolloutComplete"},
		{Scenario: "another image", Controller: inPlace, Got: plans(stable, asks("v2")), Want: "RolloutComplete; UpdateVersion v1 Template x2; render files of v1 x2, guard on"},
		{Scenario: "other replicas only", Controller: "no update, it is scaled", Got: plans(stable, scales(replicas(5))), Want: "RolloutComplete; ScaleVersion v1 x5; edit files of v1 x5, guard on"},
		{Scenario: "another environment variable", Controller: inPlace, Got: plans(stable, withEnv), Want: "RolloutComplete; UpdateVersion v1 Template x2; render files of v1 x2, guard on"},
		{Scenario: "no hash is recorded", Controller: "never updates it", Got: plans(stable, func(g *given) { g.version("v1").TemplateHash = "" }), Want: "RolloutComplete; UpdateVersion v1 Template x2; render files of v1 x2, guard on",
			Why: "a template that may differ is written anew"},
		{Scenario: "while it ramps", Controller: "the ramp goes on over the restart", Want: "WaitingForPollers; ResetRamp v2 10->0 Spec; UpdateVersion v2 Template x2; first ClearRamp; render files of v2 x2, guard on",
			Got: plans(rampsAt(10, time.Minute), custom("v2"), templateOf("v3")), Why: "other pods are another candidate: gate and steps start over"},
		{Scenario: "custom build ID cleared", Controller: "a new version", Got: plans(taken, asks("v2"), func(g *given) { g.version("v1").TemplateHash = hash("v2") }), Want: "WaitingForPollers; CreateVersion v2 x2; render files of v2 x2, guard on"},
		{Scenario: "custom build ID of an older version", Controller: "that version is the target again", Got: plans(promoted(2*time.Hour), wants("v2"), custom("v1"), asks("v1")), Want: "Ramping; Ramp v1 0->10 step 1/2; after the push SetRamp v1 10"},
	}
}

// statusOf gives what Temporal is taken to say of v2, and of what there is beside.
func statusOf(changes ...change) func(*testing.T) string {
	return func(*testing.T) string {
		s := of(changes...)
		return string(Look(s).status(id("v2")))
	}
}

func mappingParity() []parity.Case {
	byServer := func(g *given) { g.listed("v2").FirstActivatedAt = ago(time.Hour) }
	return []parity.Case{
		{Scenario: "current by the routing", Controller: "Current", Got: statusOf(promoted(time.Hour)), Want: "Current"},
		{Scenario: "ramping by the routing", Controller: "Ramping", Got: statusOf(rampsAt(10, time.Minute)), Want: "Ramping"},
		{Scenario: "draining", Controller: "Draining", Got: statusOf(candidate(), drains("v2")), Want: "Draining"},
		{Scenario: "drained", Controller: "Drained", Got: statusOf(candidate(), drained("v2", time.Hour)), Want: "Drained"},
		{Scenario: "current and draining at once", Controller: "Current", Got: statusOf(promoted(time.Hour), drains("v2")), Want: "Current"},
		{Scenario: "listed, nothing else", Controller: "Inactive", Got: statusOf(candidate()), Want: "Inactive"},
		{Scenario: "listed, nothing else, after it had traffic", Controller: "Inactive", Got: statusOf(candidate(), byServer), Want: "Unknown",
			Why: "a version that had traffic and is said to have no drainage is not known: it is kept"},
		{Scenario: "listed as created, by a call and not by a worker", Controller: "Created", Got: statusOf(candidate(), created("v2")), Want: "Created"},
		{Scenario: "not listed", Controller: "NotRegistered", Got: statusOf(candidate(), unlisted("v2")), Want: "NotRegistered"},
		{Scenario: "not listed, after it had traffic", Controller: "NotRegistered, for which it is deleted", Want: "Unknown",
			Got: statusOf(promoted(time.Hour), routes("v1", "", 0, time.Minute), unlisted("v2")), Why: "what should be there and is not is not known: it is kept"},
		{Scenario: "not listed, at 0 with its guard off", Controller: "NotRegistered", Got: statusOf(candidate(), scaledDown("v2", time.Hour), unlisted("v2")), Want: "Gone",
			Why: "that it is gone is what its removal waited for"},
		{Scenario: "ramping at 0%", Controller: "Ramping", Got: statusOf(rampsAt(0, time.Minute)), Want: "Ramping"},
		{Scenario: "gate's workflow ID", Controller: "`test-<deployment>:<build>-<queue>`", Got: gateID(v1alpha1.Gate{WorkflowType: "Smoke"}), Want: "rampart-gate:payments/checkout:v2:first:orders:1:ad3a152fa0c5",
			Why: "the ID has template, point, attempt, type and input in it, so that what changed runs anew"},
		{Scenario: "gate's workflow ID, another type", Controller: "the same ID: it does not run again", Got: gateID(v1alpha1.Gate{WorkflowType: "Load"}), Want: "rampart-gate:payments/checkout:v2:first:orders:1:5290037363f9",
			Why: "another gate is another workflow"},
		{Scenario: "full status", Controller: "target, current and deprecated versions with status, ramp, drained since, gates", Want: "target v2 Ramping 10%, gate Running on orders; current v1 Current; deprecated v0 Drained since 1h0m0s",
			Got: shownStatus(rampsAt(10, time.Minute), inGit("v0"), up("v0"), drained("v0", time.Hour), stepGate(1, v1alpha1.GateHold), stepGateIs(1, rollout.GateRunning))},
		{Scenario: "one version", Controller: "current, which is the target", Got: shownStatus(), Want: "target v1 Current; current v1 Current"},
	}
}

func gateID(g v1alpha1.Gate) func(*testing.T) string {
	return func(*testing.T) string {
		return named(rollout.GateSpec{Deployment: rollout.Name{Namespace: "payments", Name: "checkout"}, BuildID: id("v2"), TemplateHash: hash("v2"),
			Point: "first", Attempt: 1, WorkflowType: g.WorkflowType}.WorkflowID("orders"))
	}
}

// shownStatus gives the versions of status.yaml.
func shownStatus(changes ...change) func(*testing.T) string {
	return func(t *testing.T) string {
		st := decide(t, of(changes...), allowed).Status
		show := func(v v1alpha1.VersionStatus) string {
			out := named(v.BuildID) + " " + v.Status
			if v.RampPercent != nil {
				out += fmt.Sprintf(" %v%%", *v.RampPercent)
			}
			if v.DrainedSince != nil {
				out += " since " + noon.Sub(v.DrainedSince.Time).String()
			}
			for _, g := range v.Gates {
				out += fmt.Sprintf(", gate %s on %s", g.Status, g.TaskQueue)
			}
			return out
		}
		out := []string{"target " + show(*st.TargetVersion), "current " + show(*st.CurrentVersion)}
		for _, v := range st.DeprecatedVersions {
			out = append(out, "deprecated "+show(v))
		}
		return strings.Join(out, "; ")
	}
}

// shows gives all conditions.
func shows(changes ...change) func(*testing.T) string {
	return func(t *testing.T) string {
		var out []string
		for _, c := range decide(t, of(changes...), allowed).Status.Conditions {
			out = append(out, fmt.Sprintf("%s=%s", c.Type, c.Status))
			if len(out) == 1 {
				out[0] += " " + c.Reason
			}
		}
		return strings.Join(out, " ")
	}
}

// reads is a read of Temporal that ended with a problem.
func reads(reason rollout.Reason) change {
	return func(g *given) {
		g.Observation = rollout.Observation{At: noon, Problem: &rollout.Problem{Reason: reason, Message: "as it says"}}
	}
}

func failed(reason rollout.Reason) change {
	return func(g *given) { g.Failure = &rollout.Problem{Reason: reason, Message: "as it says"} }
}

func conditionParity() []parity.Case {
	invalid := func(g *given) {
		g.Problems = []rollout.Problem{{Reason: rollout.InvalidSpec, Message: "line 3"}}
	}
	const noProgress = "neither Ready nor Progressing, "
	return []parity.Case{
		{Scenario: "target current", Controller: "Ready, RolloutComplete", Got: shows(), Want: "Ready=True RolloutComplete Progressing=False Reconciling=False Stalled=False"},
		{Scenario: "target ramping", Controller: "Progressing, Ramping", Got: shows(rampsAt(10, time.Minute)), Want: "Ready=False Ramping Progressing=True Reconciling=True Stalled=False"},
		{Scenario: "target inactive", Controller: "Progressing, WaitingForPromotion", Got: shows(candidate(), strategy(v1alpha1.Manual)), Want: "Ready=False WaitingForPromotion Progressing=True Reconciling=True Stalled=False"},
		{Scenario: "target not registered", Controller: "Progressing, WaitingForPollers", Got: shows(candidate(), unlisted("v2")), Want: "Ready=False WaitingForPollers Progressing=True Reconciling=True Stalled=False"},
		{Scenario: "target not registered for longer than progressDeadlineSeconds", Controller: "Progressing, WaitingForPollers, for ever", Want: "Ready=False WaitingForPollers Progressing=True Reconciling=False Stalled=True",
			Got: shows(candidate(), unlisted("v2"), at(noon.Add(11*time.Minute))), Why: "waiting will not help: it is stalled too"},
		{Scenario: "the object is missing", Controller: "nothing happens", Got: shows(func(g *given) { g.Spec, g.Record.Status = nil, &v1alpha1.WorkerDeployment{Spec: g.Spec.Spec} }), Want: "Ready=False InvalidSpec Progressing=False Reconciling=False Stalled=True",
			Why: "a file that is gone does not ask to remove workers: everything is kept, and it is said"},
		{Scenario: "invalid spec", Controller: noProgress + "InvalidSpec", Got: shows(invalid), Want: "Ready=False InvalidSpec Progressing=False Reconciling=False Stalled=True"},
		{Scenario: "Connection missing", Controller: noProgress + "ConnectionNotFound", Got: shows(func(g *given) { g.Connection = nil }), Want: "Ready=False ConnectionNotFound Progressing=False Reconciling=False Stalled=True"},
		{Scenario: "Connection missing, old kind", Controller: noProgress + "TemporalConnectionNotFound before 1.7.0", Want: "Ready=False TemporalConnectionNotFound Progressing=False Reconciling=False Stalled=True",
			Got: shows(func(g *given) { g.Connection, g.Spec.Kind = nil, v1alpha1.KindTemporalWorkerDeployment })},
		{Scenario: "credentials: Secret missing, of the wrong type, without its keys, expired", Controller: noProgress + "AuthSecretInvalid",
			Got: shows(candidate(), reads(rollout.AuthSecretInvalid)), Want: "Ready=False AuthSecretInvalid Progressing=False Reconciling=False Stalled=True"},
		{Scenario: "connection refused", Controller: noProgress + "TemporalClientCreationFailed", Got: shows(candidate(), reads(rollout.TemporalClientCreationFailed)), Want: "Ready=False TemporalClientCreationFailed Progressing=False Reconciling=False Stalled=True"},
		{Scenario: "describe failed", Controller: noProgress + "TemporalStateFetchFailed", Got: shows(candidate(), reads(rollout.TemporalStateFetchFailed)), Want: "Ready=False TemporalStateFetchFailed Progressing=False Reconciling=False Stalled=True"},
		{Scenario: "planning failed", Controller: noProgress + "PlanGenerationFailed", Want: "Ready=False PlanGenerationFailed Progressing=False Reconciling=False Stalled=True",
			Got: shows(candidate(), gate(v1alpha1.GateHold), stepGate(2, v1alpha1.GateHold), secretInput())},
		{Scenario: "carrying out failed: SetCurrent, SetRamping, a gate's start", Controller: noProgress + "PlanExecutionFailed", Want: "Ready=False PlanExecutionFailed Progressing=False Reconciling=False Stalled=True",
			Got: shows(candidate(), failed(rollout.PlanExecutionFailed))},
		{Scenario: "a failure before, and ready now", Controller: "Ready", Got: shows(failed(rollout.PlanExecutionFailed)), Want: "Ready=True RolloutComplete Progressing=False Reconciling=False Stalled=False"},
		{Scenario: "describe says NotFound", Controller: "empty state, no error", Got: plans(empty), Want: "WaitingForPollers; CreateVersion v1 x2; render files of v1 x2, guard on"},
		{Scenario: "somebody else is the manager", Controller: noProgress + "PlanExecutionFailed", Got: shows(candidate(), foreign()), Want: "Ready=False OwnedByAnother Progressing=False Reconciling=False Stalled=True",
			Why: "a state of its own: nothing failed"},
		{Scenario: "a failed gate", Controller: "Progressing, WaitingForPromotion", Got: shows(gatedIs(rollout.GateFailed)), Want: "Ready=False GateFailed Progressing=False Reconciling=False Stalled=True", Why: "the reason names the gate, and it is stalled: waiting does not help"},
	}
}
