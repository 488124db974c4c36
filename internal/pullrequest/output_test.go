package pullrequest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

func (s *server) ProposeCommit(_ context.Context, c rollout.Commit, _ gitops.Fingerprint) (gitops.Proposed, error) {
	s.calls = append(s.calls, "propose commit")
	if !s.output.Theirs {
		s.output = gitops.Proposed{Branch: gitops.OutputBranch(c.Environment.Name), Tip: "tip of " + c.Message, ID: "output", At: s.at}
	}
	return s.output, nil
}

func (s *server) ProposedCommit(_ context.Context, environment string) (gitops.Proposed, error) {
	s.calls = append(s.calls, "look for commit")
	if s.output.Tip == "" {
		return gitops.Proposed{Branch: gitops.OutputBranch(environment)}, nil
	}
	return s.output, nil
}

// guarded is a commit that its branch does not take, in an environment that proposes such.
func guarded(message string) rollout.Commit {
	return rollout.Commit{Environment: v1alpha1.Environment{Name: "prod", PullRequests: v1alpha1.PullRequests{OnProtectedBranch: v1alpha1.ProposeCommits}}, Message: message}
}

// A commit gets one pull request, which follows it. Closed by a person it stays closed for as long as it is the same;
// merged it is not opened again; once there is nothing to commit it goes.
func TestCommitsAreProposed(t *testing.T) {
	on := &answering{}
	d := newFixture(on)
	propose := func(message string) {
		t.Helper()
		require.NoError(t, d.ProposeCommit(t.Context(), guarded(message)))
	}
	becomes := func(state forge.State, by forge.Person) {
		on.pull, on.by = forge.PullRequest{Number: 8, State: state, HeadCommit: d.server.output.Tip, Title: "commit to main", Body: "one"}, by
		for _, f := range d.environments["prod"].files {
			f.at = time.Time{}
		}
	}
	propose("one")
	require.Equal(t, 1, on.opened)
	becomes(forge.StateOpen, forge.Person{})
	propose("one")
	propose("two")
	require.Equal(t, 1, on.opened)
	require.Empty(t, on.bodies, "not at once")
	d.now = d.now.Add(updateEvery)
	propose("two")
	propose("two")
	require.Equal(t, []string{"two"}, on.bodies)

	becomes(forge.StateClosed, forge.Person{Login: "ada"})
	propose("two")
	require.Equal(t, 1, on.opened, "a person closed it")
	propose("three")
	require.Equal(t, 2, on.opened, "it is something else")
	becomes(forge.StateClosed, forge.Person{Self: true})
	propose("three")
	require.Equal(t, 3, on.opened, "the forge closed it for the bot")
	becomes(forge.StateMerged, forge.Person{Login: "ada"})
	propose("three")
	require.Equal(t, 3, on.opened, "it was merged")

	becomes(forge.StateOpen, forge.Person{})
	on.bodies = nil
	d.world.Environment = guarded("").Environment
	require.Equal(t, []string{"look for commit", "withdraw", "list"}, d.cycle(t, quiet()))
	require.Equal(t, []string{"8: There is nothing left to commit."}, on.comments)
	d.server.output = gitops.Proposed{}
	require.Empty(t, d.cycle(t, quiet()))
}

// A pull request that the forge closed with its branch leads to the one in its place, or says why there is none.
func TestCommitsPullRequestIsClosedWithItsBranch(t *testing.T) {
	on := &answering{by: forge.Person{Self: true}}
	d := newFixture(on)
	for _, number := range []int64{6, 7} {
		require.NoError(t, d.ProposeCommit(t.Context(), guarded("one")))
		on.pull = forge.PullRequest{Number: number, State: forge.StateClosed, HeadCommit: d.server.output.Tip}
	}
	require.NoError(t, d.ProposeCommit(t.Context(), guarded("one")))
	require.Equal(t, []string{"6: Superseded by new", "7: Superseded by new"}, on.comments)
	on.pull.Number = 8
	d.world.Environment = guarded("").Environment
	d.cycle(t, quiet())
	require.Equal(t, "8: There is nothing left to commit.", on.comments[2])
}

