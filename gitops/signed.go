package gitops

import (
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// besideOf are the files beside a spec, and those that it was made of, whose origins are asked for. These are those of
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
