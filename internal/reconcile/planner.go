package reconcile

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Planner reads and decides. It has nothing to write with.
type Planner struct {
	Source   Source
	Observer Observer
	// Metrics is nil where the bot reads no metrics.
	Metrics Metrics
	// Inputs of gates; nil: the bot was given none.
	Inputs Inputs
	// JudgeFor gives the policies of an environment.
	JudgeFor func(rollout.EnvironmentWorld) Judge
	Limits   rollout.Limits
	Now      func() time.Time
	Log      *slog.Logger
	// Parallel is how many worker deployments are observed at once, at least 1.
	Parallel int
}

// Decision is what was decided for one worker deployment, and on what.
type Decision struct {
	Snapshot rollout.Snapshot `json:"snapshot"`
	Proposal rollout.Proposal `json:"proposal"`
	Plan     rollout.Plan     `json:"plan"`
}

// Observe reads the world and Temporal: one snapshot for each worker deployment, by environment.
func (p *Planner) Observe(ctx context.Context) (rollout.World, error) {
	world, err := p.Source.Read(ctx)
	if err != nil {
		return rollout.World{}, err
	}
	out := world
	out.Environments = make([]rollout.EnvironmentWorld, len(world.Environments))
	for i, env := range world.Environments {
		snapshots, err := p.observe(ctx, env.Deployments)
		if err != nil {
			return rollout.World{}, err
		}
		env.Deployments = snapshots
		out.Environments[i] = env
	}
	return out, nil
}

// Plan reads the world and decides for every environment.
func (p *Planner) Plan(ctx context.Context) (rollout.World, [][]Decision, error) {
	world, err := p.Source.Read(ctx)
	if err != nil {
		return rollout.World{}, nil, err
	}
	out := make([][]Decision, len(world.Environments))
	for i, env := range world.Environments {
		if out[i], err = p.decideAll(ctx, env, env.Deployments); err != nil {
			return world, nil, err
		}
	}
	return world, out, nil
}

// observe reads Temporal for each snapshot.
func (p *Planner) observe(ctx context.Context, snapshots []rollout.Snapshot) ([]rollout.Snapshot, error) {
	out := make([]rollout.Snapshot, len(snapshots))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(p.Parallel, 1))
	for i, s := range snapshots {
		g.Go(func() error {
			out[i] = p.look(ctx, s)
			return ctx.Err()
		})
	}
	return out, g.Wait()
}

// look fills in the time and what Temporal says: first what one describe gives, then what the rows will look at.
func (p *Planner) look(ctx context.Context, s rollout.Snapshot) rollout.Snapshot {
	s.Limits, s.Now = p.Limits, p.Now()
	if s.Connection == nil || s.Spec == nil {
		return s
	}
	s.GateInputs = p.gateInputs(s)
	s.Observation = p.Observer.Observe(ctx, *s.Connection, plan.Ask(s))
	s.Now = p.Now()
	ask := plan.Ask(s)
	facts := p.metrics(ctx, s, ask.Metrics)
	if wants(ask) {
		s.Observation = p.Observer.Observe(ctx, *s.Connection, ask)
	}
	s.Facts = <-facts
	s.Now = p.Now()
	return s
}

// metrics reads a metrics store while Temporal is read.
func (p *Planner) metrics(ctx context.Context, s rollout.Snapshot, ask *rollout.MetricsAsk) <-chan map[string]rollout.Fact {
	out := make(chan map[string]rollout.Fact, 1)
	if ask == nil || p.Metrics == nil {
		out <- nil
		return out
	}
	go func() { out <- p.Metrics.Read(ctx, s, *ask) }()
	return out
}

// gateInputs are digests of the inputs that the spec's gates have from outside.
func (p *Planner) gateInputs(s rollout.Snapshot) map[string]rollout.GateInput {
	var out map[string]rollout.GateInput
	for _, in := range rollout.GateInputs(s.Deployment.Namespace, s.Spec.Spec.Rollout) {
		if p.Inputs == nil {
			return nil
		}
		if out == nil {
			out = map[string]rollout.GateInput{}
		}
		digest, err := p.Inputs.Digest(in)
		got := rollout.GateInput{Digest: digest}
		if err != nil {
			got = rollout.GateInput{Problem: err.Error()}
		}
		out[in.String()] = got
	}
	return out
}

func wants(a rollout.Ask) bool {
	return len(a.Queues) > 0 || len(a.OpenPinned) > 0 || len(a.InUse) > 0 || len(a.Closed) > 0 || a.Stuck != nil || a.Gate != nil || len(a.Batches) > 0
}

// decideAll observes and decides for the given worker deployments of an environment.
func (p *Planner) decideAll(ctx context.Context, env rollout.EnvironmentWorld, snapshots []rollout.Snapshot) ([]Decision, error) {
	judge := p.JudgeFor(env)
	seen, err := p.observe(ctx, snapshots)
	if err != nil {
		return nil, err
	}
	out := make([]Decision, len(seen))
	for i, s := range seen {
		d := Decide(ctx, judge, s)
		if d.Plan.SecondRead {
			again := p.look(ctx, withoutObservation(s))
			again.FirstRead = &s.Observation
			d = Decide(ctx, judge, again)
		}
		p.tell(ctx, d)
		out[i] = d
	}
	return out, ctx.Err()
}

// tell logs which rows of the rules had a say in a decision.
func (p *Planner) tell(ctx context.Context, d Decision) {
	p.Log.DebugContext(ctx, "decided", "deployment", d.Plan.Deployment.String(), "row", d.Proposal.Row, "rows", d.Proposal.Rows(),
		"reason", string(d.Proposal.State.Reason))
}

func withoutObservation(s rollout.Snapshot) rollout.Snapshot {
	s.Observation = rollout.Observation{}
	return s
}

// Decide is the pure part of a cycle: what to do about one snapshot.
func Decide(ctx context.Context, judge Judge, s rollout.Snapshot) Decision {
	proposal := plan.Propose(s)
	return Decision{Snapshot: s, Proposal: proposal, Plan: plan.Resolve(s, proposal, judge.Judge(ctx, s, proposal))}
}
