package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// asks is a Proposer that knows who was proposed for.
type asks struct {
	*desk
	about [][]string
}

func (a *asks) Propose(_ context.Context, _ rollout.EnvironmentWorld, decisions []*rollout.Decision) bool {
	a.about = append(a.about, namesDecided(decisions))
	return false
}

// Where many are due, each cycle decides some, and asks for the next cycle at once. Those that waited come first.
func TestManyAreDecidedInBatches(t *testing.T) {
	c, desk := newCrowd(t, "a", "b", "c", "d", "e"), &asks{desk: &desk{}}
	c.most = 5
	r := c.reconciler()
	r.MaxDue, r.Proposer = 2, desk
	m := logged(c.scene, r)
	var decided [][]string
	for range 3 {
		c.now = c.now.Add(time.Second)
		report := c.once(r)
		require.Len(t, report.Commits, 1)
		require.Equal(t, 2, report.LookedAt)
		require.True(t, report.More)
		decided = append(decided, namesDecided(report.Decisions))
	}
	require.Equal(t, [][]string{{"a", "b"}, {"c", "d"}, {"a", "e"}}, decided, "one that waited, then one that has a record")
	require.Equal(t, decided, desk.about)
	require.Len(t, m.cycles, 3, "what each cycle decides is recorded")
	for _, d := range c.world.Environments[0].Deployments {
		require.NotNil(t, d.Record.Routing, d.Deployment)
	}
}

func namesDecided(decisions []*rollout.Decision) (names []string) {
	for _, d := range decisions {
		names = append(names, d.Plan.Deployment.Name)
	}
	return names
}

// One commit at a time can be proposed.
func TestWhatMayBeProposedIsNotDivided(t *testing.T) {
	c, desk := newCrowd(t, "a", "b", "c", "d", "e"), &asks{desk: &desk{}}
	c.most = 5
	c.world.Environments[0].Environment.PullRequests.OnProtectedBranch = v1alpha1.ProposeCommits
	r := c.reconciler()
	r.MaxDue, r.Proposer = 2, desk
	r.Committer = commits(func(context.Context, rollout.Commit) (string, error) {
		return "", fmt.Errorf("push: %w", rollout.ErrProtected)
	})
	c.once(r)
	require.Len(t, desk.commits, 1)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		require.True(t, slices.ContainsFunc(desk.commits[0].Changes, func(f rollout.FileChange) bool { return strings.Contains(f.Path, "/"+name+"/") }), name)
	}
	require.Empty(t, desk.about)
}

// TestRefusedTurnHoldsNoOtherUp: where the commit of some is refused, the others have their turn. No proposal is taken
// for one that is not there any more.
func TestRefusedTurnHoldsNoOtherUp(t *testing.T) {
	c, desk := newCrowd(t, "a", "b", "c", "d"), &asks{desk: &desk{}}
	c.most = 4
	r := c.reconciler()
	r.MaxDue, r.Proposer = 2, desk
	r.Committer = commits(func(ctx context.Context, commit rollout.Commit) (string, error) {
		if strings.Contains(commit.Changes[0].Path, "/a/") {
			return "", errors.New("refused")
		}
		return c.Commit(ctx, commit)
	})
	_, err := r.Cycle(t.Context())
	require.EqualError(t, err, "environment default: refused")
	require.Empty(t, desk.about)
	c.now = c.now.Add(time.Millisecond)
	require.Empty(t, c.once(r).Commits, "after a failure commits pause")
	c.now = c.now.Add(2 * firstPause)
	report := c.once(r)
	require.Len(t, report.Commits, 1)
	require.Equal(t, []string{"c", "d"}, namesDecided(report.Decisions))
}

