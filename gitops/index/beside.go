package index

import (
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// beside notes a file with something that specs stand on.
func (e *environment) beside(f *found) {
	if e.holds == nil {
		e.holds = map[string]rollout.FileAt{}
	}
	e.holds[f.path] = rollout.FileAt{Path: f.path, Blob: f.hash}
}

// standsOn says which files hold what a spec stands on beside its own. If none of several equal copies of a
// connection is recorded, all of them count.
func (e *environment) standsOn(s *rollout.Snapshot) {
	keys := make([]string, 0, 1+len(s.Resources))
	if c := s.Connection; c != nil && s.ConnectionPath != "" {
		keys = append(keys, s.ConnectionPath)
	} else if c != nil {
		for _, at := range e.connections[connectionKey(c.Ref(), s.Deployment.Namespace)].at {
			keys = append(keys, at.file)
		}
	}
	for _, t := range s.Resources {
		keys = append(keys, t.Path)
	}
	s.Git.Beside, s.Git.Inputs = nil, e.inputs(s.SpecPath)
	for _, key := range keys {
		f, ok := e.holds[key]
		if !ok || f.Path == s.SpecPath {
			continue
		}
		all := e.inputs(key)
		if all == nil {
			all = []rollout.FileAt{f}
		}
		for _, f := range all {
			if !slices.Contains(s.Git.Beside, f) && !slices.Contains(s.Git.Inputs, f) {
				s.Git.Beside = append(s.Git.Beside, f)
			}
		}
	}
	slices.SortFunc(s.Git.Beside, func(a, b rollout.FileAt) int { return strings.Compare(a.Path, b.Path) })
}
