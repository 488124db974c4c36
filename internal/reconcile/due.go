package reconcile

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/resync"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// DefaultMaxDue is how many worker deployments of an environment one cycle decides unless the Reconciler says
// otherwise. Temporal describes some 50 in a second, and traffic is not raised on facts that are a minute old.
const DefaultMaxDue = 1000

// due finds the worker deployments that need a look, loads them, and groups them by environment and Temporal namespace.
// What cannot be loaded is in the error, and due again in the next cycle.
func (r *Reconciler) due(ctx context.Context, tip reading, report *Report) ([]*group, error) {
	r.running.cycle++
	r.forgetGone(tip, report)
	for _, env := range tip.World.Environments { // these worker deployments are decided with the others again
		r.drain(env.Environment.Name, report, func(g *group) bool { return !g.raises && !g.lowersOnly() })
	}
	resting := make([][]*resync.Row, len(tip.World.Environments))
	due := make([][]*rollout.IndexEntry, len(tip.World.Environments))
	for i, env := range tip.World.Environments {
		shared, hash := r.shared(env), resync.NewConnectionHash()
		r.withdraw(ctx, tip, env, shared, hash)
		due[i], resting[i] = r.split(env, shared, hash)
	}
	r.resync.AskLists(ctx, r.Lister, r.Log)
	snapshots := make([][]rollout.Snapshot, len(tip.World.Environments))
	errs := make([]error, len(tip.World.Environments))
	for i, env := range tip.World.Environments {
		rows := append(due[i], r.moved(ctx, env, resting[i])...)
		snapshots[i], errs[i] = r.load(ctx, tip, env, r.firstDue(env, rows, report))
	}
	var groups []*group
	for i, env := range tip.World.Environments { // while files are waited for, other groups may have begun: blind ones
		groups = append(groups, r.group(env, snapshots[i])...)
	}
	return groups, errors.Join(errs...)
}

// forgetGone drops what is remembered of worker deployments and environments that are not in the repository any more.
// Groups of such environments raise and delete nothing more.
func (r *Reconciler) forgetGone(tip reading, report *Report) {
	there := 0
	for _, env := range tip.World.Environments {
		there += len(env.Entries)
	}
	gone := func(key resync.Key) bool { return tip.row(key) == nil }
	r.resync.Forget(gone, there)
	r.running.forget(gone, there)
	r.absence.forget(gone, there)
	maps.DeleteFunc(r.failures, func(key resync.Key, _ *rollout.Problem) bool { return gone(key) })
	for key, g := range r.running.groups {
		if _, ok := tip.environment(key.environment); ok {
			continue
		}
		for member := range g.members() {
			g.withdraw(member.Name)
		}
		if !g.leave() {
			r.dissolve(g)
			report.merge(assessed{groups: []*group{g}}, r)
		}
	}
}

// split divides an environment's worker deployments. Some are due by Git or by their time, others rest until Temporal
// or the cluster says that they moved. Those whose namespace has a group at work are neither.
func (r *Reconciler) split(env rollout.EnvironmentWorld, shared *resync.Shared,
	hash resync.ConnectionHash) (due []*rollout.IndexEntry, resting []*resync.Row) {
	name, now := env.Environment.Name, r.Now()
	walk := r.resync.Walk(name)
	key := func(k *rollout.IndexEntry) resync.Key { return resync.Key{Env: name, Name: k.Deployment} }
	failed := func(k *rollout.IndexEntry) bool { return len(r.failures) > 0 && r.failures[key(k)] != nil }
	for _, k := range env.Entries {
		switch {
		case len(r.running.groups) > 0 && r.running.has(key(k)):
			walk.Keep(k)
		case r.Lister == nil || failed(k) || !walk.Rests(k, shared, hash, now):
			due = append(due, k)
		}
	}
	return due, walk.End()
}

// moved gives the resting worker deployments whose traffic or pods moved.
func (r *Reconciler) moved(ctx context.Context, env rollout.EnvironmentWorld,
	resting []*resync.Row) (moved []*rollout.IndexEntry) {
	pods := r.looksAtPods(env)
	for _, row := range resting {
		if row.TrafficMoved() || pods && podsMoved(ctx, r.Cluster, row.Pods) {
			moved = append(moved, row.Entry())
		}
	}
	return moved
}

