package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Health is a word of ArgoCD for the state of an object. Health checks read it from an annotation.
type Health string

// The healths of a worker deployment.
const (
	// Healthy says that the target is current.
	Healthy Health = "Healthy"
	// Progressing says that the rollout goes on by itself.
	Progressing Health = "Progressing"
	// Suspended says that the rollout waits on purpose: for a person, or for what a policy asks for, such as the end of
	// a freeze.
	Suspended Health = "Suspended"
	// Degraded says that something failed.
	Degraded Health = "Degraded"
)

// HealthOf judges a worker deployment, for health checks and for commit statuses. The verdict is that of the status's
// decision; ramp is the health while the target ramps.
func HealthOf(state rollout.State, verdict rollout.Effect, ramp v1alpha1.RampHealth) Health {
	switch state.Reason {
	case rollout.AwaitingApproval, rollout.ManualHold:
		return Suspended
	case rollout.PolicyHold:
		// a policy found the version bad, and no version before it can take its traffic
		if verdict == rollout.RollbackEffect {
			return Degraded
		}
		return Suspended
	}
	switch {
	case state.Stalled:
		return Degraded
	case state.Reason == rollout.RolloutComplete, state.Reason == rollout.Ramping && ramp == v1alpha1.RampHealthy:
		return Healthy
	}
	return Progressing
}

// Verdict is that of a status's decision; "" where there is no decision.
func Verdict(status *v1alpha1.WorkerDeploymentStatus) rollout.Effect {
	if status == nil || status.Decision == nil {
		return ""
	}
	return rollout.Effect(status.Decision.Verdict)
}

// ignoreDraining keeps objects of versions that get no new workflows out of the health of ArgoCD's Application. The
// image of an old version may be gone, and with its pods the metrics of its autoscaler. ArgoCD would then show the
// rollout of a new version as degraded. The change goes with the commit that moves the traffic.
func (f *filer) ignoreDraining() error {
	changed := HealthChanges(f.plan, f.record)
	for i, v := range f.versions {
		if !slices.Contains(changed, v.BuildID) {
			continue
		}
		files := []string{layout.Deployment}
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
				f.versions[i].Files[name] = f.put(layout.VersionFile(v.BuildID, name), edited)
			}
		}
	}
	return nil
}

// HealthChanges gives the build IDs of recorded versions whose objects, with a plan, begin or cease to count for the
// health of ArgoCD's Application. They are in the order of the record. The manifests of these versions are edited.
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

// routed reports whether a version gets new workflows, or shall get them, by what the bot decided: what a person
// desires may be refused yet.
func routed(r *v1alpha1.RoutingSpec, buildID string) bool {
	to := r.Desired
	if r.Decided != nil {
		to = *r.Decided
	}
	return buildID == to.Current || to.Ramping != nil && buildID == to.Ramping.BuildID ||
		r.Target != nil && buildID == r.Target.BuildID
}

// content is a file of a version as it is after the changes so far. It is false where it is not as the bot wrote it, or
// not known.
func (f *filer) content(v v1alpha1.RecordedVersion, name string) (string, bool) {
	file := layout.VersionFile(v.BuildID, name)
	if c, changed := f.changes[file]; changed {
		return c.Data, c.Data != ""
	}
	old := f.record.Files[file]
	return old.Data, old.Data != "" && old.Hash == v.Files[name]
}

// ignoreHealth sets or takes away the annotation for ArgoCD. What a person wrote stays.
func ignoreHealth(manifest string, ignore bool) (string, error) {
	if ignore == strings.Contains(manifest, rollout.AnnotationIgnoresHealth) {
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
		if !leaveOutOfHealth(annotations) {
			return manifest, nil
		}
	} else {
		delete(annotations, rollout.AnnotationArgoIgnoreHealth)
		delete(annotations, rollout.AnnotationIgnoresHealth)
	}
	return yamlText(d)
}

// leaveOutOfHealth adds the annotation for ArgoCD, and notes that the bot did; false: a person wrote it.
func leaveOutOfHealth(annotations map[string]any) bool {
	if _, own := annotations[rollout.AnnotationArgoIgnoreHealth]; own {
		return false
	}
	annotations[rollout.AnnotationArgoIgnoreHealth] = "true"
	annotations[rollout.AnnotationIgnoresHealth] = "true"
	return true
}
