package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// knownBy are worker deployments by their names; those in capitals have a record.
func knownBy(names string) (out []rollout.Known) {
	for name := range strings.FieldsSeq(names) {
		k := rollout.Known{Deployment: rollout.Name{Namespace: "shop", Name: strings.ToLower(name)}}
		if name != k.Deployment.Name {
			k.Tree = "tree"
		}
		out = append(out, k)
	}
	return out
}

func namesOf(known []rollout.Known) string {
	var out []string
	for _, k := range known {
		out = append(out, k.Deployment.Name)
	}
	return strings.Join(out, " ")
}

func TestEachHasItsTurn(t *testing.T) {
	var s steadiness
	next := func(due string) string { return namesOf(s.turnOf("prod", knownBy(due), 2)) }
	require.Equal(t, "a b", next("a b"))
	require.Zero(t, s.turnIsOver("prod"))

	require.Equal(t, "a c", next("a b C d e"), "one that has a record comes first")
	require.Equal(t, "a c", next("a b C d e"), "the same in another try")
	require.False(t, s.midway("prod"))
	require.Equal(t, 3, s.turnIsOver("prod"))
	require.True(t, s.midway("prod"))
	require.Equal(t, "b f", next("a b C d e F"), "and one that came in between")
	require.Equal(t, 2, s.turnIsOver("prod"))
	require.Equal(t, "c d", namesOf(s.turnOf("test", knownBy("a b C D"), 2)), "of another environment")
	require.Equal(t, 2, s.turnIsOver("test"))
	require.Equal(t, "d", next("A C D"), "nobody has a second one, though they are not too many any more")
	require.Zero(t, s.turnIsOver("prod"), "all had their turn")
	require.False(t, s.midway("prod"))
	require.Equal(t, "a b", next("A B C D E F"), "the next cycle")

	full := knownBy("a b c")
	full[2].Full = &rollout.Snapshot{Record: rollout.Record{Tree: "tree"}}
	require.Equal(t, "a c", namesOf(s.turnOf("full", full, 2)))
}

// asks is a Proposer that knows who was proposed for.
type asks struct {
	*desk
	about [][]string
}

func (a *asks) Propose(_ context.Context, _ rollout.EnvironmentWorld, decisions []*Decision) bool {
	a.about = append(a.about, namesDecided(decisions))
	return false
}

// Where many have to be looked at, it is done in parts, each with a commit. Who keeps proposals is told at the end.
func TestManyAreLookedAtInTurn(t *testing.T) {
	c, desk := newCrowd(t, "a", "b", "c", "d", "e"), &asks{desk: &desk{}}
	c.most = 5
	r := c.reconciler()
	r.AtOnce, r.Proposer = 2, desk
	var earlier [][]string
	r.Decided = func(_ context.Context, decisions []*Decision) { earlier = append(earlier, namesDecided(decisions)) }
	m := logged(c.scene, r)
	report := c.once(r)
	require.Len(t, report.Commits, 3)
	require.Equal(t, 5, report.LookedAt)
	require.Equal(t, [][]string{{"a", "b"}, {"c", "d"}}, earlier)
	require.Equal(t, []string{"e"}, namesDecided(report.Decisions))
	require.Equal(t, [][]string{{"e"}}, desk.about, "of the others nobody asks anything")
	require.Len(t, m.cycles, 3, "each part is recorded at its end")
	for _, d := range c.world.Environments[0].Deployments {
		require.NotNil(t, d.Record.Routing, d.Deployment)
	}
	c.world.Environments[0].Deployments[1].Record.Routing.Spec.Proposal = &v1alpha1.RecordedProposal{BuildID: c.target(), To: 10}
	c.once(r)
	require.Equal(t, []string{"b", "e"}, desk.about[1], "one that proposes something, and those of the last part")
}

func namesDecided(decisions []*Decision) (names []string) {
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
	r.AtOnce, r.Proposer = 2, desk
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

// Where the commit of some is refused, the others have their turn, and nobody's proposal is taken for one that is not there any more.
func TestRefusedTurnHoldsNoOtherUp(t *testing.T) {
	c, desk := newCrowd(t, "a", "b", "c", "d"), &asks{desk: &desk{}}
	c.most = 4
	r := c.reconciler()
	r.AtOnce, r.Proposer = 2, desk
	r.Committer = commits(func(ctx context.Context, commit rollout.Commit) (string, error) {
		if strings.Contains(commit.Changes[0].Path, "/a/") {
			return "", errors.New("refused")
		}
		return c.Commit(ctx, commit)
	})
	report, err := r.Once(t.Context())
	require.EqualError(t, err, "environment default: refused")
	require.Len(t, report.Commits, 1)
	require.Equal(t, "c", report.Decisions[0].Plan.Deployment.Name)
	require.Empty(t, desk.about)
}

// commits is a Committer of nothing but commits.
type commits func(context.Context, rollout.Commit) (string, error)

func (c commits) Commit(ctx context.Context, commit rollout.Commit) (string, error) {
	return c(ctx, commit)
}

func (commits) Confirm(context.Context, map[string]string) (bool, error) { return true, nil }
