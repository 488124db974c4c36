package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/cmd/rampart/apptest"
)

// What docs/cd.md shows of a manifest is what its command prints.
func TestDeliveryIsAsDocumented(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"rampart.yaml": "apiVersion: rampart.dev/v1alpha1\nkind: Config\nspec:\n  environments:\n  - {name: prod, specs: [workers/**], output: {path: deploy/prod}}\n",
		"workers/checkout.yaml": `apiVersion: temporal.io/v1alpha1
kind: TemporalWorkerDeployment
metadata: {name: checkout, namespace: payments}
spec:
  workerOptions: {connectionRef: {name: temporal}, temporalNamespace: payments}
  rollout: {strategy: AllAtOnce}
  template: {spec: {containers: [{name: worker, image: "checkout:v1"}]}}
`,
		"workers/temporal.yaml": "apiVersion: temporal.io/v1alpha1\nkind: Connection\nmetadata: {name: temporal, namespace: payments}\nspec: {hostPort: \"temporal:7233\"}\n",
	} {
		name = filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
	}
	file := filepath.Join("..", "..", "docs", "cd.md")
	page, err := os.ReadFile(file)
	require.NoError(t, err)
	for tool, first := range map[string]string{"flux": "apiVersion: source.toolkit.fluxcd.io/v1\n", "argocd": "apiVersion: argoproj.io/v1alpha1\n"} {
		a, out := apptest.New(t)
		root := newRoot(a)
		root.SetArgs([]string{tool, "-C", dir, "--repo", "https://git.example.com/platform/workers.git"})
		require.NoError(t, root.Execute())
		before, rest, found := strings.Cut(string(page), "```yaml\n"+first)
		_, after, ended := strings.Cut(rest, "```\n")
		require.True(t, found && ended, tool)
		want := before + "```yaml\n" + out.String() + "```\n" + after
		if *update {
			page = []byte(want)
			require.NoError(t, os.WriteFile(file, page, 0o644))
		}
		require.Equal(t, want, string(page), "go test ./cmd/rampart -run TestDeliveryIsAsDocumented -update writes it")
	}
}
