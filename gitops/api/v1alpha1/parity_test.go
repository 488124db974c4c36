package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/parity"
)

// TestParity goes through the in-cluster controller's scenarios about what may be written.
func TestParity(t *testing.T) {
	for section, cases := range map[string][]parity.Case{
		"connection-hash": connectionHashParity(), "validation": validationParity(), "resource-templates": resourceTemplateParity(),
	} {
		t.Run(section, func(t *testing.T) { parity.Compare(t, section, cases) })
	}
}

// hashes says whether two connections have the same hash.
func hashes(a, b v1alpha1.ConnectionSpec) func(*testing.T) string {
	return func(*testing.T) string {
		if a.Hash() == b.Hash() {
			return "the same hash"
		}
		return "another hash"
	}
}

func connectionHashParity() []parity.Case {
	plain := v1alpha1.ConnectionSpec{HostPort: "a:1"}
	with := func(change func(*v1alpha1.ConnectionSpec)) v1alpha1.ConnectionSpec {
		c := plain
		change(&c)
		return c
	}
	server := func(name string) v1alpha1.ConnectionSpec {
		return with(func(c *v1alpha1.ConnectionSpec) { c.TLS = &v1alpha1.ConnectionTLS{ServerName: name} })
	}
	mutual := func(secret string) v1alpha1.ConnectionSpec {
		return with(func(c *v1alpha1.ConnectionSpec) {
			c.MutualTLSSecretRef = &v1alpha1.SecretReference{Name: secret}
		})
	}
	key := func(secret, key string) v1alpha1.ConnectionSpec {
		return with(func(c *v1alpha1.ConnectionSpec) {
			c.APIKeySecretRef = &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: key}
		})
	}
	const apart = "mode, Secret and key are kept apart in what is hashed"
	return []parity.Case{
		{Scenario: "deterministic", Controller: "the same", Got: hashes(mutual("x"), mutual("x")), Want: "the same hash"},
		{Scenario: "another address", Controller: "differs", Got: hashes(plain, v1alpha1.ConnectionSpec{HostPort: "b:1"}), Want: "another hash"},
		{Scenario: "another server name", Controller: "differs", Got: hashes(server("x"), server("y")), Want: "another hash"},
		{Scenario: "another certificate Secret", Controller: "differs", Got: hashes(mutual("x"), mutual("y")), Want: "another hash"},
		{Scenario: "another API-key Secret", Controller: "differs", Got: hashes(key("x", "k"), key("y", "k")), Want: "another hash"},
		{Scenario: "Secret or none", Controller: "differs", Got: hashes(plain, mutual("x")), Want: "another hash"},
		{Scenario: "empty server name or none", Controller: "the same", Got: hashes(plain, server("")), Want: "the same hash"},
		{Scenario: "no address", Controller: "an empty hash", Want: "spec.hostPort: is required", Why: "there is no connection without an address",
			Got: decodes("{apiVersion: temporal.io/v1alpha1, kind: Connection, metadata: {name: a}, spec: {}}")},
		{Scenario: "another key of the same Secret", Controller: "the same", Got: hashes(key("x", "k"), key("x", "l")), Want: "another hash", Why: apart},
		{Scenario: "certificate Secret or API-key Secret of one name", Controller: "the same", Got: hashes(mutual("x"), key("x", "k")), Want: "another hash", Why: apart},
		{Scenario: "server name or certificate Secret of one name", Controller: "the same", Got: hashes(server("x"), mutual("x")), Want: "another hash", Why: apart},
	}
}

// decodes gives what is said of a file, "valid" if nothing is.
func decodes(text string) func(*testing.T) string {
	return func(*testing.T) string {
		_, problems := v1alpha1.Decode("a.yaml", []byte(text))
		if len(problems) == 0 {
			return "valid"
		}
		var out []string
		for _, p := range problems {
			out = append(out, strings.TrimPrefix(fmt.Sprintf("%s: %s: %s", strings.ToLower(string(p.Severity)), p.Path, p.Message), "error: "))
		}
		return strings.Join(out, "; ")
	}
}

