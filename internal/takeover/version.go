package takeover

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

type version struct {
	live   *object
	record v1alpha1.RecordedVersion
	write  rollout.VersionWrite
}

func (w *worker) version(d *object) {
	id := text(d.value, "metadata", "labels", rollout.LabelBuildID)
	if id == "" {
		w.warn(d, "metadata.labels",
			"it has no label %s: it is left alone, as the controller does", rollout.LabelBuildID)
		return
	}
	if !w.check(d, id) {
		return
	}
	created, err := time.Parse(time.RFC3339, text(d.value, "metadata", "creationTimestamp"))
	if err != nil {
		w.fail(d, "metadata.creationTimestamp", "not a time: give what kubectl get -o yaml prints")
		return
	}
	manifest, err := json.Marshal(d.manifest())
	if err != nil {
		w.fail(d, "", "%v", err)
		return
	}
	replicas, guard := w.replicasOf(d)
	w.versions = append(w.versions, version{
		live: d,
		record: v1alpha1.RecordedVersion{BuildID: id, BuildIDFrom: v1alpha1.BuildIDTemplate,
			TemplateHash: w.templateHash(d), ConnectionHash: w.connection.Spec.Hash(),
			Deployment: d.name.Name, CreatedAt: v1alpha1.NewTime(created), Replicas: replicas, Guard: guard},
		write: rollout.VersionWrite{BuildID: id, Op: rollout.TakeOverVersion, Manifest: manifest, Replicas: replicas,
			Guard: guard},
	})
}

// check reports what keeps a Deployment from being taken over as it is.
func (w *worker) check(d *object, id string) bool {
	before := len(w.problems)
	want := rollout.SelectorLabels(w.name.Name, id)
	selector, _ := at(d.value, "spec", "selector", "matchLabels").(map[string]any)
	same := len(selector) == len(want) && at(d.value, "spec", "selector", "matchExpressions") == nil
	for key, value := range want {
		same = same && selector[key] == value
	}
	switch {
	case rollout.CleanBuildID(id) != id:
		w.fail(d, "metadata.labels",
			"the controller gives no build ID such as %q: want letters, digits and inner -, _ or ., at most 63", id)
	case !same:
		w.fail(d, "spec.selector",
			"it does not select the two labels of its version, %s=%s and %s=%s: it is not the controller's",
			rollout.LabelDeploymentName, want[rollout.LabelDeploymentName], rollout.LabelBuildID, id)
	case w.find(id) != nil:
		w.fail(d, "metadata.labels",
			"%s has the build ID %s too: delete the one that is not needed", w.find(id).live, id)
	}
	for _, owner := range objects(d.value, "metadata", "ownerReferences") {
		if owner["controller"] == true && (newKind(text(owner, "kind")) != v1alpha1.KindWorkerDeployment ||
			text(owner, "name") != w.name.Name) {
			w.fail(d, "metadata.ownerReferences", "it is controlled by %s %s", text(owner, "kind"), text(owner, "name"))
		}
	}
	w.checkEnv(d, id)
	return !v1alpha1.HasErrors(w.problems[before:])
}

// checkEnv compares what the containers are told of Temporal with the worker deployment, which it has to be of, and the
// connection.
func (w *worker) checkEnv(d *object, id string) {
	env := map[string]string{}
	containers := objects(d.value, "spec", "template", "spec", "containers")
	for _, c := range containers {
		for _, v := range objects(c, "env") { // the last one of a name counts
			env[text(v, "name")] = text(v, "value")
			if ref := text(v, "valueFrom", "secretKeyRef", "name"); ref != "" {
				env[text(v, "name")] = ref + "/" + text(v, "valueFrom", "secretKeyRef", "key")
			}
		}
	}
	identity := map[string]string{"TEMPORAL_DEPLOYMENT_NAME": w.name.String(), "TEMPORAL_WORKER_BUILD_ID": id,
		"TEMPORAL_NAMESPACE": w.spec.Spec.WorkerOptions.TemporalNamespace}
	for _, name := range slices.Sorted(maps.Keys(identity)) {
		if want := identity[name]; env[name] != want {
			w.fail(d, "spec.template.spec.containers[0].env",
				"%s is %q and not %q, as its worker deployment says: its workers poll for another one. "+
					"Let the controller remove the version first", name, env[name], want)
		}
	}
	c := w.connection.Spec
	want := map[string]string{"TEMPORAL_ADDRESS": c.HostPort, "TEMPORAL_TLS_SERVER_NAME": "", "TEMPORAL_API_KEY": "",
		"secret": ""}
	if c.TLS != nil {
		want["TEMPORAL_TLS_SERVER_NAME"] = c.TLS.ServerName
	}
	switch c.Auth() {
	case v1alpha1.AuthMutualTLS:
		want["secret"] = c.MutualTLSSecretRef.Name
	case v1alpha1.AuthAPIKey:
		want["TEMPORAL_API_KEY"] = c.APIKeySecretRef.Name + "/" + c.APIKeySecretRef.Key
	}
	for _, v := range objects(d.value, "spec", "template", "spec", "volumes") {
		if text(v, "name") == v1alpha1.TLSVolume {
			env["secret"] = text(v, "secret", "secretName")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if env[name] != want[name] {
			w.warn(d, "spec.template.spec",
				"its pods reach Temporal in another way than %s says (%s is %q, not %q). They stay as they are until "+
					"the connection changes", w.connection.Ref().In(w.name.Namespace), strings.Replace(name, "secret",
					"the Secret of volume "+v1alpha1.TLSVolume, 1), env[name], want[name])
			return
		}
	}
}

// replicasOf are the replicas in the manifest, and the guard. What an autoscaler owns is left out, and a version at 0
// is scaled down.
func (w *worker) replicasOf(d *object) (*int32, v1alpha1.Guard) {
	n := int32(1)
	if live, ok := number(d.value, "spec", "replicas"); ok {
		n = int32(live)
	}
	switch {
	case n == 0:
		return &n, v1alpha1.GuardOff
	case w.spec.Spec.Replicas == nil || w.scaled:
		return nil, v1alpha1.GuardOn
	}
	return &n, v1alpha1.GuardOn
}

// templateHash is that of the template which a Deployment was made from, as far as it can be told from its pods. The
// real one is known of the target alone. A spec that asks for an old template again gets another build ID then, which
// is safe.
func (w *worker) templateHash(d *object) string {
	raw, err := json.Marshal(at(d.value, "spec", "template"))
	if err != nil {
		return ""
	}
	var template v1alpha1.PodTemplate
	if err := json.Unmarshal(raw, &template); err != nil {
		w.fail(d, "spec.template", "%v", err)
	}
	return rollout.TemplateHash(v1alpha1.WorkerDeploymentSpec{Template: template})
}
