package rollout

import "github.com/rampart-gitops/rampart/gitops/api/v1alpha1"

// Review is what became of a proposal where people review it. It never approves anything: that is for what is on the branch.
type Review struct {
	// Since is RecordedProposal.Since of the proposal that it is about.
	Since v1alpha1.Time `json:"since"`
	// URL of the pull request; "": there is none.
	URL string `json:"url,omitempty"`
	// Rejected says that a person closed it, and By who that was, "" if that is not known.
	Rejected bool   `json:"rejected,omitempty"`
	By       string `json:"by,omitempty"`
	// Note is what else people should know of it, such as that its branch has commits of others; "" for nothing.
	Note string `json:"note,omitempty"`
}

// ReviewAsk is a raise that people are asked to approve.
type ReviewAsk struct {
	// Held is the action with the verdict that wants it approved.
	Held Held `json:"held"`
	// Desired is what routing.yaml asks for once it is approved.
	Desired v1alpha1.DesiredRouting `json:"desired"`
	// Scope of one approval.
	Scope v1alpha1.ApprovalScope `json:"scope"`
}