// A branch with commits of others is left alone until they were merged, and so is a forge that is away.
func TestCommitsOfOthersAreLeftAlone(t *testing.T) {
	for state, want := range map[forge.State][]string{
		forge.StateOpen: {"propose commit"}, forge.StateClosed: {"propose commit"}, forge.StateMerged: {"propose commit", "withdraw"},
	} {
		by := &answering{pull: forge.PullRequest{Number: 8, State: state, HeadCommit: "x"}, by: forge.Person{Login: "ada"}}
		d := newFixture(by)
		d.server.output = gitops.Proposed{Branch: gitops.OutputBranch("prod"), Tip: "x", Theirs: true}
		require.NoError(t, d.ProposeCommit(t.Context(), guarded("one")))
		require.Equal(t, want, d.server.calls, state)
		require.Zero(t, by.opened)
	}
	on := &failing{}
	d := newFixture(on)
	on.err = &forge.UnavailableError{Op: "list"}
	require.NoError(t, d.ProposeCommit(t.Context(), guarded("one")))
	require.NoError(t, d.ProposeCommit(t.Context(), guarded("one")))
	require.Equal(t, 1, on.times)
}

// Others' commits are not merged by themselves, whether this run or an earlier one ordered it.
func TestCommitsOfOthersAreNotMergedByThemselves(t *testing.T) {
	on := &answering{pull: forge.PullRequest{Number: 8, State: forge.StateOpen, HeadCommit: "tip of one"}}
	d := newFixture(on)
	env := guarded("one")
	env.Environment.PullRequests.AutoMerge = "Squash"
	require.NoError(t, d.ProposeCommit(t.Context(), env))
	require.Equal(t, []string{"8: when ready tip of one"}, on.told)
	d.server.output = gitops.Proposed{Branch: gitops.OutputBranch("prod"), Tip: "x", Theirs: true}
	on.pull.HeadCommit = "x"
	for range 2 {
		require.NoError(t, d.ProposeCommit(t.Context(), env))
		require.Equal(t, []string{"8: when ready tip of one", "8: not anymore "}, on.told)
	}
	again := newFixture(on)
	again.Branches = d.server
	require.NoError(t, again.ProposeCommit(t.Context(), env))
	require.Equal(t, "8: not anymore ", on.told[2])
}

// What a forge is asked of a commit's pull request goes back to when it was made, and not through all that there ever
// were. What a commit says of its time may be a lie.
func TestCommitsAreLookedForSinceTheyWereMade(t *testing.T) {
	for name, c := range map[string]struct{ made, since time.Duration }{"made a week ago": {-7 * 24 * time.Hour, -7*24*time.Hour - back}, "made tomorrow": {24 * time.Hour, -back}} {
		t.Run(name, func(t *testing.T) {
			on := &busy{answers: -1}
			d := newFixture(on)
			d.server.at = d.now.Add(c.made)
			require.NoError(t, d.ProposeCommit(t.Context(), guarded("one")))
			branch := gitops.OutputBranch("prod")
			require.Equal(t, []forge.Filter{{Head: branch, Base: "main", Open: true}, {Head: branch, Base: "main", Since: d.now.Add(c.since)}}, on.asked)
		})
	}
}

// What an earlier run proposed is looked for once, where the environment proposes commits.
func TestCommitsOfAnEarlierRun(t *testing.T) {
	d := newFixture(forge.None{})
	require.Equal(t, []string{"list"}, d.cycle(t, quiet()))
	d = newFixture(forge.None{})
	d.world.Environment = guarded("").Environment
	d.server.output = gitops.Proposed{Branch: gitops.OutputBranch("prod"), Tip: "x"}
	require.Equal(t, []string{"look for commit", "withdraw", "list"}, d.cycle(t, quiet()))
	d.server.output = gitops.Proposed{}
	require.Empty(t, d.cycle(t, quiet()))
}
