package parity

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// page is where the tables are, below the repository's root.
const page = "docs/parity.md"

const intro = `# Rampart beside the in-cluster controller

What Temporal's worker controller is tested for, scenario by scenario, and what Rampart does in each. This page is
generated from tests (` + "`TestParity`" + ` in the packages named below) and compared with them in every run. To write
it anew:

    go test -p 1 -run '^TestParity$' \
      ./gitops/api/v1alpha1 ./internal/parity ./internal/plan ./internal/rollout ./render -update

In the tables, text in ` + "`code`" + ` is what the case gives, word for word. For the planner that is the reason of the
condition ` + "`Ready`" + ` (` + "`stalled`" + `: waiting will not help), then the actions
(` + "`Ramp v2 0->10 step 1/2`" + `), the calls to Temporal with when they are made, the files that are written with
replicas and prune guard, and when the answer changes by itself. v1 is the version that was there, v2 the one that
the spec asks for. "same" means that traffic, workers and versions end up the same way, and that Ready and
Progressing say so; the conditions Reconciling and Stalled, for kstatus, are Rampart's own.
`

// section is one part of the page. It is written by TestParity of one package.
type section struct{ name, title, folder string }

func sections() []section {
	const planner, names, values, files, here = "internal/plan", "internal/rollout", "gitops/api/v1alpha1", "render",
		"internal/parity"
	return []section{
		{"plan", "Planner: what there is to do", planner},
		{"create", "Planner: create", planner},
		{"scale", "Planner: scale", planner},
		{"delete", "Planner: delete", planner},
		{"gates", "Gates: which to start, and what they block", planner},
		{"gate-input", "Gates: input", planner},
		{"routing", "Routing", planner},
		{"rollback", "Rollback", planner},
		{"connection", "Drift of the connection", planner},
		{"template", "Drift of the template", planner},
		{"mapping", "Reading Temporal's state", planner},
		{"conditions", "Conditions and failures", planner},
		{"build-id", "Build IDs", names},
		{"names", "Names and labels", names},
		{"hashes", "Hashes", names},
		{"connection-hash", "Connection hash", values},
		{"validation", "Validation of worker deployments", values},
		{"resource-templates", "Validation of resource templates", values},
		{"deployments", "Deployments and their environment", files},
		{"resources", "Resources of each version", here},
		{"execution", "Carrying out a plan", here},
		{"client", "Connections to Temporal", here},
		{"cluster", "In the cluster only", here},
		{"integration-manual", "On a real server: Manual", here},
		{"integration-all-at-once", "On a real server: AllAtOnce", here},
		{"integration-progressive", "On a real server: Progressive", here},
		{"integration-other", "On a real server: the rest", here},
		{"gaps", "Where the controller's own tests have gaps", here},
	}
}

func rootOf(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		above := filepath.Dir(dir)
		require.NotEqual(t, dir, above, "no go.mod above")
		dir = above
	}
}

// keep compares a section's text with the page's, or writes it with -update.
func keep(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join(rootOf(t), page)
	data, err := os.ReadFile(file)
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	texts := parse(string(data))
	if f := flag.Lookup("update"); f != nil && f.Value.String() == "true" {
		texts[name] = text
		require.NoError(t, os.WriteFile(file, []byte(assemble(texts)), 0o644))
		return
	}
	if diff := cmp.Diff(texts[name], text); diff != "" {
		t.Errorf("section %s of %s is not what the tests give; its head says how to write it anew (-page +tests):\n%s",
			name, page, diff)
	}
}

func marker(name string) string { return "<!-- parity: " + name + " -->\n" }

const end = "<!-- parity: end -->\n"

// parse gives the texts of a page's sections.
func parse(data string) map[string]string {
	texts := map[string]string{}
	for _, s := range sections() {
		if _, rest, ok := strings.Cut(data, marker(s.name)); ok {
			texts[s.name], _, _ = strings.Cut(rest, end)
		}
	}
	return texts
}

// assemble makes the page of the texts of its sections.
func assemble(texts map[string]string) string {
	var b strings.Builder
	b.WriteString(intro)
	for _, s := range sections() {
		fmt.Fprintf(&b, "\n## %s\n\n%s%s%s", s.title, marker(s.name), texts[s.name], end)
	}
	return b.String()
}

// exists looks for a test by its name, "<folder> <name>". The folder's files are read, not built: it may be another
// module's.
func exists(root, name string) error {
	folder, test, ok := strings.Cut(name, " ")
	if !ok {
		return fmt.Errorf("test %q is not of the form \"<folder> <name>\"", name)
	}
	files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
	if err != nil {
		return fmt.Errorf("look for tests in %s: %w", folder, err)
	}
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("read tests: %w", err)
		}
		for _, d := range tree.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == test &&
				strings.HasPrefix(test, "Test") {
				return nil
			}
		}
	}
	return fmt.Errorf("there is no test %s in %s", test, folder)
}
