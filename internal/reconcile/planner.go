package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/cores"
	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Planner reads and decides. It has nothing to write with.
type Planner struct {
	Source   Source
	Observer Observer
	// Metrics is nil where the bot reads no metrics.
	Metrics Metrics
	// Statuses is nil where the bot reads no commit statuses.
	Statuses Statuses
	// Cluster is nil where the bot reads no pods.
	Cluster Cluster
	// ClusterPatience is how long a namespace of the cluster is waited for that is read for the first time, whether or not policies look at pods. Zero: not at all.
	ClusterPatience time.Duration
	// Inputs of gates; nil: the bot was given none.
	Inputs Inputs
	// Own gives facts of the bot's own, for every worker deployment; nil: there are none.
	Own func() map[string]rollout.Fact
	// JudgeFor gives the policies of an environment.
	JudgeFor func(rollout.EnvironmentWorld) Judge
	Limits   rollout.Limits
	Now      func() time.Time
	Log      *slog.Logger
	// Parallel is how many worker deployments are observed at once, at least 1.
	Parallel int

	// SlotPatience is how long worker deployments wait, all of those together that are read at once, for a slot where the Observer has slots.
	// Those that get none are read first the next time. Zero: they wait as long as it takes.
	SlotPatience time.Duration

	// memory is between an environment's tries and the Observer; nil: it is asked directly.
	memory *recall
	// waiting are the worker deployments that got no slot, since when.
	waiting map[steadyKey]time.Time
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
		snapshots, err := p.observeIn(ctx, env, env.Deployments)
		if err != nil {
			return rollout.World{}, err
		}
		env.Deployments, _ = p.measure(ctx, snapshots)
		out.Environments[i] = env
	}
	return out, nil
}

// Plan reads the world and decides for every environment.
func (p *Planner) Plan(ctx context.Context) (rollout.World, [][]*Decision, error) {
	world, err := p.Source.Read(ctx)
	if err != nil {
		return rollout.World{}, nil, err
	}
	out := make([][]*Decision, len(world.Environments))
	for i, env := range world.Environments {
		urgent, rest, err := p.decideEarly(ctx, env, env.Deployments)
		if err != nil {
			return world, nil, err
		}
		if rest, err = p.decideLate(ctx, env, rest); err != nil {
			return world, nil, err
		}
		out[i] = inOrder(urgent, rest)
	}
	return world, out, nil
}

// observeIn observes snapshots of an environment, with what its history says of them.
func (p *Planner) observeIn(ctx context.Context, env rollout.EnvironmentWorld, snapshots []rollout.Snapshot) ([]rollout.Snapshot, error) {
	seen, err := p.observe(ctx, p.withOrigins(ctx, env, snapshots))
	if err != nil {
		return nil, err
	}
	seen, err = p.withLost(ctx, env, seen)
	if err != nil {
		return nil, err
	}
	return p.withPods(ctx, env, seen), nil
}

// observe reads Temporal for each snapshot.
func (p *Planner) observe(ctx context.Context, snapshots []rollout.Snapshot) ([]rollout.Snapshot, error) {
	out, from := make([]rollout.Snapshot, len(snapshots)), make([]*slotted, len(snapshots))
	var until time.Time // by the clock of the machine, as deadlines are
	if p.SlotPatience > 0 {
		until = time.Now().Add(p.SlotPatience)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(p.Parallel, 1))
	for _, i := range p.inNeed(snapshots) {
		g.Go(func() error {
			from[i] = &slotted{next: p.Observer, until: until, now: p.Now}
			defer from[i].end()
			out[i] = p.look(ctx, from[i], snapshots[i])
			return ctx.Err()
		})
	}
	err := g.Wait()
	p.noteWaiting(out, from)
	return out, err
}

// look fills in the time and what Temporal says: first what one describe gives, then what the rows will look at.
func (p *Planner) look(ctx context.Context, from Observer, s rollout.Snapshot) rollout.Snapshot {
	s.Limits, s.Now, s.Facts = p.Limits, p.Now(), p.withOwn(s.Facts)
	if namespaces, ok := p.Observer.(Namespaces); ok {
		if conn, namespace := plan.AskNamespace(s); conn != nil {
			there := namespaces.NamespaceAt(ctx, *conn, namespace)
			s.NamespaceThere = &there
		}
	}
	conn := plan.ConnectionOf(s)
	if conn == nil {
		return s
	}
	s.GateInputs = p.gateInputs(plan.Judged(s), *conn)
	s = p.ask(ctx, from, s, question{*conn, plan.Ask(s), s.Record.Tree})
	if ask := plan.Ask(s); wants(ask) {
		s = p.ask(ctx, from, s, question{*conn, ask, s.Record.Tree})
	}
	return s
}

