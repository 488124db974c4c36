package reconcile

import (
	"context"
	"path"

	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/compose"
	"github.com/rampart-gitops/rampart/internal/resync"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// withdraw keeps late groups from raising traffic, or deleting a version, where the files that this was decided on
// changed. Somebody may have taken a commit back, or put a hold into the record. Lowering goes on.
func (r *Reconciler) withdraw(ctx context.Context, tip reading, env rollout.EnvironmentWorld, shared *resync.Shared,
	hash resync.ConnectionHash) {
	for key, g := range r.running.groups {
		switch {
		case key.environment != env.Environment.Name || g.blind:
		case g.raises:
			g.withdraw(r.overtaken(ctx, tip, env, g.decisions, hash)...)
		default:
			for _, s := range g.snapshots {
				if row := tip.row(resync.KeyOf(&s)); row == nil ||
					resync.InputsOfEntry(row, *shared, hash) != g.inputs[s.Deployment] {
					g.withdraw(s.Deployment)
				}
			}
		}
	}
}

// overtaken are the worker deployments whose spec, connection or record is another one than when their decisions were
// committed, or cannot be read.
func (r *Reconciler) overtaken(ctx context.Context, tip reading, env rollout.EnvironmentWorld,
	decisions []*rollout.Decision, hash resync.ConnectionHash) []rollout.Name {
	var rows []*rollout.IndexEntry
	for _, d := range decisions {
		if row := tip.row(keyOf(d)); row != nil {
			rows = append(rows, row)
		}
	}
	var loaded []rollout.Snapshot
	release, err := r.repository.take(ctx)
	if err == nil {
		loaded, err = tip.load(ctx, tip.Snapshots(env.Environment.Name, rows))
		release()
	}
	if err != nil {
		r.Log.WarnContext(ctx, "files could not be read again: what waits for a slow namespace is not raised",
			"environment", env.Environment.Name, "error", err)
	}
	now := map[rollout.Name]rollout.Snapshot{}
	for _, s := range loaded {
		now[s.Deployment] = s
	}
	var out []rollout.Name
	for _, d := range decisions {
		was := &d.Snapshot
		is, ok := now[was.Deployment]
		if !ok || is.SpecPath != was.SpecPath || is.Git.SpecBlob != was.Git.SpecBlob ||
			hash(is.Connection) != hash(was.Connection) || is.Record.Files[layout.Routing].Data != routingOf(d) {
			out = append(out, was.Deployment)
		}
	}
	return out
}

// routingOf is the content of routing.yaml once a decision is committed.
func routingOf(d *rollout.Decision) string {
	if d.Wrote != "" {
		return d.Wrote
	}
	return d.Snapshot.Record.Files[layout.Routing].Data
}

// noteWritten keeps the records that a commit wrote.
func noteWritten(parts []compose.Part) {
	for _, part := range parts {
		for _, f := range part.Files {
			if path.Base(f.Path) == layout.Routing {
				part.Wrote = f.Data
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
