package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// A raise that wants approval is recorded as a proposal. A person approves it by merging what it makes of the desired
// routing, or by a command; then it is decided again, on what is known by then. If it still comes next, it is carried
// out. If not, the approval is void: the desired routing is put back, and what comes next instead is proposed.

// proposed is the routing that a proposal asks for: from what the bot decided last.
func proposed(p v1alpha1.RecordedProposal, decided v1alpha1.DesiredRouting) v1alpha1.DesiredRouting {
	if p.Kind == v1alpha1.ProposeUpdate {
		return v1alpha1.DesiredRouting{Current: decided.Current, Ramping: decided.Ramping} // for another template
	}
	if p.To >= 100 {
		return v1alpha1.DesiredRouting{Current: p.BuildID}
	}
	return v1alpha1.DesiredRouting{Current: decided.Current,
		Ramping: &v1alpha1.DesiredRamp{BuildID: p.BuildID, Percentage: p.To}}
}

// approval says who approved the proposal, and why; both are "" if there is no approval, or if it does not count.
func (v *View) approval() (by, reason string) {
	if v.vet() != vetCounts {
		return "", ""
	}
	switch p := v.rec.Proposal; {
	case v.edit == editMerged || v.edit == editWithdrawn:
		return "a merge", cmp.Or(p.PullRequest, "the proposal's branch")
	case p != nil && !p.Withdrawn && p.Approved != nil:
		return p.Approved.By, p.Approved.Reason
	}
	return "", ""
}

func (v *View) approved() bool {
	by, _ := v.approval()
	return by != ""
}

// approves reports whether a person approved an action: this one, or the whole rollout that it belongs to.
func (v *View) approves(a rollout.Action) bool {
	if !a.IsRaise() || !v.isTarget(a.BuildID) {
		return false
	}
	if v.approved() && v.edit != editWithdrawn && v.proposes(a) {
		return true
	}
	return a.Raises() && (v.rolloutApproved() != nil || v.committed(a))
}

// committed reports whether a raise is written down as decided, and was not carried out: the bot died in between, or
// Temporal refused.
func (v *View) committed(a rollout.Action) bool {
	switch v.edit {
	case editOpen, editMerged, editWithdrawn:
		return false
	}
	rec, was := v.rec, v.rec.Target
	if !v.unmoved() || rec.Decided == nil || was == nil || v.newSpec() || was.Attempt != v.target.Attempt {
		return false
	}
	asked := desiredConfig(proposed(v1alpha1.RecordedProposal{BuildID: a.BuildID, To: a.To}, desiredOf(v.actual)))
	return !v.actual.SameTraffic(asked) && desiredConfig(*rec.Decided).SameTraffic(asked)
}

// rolloutApproved is the approval of the whole rollout, if one approval covers that; nil: there is none.
func (v *View) rolloutApproved() *v1alpha1.Asked {
	was := v.rec.Target
	if was == nil || v.target == nil || v.s.Environment.Approval.Scope != v1alpha1.ScopeRollout ||
		was.Attempt != v.target.Attempt || v.newSpec() || was.ApprovedSteps != v.timetable() {
		return nil
	}
	return was.Approved
}

// timetable is how the spec's rollout goes, in short: its steps, and a digest of what each of them is judged by.
func (v *View) timetable() string {
	if v.spec == nil {
		return ""
	}
	text := string(v.spec.Spec.Rollout.Strategy)
	for _, s := range v.spec.Spec.Rollout.Steps {
		text += fmt.Sprintf(" %v%% %s", s.RampPercentage, s.PauseDuration)
	}
	if judged := rollout.JudgedBy(v.spec.Spec.Rollout); judged != "" {
		text += " judged by " + judged
	}
	return text
}

// proposes reports whether the recorded proposal is an action.
func (v *View) proposes(a rollout.Action) bool {
	p := v.rec.Proposal
	return p != nil && a.IsRaise() && p.Kind == proposalKind(a) && v.isTarget(a.BuildID) && p.BuildID == a.BuildID &&
		p.TemplateHash == v.target.TemplateHash &&
		float32(p.From) == float32(a.From) && float32(p.To) == float32(a.To)
}

func proposalKind(a rollout.Action) v1alpha1.ProposalKind {
	if a.Kind == rollout.UpdateVersion {
		return v1alpha1.ProposeUpdate
	}
	return ""
}

// review is what became of the recorded proposal where people review it; nil: not known.
func (v *View) review() *rollout.Review {
	if p := v.rec.Proposal; p != nil && v.s.Review.About(rollout.ReviewedRaise(*p)) {
		return v.s.Review
	}
	return nil
}

// rejection is the hold that a person set by closing the proposal; nil: there is no such hold.
func (v *View) rejection() *v1alpha1.Hold {
	p, r := v.rec.Proposal, v.review()
	if r == nil || !r.Rejected || p.Withdrawn || v.claimed() || v.target == nil || p.BuildID != v.target.BuildID ||
		p.TemplateHash != v.target.TemplateHash {
		return nil
	}
	return &v1alpha1.Hold{Kind: v1alpha1.HoldRejected, BuildID: p.BuildID, By: orPerson(r.By),
		Reason: "closed " + orProposal(r.URL), At: v1alpha1.NewTime(v.now)}
}

func orPerson(name string) string { return cmp.Or(name, "a person") }

func orProposal(url string) string { return cmp.Or(url, "the proposal") }

