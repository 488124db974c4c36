package gitops

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/index"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/gitops/tree"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// apart is a rampart.yaml with environments a and b, each with what is said of it.
func apartWith(a, b string) string {
	return "apiVersion: rampart.dev/v1alpha1\nkind: Config\nspec:\n  environments:\n    - {" + a + "}\n    - {" + b + "}\n"
}

const (
	soundA  = `name: a, specs: ["a/**"], output: {path: deploy/a}`
	soundB  = `name: b, specs: ["b/**"], output: {path: deploy/b}, resourceKinds: []`
	wrongB  = `name: b, specs: ["b/**"], output: {path: ../b}`
	invalid = "apiVersion: rampart.dev/v1alpha1\nkind: Config\nspec: {environments: [\n"
)

// twoConfigured is a repository with a worker deployment in each of two environments, and their records.
func twoConfigured(t *testing.T) *gittest.Repo {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{
		layout.Config: apartWith(soundA, soundB), "a/c.yaml": specYAML("shop", "checkout", "x"), "b/c.yaml": specYAML("shop", "cart", "x"), "b/t.yaml": connectionYAML,
		"deploy/a/shop/checkout/routing.yaml": routingYAML("checkout", "a/c.yaml"), "deploy/b/shop/cart/routing.yaml": routingYAML("cart", "b/c.yaml"),
	}})
	return r
}

// recordedIn is the record of checkout as an environment wrote it.
func recordedIn(environment string) string {
	return strings.Replace(routingYAML("checkout", "a/c.yaml"), "\nspec:\n", "\nspec:\n  environment: "+environment+"\n", 1)
}

// sayUsable says of each environment whether it can be used.
func sayUsable(w rollout.World) []string {
	var out []string
	for _, e := range w.Environments {
		how := "ok"
		if e.Unusable != nil {
			how = "as before"
		}
		out = append(out, fmt.Sprintf("%s %s %s", e.Environment.Name, e.Environment.Output.Path, how))
	}
	return out
}

