package bot

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/internal/diskcache"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/pullrequest"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/render"
)

// A bot with a cache does at every moment what one does that reads and decides everything in every cycle. Whatever
// people do to the repository, to proposals and to Temporal's routing, all branches and all calls to Temporal stay the
// same, also over restarts.
func TestSurveyLeavesNothingOut(t *testing.T) {
	worlds(t, "40") // each takes a second
	j := &cmdutil.Judges{}
	looked, all := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		w := newTwins(t, j)
		w.settle(rt)
		for range rapid.IntRange(3, 12).Draw(rt, "steps") {
			for range rapid.SampledFrom([]int{0, 1, 1, 1, 2, 3}).Draw(rt, "things") {
				w.happen(rt)
			}
			w.now = w.now.Add(rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Second, time.Minute, 4 * time.Minute, 2 * time.Hour}).Draw(rt, "later"))
			w.cycle(rt)
		}
		looked, all = looked+w.looked, all+w.all
		w.close(rt)
	})
	t.Logf("looked at %d worker deployments, without a memory at %d", looked, all)
	if all >= 500 { // on a machine that is too slow for more, a few starts weigh more than all that follows them
		require.Less(t, looked, all*3/4, "it saves work")
	}
}

// worlds says how many worlds rapid tries in this test where the command line does not: under -short a fifth of them.
func worlds(t *testing.T, n string) {
	checks := flag.Lookup("rapid.checks").Value
	before := checks.String()
	if before != flag.Lookup("rapid.checks").DefValue {
		return
	}
	require.NoError(t, checks.Set(n))
	t.Cleanup(func() { require.NoError(t, checks.Set(before)) })
}

// twins are a bot with a cache and one without. Each has a repository and a Temporal of its own, to which the
// same happens.
type twins struct {
	policies    *cmdutil.Judges
	now         time.Time
	bots        [2]*twin // with a memory, without
	texts       map[string]string
	pushed      int
	looked, all int
}

type twin struct {
	git      *gittest.Repo
	cache    string
	temporal *instant
	repo     *gitops.Repository
	bot      *reconcile.Reconciler
	cached   diskcache.File
	answers  string
}

const twinConfig = `apiVersion: rampart.dev/v1alpha1
kind: Config
spec:
  environments:
    - {name: prod, specs: ["prod/**"], output: {path: out/prod}, namespace: shop, approval: {mode: Direct}, policies: ["policies/*.rego"], data: ["policies/data.yaml"]}
    - {name: test, specs: ["test/**"], output: {path: out/test, branch: rendered}, namespace: shop, approval: {mode: Direct}}
`

const twinData = "rampart: {config: {}}\n"

func twinSpec(name, image, rollout string) string {
	return fmt.Sprintf(`apiVersion: temporal.io/v1alpha1
kind: TemporalWorkerDeployment
metadata: {name: %s}
spec:
  workerOptions: {connectionRef: {name: temporal}, temporalNamespace: shop}
  rollout: {%s}
  sunset: {scaledownDelay: 10s, deleteDelay: 1m}
  template: {spec: {containers: [{name: worker, image: "shop/%s:%s"}]}}
`, name, rollout, name, image)
}

const (
	atOnce  = "strategy: AllAtOnce"
	inSteps = "strategy: Progressive, steps: [{rampPercentage: 10, pauseDuration: 30s}, {rampPercentage: 50, pauseDuration: 30s}]"
)

func twinConnection(name, host string) string {
	return fmt.Sprintf("apiVersion: temporal.io/v1alpha1\nkind: TemporalConnection\nmetadata: {name: %s}\nspec: {hostPort: %q}\n", name, host)
}

func newTwins(t *testing.T, j *cmdutil.Judges) *twins {
	w := &twins{policies: j, now: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)}
	w.texts = map[string]string{"rampart.yaml": twinConfig, "policies/data.yaml": twinData,
		"prod/connections.yaml": twinConnection("temporal", "localhost:7233"), "test/connections.yaml": twinConnection("temporal", "localhost:7233"),
		"prod/pay.yaml": twinSpec("pay", "1", atOnce), "prod/pay-out.yaml": twinSpec("pay-out", "1", inSteps), "prod/cart.yaml": twinSpec("cart", "1", atOnce),
		"test/probe.yaml": twinSpec("probe", "1", inSteps)}
	for i := range w.bots {
		b := &twin{git: gittest.NewBareRepo(t), cache: t.TempDir(), temporal: &instant{now: func() time.Time { return w.now }}}
		w.bots[i] = b
		b.git.Commit(gittest.Commit{Write: w.texts, When: w.now})
		b.cached = diskcache.File{Path: filepath.Join(b.cache, "cached"), Key: "twin"}
		w.open(t, i, j)
	}
	return w
}

