package main

import (
	"errors"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/rollout"
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
		Limits: rollout.DefaultLimits(), Now: a.now, Log: a.log, Parallel: parallel, Own: e.judges.facts,
		JudgeFor: func(env rollout.EnvironmentWorld) reconcile.Judge { return e.judges.engine(env) }}, nil
}

// bot wires a Reconciler. close gives its mirror and its connections back.
func (a *app) bot(repository repositoryFlags, server temporalFlags, on forgeFlags, judges *judges) (bot *reconcile.Reconciler, close func() error, err error) {
	hooks, err := a.faults()
	if err != nil {
		return nil, nil, err
	}
	pool, err := a.pool(server, hooks.temporal)
	if err != nil {
		return nil, nil, err
	}
	repo, err := a.repository(repository, hooks.push)
	if err != nil {
		return nil, nil, errors.Join(err, pool.Close())
	}
	planner, err := a.planner(ends{a.only(repo), pool, judges}, server)
	if err != nil {
		return nil, nil, errors.Join(err, repo.Close(), pool.Close())
	}
	inputs, err := server.gateInputs()
	if err != nil {
		return nil, nil, errors.Join(err, repo.Close(), pool.Close())
	}
	proposer, err := a.proposer(on, repository, repo)
	if err != nil {
		return nil, nil, errors.Join(err, repo.Close(), pool.Close())
	}
	port := temporalPort{pool, inputs, a.log}
	return &reconcile.Reconciler{Planner: planner, Committer: repo, Router: port, Helper: port, Lister: pool, Proposer: proposer},
		func() error { return errors.Join(repo.Close(), pool.Close()) }, nil
}

// writeHooks are told of each write to a server; nil: nobody.
type writeHooks struct {
	push      func(gitops.Moment)
	decisions func(gitops.Moment)
	temporal  func(temporal.Site, temporal.Moment)
}

var (
	_ reconcile.Source    = (*gitops.Repository)(nil)
	_ reconcile.Historian = (*gitops.Repository)(nil)
	_ reconcile.Historian = oneEnvironment{}
	_ reconcile.Historian = judged{}
	_ reconcile.Committer = (*gitops.Repository)(nil)
	_ reconcile.Judge     = (*policy.Engine)(nil)
	_ reconcile.Observer  = (*temporal.Pool)(nil)
	_ reconcile.Lister    = (*temporal.Pool)(nil)
	_ reconcile.Router    = temporalPort{}
	_ reconcile.Helper    = temporalPort{}
)
