package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
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
	// Surveyor reads the repository as an index; nil: Source reads all of it each time.
	Surveyor Surveyor
	// History is nil where it is not known where specs come from.
	History CommitHistory
	// Records is nil where versions that Git lost are not looked for.
	Records RecordHistory
	// Slots is nil where Temporal takes all calls.
	Slots Slots
	// Namespaces is nil where a connection is not followed to another address.
	Namespaces Namespaces
	// Secrets is nil where Secrets may be sent by all connections.
	Secrets SecretTaker
	// Metrics is nil where the bot reads no metrics.
	Metrics Metrics
	// Statuses is nil where the bot reads no commit statuses.
	Statuses Statuses
	// Cluster is nil where the bot reads no pods.
	Cluster Cluster
	// ClusterPatience is how long to wait for a namespace of the cluster that is read for the first time. That does not
	// depend on whether policies look at pods. Zero: not at all.
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

	// SlotPatience is how long worker deployments wait, all of those together that are read at once, for a slot where
	// the Observer has slots. Those that get none are read first the next time. Zero: they wait as long as it takes.
	SlotPatience time.Duration

	repository lock
}

// Observe reads the world and Temporal: one snapshot for each worker deployment, by environment.
func (p *Planner) Observe(ctx context.Context) (rollout.World, error) {
	world, err := p.Source.Read(ctx)
	if err != nil {
		return rollout.World{}, err
	}
	world.Environments = slices.Clone(world.Environments)
	groups := p.each(ctx, world, func(g *group) { g.snapshots, _ = p.measure(ctx, p.observeIn(ctx, g)) })
	for i := range world.Environments {
		var seen []rollout.Snapshot
		for _, g := range groups[i] {
			seen = append(seen, g.snapshots...)
		}
		slices.SortFunc(seen, func(a, b rollout.Snapshot) int { return a.Deployment.Compare(b.Deployment) })
		world.Environments[i].Deployments = seen
	}
	return world, ctx.Err()
}

// Plan reads the world and decides for every environment, in their order. It changes nothing.
func (p *Planner) Plan(ctx context.Context) (rollout.World, [][]*rollout.Decision, error) {
	world, err := p.Source.Read(ctx)
	if err != nil {
		return rollout.World{}, nil, err
	}
	groups := p.each(ctx, world, func(g *group) {
		g.decisions = p.decide(ctx, g, func(decisions []*rollout.Decision) []*rollout.Decision { return decisions })
	})
	out := make([][]*rollout.Decision, len(world.Environments))
	for i, env := range world.Environments {
		for _, g := range groups[i] {
			out[i] = append(out[i], g.decisions...)
		}
		if out[i] = inOrder(out[i]); len(groups[i]) > 1 { // each let one rollout start
			out[i] = Admit(ctx, p.JudgeFor(env), out[i])
		}
	}
	return world, out, ctx.Err()
}

// each does something with all groups of a world, beside each other, and gives the groups by environment. They have no
// policies where the planner has none.
func (p *Planner) each(ctx context.Context, world rollout.World, do func(*group)) [][]*group {
	out := make([][]*group, len(world.Environments))
	for i, env := range world.Environments {
		var judge Judge
		if p.JudgeFor != nil {
			judge = p.JudgeFor(env)
		}
		out[i] = byNamespace(p.withOrigins(ctx, env, env.Deployments), func(key groupKey) *group {
			return &group{groupKey: key, env: env, judge: judge}
		})
	}
	var all sync.WaitGroup
	for _, g := range slices.Concat(out...) {
		all.Go(func() { do(g) })
	}
	all.Wait()
	return out
}

// observeIn observes a group's worker deployments, with what history and the cluster say of them.
func (p *Planner) observeIn(ctx context.Context, g *group) []rollout.Snapshot {
	seen := p.observe(ctx, g, g.snapshots)
	seen = p.withLost(ctx, g, seen)
	return p.withPods(ctx, g, seen)
}