// open starts a bot: the first one with what it knew when it was closed.
func (w *twins) open(t require.TestingT, i int, j *cmdutil.Judges) {
	b, log := w.bots[i], slog.New(slog.DiscardHandler)
	now := func() time.Time { return w.now }
	repo, err := gitops.Open(gitops.Config{URL: b.git.URL(), Branch: "main", CacheDir: b.cache, Author: "rampart", Email: "rampart@example.com", Log: log, Now: now})
	require.NoError(t, err)
	b.repo = repo
	source := j.PinOnRead(repo)
	b.bot = &reconcile.Reconciler{
		Planner: &reconcile.Planner{Source: source, Surveyor: source, History: source, Records: source, Observer: b.temporal, Limits: rollout.DefaultLimits(), Now: now, Log: log, Parallel: 2,
			JudgeFor: func(env rollout.EnvironmentWorld) reconcile.Judge { return j.Engine(env) }},
		Committer: repo, Router: b.temporal, Versions: b.temporal,
		Proposer: pullrequest.New(pullrequest.Config{Branches: repo, Forge: forge.None{}, Base: "main", Edit: render.Proposed, Same: render.SameProposal, Title: proposalTitle, Body: proposalBody(j), Now: now, Log: log}),
	}
	if i == 0 {
		b.bot.Lister = b.temporal
		b.cached.Parts = []diskcache.Part{repo, b.bot}
		require.NoError(t, b.cached.Load())
	}
}

func (w *twins) close(t require.TestingT) {
	require.NoError(t, w.bots[0].cached.Save())
	for _, b := range w.bots {
		require.NoError(t, b.repo.Close())
	}
}

// settle runs cycles until all that there is has its traffic.
func (w *twins) settle(rt *rapid.T) {
	for range 6 {
		w.now = w.now.Add(time.Minute)
		w.cycle(rt)
	}
}

// cycle runs a cycle of both, and compares what came of it.
func (w *twins) cycle(rt *rapid.T) {
	var reports [2]reconcile.Report
	for i, b := range w.bots {
		var err error
		b.temporal.calls = nil
		reports[i], err = b.bot.Cycle(context.Background())
		said := ""
		if err != nil {
			said = "error"
		}
		slices.Sort(b.temporal.calls)
		b.answers = fmt.Sprint(b.git.Git("for-each-ref", "--format=%(refname) %(objectname)"), "\n", strings.Join(b.temporal.calls, "\n"), "\n",
			reports[i].Failures, said, reports[i].Again)
	}
	w.looked += len(reports[0].Decisions)
	w.all += len(reports[1].Decisions)
	if w.bots[0].answers != w.bots[1].answers {
		rt.Fatalf("at %s with a memory:\n%s\nwithout:\n%s\n%s", w.now, w.bots[0].answers, w.bots[1].answers, w.differs())
	}
	// What both look at they decide in the same way.
	without := map[string]*rollout.Decision{}
	for _, d := range reports[1].Decisions {
		without[d.Plan.Environment.Name+" "+d.Plan.Deployment.String()] = d
	}
	for _, d := range reports[0].Decisions {
		other, ok := without[d.Plan.Environment.Name+" "+d.Plan.Deployment.String()]
		require.True(rt, ok, d.Plan.Deployment)
		require.Equal(rt, other.Plan, d.Plan)
	}
}

func (w *twins) differs() string {
	var out strings.Builder
	for _, branch := range []string{"main", "rendered"} {
		var files [2]map[string]string
		for i, b := range w.bots {
			files[i] = b.git.Files(branch)
		}
		for p, text := range files[1] {
			if files[0][p] != text {
				fmt.Fprintf(&out, "%s %s with a memory:\n%s\nwithout:\n%s\n", branch, p, files[0][p], text)
			}
		}
	}
	return out.String()
}

// push makes the same commit in both repositories.
func (w *twins) push(c gittest.Commit) {
	w.pushed++
	c.When = w.now
	c.Message = fmt.Sprint("change ", w.pushed)
	for _, b := range w.bots {
		b.git.Commit(c)
	}
}

// put writes one file that people write, and keeps its text.
func (w *twins) put(file, text string) {
	if text == "" {
		if _, ok := w.texts[file]; ok {
			delete(w.texts, file)
			w.push(gittest.Commit{Delete: []string{file}})
		}
		return
	}
	w.texts[file] = text
	w.push(gittest.Commit{Write: map[string]string{file: text}})
}