// undecided reports whether nothing can be said of the proposal now: it waits on, approved or not.
func (r *resolver) undecided() bool {
	p := r.rec.Proposal
	if p == nil || p.Withdrawn {
		return false
	}
	if !r.readable() || r.unusable != nil || r.foreign() || r.lost() != "" || r.vet() == vetPending && r.move() == nil {
		return true
	}
	waits := r.state.Reason == rollout.StaleFacts || r.state.Reason == rollout.GateIsRunning ||
		r.state.Reason == rollout.WaitingForPollers
	return waits && r.isTarget(p.BuildID) && p.TemplateHash == r.target.TemplateHash && r.asks() == nil &&
		r.move() == nil || r.frozenProposal()
}

// frozenProposal reports whether the recorded proposal is what comes next, and policy holds it. Such a proposal stays,
// so that a freeze does not lose its review. One that was approved meanwhile is decided: not now.
func (r *resolver) frozenProposal() bool {
	return !r.approved() && slices.ContainsFunc(r.held, func(h rollout.Held) bool {
		return h.Verdict.Effect.Strictness() >= rollout.HoldEffect.Strictness() && r.proposes(h.Action)
	})
}

// asks is the raise of the target that is held for a person's approval; nil: none is.
func (r *resolver) asks() *rollout.Held {
	return find(r.held, func(h *rollout.Held) bool {
		return h.Action.IsRaise() && h.Verdict.Effect == rollout.RequireApproval && r.isTarget(h.Action.BuildID)
	})
}

// nextProposal writes down what waits for approval, and what one approval covers.
func (r *resolver) nextProposal(next *v1alpha1.RoutingSpec) {
	if !r.readable() || r.foreign() || r.undecided() {
		return
	}
	next.Proposal = r.withdrawn()
	by, reason := r.approval()
	if by != "" && slices.ContainsFunc(r.taken, r.proposes) {
		if r.s.Environment.Approval.Scope == v1alpha1.ScopeRollout {
			next.Target.Approved = &v1alpha1.Asked{By: by, Reason: reason, At: v1alpha1.NewTime(r.now)}
			next.Target.ApprovedSteps = r.timetable()
		}
		next.Proposal = nil
		return
	}
	if by != "" {
		r.lines = append(r.lines, r.void(by))
	}
	h := r.asks()
	if h == nil {
		return
	}
	p := v1alpha1.RecordedProposal{Kind: proposalKind(h.Action), BuildID: h.Action.BuildID,
		TemplateHash: r.target.TemplateHash, From: h.Action.From, To: h.Action.To,
		LeavesBehind: r.proposedLeaves(h.Action), Since: v1alpha1.NewTime(r.now)}
	if r.proposes(h.Action) && !r.rec.Proposal.Withdrawn && by == "" {
		p.Refused = r.rec.Proposal.Refused
		if refused := r.refusal(); refused != nil {
			p.Refused = refused
			r.lines = append(r.lines, fmt.Sprintf("the approval by %s does not count: %s", refused.By, refused.Reason))
		}
		if r.edit != editMerged { // what was merged is over, and proposed anew
			p.Since, p.PullRequest = r.rec.Proposal.Since, r.rec.Proposal.PullRequest
		}
	}
	if is := r.review(); is != nil && is.URL != "" && is.About(rollout.ReviewedRaise(p)) {
		p.PullRequest = is.URL
	}
	next.Proposal = &p
}

// withdrawn is what stays of a proposal that does not wait any more. Until another takes its place, or its version is
// current, a merge of it is known for what it is.
func (r *resolver) withdrawn() *v1alpha1.RecordedProposal {
	p := r.rec.Proposal
	if p == nil || p.BuildID == r.actual.Current || r.state.Reason == rollout.RolloutComplete {
		return nil
	}
	out := *p
	out.Withdrawn, out.Approved = true, nil
	return &out
}

// void says that an approval comes to nothing, and why.
func (r *resolver) void(by string) string {
	p := r.rec.Proposal
	if p.Kind == v1alpha1.ProposeUpdate {
		return fmt.Sprintf("%s approved that the template of %s changes in place, which does not come next "+
			"any more: %s", by, p.BuildID, r.state.Message)
	}
	return fmt.Sprintf("%s approved that %s goes from %s to %s, which does not come next any more: %s", by, p.BuildID,
		rollout.Percent(p.From), rollout.Percent(p.To), r.state.Message)
}

// askPeople says what people are asked to approve, if anything waits for that. A raise comes before the stages of
// evacuations, since it has more to lose by waiting. Of stages it is the first.
func (r *resolver) askPeople(plan *rollout.Plan) {
	if plan.Record == nil || r.vet() == vetPending {
		return
	}
	if p, h := plan.Record.Proposal, r.asks(); h != nil {
		if p != nil && !p.Withdrawn && p.Approved == nil {
			desired := proposed(*p, plan.Record.Desired)
			desired.TemplateHash = p.TemplateHash
			plan.Review = &rollout.ReviewAsk{Held: *h, Proposal: rollout.ReviewedRaise(*p), Desired: &desired,
				Scope: r.s.Environment.Approval.Scope}
		}
		return
	}
	for _, p := range rollout.ReviewedProposals(plan.Record) {
		for _, h := range r.held {
			if e := h.Action.Evacuation; e != nil && e.JobID == p.JobID && h.Verdict.Effect == rollout.RequireApproval {
				plan.Review = &rollout.ReviewAsk{Held: h, Proposal: p, Scope: v1alpha1.ScopeStep}
				return
			}
		}
	}
}
