package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/server/common/dynamicconfig"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/test/giteatest"
	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// What all tests share: the built binaries and one server.
var (
	binary      string
	faultBinary string
	server      *temporalenv.Server
)

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "rampart-e2e")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary, faultBinary = filepath.Join(dir, "rampart"), filepath.Join(dir, "rampart-faults")
		for _, args := range [][]string{{"-o", binary}, {"-tags", "faults", "-o", faultBinary}} {
			build := exec.Command("go", append(append([]string{"build", "-ldflags=-s -w"}, args...), "./cmd/rampart")...)
			build.Dir = "../.."
			if out, err := build.CombinedOutput(); err != nil {
				fmt.Fprintf(os.Stderr, "build rampart: %v\n%s", err, out)
				return 1
			}
		}
		if server, err = temporalenv.New(context.Background(), temporalenv.Options{CLI: os.Getenv("RAMPART_TEST_TEMPORAL_CLI")}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer server.Close()
		code := giteatest.Main(m)
		if err := rows.check(); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		return code
	}())
}

// The one worker deployment of most tests.
const (
	kubeNamespace = "shop"
	deployName    = "checkout"
	deployment    = kubeNamespace + "/" + deployName
	queue         = "checkout"
	output        = "deploy"
	recordDir     = output + "/" + kubeNamespace + "/" + deployName
	specFile      = "workers/checkout.yaml"
)

// patience is how long a test waits for something that has to come.
const patience = 4 * time.Minute

// world is one repository, one Temporal namespace and one cluster.
type world struct {
	t        *testing.T
	repo     *gittest.Repo
	url      string   // of the repository, as the bot has it
	origin   string   // of the repository, as people have it
	interval string   // between two cycles
	access   []string // flags with which the bot, and people, get there
	forge    []string // flags that are the bot's alone
	server   *temporalenv.Server
	ns       *temporalenv.Namespace
	client   client.Client
	fleet    *temporalenv.Fleet
	cache    string
	started  time.Time
	ran      time.Time // when the last process that runs one cycle was started
	clock    int
	branch   string // of the output
	output   string // of the environment that it is asked about
	name     string // of the worker deployment that it is asked about
	tree     *tree
	// who pushes, and their e-mail address.
	who, email string
	// settings of the server for the world's namespace.
	settings []temporalenv.Setting
	// images beside those that every cluster has.
	images map[string]temporalenv.Image
	// tend looks after the bots while the test waits; nil: they need no care.
	tend func()
}

// option changes a world before it begins.
type option func(*world)

// onBranch says that the manifests are on a branch of their own.
func onBranch(name string) option { return func(w *world) { w.branch = name } }

// inFolder says that the manifests are in another folder than is usual.
func inFolder(name string) option { return func(w *world) { w.output = name } }

// onOwnServer says that the Temporal server is the test's alone.
func onOwnServer() option {
	return func(w *world) { w.server = temporalenv.Start(w.t, temporalenv.Options{}) }
}

// withImages adds images to the cluster's.
func withImages(images map[string]temporalenv.Image) option {
	return func(w *world) { w.images = images }
}

// withSetting sets the server's dynamic configuration for the world's namespace.
func withSetting(setting dynamicconfig.GenericSetting, value any) option {
	return func(w *world) { w.settings = append(w.settings, temporalenv.Setting{Setting: setting, Value: value}) }
}

// overHTTP serves the repository by git http-backend, over TLS, to clients that have the password.
func overHTTP() option { return overHTTPBehind(nil) }

// overHTTPBehind is overHTTP with something before the server; nil: nothing.
func overHTTPBehind(wrap func(http.Handler) http.Handler) option {
	return func(w *world) {
		served := gittest.ServeHTTP(w.t, w.repo, gittest.HTTPConfig{User: "bot", Password: "s3cret", TLS: true, Wrap: wrap})
		w.goOver(served.URL, served.CAFile)
	}
}

// goOver says how the bot gets to a repository that is served over HTTP.
func (w *world) goOver(url, caFile string) {
	token := filepath.Join(w.t.TempDir(), "token")
	require.NoError(w.t, os.WriteFile(token, []byte("s3cret\n"), 0o600))
	w.url, w.access = url, []string{"--git-user", "bot", "--git-token-file", token, "--git-ca-file", caFile}
}

// overSSH serves the repository by sshd to clients that have the key.
func overSSH() option {
	return func(w *world) {
		served := gittest.ServeSSH(w.t)
		w.url, w.access = served.URL(w.repo), []string{"--git-ssh-key-file", served.KeyFile, "--git-known-hosts", served.KnownHostsFile}
	}
}

