package temporalenv_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// repo is a bare repository and a clone to write with.
type repo struct {
	t           *testing.T
	bare, clone string
}

func newRepo(t *testing.T) *repo {
	t.Helper()
	r := &repo{t: t, bare: filepath.Join(t.TempDir(), "bare.git"), clone: t.TempDir()}
	r.git("init", "--quiet", "--bare", r.bare)
	r.git("init", "--quiet", "-b", "main", r.clone)
	return r
}

func (r *repo) git(args ...string) {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "git", args...)
	cmd.Dir = r.clone
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	out, err := cmd.CombinedOutput()
	require.NoError(r.t, err, string(out))
}

// push commits files; empty content removes one.
func (r *repo) push(files map[string]string) {
	r.t.Helper()
	for name, content := range files {
		path := filepath.Join(r.clone, name)
		if content == "" {
			require.NoError(r.t, os.Remove(path))
			continue
		}
		require.NoError(r.t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(r.t, os.WriteFile(path, []byte(content), 0o600))
	}
	r.git("add", "--all")
	r.git("commit", "--quiet", "-m", "change")
	r.git("push", "--quiet", r.bare, "HEAD:refs/heads/main")
}

func (e *env) watch(source temporalenv.Source) {
	e.T.Helper()
	ctx, cancel := context.WithCancel(e.Ctx)
	ended := make(chan error, 1)
	go func() { ended <- e.Fleet.Watch(ctx, source) }()
	e.T.Cleanup(func() {
		cancel()
		require.ErrorIs(e.T, <-ended, context.Canceled)
	})
}

func (e *env) awaitFleet(want ...temporalenv.Status) {
	e.T.Helper()
	e.Eventually(func(context.Context) error { return diff(want, e.Fleet.Status()) })
}

func TestWatchAppliesAndPrunesLikeArgoCD(t *testing.T) {
	e := newEnv(t)
	r := newRepo(t)
	e.watch(temporalenv.Source{Repo: r.bare, Branch: "main", Path: "deploy"})
	v1 := e.manifest("v1", "app", 1)
	guarded := strings.Replace(v1, "metadata: {name", "metadata: {annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}, name", 1)
	r.push(map[string]string{
		"deploy/kustomization.yaml":      "resources: [shop]\n",
		"deploy/shop/kustomization.yaml": "resources: [v1.yaml]\n",
		"deploy/shop/v1.yaml":            guarded,
		"deploy/shop/unlisted.yaml":      e.manifest("v2", "app", 1),
		"elsewhere/kustomization.yaml":   "resources: [v3.yaml]\n",
		"elsewhere/v3.yaml":              e.manifest("v3", "app", 1),
		"deploy/shop/routing.yaml":       "apiVersion: rampart.dev/v1alpha1\nkind: Routing\nmetadata: {name: checkout}\n",
	})
	running := temporalenv.Status{Object: object, Replicas: 1, Ready: 1, Image: "app"}
	e.awaitFleet(running)
	e.awaitPollers("v1")

	// Gone from Git with its guard on: it stays, and is reported.
	r.push(map[string]string{"deploy/shop/kustomization.yaml": "resources: []\n", "deploy/shop/v1.yaml": ""})
	orphan := running
	orphan.Orphan = true
	e.awaitFleet(orphan)
	require.Equal(t, []string{object}, e.Fleet.Orphans())

	// A commit that cannot be built changes nothing.
	r.push(map[string]string{"deploy/shop/kustomization.yaml": "resources: [nope.yaml]\n"})
	e.Eventually(func(context.Context) error {
		events := e.events()
		return diff(temporalenv.SyncFailed, events[len(events)-1].Kind)
	})
	e.awaitFleet(orphan)

	// Back with the guard lifted and scaled to zero, then gone for good.
	r.push(map[string]string{
		"deploy/shop/kustomization.yaml": "resources: [v1.yaml]\n",
		"deploy/shop/v1.yaml":            e.manifest("v1", "app", 0),
	})
	e.awaitFleet(temporalenv.Status{Object: object, Image: "app"})
	e.awaitNoPollers("v1")
	r.push(map[string]string{"deploy/shop/kustomization.yaml": "resources: []\n", "deploy/shop/v1.yaml": ""})
	e.Eventually(func(context.Context) error { return diff([]temporalenv.Status{}, e.Fleet.Status()) })

	var got []temporalenv.Event
	for _, event := range e.events() {
		if event.Kind == temporalenv.SyncFailed {
			event.Detail, event.Object = "", ""
		}
		got = append(got, event)
	}
	require.Empty(t, cmp.Diff([]temporalenv.Event{
		{Kind: temporalenv.Applied, Object: object},
		{Kind: temporalenv.Scaled, Object: object, Detail: "0 -> 1"},
		{Kind: temporalenv.PruneRefused, Object: object},
		{Kind: temporalenv.SyncFailed},
		{Kind: temporalenv.Applied, Object: object},
		{Kind: temporalenv.Scaled, Object: object, Detail: "1 -> 0"},
		{Kind: temporalenv.Pruned, Object: object},
	}, got, withoutTime))
}

func TestWatchNotesARepositoryItCannotReachOnce(t *testing.T) {
	e := newEnv(t)
	r := newRepo(t)
	missing := r.bare + "-moved"
	e.watch(temporalenv.Source{Repo: missing, Branch: "main"})
	e.Eventually(func(context.Context) error {
		if len(e.events()) == 0 {
			return os.ErrNotExist
		}
		return nil
	})
	r.push(map[string]string{
		"kustomization.yaml": "resources: [v1.yaml]\n", "v1.yaml": e.manifest("v1", "app", 0),
	})
	require.NoError(t, os.Rename(r.bare, missing))
	e.awaitFleet(temporalenv.Status{Object: object, Image: "app"})
	events := e.events()
	require.Equal(t, temporalenv.SyncFailed, events[0].Kind)
	require.Equal(t, temporalenv.Applied, events[1].Kind)
}
