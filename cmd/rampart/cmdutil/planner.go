package cmdutil

import (
	"context"
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/internal/preview"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/retry"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy/sandbox"
	"github.com/rampart-gitops/rampart/temporal"
)

// busyTries is how often a busy Temporal is asked, with pauses that double. The bot asks it again in the next cycle.
const busyTries = 4

// PlanWithRetries plans, again where Temporal was too busy to answer: up to 4 times, with pauses that begin with pause
// and double.
func PlanWithRetries(ctx context.Context, planner *reconcile.Planner,
	pause time.Duration) (rollout.World, [][]*rollout.Decision, error) {
	pauses := retry.Pauses(pause, 4*pause)
	for try := 1; ; try++ {
		world, decided, err := planner.Plan(ctx)
		busy := slices.ContainsFunc(slices.Concat(decided...), func(d *rollout.Decision) bool {
			p := d.Snapshot.Observation.Problem
			return p != nil && p.Busy
		})
		if err != nil || !busy || try == busyTries {
			return world, decided, err
		}
		if err := retry.Sleep(ctx, pauses.NextBackOff()); err != nil {
			return world, decided, err
		}
	}
}

// CountUnread counts the decisions, and those whose worker deployment could not be read from Temporal.
func CountUnread(decided [][]*rollout.Decision) (unread, total int) {
	for _, env := range decided {
		for _, d := range env {
			total++
			if d.Snapshot.Observation.Problem != nil {
				unread++
			}
		}
	}
	return unread, total
}

// parallel is how many worker deployments are observed at once: the calls' budget is what bounds them.
const parallel = 16

// PlannerPorts are what a planner reads from and asks.
type PlannerPorts struct {
	Source   SpecSource
	Observer reconcile.Observer
	Judges   *Judges
	// Pods is nil where no cluster is read.
	Pods *PodReader
}

// NewPlanner makes the planner that all commands share, with the limits, gate inputs and metrics of the flags.
func (a *App) NewPlanner(e PlannerPorts, f TemporalFlags) (*reconcile.Planner, error) {
	store, err := f.metrics()
	if err != nil {
		return nil, err
	}
	var inputs reconcile.Inputs
	if f.gateInputDir != "" {
		if inputs, err = f.GateInputs(); err != nil {
			return nil, err
		}
	}
	source := e.Judges.PinOnRead(e.Source)
	return &reconcile.Planner{Source: source, Surveyor: source, History: source, Records: source, Observer: e.Observer,
		Inputs: inputs, Metrics: store, Cluster: e.Pods.port(), ClusterPatience: podsPatience,
		Limits: f.limits(), Now: a.Now, Log: a.Log, Parallel: parallel, Own: e.Judges.Facts,
		JudgeFor: func(env rollout.EnvironmentWorld) reconcile.Judge { return e.Judges.Engine(env) }}, nil
}

// UsePool lets a planner ask Temporal for more than observations: slots, namespaces, and whether it takes Secrets.
func UsePool(planner *reconcile.Planner, pool *temporal.Pool) {
	planner.Slots, planner.Namespaces, planner.Secrets = pool, pool, pool
}

// WriteHooks are called at each write to a server; a nil hook is not called.
type WriteHooks struct {
	Push      func(gitops.Moment)
	Decisions func(gitops.Moment)
	Temporal  func(temporal.Site, temporal.Moment)
}

var (
	_ reconcile.Judge       = (*sandbox.Engine)(nil)
	_ preview.Policies      = (*sandbox.Engine)(nil)
	_ reconcile.Observer    = (*temporal.Pool)(nil)
	_ reconcile.Slots       = (*temporal.Pool)(nil)
	_ reconcile.Namespaces  = (*temporal.Pool)(nil)
	_ reconcile.SecretTaker = (*temporal.Pool)(nil)
)
