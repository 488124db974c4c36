package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// pooled is v2 on its way, with a pool whose template is part of the version, and workers of it.
func pooled(changes ...func(*v1alpha1.Pool)) change {
	return func(g *given) {
		pool := v1alpha1.Pool{Name: "activities", Replicas: replicas(4), Template: template("a1")}
		for _, c := range changes {
			c(&pool)
		}
		g.Spec.Spec.Template = template("v2")
		g.Spec.Spec.Pools = []v1alpha1.Pool{pool}
		hash := rollout.TemplateHash(g.Spec.Spec)
		build, _ := rollout.BuildIDFor(g.Spec.Spec, nil)
		inGit("v2")(g)
		up("v2")(g)
		r, o := g.version("v2"), g.listed("v2")
		r.BuildID, r.TemplateHash = build, hash
		r.Pools = []v1alpha1.RecordedPool{{Name: "activities", Deployment: "checkout-v2-activities", Replicas: pool.Replicas}}
		o.BuildID = build
		o.Workers = map[string]rollout.Pollers{"checkout-v2-activities": {Known: true, Count: 1, LastAccess: ago(20 * time.Second)}}
		g.Record.Files[layout.VersionFile(build, "deployment.yaml")] = rollout.File{Hash: r.Files["deployment.yaml"]}
		g.rec.Target = &v1alpha1.RoutingTarget{BuildID: build, TemplateHash: hash, Attempt: 1, Since: stamp(ago(5 * time.Minute))}
	}
}

func onQueues(names ...string) func(*v1alpha1.Pool) {
	return func(p *v1alpha1.Pool) { p.TaskQueues = names }
}

// last is the version that pooled makes, whose build ID follows from the pool.
func last(g *given) *rollout.VersionObservation {
	return &g.Observation.Versions[len(g.Observation.Versions)-1]
}

// A version is raised only when each of its pools has workers.
func TestPoolsHaveToServe(t *testing.T) {
	worker := func(p rollout.Pollers) change {
		return func(g *given) { last(g).Workers["checkout-v2-activities"] = p }
	}
	queue := func(q rollout.TaskQueue) change {
		return func(g *given) { last(g).Queues = append(last(g).Queues, q) }
	}
	quiet := polled("charges")
	quiet.Pollers = rollout.Pollers{Known: true}
	for _, c := range []struct {
		name   string
		given  change
		row    string
		reason rollout.Reason
	}{
		{"there", pooled(), "first-step", rollout.Ramping},
		{"not there", all(pooled(), worker(rollout.Pollers{Known: true})), "wait-for-pollers", rollout.WaitingForPollers},
		{"polled long ago", all(pooled(), worker(rollout.Pollers{Known: true, Count: 1, LastAccess: ago(91 * time.Second)})), "wait-for-pollers", rollout.WaitingForPollers},
		{"not known", all(pooled(), worker(rollout.Pollers{Reason: "away"})), "wait-for-pollers", rollout.StaleFacts},
		{"wants no workers", all(pooled(func(p *v1alpha1.Pool) { p.Replicas = replicas(0) }), worker(rollout.Pollers{Known: true})), "first-step", rollout.Ramping},
		{"its queue is served", all(pooled(onQueues("charges")), worker(rollout.Pollers{}), queue(polled("charges"))), "first-step", rollout.Ramping},
		{"its queue is not there", pooled(onQueues("charges")), "wait-for-pollers", rollout.WaitingForPollers},
		{"nobody polls its queue", all(pooled(onQueues("charges")), queue(quiet)), "wait-for-pollers", rollout.WaitingForPollers},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := decide(t, of(c.given), allowed)
			require.Equal(t, c.row, p.Row, p.Status.Conditions[0].Message)
			require.Equal(t, string(c.reason), p.Status.Conditions[0].Reason)
		})
	}
	require.Equal(t, []string{"checkout-v2-activities"}, Look(of(pooled())).Ask().Workers)
	require.Empty(t, Look(of(pooled(onQueues("charges")))).Ask().Workers)

	// Whatever the rows say: traffic without a worker of the pool is refused.
	s := of(pooled())
	plan := decide(t, s, allowed)
	s.Observation.Version(plan.Target.BuildID).Workers = nil
	require.Equal(t, []string{"traffic would be raised to " + plan.Target.BuildID + " without a worker of its pool activities"}, Never(s, plan))
}

