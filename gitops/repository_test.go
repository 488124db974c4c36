package gitops

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/gitops/tree"
	"github.com/rampart-gitops/rampart/internal/diskcache"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

func TestSameCommitAgainChangesNothing(t *testing.T) {
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
	request.Changes = []rollout.FileChange{{Path: file, Blob: strings.Repeat("ab", 20)}, {Path: "deploy/new.yaml", Data: "new\n"}, {Path: "elsewhere.yaml", Data: "new\n"},
		{Path: "deploy/shop/y/versions/v1/deployment.yaml", Blob: was}}
	var paths []string
	_, err = repo.Commit(t.Context(), request)
	for _, u := range rollout.Unwritable(err) {
		paths = append(paths, u.Path)
	}
	require.Equal(t, []string{file, "elsewhere.yaml"}, paths, "what is there by its hash is good for another path, too")
	require.ErrorContains(t, err, "is nowhere in the history of main")
}

// What a server has not got any more comes from the mirror.
func TestCommitBringsBackWhatTheServerLost(t *testing.T) {
	r := gittest.NewBareRepo(t)
	file := "deploy/shop/x/versions/v1/deployment.yaml"
	before := r.Commit(gittest.Commit{Write: map[string]string{"a.yaml": specYAML("shop", "x", "i:1")}})
	r.Commit(gittest.Commit{Write: map[string]string{file: "as it was\n"}})
	was := r.Git("rev-parse", "main:"+file)
	repo := open(t, r)
	read(t, repo)
	r.Git("update-ref", "refs/heads/main", before)
	r.Git("reflog", "expire", "--expire=now", "--all")
	r.Git("gc", "--quiet", "--prune=now")
	require.NotContains(t, r.Git("cat-file", "--batch-all-objects", "--batch-check"), was)
	w := read(t, repo)
	_, err := repo.Commit(t.Context(), rollout.Commit{Environment: w.Environments[0].Environment, Base: w.Environments[0].Base, Message: "bring back\n",
		Changes: []rollout.FileChange{{Path: file, Blob: was}}})
	require.NoError(t, err)
	require.Equal(t, "as it was\n", r.Files("main")[file])
	r.Fsck()
}

// A branch that was rewritten while what it had is looked for is read again.
func TestCommitBringsBackFromABranchThatMoved(t *testing.T) {
	r := gittest.NewBareRepo(t)
	file := "deploy/shop/x/versions/v1/deployment.yaml"
	first := r.Commit(gittest.Commit{Write: map[string]string{"a.yaml": specYAML("shop", "x", "i:1"), "deploy/shop/x/routing.yaml": routingYAML("x", "a.yaml")}})
	for range 3 {
		r.Commit(gittest.Commit{Write: map[string]string{file: "changed\n" + r.Tip("main")}})
	}
	repo := open(t, r)
	w := read(t, repo)
	r.Git("update-ref", "refs/heads/main", first)
	r.Commit(gittest.Commit{Write: map[string]string{"README": "another history"}})
	r.Git("reflog", "expire", "--expire=now", "--all")
	r.Git("gc", "--quiet", "--prune=now")
	_, err := repo.Commit(t.Context(), rollout.Commit{Environment: w.Environments[0].Environment, Base: w.Environments[0].Base, Message: "bring back\n",
		Changes: []rollout.FileChange{{Path: file, Blob: strings.Repeat("ab", 20)}}})
	require.ErrorIs(t, err, rollout.ErrMoved)
}

func TestOutputBranchIsBorn(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{layout.Config: twoEnvironments, "prod/a.yaml": specYAML("shop", "x", "i:1"), "shared/c.yaml": connectionYAML}})
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

