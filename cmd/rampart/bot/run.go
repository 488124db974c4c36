package bot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/health"
	"github.com/rampart-gitops/rampart/internal/printable"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/report"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/telemetry"
	"github.com/rampart-gitops/rampart/internal/webhook"
)

func runCommand(a *cmdutil.App) *cobra.Command {
	var (
		repository cmdutil.RepositoryFlags
		server     cmdutil.TemporalFlags
		on         forgeFlags
		decided    recordingFlags
		hooks      webhookFlags
		k8s        cmdutil.ClusterFlags
		once       bool
		interval   time.Duration
		grace      time.Duration
		listen     string
	)
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the bot: read, decide, commit, route",
		Long: `Run reads the branch of --repo and Temporal, decides, commits manifests, routing and status to the
repository, and moves Temporal's routing; then again, every --interval or when the next step is due. It keeps
nothing but a mirror, and what saves the next run work, in the cache folder, which may be deleted at any time. It
may be killed at any moment: the next run goes on from what Git and Temporal say.

Errors are logged and tried again after a pause; they do not end the loop, but for one: a repository that refuses
the bot's credentials, or is gone, for --refused-grace is not the bot's own any more, so it touches nothing and
exits with code 1. SIGINT and SIGTERM let the cycle under way finish, for up to 10 seconds, and end the loop with
exit code 0; a second signal ends it at once. With --once one cycle is run: exit code 0 if all of it worked, 1 if
not, 130 or 143 if it was interrupted.

With --decision-log each new decision is added to a file, as a line of JSON with what policies saw and said; with
--record-decisions it is kept in the repository too, on a ref for each month, for rampart history and rampart explain.
Values of environment variables, and what looks like a credential, are masked.

What wants approval is proposed: on a branch rampart/ENVIRONMENT/NAMESPACE/NAME that changes routing.yaml and
nothing else, and in a pull request where there is a forge (--forge). Merging it, or rampart approve, lets it go on;
closing it, or rampart reject, holds the worker deployment where it is.

With --webhook-address it listens for webhooks of GitHub, GitLab, Gitea and Forgejo too, and looks at once when one
says that something happened; --interval stays as it is, for those that get lost. They are proven by the secrets of
--webhook-secret-file, one a line, or of RAMPART_WEBHOOK_SECRET; without a secret only a loopback address is
listened on.

With --metrics-address it answers over HTTP: /healthz while the process runs, /readyz with 200 once a cycle has read
Git and Temporal, and with 503 before that and while the repository refuses the bot. Both show when that was last.
/metrics has metrics for Prometheus.

With --kubeconfig and --env it watches Deployments, ReplicaSets, Pods and warnings in the namespaces of the
environment's worker deployments, and writes nothing there: the status then says why pods do not start, and policies
may look at it. A cluster that is away stops and delays nothing else.

HTTP proxies are those of the usual variables (HTTPS_PROXY, NO_PROXY).`,
		Example: `  rampart run --repo https://git.example.com/team/workers.git --git-token-file /etc/rampart/token
  rampart run --repo git@git.example.com:team/workers.git --git-ssh-key-file key --temporal-connections connections.yaml
  rampart run --repo file:///srv/git/workers.git --once`,
		Args:              cmdutil.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			switch {
			case repository.URL == "":
				return errors.New("run needs a repository: --repo URL, or RAMPART_REPO")
			case grace <= 0:
				return fmt.Errorf("--refused-grace: must be positive, got %s: how long the repository may refuse the "+
					"bot before the bot ends", grace)
			case interval <= 0:
				return fmt.Errorf("--interval has to be positive, not %s", interval)
			case once && hooks.address != "":
				return errors.New("--webhook-address is for the loop: leave out --once, or the address")
			case once && listen != "":
				return errors.New("--metrics-address is for the loop: leave out --once, or the address")
			}
			judges, err := a.OpenJudges()
			if err != nil {
				return err
			}
			defer judges.Close()
			metrics := telemetry.New(cmdutil.ReadVersion().Version)
			bot, err := newBot(a, botFlags{repository, server, on, k8s, once, settingsOf(cmd), metrics}, judges)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, bot.close()) }()
			bot.RefusedGrace = grace
			closeLog, err := recordDecisions(a, bot.Reconciler, decided, repository)
			if err != nil {
				return err
			}
			most := leaveTime
			if once {
				most = leaveOnceTime
			}
			defer func() { err = errors.Join(err, closeLog(most)) }()
			l := loop{App: a, bot: bot, interval: interval, bell: webhook.NewBell(),
				told: map[rollout.Name]rollout.State{}, metrics: metrics}
			if once {
				judges.Refresh(cmd.Context())
				return l.once(cmd.Context())
			}
			stopHooks, err := l.listen(cmd.Context(), hooks, repository)
			if err != nil {
				return err
			}
			defer stopHooks()
			stopMetrics, err := l.answer(cmd.Context(), listen)
			if err != nil {
				return err
			}
			defer stopMetrics()
			defer judges.Poll(cmd.Context())()
			return l.run(cmd.Context())
		},
	}
	repository.AddReading(cmd)
	repository.AddWriting(cmd)
	server.Add(cmd)
	server.AddLimits(cmd)
	addForge(cmd, &on)
	decided.addRecording(cmd)
	hooks.add(cmd)
	k8s.AddPods(cmd)
	cmdutil.AddPolicies(a, cmd)
	cmd.Flags().BoolVar(&once, "once", false, "run one cycle and exit")
	cmd.Flags().DurationVar(&interval, "interval", 10*time.Second, "time between cycles")
	cmd.Flags().DurationVar(&grace, "refused-grace", reconcile.DefaultRefusedGrace,
		"how long the repository may refuse the bot's credentials, or be gone, until the bot touches nothing any "+
			"more and exits with an error")
	cmd.Flags().StringVar(&listen, "metrics-address", "", "host:port to answer /metrics, /healthz and /readyz on")
	return cmd
}