// happen lets something happen to both.
func (w *twins) happen(rt *rapid.T) {
	specs := []string{"prod/pay.yaml", "prod/pay-out.yaml", "prod/cart.yaml", "test/probe.yaml"}
	spec := rapid.SampledFrom(specs).Draw(rt, "spec")
	name := strings.TrimSuffix(filepath.Base(spec), ".yaml")
	whole := twinSpec(name, rapid.SampledFrom([]string{"1", "2", "3"}).Draw(rt, "image"), rapid.SampledFrom([]string{atOnce, inSteps}).Draw(rt, "rollout"))
	what := rapid.SampledFrom([]string{"spec", "spec", "spec", "comment", "spec goes", "moved", "twice", "broken", "retired", "elsewhere", "connection", "template",
		"policy", "data", "waiver", "config", "record", "record", "record", "routing", "routing", "routed", "routed", "proposal", "proposal", "restart", "restart"}).Draw(rt, "what")
	switch what {
	case "spec":
		w.put(spec, whole)
	case "comment":
		w.put(spec, w.texts[spec]+fmt.Sprintf("# %d\n", w.pushed))
	case "spec goes":
		w.put(spec, "")
	case "moved":
		if text := w.texts[spec]; text != "" {
			delete(w.texts, spec)
			to := filepath.Dir(spec) + "/other/" + name + ".yaml"
			w.texts[to] = text
			w.push(gittest.Commit{Write: map[string]string{to: text}, Delete: []string{spec}})
		}
	case "twice":
		w.put(filepath.Dir(spec)+"/"+rapid.SampledFrom([]string{"a", "z"}).Draw(rt, "before")+".yaml", rapid.SampledFrom([]string{"", whole, w.texts[spec]}).Draw(rt, "copy"))
	case "broken":
		w.put(spec, rapid.SampledFrom([]string{"a: [", strings.Replace(whole, "rollout:", "rolout:", 1), strings.Replace(whole, "metadata: {", "metadata: {namespace: , ", 1)}).Draw(rt, "broken"))
	case "retired":
		w.put(spec, strings.Replace(whole, "metadata: {", `metadata: {annotations: {rampart.dev/retire: "true"}, `, 1))
	case "elsewhere":
		w.put(spec, strings.NewReplacer(rapid.SampledFrom([][]string{{"name: temporal}", "name: other}"}, {"temporalNamespace: shop", "temporalNamespace: other"}}).Draw(rt, "to")...).Replace(whole))
	case "connection":
		w.put(filepath.Dir(spec)+"/connections.yaml", rapid.SampledFrom([]string{"", twinConnection("temporal", "localhost:7233"), twinConnection("temporal", "localhost:7244"),
			twinConnection("temporal", "localhost:7233") + "---\n" + twinConnection("other", "localhost:7255")}).Draw(rt, "connection"))
	case "template":
		w.put(filepath.Dir(spec)+"/template.yaml", rapid.SampledFrom([]string{"", twinTemplate(name, 1), twinTemplate(name, 2), twinTemplate("nobody", 1), "kind: WorkerResourceTemplate\n"}).Draw(rt, "template"))
	case "policy":
		w.put("policies/own.rego", rapid.SampledFrom([]string{"", w.holds(10 * time.Minute), "package rampart.rollout\n\nbroken {\n", approves}).Draw(rt, "policy"))
	case "data":
		w.put("policies/data.yaml", rapid.SampledFrom([]string{"", twinData, w.freezes(3 * time.Minute), w.freezes(time.Hour)}).Draw(rt, "data"))
	case "waiver":
		w.put("prod/waiver.yaml", rapid.SampledFrom([]string{"", w.waives(2 * time.Minute), w.waives(3 * time.Hour)}).Draw(rt, "waiver"))
	case "config":
		w.put("rampart.yaml", rapid.SampledFrom([]string{twinConfig, strings.ReplaceAll(twinConfig, "Direct", "PullRequest"),
			strings.Replace(twinConfig, `["prod/**"]`, `["prod/*.yaml"]`, 1), strings.Replace(twinConfig, "output: {path: out/prod}", "output: {path: out/other}", 1), "kind: Config\n"}).Draw(rt, "config"))
	case "record", "routing":
		w.edit(rt, what == "routing")
	case "routed":
		w.route(rt, "shop/"+name)
	case "proposal":
		w.answer(rt)
	case "restart":
		w.close(rt)
		for i := range w.bots {
			w.open(rt, i, w.judges())
		}
	}
}

func (w *twins) judges() *cmdutil.Judges {
	return w.policies
}

func twinTemplate(name string, most int) string {
	return fmt.Sprintf(`apiVersion: temporal.io/v1alpha1
kind: WorkerResourceTemplate
metadata: {name: budget}
spec:
  workerDeploymentRef: {name: %s}
  versions: [Current]
  template: {apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {selector: {matchLabels: {}}, maxUnavailable: %d}}
`, name, most)
}

const approves = `package rampart.rollout

requireApproval contains {"rule": "twin.approval", "msg": "a person has to look"} if input.action.raises
`

