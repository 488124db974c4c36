package main

import (
	"fmt"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// waitingScalers warns of templates whose objects the versions that run do not get.
func waitingScalers(s specs, d rollout.Snapshot) []v1alpha1.Problem {
	if d.Record.Routing == nil {
		return nil
	}
	var out []v1alpha1.Problem
	for _, t := range d.Resources {
		var without []string
		for _, r := range d.Record.Routing.Spec.Versions {
			if !rollout.Scaled(r.Resources) && t.WaitsForNew(r.Replicas) {
				without = append(without, r.BuildID)
			}
		}
		if t.Problem == nil && len(without) > 0 {
			out = append(out, templateWarning(s, t, "spec.applyTo", fmt.Sprintf("versions of %s that run keep their number of "+
				"replicas and do not get this object: %s. The next version gets it. AllVersions gives it to them too, and "+
				"may start them over from 1 replica", d.Deployment, strings.Join(without, ", "))))
		}
	}
	return out
}

func templateWarning(s specs, t rollout.ResourceTemplate, field, message string) v1alpha1.Problem {
	return v1alpha1.Problem{Severity: v1alpha1.Warning, File: s.show(t.Path), Path: field, Message: t.Name + ": " + message}
}