// Whatever is wrong with rampart.yaml, each environment is as it could be used last, and those that nothing is wrong
// with are as they are. So it is to a bot that runs, to one that starts with its cache, and to one that starts with
// nothing.
func TestLastUsableConfiguration(t *testing.T) {
	const aIsOK, aAsBefore, bAsBefore = "a deploy/a ok", "a deploy/a as before", "b deploy/b as before"
	for name, c := range map[string]struct {
		config   string // "": it is gone
		files    map[string]string
		want     []string
		problems string
	}{
		"all of it":                        {invalid, nil, []string{aAsBefore, bAsBefore}, "rampart.yaml:3"},
		"one environment":                  {apartWith(soundA, wrongB), nil, []string{aIsOK, bAsBefore}, "spec.environments[1].output.path"},
		"one that goes on elsewhere":       {apartWith(strings.Replace(soundA, "deploy/a", "deploy/c", 1), wrongB), nil, []string{"a deploy/c ok", bAsBefore}, "[1].output.path"},
		"one, and the other is gone":       {apartWith(wrongB, strings.NewReplacer("name: a", "name: c", "deploy/a", "deploy/c").Replace(soundA)), nil, []string{bAsBefore, "c deploy/c ok"}, ".output.path"},
		"one that takes the other's place": {apartWith(strings.Replace(soundA, "deploy/a", "deploy/b", 1), wrongB), nil, []string{aAsBefore, bAsBefore}, ".output.path"},
		"outputs that overlap":             {apartWith(strings.Replace(soundA, "deploy/a", "deploy/b", 1), soundB), nil, []string{aAsBefore, bAsBefore}, "overlaps"},
		"a name twice":                     {apartWith(soundA, strings.Replace(soundB, "name: b", "name: a", 1)), nil, []string{aAsBefore, bAsBefore}, "is there already"},
		"an invalid name":                  {apartWith(soundA, strings.Replace(soundB, "name: b", "name: B_", 1)), nil, []string{aIsOK, bAsBefore}, "name"},
		"renamed, and wrong":               {apartWith(soundA, strings.Replace(wrongB, "name: b", "name: c", 1)), nil, []string{aIsOK, bAsBefore}, ".output.path"},
		"a second document":                {apartWith(soundA, soundB) + "---\n" + connectionYAML, nil, []string{aAsBefore, bAsBefore}, "holds a TemporalConnection"},
		"a folder":                         {"", map[string]string{layout.Config + "/x": ""}, []string{aAsBefore, bAsBefore}, "is not a file"},
		"a misspelled name":                {"", map[string]string{"rampart.yml": apartWith(soundA, soundB)}, []string{aAsBefore, bAsBefore}, "rampart.yml: is not read: the configuration is in rampart.yaml, and there is none"},
		"none":                             {"", nil, []string{"default deploy ok"}, ""},
		"none, where records are of one":   {"", map[string]string{"deploy/a/shop/checkout/routing.yaml": recordedIn("a")}, []string{aAsBefore, bAsBefore}, "rampart.yaml: is gone, and deploy has records of environment a: put it back"},
		"none, and records are its own":    {"", map[string]string{"deploy/a/shop/checkout/routing.yaml": recordedIn("default")}, []string{"default deploy ok"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := twoConfigured(t)
			running, restarted := open(t, r), open(t, r)
			require.Equal(t, []string{aIsOK, "b deploy/b ok"}, sayUsable(read(t, running)))
			loadSurvey(t, restarted, open(t, r))
			commit := gittest.Commit{Write: map[string]string{"b/c.yaml": specYAML("shop", "cart", "y")}}
			for path, text := range c.files {
				commit.Write[path] = text
			}
			if commit.Write[layout.Config] = c.config; c.config == "" {
				delete(commit.Write, layout.Config)
				commit.Delete = []string{layout.Config}
			}
			r.Commit(commit)
			for who, repo := range map[string]*Repository{"running": running, "started anew": open(t, r), "started with its cache": restarted} {
				for range 2 {
					w := read(t, repo)
					require.Equal(t, c.want, sayUsable(w), who)
					require.Contains(t, strings.Join(problems(w), "\n"), c.problems, who)
					b := w.Environments[len(w.Environments)-1]
					if b.Unusable != nil {
						require.Equal(t, "y", b.Deployments[0].Spec.Spec.Template.FirstImage, "specs are as they are")
						require.NotNil(t, b.Deployments[0].Record.Routing)
						require.Equal(t, b.Unusable, b.Deployments[0].EnvironmentProblem)
						require.Equal(t, []string{}, b.Environment.ResourceKinds, "none, which is not no list")
					}
					survey, _, err := repo.Survey(t.Context())
					require.NoError(t, err)
					require.Equal(t, c.want, sayUsable(survey.World), who)
					for _, e := range survey.World.Environments {
						for _, s := range survey.Snapshots(e.Environment.Name, e.Entries) {
							require.Equal(t, e.Unusable, s.EnvironmentProblem)
						}
					}
				}
			}
			r.Commit(gittest.Commit{Write: map[string]string{layout.Config: apartWith(soundA, soundB)}, Delete: slices.Sorted(maps.Keys(c.files))})
			require.Equal(t, []string{aIsOK, "b deploy/b ok"}, sayUsable(read(t, running)), "mended")
		})
	}
}

// Several pushes break one environment after the other: each is as it was when it could be used.
func TestLastUsableOfEach(t *testing.T) {
	r := twoConfigured(t)
	r.Commit(gittest.Commit{Write: map[string]string{layout.Config: apartWith(soundA, wrongB)}})
	r.Commit(gittest.Commit{Write: map[string]string{layout.Config: apartWith(strings.Replace(soundA, "deploy/a", "deploy/c", 1), wrongB)}})
	r.Commit(gittest.Commit{Write: map[string]string{layout.Config: invalid}})
	r.Commit(gittest.Commit{Write: map[string]string{layout.Config: apartWith(strings.Replace(soundA, "deploy/a", "/", 1), wrongB)}})
	require.Equal(t, []string{"a deploy/c as before", "b deploy/b as before"}, sayUsable(read(t, open(t, r))))
}

