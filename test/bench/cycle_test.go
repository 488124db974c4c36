package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/internal/auditlog"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/mask"
	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/render"
)

const deployments = 1000

// one is a fleet as the single benchmarks have it.
var one = fleet{Deployments: deployments, Seed: 1}

func specAt(i int) string { return one.specPath(i) }

func spec(i, build int) string { return one.spec(i, build, progressive) }

// bench is a repository on a server and a bot that has brought everything up.
type bench struct {
	repo     *gittest.Repo
	url      string
	temporal *memory
	engine   *policy.Engine
}

func newBench(b testing.TB, n int) *bench {
	b.Helper()
	x := &bench{repo: gittest.NewBareRepo(b), temporal: &memory{now: time.Now}, engine: policy.Compile(policy.Config{})}
	files := map[string]string{}
	for i := range n {
		files[specAt(i)] = spec(i, 0)
		files[connectionPath(one.team(i))] = connectionOf(one.team(i))
	}
	x.repo.Commit(gittest.Commit{Write: files})
	x.url = gittest.ServeHTTP(b, x.repo, gittest.HTTPConfig{}).URL
	r := x.bot(b)
	for range 6 {
		_, err := r.Cycle(b.Context())
		require.NoError(b, err)
	}
	report, err := r.Cycle(b.Context())
	require.NoError(b, err)
	require.Empty(b, report.Commits, "all is settled")
	return x
}

func (x *bench) bot(b testing.TB) *reconcile.Reconciler {
	b.Helper()
	log := slog.New(slog.DiscardHandler)
	repo, err := gitops.Open(gitops.Config{URL: x.url, Branch: "main", CacheDir: b.TempDir(), Author: "rampart", Email: "rampart@example.com",
		Log: log, Now: time.Now})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, repo.Close()) })
	return &reconcile.Reconciler{
		Planner: &reconcile.Planner{Source: repo, Surveyor: repo, History: repo, Records: repo, Observer: x.temporal, Limits: rollout.DefaultLimits(), Now: time.Now, Log: log, Parallel: 8,
			JudgeFor: func(rollout.EnvironmentWorld) reconcile.Judge { return x.engine }},
		Committer: repo, Router: x.temporal, Versions: x.temporal, Lister: x.temporal,
	}
}

// A cycle in which nothing changed, in a bot that runs as a loop.
func BenchmarkCycleNoChange1000(b *testing.B) {
	x := newBench(b, deployments)
	r := x.bot(b)
	_, err := r.Cycle(b.Context())
	require.NoError(b, err)
	reads := x.temporal.reads
	b.ReportAllocs()
	for b.Loop() {
		_, err := r.Cycle(b.Context())
		require.NoError(b, err)
	}
	b.ReportMetric(float64(x.temporal.reads-reads)/float64(b.N), "describes/op")
}

// BenchmarkCycleNoChange1000Recorded is the same in a bot that records its decisions: it looks only at what it decides
// anew.
func BenchmarkCycleNoChange1000Recorded(b *testing.B) {
	x := newBench(b, deployments)
	r := x.bot(b)
	masker, err := mask.New()
	require.NoError(b, err)
	var lines atomic.Int64
	log, err := auditlog.New(auditlog.Config{Masker: masker, Lines: countLines{&lines}, Log: slog.New(slog.DiscardHandler), Now: time.Now,
		Document: func(d *rollout.Decision) (json.RawMessage, error) {
			document, err := policy.NewDocument(plan.Look(d.Snapshot).JudgedBy(), d.Proposal)
			if err != nil {
				return nil, err
			}
			return document.MarshalJSON()
		}})
	require.NoError(b, err)
	r.Decisions = log
	_, err = r.Cycle(b.Context())
	require.NoError(b, err)
	for lines.Load() < deployments { // each is recorded once, beside the cycle
		time.Sleep(time.Millisecond)
	}
	b.ReportAllocs()
	for b.Loop() {
		_, err := r.Cycle(b.Context())
		require.NoError(b, err)
	}
	require.NoError(b, log.Close(b.Context()))
	require.EqualValues(b, deployments, lines.Load())
}

type countLines struct{ lines *atomic.Int64 }

func (c countLines) Write(p []byte) (int, error) {
	c.lines.Add(int64(bytes.Count(p, []byte("\n"))))
	return len(p), nil
}

// One spec of a thousand changed: from the fetch to the pushed commit that creates its version.
func BenchmarkCycleOneChange1000(b *testing.B) {
	x := newBench(b, deployments)
	r := x.bot(b)
	_, err := r.Cycle(b.Context())
	require.NoError(b, err)
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		i++
		x.repo.Commit(gittest.Commit{Write: map[string]string{specAt(i % deployments): spec(i%deployments, i)}})
		b.StartTimer()
		report, err := r.Cycle(b.Context())
		require.NoError(b, err)
		require.Len(b, report.Commits, 1)
	}
}

// A new process with an empty cache: everything is fetched, decoded, described and decided.
func BenchmarkColdStart1000(b *testing.B) {
	x := newBench(b, deployments)
	b.ReportAllocs()
	for b.Loop() {
		report, err := x.bot(b).Cycle(b.Context())
		require.NoError(b, err)
		require.Empty(b, report.Commits)
	}
}

// mostAllocations is how often memory may be allocated for one decision, on any machine.
const mostAllocations = 10_000

// benchOfNewVersion has one worker deployment, whose spec asks for a new version.
func benchOfNewVersion(tb testing.TB) *bench {
	tb.Helper()
	x := newBench(tb, 1)
	x.repo.Commit(gittest.Commit{Write: map[string]string{specAt(0): spec(0, 1)}})
	return x
}

// decideAndRender decides one worker deployment and renders its files: Propose, Judge, Resolve, Files.
func decideAndRender(ctx context.Context, engine *policy.Engine, s rollout.Snapshot) error {
	_, done := plan.Look(s).Decide(func(judged rollout.Snapshot, p rollout.Proposal) rollout.Verdicts {
		return engine.Judge(ctx, judged, p)
	})
	files, err := render.Files(done, s.Record)
	if err == nil && len(files) == 0 {
		err = errors.New("nothing was rendered")
	}
	return err
}

// decideOne gives a function that decides and renders one worker deployment that gets a new version.
func decideOne(tb testing.TB) func() {
	tb.Helper()
	x := benchOfNewVersion(tb)
	world, err := x.bot(tb).Observe(tb.Context())
	require.NoError(tb, err)
	s := world.Environments[0].Deployments[0]
	return func() { require.NoError(tb, decideAndRender(tb.Context(), x.engine, s)) }
}

func BenchmarkDecideOne(b *testing.B) {
	decide := decideOne(b)
	b.ReportAllocs()
	for b.Loop() {
		decide()
	}
	require.LessOrEqual(b, testing.AllocsPerRun(10, decide), float64(mostAllocations))
}

func TestDecisionAllocatesWithinItsTarget(t *testing.T) {
	require.LessOrEqual(t, testing.AllocsPerRun(10, decideOne(t)), float64(mostAllocations))
}