// An output branch that cannot be fetched any more keeps no other environment. Its own is as it was read last, and
// nothing is committed to it.
func TestOutputBranchThatCannotBeFetched(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{layout.Config: twoEnvironments, "prod/a.yaml": specYAML("shop", "x", "i:1"),
		"staging/a.yaml": specYAML("shop", "y", "i:1"), "shared/c.yaml": connectionYAML}})
	record := "out/prod/shop/x/routing.yaml"
	r.Commit(gittest.Commit{Branch: "rendered", Write: map[string]string{record: routingYAML("x", "prod/a.yaml")}})
	repo := open(t, r)
	was := read(t, repo).Environments[1].Deployments[0].Record.Routing
	require.NotNil(t, was)

	r.Commit(gittest.Commit{Branch: "rendered", Write: map[string]string{record: routingYAML("x", "prod/b.yaml")}})
	lost := r.Git("rev-parse", "rendered:"+record)
	file := filepath.Join(r.Dir, "objects", lost[:2], lost[2:])
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.Remove(file))
	r.Commit(gittest.Commit{Write: map[string]string{"staging/a.yaml": specYAML("shop", "y", "i:2")}})
	for range 2 {
		w := read(t, repo)
		staging, prod := w.Environments[0], w.Environments[1]
		require.Nil(t, staging.Unusable)
		require.Equal(t, r.Git("rev-parse", "main:staging/a.yaml"), staging.Deployments[0].Git.SpecBlob)
		require.True(t, prod.Unrecorded)
		require.Contains(t, prod.Unusable.Message, "branch rendered: cannot be fetched")
		require.Equal(t, was, prod.Deployments[0].Record.Routing)
	}
	first := read(t, open(t, r)) // a bot that never read it
	require.Nil(t, first.Environments[0].Unusable)
	require.Len(t, first.Environments[0].Deployments, 1)
	require.Contains(t, strings.Join(problems(first), " "), "branch rendered: cannot be fetched")

	require.NoError(t, os.WriteFile(file, content, 0o444))
	prod := read(t, repo).Environments[1]
	require.Nil(t, prod.Unusable)
	require.False(t, prod.Unrecorded)
	require.Equal(t, "prod/b.yaml", prod.Deployments[0].Record.Routing.Spec.SpecPath)
}

// When nothing moved, the world is the one that was read before: nothing is listed or decoded.
func TestReadIsCached(t *testing.T) {
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

type loads func(context.Context, []rollout.Snapshot) ([]rollout.Snapshot, error)

// surveyOf gives the snapshots of the first environment as a survey has them, and what loads them.
func surveyOf(t *testing.T, repo *Repository) ([]rollout.Snapshot, loads) {
	t.Helper()
	s, load, err := repo.Survey(t.Context())
	require.NoError(t, err)
	env := s.World.Environments[0]
	return s.Snapshots(env.Environment.Name, env.Entries), load
}

// A survey keeps nothing of what it knows already; what is looked at is loaded from the mirror.
func TestSurveyLeavesOutWhatItReadBefore(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{"x.yaml": specYAML("shop", "x", "i:1"), "connection.yaml": connectionYAML,
		"deploy/shop/x/routing.yaml": routingYAML("x", "x.yaml"), "y.yaml": specYAML("shop", "y", "i:1")}})
	repo := open(t, r)
	var load loads
	survey := func() []rollout.Snapshot {
		var s []rollout.Snapshot
		s, load = surveyOf(t, repo)
		return s
	}
	first := survey()
	require.False(t, first[0].Partial, "it was decoded")
	r.Commit(gittest.Commit{Write: map[string]string{"y.yaml": specYAML("shop", "y", "i:2")}})
	again := survey()
	require.True(t, again[0].Partial)
	require.Nil(t, again[0].Spec)
	require.Nil(t, again[0].Record.Files)
	require.Equal(t, first[0].Connection, again[0].Connection)
	require.False(t, again[1].Partial, "it has no record yet")
	loaded, err := load(t.Context(), again)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(read(t, repo).Environments[0].Deployments, loaded))
}

// What a survey had to decode is complete in that one, and partial in the next one, though nothing moved.
func TestSecondSurveyDecodesNothing(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: manyWorkers(manyFull + 1)})
	repo := open(t, r)
	for time := range 4 {
		if time == 1 { // and after a survey whose reading ended half-way
			_, err := repo.survey.reader.Read(away{}, nil, rollout.GitContext{})
			require.ErrorIs(t, err, errAway)
		}
		all, load := surveyOf(t, repo)
		require.Len(t, all, manyFull+1)
		for _, s := range all {
			require.Equal(t, time > 0, s.Partial)
		}
		loaded, err := load(t.Context(), all)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(withoutManifests(read(t, repo).Environments[0].Deployments), loaded))
	}
}

