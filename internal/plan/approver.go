package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Where the bot's configuration wants somebody else to approve than who asked, an approval counts once it is known
// whose it is. Until then the proposal waits on, as it is. One that does not count is written down, and proposed anew.

// maxAskedIn is how many commits are remembered by which people asked for one target.
const maxAskedIn = 20

// vetting is what is known of an approval.
type vetting int

const (
	vetCounts  vetting = iota // it counts, as far as it matters whose it is
	vetPending                // that is not known yet
	vetRefused                // it is by the person who asked, or by an unknown person
)

// claimed reports whether the record has an approval of what it proposes, no matter who gave it.
func (v *View) claimed() bool {
	p := v.rec.Proposal
	return v.edit == editMerged || p != nil && !p.Withdrawn && p.Approved != nil
}

// vet says whether an approval counts.
func (v *View) vet() vetting {
	if !v.s.ByOther || !v.claimed() {
		return vetCounts
	}
	switch is := v.s.Approver; {
	case is == nil || is.Routing != v.routingBlob() || is.Routing == "":
		return vetPending
	case is.Other == rollout.Yes:
		return vetCounts
	}
	return vetRefused
}

func (v *View) routingBlob() string { return v.s.Record.Files[layout.Routing].Hash }

// approverAsk asks who approved; nil: it does not ask.
func (v *View) approverAsk() *rollout.ApproverAsk {
	if v.vet() != vetPending || v.s.Git.Commit == "" || v.routingBlob() == "" {
		return nil
	}
	return &rollout.ApproverAsk{Routing: v.routingBlob(), Proposal: *v.rec.Proposal, AskedIn: v.askedIn()}
}

// HasApproval reports whether a record has the approval that is asked about.
func HasApproval(rec v1alpha1.RoutingSpec, ask rollout.ApproverAsk) bool {
	p, want := rec.Proposal, ask.Proposal
	switch {
	case p == nil || rollout.ReviewedRaise(*p).Key != rollout.ReviewedRaise(want).Key:
		return false
	case want.Approved != nil:
		return p.Approved != nil && p.Approved.By == want.Approved.By && p.Approved.At.Equal(want.Approved.At.Time)
	case rec.Decided == nil:
		return false
	case want.Kind == v1alpha1.ProposeUpdate:
		return rec.Desired.TemplateHash == want.TemplateHash
	}
	return desiredConfig(proposed(*p, *rec.Decided)).SameTraffic(desiredConfig(rec.Desired))
}

// recordedAskedIn are those of the target that the record has.
func (v *View) recordedAskedIn() []v1alpha1.AskingCommit {
	if was := v.rec.Target; was != nil && v.target != nil && !v.newSpec() {
		return was.AskedIn
	}
	return nil
}

// askedIn are the commits by which people asked for the target, the oldest first. They gave the spec what it has since
// it asks for the target; the commit that gave it what it has now is among them.
func (v *View) askedIn() []v1alpha1.AskingCommit {
	all, git := slices.Clone(v.recordedAskedIn()), v.s.Git
	same := func(c v1alpha1.AskingCommit) bool { return c.Author == git.Author && c.Committer == git.Committer }
	if !v.s.ByOther || git.Commit == "" || len(all) >= maxAskedIn || slices.ContainsFunc(all, same) {
		return all
	}
	return append(all, v1alpha1.AskingCommit{Commit: git.Commit, Author: git.Author, Committer: git.Committer})
}

// Asking reports in which commit a person asked for what the record proposes, as far as names and e-mail addresses
// tell; "": in none.
func (v *View) Asking(person string) string {
	for _, c := range v.askedIn() {
		if rollout.SamePerson(person, c.Author) || rollout.SamePerson(person, c.Committer) {
			return c.Commit
		}
	}
	return ""
}

// refusal is the approval that does not count, to be written down; nil: there is none.
func (r *resolver) refusal() *v1alpha1.Asked {
	if r.vet() != vetRefused {
		return nil
	}
	by := r.s.Approver.By
	if by == "" && r.rec.Proposal.Approved != nil {
		by = r.rec.Proposal.Approved.By
	}
	return &v1alpha1.Asked{By: cmp.Or(by, "unknown"), Reason: r.s.Approver.Why, At: v1alpha1.NewTime(r.now)}
}

// sayWhoApproves adds to why a raise waits what became of its approval.
func (r *resolver) sayWhoApproves(a rollout.Action, why string) string {
	if !r.s.ByOther || !r.proposes(a) {
		return why
	}
	refused := r.refusal()
	if refused == nil {
		refused = r.rec.Proposal.Refused
	}
	switch {
	case r.vet() == vetPending:
		return why + "; it is approved, and not known yet whether by somebody other than who asked"
	case refused != nil:
		return fmt.Sprintf("%s; the approval by %s does not count: %s. Somebody else has to approve it", why,
			refused.By, refused.Reason)
	}
	return why
}
