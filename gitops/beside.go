package gitops

import (
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/rampart-gitops/rampart/gitops/git"
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

// besideOf are the files beside a spec, and those that it was made of, whose origins are asked for: those of
// signatures, where the bot trusts signers.
func (r *Repository) besideOf(s rollout.Snapshot) []git.Wanted {
	if r.cfg.Signers == nil {
		return nil
	}
	var out []git.Wanted
	for _, f := range slices.Concat(s.Git.Inputs, s.Git.Beside) {
		out = append(out, git.Wanted{Path: f.Path, Blob: plumbing.NewHash(f.Blob)})
	}
	return out
}

// signedWith is the origin of a spec whose signature covers other files too. It is signed if all files are, and by
// one signer if that one signed all. If it is not known of one file, it is not known of the spec.
func (r *Repository) signedWith(spec rollout.GitContext, files []git.Wanted) rollout.GitContext {
	for _, w := range files {
		origin, known := r.origins[w]
		switch {
		case spec.Signed != rollout.Yes:
		case !known || origin.Signed == "":
			spec.Signed = ""
		case origin.Signed != rollout.Yes:
			spec.Signed = origin.Signed
		}
		if spec.Signed != rollout.Yes || origin.Signer != spec.Signer {
			spec.Signer = ""
		}
	}
	return spec
}
