package gitops

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

func TestCommit(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{"a.yaml": specYAML("shop", "x", "i:1")}})
	repo := open(t, r)
	w := read(t, repo)
	request := rollout.Commit{Environment: w.Environments[0].Environment, Base: w.Environments[0].Base, Message: "one\n",
		Changes: []rollout.FileChange{{Path: "deploy/shop/x/routing.yaml", Data: routingYAML("x", "a.yaml")}, {Path: "deploy/shop/x/old.yaml", Data: "old\n"}}}
	hash, err := repo.Commit(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, r.Tip("main"), hash)
	require.Equal(t, "rampart <rampart@example.com>", r.Git("log", "-1", "--format=%an <%ae>", "main"))

	// The same again on the new tip changes nothing: no commit.
	w = read(t, repo)
	require.Equal(t, "v1", w.Environments[0].Deployments[0].Record.Routing.Spec.Versions[0].BuildID)
	request.Base = w.Environments[0].Base
	again, err := repo.Commit(t.Context(), request)
	require.NoError(t, err)
	require.Empty(t, again)
	require.Equal(t, hash, r.Tip("main"))
	r.Fsck()
}

func TestCommitAfterSomebodyElse(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{"a.yaml": specYAML("shop", "x", "i:1")}})
	repo := open(t, r)
	w := read(t, repo)
	theirs := r.Commit(gittest.Commit{Write: map[string]string{"README": "theirs\n"}})
	_, err := repo.Commit(t.Context(), rollout.Commit{Environment: w.Environments[0].Environment, Base: w.Environments[0].Base, Message: "ours\n",
		Changes: []rollout.FileChange{{Path: "deploy/x", Data: "x"}}})
	require.ErrorIs(t, err, rollout.ErrMoved)
	require.Equal(t, theirs, r.Tip("main"))
	require.Equal(t, theirs, read(t, repo).Environments[0].Base)
}

func TestCommitStaysInItsOutput(t *testing.T) {
	r := gittest.NewBareRepo(t)
	tip := r.Commit(gittest.Commit{Write: map[string]string{"a.yaml": specYAML("shop", "x", "i:1")}})
	repo := open(t, r)
	w := read(t, repo)
	for _, path := range []string{"a.yaml", "deploy/../a.yaml", "/deploy/x", "deploy", "deploy2/x", "deploy/.git/config"} {
		_, err := repo.Commit(t.Context(), rollout.Commit{Environment: w.Environments[0].Environment, Base: w.Environments[0].Base, Message: "m\n",
			Changes: []rollout.FileChange{{Path: path, Data: "x"}}})
		require.Error(t, err, path)
		require.False(t, errors.Is(err, rollout.ErrMoved), path)
	}
	require.Equal(t, tip, r.Tip("main"))
}

func TestCommitBringsBackOldContent(t *testing.T) {
	r := gittest.NewBareRepo(t)
	file := "deploy/shop/x/versions/v1/deployment.yaml"
	r.Commit(gittest.Commit{Write: map[string]string{"a.yaml": specYAML("shop", "x", "i:1"), file: "as it was\n"}})
	was := r.Git("rev-parse", "main:"+file)
	for range 3 {
		r.Commit(gittest.Commit{Write: map[string]string{file: "changed\n" + r.Tip("main")}})
	}
	repo := open(t, r)
	w := read(t, repo)
	request := rollout.Commit{Environment: w.Environments[0].Environment, Base: w.Environments[0].Base, Message: "bring back\n",
		Changes: []rollout.FileChange{{Path: file, Blob: was}}}
	_, err := repo.Commit(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, "as it was\n", r.Files("main")[file])

	request.Base = read(t, repo).Environments[0].Base
	request.Changes[0].Blob = strings.Repeat("ab", 20)
	_, err = repo.Commit(t.Context(), request)
	require.ErrorContains(t, err, "is nowhere in the history of main")
}

func TestOutputBranchIsBorn(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{ConfigFile: twoEnvironments, "prod/a.yaml": specYAML("shop", "x", "i:1"), "shared/c.yaml": connectionYAML}})
	repo := open(t, r)
	w := read(t, repo)
	prod := w.Environments[1]
	_, err := repo.Commit(t.Context(), rollout.Commit{Environment: prod.Environment, Base: prod.Base, Message: "first\n",
		Changes: []rollout.FileChange{{Path: "out/prod/shop/x/routing.yaml", Data: routingYAML("x", "prod/a.yaml")}}})
	require.NoError(t, err)
	require.Equal(t, []string{"out/prod/shop/x/routing.yaml"}, keys(r.Files("rendered")))
	w = read(t, repo)
	require.Equal(t, r.Tip("rendered"), w.Environments[1].Base)
	require.NotNil(t, w.Environments[1].Deployments[0].Record.Routing)

	specs := map[string]string{"prod/a.yaml": w.Environments[1].Deployments[0].Git.SpecBlob}
	ok, err := repo.Confirm(t.Context(), specs)
	require.NoError(t, err)
	require.True(t, ok)
	r.Commit(gittest.Commit{Write: map[string]string{"prod/a.yaml": specYAML("shop", "x", "i:2")}})
	ok, err = repo.Confirm(t.Context(), specs)
	require.NoError(t, err)
	require.False(t, ok, "the spec moved")
}

// When nothing moved, the world is the one that was read before: nothing is listed or decoded.
func TestReadIsRemembered(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{"a.yaml": specYAML("shop", "x", "i:1")}})
	repo := open(t, r)
	one, two := read(t, repo), read(t, repo)
	require.Same(t, one.Environments[0].Deployments[0].Spec, two.Environments[0].Deployments[0].Spec)
	r.Commit(gittest.Commit{Write: map[string]string{"README": "x"}})
	three := read(t, repo)
	require.NotEqual(t, one.Git.Commit, three.Git.Commit)
	require.Same(t, one.Environments[0].Deployments[0].Spec, three.Environments[0].Deployments[0].Spec, "an unrelated commit decodes nothing again")
}

func keys(m map[string]string) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	return out
}
