package reconcile

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// crowd is worker deployments that want to roll a version out beside one that is current. Its policy lets some start at
// a time.
type crowd struct {
	*scene
	most int
	// mu guards routing and calls: groups are raised while others are observed.
	mu      sync.Mutex
	routing map[rollout.Name]rollout.RoutingConfig
	// target is the build that all want.
	target string
	// judged counts what the policy was asked about starts.
	judged atomic.Int64
}

func newCrowd(t *testing.T, names ...string) *crowd {
	t.Helper()
	c := &crowd{scene: newScene(t), most: 1, routing: map[rollout.Name]rollout.RoutingConfig{}}
	env := &c.world.Environments[0]
	first := env.Deployments[0]
	env.Deployments = nil
	for _, name := range names {
		docs, problems := v1alpha1.Decode("spec.yaml", []byte(strings.NewReplacer("name: checkout", "name: "+name,
			"{strategy: AllAtOnce}", "{strategy: Progressive, steps: [{rampPercentage: 10, pauseDuration: 1m}]}").Replace(specText)))
		require.Empty(t, problems)
		d := first
		d.Spec, d.Deployment = docs[0].Object.(*v1alpha1.WorkerDeployment), rollout.Name{Namespace: "shop", Name: name}
		d.Record.Dir = "deploy/" + d.Deployment.String()
		env.Deployments = append(env.Deployments, d)
		c.routing[d.Deployment] = rollout.RoutingConfig{Current: "old", CurrentChangedAt: c.now.Add(-time.Hour)}
		c.target, _ = rollout.BuildIDFor(d.Spec.Spec, nil)
	}
	return c
}

// Read gives each worker deployment the rollouts that the records of the others desire.
func (c *crowd) Read(ctx context.Context) (rollout.World, error) {
	world, err := c.scene.Read(ctx)
	env := &world.Environments[0]
	var all []rollout.InProgress
	for _, d := range env.Deployments {
		if r, ok := d.Record.InProgress(d.Deployment); ok {
			all = append(all, r)
		}
	}
	for i := range env.Deployments {
		env.Deployments[i].Rollouts = nil
		for _, r := range all {
			if r.Deployment != env.Deployments[i].Deployment {
				env.Deployments[i].Rollouts = append(env.Deployments[i].Rollouts, r)
			}
		}
	}
	return world, err
}

func (c *crowd) Observe(_ context.Context, _ v1alpha1.Connection, ask rollout.Ask) rollout.Observation {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := rollout.Observation{At: c.now, Exists: rollout.Yes, Routing: c.routing[ask.Deployment], ManagerIdentity: "rampart/default",
		Stuck: rollout.Stuck{Unattributed: rollout.Counted(0), Problems: rollout.Counted(0)}}
	for _, id := range []string{"old", c.target} {
		o.Versions = append(o.Versions, rollout.VersionObservation{BuildID: id, QueuesKnown: rollout.Yes,
			Closed: rollout.ClosedCounts{Known: true, Completed: 100},
			Queues: []rollout.TaskQueue{{Name: "q", Type: rollout.QueueWorkflow, Unversioned: rollout.No,
				Pollers: rollout.Pollers{Known: true, Count: 1, LastAccess: c.now}}}})
	}
	return o
}

// Judge holds what starts while as many as may are in progress.
func (c *crowd) Judge(ctx context.Context, s rollout.Snapshot, p rollout.Proposal) rollout.Verdicts {
	v := c.scene.Judge(ctx, s, p)
	for _, a := range p.Actions {
		if !s.Starts(a) {
			continue
		}
		c.judged.Add(1)
		if len(s.Rollouts) >= c.most {
			var names []string
			for _, r := range s.Rollouts {
				names = append(names, r.Deployment.Name)
			}
			v.Actions[a.ID] = rollout.Verdict{Effect: rollout.HoldEffect, Findings: []rollout.Finding{{Package: "rampart.rollout",
				Rule: "rollout.concurrency", Effect: rollout.HoldEffect, Message: strings.Join(names, " ")}}}
		}
	}
	return v
}

// Commit makes what is committed the record of the next read.
func (c *crowd) Commit(_ context.Context, commit rollout.Commit) (string, error) {
	if c.moved > 0 {
		c.moved--
		return "", fmt.Errorf("refused: %w", rollout.ErrMoved)
	}
	c.commits = append(c.commits, commit)
	for _, f := range commit.Changes {
		for _, env := range c.world.Environments {
			for i := range env.Deployments {
				c.write(&env.Deployments[i].Record, f)
			}
		}
	}
	return fmt.Sprint(len(c.commits)), nil
}

// write brings a change into a record, if it is of that.
func (c *crowd) write(record *rollout.Record, f rollout.FileChange) {
	name, below := strings.CutPrefix(f.Path, record.Dir+"/")
	if !below {
		return
	}
	if record.Files == nil {
		record.Files = map[string]rollout.File{}
	}
	record.Files[name] = rollout.File{Data: f.Data, Hash: blobHash(f.Data)}
	docs, problems := v1alpha1.Decode(name, []byte(f.Data))
	require.Empty(c.t, problems)
	if routing, ok := docs[0].Object.(*v1alpha1.Routing); ok {
		record.Routing = routing
	}
}

