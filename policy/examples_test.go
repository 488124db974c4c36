package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// The policies of every example pass their own tests.
func TestPoliciesOfExamplesPassTheirTests(t *testing.T) {
	testneed.Plain(t)
	folders, err := filepath.Glob("../examples/*/policies")
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	for _, folder := range folders {
		var cfg Config
		files, err := filepath.Glob(filepath.Join(folder, "*"))
		require.NoError(t, err)
		tests := 0
		for _, name := range files {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			switch {
			case strings.HasSuffix(name, ".rego"):
				cfg.Modules = append(cfg.Modules, parse.Module{Path: name, Source: string(text)})
				tests += strings.Count(string(text), "\ntest_")
			default:
				cfg.Data = append(cfg.Data, parse.DataFile{Path: name, Content: string(text)})
			}
		}
		report := RunTests(t.Context(), cfg, nil)
		require.True(t, passed(report), "%s: %+v", folder, report)
		require.Len(t, report.Results, tests, folder)
		require.Empty(t, Compile(cfg).Problems(), folder)
	}
}
