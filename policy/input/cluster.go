package input

import (
	"cmp"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// clusterOf are the pods of the versions, by build ID. An unknown cluster has no versions, so that no comparison with
// it is true.
func clusterOf(c *rollout.Cluster) ast.Value {
	o := newObject()
	o.flag("known", c.Known())
	if !c.Known() {
		o.text("problem", cmp.Or(c.Problem, "it was not read"))
		return o.value()
	}
	o.time("observedAt", c.At)
	versions := newObject()
	for i := range c.Versions {
		versions.put(c.Versions[i].BuildID, podsOf(&c.Versions[i]))
	}
	o.put("versions", versions.value())
	return o.value()
}

func podsOf(v *rollout.VersionPods) ast.Value {
	o := newObject()
	o.integer("desired", int64(v.Desired))
	o.integer("ready", int64(v.Ready))
	o.integer("available", int64(v.Available))
	o.integer("pods", int64(v.Pods))
	o.put("problems", list(v.Problems, func(o *object, p rollout.PodProblem) {
		o.text("reason", string(p.Reason))
		o.integer("pods", int64(p.Pods))
		o.text("message", p.Message)
	}))
	return o.value()
}
