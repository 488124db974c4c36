package archtest

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/rampart-gitops/rampart/"

// rule says what a package, and all below it, may know.
type rule struct {
	// ours lists the packages of ours that it may depend on, directly or not.
	ours []string
	// never lists import paths (and all below them) that its own files may not name.
	never []string
}

var (
	pure  = []string{"context", "os", "log/slog", "net/http", "math/rand", "math/rand/v2", opa, sdk, git}
	opa   = "github.com/open-policy-agent/opa"
	sdk   = "go.temporal.io/sdk"
	git   = "github.com/go-git/go-git"
	cobra = "github.com/spf13/cobra"
	// library is what commands are made of; group is what a group of commands may depend on.
	library = []string{"gitops", "install", "internal", "policy", "rego", "render", "temporal"}
	group   = append([]string{"cmd/rampart/cmdutil"}, library...)
	// offline is what a group that asks no Temporal may not import.
	offline = []string{module + "temporal", sdk}
)

var rules = map[string]rule{
	"install/crds":     {never: append([]string{cobra}, pure...)},
	"install/delivery": {never: append([]string{cobra}, pure...)},
	"install/schemas":  {never: append([]string{cobra}, pure...)},
	"gitops/api":       {never: append([]string{}, pure...)},
	"gitops/git":       {ours: []string{"internal/printable", "internal/cores"}, never: []string{opa, sdk, cobra}},
	"gitops/forge":     {ours: []string{"internal/printable", "internal/httpclient"}, never: []string{"os", "log/slog", opa, sdk, git, cobra}},
	"gitops/source":    {ours: []string{"internal/confined"}, never: []string{"log/slog", opa, sdk, git, cobra}},
	"gitops/signature": {never: []string{opa, sdk, git, cobra}},
	"gitops/tree":      {ours: []string{"internal/printable", "gitops/api", "gitops/layout", "gitops/git", "internal/cores", "internal/rollout"}, never: []string{opa, sdk, cobra}},
	"gitops/index":     {ours: []string{"internal/printable", "gitops/api", "gitops/layout", "gitops/git", "gitops/source", "gitops/tree", "internal/confined", "internal/cores", "internal/rollout"}, never: []string{"log/slog", "net/http", opa, sdk, cobra}},
	"gitops":           {ours: []string{"internal/printable", "gitops/api", "gitops/layout", "gitops/git", "gitops/index", "gitops/source", "internal/confined", "gitops/tree", "internal/cores", "internal/rollout"}, never: []string{opa, sdk, cobra}},
	"gitops/layout":    {never: append([]string{cobra}, pure...)}, // names and nothing else
	"internal/canary":  {never: append([]string{cobra}, pure...)},
	"internal/rollout": {ours: []string{"gitops/api", "gitops/layout"}, never: pure},
	"internal/plan":    {ours: []string{"gitops/api", "gitops/layout", "internal/canary", "internal/rollout"}, never: pure},
	"internal/oracle":  {ours: []string{"gitops/api", "gitops/layout", "internal/rollout"}, never: append([]string{cobra}, pure...)}, // nothing of the planner
	"internal/mask":    {ours: []string{"gitops/api", "gitops/layout"}, never: append([]string{cobra}, pure...)},
	"internal/auditlog": {ours: []string{"internal/atomicfile", "gitops", "gitops/api", "gitops/layout", "gitops/git", "gitops/index", "gitops/signature", "gitops/source", "internal/confined", "gitops/tree", "internal/canary", "internal/cores",
		"internal/mask", "internal/plan", "internal/printable", "internal/retry", "internal/rollout", "render"}, never: []string{"net/http", opa, sdk, git, cobra}},
	"internal/operator": {ours: []string{"gitops/api", "gitops/layout", "internal/canary", "internal/rollout", "internal/plan"}, never: pure},
	"render":            {ours: []string{"internal/printable", "gitops/api", "gitops/layout", "internal/rollout"}, never: pure},
	"rego":              {never: []string{opa, sdk, git, cobra}},
	"policy":            {ours: []string{"gitops/api", "gitops/layout", "internal/rollout", "rego"}, never: []string{"os", sdk, git, cobra}},
	"policy/sandbox":    {ours: []string{"gitops/api", "gitops/layout", "internal/confined", "internal/retry", "internal/rollout", "policy", "rego"}, never: []string{"os", "log/slog", sdk, git, cobra}},
	"internal/confined": {never: []string{"log/slog", opa, sdk, git, cobra}},
	"policy/parse":      {ours: []string{"gitops/api", "gitops/layout", "internal/rollout", "rego"}, never: []string{"os", sdk, git, cobra}},
	"policy/input":      {ours: []string{"gitops/api", "gitops/layout", "internal/rollout", "policy/parse", "rego"}, never: []string{"context", "os", sdk, git, cobra}},
	"policy/explain":    {ours: []string{"gitops/api", "gitops/layout", "internal/rollout", "policy/input", "policy/parse", "rego"}, never: []string{"context", "os", sdk, git, cobra}},
	"temporal":          {ours: []string{"gitops/api", "gitops/layout", "internal/retry", "internal/rollout"}, never: []string{opa, git, cobra}},
	"internal/pullrequest": {ours: []string{"internal/printable", "gitops", "gitops/api", "gitops/layout", "gitops/forge", "gitops/git", "gitops/index", "gitops/signature", "gitops/source", "internal/confined", "gitops/tree", "internal/canary", "internal/cores", "internal/httpclient",
		"internal/plan", "internal/retry", "internal/rollout", "render"}, never: []string{opa, sdk, cobra}},
	"internal/commitstatus": {ours: []string{"internal/printable", "gitops/api", "gitops/layout", "gitops/forge", "internal/canary", "internal/cores", "internal/httpclient", "internal/plan", "internal/retry", "internal/report",
		"internal/rollout", "render"}, never: []string{"os", opa, sdk, git, cobra}},
	"internal/cluster":     {ours: []string{"gitops/api", "gitops/layout", "install/crds", "internal/mask", "internal/httpclient", "internal/printable", "internal/rollout"}, never: []string{"os", "log/slog", opa, sdk, git, cobra}},
	"internal/cores":       {never: append([]string{cobra}, pure...)},
	"internal/resync":      {ours: []string{"gitops/api", "gitops/layout", "internal/rollout"}, never: []string{"os", "net/http", opa, sdk, git, cobra}},
	"internal/compose":     {ours: []string{"internal/printable", "gitops/api", "gitops/layout", "internal/canary", "internal/cores", "internal/rollout", "internal/plan", "render"}, never: []string{"os", "log/slog", "net/http", "math/rand", "math/rand/v2", opa, sdk, git, cobra}},
	"internal/reconcile":   {ours: []string{"internal/compose", "internal/printable", "gitops/api", "gitops/layout", "internal/canary", "internal/cores", "internal/resync", "internal/retry", "internal/rollout", "internal/plan", "render"}, never: []string{opa, sdk, git, cobra}},
	"internal/printable":   {never: append([]string{cobra}, pure...)},
	"internal/diskcache":   {ours: []string{"internal/atomicfile"}, never: []string{"context", "log/slog", "net/http", opa, sdk, git, cobra}},
	"internal/atomicfile":  {never: []string{"context", "log/slog", "net/http", opa, sdk, git, cobra}},
	"internal/memorylimit": {never: []string{"net/http", opa, sdk, git, cobra}},
	"internal/retry":       {never: []string{"os", "log/slog", "net/http", opa, sdk, git, cobra}},
	"internal/report":      {ours: []string{"internal/printable", "gitops/api", "gitops/layout", "internal/rollout"}, never: []string{"context", "os", opa, sdk, git, cobra}},
	"internal/preview":     {ours: []string{"internal/printable", "gitops/api", "gitops/layout", "internal/canary", "internal/compose", "internal/cores", "internal/plan", "internal/reconcile", "internal/retry", "internal/resync", "internal/report", "internal/rollout", "internal/sim", "policy", "rego", "render"}, never: []string{"os", "log/slog", "net/http", "math/rand", "math/rand/v2", opa, sdk, git, cobra}},
	"internal/sim":         {ours: []string{"internal/printable", "gitops/api", "gitops/layout", "internal/canary", "internal/compose", "internal/cores", "internal/reconcile", "internal/retry", "internal/resync", "internal/rollout", "internal/plan", "render"}, never: []string{"os", "net/http", "math/rand", "math/rand/v2", opa, sdk, git, cobra}},
	"policy/bundle":        {ours: []string{"internal/atomicfile", "internal/printable", "gitops/api", "gitops/layout", "internal/httpclient", "internal/retry", "internal/rollout", "policy", "rego"}, never: []string{sdk, git, cobra}},
	"internal/gittest":     {ours: []string{"internal/testneed"}, never: []string{opa, sdk, cobra}},
	"internal/keytest":     {never: []string{"os", "log/slog", "net/http", opa, sdk, git, cobra}},
	"internal/logtest":     {never: append([]string{cobra}, pure...)},
	"internal/health":      {never: []string{"os", "os/exec", opa, sdk, git, cobra}},
	"internal/metrics":     {ours: []string{"internal/printable", "gitops/api", "gitops/layout", "internal/httpclient", "internal/rollout"}, never: []string{opa, sdk, git, cobra}},
	"internal/metrics/metricstest": {ours: []string{"gitops/api", "gitops/layout", "internal/httpclient", "internal/metrics", "internal/printable", "internal/rollout"},
		never: []string{opa, sdk, git, cobra}},
	"internal/telemetry":  {ours: []string{"gitops/api", "gitops/layout", "internal/rollout"}, never: []string{"os", "os/exec", "log/slog", opa, sdk, git, cobra}},
	"internal/takeover":   {ours: []string{"internal/printable", "gitops/api", "gitops/layout", "internal/rollout", "render"}, never: append([]string{cobra}, pure...)},
	"internal/testneed":   {never: []string{opa, sdk, git, cobra}},
	"internal/githubapp":  {ours: []string{"gitops/forge", "internal/printable", "internal/httpclient"}, never: []string{"os", "os/exec", "log/slog", opa, sdk, git, cobra}},
	"internal/httpclient": {ours: []string{"internal/printable"}, never: []string{"os/exec", "log/slog", opa, sdk, git, cobra}},
	"internal/webhook":    {never: []string{"os", "os/exec", opa, sdk, git, cobra}},
	"internal/statetable": {ours: []string{"gitops/api", "gitops/layout", "internal/rollout"}, never: []string{opa, sdk, git, cobra}},
	"internal/parity":     {never: []string{opa, sdk, git, cobra}},
	"internal/archtest":   {},
	"cmd":                 {ours: library},
	// A group of commands knows no other group, and what groups share knows none.
	"cmd/rampart/bot":      {ours: group},
	"cmd/rampart/inspect":  {ours: group},
	"cmd/rampart/install":  {ours: group, never: offline},
	"cmd/rampart/operate":  {ours: group},
	"cmd/rampart/policies": {ours: group, never: offline},
	"cmd/rampart/specs":    {ours: group, never: offline},
	"cmd/rampart/takeover": {ours: group, never: offline},
	"cmd/rampart/cmdutil":  {ours: library},
	"cmd/rampart/cmdtest":  {ours: library, never: []string{cobra}},
	"cmd/rampart/apptest":  {ours: append([]string{"cmd/rampart/cmdtest"}, group...), never: []string{cobra}},
}