// What happens to a version's first Deployment happens to its pools.
func TestPoolsLiveWithTheirVersion(t *testing.T) {
	created := decide(t, of(asks("v2"), func(g *given) {
		g.Spec.Spec.Pools = []v1alpha1.Pool{{Name: "slow", Template: template("s1")}, {Name: "activities", Replicas: replicas(4), Template: template("a1")}}
	}), allowed)
	made := created.Record.Versions[len(created.Record.Versions)-1]
	require.Equal(t, []string{"activities", "slow"}, []string{made.Pools[0].Name, made.Pools[1].Name})
	require.Equal(t, made.Pools, created.Versions[0].Pools)
	require.Contains(t, made.Pools[0].Deployment, "activities")

	with := func(n *int32) change {
		return func(g *given) {
			g.version("v1").Pools = []v1alpha1.RecordedPool{{Name: "activities", Deployment: "checkout-v1-activities", Replicas: n}}
		}
	}
	pools := func(p rollout.Plan) []v1alpha1.RecordedPool {
		return rollout.FindVersion(p.Record.Versions, id("v1")).Pools
	}
	down := decide(t, twice(of(promoted(100*time.Hour), drained("v1", 90*time.Hour), with(replicas(4)))), allowed)
	require.Equal(t, replicas(0), pools(down)[0].Replicas)
	require.Equal(t, v1alpha1.GuardOff, down.Versions[0].Guard)

	back := decide(t, of(promoted(100*time.Hour), scaledDown("v1", time.Hour), drains("v1"), with(replicas(0))), allowed)
	require.Equal(t, replicas(1), pools(back)[0].Replicas, "the spec has no such pool any more")
	again := decide(t, of(promoted(100*time.Hour), scaledDown("v1", time.Hour), drains("v1"), with(replicas(0)), func(g *given) {
		g.Spec.Spec.Pools = []v1alpha1.Pool{{Name: "activities", Replicas: replicas(7), Template: template("a1")}}
	}), allowed)
	require.Equal(t, replicas(7), pools(again)[0].Replicas)

	elsewhere := decide(t, of(with(replicas(4)), func(g *given) { g.Connection.Spec.HostPort = "elsewhere:7233" }), allowed)
	require.Equal(t, []any{rollout.ReconnectVersion, pools(elsewhere)}, []any{elsewhere.Versions[0].Op, elsewhere.Versions[0].Pools})
}

// The spec's number of a pool reaches versions with traffic, and no others.
func TestPoolsAreScaled(t *testing.T) {
	more := func(g *given) { g.Spec.Spec.Pools[0].Replicas = replicas(9) }
	p := decide(t, of(pooled(), more), allowed)
	require.Equal(t, replicas(9), p.Record.Versions[len(p.Record.Versions)-1].Pools[0].Replicas)
	require.Equal(t, rollout.EditVersion, p.Versions[0].Op)
	other := decide(t, of(pooled(), more, func(g *given) {
		g.Spec.Spec.Template, g.Spec.Spec.Pools[0].Template = template("v3"), template("a3")
	}), allowed)
	require.Equal(t, replicas(4), other.Record.Versions[1].Pools[0].Replicas)
}

// A pool that runs with a number of replicas keeps it where the spec has none any more.
func TestPoolsKeepTheirNumber(t *testing.T) {
	none := func(g *given) { g.Spec.Spec.Pools[0].Replicas = nil }
	require.Empty(t, decide(t, of(pooled(), none), allowed).Versions)
	p := decide(t, of(pooled(), none, func(g *given) {
		g.Spec.Spec.WorkerOptions.UnsafeCustomBuildID, g.Spec.Spec.Template = g.rec.Target.BuildID, template("v3")
	}), allowed)
	require.Equal(t, replicas(4), p.Versions[0].Pools[0].Replicas, "updated in place")
}