// away is a tree that cannot be read.
type away struct{ tree.Tree }

var errAway = errors.New("away")

func (away) Root() string                              { return "" }
func (away) List(string, string) ([]tree.Entry, error) { return nil, errAway }
func (away) Read(string, string) ([]byte, error)       { return nil, errAway }

// What a survey knew is known to the next process: nothing that is the same is decoded again.
func TestSurveyOfAnEarlierProcessIsLoaded(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{"x.yaml": specYAML("shop", "x", "i:1"), "connection.yaml": connectionYAML,
		"deploy/shop/x/routing.yaml": routingYAML("x", "x.yaml")}})
	first := open(t, r)
	surveyOf(t, first)
	file := func(repo *Repository) diskcache.File {
		return diskcache.File{Path: filepath.Join(t.TempDir(), "cached"), Key: "v", Parts: []diskcache.Part{repo}}
	}
	kept := file(first)
	require.NoError(t, kept.Save())
	next := open(t, r)
	kept.Parts = []diskcache.Part{next}
	require.NoError(t, kept.Load())
	again, load := surveyOf(t, next)
	require.True(t, again[0].Partial)
	loaded, err := load(t.Context(), again)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(read(t, first).Environments[0].Deployments, loaded))
}

// Entries other than plain files stay as they are, beside what is written and below it: links, submodules, pointers
// of LFS, modes. A spec behind a link does not count, and nothing is written through a link.
func TestCommitLeavesTheTree(t *testing.T) {
	module := strings.Repeat("ab", 20)
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{
		Write: map[string]string{"x.yaml": specYAML("shop", "x", "i:1"), "connection.yaml": connectionYAML, "model.bin": pointerOfLFS, "deploy/big.bin": pointerOfLFS,
			".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n"},
		Exec:    map[string]string{"deploy/apply.sh": "#!/bin/sh\n"},
		Links:   map[string]string{"outside.yaml": "/etc/passwd", "again.yaml": "x.yaml", "deploy/up": "../..", "deploy/shop/linked": "../../elsewhere"},
		Modules: map[string]string{"vendor/library": module, "deploy/shop/module": module}})
	repo := open(t, r)
	world := read(t, repo)
	env := world.Environments[0]
	require.Equal(t, []string{"shop/x"}, names(env), "the link is no second spec")
	require.Empty(t, problems(world))
	before := r.Files("main")

	commit := func(file string) error {
		_, err := repo.Commit(t.Context(), rollout.Commit{Environment: env.Environment, Base: env.Base, Message: "render",
			Changes: []rollout.FileChange{{Path: file, Data: "x\n"}}})
		return err
	}
	for _, file := range []string{"deploy/up/escaped", "deploy/shop/linked/routing.yaml", "deploy/shop/linked", "deploy/shop/module/routing.yaml", "deploy/../x.yaml",
		"/deploy/x", "x.yaml", "deploy/shop/.git/config"} {
		require.Error(t, commit(file), file)
		require.Equal(t, env.Base, r.Tip("main"), file)
	}
	require.NoError(t, commit("deploy/shop/x/routing.yaml"))
	after := r.Files("main")
	require.Equal(t, "x\n", after["deploy/shop/x/routing.yaml"])
	delete(after, "deploy/shop/x/routing.yaml")
	require.Equal(t, before, after)
	r.Fsck()
}

func keys(m map[string]string) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	return out
}

// A worker deployment with templates is never partial: what they say is among what it is compared by.
func TestSurveyOfTemplates(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{"x.yaml": specYAML("shop", "x", "i:1"), "pdb.yaml": templateYAML("pdb", "x"),
		"deploy/shop/x/routing.yaml": routingYAML("x", "x.yaml")}})
	repo := open(t, r)
	for range 2 {
		is, _ := surveyOf(t, repo)
		require.False(t, is[0].Partial)
		require.Len(t, is[0].Resources, 1)
		r.Commit(gittest.Commit{Write: map[string]string{"README": "x"}})
	}
}

