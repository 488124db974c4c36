package reconcile

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/internal/resync"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// DefaultClusterPatience is how long a namespace of the cluster is waited for that is read for the first time, where
// policies look at pods.
const DefaultClusterPatience = 3 * time.Second

// withPods adds what the cluster says of the snapshots' pods, if the bot reads one. Unless ClusterPatience is set, only
// an environment whose policies look at pods waits for it.
func (p *Planner) withPods(ctx context.Context, g *group, snapshots []rollout.Snapshot) []rollout.Snapshot {
	if p.Cluster == nil || len(snapshots) == 0 {
		return snapshots
	}
	patience := p.ClusterPatience
	if g.judge != nil && g.judge.Looks().At(rollout.PartCluster) {
		patience = max(patience, DefaultClusterPatience)
	}
	asks := make([]rollout.ClusterAsk, len(snapshots))
	for i := range snapshots {
		asks[i] = snapshots[i].ClusterAsk()
	}
	out := slices.Clone(snapshots)
	for i, said := range p.Cluster.Read(ctx, asks, patience) {
		out[i].Cluster = &said
	}
	return out
}

// looksAtPods reports whether policies of an environment may look at pods.
func (p *Planner) looksAtPods(env rollout.EnvironmentWorld) bool {
	return p.Cluster != nil && p.JudgeFor != nil && p.JudgeFor(env).Looks().At(rollout.PartCluster)
}

// podsSeen keeps what a decision was made on, where policies look at pods; nil: nothing of it.
func (r *Reconciler) podsSeen(env rollout.EnvironmentWorld, s *rollout.Snapshot) *resync.Pods {
	if s.Cluster == nil || !r.looksAtPods(env) {
		return nil
	}
	return &resync.Pods{Ask: s.ClusterAsk(), Said: podsSaid(*s.Cluster)}
}

// podsMoved reports whether the cluster says something else now. It is not asked while nothing changed in it.
func podsMoved(ctx context.Context, c Cluster, seen *resync.Pods) bool {
	changes := c.Changes()
	if seen == nil || seen.Changes == changes {
		return false
	}
	if podsSaid(c.Read(ctx, []rollout.ClusterAsk{seen.Ask}, 0)[0]) != seen.Said {
		return true
	}
	seen.Changes = changes
	return false
}

// podsSaid is what was said, whenever that was.
func podsSaid(c rollout.Cluster) string {
	c.At = time.Time{}
	b, err := json.Marshal(c)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
