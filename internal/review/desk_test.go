package review

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// What a real forge and a real server do is in the end-to-end tests. Here are those that go away, and how much they are asked.

var checkout = rollout.Name{Namespace: "shop", Name: "checkout"}

// server has the branches, and says what it was asked.
type server struct {
	there map[rollout.Name]gitops.Proposed
	calls []string
}

func (s *server) Proposals(context.Context, string) (map[rollout.Name]gitops.Proposed, error) {
	s.calls = append(s.calls, "list")
	out := map[rollout.Name]gitops.Proposed{}
	for n, p := range s.there {
		out[n] = p
	}
	return out, nil
}

func (s *server) Propose(_ context.Context, p gitops.Proposal, _ gitops.Proposed) (string, error) {
	s.calls = append(s.calls, "propose")
	s.there[p.Deployment] = gitops.Proposed{Branch: gitops.ProposalBranch(p.Environment.Name, p.Deployment), Tip: "tip", ID: p.ID}
	return "tip", nil
}

func (s *server) Withdraw(_ context.Context, was gitops.Proposed) error {
	s.calls = append(s.calls, "withdraw")
	for n, p := range s.there {
		if p.Branch == was.Branch {
			delete(s.there, n)
		}
	}
	return nil
}

// failing is a forge that ends with an error; nil: there is none.
type failing struct {
	forge.None
	err   error
	times int
}

func (f *failing) List(context.Context, forge.Filter) ([]forge.PullRequest, error) {
	f.times++
	return nil, f.err
}

type desk struct {
	*Desk
	server *server
	now    time.Time
	world  rollout.EnvironmentWorld
}

func newDesk(on forge.Forge) *desk {
	d := &desk{server: &server{there: map[rollout.Name]gitops.Proposed{}}, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		world: rollout.EnvironmentWorld{Environment: v1alpha1.Environment{Name: "prod"}, Base: "base"}}
	d.Desk = New(Config{Branches: d.server, Forge: on, Base: "main", Now: func() time.Time { return d.now }, Log: slog.New(slog.DiscardHandler),
		Write: func(reconcile.Decision) (string, string) { return "title", "body" }})
	return d
}

// asking is a decision that waits for approval.
func asking() reconcile.Decision {
	p := &v1alpha1.RecordedProposal{BuildID: "v2", TemplateHash: "h", To: 10, Since: v1alpha1.NewTime(time.Date(2026, 3, 1, 11, 0, 0, 0, time.UTC))}
	return reconcile.Decision{Plan: rollout.Plan{Deployment: checkout, Record: &v1alpha1.RoutingSpec{Proposal: p}, Review: &rollout.ReviewAsk{}}}
}

func quiet() reconcile.Decision {
	return reconcile.Decision{Plan: rollout.Plan{Deployment: checkout, Record: &v1alpha1.RoutingSpec{}}}
}

// steps runs passes, and gives what the server was asked in each.
func (d *desk) pass(t *testing.T, decisions ...reconcile.Decision) []string {
	d.server.calls = nil
	d.Propose(t.Context(), d.world, decisions)
	return d.server.calls
}

func TestServerIsAskedForWhatMayHaveMoved(t *testing.T) {
	d := newDesk(forge.None{})
	require.Equal(t, []string{"list"}, d.pass(t, quiet()), "once, to find what an earlier run left")
	require.Empty(t, d.pass(t, quiet()))
	require.Equal(t, []string{"list", "propose"}, d.pass(t, asking()))
	require.Equal(t, []string{"list"}, d.pass(t, asking()))
	d.world.Base = "newer"
	require.Equal(t, []string{"list", "propose"}, d.pass(t, asking()))
	require.Equal(t, []string{"list"}, d.pass(t, asking()))
	require.Equal(t, []string{"list", "withdraw"}, d.pass(t, quiet()))
	require.Empty(t, d.pass(t, quiet()))
}

// What is proposed by the record and was not decided in this cycle stays as it is; what no record knows goes.
func TestWhatWasNotDecidedStays(t *testing.T) {
	d := newDesk(forge.None{})
	d.pass(t, asking())
	record := &v1alpha1.Routing{Spec: v1alpha1.RoutingSpec{Proposal: asking().Plan.Record.Proposal}}
	d.world.Deployments = []rollout.Snapshot{{Deployment: checkout, Record: rollout.Record{Routing: record}}}
	require.Equal(t, []string{"list"}, d.pass(t))
	d.world.Deployments[0].Record.Routing = &v1alpha1.Routing{}
	require.Equal(t, []string{"list", "withdraw"}, d.pass(t))
}