var notName = regexp.MustCompile(`[^a-z0-9-]+`)

func newWorld(t *testing.T, options ...option) *world {
	t.Helper()
	t.Parallel()
	name := strings.Trim(notName.ReplaceAllString(strings.ToLower(t.Name()), "-"), "-")
	w := &world{t: t, repo: gittest.NewBareRepo(t), server: server, cache: t.TempDir(), started: time.Now(), branch: "main", output: output, name: deployName, tree: &tree{},
		who: "person", email: "p@example.com"}
	w.url, w.origin = w.repo.URL(), w.repo.Dir
	for _, o := range options {
		o(w)
	}
	var err error
	w.ns, err = w.server.Namespace(t.Context(), name, w.settings...)
	require.NoError(t, err)
	w.client, err = w.ns.Client(t.Context())
	require.NoError(t, err)
	t.Cleanup(w.client.Close)
	images := map[string]temporalenv.Image{
		"app:v1": temporalenv.DefaultImage(queue), "app:v2": temporalenv.DefaultImage(queue), "app:v3": temporalenv.DefaultImage(queue),
		"app:bad": temporalenv.FailingImage(queue), "app:v4": takesInput(), "app:v5": activitiesOnly(), "app:v6": panics(), "app:v7": changed(),
		"pool:v1": chargesOnly(), "pool:v2": chargesOnly(),
	}
	maps.Copy(images, w.images)
	w.fleet = temporalenv.NewFleet(temporalenv.FleetConfig{Images: images})
	t.Cleanup(w.fleet.Close)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = w.fleet.Watch(ctx, temporalenv.Source{Repo: w.repo.Dir, Branch: w.branch, Path: w.output})
	}()
	t.Cleanup(func() { stop(); <-done })
	t.Cleanup(func() {
		if t.Failed() {
			w.dump()
		}
	})
	return w
}

// dump shows what there is to see when a test failed.
func (w *world) dump() {
	w.t.Logf("commits:\n%s", w.repo.Git("log", "--format=%h %an: %s", "--all"))
	for path, text := range w.repo.Files(w.branch) {
		if strings.HasSuffix(path, "status.yaml") || strings.HasSuffix(path, "routing.yaml") {
			w.t.Logf("%s:\n%s", path, text)
		}
	}
	w.t.Logf("routing calls: %q", w.ns.RoutingCalls(""))
	for _, c := range w.ns.Calls() {
		if !c.Accepted {
			w.t.Logf("not accepted: %s %s %s: %s", c.Time.Format("15:04:05.000"), c.Method, c.Code, c.Message)
		}
	}
	for _, e := range w.fleet.Events() {
		w.t.Logf("cluster: %s %s %s %s", e.Time.Format("15:04:05.000"), e.Kind, e.Object, e.Detail)
	}
	w.ns.LogOwnWorkflows(w.t)
}

// specText is a spec in YAML.
type specText struct {
	name, image, strategy, gate, buildID, evacuate, extra string
	// sunset has the delays, replicas is their number, if they are not the usual ones.
	sunset, replicas string
}

func (s specText) String() string {
	if s.name == "" {
		s.name = deployName
	}
	if s.strategy == "" {
		s.strategy = "{strategy: Progressive, steps: [{rampPercentage: 10, pauseDuration: 1s}, {rampPercentage: 50, pauseDuration: 1s}], rollback: {window: 1s}%s}"
	}
	if !strings.Contains(s.strategy, "%s") {
		s.strategy = strings.TrimSuffix(s.strategy, "}") + "%s}"
	}
	if s.sunset == "" {
		s.sunset = "scaledownDelay: 1s, deleteDelay: 2s"
	}
	if s.replicas == "" {
		s.replicas = "1"
	}
	gate := ""
	if s.gate != "" {
		gate = ", gate: " + s.gate
	}
	evacuate := ""
	if s.evacuate != "" {
		evacuate = ", evacuate: " + s.evacuate
	}
	custom := ""
	if s.buildID != "" {
		custom = ", unsafeCustomBuildID: " + s.buildID
	}
	return fmt.Sprintf(`apiVersion: temporal.io/v1alpha1
kind: TemporalWorkerDeployment
metadata: {name: %s, namespace: %s}
spec:
  replicas: %s
  workerOptions: {connectionRef: {name: temporal}, temporalNamespace: NAMESPACE%s}
  rollout: %s
  sunset: {%s%s}
  template:
    spec:
      containers:
        - {name: worker, image: "%s"}
%s`, s.name, kubeNamespace, s.replicas, custom, fmt.Sprintf(s.strategy, gate), s.sunset, evacuate, s.image, s.extra)
}