// deployment is a spec with changes, each an old and a new text.
func deployment(changes ...string) string {
	const text = `{apiVersion: temporal.io/v1alpha1, kind: WorkerDeployment, metadata: {name: checkout, namespace: payments}, spec: {
  workerOptions: {connectionRef: {name: production}, temporalNamespace: payments},
  template: {spec: {containers: [{name: worker, image: "app:v1"}]}},
  rollout: {strategy: Progressive, steps: [{rampPercentage: 10, pauseDuration: 30s}, {rampPercentage: 50, pauseDuration: 30s}]}}}`
	return strings.NewReplacer(changes...).Replace(text)
}

func validationParity() []parity.Case {
	const steps = "[{rampPercentage: 10, pauseDuration: 30s}, {rampPercentage: 50, pauseDuration: 30s}]"
	const refused = "refused"
	gate := func(text string) string { return deployment("Progressive,", "Progressive, gate: "+text+",") }
	many := "[" + strings.Repeat("{rampPercentage: 1, pauseDuration: 30s}, ", 20) + "{rampPercentage: 2, pauseDuration: 30s}]"
	return []parity.Case{
		{Scenario: "valid", Controller: "accepted", Got: decodes(deployment()), Want: "valid"},
		{Scenario: "another kind of object", Controller: "refused by the webhook: wrong type", Got: decodes(deployment("kind: WorkerDeployment", "kind: Worker")), Want: `warning: kind: kind "Worker" is not known, and left alone`,
			Why: "a repository holds other objects too, and which they are is not ours to say"},
		{Scenario: "ramps that do not increase", Controller: refused, Got: decodes(deployment("rampPercentage: 50", "rampPercentage: 10")), Want: "spec.rollout.steps[1].rampPercentage: 10 is not above the step before (10)"},
		{Scenario: "ramp of 0", Controller: refused, Got: decodes(deployment("rampPercentage: 10", "rampPercentage: 0")), Want: "spec.rollout.steps[0].rampPercentage: 0 is not above 0 and below 100"},
		{Scenario: "ramp of 100", Controller: "refused, though its documentation shows one", Got: decodes(deployment("rampPercentage: 50", "rampPercentage: 100")), Want: "spec.rollout.steps[1].rampPercentage: 100: the promotion follows the last step by itself; remove this step"},
		{Scenario: "ramp with a fraction", Controller: refused, Got: decodes(deployment("rampPercentage: 10", "rampPercentage: 0.5")), Want: "valid", Why: "Temporal can do it"},
		{Scenario: "sunset left out", Controller: "refused: the object has to be there", Got: decodes(deployment()), Want: "valid", Why: "it is the defaults, 1h and 24h, as if it were empty"},
		{Scenario: "defaults", Controller: "scaledownDelay 1h, deleteDelay 24h", Want: "scaledownDelay 1h, deleteDelay 24h", Got: func(t *testing.T) string {
			documents, _ := v1alpha1.Decode("a.yaml", []byte(deployment("rollout:", "sunset: {}, rollout:")))
			s := documents[0].Object.(*v1alpha1.WorkerDeployment).Spec.Sunset
			return fmt.Sprintf("scaledownDelay %s, deleteDelay %s", s.ScaledownDelay, s.DeleteDelay)
		}},
		{Scenario: "gate with input and inputFrom", Controller: "refused by the webhook, which is off by default", Want: "spec.rollout.gate.inputFrom: only one of input and inputFrom may be given",
			Got: decodes(gate("{workflowType: Smoke, input: 1, inputFrom: {secretKeyRef: {name: a, key: b}}}"))},
		{Scenario: "gate with both references", Controller: refused, Want: "spec.rollout.gate.inputFrom.configMapKeyRef: only one of configMapKeyRef, secretKeyRef may be given",
			Got: decodes(gate("{workflowType: Smoke, inputFrom: {secretKeyRef: {name: a, key: b}, configMapKeyRef: {name: a, key: b}}}"))},
		{Scenario: "gate with an empty workflow type", Controller: "accepted", Got: decodes(gate(`{workflowType: ""}`)), Want: "spec.rollout.gate.workflowType: must not be empty", Why: "no workflow could start"},
		{Scenario: "an update", Controller: "checked like a new object", Want: "each commit is read anew", Tests: []string{"gitops TestReadAgainIsReadAnew"}},
		{Scenario: "name of 64 characters", Controller: refused, Got: decodes(deployment("name: checkout", "name: "+strings.Repeat("a", 64))), Want: `metadata.name: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" is not a name: lower-case letters, digits and inner hyphens, at most 63 characters`},
		{Scenario: "name with a dot", Controller: "accepted; its workers can never register", Got: decodes(deployment("name: checkout", "name: check.out")), Want: `metadata.name: "check.out": Temporal refuses a worker deployment's name with a dot or a colon, or with __ at its beginning`,
			Why: "Temporal refuses such a name"},
		{Scenario: "Progressive without steps", Controller: refused, Got: decodes(deployment(steps, "[]")), Want: "spec.rollout: strategy Progressive needs steps"},
		{Scenario: "21 steps", Controller: refused, Got: decodes(deployment(steps, many)), Want: "spec.rollout.steps: more than 20 steps"},
		{Scenario: "pause of 29s", Controller: "refused: at least 30s", Got: decodes(deployment("pauseDuration: 30s}]", "pauseDuration: 29s}]")), Want: "valid",
			Why: "from 1s on: how fast is safe is policy's to say"},
		{Scenario: "pause below 1s", Controller: "refused: at least 30s", Got: decodes(deployment("pauseDuration: 30s}]", "pauseDuration: 999ms}]")), Want: `spec.rollout.steps[1].pauseDuration: "999ms" is shorter than 1s`},
		{Scenario: "sunset delay of 1d", Controller: "accepted; then no worker deployment can be listed any more", Want: `spec.sunset.scaledownDelay: duration "1d" is not of the form 30s, 10m or 1h30m`,
			Got: decodes(deployment("rollout:", "sunset: {scaledownDelay: 1d}, rollout:")), Why: "a duration has no unit d"},
		{Scenario: "negative sunset delay", Controller: "accepted", Got: decodes(deployment("rollout:", "sunset: {deleteDelay: -1h}, rollout:")), Want: `spec.sunset.deleteDelay: "-1h" is negative`, Why: "it has no meaning"},
		{Scenario: "negative replicas", Controller: "accepted; scaling fails", Got: decodes(deployment("rollout:", "replicas: -1, rollout:")), Want: "spec.replicas: must not be negative", Why: "Kubernetes refuses it"},
		{Scenario: "unknown field", Controller: "taken away without a word", Got: decodes(deployment("rollout:", "replica: 3, rollout:")), Want: "spec.replica: unknown field", Why: "it is a mistake"},
		{Scenario: "variable that the controller sets", Controller: "accepted: it is there twice, and a changed connection edits the wrong one", Want: "spec.template.spec.containers[0].env[0].name: TEMPORAL_ADDRESS is set by Rampart: remove it here",
			Got: decodes(deployment(`image: "app:v1"`, `image: "app:v1", env: [{name: TEMPORAL_ADDRESS, value: a}]`)), Why: "there can be one only"},
		{Scenario: "custom build ID with a slash", Controller: refused, Got: decodes(deployment("temporalNamespace: payments", "temporalNamespace: payments, unsafeCustomBuildID: a/b")), Want: `spec.workerOptions.unsafeCustomBuildID: "a/b" is not a build ID: letters, digits and inner . _ -`},
		{Scenario: "connection with both kinds of credentials", Controller: refused, Want: "spec.mutualTLSSecretRef: only one of mutualTLSSecretRef, apiKeySecretRef may be given",
			Got: decodes("{apiVersion: temporal.io/v1alpha1, kind: Connection, metadata: {name: a}, spec: {hostPort: 'a:1', mutualTLSSecretRef: {name: b}, apiKeySecretRef: {name: c, key: d}}}")},
		{Scenario: "progressDeadlineSeconds", Controller: "accepted and ignored", Want: "written to the Deployment, and how long workers may take to come",
			Tests: []string{"render TestGolden", "internal/plan TestDeadlineOfWorkers"}, Why: "it says what it says"},
	}
}

