package plan

import (
	"slices"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// The record says which files the spec, its connection and its templates were in: where another file has an object of
// the same name, the one there counts. A path does not change the record by itself, and is written with the next
// change.

// connectionPath is the file of the connection that the versions are made with; "": it is not known.
func (r *resolver) connectionPath() string {
	switch was := r.rec.Connection; {
	case r.connection == r.s.Connection:
		return r.s.ConnectionPath
	case was != nil:
		return was.Path
	}
	return ""
}

// nextTemplates writes down the files of the templates that versions have objects of.
func (r *resolver) nextTemplates(next *v1alpha1.RoutingSpec) {
	for i := range next.Versions {
		ver := &next.Versions[i]
		ver.Resources = slices.Clone(ver.Resources)
		for k := range ver.Resources {
			have := &ver.Resources[k]
			at := slices.IndexFunc(r.s.Resources, func(t rollout.ResourceTemplate) bool {
				return t.Name == have.Template
			})
			if at >= 0 && r.s.Resources[at].Problem == nil && !r.s.Resources[at].Copied {
				have.Path = r.s.Resources[at].Path
			}
		}
	}
}
