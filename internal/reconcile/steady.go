package reconcile

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// resync is how long a settled worker deployment is left alone at most: a change of owner, or of drainage, shows only in a
// describe of its own.
const resync = 5 * time.Minute

// steadiness remembers worker deployments that are settled. It only saves work: without it they are all looked at.
type steadiness struct {
	settled map[string]settled
}

// settled is what a decision to do nothing was made on, and until when it holds.
type settled struct {
	inputs  inputs
	until   time.Time
	routing rollout.RoutingConfig
}

// inputs are all that a decision depends on beside Temporal and the time.
type inputs struct {
	record, blob, connection, resources string
	shared                              sharedInputs
}

func inputsOf(s rollout.Snapshot, shared sharedInputs) inputs {
	in := inputs{record: s.Record.Tree, blob: s.Git.SpecBlob, shared: shared}
	if s.Connection != nil {
		in.connection = s.Connection.Spec.Hash()
	}
	if len(s.Resources) > 0 || s.ResourcesProblem != nil {
		if b, err := json.Marshal([]any{s.Resources, s.ResourcesProblem}); err == nil {
			in.resources = string(b)
		}
	}
	return in
}

// sharedInputs are those that all worker deployments of an environment have in common.
type sharedInputs struct{ policies, environment, facts string }

func (p *Planner) sharedOf(env rollout.EnvironmentWorld) sharedInputs {
	shared := sharedInputs{policies: p.JudgeFor(env).Digest(), facts: said(p.withOwn(nil))}
	var waivers []v1alpha1.Waiver
	if len(env.Deployments) > 0 {
		waivers = env.Deployments[0].Waivers
	}
	if b, err := json.Marshal([]any{env.Environment, waivers}); err == nil {
		shared.environment = string(b)
	}
	return shared
}

// said is what facts say, whatever their age: that grows all the time, and settled is who goes nowhere.
func said(facts map[string]rollout.Fact) string {
	if len(facts) == 0 {
		return ""
	}
	all := make(map[string][]string, len(facts))
	for name, f := range facts {
		all[name] = []string{string(f.Value), f.Error}
	}
	b, err := json.Marshal(all)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func steadyKey(env string, n rollout.Name) string { return env + "\x00" + n.String() }

// due are the worker deployments that have to be looked at in this cycle.
func (s *steadiness) due(ctx context.Context, r *Reconciler, env rollout.EnvironmentWorld) []rollout.Snapshot {
	if r.Lister == nil || len(s.settled) == 0 {
		return slices.Clone(env.Deployments)
	}
	shared := r.sharedOf(env)
	lists := listings{lister: r.Lister, log: r.Log, seen: map[listKey]map[string]rollout.RoutingConfig{}}
	var out []rollout.Snapshot
	for _, d := range env.Deployments {
		was, ok := s.settled[steadyKey(env.Environment.Name, d.Deployment)]
		if !ok || was.inputs != inputsOf(d, shared) || !r.Now().Before(was.until) || r.failures[d.Deployment] != nil ||
			lists.moved(ctx, d, was.routing) {
			out = append(out, d)
		}
	}
	return out
}

// listings are the lists of one cycle, one for each Temporal namespace.
type listings struct {
	lister Lister
	log    *slog.Logger
	seen   map[listKey]map[string]rollout.RoutingConfig
}

type listKey struct{ connection, namespace string }

// moved reports whether a list shows another routing. A worker deployment that the list lacks, or a list that cannot be had,
// shows nothing: it is looked at again when its time has come.
func (l listings) moved(ctx context.Context, d rollout.Snapshot, was rollout.RoutingConfig) bool {
	key := listKey{d.Connection.Spec.Hash(), d.Spec.Spec.WorkerOptions.TemporalNamespace}
	list, ok := l.seen[key]
	if !ok {
		var err error
		if list, err = l.lister.List(ctx, *d.Connection, key.namespace); err != nil {
			l.log.WarnContext(ctx, "worker deployments could not be listed", "namespace", key.namespace, "error", err)
		}
		l.seen[key] = list
	}
	now, ok := list[d.Deployment.String()]
	return ok && !now.SameTraffic(was)
}

// remember notes which worker deployments are settled. After a commit their records have another hash: they are looked
// at once more.
func (s *steadiness) remember(env rollout.EnvironmentWorld, shared sharedInputs, decisions []Decision) {
	if s.settled == nil {
		s.settled = map[string]settled{}
	}
	for _, d := range decisions {
		key := steadyKey(env.Environment.Name, d.Plan.Deployment)
		delete(s.settled, key)
		if !d.Plan.Settled || d.Snapshot.Record.Tree == "" || d.Snapshot.Connection == nil {
			continue
		}
		until := d.Snapshot.Now.Add(resync)
		if due := d.Plan.NextDue; !due.IsZero() && due.Before(until) {
			until = due
		}
		s.settled[key] = settled{inputs: inputsOf(d.Snapshot, shared), until: until, routing: d.Snapshot.Observation.Routing}
	}
}