// observe reads Temporal for each snapshot. The group notes those that Temporal had no time for.
func (p *Planner) observe(ctx context.Context, g *group, snapshots []rollout.Snapshot) []rollout.Snapshot {
	out, from := make([]rollout.Snapshot, len(snapshots)), make([]*slotted, len(snapshots))
	ctx, cancel := g.within(ctx)
	defer cancel()
	var until time.Time // by the clock of the machine, as deadlines are
	if p.SlotPatience > 0 {
		until = time.Now().Add(p.SlotPatience)
	}
	var uncounted []rollout.CanaryPhase
	if g.judge != nil {
		uncounted = g.judge.Looks().Uncounted()
	}
	var all errgroup.Group
	all.SetLimit(max(p.Parallel, 1))
	for i := range snapshots {
		all.Go(func() error {
			from[i] = &slotted{next: p.Observer, slots: p.Slots, until: until, now: p.Now}
			defer from[i].end()
			s := snapshots[i]
			s.Uncounted = uncounted
			out[i] = p.look(ctx, from[i], s)
			return nil
		})
	}
	_ = all.Wait()
	for i, f := range from {
		if f.refused {
			g.postpone(snapshots[i].Deployment, p.Now())
		}
	}
	return out
}

// look fills in the time and what Temporal says: first what one describe gives, then what the rules will look at.
func (p *Planner) look(ctx context.Context, from Observer, s rollout.Snapshot) rollout.Snapshot {
	s.Limits, s.Now, s.Facts = p.Limits, p.Now(), p.withOwn(s.Facts)
	unread := plan.Look(s)
	if p.Namespaces != nil {
		if conn, namespace := unread.AskNamespace(); conn != nil {
			there := p.Namespaces.NamespaceAt(ctx, *conn, namespace)
			s.NamespaceThere = &there
			unread = plan.Look(s)
		}
	}
	conn := unread.Connection()
	if conn == nil {
		return s
	}
	s.GateInputs = p.gateInputs(unread.JudgedBy(), *conn)
	s.Observation = from.Observe(ctx, *conn, unread.Ask())
	s.Now = p.Now()
	if ask := plan.Look(s).Ask(); wants(ask) {
		s.Observation = from.Observe(ctx, *conn, ask)
		s.Now = p.Now()
	}
	return s
}

// withOrigins adds where the specs come from, if policies look at it, or who asked may not approve. To find that can
// take much of the history. Where it can't be found it is not known, which is for the policies to judge.
func (p *Planner) withOrigins(ctx context.Context, env rollout.EnvironmentWorld,
	snapshots []rollout.Snapshot) []rollout.Snapshot {
	looks := env.ByOther || p.JudgeFor != nil && p.JudgeFor(env).Looks().At("git")
	if p.History == nil || len(snapshots) == 0 || !looks {
		return snapshots
	}
	origins, err := p.History.Origins(ctx, snapshots)
	if err != nil {
		p.Log.WarnContext(ctx, "where specs come from could not be read", "error", err)
	}
	out := slices.Clone(snapshots)
	for i := range out {
		out[i].Git = origins[i]
	}
	return out
}

