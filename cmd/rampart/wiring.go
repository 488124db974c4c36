package main

import (
	"context"
	"errors"
	"math"
	"net/url"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/internal/commitstatus"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/telemetry"
	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/temporal"
)

// parallel is how many worker deployments are observed at once: the calls' budget is what bounds them.
const parallel = 16

// ends are what a planner reads from and asks.
type ends struct {
	source   specSource
	observer reconcile.Observer
	judges   *judges
	// pods is nil where no cluster is read.
	pods *podReader
}

func (a *app) planner(e ends, f temporalFlags) (*reconcile.Planner, error) {
	store, err := f.metrics()
	if err != nil {
		return nil, err
	}
	var inputs reconcile.Inputs
	if f.gateInputDir != "" {
		if inputs, err = f.gateInputs(); err != nil {
			return nil, err
		}
	}
	source := e.judges.pinOnRead(e.source)
	return &reconcile.Planner{Source: source, Surveyor: source, History: source, Records: source, Observer: e.observer,
		Inputs: inputs, Metrics: store, Cluster: e.pods.port(), ClusterPatience: podsPatience,
		Limits: f.limits(), Now: a.now, Log: a.log, Parallel: parallel, Own: e.judges.facts,
		JudgeFor: func(env rollout.EnvironmentWorld) reconcile.Judge { return e.judges.engine(env) }}, nil
}

// asksPool lets a planner ask Temporal for more than observations.
func asksPool(planner *reconcile.Planner, pool *temporal.Pool) {
	planner.Slots, planner.Namespaces, planner.Secrets = pool, pool, pool
}

// botFlags say what a bot works on, and on what. settings names them all.
type botFlags struct {
	repository repositoryFlags
	temporal   temporalFlags
	forge      forgeFlags
	cluster    clusterFlags
	once       bool
	settings   string
	metrics    *telemetry.Metrics
}

// rememberingBot is a Reconciler, and what keeps what it knows. close gives its mirror and its connections back.
type rememberingBot struct {
	*reconcile.Reconciler
	keeper *keeper
	// says is what says on commits what became of them; nil where there is no forge.
	says  *commitstatus.Writer
	close func() error
}

// bot wires a Reconciler.
func (a *app) bot(f botFlags, judges *judges) (*rememberingBot, error) {
	hooks, err := a.faults()
	if err != nil {
		return nil, err
	}
	pool, err := a.pool(f.temporal, poolHooks{hooks.temporal, func(method string, code codes.Code, took time.Duration) {
		f.metrics.Request(method, code.String(), took)
	}})
	if err != nil {
		return nil, err
	}
	repo, err := a.repository(f.repository, hooks.push)
	if err != nil {
		pool.Close()
		return nil, err
	}
	on, err := a.located(f.forge, f.repository)
	if err != nil {
		pool.Close()
		return nil, errors.Join(err, repo.Close())
	}
	pods, err := a.pods(f.cluster)
	if err != nil {
		pool.Close()
		return nil, errors.Join(err, repo.Close())
	}
	with := &connected{repo, pool, judges, pods}
	bot, err := a.reconciler(f, with)
	if err != nil {
		return nil, errors.Join(err, with.close())
	}
	bot.RepositoryURL = pageOf(on, f.repository.url)
	bot.Proposer = a.proposer(on.forge, f.repository, repo, judges)
	keeper, err := a.keeper(f, repo, bot)
	if err != nil {
		return nil, errors.Join(err, with.close())
	}
	statuses, most := a.commitStatuses(f, repo, on), leaveTime
	if f.once {
		most = leaveOnceTime
	}
	if statuses.reader != nil {
		bot.Statuses = statuses.reader
	}
	return &rememberingBot{bot, keeper, statuses.writer, func() error {
		statuses.close(most)
		keeper.keep()
		return with.close()
	}}, nil
}

// pageOf gives the address of a repository for people: its page on a forge, else the clone URL without the parts that
// may hold credentials. It is "" if the clone URL has no host.
func pageOf(on located, clone string) string {
	if on.at.Base != "" {
		return on.at.URL()
	}
	u, err := url.Parse(clone)
	if err != nil || u.Host == "" {
		return ""
	}
	u.User, u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment = nil, "", false, "", ""
	return u.String()
}

// connected is what a bot works with. pods is nil where no cluster is read.
type connected struct {
	repo   *gitops.Repository
	pool   *temporal.Pool
	judges *judges
	pods   *podReader
}

// close gives back what is open, but for the judges, which others use too.
func (c *connected) close() error {
	c.pods.close()
	c.pool.Close()
	return c.repo.Close()
}

// reconciler is a planner with what it writes with.
func (a *app) reconciler(f botFlags, with *connected) (*reconcile.Reconciler, error) {
	planner, err := a.planner(ends{a.onlyOf(with.repo), with.pool, with.judges, with.pods}, f.temporal)
	if err != nil {
		return nil, err
	}
	asksPool(planner, with.pool)
	inputs, err := f.temporal.gateInputs()
	if err != nil {
		return nil, err
	}
	port := temporalPort{with.pool, inputs, a.log}
	bot := &reconcile.Reconciler{Planner: planner, Committer: countedCommitter{with.repo, f.metrics}, Router: countedRouter{port, f.metrics},
		Versions: port, Lister: with.pool, Prefetcher: with.repo}
	if f.once { // no cycle follows that could do the rest
		bot.BatchSize = math.MaxInt
	} else {
		planner.SlotPatience, planner.ClusterPatience = reconcile.DefaultSlotPatience, 0
		bot.Groups = reconcile.DefaultGroupLimits()
	}
	return bot, nil
}

// countedCommitter counts pushes.
type countedCommitter struct {
	reconcile.Committer
	metrics *telemetry.Metrics
}

// Commit counts no commit that changes nothing.
func (c countedCommitter) Commit(ctx context.Context, commit rollout.Commit) (string, error) {
	hash, err := c.Committer.Commit(ctx, commit)
	if hash != "" || err != nil {
		c.metrics.Push(err)
	}
	return hash, err
}

// countedRouter counts changes of traffic.
type countedRouter struct {
	reconcile.Router
	metrics *telemetry.Metrics
}

// Lower counts.
func (c countedRouter) Lower(ctx context.Context, on reconcile.Subject, call rollout.RoutingCall) error {
	err := c.Router.Lower(ctx, on, call)
	c.metrics.Change(telemetry.Lower, err)
	return err
}

// Raise counts.
func (c countedRouter) Raise(ctx context.Context, on reconcile.Subject, call rollout.RoutingCall) error {
	err := c.Router.Raise(ctx, on, call)
	c.metrics.Change(telemetry.Raise, err)
	return err
}

// writeHooks are told of each write to a server; nil: no call is made.
type writeHooks struct {
	push      func(gitops.Moment)
	decisions func(gitops.Moment)
	temporal  func(temporal.Site, temporal.Moment)
}

var (
	_ reconcile.Committer   = (*gitops.Repository)(nil)
	_ reconcile.Prefetcher  = (*gitops.Repository)(nil)
	_ reconcile.Judge       = (*policy.Engine)(nil)
	_ reconcile.Observer    = (*temporal.Pool)(nil)
	_ reconcile.Slots       = (*temporal.Pool)(nil)
	_ reconcile.Namespaces  = (*temporal.Pool)(nil)
	_ reconcile.SecretTaker = (*temporal.Pool)(nil)
	_ reconcile.Lister      = (*temporal.Pool)(nil)
	_ reconcile.Router      = temporalPort{}
	_ reconcile.VersionAPI  = temporalPort{}
)