// What was surveyed can be loaded while a push hangs: traffic is lowered by it meanwhile.
func TestFillsWhileItPushes(t *testing.T) {
	r := gittest.NewBareRepo(t)
	write := map[string]string{}
	for i := range 20 {
		name := fmt.Sprint("x", i)
		write[name+".yaml"] = specYAML("shop", name, "i:1")
		write["deploy/shop/"+name+"/routing.yaml"] = routingYAML(name, name+".yaml")
	}
	r.Commit(gittest.Commit{Write: write})
	began, over := filepath.Join(r.Dir, "began"), filepath.Join(r.Dir, "over")
	r.Hook("pre-receive", "touch "+began+"; until test -e "+over+"; do sleep 0.02; done")
	repo := open(t, r)
	survey, load, err := repo.Survey(t.Context())
	require.NoError(t, err)
	env := survey.World.Environments[0]
	require.Len(t, env.Entries, 20)
	pushed := make(chan error, 1)
	go func() {
		_, err := repo.Commit(context.Background(), rollout.Commit{Environment: env.Environment, Base: env.Base, Message: "hangs\n",
			Changes: []rollout.FileChange{{Path: "deploy/shop/x1/status.yaml", Data: "x\n"}}})
		pushed <- err
	}()
	ended, cancel := context.WithCancel(t.Context())
	cancel() // nothing is asked of the server
	loads := 0
	for begins := false; !begins || loads < 20; loads++ {
		_, statErr := os.Stat(began)
		begins = begins || statErr == nil
		loaded, err := load(ended, survey.Snapshots(env.Environment.Name, env.Entries))
		require.NoError(t, err)
		require.Len(t, loaded, 20)
		require.NotNil(t, loaded[1].Record.Routing)
	}
	require.NoError(t, os.WriteFile(over, nil, 0o600))
	require.NoError(t, <-pushed)
}

// Parts are commits of their own on top of each other, which come with one push.
func TestCommitInParts(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{"a.yaml": specYAML("shop", "x", "i:1")}})
	r.Hook("post-receive", "echo push >> pushes")
	repo := open(t, r)
	w := read(t, repo)
	file := func(name string) []rollout.FileChange {
		return []rollout.FileChange{{Path: "deploy/shop/" + name + "/status.yaml", Data: name + "\n"}}
	}
	hash, err := repo.Commit(t.Context(), rollout.Commit{Environment: w.Environments[0].Environment, Base: w.Environments[0].Base, Message: "both\n",
		Changes: slices.Concat(file("x"), file("y")), Parts: []rollout.CommitPart{{Changes: file("x"), Message: "about x\n"}, {Changes: file("y"), Message: "about y\n"}}})
	require.NoError(t, err)
	require.Equal(t, r.Tip("main"), hash)
	require.Equal(t, "about y\nabout x", r.Git("log", "-2", "--format=%s", "main"))
	require.Equal(t, "deploy/shop/x/status.yaml", r.Git("diff", "--name-only", "main~2", "main~1"))
	require.Equal(t, "deploy/shop/y/status.yaml", r.Git("diff", "--name-only", "main~1", "main"))
	pushes, err := os.ReadFile(filepath.Join(r.Dir, "pushes"))
	require.NoError(t, err)
	require.Equal(t, "push\n", string(pushes))
	require.Equal(t, hash, read(t, repo).Environments[0].Base)
	_, err = repo.Commit(t.Context(), rollout.Commit{Environment: w.Environments[0].Environment, Base: hash,
		Parts: []rollout.CommitPart{{Changes: file("x"), Message: "x"}, {Changes: []rollout.FileChange{{Path: "elsewhere", Data: "z"}}, Message: "z"}}})
	require.ErrorContains(t, err, "outside of the output")
	require.Equal(t, hash, r.Tip("main"))
	r.Fsck()
}