// ask fills in an answer, and the time of it.
func (p *Planner) ask(ctx context.Context, from Observer, s rollout.Snapshot, q question) rollout.Snapshot {
	if p.memory != nil {
		a := p.memory.observe(ctx, from, s, q)
		s.Observation, s.Now = a.said, a.at
		return s
	}
	s.Observation = from.Observe(ctx, q.connection, q.ask)
	s.Now = p.Now()
	return s
}

// withOrigins adds where the specs come from, if policies look at it, or who asked may not approve: to find that can take much of the history. Where it can't be
// found it is not known, which is for the policies to judge.
func (p *Planner) withOrigins(ctx context.Context, env rollout.EnvironmentWorld, snapshots []rollout.Snapshot) []rollout.Snapshot {
	historian, ok := p.Source.(Historian)
	looks := env.ByOther || p.JudgeFor != nil && p.JudgeFor(env).LooksAt("git")
	if !ok || len(snapshots) == 0 || !looks {
		return snapshots
	}
	origins, err := historian.Origins(ctx, snapshots)
	if err != nil {
		p.Log.WarnContext(ctx, "where specs come from could not be read", "error", err)
	}
	out := slices.Clone(snapshots)
	for i := range out {
		out[i].Git = origins[i]
	}
	return out
}

// withMetrics decides again what metrics bear on. All are read with one call: what a store that does not answer costs, it
// costs once.
func (p *Planner) withMetrics(ctx context.Context, judge Judge, decisions []*Decision) []*Decision {
	snapshots := make([]rollout.Snapshot, len(decisions))
	for i, d := range decisions {
		snapshots[i] = d.Snapshot
	}
	out := slices.Clone(decisions)
	seen, measured := p.measure(ctx, snapshots)
	for _, i := range measured {
		out[i] = Decide(ctx, judge, seen[i])
	}
	return out
}

// withOwn adds the bot's own facts to others, which stay as they are.
func (p *Planner) withOwn(facts map[string]rollout.Fact) map[string]rollout.Fact {
	if p.Own == nil {
		return facts
	}
	own := p.Own()
	if len(own) == 0 {
		return facts
	}
	out := make(map[string]rollout.Fact, len(facts)+len(own))
	maps.Copy(out, facts)
	maps.Copy(out, own)
	return out
}

// measure reads the metrics that the snapshots' worker deployments are judged by, and says by index which have any.
func (p *Planner) measure(ctx context.Context, snapshots []rollout.Snapshot) (out []rollout.Snapshot, from []int) {
	var asks []MetricsQuestion
	for i, s := range snapshots {
		if ask := p.metricsOf(s); ask != nil {
			asks, from = append(asks, MetricsQuestion{s, *ask}), append(from, i)
		}
	}
	if len(asks) == 0 {
		return snapshots, nil
	}
	out = slices.Clone(snapshots)
	for i, facts := range p.Metrics.Read(ctx, asks) {
		out[from[i]].Facts, out[from[i]].Now = p.withOwn(facts), p.Now()
	}
	return out, from
}

// metricsOf are the metrics to read for a snapshot; nil: none.
func (p *Planner) metricsOf(s rollout.Snapshot) *rollout.MetricsAsk {
	if p.Metrics == nil {
		return nil
	}
	return plan.Ask(s).Metrics
}

// gateInputs are digests of the inputs that the spec's gates have from outside.
func (p *Planner) gateInputs(s rollout.Snapshot, conn v1alpha1.Connection) map[string]rollout.GateInput {
	var out map[string]rollout.GateInput
	for _, in := range rollout.GateInputs(s.Deployment.Namespace, s.Spec.Spec.Rollout) {
		if p.Inputs == nil {
			return nil
		}
		if out == nil {
			out = map[string]rollout.GateInput{}
		}
		out[in.String()] = p.gateInput(in, conn)
	}
	return out
}

// gateInput is what is known of one input: nothing, where it may not be sent.
func (p *Planner) gateInput(in rollout.GateInputRef, conn v1alpha1.Connection) rollout.GateInput {
	if taker, ok := p.Observer.(SecretTaker); ok && in.Kind == rollout.InputSecret {
		if err := taker.TakesSecrets(conn); err != nil {
			return rollout.GateInput{Problem: fmt.Sprintf("%s: %v", in, err)}
		}
	}
	digest, err := p.Inputs.Digest(in)
	if err != nil {
		return rollout.GateInput{Problem: err.Error()}
	}
	return rollout.GateInput{Digest: digest}
}

