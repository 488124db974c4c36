package gitops

import (
	"context"
	"slices"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// ApprovalIn finds the commit that put an approval into the record in a folder. It is the oldest one along first
// parents from which on the record has it, on the branch of the environment's output as it was read last. False: it was
// not found in the recent history. Errors: those of git.Mirror.Recent.
func (r *Repository) ApprovalIn(ctx context.Context, env v1alpha1.Environment, dir string,
	has func(v1alpha1.RoutingSpec) bool) (rollout.ApprovalCommit, bool, error) {
	tip := r.lastTips[r.outputBranch(env)]
	if tip.Commit.IsZero() {
		return rollout.ApprovalCommit{}, false, nil
	}
	var with *git.CommitInfo
	found, next := false, tip.Commit
	// Before is left out: what the branch had before it was rewritten approves nothing.
	err := r.recent(ctx, git.Tip{Branch: tip.Branch, Commit: tip.Commit, Tree: tip.Tree}, r.away,
		func(c git.CommitInfo) (bool, error) {
			if c.Hash != next {
				return true, nil
			}
			none := ""
			all, _, err := r.recordAt(ctx, c, dir, &none)
			if err != nil {
				return false, err
			}
			if !slices.ContainsFunc(all, func(r *v1alpha1.Routing) bool { return has(r.Spec) }) {
				found = with != nil
				return false, nil
			}
			with = &c
			if len(c.Parents) == 0 {
				found = true
				return false, nil
			}
			next = c.Parents[0]
			return true, nil
		})
	if err != nil || !found {
		return rollout.ApprovalCommit{}, false, err
	}
	out := rollout.ApprovalCommit{Commit: with.Hash.String(), Author: signatureText(with.Author),
		Committer: signatureText(with.Committer)}
	own := signatureText(r.signature())
	out.Bot = rollout.SamePerson(out.Author, own)
	out.Merge = len(with.Parents) > 1
	out.Signed, out.Signer, err = r.signed(with.Hash)
	return out, true, err
}
