package pullrequest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// What a real forge and a real server do is in the end-to-end tests. Here are those that go away, and how much they are
// asked.

var checkout = rollout.Name{Namespace: "shop", Name: "checkout"}

// server has the branches, and says what it was asked.
type server struct {
	there  map[rollout.Name]gitops.Proposed
	output gitops.Proposed
	at     time.Time // when commits are made
	calls  []string
	// approved is the commit that an approval came with; without a hash there is none, and err is what looking for it
	// ends with.
	approved rollout.ApprovalCommit
	err      error
	// stays is why branches are not removed; nil: they are.
	stays error
}

func (s *server) ApprovalIn(context.Context, v1alpha1.Environment, string, func(v1alpha1.RoutingSpec) bool) (rollout.ApprovalCommit, bool, error) {
	return s.approved, s.approved.Commit != "", s.err
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
	s.there[p.Deployment] = gitops.Proposed{Branch: rollout.ProposalBranch(p.Environment.Name, p.Deployment), Tip: "tip", ID: p.ID}
	return "tip", nil
}

func (s *server) Withdraw(_ context.Context, was gitops.Proposed) error {
	s.calls = append(s.calls, "withdraw")
	if s.stays != nil {
		return s.stays
	}
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

type fixture struct {
	*Manager
	server *server
	now    time.Time
	world  rollout.EnvironmentWorld
	// body is what the bodies of pull requests are, and bodies how many were made.
	body   string
	bodies int
}

func newFixture(on forge.Forge) *fixture {
	d := &fixture{body: "body", server: &server{there: map[rollout.Name]gitops.Proposed{}}, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		world: rollout.EnvironmentWorld{Environment: v1alpha1.Environment{Name: "prod"}, Base: "base"}}
	d.Manager = New(Config{Branches: d.server, Forge: on, Base: "main", Same: bytes.Equal, Now: func() time.Time { return d.now }, Log: slog.New(slog.DiscardHandler),
		Title: func(*rollout.Decision) string { return "title" },
		Commit: func(_ v1alpha1.Environment, branch, message string) (string, string) {
			return "commit to " + branch, message
		},
		Body: func(context.Context, rollout.EnvironmentWorld, *rollout.Decision) string {
			d.bodies++
			return d.body
		}})
	return d
}

func (d *fixture) reviews() map[rollout.Name]rollout.Review {
	reviews, _ := d.Reviews("prod")
	return reviews
}

func (d *fixture) approvers() map[rollout.Name]rollout.Approver {
	_, approvers := d.Reviews("prod")
	return approvers
}

// asking is a decision that waits for approval.
func asking() *rollout.Decision {
	p := &v1alpha1.RecordedProposal{BuildID: "v2", TemplateHash: "h", To: 10, Since: v1alpha1.NewTime(time.Date(2026, 3, 1, 11, 0, 0, 0, time.UTC))}
	return &rollout.Decision{Plan: rollout.Plan{Deployment: checkout, Record: &v1alpha1.RoutingSpec{Proposal: p}, Review: &rollout.ReviewAsk{Proposal: rollout.ReviewedRaise(*p)}}}
}

func quiet() *rollout.Decision {
	return &rollout.Decision{Plan: rollout.Plan{Deployment: checkout, Record: &v1alpha1.RoutingSpec{}}}
}

// cycle runs one cycle, and gives what the server was asked in it.
func (d *fixture) cycle(t *testing.T, decisions ...*rollout.Decision) []string {
	d.server.calls = nil
	d.Propose(t.Context(), d.world, decisions)
	return d.server.calls
}

func TestServerIsAskedForWhatMayHaveMoved(t *testing.T) {
	d := newFixture(forge.None{})
	require.Equal(t, []string{"list"}, d.cycle(t, quiet()), "once, to find what an earlier run left")
	require.Empty(t, d.cycle(t, quiet()))
	require.Equal(t, []string{"list", "propose"}, d.cycle(t, asking()))
	require.Equal(t, []string{"list"}, d.cycle(t, asking()))
	d.world.Base = "newer"
	require.Equal(t, []string{"list", "propose"}, d.cycle(t, asking()))
	require.Equal(t, []string{"list"}, d.cycle(t, asking()))
	require.Equal(t, []string{"list", "withdraw"}, d.cycle(t, quiet()))
	require.Empty(t, d.cycle(t, quiet()))
}

// What is proposed by the record and was not decided in this cycle stays as it is; what no record knows goes.
func TestWhatWasNotDecidedStays(t *testing.T) {
	d := newFixture(forge.None{})
	d.cycle(t, asking())
	record := &v1alpha1.Routing{Spec: v1alpha1.RoutingSpec{Proposal: asking().Plan.Record.Proposal}}
	full := &rollout.Snapshot{Deployment: checkout, Record: rollout.Record{Routing: record}}
	d.world.Entries = []*rollout.IndexEntry{{Deployment: checkout, Full: full}}
	require.Equal(t, []string{"list"}, d.cycle(t))
	full.Record.Routing = &v1alpha1.Routing{}
	require.Equal(t, []string{"list", "withdraw"}, d.cycle(t))
}

// A stage of an evacuation takes the branch when no raise does, and gives way to one. What waits behind another's
// branch keeps that not up.
func TestStagesTakeTurnsWithRaises(t *testing.T) {
	d := newFixture(forge.None{})
	e := v1alpha1.RecordedEvacuation{JobID: "job", State: v1alpha1.EvacuationProposed, ProposedAt: v1alpha1.NewTime(d.now)}
	stage := asking()
	stage.Plan.Record = &v1alpha1.RoutingSpec{Versions: []v1alpha1.RecordedVersion{{Evacuations: []v1alpha1.RecordedEvacuation{e}}}}
	stage.Plan.Review = &rollout.ReviewAsk{Proposal: rollout.ReviewedStage(e)}
	require.Equal(t, []string{"list", "propose"}, d.cycle(t, stage))
	require.Equal(t, rollout.Review{Since: e.ProposedAt, JobID: "job"}, d.reviews()[checkout])
	first := d.server.there[checkout].ID
	raise := asking()
	raise.Plan.Record.Versions = stage.Plan.Record.Versions
	require.Equal(t, []string{"list", "propose"}, d.cycle(t, raise))
	require.NotEqual(t, first, d.server.there[checkout].ID)
	require.Equal(t, rollout.Review{Since: raise.Plan.Review.Proposal.Since}, d.reviews()[checkout])
	stage.Plan.Review = nil // the raise is over, and nothing can be said of the stage now
	require.Equal(t, []string{"list", "withdraw"}, d.cycle(t, stage))
	require.Empty(t, d.cycle(t, stage))
	stage.Plan.Review = &rollout.ReviewAsk{Proposal: rollout.ReviewedStage(e)}
	require.Equal(t, []string{"list", "propose"}, d.cycle(t, stage))
	require.Equal(t, first, d.server.there[checkout].ID)
	stage.Plan.Review = nil
	require.Equal(t, []string{"list"}, d.cycle(t, stage), "it stays")
	require.Equal(t, first, d.server.there[checkout].ID)
}

// A proposal about which nothing can be said now stays as it is; one that was withdrawn goes.
func TestProposalStaysWhileNothingIsKnown(t *testing.T) {
	d := newFixture(forge.None{})
	d.cycle(t, asking())
	waiting := asking()
	waiting.Plan.Review = nil
	require.Equal(t, []string{"list"}, d.cycle(t, waiting))
	require.Equal(t, []string{"list"}, d.cycle(t, &rollout.Decision{Plan: rollout.Plan{Deployment: checkout}}), "no record was written")
	waiting.Plan.Record.Proposal.Withdrawn = true
	require.Equal(t, []string{"list", "withdraw"}, d.cycle(t, waiting))
}

// answering is a forge with one pull request that somebody answered.
type answering struct {
	forge.None
	pull   forge.PullRequest
	by     forge.Person
	opened int
	// bodies are those that were written later, and said is what is said beside each commit.
	bodies []string
	said   map[string]string
	// listed is how often it was asked, orders how often it was to merge by itself, and merged which commit. fails is
	// what opening and merging end with.
	listed   int
	comments []string
	merged   string
	orders   int
	fails    error
	// told is what it was told of merging, and asked who was asked for a review and which labels were set, in turn.
	told, asked []string
	approvals   []forge.Approval
}

func (a *answering) Merge(_ context.Context, number int64, m forge.Merge) (forge.Merging, error) {
	a.told = append(a.told, fmt.Sprintf("%d: %s %s", number, m.When, m.Commit))
	if m.When == forge.NotAnymore {
		return forge.Cancelled, nil
	}
	var unsupported *forge.UnsupportedError
	if errors.As(a.fails, &unsupported) && m.When == forge.Now {
		return "", &forge.NotReadyError{Number: 8}
	}
	a.orders++
	if a.fails == nil {
		a.merged = m.Commit
	}
	return forge.Scheduled, a.fails
}

func (a *answering) SetStatus(_ context.Context, commit string, s forge.Status) error {
	if a.said == nil {
		a.said = map[string]string{}
	}
	a.said[commit] = s.Description
	return nil
}

func (a *answering) List(_ context.Context, f forge.Filter) ([]forge.PullRequest, error) {
	a.listed++
	if f.Open && a.pull.State != forge.StateOpen {
		return nil, nil
	}
	return []forge.PullRequest{a.pull}, nil
}

func (a *answering) Get(context.Context, int64) (forge.Details, error) {
	return forge.Details{PullRequest: a.pull, ClosedBy: a.by, Approvals: a.approvals}, nil
}

func (a *answering) Open(_ context.Context, o forge.Opening) (forge.PullRequest, error) {
	a.opened++
	pull := forge.PullRequest{Number: 8, URL: "new", State: forge.StateOpen, Title: o.Title, Body: o.Body}
	var partial *forge.PartialError
	if errors.As(a.fails, &partial) {
		return pull, a.fails
	}
	return pull, nil
}

func (a *answering) Update(_ context.Context, number int64, c forge.Change) error {
	switch {
	case c.Comment != "":
		a.comments = append(a.comments, fmt.Sprintf("%d: %s", number, c.Comment))
	case c.Body != "":
		a.bodies = append(a.bodies, c.Body)
	case !c.Close:
		a.asked = append(a.asked, fmt.Sprintf("%d: %v %v %v", number, c.Reviewers, c.Teams, c.Label))
		return a.fails
	}
	return nil
}

// A body is made when it is written, and again when it may be out of date; it is written where it is another. A look
// makes a few.
func TestBodiesFollowTheFacts(t *testing.T) {
	on := &answering{}
	d := newFixture(on)
	d.cycle(t, asking())
	require.Equal(t, 1, on.opened)
	on.pull = forge.PullRequest{Number: 8, URL: "new", State: forge.StateOpen, HeadCommit: "tip", Title: "title", Body: "body\r\n"}
	d.body = "newer"
	d.now = d.now.Add(updateEvery - time.Second)
	d.cycle(t, asking())
	require.Equal(t, 1, d.bodies)
	require.Empty(t, on.bodies)
	d.now = d.now.Add(time.Second)
	d.cycle(t, asking())
	d.cycle(t, asking())
	require.Equal(t, 2, d.bodies)
	require.Equal(t, []string{"newer"}, on.bodies)
	d.now = d.now.Add(updateEvery)
	d.cycle(t, asking())
	require.Equal(t, 3, d.bodies, "looked at, and nothing to write")
	require.Equal(t, []string{"newer"}, on.bodies)

	again := newFixture(on) // after a restart it is what it was
	again.Branches = d.server
	again.cycle(t, asking())
	require.Equal(t, 1, again.bodies)
	require.Equal(t, []string{"newer"}, on.bodies)

	many := newFixture(on)
	var all []*rollout.Decision
	for i := range 3 * mostUpdates {
		one := asking()
		one.Plan.Deployment.Name = fmt.Sprintf("checkout-%d", i)
		all = append(all, one)
	}
	many.cycle(t, all...)
	require.Equal(t, len(all), many.bodies, "to open them")
	many.now, many.bodies = many.now.Add(updateEvery), 0
	for looks := range 4 {
		many.cycle(t, all...)
		require.Equal(t, min(looks+1, 3)*mostUpdates, many.bodies)
	}
}

// Closed by a person is a no, which the next decision learns; by the bot itself it is nothing, and it is opened again.
// Merged elsewhere is seen once, then it is proposed anew. A branch of others is not written to.
func TestAnswersOfPeopleAndTheBot(t *testing.T) {
	decision := asking()
	decision.Plan.Record.Proposal.PullRequest = "old"
	decision.Plan.Review.Proposal = rollout.ReviewedRaise(*decision.Plan.Record.Proposal)
	for name, c := range map[string]struct {
		state  forge.State
		by     forge.Person
		theirs bool
		cycles int
		opened int
		want   rollout.Review
	}{
		"closed by a person":       {forge.StateClosed, forge.Person{Login: "ada"}, false, 2, 0, rollout.Review{URL: "old", Rejected: true, By: "ada"}},
		"closed by itself":         {forge.StateClosed, forge.Person{Login: "bot", Self: true}, false, 1, 1, rollout.Review{URL: "new"}},
		"merged just now":          {forge.StateMerged, forge.Person{Login: "ada"}, false, 1, 0, rollout.Review{}},
		"merged elsewhere":         {forge.StateMerged, forge.Person{Login: "ada"}, false, 2, 1, rollout.Review{URL: "new"}},
		"theirs":                   {forge.StateOpen, forge.Person{}, true, 1, 0, rollout.Review{URL: "old"}},
		"theirs, closed by itself": {forge.StateClosed, forge.Person{Self: true}, true, 1, 0, rollout.Review{Since: asking().Plan.Review.Proposal.Since}},
	} {
		t.Run(name, func(t *testing.T) {
			on := &answering{pull: forge.PullRequest{Number: 7, URL: "old", State: c.state, HeadCommit: "x"}, by: c.by}
			d := newFixture(on)
			if c.theirs {
				d.server.there[checkout] = gitops.Proposed{Branch: rollout.ProposalBranch("prod", checkout), Tip: "x", Theirs: true}
			}
			for range c.cycles {
				require.NotContains(t, d.cycle(t, decision), "withdraw")
			}
			require.Equal(t, c.opened, on.opened)
			if c.want != (rollout.Review{}) {
				c.want.Since = decision.Plan.Record.Proposal.Since
			}
			require.Equal(t, c.want, d.reviews()[checkout])
			var link []string
			if c.opened == 1 && c.by.Self {
				link = []string{"7: Superseded by new"}
			}
			require.Equal(t, link, on.comments)
			if c.theirs {
				require.Equal(t, map[string]string{"x": leftAlone}, on.said, "it says so")
			}
		})
	}
}

// A branch with others' commits that was merged, or closed by a person, is free for what comes next. When nothing does,
// what was merged goes.
func TestOthersCommitsThatWereMerged(t *testing.T) {
	for _, c := range []struct {
		state forge.State
		tip   string
		want  []string
		goes  bool
	}{
		{forge.StateMerged, "x", []string{"list", "propose"}, true}, {forge.StateMerged, "pushed since", []string{"list"}, false},
		{forge.StateClosed, "x", []string{"list", "propose"}, false}, {forge.StateClosed, "pushed since", []string{"list"}, false},
	} {
		on := &answering{pull: forge.PullRequest{Number: 7, URL: "old", State: c.state, HeadCommit: "x"}, by: forge.Person{Login: "ada"}}
		d := newFixture(on)
		d.LookEvery = time.Minute
		theirs := gitops.Proposed{Branch: rollout.ProposalBranch("prod", checkout), Tip: c.tip, Theirs: true}
		d.server.there[checkout] = theirs
		require.Equal(t, c.want, d.cycle(t, asking()), "%v", c)

		d.server.there[checkout] = theirs
		d.cycle(t, quiet())
		if c.goes {
			require.NotContains(t, d.server.there, checkout)
			continue
		}
		require.Contains(t, d.server.there, checkout)
		asked := on.listed
		d.cycle(t, quiet())
		require.Equal(t, asked, on.listed, "not each time")
	}
}

// What a pull request waits for, or lacks, keeps nothing up: it is looked at again the next time.
func TestWhatIsMissingKeepsNothingUp(t *testing.T) {
	refused := &forge.RefusedError{Op: "x", Reason: forge.ReasonInvalid}
	for _, err := range []error{&forge.NotReadyError{Number: 8, Said: "Please try again later", Err: refused}, &forge.PartialError{Number: 8, Failed: []error{refused}}} {
		on := &answering{fails: err}
		d := newFixture(on)
		d.world.Environment.PullRequests.AutoMerge = "Squash"
		d.cycle(t, asking())
		on.pull = forge.PullRequest{Number: 8, URL: "new", State: forge.StateOpen, HeadCommit: "tip"}
		on.fails = nil
		d.now = d.now.Add(soon)
		d.cycle(t, asking())
		require.Equal(t, "tip", on.merged)
	}
}

// What an earlier run may have ordered is taken back once, of some pull requests in a look.
func TestOrdersOfAnEarlierRunAreTakenBack(t *testing.T) {
	on, all := &taking{busy: busy{answers: -1}}, manyAsk(2*mostTakenBack+1)
	first, d := newFixture(on), newFixture(on)
	first.cycle(t, all...)
	require.Zero(t, on.taken, "what this run opened has none")
	d.Branches = first.server
	for _, want := range []int{mostTakenBack, 2 * mostTakenBack, 2*mostTakenBack + 1, 2*mostTakenBack + 1} {
		d.cycle(t, all...)
		require.Equal(t, want, on.taken)
	}
}

// taking counts how often it is told not to merge by itself.
type taking struct {
	busy
	taken int
}

func (f *taking) Merge(_ context.Context, _ int64, m forge.Merge) (forge.Merging, error) {
	if m.When != forge.NotAnymore {
		return "", errors.New("nobody asked for that")
	}
	f.taken++
	return forge.Cancelled, nil
}

// A merge that is not ready is tried less and less often, and at once when something happened at the forge.
func TestMergesAreTriedInTurns(t *testing.T) {
	for _, err := range []error{&forge.NotReadyError{Number: 8}, &forge.UnsupportedError{What: "automatic merge"}} {
		on := &answering{fails: err}
		d := newFixture(on)
		d.world.Environment.PullRequests.AutoMerge = "Squash"
		d.cycle(t, asking())
		on.pull = forge.PullRequest{Number: 8, URL: "new", State: forge.StateOpen, HeadCommit: "tip"}
		tries := func(seconds int) int {
			on.orders = 0
			for range seconds {
				d.now = d.now.Add(time.Second)
				d.cycle(t, asking())
			}
			return on.orders
		}
		require.Equal(t, 3, tries(35), "after 5, 15 and 35 seconds")
		require.Equal(t, 10, tries(600), "then once a minute, nearly")
		d.LookAgain()
		require.Equal(t, 1, tries(1))
		for range 4 {
			d.LookAgain()
			require.Zero(t, tries(1), "not each time that somebody says so")
		}
		d.LookAgain()
		require.Equal(t, 1, tries(1))
	}
}

// A forge that is away, or wants a rest, gets one: no cycle waits for it again and again.
func TestForgeThatDoesNotAnswerIsLeftAlone(t *testing.T) {
	start := newFixture(nil).now
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
			d := newFixture(on)
			d.cycle(t, asking())
			require.Equal(t, 1, on.times)
			d.now = start.Add(c.rest - time.Second)
			require.NotContains(t, d.cycle(t, asking()), "propose")
			require.Equal(t, 1, on.times)
			d.now = start.Add(c.rest)
			on.err = nil
			require.Empty(t, cmp.Diff([]string{"list", "propose"}, d.cycle(t, asking())))
		})
	}
}

