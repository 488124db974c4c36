package gitops

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/gitops/index"
	"github.com/rampart-gitops/rampart/gitops/tree"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Files that were gathered read as the same files in a folder.
func TestReadFilesReadsAsAFolder(t *testing.T) {
	spec := func(name string) string {
		return `{apiVersion: temporal.io/v1alpha1, kind: WorkerDeployment, metadata: {name: ` + name + `, namespace: shop}, spec: {
  workerOptions: {connectionRef: {name: temporal}, temporalNamespace: shop}, rollout: {strategy: AllAtOnce},
  template: {spec: {containers: [{name: worker, image: "app:v1"}]}}}}
`
	}
	connection := "{apiVersion: temporal.io/v1alpha1, kind: Connection, metadata: {name: temporal, namespace: shop}, spec: {hostPort: \"t:7233\"}}\n"
	routing := "{apiVersion: rampart.dev/v1alpha1, kind: Routing, metadata: {name: one, namespace: shop}, spec: {workerDeployment: shop/one, " +
		"temporalNamespace: shop, specPath: a/one.yaml, desired: {current: v1}}}\n"
	for name, files := range map[string][]rollout.TextFile{
		"none": nil,
		"one":  {{Path: "one.yaml", Text: spec("one") + "---\n" + connection}},
		"spread": {{Path: "z/t.yml", Text: connection}, {Path: "a/one.yaml", Text: spec("one")}, {Path: "a/b/two.json", Text: spec("two")},
			{Path: "a/b/again.yaml", Text: spec("one")}, {Path: "deploy/shop/one/routing.yaml", Text: routing},
			{Path: "notes.txt", Text: "nothing"}},
		"configured": {{Path: "rampart.yaml", Text: "{apiVersion: rampart.dev/v1alpha1, kind: Config, spec: {environments: [" +
			"{name: prod, specs: [\"prod/**\"], output: {path: out}, policies: [\"p/*.rego\"]}]}}\n"},
			{Path: "p/a.rego", Text: "package x\n"}, {Path: "prod/one.yaml", Text: spec("one")}, {Path: "other/two.yaml", Text: spec("two")}},
		"broken":    {{Path: "one.yaml", Text: "kind: ["}, {Path: "rampart.yml", Text: "x: 1\n"}},
		"too large": {{Path: "big.yaml", Text: strings.Repeat("#", tree.MaxFileSize+1)}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, f := range files {
				full := filepath.Join(dir, filepath.FromSlash(f.Path))
				require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o755))
				require.NoError(t, os.WriteFile(full, []byte(f.Text), 0o644))
			}
			want, err := index.ReadFolder(dir)
			require.NoError(t, err)
			got, err := index.ReadFiles(files)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(want, got))
		})
	}
}

func TestReadFilesRefusesPathsOutside(t *testing.T) {
	for _, p := range []string{"../a.yaml", "/a.yaml", "a//b.yaml", ""} {
		_, err := index.ReadFiles([]rollout.TextFile{{Path: p}})
		var bad *git.PathError
		require.ErrorAs(t, err, &bad)
	}
}