func wants(a rollout.Ask) bool {
	return len(a.Queues) > 0 || len(a.OpenPinned) > 0 || len(a.InUse) > 0 || len(a.Closed) > 0 || a.Stuck != nil || a.Gate != nil || a.Missing != nil || len(a.Batches) > 0
}

// decideEarly observes, and decides without metrics. What takes traffic back on that is urgent: it need not wait for anything.
// The rest goes through decideLate.
func (p *Planner) decideEarly(ctx context.Context, env rollout.EnvironmentWorld, snapshots []rollout.Snapshot) (urgent, rest []*Decision, err error) {
	judge := p.JudgeFor(env)
	seen, err := p.observeIn(ctx, env, snapshots)
	if err != nil {
		return nil, nil, err
	}
	for _, d := range decideEach(ctx, judge, seen) {
		if p.urgent(judge, d) {
			p.tell(ctx, d)
			urgent = append(urgent, d)
		} else {
			rest = append(rest, d)
		}
	}
	return urgent, rest, ctx.Err()
}

// canaryRule is the rule of the library that judges a candidate by its workflows, and looks at no metric.
const canaryRule = "rollout.canary"

// urgent reports whether a decision that was made without metrics and commit statuses takes traffic back, and would whatever they are: none are
// asked for, or it is the rows', which no policy stops. Of policies only the library's rule is known to look at none: another may
// turn back for a metric that is missing.
func (p *Planner) urgent(judge Judge, d *Decision) bool {
	switch {
	case d.Plan.Lower == nil:
		return false
	case p.metricsOf(d.Snapshot) == nil && len(statusesOf(judge)) == 0:
		return true
	}
	move := d.Plan.Actions[slices.IndexFunc(d.Plan.Actions, rollout.Action.Lowers)]
	return move.Bar == canaryRule || slices.ContainsFunc(d.Proposal.Actions, func(a rollout.Action) bool { return a.ID == move.ID })
}

// decideLate decides again what metrics, commit statuses and second reads bear on, and lets rollouts start one after the other.
func (p *Planner) decideLate(ctx context.Context, env rollout.EnvironmentWorld, rest []*Decision) ([]*Decision, error) {
	judge := p.JudgeFor(env)
	out := p.withStatuses(ctx, env, p.withMetrics(ctx, judge, rest))
	var err error
	if out, err = p.readTwice(ctx, judge, out); err != nil {
		return nil, err
	}
	out = Admit(ctx, judge, out)
	for _, d := range out {
		p.tell(ctx, d)
	}
	return out, ctx.Err()
}

// readTwice decides again, on a second read, what takes two.
func (p *Planner) readTwice(ctx context.Context, judge Judge, decisions []*Decision) ([]*Decision, error) {
	var twice []int
	var snapshots []rollout.Snapshot
	for i, d := range decisions {
		if d.Plan.SecondRead {
			again := withoutObservation(d.Snapshot)
			again.FirstRead = &d.Snapshot.Observation
			twice, snapshots = append(twice, i), append(snapshots, again)
		}
	}
	seen, err := p.observe(ctx, snapshots)
	if err != nil {
		return nil, err
	}
	out := slices.Clone(decisions)
	for k, i := range twice {
		out[i] = Decide(ctx, judge, seen[k])
	}
	return out, nil
}

// inOrder puts decisions together in the order of names.
func inOrder(a, b []*Decision) []*Decision {
	out := slices.Concat(a, b)
	slices.SortFunc(out, func(a, b *Decision) int { return a.Plan.Deployment.Compare(b.Plan.Deployment) })
	return out
}

// tell logs which rows of the rules had a say in a decision.
func (p *Planner) tell(ctx context.Context, d *Decision) {
	if !p.Log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	p.Log.DebugContext(ctx, "decided", "deployment", d.Plan.Deployment.String(), "row", d.Proposal.Row, "rows", d.Proposal.Rows(),
		"reason", string(d.Proposal.State.Reason))
}

func withoutObservation(s rollout.Snapshot) rollout.Snapshot {
	s.Observation = rollout.Observation{}
	return s
}

// decideEach decides for each snapshot by itself.
func decideEach(ctx context.Context, judge Judge, snapshots []rollout.Snapshot) []*Decision {
	out := make([]*Decision, len(snapshots))
	cores.Each(len(out), func(i int) { out[i] = Decide(ctx, judge, snapshots[i]) })
	return out
}

// Decide is the pure part of a cycle: what to do about one snapshot.
func Decide(ctx context.Context, judge Judge, s rollout.Snapshot) *Decision {
	proposal := plan.Propose(s)
	return &Decision{Snapshot: s, Proposal: proposal, Plan: plan.Resolve(s, proposal, judge.Judge(ctx, plan.Judged(s), proposal))}
}