func (c *crowd) Raise(_ context.Context, on rollout.Subject, call rollout.RoutingCall) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	to, step := c.routing[on.Deployment], call.Steps[len(call.Steps)-1]
	if step.Kind == rollout.SetCurrent {
		to = rollout.RoutingConfig{Current: step.BuildID, CurrentChangedAt: c.now}
	} else {
		to.HasRamp, to.Ramping, to.Percentage, to.PercentageChangedAt, to.RampingChangedAt = true, step.BuildID, step.Percentage, c.now, c.now
	}
	c.routing[on.Deployment] = to
	c.calls = append(c.calls, fmt.Sprintf("%s %s", on.Deployment.Name, step.Kind))
	return nil
}

func (c *crowd) reconciler() *Reconciler {
	r := c.scene.reconciler()
	r.Source, r.Observer, r.Router, r.Committer, r.JudgeFor = c, c, c, c, func(rollout.EnvironmentWorld) Judge { return c }
	return r
}

// held is who is in the way of each worker deployment that policy holds.
func held(report Report) map[string]string {
	out := map[string]string{}
	for _, d := range report.Decisions {
		for _, h := range d.Plan.Held {
			out[d.Plan.Deployment.Name] = h.Verdict.Findings[0].Message
		}
	}
	return out
}

// Of those that could start in the same cycle one does; the next one starts when it is done.
func TestOneRolloutAfterTheOther(t *testing.T) {
	c := newCrowd(t, "a", "b", "c")
	r := c.reconciler()
	c.once(r) // files
	require.Empty(t, c.calls)

	report := c.once(r)
	require.Equal(t, []string{"a SetRamp"}, c.calls)
	require.Equal(t, map[string]string{"b": "a", "c": "a"}, held(report))

	c.calls = nil
	report = c.once(r)
	require.Empty(t, c.calls)
	require.Equal(t, map[string]string{"b": "a", "c": "a"}, held(report), "by its record")

	c.now = c.now.Add(2 * time.Minute)
	report = c.once(r)
	require.Equal(t, []string{"a SetCurrent"}, c.calls, "what has begun goes on")
	require.Equal(t, map[string]string{"b": "a", "c": "a"}, held(report), "in this cycle it was recorded still")

	c.calls = nil
	report = c.once(r)
	require.Equal(t, []string{"b SetRamp"}, c.calls)
	require.Equal(t, map[string]string{"c": "b"}, held(report))
}

func TestTwoRolloutsAtATime(t *testing.T) {
	c := newCrowd(t, "a", "b", "c", "d")
	c.most = 2
	r := c.reconciler()
	c.once(r)
	report := c.once(r)
	require.Equal(t, []string{"a SetRamp", "b SetRamp"}, c.calls)
	require.Equal(t, map[string]string{"c": "a b", "d": "a b"}, held(report))
}

// A push that was lost is decided from the start: nothing was admitted.
func TestALostPushAdmitsNobody(t *testing.T) {
	c := newCrowd(t, "a", "b")
	r := c.reconciler()
	c.once(r)
	c.moved = 1
	report := c.once(r)
	require.Equal(t, []string{"a SetRamp"}, c.calls)
	require.Equal(t, map[string]string{"b": "a"}, held(report))
}

// A raise that did not work is in the record: it is tried again before anybody else starts.
func TestAnUnfinishedStartKeepsItsPlace(t *testing.T) {
	c := newCrowd(t, "a", "b")
	r := c.reconciler()
	c.once(r)
	c.once(r)
	c.routing[rollout.Name{Namespace: "shop", Name: "a"}] = rollout.RoutingConfig{Current: "old", CurrentChangedAt: c.now.Add(-time.Hour)}
	c.calls = nil
	report := c.once(r)
	require.Equal(t, []string{"a SetRamp"}, c.calls)
	require.Equal(t, map[string]string{"b": "a"}, held(report))
}

// What a dry run shows is what the bot does, and nothing is decided twice where one starts alone.
func TestPlanAdmitsAsWell(t *testing.T) {
	c := newCrowd(t, "a", "b")
	r := c.reconciler()
	c.once(r)
	_, decided, err := r.Plan(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]string{"b": "a"}, held(Report{Decisions: decided[0]}))
	require.EqualValues(t, 3, c.judged.Load(), "both, and the second once more")

	world, err := r.Observe(t.Context())
	require.NoError(t, err)
	again := DecideAll(t.Context(), c, world.Environments[0].Deployments)
	require.Equal(t, map[string]string{"b": "a"}, held(Report{Decisions: again}))

	b := DecideFor(t.Context(), c, world.Environments[0].Deployments, rollout.Name{Namespace: "shop", Name: "b"})
	require.Equal(t, again[1], b)

	c.judged.Store(0)
	DecideAll(t.Context(), c, world.Environments[0].Deployments[:1])
	require.EqualValues(t, 1, c.judged.Load())
}

func TestAdmitLeavesWhatItIsGiven(t *testing.T) {
	c := newCrowd(t, "a", "b")
	r := c.reconciler()
	c.once(r)
	world, err := r.Observe(t.Context())
	require.NoError(t, err)
	var decided []*rollout.Decision
	for _, s := range world.Environments[0].Deployments {
		decided = append(decided, Decide(t.Context(), c, s))
	}
	Admit(t.Context(), c, decided)
	require.Empty(t, held(Report{Decisions: decided}))
}
