package rollout

import (
	"fmt"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// Review is what became of a proposal where people review it. It never approves anything: that is for what is on the
// branch.
type Review struct {
	// Since is when the proposal that it is about was made, and JobID the batch job that it asks for, "" for a raise.
	// They are as a ReviewAsk has them.
	Since v1alpha1.Time `json:"since"`
	JobID string        `json:"jobID,omitempty"`
	// URL of the pull request; "": there is none.
	URL string `json:"url,omitempty"`
	// Rejected says that a person closed it, and By who that was, "" if that is not known.
	Rejected bool   `json:"rejected,omitempty"`
	By       string `json:"by,omitempty"`
}

// ReviewAsk is what people are asked to approve: a raise, or a stage of an evacuation.
type ReviewAsk struct {
	// Held is the action with the verdict that wants it approved.
	Held Held `json:"held"`
	// Proposal is what the record says of it: there, another time makes it another proposal.
	Proposal ReviewedProposal `json:"proposal"`
	// Desired is what routing.yaml asks for once a raise is approved; nil for a stage, whose state is Approved then.
	Desired *v1alpha1.DesiredRouting `json:"desired,omitempty"`
	// Scope of one approval.
	Scope v1alpha1.ApprovalScope `json:"scope"`
}

// ReviewedProposal is one proposal in a record.
type ReviewedProposal struct {
	// Key tells it from all others of its worker deployment.
	Key   string        `json:"key"`
	Since v1alpha1.Time `json:"since"`
	// JobID of the stage's batch job; "" for a raise.
	JobID string `json:"jobID,omitempty"`
	// PullRequest is the address that the record has; "": none yet.
	PullRequest string `json:"pullRequest,omitempty"`
}

// ReviewedRaise is a record's raise that waits for approval.
func ReviewedRaise(p v1alpha1.RecordedProposal) ReviewedProposal {
	key := fmt.Sprintf("%s\n%s\n%v\n%v\n%s", p.BuildID, p.TemplateHash, p.From, p.To,
		p.Since.UTC().Format(time.RFC3339Nano))
	if p.Kind != "" {
		key = string(p.Kind) + "\n" + key
	}
	return ReviewedProposal{Key: key,
		Since: p.Since, PullRequest: p.PullRequest}
}

// ReviewedStage is a record's stage of an evacuation that waits for approval.
func ReviewedStage(e v1alpha1.RecordedEvacuation) ReviewedProposal {
	return ReviewedProposal{Key: e.JobID + "\n" + e.ProposedAt.UTC().Format(time.RFC3339Nano), Since: e.ProposedAt,
		JobID: e.JobID, PullRequest: e.PullRequest}
}

// ReviewedProposals are all that wait for approval in a record.
func ReviewedProposals(rec *v1alpha1.RoutingSpec) []ReviewedProposal {
	var out []ReviewedProposal
	if rec == nil {
		return nil
	}
	if p := rec.Proposal; p != nil && !p.Withdrawn {
		out = append(out, ReviewedRaise(*p))
	}
	for _, v := range rec.Versions {
		for _, e := range v.Evacuations {
			if e.State == v1alpha1.EvacuationProposed {
				out = append(out, ReviewedStage(e))
			}
		}
	}
	return out
}

// About reports whether a review is about a proposal.
func (r *Review) About(p ReviewedProposal) bool {
	return r != nil && r.JobID == p.JobID && r.Since.Equal(p.Since.Time)
}

// ProposalBranches begin the names of all branches of proposals.
const ProposalBranches = "rampart/"

// ProposalBranch is where a worker deployment's proposals are. Git takes no branch that ends in .lock, and no name ends
// in a hyphen.
func ProposalBranch(environment string, n Name) string {
	branch := ProposalBranches + environment + "/" + n.Namespace + "/" + n.Name
	if strings.HasSuffix(branch, lockSuffix) {
		branch += "-"
	}
	return branch
}

const lockSuffix = ".lock"