// holds is a policy that holds what raises for a time, and says until when.
func (w *twins) holds(d time.Duration) string {
	until := w.now.Add(d).Format(time.RFC3339)
	return fmt.Sprintf(`package rampart.rollout

hold contains {"rule": "twin.hold", "msg": "not yet", "until": %q} if {
	input.action.raises
	time.parse_rfc3339_ns(input.now) < time.parse_rfc3339_ns(%q)
}
`, until, until)
}

func (w *twins) freezes(d time.Duration) string {
	return fmt.Sprintf("rampart: {config: {rollout: {freeze: {timezone: UTC, windows: [{name: now, start: %q, end: %q}]}}}}\n",
		w.now.Format(time.RFC3339), w.now.Add(d).Format(time.RFC3339))
}

func (w *twins) waives(d time.Duration) string {
	return fmt.Sprintf(`apiVersion: rampart.dev/v1alpha1
kind: Waiver
metadata: {name: now}
spec:
  rule: rollout.freeze
  scope: {environment: prod}
  reason: it cannot wait
  approver: Ada Park
  expiresAt: %q
`, w.now.Add(d).Format(time.RFC3339))
}

// edit is a person's edit of what the bot wrote.
func (w *twins) edit(rt *rapid.T, routing bool) {
	branch := rapid.SampledFrom([]string{"main", "main", "rendered"}).Draw(rt, "branch")
	repo := w.bots[0].git
	if _, ok := repo.Try("rev-parse", "--verify", "refs/heads/"+branch); !ok {
		return
	}
	var files []string
	for p := range strings.SplitSeq(repo.Git("ls-tree", "-r", "--name-only", branch), "\n") {
		if strings.HasPrefix(p, "out/") && strings.HasSuffix(p, "/routing.yaml") == routing {
			files = append(files, p)
		}
	}
	if len(files) == 0 {
		return
	}
	file := rapid.SampledFrom(files).Draw(rt, "file")
	text := repo.Git("show", branch+":"+file) + "\n"
	how := []string{"delete", "comment", "folder"}
	if routing {
		how = []string{"delete", "comment", "broken", "empty", "ramp"}
	}
	switch rapid.SampledFrom(how).Draw(rt, "how") {
	case "delete":
		w.push(gittest.Commit{Branch: branch, Delete: []string{file}})
		return
	case "folder":
		w.push(gittest.Commit{Branch: branch, Delete: []string{filepath.Dir(file)}})
		return
	case "comment":
		text += "# edited\n"
	case "broken":
		text = "kind: [\n"
	case "empty":
		text = strings.Replace(text, "current: ", "current: \"\" # ", 1)
	case "ramp":
		text = strings.Replace(text, "percentage: 10", "percentage: 80", 1)
	}
	w.push(gittest.Commit{Branch: branch, Write: map[string]string{file: text}})
}

// route is somebody else's change of Temporal's routing.
func (w *twins) route(rt *rapid.T, name string) {
	known := w.bots[0].temporal.at(name)
	if len(known.builds) == 0 {
		return
	}
	id := known.builds[rapid.IntRange(0, len(known.builds)-1).Draw(rt, "build")].id
	ramp := rapid.Bool().Draw(rt, "ramp")
	if r := known.routing; !ramp && r.Current == id && !r.HasRamp {
		return // only its owner would be another one, which shows in a describe alone
	}
	for _, b := range w.bots {
		step := rollout.RoutingStep{Kind: rollout.SetCurrent, BuildID: id}
		if ramp {
			step.Kind, step.Percentage = rollout.SetRamp, 30
		}
		b.temporal.move(name, "somebody", step)
	}
}

// answer is what a person does about a proposal.
func (w *twins) answer(rt *rapid.T) {
	refs, _ := w.bots[0].git.Try("for-each-ref", "--format=%(refname:short)", "refs/heads/rampart/")
	if strings.TrimSpace(refs) == "" {
		return
	}
	branch := rapid.SampledFrom(strings.Fields(refs)).Draw(rt, "proposal")
	base := "main"
	if strings.HasPrefix(branch, "rampart/test/") {
		base = "rendered"
	}
	switch rapid.SampledFrom([]string{"merge", "merge", "delete", "commit"}).Draw(rt, "answer") {
	case "merge": // squashed: its only change is a routing.yaml
		write := map[string]string{}
		git := w.bots[0].git
		for p := range strings.FieldsSeq(git.Git("diff", "--name-only", base+"..."+branch)) {
			write[p] = git.Git("show", branch+":"+p) + "\n"
		}
		w.push(gittest.Commit{Branch: base, Write: write})
	case "delete":
		for _, b := range w.bots {
			b.git.Git("update-ref", "-d", "refs/heads/"+branch)
		}
	case "commit":
		w.push(gittest.Commit{Branch: branch, Write: map[string]string{"NOTES": "look at this\n"}})
	}
}
