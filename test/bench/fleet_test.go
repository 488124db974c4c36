package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"path"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/rampart-gitops/rampart/gitops/index"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/render"
)

// fleet is a repository of many worker deployments. The same fleet is the same bytes, whenever and wherever it is made.
type fleet struct {
	Deployments int
	// Unrelated files, in which the bot has no business.
	Unrelated int
	// History is how many commits came before.
	History int
	Seed    uint64
}

const (
	teams    = 40
	versions = 3 // of each worker deployment
)

func (f fleet) team(i int) string { return fmt.Sprintf("team-%02d", i%teams) }

func (f fleet) name(i int) string { return fmt.Sprintf("worker-%05d", i) }

func (f fleet) specPath(i int) string {
	return fmt.Sprintf("workers/%s/%s/worker.yaml", f.team(i), f.name(i))
}

func (f fleet) recordPath(i int) string { return fmt.Sprintf("deploy/%s/%s", f.team(i), f.name(i)) }

func (f fleet) image(i, build int) string {
	return fmt.Sprintf("registry.example.com/%s/%s:v1.%d.0", f.team(i), f.name(i), build)
}

const (
	progressive = "strategy: Progressive\n    steps:\n      - {rampPercentage: 5, pauseDuration: 10m}\n" +
		"      - {rampPercentage: 25, pauseDuration: 30m}\n      - {rampPercentage: 50, pauseDuration: 1h}"
	allAtOnce = "strategy: AllAtOnce"
)

// spec is a worker deployment of about forty lines.
func (f fleet) spec(i, build int, rollout string) string {
	r := rand.New(rand.NewPCG(f.Seed, uint64(i)))
	return fmt.Sprintf(`apiVersion: temporal.io/v1alpha1
kind: TemporalWorkerDeployment
metadata:
  name: %[2]s
  namespace: %[1]s
  labels:
    team: %[1]s
    tier: %[4]s
spec:
  replicas: %[5]d
  workerOptions:
    connectionRef:
      name: temporal
    temporalNamespace: production
  rollout:
    %[6]s
  sunset:
    scaledownDelay: 1h
    deleteDelay: 720h
  template:
    metadata:
      labels:
        app: %[2]s
    spec:
      serviceAccountName: worker
      terminationGracePeriodSeconds: %[7]d
      containers:
        - name: worker
          image: %[3]s
          args: ["--log-format", "json"]
          env:
            - {name: LOG_LEVEL, value: %[8]s}
            - {name: DATABASE_HOST, value: db-%[9]d.example.com}
          ports:
            - {name: metrics, containerPort: 9090}
          resources:
            requests: {cpu: %[10]dm, memory: 256Mi}
            limits: {memory: 512Mi}
`, f.team(i), f.name(i), f.image(i, build), pick(r, "gold", "silver", "bronze"), 1+r.IntN(9), rollout, 30+r.IntN(90),
		pick(r, "info", "warn", "debug"), r.IntN(16), 100+10*r.IntN(40))
}

func pick(r *rand.Rand, of ...string) string { return of[r.IntN(len(of))] }

func connectionPath(team string) string { return "workers/" + team + "/connection.yaml" }

func connectionOf(team string) string {
	return fmt.Sprintf(`apiVersion: temporal.io/v1alpha1
kind: TemporalConnection
metadata: {name: temporal, namespace: %s}
spec: {hostPort: "temporal.example.com:7233"}
`, team)
}

// born is when the first version of everything was made; the next ones come two days apart, when the one before is
// scaled down.
var born = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// settled is a fleet in which nothing is left to do: its files, and the Temporal that goes with them.
type settled struct {
	files    map[string]string
	temporal world
}

// world is what Temporal knows, and when.
type world struct {
	Now         time.Time              `json:"now"`
	Deployments map[string]*deployment `json:"deployments"`
}

// settle lets the bot itself bring the fleet up, version after version. Planner, policies and renderer are the real
// ones, so that what is in the repository is what they write.
func (f fleet) settle(tb testing.TB) settled {
	tb.Helper()
	out := settled{files: map[string]string{}, temporal: world{Deployments: map[string]*deployment{}}}
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // little of it lives long
	engine := policy.Compile(policy.Config{})
	var mu sync.Mutex
	var dirs []string
	group, ctx := errgroup.WithContext(tb.Context())
	group.SetLimit(runtime.GOMAXPROCS(0))
	const batch = 100
	for start := 0; start < f.Deployments; start += batch {
		group.Go(func() error {
			s, err := f.bringUp(ctx, engine, start, min(start+batch, f.Deployments))
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(out.files, s.files)
			out.temporal.Now = s.temporal.Now
			maps.Copy(out.temporal.Deployments, s.temporal.Deployments)
			return nil
		})
	}
	require.NoError(tb, group.Wait())
	for i := range f.Deployments {
		dirs = append(dirs, f.team(i)+"/"+f.name(i))
	}
	world, err := index.ReadFiles(nil)
	require.NoError(tb, err)
	root, err := render.Root(world.Environments[0].Environment, dirs)
	require.NoError(tb, err)
	out.files[root.Path] = root.Data
	return out
}