type listed struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func packages(t *testing.T) []listed {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,Deps", module+"...").Output()
	require.NoError(t, err)
	var all []listed
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p listed
		require.NoError(t, dec.Decode(&p))
		all = append(all, p)
	}
	require.NotEmpty(t, all)
	return all
}

// Each system that releases are for has its packages: files of other systems are compiled with no other test.
func TestEachSystemHasItsPackages(t *testing.T) {
	for _, system := range []string{"linux", "darwin", "windows"} {
		cmd := exec.CommandContext(t.Context(), "go", "list", module+"...")
		cmd.Env = append(os.Environ(), "GOOS="+system)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", system, out)
	}
}

func under(path, root string) bool { return path == root || strings.HasPrefix(path, root+"/") }

// ruleOf finds the rule with the longest name that a package is under.
func ruleOf(name string) (string, bool) {
	best := ""
	for root := range rules {
		if under(name, root) && len(root) > len(best) {
			best = root
		}
	}
	return best, best != ""
}

func TestImports(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		root, ok := ruleOf(name)
		require.True(t, ok, "package %s has no rule: say here what it may know", name)
		for _, dep := range p.Deps {
			other, isOurs := strings.CutPrefix(dep, module)
			if !isOurs || under(other, root) {
				continue
			}
			require.True(t, slices.ContainsFunc(rules[root].ours, func(r string) bool { return under(other, r) }),
				"%s depends on %s", name, other)
			require.True(t, under(name, "cmd") || !under(other, "cmd"), "%s depends on a command", name)
		}
		for _, imp := range p.Imports {
			for _, never := range rules[root].never {
				require.False(t, under(imp, never), "%s imports %s", name, imp)
			}
		}
	}
}

// forTests says whether a package is for tests only: its name ends in test, as httptest's does.
func forTests(name string) bool {
	return strings.HasSuffix(name, "test") || name == "internal/testneed"
}

func TestProgramHasNoPackagesForTests(t *testing.T) {
	found := 0
	for _, p := range packages(t) {
		if forTests(strings.TrimPrefix(p.ImportPath, module)) {
			found++
			continue
		}
		for _, dep := range p.Deps {
			other, isOurs := strings.CutPrefix(dep, module)
			require.False(t, isOurs && forTests(other), "%s depends on %s", p.ImportPath, other)
		}
	}
	require.GreaterOrEqual(t, found, 8)
}

func TestEveryRuleNamesAPackage(t *testing.T) {
	all := packages(t)
	for root := range rules {
		require.True(t, slices.ContainsFunc(all, func(p listed) bool { return under(strings.TrimPrefix(p.ImportPath, module), root) }),
			"rule for %s, which does not exist", root)
	}
}
