package reconcile

import (
	"slices"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// withRecords is a world with what was just committed: while the repository is away, what the bot did itself is no drift.
func withRecords(w *rollout.World, environment string, decisions []Decision) *rollout.World {
	if w == nil {
		return nil
	}
	records := map[rollout.Name]*v1alpha1.RoutingSpec{}
	for _, d := range decisions {
		records[d.Plan.Deployment] = d.Plan.Record
	}
	out := *w
	out.Environments = slices.Clone(w.Environments)
	for i := range out.Environments {
		env := &out.Environments[i]
		if env.Environment.Name != environment {
			continue
		}
		env.Deployments = slices.Clone(env.Deployments)
		for k := range env.Deployments {
			s := &env.Deployments[k]
			if spec := records[s.Deployment]; spec != nil {
				s.Record.Routing = &v1alpha1.Routing{Spec: *spec}
			}
		}
	}
	return &out
}