// firstDue gives the rows that this cycle decides, at most MaxDue. Those that waited longest come first, then those
// that have a record, since they may have traffic to be lowered. A commit that may have to be proposed is not divided.
func (r *Reconciler) firstDue(env rollout.EnvironmentWorld, rows []*rollout.IndexEntry,
	report *Report) []*rollout.IndexEntry {
	most := cmp.Or(r.MaxDue, DefaultMaxDue)
	if r.proposes(env.Environment) {
		most = math.MaxInt
	}
	since := func(k *rollout.IndexEntry) time.Time {
		return r.resync.Waiting(resync.Key{Env: env.Environment.Name, Name: k.Deployment})
	}
	slices.SortFunc(rows, func(a, b *rollout.IndexEntry) int {
		return cmp.Or(byTurn(since(a), since(b)), first(recorded(a), recorded(b)), a.Deployment.Compare(b.Deployment))
	})
	if len(rows) <= most {
		return rows
	}
	for _, k := range rows[most:] {
		r.resync.Wait(resync.Key{Env: env.Environment.Name, Name: k.Deployment}, r.Now())
	}
	if !r.pauses.has(env.Environment.Name, r.Now()) {
		report.more(r.Now())
	}
	return rows[:most]
}

// byTurn puts those that wait, since some time, before those that do not: longest first.
func byTurn(since, other time.Time) int {
	return cmp.Or(first(!since.IsZero(), !other.IsZero()), since.Compare(other))
}

// first puts true before false.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func recorded(k *rollout.IndexEntry) bool {
	return k.Tree != "" || k.Full != nil && k.Full.Record.Tree != ""
}

// load reads what files say of worker deployments, and adds what else is known of them beside Temporal.
func (r *Reconciler) load(ctx context.Context, tip reading, env rollout.EnvironmentWorld,
	rows []*rollout.IndexEntry) ([]rollout.Snapshot, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	release, err := r.repository.take(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	snapshots, err := tip.load(ctx, tip.Snapshots(env.Environment.Name, rows))
	for i := range snapshots {
		snapshots[i].Failure = r.failures[resync.KeyOf(&snapshots[i])]
	}
	r.review(env, snapshots)
	return r.withOrigins(ctx, env, snapshots), err
}

// review fills in what became of proposals.
func (r *Reconciler) review(env rollout.EnvironmentWorld, snapshots []rollout.Snapshot) {
	if r.Proposer == nil {
		return
	}
	reviews, approvers := r.Proposer.Reviews(env.Environment.Name)
	for i := range snapshots {
		if is, ok := reviews[snapshots[i].Deployment]; ok {
			snapshots[i].Review = &is
		}
		if is, ok := approvers[snapshots[i].Deployment]; ok && env.ByOther {
			snapshots[i].Approver = &is
		}
	}
}

// group divides an environment's snapshots by the Temporal namespaces that they are read from. Those whose namespace
// still has a group at work wait for it.
func (r *Reconciler) group(env rollout.EnvironmentWorld, snapshots []rollout.Snapshot) (groups []*group) {
	shared, hash := r.shared(env), resync.NewConnectionHash()
	judge := r.JudgeFor(env)
	for _, g := range byNamespace(snapshots, func(key groupKey) *group {
		return &group{groupKey: key, env: env, judge: judge, blind: env.Unrecorded,
			undivided: r.proposes(env.Environment), inputs: map[rollout.Name]rollout.Inputs{}, report: newReport()}
	}) {
		busy := r.running.busy(g.groupKey)
		for _, s := range g.snapshots {
			r.running.noteKey(resync.KeyOf(&s), g.groupKey)
			g.inputs[s.Deployment] = resync.InputsOf(&s, *shared, hash)
			if busy {
				r.resync.Wait(resync.KeyOf(&s), r.Now())
			}
		}
		if !busy {
			groups = append(groups, g)
		}
	}
	return groups
}

// byNamespace divides snapshots by the Temporal namespaces that they are read from.
func byNamespace(snapshots []rollout.Snapshot, in func(groupKey) *group) (groups []*group) {
	hash := resync.NewConnectionHash()
	for _, s := range snapshots {
		key := keyOfGroup(s, hash)
		at := slices.IndexFunc(groups, func(g *group) bool { return g.groupKey == key })
		if at < 0 {
			at, groups = len(groups), append(groups, in(key))
		}
		groups[at].snapshots = append(groups[at].snapshots, s)
	}
	return groups
}

// keyOfGroup is the group that a worker deployment is in.
func keyOfGroup(s rollout.Snapshot, hash resync.ConnectionHash) groupKey {
	key := groupKey{environment: s.Environment.Name}
	if conn := plan.Look(s).Connection(); conn != nil {
		key.connection, key.namespace = hash(conn), plan.TemporalNamespace(s)
	}
	return key
}