// A proposal of which nothing can be said now stays as it is; one that was withdrawn goes.
func TestProposalStaysWhileNothingIsKnown(t *testing.T) {
	d := newDesk(forge.None{})
	d.pass(t, asking())
	waiting := asking()
	waiting.Plan.Review = nil
	require.Equal(t, []string{"list"}, d.pass(t, waiting))
	require.Equal(t, []string{"list"}, d.pass(t, reconcile.Decision{Plan: rollout.Plan{Deployment: checkout}}), "no record was written")
	waiting.Plan.Record.Proposal.Withdrawn = true
	require.Equal(t, []string{"list", "withdraw"}, d.pass(t, waiting))
}

// answering is a forge with one pull request that somebody answered.
type answering struct {
	forge.None
	pull   forge.PullRequest
	by     forge.Person
	opened int
}

func (a *answering) List(context.Context, forge.Filter) ([]forge.PullRequest, error) {
	return []forge.PullRequest{a.pull}, nil
}

func (a *answering) Get(context.Context, int64) (forge.Details, error) {
	return forge.Details{PullRequest: a.pull, ClosedBy: a.by}, nil
}

func (a *answering) Open(_ context.Context, o forge.Opening) (forge.PullRequest, error) {
	a.opened++
	return forge.PullRequest{Number: 8, URL: "new", State: forge.StateOpen, Title: o.Title, Body: o.Body}, nil
}

// Closed by a person is a no, which the next decision learns; by the bot itself it is nothing, and it is opened again. Merged elsewhere
// is seen once, then it is proposed anew. A branch of others is not written to.
func TestAnswers(t *testing.T) {
	decision := asking()
	decision.Plan.Record.Proposal.PullRequest = "old"
	left := "the branch rampart/prod/shop/checkout has commits of others, and is left alone"
	for name, c := range map[string]struct {
		state  forge.State
		by     forge.Person
		theirs bool
		passes int
		opened int
		want   rollout.Review
	}{
		"closed by a person":       {forge.StateClosed, forge.Person{Login: "ada"}, false, 2, 0, rollout.Review{URL: "old", Rejected: true, By: "ada"}},
		"closed by itself":         {forge.StateClosed, forge.Person{Login: "bot", Self: true}, false, 1, 1, rollout.Review{URL: "new"}},
		"merged just now":          {forge.StateMerged, forge.Person{Login: "ada"}, false, 1, 0, rollout.Review{}},
		"merged elsewhere":         {forge.StateMerged, forge.Person{Login: "ada"}, false, 2, 1, rollout.Review{URL: "new"}},
		"theirs":                   {forge.StateOpen, forge.Person{}, true, 1, 0, rollout.Review{URL: "old", Note: left}},
		"theirs, closed by itself": {forge.StateClosed, forge.Person{Self: true}, true, 1, 0, rollout.Review{Note: left}},
	} {
		t.Run(name, func(t *testing.T) {
			on := &answering{pull: forge.PullRequest{Number: 7, URL: "old", State: c.state, HeadCommit: "x"}, by: c.by}
			d := newDesk(on)
			if c.theirs {
				d.server.there[checkout] = gitops.Proposed{Branch: gitops.ProposalBranch("prod", checkout), Tip: "x", Theirs: true}
			}
			for range c.passes {
				require.NotContains(t, d.pass(t, decision), "withdraw")
			}
			require.Equal(t, c.opened, on.opened)
			if c.want != (rollout.Review{}) {
				c.want.Since = decision.Plan.Record.Proposal.Since
			}
			require.Equal(t, c.want, d.Reviews("prod")[checkout])
		})
	}
}

// A forge that is away, or wants a rest, gets one: no cycle waits for it again and again.
func TestForgeThatDoesNotAnswerIsLeftAlone(t *testing.T) {
	start := newDesk(nil).now
	for name, c := range map[string]struct {
		err  error
		rest time.Duration
	}{
		"away":    {&forge.UnavailableError{Op: "list"}, rest},
		"limited": {&forge.RateLimitError{Until: start.Add(7 * time.Minute)}, 7 * time.Minute},
		"refused": {&forge.RefusedError{Op: "list"}, rest},
	} {
		t.Run(name, func(t *testing.T) {
			on := &failing{err: c.err}
			d := newDesk(on)
			d.pass(t, asking())
			require.Equal(t, 1, on.times)
			d.now = start.Add(c.rest - time.Second)
			require.NotContains(t, d.pass(t, asking()), "propose")
			require.Equal(t, 1, on.times)
			d.now = start.Add(c.rest)
			on.err = nil
			require.Empty(t, cmp.Diff([]string{"list", "propose"}, d.pass(t, asking())))
		})
	}
}
