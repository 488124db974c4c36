package compose

import (
	"slices"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Commit makes one commit of the parts that have files, and of the environment's own kustomization.yaml; root is nil if
// that stays as it is. origins are the commits that asked for the parts, in their order, and repository is the address
// that they name, or "".
func Commit(env rollout.EnvironmentWorld, parts []Part, root *rollout.FileChange, origins []rollout.GitContext,
	repository string) rollout.Commit {
	commit := rollout.Commit{Environment: env.Environment, Base: env.Base}
	each := env.Environment.Output.Commits == v1alpha1.CommitPerDeployment
	var last rollout.GitContext
	for i, part := range parts {
		commit.Changes = append(commit.Changes, part.Files...)
		last = laterOrigin(last, origins[i])
		if each {
			of := []*rollout.Decision{part.Decision}
			own := rollout.CommitPart{Changes: part.Files, Message: message(env.Environment.Name, of)}
			commit.Parts = append(commit.Parts, withOrigin(env, repository, own, origins[i], last))
		}
	}
	if root != nil {
		commit.Changes = append(commit.Changes, *root)
		if n := len(commit.Parts); n > 0 { // which of its folders are there is true with the last of them
			commit.Parts[n-1].Changes = append(slices.Clip(commit.Parts[n-1].Changes), *root)
		}
	}
	all := rollout.CommitPart{Changes: commit.Changes, Message: message(env.Environment.Name, DecisionsOf(parts))}
	all = withOrigin(env, repository, all, last, last)
	commit.Changes, commit.Message = all.Changes, all.Message
	return commit
}