// Without anything usable in the history nothing is decided, and it is said. So with an environment that never was one.
func TestNothingUsable(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{layout.Config: invalid, "a/c.yaml": specYAML("shop", "checkout", "x")}})
	repo := open(t, r)
	w := read(t, repo)
	require.Empty(t, w.Environments)
	require.Contains(t, strings.Join(problems(w), "\n"), "the last 500 commits have none: nothing moves but by command (rampart rollback NAME)")
	r.Commit(gittest.Commit{Write: map[string]string{layout.Config: apartWith(soundA, wrongB)}})
	w = read(t, repo)
	require.Equal(t, []string{"a deploy/a ok"}, sayUsable(w))
	require.Contains(t, strings.Join(problems(w), "\n"), `environment "b" cannot be used, and how it could be used last is not known`)
}

// The branch was rewritten into one that never had a usable file: what it had before is used, as long as the mirror has
// that.
func TestUsableBeforeItWasRewritten(t *testing.T) {
	r := twoConfigured(t)
	dir := t.TempDir()
	at := func() *Repository {
		repo, err := Open(Config{URL: r.URL(), Branch: "main", CacheDir: dir, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return gittest.Epoch }})
		require.NoError(t, err)
		return repo
	}
	repo := at()
	read(t, repo)
	require.NoError(t, repo.Close())
	r.Commit(gittest.Commit{Write: map[string]string{layout.Config: invalid}})
	r.Git("update-ref", "refs/heads/main", r.Git("commit-tree", "refs/heads/main^{tree}", "-m", "anew"))
	repo = at()
	defer func() { require.NoError(t, repo.Close()) }()
	require.Equal(t, []string{"a deploy/a as before", "b deploy/b as before"}, sayUsable(read(t, repo)))
}

// Policies and data that cannot be read are what they were: what takes traffic back is judged by them.
func TestLastReadablePolicies(t *testing.T) {
	const judges = "package rampart.rollout\n"
	for name, breaks := range map[string]gittest.Commit{
		"too large":   {Write: map[string]string{"policies/a.rego": strings.Repeat("# too large\n", tree.MaxFileSize/10)}},
		"data":        {Write: map[string]string{"data.yaml": strings.Repeat("# too large\n", tree.MaxFileSize/10)}},
		"gone":        {Delete: []string{"policies/a.rego"}},
		"named, gone": {Write: map[string]string{layout.Config: apartWith(soundA+`, policies: [policies/a.rego, policies/none.rego], data: [data.yaml]`, soundB)}},
	} {
		t.Run(name, func(t *testing.T) {
			r := twoConfigured(t)
			r.Commit(gittest.Commit{Write: map[string]string{"policies/a.rego": judges, "data.yaml": "a: 1\n",
				layout.Config: apartWith(soundA+`, policies: [policies/a.rego], data: [data.yaml]`, soundB)}})
			running := open(t, r)
			read(t, running)
			r.Commit(breaks)
			for who, repo := range map[string]*Repository{"running": running, "started anew": open(t, r)} {
				w := read(t, repo)
				a := w.Environments[0]
				require.Equal(t, []rollout.TextFile{{Path: "policies/a.rego", Text: judges}}, a.Policies, who)
				require.Equal(t, []rollout.TextFile{{Path: "data.yaml", Text: "a: 1\n"}}, a.Data, who)
				require.NotNil(t, a.Unusable, who)
				require.Equal(t, a.Unusable, a.Deployments[0].EnvironmentProblem, who)
				require.Equal(t, "b deploy/b ok", sayUsable(w)[1])
			}
		})
	}
}

