package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/internal/compose"
	"github.com/rampart-gitops/rampart/internal/diskcache"
	"github.com/rampart-gitops/rampart/internal/memorylimit"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/webhook"
	"github.com/rampart-gitops/rampart/policy"
)

// botConfig is which repository a bot works on.
type botConfig struct {
	URL   string `json:"url"`
	Cache string `json:"cache"`
	// Temporal is a file with what Temporal knows, by worker deployment; "" for nothing.
	Temporal string `json:"temporal"`
}

// botRequest is one line to a bot.
type botRequest struct {
	Start *botConfig `json:"start,omitempty"`
	Do    string     `json:"do,omitempty"`
}

// botAnswer is what came of it. Times and CPU are of the doing alone, of this process alone.
type botAnswer struct {
	Error    string            `json:"error,omitempty"`
	Failures map[string]string `json:"failures,omitempty"`
	Wall     time.Duration     `json:"wall"`
	CPU      time.Duration     `json:"cpu"`
	Commits  []string          `json:"commits,omitempty"`
	// Decided is how many worker deployments were looked at, Described how often Temporal was asked about one.
	Decided   int `json:"decided"`
	Described int `json:"described"`
	// Done is when the cycle was over.
	Done time.Time `json:"done"`
	// Hook is where webhooks are listened for.
	Hook string `json:"hook,omitempty"`
	// Resident are the bytes of memory that the process has, but for pages of files, such as its program. Heap is what
	// of it is in use, and Peak what it had at most, pages of files included.
	Resident, Peak, Heap int64
}

// botProcess is the bot as `rampart run` wires it, with Temporal in memory.
type botProcess struct {
	engine   *policy.Engine
	temporal *memory
	bot      *reconcile.Reconciler
	repo     *gitops.Repository
	config   botConfig
	cached   diskcache.File
	// now goes on from when the fleet was settled.
	now func() time.Time
	// skipped is time that did not pass.
	skipped time.Duration
	// bell is what webhooks ring.
	bell *webhook.Bell
}

func (p *botProcess) serve(in io.Reader, out io.Writer) error {
	// Garbage is collected as often as in the bot.
	memorylimit.Set(slog.New(slog.DiscardHandler), func() (uint64, error) { return 0, errors.ErrUnsupported })
	requests, answers := json.NewDecoder(bufio.NewReader(in)), json.NewEncoder(out)
	profile := os.Getenv("BENCH_PROFILE") // of every cycle of every bot, to look at by hand
	if profile != "" {
		f, err := os.Create(fmt.Sprintf("%s.%d", profile, os.Getpid()))
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer func() { pprof.StopCPUProfile(); _ = f.Close() }()
	}
	for {
		var r botRequest
		if err := requests.Decode(&r); err == io.EOF {
			if p.repo != nil {
				return errors.Join(p.cached.Save(), p.repo.Close())
			}
			return nil
		} else if err != nil {
			return err
		}
		if err := answers.Encode(p.answer(r)); err != nil {
			return err
		}
	}
}

func (p *botProcess) answer(r botRequest) botAnswer {
	var a botAnswer
	var err error
	switch {
	case r.Start != nil:
		err = p.start(*r.Start)
	case r.Do == "cycle":
		err = p.cycle(&a, false)
	case r.Do == "commit":
		err = p.cycle(&a, true)
	case r.Do == "listen":
		a.Hook, err = p.listen()
	case r.Do == "react":
		if err = p.bell.Wait(context.Background(), time.Minute); err == nil {
			err = p.cycle(&a, false)
		}
	case r.Do == "plan":
		err = p.plan(&a)
	case r.Do == "decide":
		err = p.decide(&a)
	case r.Do == "later":
		p.skipped += pause
	case r.Do == "collect":
		runtime.GC()
	case r.Do == "save":
		err = p.save()
	case r.Do == "heap":
		if f, e := os.Create(os.Getenv("BENCH_PROFILE") + ".heap"); e == nil {
			runtime.GC()
			runtime.GC() // a profile is of the last but one
			err = pprof.Lookup("heap").WriteTo(f, 0)
			_ = f.Close()
		}
	}
	if err != nil {
		a.Error = err.Error()
	}
	a.Resident, a.Peak = memoryOf("RssAnon:"), memoryOf("VmHWM:")
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	a.Heap = int64(m.HeapAlloc)
	return a
}

func (p *botProcess) start(c botConfig) error {
	p.config = c
	p.engine = policy.Compile(policy.Config{})
	base, started := time.Now(), time.Now()
	p.now = func() time.Time { return base.Add(time.Since(started) + p.skipped) }
	p.temporal = &memory{now: p.now}
	if c.Temporal == "" {
		return nil
	}
	data, err := os.ReadFile(c.Temporal)
	if err != nil {
		return err
	}
	var w world
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	base, p.temporal.known = w.Now, w.Deployments
	_, err = p.temporal.List(context.Background(), noConnection, "")
	runtime.GC()
	return err
}

