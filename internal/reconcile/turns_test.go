package reconcile

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
	require.Equal(t, 3, s.turnIsOver("prod"))
	require.Equal(t, "b f", next("a b C d e F"), "and one that came in between")
	require.Equal(t, 2, s.turnIsOver("prod"))
	require.Equal(t, "c d", namesOf(s.turnOf("test", knownBy("a b C D"), 2)), "of another environment")
	require.Equal(t, 2, s.turnIsOver("test"))
	require.Equal(t, "d e", next("A B C D E F"))
	require.Zero(t, s.turnIsOver("prod"), "all had their turn")
	require.Equal(t, "a b", next("A B C D E F"), "the next one")
	require.Equal(t, 4, s.turnIsOver("prod"))
	require.Equal(t, "a b", next("A B"), "they are not too many any more")
	require.Zero(t, s.turnIsOver("prod"))

	require.Equal(t, "a b", next("A B C D E F"))
	require.Equal(t, 4, s.turnIsOver("prod"))
	require.Equal(t, "c d", next("A B C D E F"))
	require.Equal(t, 2, s.turnIsOver("prod"))
	require.Equal(t, "a b", next("A B C D"), "those that were left are settled: all of the others may come again")
	require.Equal(t, 2, s.turnIsOver("prod"))
	require.Equal(t, "c d", next("A B C D"))
	require.Zero(t, s.turnIsOver("prod"))

	full := knownBy("a b c")
	full[2].Full = &rollout.Snapshot{Record: rollout.Record{Tree: "tree"}}
	require.Equal(t, "a c", namesOf(s.turnOf("prod", full, 2)))
}

// More than a cycle looks at are looked at in cycles that follow, each once.
func TestManyAreLookedAtInTurn(t *testing.T) {
	c := newCrowd(t, "a", "b", "c", "d", "e")
	c.most = 5
	r := c.reconciler()
	r.AtOnce = 2
	var looked []string
	for _, waiting := range []int{3, 1, 0} {
		report := c.once(r)
		require.Equal(t, waiting, report.Waiting)
		require.Len(t, report.Commits, 1)
		for _, d := range report.Decisions {
			looked = append(looked, d.Plan.Deployment.Name)
		}
	}
	require.Equal(t, []string{"a", "b", "c", "d", "e"}, looked)
	for _, d := range c.world.Environments[0].Deployments {
		require.NotNil(t, d.Record.Routing, d.Deployment)
	}
	require.Equal(t, 3, c.once(r).Waiting, "and again from the first one on")
}

// Where the commit of some is refused, the others have their turn.
func TestRefusedTurnHoldsNoOtherUp(t *testing.T) {
	c := newCrowd(t, "a", "b", "c", "d")
	c.most = 4
	r := c.reconciler()
	r.AtOnce = 2
	r.Committer = commits(func(ctx context.Context, commit rollout.Commit) (string, error) {
		if strings.Contains(commit.Changes[0].Path, "/a/") {
			return "", errors.New("refused")
		}
		return c.Commit(ctx, commit)
	})
	report, err := r.Once(t.Context())
	require.ErrorContains(t, err, "refused")
	require.Equal(t, 2, report.Waiting)
	report = c.once(r)
	require.Zero(t, report.Waiting)
	require.Equal(t, "c", report.Decisions[0].Plan.Deployment.Name)
}

// commits is a Committer of nothing but commits.
type commits func(context.Context, rollout.Commit) (string, error)

func (c commits) Commit(ctx context.Context, commit rollout.Commit) (string, error) {
	return c(ctx, commit)
}

func (commits) Confirm(context.Context, map[string]string) (bool, error) { return true, nil }