// What waits for approval while policy holds it says so, and is not merged by itself until it may be done again.
func TestFrozenProposalSaysSo(t *testing.T) {
	on := &answering{pull: forge.PullRequest{Number: 7, URL: "u", State: forge.StateOpen, Base: "main", HeadCommit: "tip"}}
	d := newFixture(on)
	d.world.Environment.PullRequests.AutoMerge = v1alpha1.MergeSquash
	frozen := asking()
	frozen.Plan.Review = nil
	frozen.Plan.Held = []rollout.Held{{Action: rollout.Action{Kind: rollout.Ramp}, Verdict: rollout.Verdict{Effect: rollout.HoldEffect}}}
	d.cycle(t, asking()) // its branch is there
	on.comments = nil
	for range 2 {
		on.told = nil
		d.cycle(t, asking())
		require.Equal(t, allowed, on.said["tip"])
		require.Equal(t, []string{"7: when ready tip"}, on.told)
		on.told = nil
		for range 2 {
			require.Equal(t, []string{"list"}, d.cycle(t, frozen))
		}
		require.Equal(t, heldBack, on.said["tip"])
		require.Equal(t, []string{"7: not anymore "}, on.told, "once")
		require.Empty(t, on.comments)
	}
}

// Where the bot's own configuration demands approval, no raise is merged by itself, whatever the environment says.
func TestPeopleMerge(t *testing.T) {
	on := &answering{pull: forge.PullRequest{Number: 7, URL: "u", State: forge.StateOpen, Base: "main", HeadCommit: "tip"}}
	d := newFixture(on)
	d.world.Environment.PullRequests.AutoMerge = v1alpha1.MergeSquash
	d.world.PeopleMerge = true
	for range 2 {
		d.cycle(t, asking())
	}
	require.Zero(t, on.orders)
	d.world.PeopleMerge = false
	d.cycle(t, asking())
	require.Equal(t, 1, on.orders)
}

