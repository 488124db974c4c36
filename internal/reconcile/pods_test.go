package reconcile

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/resync"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// cluster says the same of every worker deployment, and keeps what it was asked.
type cluster struct {
	says     rollout.Cluster
	changes  uint64
	asked    []rollout.ClusterAsk
	patience time.Duration
}

func (c *cluster) Read(_ context.Context, asks []rollout.ClusterAsk, patience time.Duration) []rollout.Cluster {
	c.asked, c.patience = asks, patience
	out := make([]rollout.Cluster, len(asks))
	for i := range out {
		out[i] = c.says
	}
	return out
}

func (c *cluster) Changes() uint64 { return c.changes }

func (c *cluster) say(at time.Time, ready int) {
	c.says = rollout.Cluster{At: at, Versions: []rollout.VersionPods{{BuildID: "v1", Desired: 2, Ready: ready}}}
	c.changes++
}

// looker is a policy that looks at parts of its input.
type looker struct {
	window
	parts []string
}

func (l looker) Looks() rollout.Looks {
	out := rollout.Looks{Parts: map[string]bool{}}
	for _, p := range l.parts {
		out.Parts[p] = true
	}
	return out
}

// The cluster is in every decision, of the versions that have files in Git. It is waited for only where policies look
// at it, or the bot runs one cycle.
func TestPodsAreAsked(t *testing.T) {
	s := newScene(t)
	r := s.reconciler()
	require.Nil(t, s.once(r).Decisions[0].Snapshot.Cluster, "the bot reads none")
	c := &cluster{}
	c.say(s.now, 1)
	r.Cluster = c
	s.ready()
	got := s.once(r).Decisions[0].Snapshot
	require.Equal(t, &c.says, got.Cluster)
	require.Equal(t, "shop", c.asked[0].Namespace)
	require.Len(t, c.asked[0].Versions, 1)
	require.Equal(t, []string{got.Record.Routing.Spec.Versions[0].Deployment}, c.asked[0].Versions[0].Deployments)
	require.Zero(t, c.patience)
	r.ClusterPatience = time.Minute
	s.once(r)
	require.Equal(t, time.Minute, c.patience)
	r.ClusterPatience = 0
	r.JudgeFor = func(rollout.EnvironmentWorld) Judge {
		return looker{window{s, time.Time{}}, []string{"cluster"}}
	}
	s.once(r)
	require.Equal(t, DefaultClusterPatience, c.patience)
}

// A settled worker deployment is decided again when the cluster says something else of it, where policies look at that.
// It is decided once, and not because time passed.
func TestPodsAreInputs(t *testing.T) {
	for parts, looked := range map[string]int{"cluster": 1, "git": 0} {
		s, r, _ := frozenScene(t, &kept{list: &rollout.Listing{}})
		c := &cluster{}
		c.say(s.now, 2)
		r.Cluster = c
		w := window{s, s.now.Add(2 * time.Minute)}
		r.JudgeFor = func(rollout.EnvironmentWorld) Judge { return looker{w, []string{parts}} }
		again := func() int { return len(s.once(r).Decisions) }
		s.world.Environments[0].Waivers = nil
		r.resync = resync.Table{} // decided before there was a cluster
		require.Equal(t, 1, again())
		require.Zero(t, again(), "it is settled")
		s.now = s.now.Add(time.Second)
		c.say(s.now, 2)
		require.Zero(t, again(), "the same, later")
		c.say(s.now, 1)
		require.Equal(t, looked, again(), parts)
		require.Zero(t, again())
		tip, err := r.tip(t.Context())
		require.NoError(t, err)
		due := func() int {
			_, resting := r.split(tip.World.Environments[0], r.shared(tip.World.Environments[0]), resync.NewConnectionHash())
			return len(r.moved(t.Context(), tip.World.Environments[0], resting))
		}
		require.Zero(t, due())
		c.says = rollout.Cluster{Problem: "no answer"}
		require.Zero(t, due(), "nothing is compared while the cluster did not change")
		c.changes++
		require.Equal(t, looked, due(), parts)
		require.Equal(t, looked, due(), "until it is decided")
		require.Equal(t, looked, again(), parts)
		require.Zero(t, again())
		c.say(s.now, 1)
		require.Equal(t, looked, again(), parts)
		require.Zero(t, again())
	}
}

// Nothing of a cluster is kept for decisions without the repository.
func TestPodsAreForgotten(t *testing.T) {
	require.Nil(t, asRead(rollout.Snapshot{Cluster: &rollout.Cluster{}}).Cluster)
}
