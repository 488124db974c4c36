package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// health is a word that ArgoCD has for the state of an object. The health checks of ArgoCD and Flux read it from an annotation.
type health string

const (
	healthy     health = "Healthy"
	progressing health = "Progressing"
	// suspended waits for a person.
	suspended health = "Suspended"
	degraded  health = "Degraded"
)

// healthOf judges a worker deployment by its conditions; ramp is the health of one whose target ramps.
func healthOf(conditions []v1alpha1.Condition, ramp v1alpha1.RampHealth) health {
	stalled := false
	for _, c := range conditions {
		stalled = stalled || c.Type == v1alpha1.ConditionStalled && c.Status == v1alpha1.True
	}
	for _, c := range conditions {
		if c.Type != v1alpha1.ConditionReady {
			continue
		}
		switch reason := rollout.Reason(c.Reason); {
		case c.Status == v1alpha1.True:
			return healthy
		case reason == rollout.AwaitingApproval || reason == rollout.ManualHold:
			return suspended
		case stalled:
			return degraded
		case reason == rollout.Ramping && ramp == v1alpha1.RampHealthy:
			return healthy
		}
	}
	return progressing
}

// ignoreDraining keeps the objects of versions that get no new workflows out of the health of ArgoCD's Application:
// the image of an old one may be gone, and with its pods the metrics of its autoscaler, which would show the rollout
// of a new one as degraded. It goes with the commit that moves the traffic.
func (f *filer) ignoreDraining() error {
	changed := HealthChanges(f.plan, f.record)
	for i, v := range f.versions {
		if !slices.Contains(changed, v.BuildID) {
			continue
		}
		files := []string{deploymentFile}
		for _, p := range v.Pools {
			files = append(files, rollout.PoolFile(p.Name))
		}
		for _, r := range v.Resources {
			files = append(files, rollout.ResourceFile(r.Template))
		}
		for _, name := range files {
			data, ours := f.content(v, name)
			if !ours {
				continue
			}
			edited, err := ignoreHealth(data, !routed(f.plan.Record, v.BuildID))
			if err != nil {
				return fmt.Errorf("version %q: %s: %w", v.BuildID, name, err)
			}
			if edited != data {
				f.versions[i].Files = cloneHashes(f.versions[i].Files)
				f.versions[i].Files[name] = f.put(versionDir(v.BuildID)+name, edited)
			}
		}
	}
	return nil
}

// HealthChanges gives the build IDs of recorded versions whose objects begin to count for the health of ArgoCD's
// Application with a plan, or cease to, in the order of the record. Their manifests are edited.
func HealthChanges(plan rollout.Plan, record rollout.Record) []string {
	if record.Routing == nil || plan.Record == nil || !plan.Environment.CD.ByArgoCD() {
		return nil
	}
	was := &record.Routing.Spec
	var out []string
	for _, v := range was.Versions {
		if routed(was, v.BuildID) != routed(plan.Record, v.BuildID) {
			out = append(out, v.BuildID)
		}
	}
	return out
}

// routed reports whether a version gets new workflows, or shall get them.
func routed(r *v1alpha1.RoutingSpec, buildID string) bool {
	return buildID == r.Desired.Current || r.Desired.Ramping != nil && buildID == r.Desired.Ramping.BuildID || r.Target != nil && buildID == r.Target.BuildID
}

// content is a file of a version as it is after the changes so far; false where it is not as the bot wrote it, or not known.
func (f *filer) content(v v1alpha1.RecordedVersion, name string) (string, bool) {
	file := versionDir(v.BuildID) + name
	if c, changed := f.changes[file]; changed {
		return c.Data, c.Data != ""
	}
	old := f.record.Files[file]
	return old.Data, old.Data != "" && old.Hash == v.Files[name]
}

// ignoreHealth sets or takes away the annotation for ArgoCD. One that the pod template has, from which the Deployment's was copied, stays.
func ignoreHealth(manifest string, ignore bool) (string, error) {
	if ignore == strings.Contains(manifest, rollout.AnnotationArgoIgnoreHealth) {
		return manifest, nil
	}
	d, err := parseManifest(manifest)
	if err != nil {
		return "", err
	}
	annotations, err := annotationsOf(d)
	if err != nil {
		return "", err
	}
	if ignore {
		annotations[rollout.AnnotationArgoIgnoreHealth] = "true"
		return yamlText(d)
	}
	if template, err := objectAt(d, "spec", "template"); err == nil { // an autoscaler has none
		if _, own := podAnnotations(template)[rollout.AnnotationArgoIgnoreHealth]; own {
			return manifest, nil
		}
	}
	delete(annotations, rollout.AnnotationArgoIgnoreHealth)
	return yamlText(d)
}