// What a run that was ended did not do any more for a pull request that it opened is done by the next one, once. The
// labels are what it is known by, since they are set last.
func TestOpeningIsFinished(t *testing.T) {
	opened := forge.PullRequest{Number: 8, URL: "new", State: forge.StateOpen, Base: "main", HeadCommit: "tip", Title: "title", Body: "body"}
	labeled := opened
	labeled.Labels = []string{"more", "Rampart"}
	asks := v1alpha1.PullRequests{Labels: []string{"rampart"}, Reviewers: []string{"ada", "bob"}, Teams: []string{"ops"}}
	all, none := "8: [ada bob] [ops] [rampart]", []string(nil)
	away := &forge.UnavailableError{Op: "it", Err: errors.New("away")}
	for name, c := range map[string]struct {
		pull  forge.PullRequest // zero: it has yet to be opened
		fails error
		asks  v1alpha1.PullRequests
		by    []string // who approved it
		want  []string // is asked in three cycles, with a rest between them; the first fails
	}{
		"it was cut off":                 {opened, nil, asks, nil, []string{all}},
		"it was not":                     {labeled, nil, asks, nil, none},
		"there is nothing to tell it by": {opened, nil, v1alpha1.PullRequests{Reviewers: []string{"ada"}}, nil, none},
		"some approved it meanwhile":     {opened, nil, asks, []string{"ada"}, []string{"8: [bob] [ops] [rampart]"}},
		"some cannot be asked":           {opened, &forge.PartialError{Number: 8, Failed: []error{errors.New("no such person")}}, asks, nil, []string{all}},
		"the forge goes away":            {opened, &forge.PartialError{Number: 8, Failed: []error{away}}, asks, nil, []string{all, all}},
		"opened by itself":               {forge.PullRequest{}, nil, asks, nil, none},
		"opened as far as may be":        {forge.PullRequest{}, &forge.PartialError{Number: 8, Failed: []error{errors.New("no such person")}}, asks, nil, none},
		"opened while it goes away":      {forge.PullRequest{}, &forge.PartialError{Number: 8, Failed: []error{away}}, asks, nil, []string{all, all}},
	} {
		t.Run(name, func(t *testing.T) {
			on := &answering{pull: c.pull, fails: c.fails}
			for _, login := range c.by {
				on.approvals = append(on.approvals, forge.Approval{By: forge.Person{Login: login}})
			}
			before, d := newFixture(forge.None{}), newFixture(on)
			before.cycle(t, asking()) // pushed the branch
			d.Branches, d.world.Environment.PullRequests = before.server, c.asks
			for range 3 {
				d.cycle(t, asking())
				require.Equal(t, "new", d.reviews()[checkout].URL, "where it is reviewed is known all the same")
				if on.pull.Number == 0 {
					on.pull = opened
				}
				on.fails = nil
				d.now = d.now.Add(rest)
			}
			require.Equal(t, c.want, on.asked)
		})
	}
	t.Run("one of commits", func(t *testing.T) {
		for _, pull := range []forge.PullRequest{opened, labeled} {
			on := &answering{pull: pull}
			d, commit := newFixture(on), guarded("one")
			commit.Environment.PullRequests.Labels, commit.Environment.PullRequests.Reviewers = asks.Labels, asks.Reviewers
			d.world.Environment = commit.Environment
			on.pull.HeadCommit = "tip of one"
			for range 2 {
				require.NoError(t, d.ProposeCommit(t.Context(), commit))
			}
			if len(pull.Labels) == 0 {
				require.Equal(t, []string{"8: [ada bob] [] [rampart]"}, on.asked)
			} else {
				require.Empty(t, on.asked)
			}
		}
	})
}

