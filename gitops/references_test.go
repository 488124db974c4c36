package gitops

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/index"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/testneed"
)

// referring is a repository whose version v1 names two ConfigMaps and a Secret, by the files that it has.
func referring() map[string]string {
	routing := strings.Replace(routingYAML("checkout", "workers/checkout.yaml"), "files: {}",
		"files: {deployment.yaml: "+strings.Repeat("a", 40)+"}", 1)
	return map[string]string{
		"rampart.yaml":                      oneEnvironment,
		"workers/checkout.yaml":             specYAML("shop", "checkout", "app:v1"),
		"workers/connection.yaml":           connectionYAML,
		"deploy/shop/checkout/routing.yaml": strings.Replace(routing, `current: ""`, "current: v1", 1),
		"deploy/shop/checkout/versions/v1/deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: checkout-v1, namespace: shop}
spec:
  template:
    spec:
      containers:
      - name: worker
        envFrom: [{configMapRef: {name: settings}}, {configMapRef: {name: flags}}, {secretRef: {name: login}}]
`,
		// In a list, in a file of another one's namespace, of another kind, of another API, in a template, and in none
		// of these files.
		"config/settings.yaml": "apiVersion: v1\nkind: List\nitems:\n" +
			"- {apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop}}\n",
		"config/again.json": `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}`,
		"config/flags.yml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: flags, namespace: shop}\n",
		"config/other.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: other}\n" +
			"---\napiVersion: v1\nkind: Secret\nmetadata: {name: settings}\n",
		"config/sealed.yaml":      "apiVersion: example.com/v1\nkind: Secret\nmetadata: {name: login, namespace: shop}\n",
		"chart/templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Values.name }}-settings}\n",
		"config/settings.txt":     "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: shop}\n",
	}
}

const oneEnvironment = `apiVersion: rampart.dev/v1alpha1
kind: Config
spec:
  environments:
    - {name: prod, specs: ["workers/**"], output: {path: deploy}}
`

func always(rollout.EnvironmentWorld, rollout.Name, bool) bool { return true }

func onChanges(_ rollout.EnvironmentWorld, _ rollout.Name, compared bool) bool { return compared }

// held are the files of each object that v1 of the first worker deployment names, and those that held it before.
func held(t *testing.T, w rollout.World) map[string][2][]string {
	t.Helper()
	require.Len(t, w.Environments, 1)
	require.Len(t, w.Environments[0].Deployments, 1)
	versions := w.Environments[0].Deployments[0].References
	require.Len(t, versions, 1)
	require.Equal(t, rollout.StatusCurrent, versions[0].State)
	out := map[string][2][]string{}
	for _, object := range versions[0].Objects {
		out[object.Kind+" "+object.Name] = [2][]string{object.Files, object.Removed}
	}
	return out
}

// An object is found by its kind, namespace and name, wherever it is in the tree.
func TestLocateReferences(t *testing.T) {
	want := map[string][2][]string{
		"ConfigMap settings": {{"config/again.json", "config/settings.yaml"}},
		"ConfigMap flags":    {{"config/flags.yml"}},
		"Secret login":       {},
	}
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: referring()})
	repo := open(t, r)
	require.Nil(t, read(t, repo).Environments[0].Deployments[0].References, "nobody asked")

	located, err := Open(Config{URL: r.URL(), Branch: "main", CacheDir: t.TempDir(),
		Log: slog.New(slog.DiscardHandler), Now: time.Now, Options: []index.Option{index.LocateReferences(always)}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, located.Close()) })
	require.Equal(t, want, held(t, read(t, located)))

	dir := t.TempDir()
	for file, text := range referring() {
		full := filepath.Join(dir, file)
		require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o755))
		require.NoError(t, os.WriteFile(full, []byte(text), 0o600))
	}
	world, err := index.ReadFolder(dir, index.LocateReferences(always))
	require.NoError(t, err)
	require.Equal(t, want, held(t, world))
	world, err = index.ReadFolder(dir, index.LocateReferences(func(_ rollout.EnvironmentWorld, of rollout.Name, compared bool) bool {
		return of.Name != "checkout" || compared
	}))
	require.NoError(t, err)
	require.Nil(t, world.Environments[0].Deployments[0].References)
}

// What a change takes out of the last file that holds it is removed: not what moves to another file, nor what was
// never there.
func TestRemovedReferences(t *testing.T) {
	want := map[string][2][]string{
		"ConfigMap settings": {{"config/again.json"}},
		"ConfigMap flags":    {nil, {"config/flags.yml"}},
		"Secret login":       {},
	}
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: referring()})
	gone := []string{"config/settings.yaml", "config/flags.yml"}
	r.Commit(gittest.Commit{Branch: "change", Parent: "refs/heads/main", Delete: gone})
	m, err := ReadMerge(t.Context(), MergeQuery{Dir: r.Dir, Base: "main", Head: "change"},
		index.LocateReferences(onChanges))
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	require.Equal(t, want, held(t, m.After))
	require.True(t, m.After.Environments[0].Deployments[0].LosesReferences())
	for _, world := range []rollout.World{m.Before, m.Own} {
		require.Nil(t, world.Environments[0].Deployments[0].References, "that is no change on top of a base")
	}

	dir := filepath.Join(t.TempDir(), "clone")
	out, err := exec.CommandContext(t.Context(), "git", "clone", "-q", r.Dir, dir).CombinedOutput()
	require.NoError(t, err, string(out))
	for _, file := range gone {
		require.NoError(t, os.Remove(filepath.Join(dir, file)))
	}
	world, err := ReadChange(dir, "HEAD", index.LocateReferences(always))
	require.NoError(t, err)
	require.Equal(t, want, held(t, world))
}

// A change that is a bomb makes what versions name unknown, and ends nothing else.
func TestReferencesInABomb(t *testing.T) {
	testneed.Plain(t)
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: referring()})
	many := func(entry string) string { // a folder of a thousand
		var entries strings.Builder
		for i := range 1000 {
			fmt.Fprintf(&entries, "%s\t%03d.yaml\n", entry, i)
		}
		return r.GitInput([]byte(entries.String()), "mktree")
	}
	tree := many("040000 tree " + many("100644 blob "+r.GitInput([]byte("a: b\n"), "hash-object", "-w", "--stdin")))
	root := r.Git("ls-tree", "main") + "\n040000 tree " + tree + "\tzoo\n"
	commit := r.Git("commit-tree", "-p", "main", "-m", "bomb", r.GitInput([]byte(root), "mktree"))
	r.Git("update-ref", "refs/heads/change", commit)
	m, err := ReadMerge(t.Context(), MergeQuery{Dir: r.Dir, Base: "main", Head: "change"}, index.LocateReferences(onChanges))
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	require.Nil(t, m.After.Environments[0].Deployments[0].References)
	require.Contains(t, strings.Join(problems(m.After), "\n"),
		"where the repository holds what versions name is not known: there are more than 500000 files and folders")
}