func (w *world) connection() string {
	return fmt.Sprintf(`apiVersion: temporal.io/v1alpha1
kind: TemporalConnection
metadata: {name: temporal, namespace: %s}
spec: {hostPort: "%s"}
`, kubeNamespace, w.server.Address())
}

// push commits files as a person.
func (w *world) push(message string, files map[string]string) string {
	w.t.Helper()
	if w.clock == 0 {
		files["workers/connection.yaml"] = w.connection()
	}
	w.clock++
	for path, text := range files {
		files[path] = strings.ReplaceAll(text, "NAMESPACE", w.ns.Name())
	}
	return w.commit(gittest.Commit{Write: files, Message: message})
}

// commit adds a person's commit to the tip, again if the bot was quicker.
func (w *world) commit(c gittest.Commit) string {
	w.t.Helper()
	c.When = w.started.Add(time.Duration(w.clock) * time.Second)
	work := w.t.TempDir()
	git := func(args ...string) ([]byte, error) {
		cmd := exec.Command("git", append([]string{"-C", work}, args...)...)
		cmd.Env = append(gittest.Env(), "GIT_AUTHOR_NAME="+w.who, "GIT_AUTHOR_EMAIL="+w.email, "GIT_COMMITTER_NAME="+w.who,
			"GIT_COMMITTER_EMAIL="+w.email, "HOME="+work)
		return cmd.CombinedOutput()
	}
	must := func(args ...string) {
		out, err := git(args...)
		require.NoError(w.t, err, "git %v: %s", args, out)
	}
	must("init", "-q", "-b", "main")
	must("remote", "add", "origin", w.origin)
	for range 50 {
		if _, err := git("fetch", "-q", "origin", "main"); err == nil {
			must("reset", "-q", "--hard", "FETCH_HEAD")
		}
		for path, text := range c.Write {
			full := filepath.Join(work, path)
			require.NoError(w.t, os.MkdirAll(filepath.Dir(full), 0o755))
			require.NoError(w.t, os.WriteFile(full, []byte(text), 0o644))
		}
		for _, path := range c.Delete {
			require.NoError(w.t, os.Remove(filepath.Join(work, path)))
		}
		must("add", "-A")
		must("commit", "-q", "-m", c.Message)
		if _, err := git("push", "-q", "origin", "HEAD:main"); err == nil {
			out, err := git("rev-parse", "HEAD")
			require.NoError(w.t, err)
			return strings.TrimSpace(string(out))
		}
	}
	w.t.Fatal("the push lost against the bot 50 times")
	return ""
}

// command is a command that ends by itself. One that does not in time says what it does, and is killed.
func (w *world) command(bin string, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	w.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) }
	cmd.Env = w.environ()
	cmd.WaitDelay = 10 * time.Second // for what it started, and holds its output open
	return cmd
}

func (w *world) environ() []string { return append(os.Environ(), "HOME="+w.cache, "NO_COLOR=1") }

// eventually waits for a condition.
func (w *world) eventually(what string, ok func() bool) {
	w.t.Helper()
	w.within(patience, what, ok)
}

// syncAfter is how long a test waits before it tells the server which versions drained. The server misses that now and
// then, and the bot looks by itself only after ten minutes.
const syncAfter = 30 * time.Second

// within waits so long for a condition.
func (w *world) within(long time.Duration, what string, ok func() bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), long)
	defer cancel()
	sync := time.Now().Add(syncAfter)
	err := temporalenv.Until(ctx, func(context.Context) error {
		if w.tend != nil {
			w.tend()
		}
		if time.Now().After(sync) {
			sync = time.Now().Add(syncAfter)
			if told, err := w.ns.SyncDrained(ctx); err != nil || len(told) > 0 {
				w.t.Logf("the server was told that these drained, which it had missed: %q, error %v", told, err)
			}
		}
		if ok() {
			return nil
		}
		return fmt.Errorf("not yet: %s", what)
	})
	require.NoError(w.t, err)
}

// named is the same world, asked about another worker deployment.
func (w *world) named(name string) *world {
	other := *w
	other.name = name
	return &other
}

// id is the worker deployment's name in Temporal.
func (w *world) id() string { return kubeNamespace + "/" + w.name }

// dir is the folder of its record.
func (w *world) dir() string { return w.output + "/" + w.id() }

// file is a file at the output's tip, "" if there is none.
func (w *world) file(path string) string {
	return w.tree.at(w.repo, w.branch)[path]
}