// save keeps what Temporal knows for the next bot.
func (p *botProcess) save() error {
	data, err := json.Marshal(world{p.now(), p.temporal.known})
	if err != nil {
		return err
	}
	return os.WriteFile(p.config.Temporal, data, 0o600)
}

// open is done as a part of the first cycle.
func (p *botProcess) open() error {
	if p.repo != nil {
		return nil
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	repo, err := gitops.Open(gitops.Config{URL: p.config.URL, Branch: "main", CacheDir: p.config.Cache, Author: "rampart", Email: "rampart@example.com",
		Log: log, Now: p.now})
	if err != nil {
		return err
	}
	p.repo = repo
	p.bot = &reconcile.Reconciler{
		Planner: &reconcile.Planner{Source: repo, Surveyor: repo, History: repo, Records: repo, Observer: p.temporal, Limits: rollout.DefaultLimits(), Now: p.now, Log: log, Parallel: 16,
			JudgeFor: func(rollout.EnvironmentWorld) reconcile.Judge { return p.engine }},
		Committer: repo, Router: p.temporal, Versions: p.temporal, Lister: p.temporal, Prefetcher: repo,
	}
	p.cached = diskcache.File{Path: filepath.Join(p.config.Cache, "remembered"), Key: "bench", Parts: []diskcache.Part{repo, p.bot}}
	return p.cached.Load()
}

// cycle has cycles until there is nothing more, or until one of them commits.
func (p *botProcess) cycle(a *botAnswer, untilCommit bool) error {
	reads := p.temporal.reads
	wall, cpu := time.Now(), ownCPU()
	err := p.open()
	report := reconcile.Report{More: true}
	a.Failures = map[string]string{}
	for report.More && err == nil && (!untilCommit || len(a.Commits) == 0) {
		report, err = p.bot.Cycle(context.Background())
		a.Commits, a.Decided = append(a.Commits, report.Commits...), a.Decided+report.LookedAt
		maps.Copy(a.Failures, report.Failures)
	}
	a.Done = time.Now()
	a.Wall, a.CPU, a.Described = a.Done.Sub(wall), ownCPU()-cpu, p.temporal.reads-reads
	if p.bot != nil {
		p.bot.Rest(context.Background(), report)
	}
	return err
}

// listen listens for webhooks, as long as the process lives.
func (p *botProcess) listen() (url string, err error) {
	p.bell = webhook.NewBell()
	ctx, log := context.Background(), slog.New(slog.DiscardHandler)
	handler, err := webhook.NewHandler(ctx, webhook.Config{Secrets: func(context.Context) (string, error) { return hookSecret, nil },
		Repository: hookRepository, Watched: func(branch string) bool { return branch == "main" }, Ring: p.bell.Ring, Log: log, Now: time.Now})
	if err != nil {
		return "", err
	}
	server, err := webhook.Listen(ctx, webhook.ServerConfig{Address: "127.0.0.1:0", Path: "/webhook", Proven: true, Log: log}, handler)
	if err != nil {
		return "", err
	}
	go func() { _ = server.Serve(ctx) }()
	return "http://" + server.Address() + "/webhook", nil
}

// observe gives the one environment as it is, and leaves no garbage of its own to those who measure.
func (p *botProcess) observe(ctx context.Context) (rollout.EnvironmentWorld, error) {
	if err := p.open(); err != nil {
		return rollout.EnvironmentWorld{}, err
	}
	world, err := p.bot.Observe(ctx)
	if err != nil {
		return rollout.EnvironmentWorld{}, err
	}
	runtime.GC()
	return world.Environments[0], nil
}

// plan decides and renders everything from memory. Nothing is written.
func (p *botProcess) plan(a *botAnswer) error {
	ctx := context.Background()
	env, err := p.observe(ctx)
	if err != nil {
		return err
	}
	wall, cpu := time.Now(), ownCPU()
	decisions := reconcile.DecideAll(ctx, p.engine, env.Deployments)
	parts, _, err := compose.Files(env, decisions)
	a.Wall, a.CPU = time.Since(wall), ownCPU()-cpu
	for _, part := range parts {
		if part.Refused != "" || len(part.Files) == 0 {
			return fmt.Errorf("%s: nothing was rendered: %s", part.Plan.Deployment, part.Refused)
		}
	}
	a.Decided = len(parts)
	return err
}

// decide decides and renders one worker deployment from memory, and gives what it takes to do that once.
func (p *botProcess) decide(a *botAnswer) error {
	ctx := context.Background()
	env, err := p.observe(ctx)
	if err != nil {
		return err
	}
	const times = 200
	wall, cpu := time.Now(), ownCPU()
	for range times {
		if err := decideAndRender(ctx, p.engine, env.Deployments[0]); err != nil {
			return err
		}
	}
	a.Wall, a.CPU = time.Since(wall)/times, (ownCPU()-cpu)/times
	return nil
}

func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// memoryOf reads a line of the process's status, in bytes.
func memoryOf(line string) int64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for l := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(l, line); ok {
			var kb int64
			if _, err := fmt.Sscan(rest, &kb); err == nil {
				return kb << 10
			}
		}
	}
	return 0
}
