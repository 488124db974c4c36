package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/testneed"
)

// itself runs this program, as a process of its own.
func itself(t *testing.T, args ...string) (out, err string, code int) {
	t.Helper()
	cmd := exec.Command("rampart", args...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run()
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// One spec in three ways is rendered to the same bytes, by the program as it is, and with the same build ID.
func TestThreeWaysAreRenderedAlike(t *testing.T) {
	testneed.Plain(t)
	var plain string
	for _, way := range []string{"plain", "kustomize", "helm"} {
		dir := filepath.Join("..", "..", "examples", "sources", way)
		_, said, code := itself(t, "-C", dir, "validate")
		require.Equal(t, 0, code, said)
		out, said, code := itself(t, "-C", dir, "render")
		require.Equal(t, 0, code, said)
		require.Contains(t, out, "checkout:v2")
		if way == "plain" {
			plain = out
		}
		require.Equal(t, plain, out, way)
	}
}

// A folder that cannot be built, or never ends, is an error with its file, and the other environment's specs are
// checked all the same.
func TestValidateSaysWhyAFolderCannotBeBuilt(t *testing.T) {
	testneed.Plain(t)
	for name, c := range map[string]struct{ file, text, want string }{
		"remote base": {"kustomize/workers/base/kustomization.yaml", "resources: [checkout.yaml, \"https://example.com/a\"]\n",
			"workers/base/kustomization.yaml:1: resources[1]: \"https://example.com/a\" is in another place"},
		"template": {"helm/charts/checkout/templates/checkout.yaml", "{{ if }}\n", "charts/checkout/Chart.yaml: cannot be rendered: parse error at (checkout/templates/checkout.yaml:1)"},
		"bomb": {"helm/charts/checkout/templates/checkout.yaml", "{{ range until 4000000000 }}{{ end }}\n",
			"charts/checkout/Chart.yaml: cannot be built: the process that builds it ended, most likely because it needed more than 384 MiB of memory"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.CopyFS(dir, os.DirFS("../../examples/sources")))
			require.NoError(t, os.WriteFile(filepath.Join(dir, c.file), []byte(c.text), 0o600))
			way, _, _ := strings.Cut(c.file, "/")
			out, _, code := itself(t, "-C", filepath.Join(dir, way), "validate")
			require.Equal(t, 1, code)
			require.Contains(t, out, c.want)
			_, said, code := itself(t, "-C", filepath.Join(dir, way), "render")
			require.Equal(t, 1, code)
			require.Contains(t, said, c.want)
		})
	}
}

// Paths below a repository show a part of it: files that a folder is built from are no specs by themselves.
func TestValidatePartOfARepositoryWithFolders(t *testing.T) {
	testneed.Plain(t)
	dir := filepath.Join("..", "..", "examples", "sources", "helm")
	out, said, code := itself(t, "-C", dir, "validate", filepath.Join(dir, "charts", "checkout"))
	require.Equal(t, 0, code, out+said)
	require.Contains(t, said, "worker deployments: 1, errors: 0")
}
