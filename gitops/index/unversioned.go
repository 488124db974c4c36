package index

import (
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// unusable adds a spec that has errors. One without an API version may be a patch: settleUnversioned decides.
func (e *environment) unusable(doc *v1alpha1.Document, s *specAt) {
	switch {
	case doc.APIVersion == "":
		e.unversioned = append(e.unversioned, s)
	case s.name.Namespace != "":
		e.specs = append(e.specs, s)
	}
}

// settleUnversioned decides on documents of a spec's kind without an API version. Where a spec has the name of one, it
// is a patch of that, such as kustomize's, and warned of; else it is a spec that cannot be used. A patch needs no
// namespace.
func (e *environment) settleUnversioned() {
	if len(e.unversioned) == 0 {
		return
	}
	specs := map[rollout.Name]bool{}
	for _, s := range e.specs {
		specs[s.name], specs[rollout.Name{Name: s.name.Name}] = true, true
	}
	harmless := map[v1alpha1.Problem]bool{}
	for _, s := range e.unversioned {
		switch {
		case specs[s.name]:
			for _, p := range s.problems {
				harmless[p] = true
			}
		case s.name.Namespace != "":
			e.specs = append(e.specs, s)
		}
	}
	for i, p := range e.world.Problems {
		if harmless[p] {
			e.world.Problems[i].Severity = v1alpha1.Warning
		}
	}
}
