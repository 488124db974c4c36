package render

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// resource is everything that an object of a version is rendered from, beside its template.
type resource struct {
	name              rollout.Name
	buildID           string
	deployment        string // the Deployment's name
	temporalNamespace string
	ignoreHealth      bool // ArgoCD's Application does not go by it
}

// The labels by which an external metric is selected, and what a KEDA trigger of Temporal is told, for one version.
const (
	labelMetricDeployment = "temporal_worker_deployment_name"
	labelMetricBuildID    = "temporal_worker_build_id"
	labelMetricNamespace  = "temporal_namespace"

	triggerTemporal   = "temporal"
	triggerDeployment = "workerDeploymentName"
	triggerBuildID    = "workerDeploymentBuildId"
	triggerNamespace  = "namespace"
)

// metricLabels are the labels by which a version's external metrics are selected. A label's value has no slash, so the
// worker deployment's name has an underscore for it.
func metricLabels(name rollout.Name, buildID, temporalNamespace string) map[string]string {
	return map[string]string{
		labelMetricDeployment: name.Namespace + "_" + name.Name, labelMetricBuildID: buildID,
		labelMetricNamespace: temporalNamespace,
	}
}

// manifest renders the object. Its name, its namespace and the version's labels are set, whatever the template says,
// and what stands empty in it is filled in. There is no prune guard: a scaler must be able to go.
func (r resource) manifest(w rollout.ResourceWrite) (string, error) {
	raw, err := v1alpha1.DecodeJSON(w.Object)
	if err != nil {
		return "", err
	}
	object, ok := raw.(map[string]any)
	if !ok {
		return "", errors.New("not an object")
	}
	meta, err := objectIn(object, "metadata")
	if err != nil {
		return "", err
	}
	labels, err := objectIn(meta, "labels")
	if err != nil {
		return "", fmt.Errorf("metadata.%w", err)
	}
	setAll(labels, rollout.SelectorLabels(r.name.Name, r.buildID))
	if r.ignoreHealth {
		annotations, err := objectIn(meta, "annotations")
		if err != nil {
			return "", fmt.Errorf("metadata.%w", err)
		}
		leaveOutOfHealth(annotations)
	}
	meta["name"], meta["namespace"] = rollout.ResourceName(r.name.Name, w.Template, r.buildID), r.name.Namespace
	if spec, ok := object["spec"].(map[string]any); ok {
		r.fill(spec)
	}
	return manifestText(object)
}

// fill fills in the places of a spec that the in-cluster controller fills in. What has another shape there is of a kind
// that has other fields of these names, and is left alone.
func (r resource) fill(spec map[string]any) {
	r.fillScaleTargets(spec)
	if selector, ok := spec["selector"].(map[string]any); ok {
		if labels, ok := selector["matchLabels"].(map[string]any); ok && len(labels) == 0 {
			setAll(labels, rollout.SelectorLabels(r.name.Name, r.buildID))
		}
	}
	for _, m := range objects(spec["metrics"]) {
		if labels, err := objectAt(m, "external", "metric", "selector", "matchLabels"); err == nil {
			setAll(labels, metricLabels(r.name, r.buildID, r.temporalNamespace))
		}
	}
	for _, t := range objects(spec["triggers"]) {
		metadata, ok := t["metadata"].(map[string]any)
		if !ok || t["type"] != triggerTemporal {
			continue
		}
		for key, value := range map[string]string{
			triggerDeployment: r.name.String(), triggerBuildID: r.buildID, triggerNamespace: r.temporalNamespace,
		} {
			if metadata[key] == "" {
				metadata[key] = value
			}
		}
	}
}

// fillScaleTargets fills in each scaleTargetRef: {}, at any depth.
func (r resource) fillScaleTargets(v any) {
	switch x := v.(type) {
	case map[string]any:
		for key, value := range x {
			if m, ok := value.(map[string]any); ok && key == "scaleTargetRef" && len(m) == 0 {
				m["apiVersion"], m["kind"], m["name"] = "apps/v1", "Deployment", r.deployment
				continue
			}
			r.fillScaleTargets(value)
		}
	case []any:
		for _, item := range x {
			r.fillScaleTargets(item)
		}
	}
}

func objects(v any) []map[string]any {
	list, _ := v.([]any)
	var out []map[string]any
	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// writeResources changes a version's objects and their hashes. Nothing else of the version is touched.
func (f *filer) writeResources(w rollout.VersionWrite, deployment string, hashes map[string]string) error {
	r := resource{name: f.plan.Deployment, buildID: w.BuildID, deployment: deployment,
		temporalNamespace: f.plan.Record.TemporalNamespace,
		ignoreHealth:      f.plan.Environment.CD.ByArgoCD() && !routed(f.plan.Record, w.BuildID)}
	for _, x := range w.Resources {
		file := rollout.ResourceFile(x.Template)
		if !fs.ValidPath(file) || strings.Contains(file, "/") || file == layout.Deployment ||
			file == layout.Kustomization {
			return fmt.Errorf("template %q has no name for a file", x.Template)
		}
		if x.Removes() {
			f.remove(layout.VersionFile(w.BuildID, file))
			delete(hashes, file)
			continue
		}
		data, err := r.manifest(x)
		if err != nil {
			return fmt.Errorf("template %s: %w", x.Template, err)
		}
		hashes[file] = f.put(layout.VersionFile(w.BuildID, file), data)
	}
	return nil
}