// template is a resource template with a body below spec.template.spec.
func template(kind, body string) string {
	return `{apiVersion: temporal.io/v1alpha1, kind: WorkerResourceTemplate, metadata: {name: hpa, namespace: payments},
  spec: {workerDeploymentRef: {name: checkout}, template: {apiVersion: autoscaling/v2, kind: ` + kind + `, spec: ` + body + `}}}`
}

func resourceTemplateParity() []parity.Case {
	const refused = "refused"
	hpa := func(body string) func(*testing.T) string { return decodes(template("HorizontalPodAutoscaler", body)) }
	edit := func(pairs ...string) func(*testing.T) string {
		return decodes(strings.NewReplacer(pairs...).Replace(template("HorizontalPodAutoscaler", "{scaleTargetRef: {}}")))
	}
	metric := func(label string) string {
		return "{scaleTargetRef: {}, metrics: [{type: External, external: {metric: {name: backlog, selector: {matchLabels: {" + label + "}}}}}]}"
	}
	trigger := func(pairs string) string {
		return "{scaleTargetRef: {}, minReplicaCount: 1, triggers: [{type: temporal, metadata: {" + pairs + "}}]}"
	}
	return []parity.Case{
		{Scenario: "valid", Controller: "accepted", Got: hpa("{scaleTargetRef: {}, minReplicas: 1, maxReplicas: 5}"), Want: "valid"},
		{Scenario: "no template", Controller: refused, Got: decodes(`{apiVersion: temporal.io/v1alpha1, kind: WorkerResourceTemplate, metadata: {name: hpa}, spec: {workerDeploymentRef: {name: checkout}}}`), Want: "spec.template: is required"},
		{Scenario: "a template that is a list", Controller: refused, Want: "spec.template: expected an object, got a list",
			Got: decodes(`{apiVersion: temporal.io/v1alpha1, kind: WorkerResourceTemplate, metadata: {name: hpa}, spec: {workerDeploymentRef: {name: checkout}, template: [1]}}`)},
		{Scenario: "no apiVersion", Controller: refused, Got: edit("apiVersion: autoscaling/v2, ", ""), Want: "spec.template.apiVersion: is required"},
		{Scenario: "no kind", Controller: refused, Got: edit("kind: HorizontalPodAutoscaler, ", ""), Want: "spec.template.kind: is required"},
		{Scenario: "a name of its own", Controller: refused, Got: edit("kind: HorizontalPodAutoscaler, ", "kind: HorizontalPodAutoscaler, metadata: {name: a}, "), Want: "spec.template.metadata.name: is made up for every version: remove it"},
		{Scenario: "a namespace of its own", Controller: refused, Got: edit("kind: HorizontalPodAutoscaler, ", "kind: HorizontalPodAutoscaler, metadata: {namespace: a}, "), Want: "spec.template.metadata.namespace: is made up for every version: remove it"},
		{Scenario: "minReplicas 0", Controller: refused, Got: hpa("{scaleTargetRef: {}, minReplicas: 0}"), Want: "spec.template.spec.minReplicas: 0 is not possible: a version at 0 replicas loses its pollers"},
		{Scenario: "scaleTargetRef that is filled in", Controller: refused, Got: hpa("{scaleTargetRef: {name: a}}"), Want: "spec.template.spec.scaleTargetRef: is filled in for every version: write {}"},
		{Scenario: "the same in a list", Controller: "accepted: the check does not look there", Got: hpa("{scaleTargetRef: {}, a: [{scaleTargetRef: {name: a}}]}"), Want: "spec.template.spec.a[0].scaleTargetRef: is filled in for every version: write {}", Why: "lists are looked at where they are filled in too"},
		{Scenario: "scaleTargetRef without a value", Controller: "taken away without a word", Got: hpa("{scaleTargetRef: null}"), Want: "warning: spec.template.spec.scaleTargetRef: is filled in for every version only where it is {}, and here is nothing", Why: "nothing would be filled in"},
		{Scenario: "matchLabels that are filled in", Controller: refused, Got: hpa("{scaleTargetRef: {}, selector: {matchLabels: {a: b}}}"), Want: "spec.template.spec.selector.matchLabels: is filled in for every version: write {}"},
		{Scenario: "empty matchLabels", Controller: "accepted", Got: hpa("{scaleTargetRef: {}, selector: {matchLabels: {}}}"), Want: "valid"},
		{Scenario: "metric label temporal_worker_build_id", Controller: refused, Got: hpa(metric("temporal_worker_build_id: a")), Want: "spec.template.spec.metrics[0].external.metric.selector.matchLabels.temporal_worker_build_id: is filled in for every version: remove it"},
		{Scenario: "metric label temporal_worker_deployment_name", Controller: refused, Got: hpa(metric("temporal_worker_deployment_name: a")), Want: "spec.template.spec.metrics[0].external.metric.selector.matchLabels.temporal_worker_deployment_name: is filled in for every version: remove it"},
		{Scenario: "metric label temporal_namespace", Controller: refused, Got: hpa(metric("temporal_namespace: a")), Want: "spec.template.spec.metrics[0].external.metric.selector.matchLabels.temporal_namespace: is filled in for every version: remove it"},
		{Scenario: "another metric label", Controller: "accepted", Got: hpa(metric("task_type: Activity")), Want: "valid"},
		{Scenario: "KEDA trigger with a build ID", Controller: refused, Got: decodes(template("ScaledObject", trigger("workerDeploymentBuildId: a"))), Want: `spec.template.spec.triggers[0].metadata.workerDeploymentBuildId: is filled in for every version: write ""`},
		{Scenario: "KEDA trigger with places to fill in", Controller: "accepted", Want: "valid",
			Got: decodes(template("ScaledObject", trigger(`workerDeploymentName: "", workerDeploymentBuildId: "", namespace: ""`)))},
		{Scenario: "old reference", Controller: "accepted with a warning", Got: edit("workerDeploymentRef", "temporalWorkerDeploymentRef"), Want: "valid", Why: "both names are read alike, as long as anyone writes the old one"},
		{Scenario: "both references", Controller: refused, Got: edit("workerDeploymentRef: {name: checkout}", "workerDeploymentRef: {name: checkout}, temporalWorkerDeploymentRef: {name: checkout}"), Want: "spec.workerDeploymentRef: only one of workerDeploymentRef, temporalWorkerDeploymentRef may be given"},
		{Scenario: "no reference", Controller: refused, Got: edit("workerDeploymentRef: {name: checkout}, ", ""), Want: "spec: one of workerDeploymentRef, temporalWorkerDeploymentRef is required"},
		{Scenario: "kind that is not allowed; no kinds allowed; upper and lower case", Controller: "allow-list of kinds, HorizontalPodAutoscaler by default", Want: "a problem of the template's file; nothing is made from it", Tests: []string{"gitops TestReadTemplates"},
			Why: "kinds are the bot's own setting: HorizontalPodAutoscaler, PodDisruptionBudget and ScaledObject by default"},
		{Scenario: "reference changed", Controller: "refused: immutable", Want: parity.NoCounterpart, Why: "a commit has no object before it; the files of each worker deployment are its own"},
		{Scenario: "cluster-scoped kind, unknown kind", Controller: "refused by asking the API server", Want: parity.NoCounterpart, Why: "there is no API server to ask"},
		{Scenario: "may the requester, may the controller create it", Controller: "asked by SubjectAccessReview", Want: parity.NoCounterpart,
			Why: "who may write to the repository is the repository's to say, and the CD tool has its own rights"},
		{Scenario: "delete", Controller: "checked for rights only", Want: parity.NoCounterpart, Why: "a file that is deleted is a file that is not read"},
		{Scenario: "real admission: accepted, refused, the reference kept, rights of requester and controller", Controller: "five cases with an API server", Want: parity.NoCounterpart,
			Why: "there is no admission"},
	}
}
