package gitops

import (
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/rampart-gitops/rampart/gitops/mirror"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// connectionFile is the key of the file that a connection is in. No path has a space before its first folder.
func connectionFile(n rollout.Name) string { return "connection " + n.String() }

// beside notes the file of something that specs stand on.
func (e *environment) beside(key string, f *found) {
	if e.holds == nil {
		e.holds = map[string]rollout.FileAt{}
	}
	e.holds[key] = rollout.FileAt{Path: f.path, Blob: f.hash}
}

// standsOn says which files hold what a spec stands on beside its own.
func (e *environment) standsOn(s *rollout.Snapshot) {
	keys := make([]string, 0, 1+len(s.Resources))
	if c := s.Connection; c != nil {
		keys = append(keys, connectionFile(rollout.Name{Namespace: s.Deployment.Namespace, Name: c.Metadata.Name}))
	}
	for _, t := range s.Resources {
		keys = append(keys, t.Path)
	}
	s.Git.Beside = nil
	for _, key := range keys {
		if f, ok := e.holds[key]; ok && f.Path != s.SpecPath && !slices.Contains(s.Git.Beside, f) {
			s.Git.Beside = append(s.Git.Beside, f)
		}
	}
	slices.SortFunc(s.Git.Beside, func(a, b rollout.FileAt) int { return strings.Compare(a.Path, b.Path) })
}

// besideOf are the files beside a spec whose origins are asked for: those of signatures, where the bot trusts signers.
func (r *Repository) besideOf(s rollout.Snapshot) []mirror.Wanted {
	if r.cfg.Signers == nil {
		return nil
	}
	var out []mirror.Wanted
	for _, f := range s.Git.Beside {
		out = append(out, mirror.Wanted{Path: f.Path, Blob: plumbing.NewHash(f.Blob)})
	}
	return out
}

// signedWith is the origin of a spec whose signature covers other files too: it is signed if all are, and by one signer if that one signed
// all. What is not known of one of them is not known.
func (r *Repository) signedWith(spec rollout.GitContext, files []mirror.Wanted) rollout.GitContext {
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
