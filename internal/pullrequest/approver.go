package pullrequest

import (
	"context"
	"fmt"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// vet finds out who approved what a record proposes, where that has to be somebody else than who asked. It runs where
// nothing else reads the repository: after an environment's decisions were carried out.
func (l *look) vet(ctx context.Context, x *rollout.Decision, was gitops.Proposed) error {
	n, ask := x.Plan.Deployment, x.Plan.Approving
	switch {
	case ask == nil:
		return nil
	case l.Now().Before(l.until):
		return nil
	}
	f := l.file(n)
	if f.vetting != ask.Routing {
		f.vetting, f.asked = ask.Routing, l.Now()
	}
	is, known, err := l.approver(ctx, x, was)
	if err != nil || !known {
		return err
	}
	if was, there := l.approvers[n]; !there || was != is {
		l.approvers[n], l.news = is, true
		l.Log.InfoContext(ctx, "approval looked at", "deployment", n.String(), "by", is.By, "other", string(is.Other),
			"why", is.Why)
	}
	return nil
}

// approver says who approved. False: the forge may say it in a moment.
func (l *look) approver(ctx context.Context, x *rollout.Decision, was gitops.Proposed) (rollout.Approver, bool, error) {
	ask := *x.Plan.Approving
	unknown := func(why string) (rollout.Approver, bool, error) {
		return rollout.Approver{Routing: ask.Routing, Why: why}, true, nil
	}
	c, found, err := l.Branches.ApprovalIn(ctx, l.world.Environment, x.Plan.Dir, func(rec v1alpha1.RoutingSpec) bool {
		return plan.HasApproval(rec, ask)
	})
	if err != nil {
		return rollout.Approver{}, false, err
	}
	if !found {
		return unknown("the commit that approved it was not found in the recent history")
	}
	if ask.Proposal.Approved != nil {
		return rollout.ApprovedByCommit(ask, c), true, nil
	}
	l.file(x.Plan.Deployment).at = l.Now().Add(-past) // what the forge says of it was before the merge
	pull, err := l.pull(ctx, x.Plan.Deployment, was, ask.Proposal.Since.Add(-back))
	if err != nil {
		return rollout.Approver{}, false, err
	}
	switch {
	case pull.Number == 0:
	case pull.State == forge.StateOpen && (c.Bot || c.Merge) && l.Now().Sub(l.file(x.Plan.Deployment).asked) < rest:
		return rollout.Approver{}, false, nil // a push is heard of before the forge has closed what it merged
	case pull.State == forge.StateMerged:
		details, err := l.Forge.Get(ctx, pull.Number)
		if err != nil {
			return rollout.Approver{}, false, err
		}
		if c.Commit == details.MergeCommit || c.Commit == details.HeadCommit {
			return l.merger(ctx, ask, details)
		}
	}
	return rollout.ApprovedByCommit(ask, c), true, nil
}

// merger says who merged a pull request, or approved it as it was merged, beside the accounts of those who asked.
func (l *look) merger(ctx context.Context, ask rollout.ApproverAsk,
	details forge.Details) (rollout.Approver, bool, error) {
	var asked []string
	for _, c := range ask.AskedIn {
		people, err := l.Forge.Authors(ctx, c.Commit)
		if err != nil {
			return rollout.Approver{}, false, err
		}
		if len(people) == 0 || people[0].Login == "" {
			return rollout.Approver{Routing: ask.Routing, By: details.ClosedBy.Login,
				Why: fmt.Sprintf("the forge knows no account of %s, who asked for it in commit %.10s", c.Author,
					c.Commit)}, true, nil
		}
		for _, p := range people {
			if p.Login != "" {
				asked = append(asked, p.Login)
			}
		}
	}
	approvers := []rollout.Merger{{Login: details.ClosedBy.Login, Bot: details.ClosedBy.Self}}
	for _, a := range details.Approvals {
		if a.Commit != "" && a.Commit == details.HeadCommit { // others may have seen something else
			approvers = append(approvers, rollout.Merger{Login: a.By.Login, Bot: a.By.Self})
		}
	}
	return rollout.ApprovedByMerge(ask, approvers, asked), true, nil
}