// Bounds of the loop.
const (
	// grace is how long a cycle may take to finish once the loop is to end. A cycle that is cut off does no harm.
	grace = 10 * time.Second
	// leastPatience is how long a cycle waits for the repository at least, before it lowers traffic by what was read
	// last. What other groups decided meanwhile is decided again then.
	leastPatience = 10 * time.Second
)

type loop struct {
	*cmdutil.App
	bot      *cachingBot
	interval time.Duration
	// bell wakes the loop before its interval: webhooks ring it, and groups that end late. hooked says that a webhook
	// did.
	bell   *webhook.Bell
	hooked atomic.Bool
	// branches are those that the last cycle looked at, nil before the first one.
	branches atomic.Pointer[[]string]
	// told are the states that were logged last.
	told map[rollout.Name]rollout.State
	// looked says that a cycle ended before this one.
	looked bool
	// unread is of how many worker deployments Temporal could not be read in the last cycle, of the total that was
	// looked at.
	unread, total int
	// health is what health checks are told; asked says that Temporal was asked, and silent that it answered nothing
	// the last time.
	health        health.State
	asked, silent bool
	metrics       *telemetry.Metrics
}

// run runs cycles until the context ends. The error says that the repository is not the bot's own any more.
func (l *loop) run(ctx context.Context) error {
	l.Log.InfoContext(ctx, "started", "interval", l.interval.String())
	cycles, end := outlive(ctx) // work that a cycle did not wait for goes on after it
	defer end()
	defer l.bot.Close()
	l.bot.Groups.Done = l.bell.Ring
	l.bot.Patience = min(max(l.interval, leastPatience), reconcile.DefaultPatience)
	for ctx.Err() == nil {
		r, err := l.cycle(cycles)
		if ctx.Err() != nil {
			break
		}
		l.noteHealth(r.World, err)
		if errors.Is(err, rollout.ErrNotOurs) {
			return err
		}
		l.watch(r.World)
		l.bot.Rest(ctx, r) // also where single environments failed
		if err := l.bell.Wait(ctx, l.pause(r, err)); err != nil {
			break
		}
		if l.hooked.Swap(false) {
			l.bot.proposals.LookAgain()
		}
	}
	l.Log.InfoContext(context.WithoutCancel(ctx), "stopped", "reason", context.Cause(ctx).Error())
	return nil //nolint:nilerr // a cycle that failed was logged, and is tried again
}

