package pullrequest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// people is a forge with one pull request, and the accounts of commits.
type people struct {
	forge.None
	pull    forge.Details
	authors []forge.Person
	err     error
	gets    int
}

func (f *people) List(context.Context, forge.Filter) ([]forge.PullRequest, error) {
	if f.pull.Number == 0 {
		return nil, nil
	}
	return []forge.PullRequest{f.pull.PullRequest}, nil
}

func (f *people) Get(context.Context, int64) (forge.Details, error) {
	f.gets++
	return f.pull, nil
}

func (f *people) Authors(context.Context, string) ([]forge.Person, error) { return f.authors, f.err }

// approving is a decision that has to know who approved.
func approving(by *v1alpha1.Asked) *rollout.Decision {
	d := asking()
	d.Plan.Review = nil
	p := d.Plan.Record.Proposal
	p.Approved = by
	d.Plan.Approving = &rollout.ApproverAsk{Routing: "blob", Proposal: *p,
		AskedIn: []v1alpha1.AskingCommit{{Commit: "a1", Author: "Ada <ada@example.com>", Committer: "Ada <ada@example.com>"}}}
	return d
}

// Who approved is found out after a cycle: by the forge for what was merged there, else by the commit.
func TestWhoApproved(t *testing.T) {
	const ada, bob = "Ada <ada@example.com>", "Bob <bob@example.com>"
	merged := func(by string) forge.Details {
		return forge.Details{PullRequest: forge.PullRequest{Number: 7, State: forge.StateMerged, HeadCommit: "head", MergeCommit: "merge"}, ClosedBy: forge.Person{Login: by}}
	}
	reviewed := merged("ada")
	reviewed.Approvals = []forge.Approval{{By: forge.Person{Login: "bob"}, Commit: "head"}}
	stale := merged("ada")
	stale.Approvals = []forge.Approval{{By: forge.Person{Login: "bob"}, Commit: "before"}, {By: forge.Person{Login: "eve"}}}
	open := forge.Details{PullRequest: forge.PullRequest{Number: 7, State: forge.StateOpen, HeadCommit: "head"}}
	known := []forge.Person{{Login: "ada"}, {Login: "ada"}}
	command := &v1alpha1.Asked{By: "bob"}
	for name, c := range map[string]struct {
		decision *rollout.Decision
		commit   rollout.ApprovalCommit
		on       people
		want     rollout.Approver
		waits    bool
	}{
		"a command of another":            {approving(command), rollout.ApprovalCommit{Commit: "c", Author: bob, Committer: bob}, people{pull: merged("ada"), authors: known}, rollout.Approver{By: bob, Other: rollout.Yes}, false},
		"a command of who asked":          {approving(command), rollout.ApprovalCommit{Commit: "c", Author: ada, Committer: ada}, people{pull: merged("bob"), authors: known}, rollout.Approver{By: ada, Other: rollout.No}, false},
		"merged by another":               {approving(nil), rollout.ApprovalCommit{Commit: "merge", Author: ada, Merge: true}, people{pull: merged("bob"), authors: known}, rollout.Approver{By: "bob", Other: rollout.Yes}, false},
		"fast-forward by another":         {approving(nil), rollout.ApprovalCommit{Commit: "head", Bot: true}, people{pull: merged("bob"), authors: known}, rollout.Approver{By: "bob", Other: rollout.Yes}, false},
		"merged by who asked":             {approving(nil), rollout.ApprovalCommit{Commit: "merge", Author: bob, Merge: true}, people{pull: merged("ada"), authors: known}, rollout.Approver{By: "ada", Other: rollout.No}, false},
		"reviewed by another":             {approving(nil), rollout.ApprovalCommit{Commit: "merge"}, people{pull: reviewed, authors: known}, rollout.Approver{By: "bob", Other: rollout.Yes}, false},
		"another reviewed another commit": {approving(nil), rollout.ApprovalCommit{Commit: "merge"}, people{pull: stale, authors: known}, rollout.Approver{By: "ada", Other: rollout.No}, false},
		"the committer merged":            {approving(nil), rollout.ApprovalCommit{Commit: "merge"}, people{pull: merged("bob"), authors: []forge.Person{{Login: "ada"}, {Login: "bob"}}}, rollout.Approver{By: "bob", Other: rollout.No}, false},
		"nobody knows who asked":          {approving(nil), rollout.ApprovalCommit{Commit: "merge"}, people{pull: merged("bob"), authors: []forge.Person{{}, {Login: "ada"}}}, rollout.Approver{By: "bob"}, false},
		"the forge knows nobody":          {approving(nil), rollout.ApprovalCommit{Commit: "merge"}, people{pull: merged("bob")}, rollout.Approver{By: "bob"}, false},
		"written by another, not merged":  {approving(nil), rollout.ApprovalCommit{Commit: "c", Author: bob, Committer: bob}, people{pull: open, authors: known}, rollout.Approver{By: bob, Other: rollout.Yes}, false},
		"another was merged before":       {approving(nil), rollout.ApprovalCommit{Commit: "c", Author: bob, Committer: bob}, people{pull: merged("ada"), authors: known}, rollout.Approver{By: bob, Other: rollout.Yes}, false},
		"without a forge":                 {approving(nil), rollout.ApprovalCommit{Commit: "c", Author: bob, Committer: bob, Merge: true}, people{}, rollout.Approver{By: bob, Other: rollout.Yes}, false},
		"merged, the forge is slower":     {approving(nil), rollout.ApprovalCommit{Commit: "merge", Author: bob, Committer: bob, Merge: true}, people{pull: open, authors: known}, rollout.Approver{By: bob, Other: rollout.Yes}, true},
		"squashed, the forge is slower":   {approving(nil), rollout.ApprovalCommit{Commit: "merge", Bot: true}, people{pull: open, authors: known}, rollout.Approver{}, true},
		"the commit is not found":         {approving(nil), rollout.ApprovalCommit{}, people{pull: merged("bob"), authors: known}, rollout.Approver{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFixture(&c.on)
			d.server.approved = c.commit
			require.Equal(t, !c.waits, d.Propose(t.Context(), d.world, []*rollout.Decision{c.decision}), "it is news for the next decision")
			if c.waits {
				require.Empty(t, d.approvers())
				d.now = d.now.Add(rest)
				require.True(t, d.Propose(t.Context(), d.world, []*rollout.Decision{c.decision}))
			}
			got := d.approvers()[checkout]
			require.NotEmpty(t, got.Why)
			got.Why, c.want.Routing = "", "blob"
			require.Equal(t, c.want, got)
			require.False(t, d.Propose(t.Context(), d.world, []*rollout.Decision{c.decision}), "no news any more")
		})
	}
}

// What is approved is not proposed anew while it is not known who did; what could not be asked is asked again.
func TestWhoApprovedIsAskedAgain(t *testing.T) {
	on := &people{pull: forge.Details{PullRequest: forge.PullRequest{Number: 7, State: forge.StateMerged, HeadCommit: "head", MergeCommit: "merge"},
		ClosedBy: forge.Person{Login: "bob"}}, err: &forge.UnavailableError{}}
	d := newFixture(on)
	require.Empty(t, d.approvers())
	d.server.approved = rollout.ApprovalCommit{Commit: "merge"}
	require.Equal(t, []string{"list"}, d.cycle(t, approving(nil)))
	require.Empty(t, d.approvers())
	asked := on.gets
	d.cycle(t, approving(nil))
	require.Equal(t, asked, on.gets, "the forge is left alone for a while")
	d.now, on.err, on.authors = d.now.Add(2*time.Minute), nil, []forge.Person{{Login: "ada"}}
	d.server.err = errors.New("the history is not here")
	d.cycle(t, approving(nil))
	require.Empty(t, d.approvers())
	d.server.err = nil
	require.Equal(t, []string{"list"}, d.cycle(t, approving(nil)))
	require.Equal(t, rollout.Yes, d.approvers()[checkout].Other)
}
