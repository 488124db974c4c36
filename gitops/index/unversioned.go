package index

import (
	"slices"

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
// is a patch of that, such as kustomize's, and warned of; else it is a spec that cannot be used.
func (e *environment) settleUnversioned() {
	var alone []*specAt
	for _, s := range e.unversioned {
		if slices.ContainsFunc(e.specs, func(other *specAt) bool { return isPatchOf(s.name, other.name) }) {
			e.warnOfPatch(s)
		} else if s.name.Namespace != "" {
			alone = append(alone, s)
		}
	}
	e.specs = append(e.specs, alone...)
}

// isPatchOf says whether a patch with a name, which needs no namespace, can be one of a spec.
func isPatchOf(patch, spec rollout.Name) bool {
	return patch.Name == spec.Name && (patch.Namespace == "" || patch.Namespace == spec.Namespace)
}

// warnOfPatch makes warnings of the problems of a patch.
func (e *environment) warnOfPatch(s *specAt) {
	for i := range e.world.Problems {
		p := &e.world.Problems[i]
		if p.File == s.file.path && slices.Contains(s.problems, *p) {
			p.Severity = v1alpha1.Warning
		}
	}
}
