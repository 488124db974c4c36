// Package workflows checks the project's own workflows, the example workflows, and those that the guides show, as their
// platforms would.
package workflows

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/rhysd/actionlint"
	"github.com/stretchr/testify/require"
)

const root = "../.."

// The workflows of GitHub and Gitea, which has GitHub's syntax, are sound: keys, events, contexts, permissions, shells.
func TestWorkflowsAreSound(t *testing.T) {
	for _, pattern := range []string{".github/workflows/*.yaml", "examples/ci/*/.github/workflows/*.yml", "examples/ci/*/.gitea/workflows/*.yml"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Empty(t, problems(t, file, text))
		}
	}
	guide, err := os.ReadFile(filepath.Join(root, "docs", "guides", "policies-in-ci.md"))
	require.NoError(t, err)
	shown := regexp.MustCompile("(?s)```yaml file=(\\.(?:github|gitea)/workflows/[^\n]+)\n(.*?)```").FindAllSubmatch(guide, -1)
	require.Len(t, shown, 2)
	for _, m := range shown {
		require.Empty(t, problems(t, string(m[1]), m[2]))
	}
}

// The check notices what would be wrong.
func TestUnsoundWorkflows(t *testing.T) {
	for name, text := range map[string]string{
		"key":        "on: pull_request\njobs:\n  a:\n    runs-on: ubuntu-24.04\n    steps:\n      - rum: true\n",
		"event":      "on: pull_requests\njobs: {a: {runs-on: ubuntu-24.04, steps: [{run: 'true'}]}}\n",
		"injection":  "on: pull_request\njobs: {a: {runs-on: ubuntu-24.04, steps: [{run: 'echo ${{ github.head_ref }}'}]}}\n",
		"permission": "on: pull_request\npermissions: {content: read}\njobs: {a: {runs-on: ubuntu-24.04, steps: [{run: 'true'}]}}\n",
	} {
		require.NotEmpty(t, problems(t, name+".yml", []byte(text)), name)
	}
}

func problems(t *testing.T, name string, text []byte) []string {
	t.Helper()
	linter, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{})
	require.NoError(t, err)
	found, err := linter.Lint(name, text, nil)
	require.NoError(t, err)
	var out []string
	for _, p := range found {
		out = append(out, p.Error())
	}
	return out
}