// answer answers health checks, and shows metrics, on an address, if there is one, until stop.
func (l *loop) answer(ctx context.Context, address string) (stop func(), err error) {
	if address == "" {
		return func() {}, nil
	}
	at, stop, err := l.health.Listen(ctx, address, health.Beside{Metrics: l.metrics.Handler(), Log: l.Log})
	if err != nil {
		return nil, err
	}
	l.Log.InfoContext(ctx, "answering health checks and metrics", "address", at)
	return stop, nil
}

// noteHealth tells health checks what a cycle could read. What they are told is public; the log says more. A write that
// failed, such as to a protected branch of one environment, leaves the bot ready.
func (l *loop) noteHealth(world rollout.World, err error) {
	if l.total > 0 {
		l.asked, l.silent = true, l.unread == l.total
	}
	switch {
	case errors.Is(err, rollout.ErrRefused), errors.Is(err, rollout.ErrNotOurs):
		l.health.Refused("the repository refuses the bot, or is gone")
	case len(world.Environments) == 0:
		l.health.Failed("the repository could not be read, or has no usable configuration")
	case l.silent, !l.asked && !cmdutil.NoDeployments(world):
		l.health.Failed("Temporal could not be read")
	case err != nil:
		l.succeeded("the last cycle could not write everything")
	case l.unread > 0:
		l.succeeded(fmt.Sprintf("%d of %d worker deployments could not be read from Temporal", l.unread, l.total))
	default:
		l.succeeded("")
	}
}

// succeeded notes a cycle that has read Git and Temporal, and what it could not do otherwise.
func (l *loop) succeeded(problem string) {
	at := l.Now()
	l.health.Succeeded(at, problem)
	l.metrics.Succeeded(at)
}

// count notes for metrics how a cycle ended, and which worker deployments there are.
func (l *loop) count(r reconcile.Report, err error, took time.Duration) {
	result := telemetry.OK
	switch {
	case err != nil:
		result = telemetry.Failed
	case len(r.Failures) > 0, l.unread > 0:
		result = telemetry.Partial
	}
	l.metrics.Cycle(result, took)
	if len(r.World.Environments) == 0 {
		return // the repository could not be read: what there was is there
	}
	var names []rollout.Name
	for _, env := range r.World.Environments {
		for _, d := range env.Deployments {
			names = append(names, d.Deployment)
		}
		for _, d := range env.Entries {
			names = append(names, d.Deployment)
		}
	}
	l.metrics.Are(names)
}

// outlive gives a context that ends a grace period after another.
func outlive(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		t := time.AfterFunc(grace, cancel)
		context.AfterFunc(out, func() { t.Stop() })
	})
	return out, func() { stop(); cancel() }
}

// once runs one cycle, and fails where a part of it did.
func (l *loop) once(ctx context.Context) error {
	r, err := l.cycle(ctx)
	// no other run does the rest
	for try := 1; err == nil && ctx.Err() == nil && (r.More || r.Again && try == 1) && try < reconcile.MaxTries; try++ {
		r, err = l.cycle(ctx)
	}
	switch unread, total := l.unread, l.total; {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case r.More:
		return errors.New("not all that is due could be decided: run it again")
	case len(r.Failures) > 0:
		return fmt.Errorf("the plans of %d worker deployments were not carried out", len(r.Failures))
	case unread > 0:
		return fmt.Errorf("%d of %d worker deployments could not be read from Temporal", unread, total)
	case len(r.World.Environments) == 0:
		return cmdutil.ErrConfiguration
	}
	for _, env := range r.World.Environments {
		if env.Unusable != nil {
			return fmt.Errorf("environment %s: %s", env.Environment.Name, env.Unusable.Message)
		}
	}
	return nil
}

// cycle runs one cycle and logs what came of it: one line if it did something, and what it found out.
func (l *loop) cycle(ctx context.Context) (reconcile.Report, error) {
	start := l.Now()
	l.unread, l.total = 0, 0
	r, err := l.bot.Cycle(ctx)
	took := l.Now().Sub(start).Round(time.Millisecond)
	l.bot.Alone(ctx, func() { // late groups use the repository too
		l.bot.keeper.afterCycle(r)
		l.tell(ctx, r)
		if l.bot.says != nil {
			l.bot.says.Cycle(r.World)
		}
	})
	l.count(r, err, took)
	level := l.Log.DebugContext
	if len(r.Commits) > 0 || len(r.Failures) > 0 {
		level = l.Log.InfoContext
	}
	level(ctx, "cycle", "looked_at", r.LookedAt, "commits", r.Commits, "failures", len(r.Failures), "took",
		took.String())
	return r, err
}

