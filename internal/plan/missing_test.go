package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// createdAgo sets when a version became the target, and when its files were written.
func createdAgo(tag string, target, files time.Duration) change {
	return func(g *given) {
		g.rec.Target.Since, g.version(tag).CreatedAt = stamp(ago(target)), stamp(ago(files))
	}
}

// Where workers are is asked for once they have been missing for a minute, and of no version that registered.
func TestAskForMissingWorkers(t *testing.T) {
	pooled := func(g *given) {
		g.version("v2").Pools = []v1alpha1.RecordedPool{{Name: "gpu", Deployment: "checkout-v2-gpu"}}
	}
	want := &rollout.MissingAsk{BuildID: id("v2"), Workers: []string{"checkout-v2"}}
	missing := all(wants("v2"), inGit("v2"))
	for name, c := range map[string]struct {
		given change
		want  *rollout.MissingAsk
	}{
		"missing":            {missing, want},
		"with a pool":        {all(missing, pooled), &rollout.MissingAsk{BuildID: id("v2"), Workers: []string{"checkout-v2", "checkout-v2-gpu"}}},
		"for a minute":       {all(missing, createdAgo("v2", time.Minute, time.Minute)), nil},
		"for more":           {all(missing, createdAgo("v2", time.Minute+1, time.Minute+1)), want},
		"files just written": {all(missing, createdAgo("v2", time.Hour, time.Minute)), nil},
		"a target again":     {all(missing, createdAgo("v2", time.Minute, time.Hour)), nil},
		"no files":           {wants("v2"), nil},
		"registered":         {candidate(), nil},
		"steady":             {none, nil},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, Look(of(c.given)).Ask().Missing) })
	}
}

// Three messages, by what Temporal knows.
func TestWorkersThatDoNotCome(t *testing.T) {
	const (
		yet = "version v2 has not registered with Temporal yet"
		fix = "with TEMPORAL_DEPLOYMENT_NAME and TEMPORAL_WORKER_BUILD_ID of their environment"
	)
	knows := func(m rollout.Missing) change { return func(g *given) { g.Observation.Missing = &m } }
	beside := func(g *given) {
		g.listed("v1").Queues = []rollout.TaskQueue{polled("orders"), polled("orders"), polled("mail")}
		g.listed("v1").Queues[0].Unversioned, g.listed("v1").Queues[1].Unversioned = rollout.Yes, rollout.Yes
	}
	misnamed := ": its build is a version of worker deployment default/chekout, other: if these are its own workers, they use a wrong deployment name: let them register " + fix
	unversioned := ": its pods poll task queue orders, mail without versioning: let them turn it on, " + fix
	for name, c := range map[string]struct {
		given change
		want  string
	}{
		"not asked":             {none, yet},
		"nothing":               {knows(rollout.Missing{}), yet + ": Temporal knows no worker of it under any name: look whether its pods run, and whether they reach Temporal"},
		"a wrong name":          {knows(rollout.Missing{Deployments: []string{"default/chekout", "other"}}), yet + misnamed},
		"unversioned":           {all(knows(rollout.Missing{Deployments: []string{"other"}, Unversioned: []string{"orders", "mail"}}), beside), yet + unversioned},
		"unversioned beside it": {all(knows(rollout.Missing{}), beside), yet + ": Temporal knows no worker of it, but unversioned workers on task queue orders: if these are its own, let them turn versioning on, " + fix},
		"registered meanwhile":  {all(knows(rollout.Missing{}), up("v2"), noPollers("v2")), "no worker of v2 polled the workflow task queue orders in the last 1m30s"},
		"too late":              {all(knows(rollout.Missing{}), createdAgo("v2", time.Hour, time.Hour)), yet + ": Temporal knows no worker of it under any name: look whether its pods run, and whether they reach Temporal (for longer than 10m0s: look at its pods)"},
		"no current version": {all(knows(rollout.Missing{}), func(g *given) {
			g.Observation.Routing = rollout.RoutingConfig{}
			g.rec.Promotions, g.rec.Basis, g.rec.Decided, g.rec.Desired = nil, nil, nil, v1alpha1.DesiredRouting{}
		}), yet + ": Temporal knows no worker of it under any name: look whether its pods run, and whether they reach Temporal"},
	} {
		t.Run(name, func(t *testing.T) {
			p := Look(of(wants("v2"), inGit("v2"), c.given)).Propose()
			require.Equal(t, rollout.WaitingForPollers, p.State.Reason)
			require.Equal(t, name == "unversioned" || name == "too late", p.State.Stalled, "what does not pass with time reaches status.yaml at once")
			require.Equal(t, c.want, named(p.State.Message))
		})
	}
}