// Commits that fail again and again keep none from its turn: each is decided, and so may be lowered.
func TestFailingCommitsKeepNoneFromItsTurn(t *testing.T) {
	c := newCrowd(t, "a", "b", "c", "d", "e", "f")
	c.most = 6
	r := c.reconciler()
	r.MaxDue = 2
	r.Committer = commits(func(context.Context, rollout.Commit) (string, error) { return "", errors.New("refused") })
	m := logged(c.scene, r)
	seen := map[string]bool{}
	for range 3 {
		_, err := r.Cycle(t.Context())
		require.ErrorContains(t, err, "refused")
		for _, made := range m.cycles[len(m.cycles)-1] {
			seen[made.Plan.Deployment.Name] = true
		}
		c.now = c.now.Add(2 * maxPause)
	}
	require.Len(t, seen, 6)
}

// moving is a Committer of another branch than that of the specs, which moved when it is asked for the first time.
type moving struct {
	*crowd
	asked int
}

func (m *moving) Confirm(context.Context, map[string]string) (bool, error) {
	m.asked++
	return m.asked > 1, nil
}

// TestOnlyTheLastTryIsToldOf: the Proposer is not told of decisions of a try that was given up.
func TestOnlyTheLastTryIsToldOf(t *testing.T) {
	c, desk := newCrowd(t, "a", "b"), &asks{desk: &desk{}}
	c.most = 2
	for i := range c.world.Environments[0].Deployments {
		c.world.Environments[0].Deployments[i].SpecPath = "spec.yaml"
	}
	c.world.Environments[0].Environment.Output.Branch = "rendered"
	r, on := c.reconciler(), &moving{crowd: c}
	r.Committer, r.Proposer = on, desk
	for on.asked == 0 { // until something is raised
		desk.about = nil
		report := c.once(r)
		require.Equal(t, []string{"a", "b"}, namesDecided(report.Decisions))
		require.Equal(t, 2, report.LookedAt)
		require.Equal(t, [][]string{{"a", "b"}}, desk.about)
	}
	require.Equal(t, 2, on.asked)
}

// away is a repository that goes away after some reads.
type away struct {
	*fleet
	reads int
}

func (a *away) Read(ctx context.Context) (rollout.World, error) {
	if a.reads--; a.reads < 0 {
		return rollout.World{}, errors.New("away")
	}
	return a.fleet.Read(ctx)
}

// A repository that goes away after the first cycle does not keep the traffic of the others where it is.
func TestTrafficOfLaterBatchesIsLoweredWithoutTheRepository(t *testing.T) {
	f := newFleet(t, 3)
	source := &away{fleet: f, reads: 1}
	r := f.reconciler()
	r.MaxDue, r.Source, r.Metrics = 2, source, nil
	for i := range 3 {
		f.observed[f.name(i)] = rollout.RoutingConfig{Current: f.target, CurrentChangedAt: f.now}
	}
	_, err := r.Cycle(t.Context())
	require.NoError(t, err)
	source.reads = 0
	delete(f.observed, f.name(2)) // it ramps
	f.verdicts[f.name(2)] = rollback("org.errors")
	f.events = nil
	_, err = r.Cycle(t.Context())
	require.ErrorContains(t, err, "away")
	require.Equal(t, []string{"lower w002"}, f.events)
}

// An environment that goes away meanwhile takes no other's turn with it.
func TestEnvironmentsThatComeAndGo(t *testing.T) {
	c := newCrowd(t, "a", "b", "c")
	c.most = 3
	second := c.world.Environments[0]
	second.Environment.Name, second.Deployments = "second", slices.Clone(second.Deployments[:1])
	second.Deployments[0].Environment.Name = "second"
	c.world.Environments = append(c.world.Environments, second)
	r := c.reconciler()
	r.MaxDue = 2
	var of []string
	r.Committer = commits(func(_ context.Context, commit rollout.Commit) (string, error) {
		of = append(of, commit.Environment.Name)
		if len(of) == 1 {
			c.world.Environments = c.world.Environments[1:]
		}
		return "abc", nil
	})
	c.once(r)
	require.Equal(t, []string{"default", "second"}, of)
}

// commits is a Committer of nothing but commits.
type commits func(context.Context, rollout.Commit) (string, error)

func (c commits) Commit(ctx context.Context, commit rollout.Commit) (string, error) {
	return c(ctx, commit)
}

func (commits) Confirm(context.Context, map[string]string) (bool, error) { return true, nil }