// tell logs states that changed since they were logged last; at first only those that need a person.
func (l *loop) tell(ctx context.Context, r reconcile.Report) {
	for _, p := range cmdutil.WorldProblems(r.World) {
		key := rollout.Name{Namespace: "file", Name: cmdutil.ProblemLine(p)}
		if _, known := l.told[key]; !known {
			l.Log.WarnContext(ctx, "problem in the repository", "problem", cmdutil.ProblemLine(p))
			l.told[key] = rollout.State{}
		}
	}
	if !l.looked && r.LookedAt == 0 && cmdutil.NoDeployments(r.World) {
		var specs []string
		for _, env := range r.World.Environments {
			specs = append(specs, env.Environment.Specs...)
		}
		l.Log.WarnContext(ctx, "no worker deployments found: a spec is a YAML file with kind: "+
			v1alpha1.KindTemporalWorkerDeployment+" and apiVersion: "+
			v1alpha1.TemporalAPIVersion, "specs", strings.Join(specs, ", "))
	}
	l.looked = true
	for _, env := range r.World.Environments {
		key := rollout.Name{Namespace: "environment", Name: env.Environment.Name}
		now := rollout.State{}
		if env.Unusable != nil {
			now.Message = env.Unusable.Message
		}
		if was := l.told[key]; was.Message != now.Message && now.Message != "" {
			l.Log.WarnContext(ctx, "an environment cannot be used as it is: traffic only goes down", "environment",
				key.Name, "problem", printable.Line(now.Message))
		} else if was.Message != "" && now.Message == "" {
			l.Log.InfoContext(ctx, "the environment can be used again", "environment", key.Name)
		}
		l.told[key] = now
	}
	l.decided(ctx, r.Decisions)
}

// decided logs what was decided, notes it for metrics, and counts of whom Temporal could not be read.
func (l *loop) decided(ctx context.Context, decisions []*rollout.Decision) {
	if l.bot.says != nil {
		l.bot.says.Decided(ctx, decisions)
	}
	unread, total := cmdutil.CountUnread([][]*rollout.Decision{decisions})
	l.unread, l.total = l.unread+unread, l.total+total
	for _, d := range decisions {
		state := report.StateOf(d.Proposal, d.Plan)
		l.metrics.Decided(d.Plan.Deployment, stateFor(state, d.Plan))
		was, known := l.told[d.Plan.Deployment]
		l.told[d.Plan.Deployment] = state
		if known && was.Reason == state.Reason && was.Stalled == state.Stalled {
			continue
		}
		level := l.Log.InfoContext
		switch {
		case state.Stalled:
			level = l.Log.WarnContext
		case !known:
			level = l.Log.DebugContext
		}
		level(ctx, "state", "deployment", d.Plan.Deployment.String(), "reason", string(state.Reason), "message",
			printable.Line(state.Message))
	}
}

// stateFor is a state as metrics have it.
func stateFor(state rollout.State, plan rollout.Plan) telemetry.State {
	out := telemetry.State{Reason: state.Reason, Ready: state.Reason == rollout.RolloutComplete && !state.Stalled}
	if plan.Status == nil {
		return out
	}
	for _, c := range plan.Status.Conditions {
		if c.Type == v1alpha1.ConditionReady {
			out.Ready, out.Since = c.Status == v1alpha1.True, c.LastTransitionTime.Time
		}
	}
	return out
}

// pause is how long to wait for the next cycle: the interval, less where a step is due before. Errors make it no
// longer: the Reconciler pauses by itself, and goes on to lower traffic. The jitter keeps several bots from meeting.
func (l *loop) pause(r reconcile.Report, err error) time.Duration {
	if err != nil {
		attributes := []any{"error", err}
		if h := cmdutil.Hint(err); h != "" {
			attributes = append(attributes, "hint", h)
		}
		l.Log.Error("cycle failed", attributes...)
	}
	return r.Pause(l.interval, l.Now(), err)
}
