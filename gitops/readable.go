package gitops

import (
	"context"
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// readableAgain is the time after which history is looked through again for a record that can be read. It counts if
// there was none, or if history could not be looked through.
const readableAgain = 5 * time.Minute

// recordKey is a record as it is at a tip.
type recordKey struct{ dir, tree string }

// earlier is what history has of a record that cannot be read.
type earlier struct {
	routing *v1alpha1.Routing // nil: none that can be read
	retry   time.Time         // when it is looked for again, if there is none
}

// unreadableRecord is a snapshot whose record cannot be read.
type unreadableRecord struct {
	env, entry int // entry is its index in the environment's Entries; -1: it is in Deployments
	at         int // its index in Deployments
	key        recordKey
	of         rollout.Name
	branch     string
}

// withLastReadable gives all records of a world that cannot be read what history has of them last. Where it cannot be
// found out, they have none: nothing of these worker deployments moves then.
func (r *Repository) withLastReadable(ctx context.Context, world rollout.World,
	unreadable []unreadableRecord) rollout.World {
	if len(unreadable) == 0 {
		r.readable = nil
		return world
	}
	before := r.readable
	r.readable = map[recordKey]earlier{}
	left := slices.DeleteFunc(slices.Clone(unreadable), func(u unreadableRecord) bool {
		was, known := before[u.key]
		if known {
			r.readable[u.key] = was
		}
		return known && (was.routing != nil || r.cfg.Now().Before(was.retry))
	})
	if len(left) > 0 {
		r.lookForReadable(ctx, left)
	}
	world.Environments = slices.Clone(world.Environments)
	for _, u := range unreadable {
		if routing := r.readable[u.key].routing; routing != nil {
			u.addRecord(&world.Environments[u.env], routing)
		}
	}
	return world
}

// unreadableRecords are those of a world. They are never partial.
func (r *Repository) unreadableRecords(world rollout.World) []unreadableRecord {
	var out []unreadableRecord
	for i, env := range world.Environments {
		add := func(s *rollout.Snapshot, entry, at int) {
			if s != nil && s.Record.RoutingProblem != nil && s.Record.LastReadable == nil {
				out = append(out, unreadableRecord{env: i, entry: entry, at: at,
					key: recordKey{s.Record.Dir, s.Record.Tree}, of: s.Deployment,
					branch: r.outputBranch(env.Environment)})
			}
		}
		for k := range env.Deployments {
			add(&env.Deployments[k], -1, k)
		}
		for k, entry := range env.Entries {
			add(entry.Full, k, -1)
		}
	}
	return out
}

// addRecord adds the record to a copy of the snapshot: others may have the snapshot as it was read.
func (u unreadableRecord) addRecord(env *rollout.EnvironmentWorld, routing *v1alpha1.Routing) {
	if u.entry < 0 {
		env.Deployments = slices.Clone(env.Deployments)
		env.Deployments[u.at].Record.LastReadable = routing
		return
	}
	full := *env.Entries[u.entry].Full
	full.Record.LastReadable = routing
	entry := *env.Entries[u.entry]
	entry.Full = &full
	env.Entries = slices.Clone(env.Entries)
	env.Entries[u.entry] = &entry
}

// lookForReadable looks through history for records that can be read, newest first, on each branch once.
func (r *Repository) lookForReadable(ctx context.Context, left []unreadableRecord) {
	for len(left) > 0 {
		branch := left[0].branch
		here := slices.DeleteFunc(slices.Clone(left), func(u unreadableRecord) bool { return u.branch != branch })
		left = slices.DeleteFunc(left, func(u unreadableRecord) bool { return u.branch == branch })
		seen := make([]string, len(here))
		err := r.recent(ctx, r.lastTips[branch], false, func(c git.CommitInfo) (bool, error) {
			for i, u := range here {
				if r.readable[u.key].routing != nil {
					continue
				}
				all, whole, err := r.recordAt(ctx, c, u.key.dir, &seen[i])
				if err != nil {
					return false, err
				}
				if whole && len(all) == 1 && all[0].Spec.WorkerDeployment == u.of.String() {
					r.readable[u.key] = earlier{routing: all[0]}
					r.cfg.Log.WarnContext(ctx, "a record cannot be read: traffic is only lowered, by the last "+
						"version of it in history", "deployment", u.of.String(),
						"commit", c.Hash.String())
				}
			}
			return slices.ContainsFunc(here, func(u unreadableRecord) bool {
				return r.readable[u.key].routing == nil
			}), nil
		})
		if err != nil {
			r.cfg.Log.WarnContext(ctx, "records that can be read could not be looked for in history", "branch", branch,
				"error", err)
		}
		for _, u := range here {
			if r.readable[u.key].routing == nil {
				r.readable[u.key] = earlier{retry: r.cfg.Now().Add(readableAgain)}
			}
		}
	}
}