func TestNearMisses(t *testing.T) {
	files := map[string]string{"rampart.yml": "a: 1\n", layout.Config: apartWith(soundA, soundB)}
	w, err := index.ReadFolder(writeFolder(t, files))
	require.NoError(t, err)
	require.Len(t, w.Environments, 2)
	at := slices.IndexFunc(w.Problems, func(p v1alpha1.Problem) bool { return p.File == "rampart.yml" })
	require.GreaterOrEqual(t, at, 0)
	require.Equal(t, v1alpha1.Warning, w.Problems[at].Severity, "beside a rampart.yaml")
	delete(files, layout.Config)
	w, err = index.ReadFolder(writeFolder(t, files))
	require.NoError(t, err)
	require.Empty(t, w.Environments, "its approval would be off silently")
	require.True(t, v1alpha1.HasErrors(w.Problems))
	require.Contains(t, w.Problems[0].String(), "did you mean rampart.yaml?")
}

// A record says by itself in which environment it is, and as whom.
func TestRecordAlone(t *testing.T) {
	alone := func(name, environment string) string {
		return strings.Replace(routingYAML(name, "a/c.yaml"), "  temporalNamespace:", "  environment: "+environment+"\n  managerIdentity: us/"+environment+"\n  temporalNamespace:", 1)
	}
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{
		layout.Config: invalid, "out/a/shop/checkout/routing.yaml": alone("checkout", "a"), "out/a/shop/checkout/status.yaml": specYAML("shop", "checkout", "x"),
		"out/a/shop/cart/routing.yaml": alone("cart", "a"), "out/b/shop/cart/routing.yaml": alone("cart", "b"),
		"out/a/shop/old/routing.yaml": routingYAML("old", "a/c.yaml"), "copy/shop/moved/routing.yaml": alone("other", "a"),
	}})
	repo := open(t, r)
	for _, name := range []string{"checkout", "shop/checkout"} {
		s, base, err := repo.RecordAlone(t.Context(), index.RecordQuery{Name: name})
		require.NoError(t, err)
		require.Equal(t, r.Tip("main"), base)
		require.Equal(t, rollout.Name{Namespace: "shop", Name: "checkout"}, s.Deployment)
		require.Equal(t, v1alpha1.Environment{Name: "a", ManagerIdentity: "us/a", Output: v1alpha1.Output{Path: "out/a"}}, s.Environment)
		require.Equal(t, "out/a/shop/checkout", s.Record.Dir)
		require.NotNil(t, s.Record.Status)
		require.NotNil(t, s.EnvironmentProblem)
		_, err = repo.Commit(t.Context(), rollout.Commit{Environment: s.Environment, Base: base, Message: "down",
			Changes: []rollout.FileChange{{Path: s.Record.Dir + "/note", Data: name}}})
		require.NoError(t, err)
	}
	for _, c := range []struct{ name, environment, says string }{
		{"cart", "", "shop/cart of environment a (out/a/shop/cart) and shop/cart of environment b (out/b/shop/cart): write the namespace, or choose with --env"},
		{"shop/none", "", "no record on branch main that names its environment is of shop/none"},
		{"old", "", "no record"},
		{"moved", "", "no record"},
		{"checkout", "b", "no record"},
	} {
		_, _, err := repo.RecordAlone(t.Context(), index.RecordQuery{Name: c.name, Environment: c.environment})
		require.ErrorContains(t, err, c.says)
	}
	s, _, err := repo.RecordAlone(t.Context(), index.RecordQuery{Name: "cart", Environment: "b"})
	require.NoError(t, err)
	require.Equal(t, "us/b", s.Environment.ManagerIdentity)
}

// Several commits have specs that cannot be read: the records are those of the tip all the same.
func TestLastReadableAfterSeveral(t *testing.T) {
	r := twoConfigured(t)
	for i := range 3 {
		with(r, fmt.Sprintf("a/x%d", i), "040000", "tree", deep(r, 30))
	}
	r.Commit(gittest.Commit{Write: map[string]string{"deploy/a/shop/checkout/note": "of the tip"}})
	w := read(t, open(t, r))
	a := w.Environments[0]
	require.Equal(t, []string{"a deploy/a as before", "b deploy/b ok"}, sayUsable(w))
	require.False(t, a.Unrecorded)
	require.Equal(t, r.Tip("main"), a.Base)
	require.Contains(t, a.Deployments[0].Record.Files, "note")
	require.NotNil(t, a.Deployments[0].Spec)
}
