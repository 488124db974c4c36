package main

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/rampart-gitops/rampart/gitops"
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
	source   reconcile.Source
	observer reconcile.Observer
	judges   *judges
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
	return &reconcile.Planner{Inputs: inputs, Metrics: store, Source: judged{e.source, e.judges}, Observer: e.observer,
		Limits: f.limits(), Now: a.now, Log: a.log, Parallel: parallel, Own: e.judges.facts,
		JudgeFor: func(env rollout.EnvironmentWorld) reconcile.Judge { return e.judges.engine(env) }}, nil
}

// botFlags say what a bot works on, and on what. settings names them all.
type botFlags struct {
	repository repositoryFlags
	temporal   temporalFlags
	forge      forgeFlags
	once       bool
	settings   string
	metrics    *telemetry.Metrics
}

// rememberingBot is a Reconciler, and what keeps what it knows. close gives its mirror and its connections back.
type rememberingBot struct {
	*reconcile.Reconciler
	keeper *keeper
	close  func() error
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
		return nil, errors.Join(err, pool.Close())
	}
	bot, err := a.reconciler(f, repo, pool, judges)
	if err != nil {
		return nil, errors.Join(err, repo.Close(), pool.Close())
	}
	keeper, err := a.keeper(f, repo, bot)
	if err != nil {
		return nil, errors.Join(err, repo.Close(), pool.Close())
	}
	return &rememberingBot{bot, keeper, func() error {
		keeper.keep()
		return errors.Join(repo.Close(), pool.Close())
	}}, nil
}

// reconciler is a planner with what it writes with.
func (a *app) reconciler(f botFlags, repo *gitops.Repository, pool *temporal.Pool, judges *judges) (*reconcile.Reconciler, error) {
	planner, err := a.planner(ends{a.only(repo), pool, judges}, f.temporal)
	if err != nil {
		return nil, err
	}
	inputs, err := f.temporal.gateInputs()
	if err != nil {
		return nil, err
	}
	proposer, err := a.proposer(f.forge, f.repository, repo, judges)
	if err != nil {
		return nil, err
	}
	if !f.once { // after it no cycle comes in which those without a slot are first
		planner.SlotPatience = reconcile.DefaultSlotPatience
	}
	port := temporalPort{pool, inputs, a.log}
	return &reconcile.Reconciler{Planner: planner, Committer: countedCommitter{repo, f.metrics}, Router: countedRouter{port, f.metrics}, Helper: port, Lister: pool, Proposer: proposer, Completer: repo}, nil
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

// writeHooks are told of each write to a server; nil: nobody.
type writeHooks struct {
	push      func(gitops.Moment)
	decisions func(gitops.Moment)
	temporal  func(temporal.Site, temporal.Moment)
}

var (
	_ reconcile.Source      = (*gitops.Repository)(nil)
	_ reconcile.Historian   = (*gitops.Repository)(nil)
	_ reconcile.Surveyor    = (*gitops.Repository)(nil)
	_ reconcile.Surveyor    = oneEnvironment{}
	_ reconcile.Surveyor    = judged{}
	_ reconcile.Historian   = oneEnvironment{}
	_ reconcile.Historian   = judged{}
	_ reconcile.Committer   = (*gitops.Repository)(nil)
	_ reconcile.Completer   = (*gitops.Repository)(nil)
	_ reconcile.Judge       = (*policy.Engine)(nil)
	_ reconcile.Observer    = (*temporal.Pool)(nil)
	_ reconcile.Slots       = (*temporal.Pool)(nil)
	_ reconcile.Namespaces  = (*temporal.Pool)(nil)
	_ reconcile.SecretTaker = (*temporal.Pool)(nil)
	_ reconcile.Lister      = (*temporal.Pool)(nil)
	_ reconcile.Router      = temporalPort{}
	_ reconcile.Helper      = temporalPort{}
)