// bringUp is settle for a part of the fleet.
func (f fleet) bringUp(ctx context.Context, engine *policy.Engine, from, to int) (settled, error) {
	shelf := &shelf{files: map[string]string{}}
	now := born
	clock := func() time.Time { // a second read has to be later than the first
		now = now.Add(time.Millisecond)
		return now
	}
	temporal := &memory{now: clock}
	log := slog.New(slog.DiscardHandler)
	bot := &reconcile.Reconciler{
		Planner: &reconcile.Planner{Source: shelf, Observer: temporal, Limits: rollout.DefaultLimits(), Now: clock, Log: log, Parallel: 1,
			JudgeFor: func(rollout.EnvironmentWorld) reconcile.Judge { return engine }},
		Committer: shelf, Router: temporal, Versions: temporal,
	}
	for v := range versions + 1 {
		rollout := allAtOnce
		if v == versions { // all the same, but for how the next one comes
			v, rollout = versions-1, progressive
		}
		for i := from; i < to; i++ {
			shelf.files[f.specPath(i)] = f.spec(i, v, rollout)
			shelf.files[connectionPath(f.team(i))] = connectionOf(f.team(i))
		}
		for range 2 { // it gets all traffic; the one before is scaled down
			if err := untilQuiet(func() (bool, error) {
				now = now.Add(2 * time.Minute)
				report, err := bot.Cycle(ctx)
				if len(report.Failures) > 0 {
					return false, fmt.Errorf("failures: %v", report.Failures)
				}
				return len(report.Commits) == 0, err
			}); err != nil {
				return settled{}, err
			}
			now = now.Add(48 * time.Hour)
		}
	}
	return settled{shelf.files, world{now.Add(-47 * time.Hour), temporal.known}}, nil
}

// untilQuiet runs cycles until one does nothing.
func untilQuiet(cycle func() (quiet bool, err error)) error {
	const most = 20
	for range most {
		if quiet, err := cycle(); quiet || err != nil {
			return err
		}
	}
	return fmt.Errorf("still not quiet after %d cycles", most)
}

// shelf is a repository of files in memory.
type shelf struct{ files map[string]string }

func (s *shelf) Read(context.Context) (rollout.World, error) {
	var files []rollout.TextFile
	for _, p := range slices.Sorted(maps.Keys(s.files)) {
		files = append(files, rollout.TextFile{Path: p, Text: s.files[p]})
	}
	return index.ReadFiles(files)
}

func (s *shelf) Commit(_ context.Context, c rollout.Commit) (string, error) {
	for _, change := range c.Changes {
		switch {
		case change.Delete:
			delete(s.files, change.Path)
		case change.Blob != "":
			return "", errors.New("nothing is ever brought back here")
		default:
			s.files[change.Path] = change.Data
		}
	}
	return "made", nil
}

func (s *shelf) Confirm(context.Context, map[string]string) (bool, error) { return true, nil }

// commit makes a repository of the fleet. Only the last commit has everything as it is.
func (f fleet) commit(tb testing.TB, s settled) *gittest.Repo {
	tb.Helper()
	repo := gittest.NewBareRepo(tb)
	files := maps.Clone(s.files)
	r := rand.New(rand.NewPCG(f.Seed, ^uint64(0)))
	for i := range f.Unrelated {
		p := fmt.Sprintf("services/area-%02d/service-%03d/file-%04d.txt", i%50, i%500, i)
		files[p] = fmt.Sprintf("%s is number %d\n%s", path.Base(p), i, strings.Repeat(fmt.Sprintf("line %016x\n", r.Uint64()), 1+r.IntN(40)))
	}
	var in bytes.Buffer
	write := func(p, data string) { fmt.Fprintf(&in, "M 100644 inline %s\ndata %d\n%s\n", p, len(data), data) }
	for c := range f.History + 1 {
		who := fmt.Sprintf("A Person <person@example.com> %d +0000", born.Add(time.Duration(c)*time.Minute).Unix())
		fmt.Fprintf(&in, "commit refs/heads/main\nauthor %s\ncommitter %s\ndata 7\nchange\n\n", who, who)
		if c == 0 {
			for _, p := range slices.Sorted(maps.Keys(files)) {
				write(p, files[p])
			}
		}
		if c > 0 && f.Deployments > 0 { // a spec that was touched and mended, and something else
			i := (c - 1) / 2 * 7 % f.Deployments
			text := f.spec(i, versions-1, progressive)
			if c%2 == 1 && c < f.History {
				text += fmt.Sprintf("# change %d\n", c)
			}
			write(f.specPath(i), text)
		}
		write("CHANGES.md", fmt.Sprintf("%d changes\n", c))
	}
	repo.GitInput(in.Bytes(), "fast-import", "--quiet", "--force")
	repo.Git("repack", "-adq")
	return repo
}
