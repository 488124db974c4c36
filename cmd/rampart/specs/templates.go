package specs

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// waitingScalers warns of templates whose objects the versions that run do not get.
func waitingScalers(s cmdutil.Specs, d rollout.Snapshot) []v1alpha1.Problem {
	var out []v1alpha1.Problem
	for _, t := range d.Resources {
		var without []string
		for _, r := range d.Record.Versions() {
			if !rollout.Scaled(r.Resources) && t.WaitsForNew(r.Replicas) {
				without = append(without, r.BuildID)
			}
		}
		if t.Problem == nil && len(without) > 0 {
			out = append(out, templateWarning(s, t, "spec.applyTo",
				fmt.Sprintf("versions of %s that run keep their number of "+
					"replicas and do not get this object: %s. The next version gets it. AllVersions gives it to them "+
					"too, and "+
					"may start them over from 1 replica", d.Deployment, strings.Join(without, ", "))))
		}
	}
	return out
}

const syncWave = "argocd.argoproj.io/sync-wave"

// syncWaves warns of waves with which ArgoCD never applies everything. A wave waits until all of the one before is
// healthy, and takes no commit of the bot meanwhile; a worker deployment gets healthy by these.
func syncWaves(s cmdutil.Specs, d rollout.Snapshot) []v1alpha1.Problem {
	if d.Spec == nil || !d.Environment.CD.ByArgoCD() {
		return nil
	}
	const field = `metadata.annotations["` + syncWave + `"]`
	var out []v1alpha1.Problem
	status, applied := wave(d.Spec.Metadata.Annotations), d.Environment.Status != v1alpha1.StatusOff
	if applied && status < 0 {
		out = append(out, specWarning(s, d, field, "ArgoCD waits for the worker deployment in wave %d, and its "+
			"Deployments come in wave 0: the sync never ends. Use 0 or a later wave", status))
	}
	for _, t := range d.Resources {
		var object struct{ Metadata v1alpha1.ObjectMeta }
		if t.Problem != nil || json.Unmarshal(t.Object, &object) != nil {
			continue // it was said of the template
		}
		switch at := wave(object.Metadata.Annotations); {
		case applied && at > status:
			out = append(out, templateWarning(s, t, "spec.template."+field,
				fmt.Sprintf("ArgoCD waits for %s in wave %d before "+
					"it comes to this object in wave %d: the sync never ends. Use %d here, or %d in the annotations "+
					"of the spec",
					d.Deployment, status, at, status, at)))
		case t.Scales && at < 0:
			out = append(out, templateWarning(s, t, "spec.template."+field,
				fmt.Sprintf("ArgoCD waits for this object in wave %d, "+
					"and the Deployment that it scales comes in wave 0: the sync never ends. Use 0 or a later wave",
					at)))
		}
	}
	return out
}

func templateWarning(s cmdutil.Specs, t rollout.ResourceTemplate, field, message string) v1alpha1.Problem {
	return v1alpha1.Problem{Severity: v1alpha1.Warning, File: s.DisplayPath(t.Path), Path: field,
		Message: t.Name + ": " + message}
}

// wave is the sync wave of an object: 0 where it has none or it cannot be parsed, as for ArgoCD.
func wave(annotations map[string]string) int {
	n, err := strconv.Atoi(annotations[syncWave])
	if err != nil {
		return 0
	}
	return n
}