// withMetrics decides again what metrics bear on. All are read with one call: what a store that does not answer costs,
// it costs once.
func (p *Planner) withMetrics(ctx context.Context, judge Judge, decisions []*rollout.Decision) []*rollout.Decision {
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
	var asks []rollout.MetricsQuestion
	for i, s := range snapshots {
		if ask := p.metricsOf(s); ask != nil {
			asks, from = append(asks, rollout.MetricsQuestion{Snapshot: s, Ask: *ask}), append(from, i)
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
	return plan.Look(s).Ask().Metrics
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
	if p.Secrets != nil && in.Kind == rollout.InputSecret {
		if err := p.Secrets.TakesSecrets(conn); err != nil {
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
	return len(a.Queues) > 0 || len(a.OpenPinned) > 0 || len(a.InUse) > 0 || len(a.Closed) > 0 || a.Stuck != nil ||
		a.Gate != nil || a.Missing != nil || len(a.Batches) > 0
}

// decide observes and decides a group. lower is given decisions as soon as nothing can change them any more, and gives
// those that hold: what lowers traffic does not wait for metrics.
func (p *Planner) decide(ctx context.Context, g *group,
	lower func([]*rollout.Decision) []*rollout.Decision) []*rollout.Decision {
	var urgent, rest []*rollout.Decision
	for _, d := range decideEach(ctx, g.judge, p.observeIn(ctx, g)) {
		if p.urgent(g.judge, d) {
			p.tell(ctx, d)
			urgent = append(urgent, d)
		} else {
			rest = append(rest, d)
		}
	}
	urgent = lower(urgent)
	rest = p.withStatuses(ctx, g, p.withMetrics(ctx, g.judge, rest))
	rest = p.withoutHurriedRaises(ctx, g, p.readTwice(ctx, g, rest))
	rest = Admit(ctx, g.judge, rest)
	for _, d := range rest {
		p.tell(ctx, d)
	}
	return inOrder(urgent, lower(rest))
}

// canaryRule is the rule of the library that judges a candidate by its workflows, and looks at no metric.
const canaryRule = "rollout.canary"

// urgent reports whether a decision that was made without metrics and commit statuses takes traffic back, whatever they
// are. Either none are asked for, or the decision is the rows', which no policy stops. Of policies only the library's
// rule is known to look at none: another may turn back for a metric that is missing.
func (p *Planner) urgent(judge Judge, d *rollout.Decision) bool {
	switch {
	case d.Plan.Lower == nil:
		return false
	case p.metricsOf(d.Snapshot) == nil && len(judge.Looks().Statuses) == 0:
		return true
	}
	move := d.Plan.Actions[slices.IndexFunc(d.Plan.Actions, rollout.Action.Lowers)]
	return move.Bar == canaryRule || slices.ContainsFunc(d.Proposal.Actions, func(a rollout.Action) bool {
		return a.ID == move.ID
	})
}

// withoutHurriedRaises decides again what would raise traffic, or move workflows, though not all was asked about it. It
// is decided as if nothing could be read, without a word of that, and has its turn first in the next cycle.
func (p *Planner) withoutHurriedRaises(ctx context.Context, g *group,
	decisions []*rollout.Decision) []*rollout.Decision {
	out := slices.Clone(decisions)
	for i, d := range out {
		if s := d.Snapshot; s.Observation.CutShort && raises(d) {
			s.Observation = noTurn(s.Deployment, s.Observation.At, "there was no time for all of it")
			out[i] = Decide(ctx, g.judge, s)
		}
	}
	return out
}

// readTwice decides again, on a second read, what takes two. What lowers traffic does not wait for that.
func (p *Planner) readTwice(ctx context.Context, g *group, decisions []*rollout.Decision) []*rollout.Decision {
	var twice []int
	var snapshots []rollout.Snapshot
	for i, d := range decisions {
		if d.Plan.SecondRead && d.Plan.Lower == nil {
			again := withoutObservation(d.Snapshot)
			again.FirstRead = &d.Snapshot.Observation
			twice, snapshots = append(twice, i), append(snapshots, again)
		}
	}
	seen := p.observe(ctx, g, snapshots)
	out := slices.Clone(decisions)
	for k, i := range twice {
		out[i] = Decide(ctx, g.judge, seen[k])
	}
	return out
}

// inOrder puts decisions together in the order of names.
func inOrder(lists ...[]*rollout.Decision) []*rollout.Decision {
	out := slices.Concat(lists...)
	slices.SortFunc(out, func(a, b *rollout.Decision) int { return a.Plan.Deployment.Compare(b.Plan.Deployment) })
	return out
}

// tell logs which rows of the rules had a say in a decision.
func (p *Planner) tell(ctx context.Context, d *rollout.Decision) {
	if !p.Log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	p.Log.DebugContext(ctx, "decided", "deployment", d.Plan.Deployment.String(), "row", d.Proposal.Row, "rows",
		d.Proposal.Rows(), "reason", string(d.Proposal.State.Reason))
}

func withoutObservation(s rollout.Snapshot) rollout.Snapshot {
	s.Observation = rollout.Observation{}
	return s
}

// decideEach decides for each snapshot by itself.
func decideEach(ctx context.Context, judge Judge, snapshots []rollout.Snapshot) []*rollout.Decision {
	out := make([]*rollout.Decision, len(snapshots))
	cores.Each(len(out), func(i int) { out[i] = Decide(ctx, judge, snapshots[i]) })
	return out
}

// Decide is the pure part of a cycle: what to do about one snapshot.
func Decide(ctx context.Context, judge Judge, s rollout.Snapshot) *rollout.Decision {
	d := &rollout.Decision{Snapshot: s}
	d.Proposal, d.Plan = plan.Look(s).Decide(func(judged rollout.Snapshot, p rollout.Proposal) rollout.Verdicts {
		return judge.Judge(ctx, judged, p)
	})
	return d
}
