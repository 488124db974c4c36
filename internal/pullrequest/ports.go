package pullrequest

import (
	"context"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Branches are where proposals are; see gitops.Repository.
type Branches interface {
	DecisionBranches
	CommitBranches
	// ApprovalIn finds the commit that gave the approval which a record has.
	ApprovalIn(ctx context.Context, env v1alpha1.Environment, dir string,
		has func(v1alpha1.RoutingSpec) bool) (rollout.ApprovalCommit, bool, error)
}

// DecisionBranches are those that propose decisions.
type DecisionBranches interface {
	Proposals(ctx context.Context, environment string) (map[rollout.Name]gitops.Proposed, error)
	Propose(ctx context.Context, p gitops.Proposal, was gitops.Proposed) (tip string, err error)
	// Withdraw deletes a branch, also one that proposes a commit.
	Withdraw(ctx context.Context, was gitops.Proposed) error
}

// CommitBranches are those that propose commits to protected branches.
type CommitBranches interface {
	ProposeCommit(ctx context.Context, commit rollout.Commit, fingerprint gitops.Fingerprint) (gitops.Proposed, error)
	ProposedCommit(ctx context.Context, environment string) (gitops.Proposed, error)
}