// tree is what is at the tip of a branch. It is read again when the tip has moved: waits ask for it all the time.
type tree struct {
	mu    sync.Mutex
	tip   string
	files map[string]string
}

func (s *tree) at(repo *gittest.Repo, branch string) map[string]string {
	tip := repo.TipOrNone(branch)
	s.mu.Lock()
	defer s.mu.Unlock()
	if tip == "" {
		return nil
	}
	if tip != s.tip {
		s.tip, s.files = tip, repo.Files(tip)
	}
	return s.files
}

// status is status.yaml at the tip, with an empty status if there is none.
func (w *world) status() v1alpha1.WorkerDeploymentStatus {
	text := w.file(w.dir() + "/status.yaml")
	docs, _ := v1alpha1.Decode("status.yaml", []byte(text))
	for _, d := range docs {
		if o, ok := d.Object.(*v1alpha1.WorkerDeployment); ok && o.Status != nil {
			return *o.Status
		}
	}
	return v1alpha1.WorkerDeploymentStatus{}
}

// routing is routing.yaml at the tip.
func (w *world) routing() v1alpha1.RoutingSpec {
	text := w.file(w.dir() + "/routing.yaml")
	docs, _ := v1alpha1.Decode("routing.yaml", []byte(text))
	for _, d := range docs {
		if o, ok := d.Object.(*v1alpha1.Routing); ok {
			return o.Spec
		}
	}
	return v1alpha1.RoutingSpec{}
}

// reason of the Ready condition.
func (w *world) reason() string {
	for _, c := range w.status().Conditions {
		if c.Type == v1alpha1.ConditionReady {
			return c.Reason
		}
	}
	return ""
}

func (w *world) awaitReason(reason string) {
	w.t.Helper()
	w.eventually("reason "+reason, func() bool { return w.reason() == reason })
}

// awaitReady waits until an image's version is seen to be current, and says so.
func (w *world) awaitReady(image string) string {
	w.t.Helper()
	w.eventually("Ready with "+image, func() bool { return w.ready(tag(image)) })
	return w.status().CurrentVersion.BuildID
}

// ready reports whether the version of an image with a tag is seen to be current, and the status says so.
func (w *world) ready(tag string) bool {
	st := w.status()
	return w.reason() == "RolloutComplete" && st.CurrentVersion != nil && strings.HasPrefix(st.CurrentVersion.BuildID, tag+"-") &&
		st.TargetVersion != nil && st.TargetVersion.BuildID == st.CurrentVersion.BuildID
}

// tag of an image, with which the build ID begins.
func tag(image string) string { return image[strings.Index(image, ":")+1:] }

// build is the build ID of an image's version in the record, "" if there is none.
func (w *world) build(image string) string {
	for _, v := range w.routing().Versions {
		if strings.HasPrefix(v.BuildID, tag(image)+"-") {
			return v.BuildID
		}
	}
	return ""
}

// calls are changes of a single bot's making: one that was answered does not ask again. One that waited no longer for
// an answer does.
func (w *world) calls() []string {
	w.t.Helper()
	require.Empty(w.t, w.ns.RoutingRepeats(w.id()), "asked for again, although it was answered")
	return w.changes()
}

var buildSuffix = regexp.MustCompile(`\b(v[0-9]+|bad)-[0-9a-f]{8}\b`)

// botCommits are the subjects of the bot's commits, oldest first, with images' tags in place of build IDs.
func (w *world) botCommits() []string {
	var out []string
	for _, line := range strings.Split(w.repo.Git("log", "--reverse", "--format=%an|%s", w.branch), "\n") {
		if subject, ok := strings.CutPrefix(line, "rampart|"); ok {
			out = append(out, buildSuffix.ReplaceAllString(subject, "$1"))
		}
	}
	return out
}

// subject is what the bot's commits about the deployment begin with.
const subject = "rampart(default): " + deployment + ": "

// shortSubjects are botCommits without what is the same in all, and without those that only tell of states. Whether
// these are commits of their own depends on when Temporal says so. Nor are those that a busy machine, too slow to read
// Temporal in time, makes: they say so, and decide nothing, and then the state before is said again.
func (w *world) shortSubjects() []string {
	var out []string
	slow := false
	for _, s := range w.botCommits() {
		s = strings.TrimPrefix(s, subject)
		switch {
		case strings.HasPrefix(s, "status: "):
		case strings.HasPrefix(s, "StaleFacts: "), strings.HasPrefix(s, "TemporalStateFetchFailed: "):
			slow = true
		case slow && len(out) > 0 && out[len(out)-1] == s:
			slow = false
		default:
			out, slow = append(out, s), false
		}
	}
	return out
}
