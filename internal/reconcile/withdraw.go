package reconcile

import (
	"context"
	"path"
	"slices"

	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/resync"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// withdraw keeps late groups from what makes traffic rise, or deletes a version, where the files are not any more what
// that was decided on: somebody took a commit back, or put a hold into the record. Lowering goes on.
func (r *Reconciler) withdraw(ctx context.Context, tip reading, env rollout.EnvironmentWorld) {
	shared, hash := r.shared(env), resync.NewConnectionHash()
	for key, g := range r.running.groups {
		switch {
		case key.environment != env.Environment.Name || g.blind:
		case g.raises:
			g.withdraw(r.overtaken(ctx, tip, env, g.decisions)...)
		default:
			for _, s := range g.snapshots {
				if row := tip.row(resync.KeyOf(&s)); row == nil || resync.InputsOfKnown(row, *shared, hash) != g.inputs[s.Deployment] {
					g.withdraw(s.Deployment)
				}
			}
		}
	}
}

// overtaken are the worker deployments whose spec, connection or record is another one than when their decisions were
// committed, or cannot be read.
func (r *Reconciler) overtaken(ctx context.Context, tip reading, env rollout.EnvironmentWorld, decisions []*Decision) []rollout.Name {
	var rows []*rollout.Known
	for _, d := range decisions {
		if row := tip.row(keyOf(d)); row != nil {
			rows = append(rows, row)
		}
	}
	now, err := r.load(ctx, tip, env, rows)
	if err != nil {
		r.Log.WarnContext(ctx, "files could not be read again: what waits for a slow namespace is not raised", "environment", env.Environment.Name, "error", err)
	}
	hash := resync.NewConnectionHash()
	var out []rollout.Name
	for _, d := range decisions {
		at := slices.IndexFunc(now, func(s rollout.Snapshot) bool { return s.Deployment == d.Snapshot.Deployment })
		if at < 0 || now[at].SpecPath != d.Snapshot.SpecPath || now[at].Git.SpecBlob != d.Snapshot.Git.SpecBlob ||
			hash(now[at].Connection) != hash(d.Snapshot.Connection) || now[at].Record.Files[layout.Routing].Data != d.routing() {
			out = append(out, d.Snapshot.Deployment)
		}
	}
	return out
}

// routing is the content of routing.yaml once a decision is committed.
func (d *Decision) routing() string {
	if d.wrote != "" {
		return d.wrote
	}
	return d.Snapshot.Record.Files[layout.Routing].Data
}

// noteWritten keeps the records that a commit wrote.
func noteWritten(parts []Part) {
	for _, part := range parts {
		for _, f := range part.Files {
			if path.Base(f.Path) == layout.Routing {
				part.wrote = f.Data
			}
		}
	}
}

// withdraw has a group that is at work begin no more calls for worker deployments but those that lower.
func (g *group) withdraw(names ...rollout.Name) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.withdrawn == nil {
		g.withdrawn = map[rollout.Name]bool{}
	}
	for _, n := range names {
		g.withdrawn[n] = true
	}
}

// isWithdrawn reports whether a worker deployment was withdrawn from a group.
func (g *group) isWithdrawn(n rollout.Name) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.withdrawn[n]
}