// unlinking is a forge that takes no link for a while.
type unlinking struct {
	answering
	refuses bool
}

func (u *unlinking) Update(ctx context.Context, number int64, c forge.Change) error {
	if u.refuses && c.Comment != "" && !c.Close {
		return &forge.UnavailableError{Op: "it", Err: errors.New("away")}
	}
	return u.answering.Update(ctx, number, c)
}

// A link that could not be written is written later.
func TestLinkIsWrittenLater(t *testing.T) {
	on := &unlinking{refuses: true, answering: answering{pull: forge.PullRequest{Number: 7, URL: "u", State: forge.StateOpen, Base: "main", HeadCommit: "tip"}}}
	d := newFixture(on)
	d.cycle(t, asking())
	closed := []string{"7: This does not come next any more. Another proposal takes its place."}
	require.Equal(t, closed, on.comments)
	on.refuses = false
	on.pull = forge.PullRequest{Number: 8, URL: "new", State: forge.StateOpen, Base: "main", HeadCommit: "tip"}
	for range 2 {
		d.now = d.now.Add(rest)
		d.cycle(t, asking())
	}
	require.Equal(t, append(closed, "7: Superseded by new"), on.comments)
}

// A pull request that the forge closed with its branch says why, and once however often the branch cannot be removed.
func TestClosedWithItsBranch(t *testing.T) {
	on := &answering{}
	d := newFixture(on)
	d.cycle(t, asking())
	on.pull = forge.PullRequest{Number: 8, URL: "new", State: forge.StateClosed, Base: "main", HeadCommit: "tip"}
	on.by, d.server.stays = forge.Person{Self: true}, errors.New("away")
	d.cycle(t, quiet())
	d.cycle(t, quiet())
	require.NotEmpty(t, d.server.there)
	d.server.stays = nil
	d.cycle(t, quiet())
	require.Empty(t, d.server.there)
	require.Equal(t, []string{"8: " + notNext}, on.comments)
}
