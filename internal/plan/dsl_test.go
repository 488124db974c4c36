package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// The tests describe a snapshot by changes to one in which version v1 is current and all is done. Builds are named by
// their image tag: v1 stands for the build ID of image app:v1.

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time             { return noon.Add(-d) }
func stamp(t time.Time) v1alpha1.Time           { return v1alpha1.NewTime(t) }
func replicas(n int32) *int32                   { return &n }
func lasting(d time.Duration) v1alpha1.Duration { return v1alpha1.Duration{Duration: d} }

// template is a pod template with one container of the image app:<tag>.
func template(tag string) v1alpha1.PodTemplate {
	image := "app:" + tag
	return v1alpha1.PodTemplate{FirstImage: image, Raw: json.RawMessage(fmt.Sprintf(`{"spec":{"containers":[{"image":%q,"name":"worker"}]}}`, image))}
}

func hash(tag string) string {
	return rollout.TemplateHash(v1alpha1.WorkerDeploymentSpec{Template: template(tag)})
}

// id is the build ID of image app:<tag>; a tag that begins with = stands for itself.
func id(tag string) string {
	if own, ok := strings.CutPrefix(tag, "="); ok || tag == "" {
		return own
	}
	return tag + "-" + hash(tag)[:8]
}

// named puts tags in the place of build IDs.
func named(text string) string {
	for _, tag := range []string{"v0", "v1", "v2", "v3", "v4"} {
		text = strings.ReplaceAll(text, id(tag), tag)
	}
	return text
}

// given is a snapshot that a test changes.
type given struct {
	rollout.Snapshot
	rec *v1alpha1.RoutingSpec
}

type change func(*given)

const owner = "rampart/prod"

func steady() *given {
	deadline := int32(600)
	spec := &v1alpha1.WorkerDeployment{
		APIVersion: v1alpha1.TemporalAPIVersion, Kind: v1alpha1.KindWorkerDeployment,
		Metadata: v1alpha1.ObjectMeta{Name: "checkout", Namespace: "payments"},
		Spec: v1alpha1.WorkerDeploymentSpec{
			Replicas: replicas(2), Template: template("v1"), ProgressDeadlineSeconds: &deadline,
			Rollout: v1alpha1.RolloutStrategy{
				Strategy: v1alpha1.Progressive, Rollback: v1alpha1.RollbackPolicy{Window: lasting(time.Hour)},
				Steps: []v1alpha1.RolloutStep{{RampPercentage: 10, PauseDuration: lasting(10 * time.Minute)}, {RampPercentage: 50, PauseDuration: lasting(10 * time.Minute)}},
			},
			Sunset:        v1alpha1.SunsetStrategy{ScaledownDelay: lasting(time.Hour), DeleteDelay: lasting(24 * time.Hour)},
			WorkerOptions: v1alpha1.WorkerOptions{ConnectionRef: v1alpha1.ConnectionRef{Name: "temporal"}, TemporalNamespace: "prod"},
		},
	}
	g := &given{Snapshot: rollout.Snapshot{
		Now: noon, Deployment: rollout.Name{Namespace: "payments", Name: "checkout"},
		Environment: v1alpha1.Environment{Name: "prod", ManagerIdentity: owner, Approval: v1alpha1.Approval{Mode: v1alpha1.Direct}},
		Spec:        spec, SpecPath: "workers/checkout.yaml", Limits: rollout.DefaultLimits(),
		Connection: &v1alpha1.Connection{Metadata: v1alpha1.ObjectMeta{Name: "temporal"}, Spec: v1alpha1.ConnectionSpec{HostPort: "temporal:7233"}},
		Record:     rollout.Record{Dir: "deploy/prod/payments/checkout", Routing: &v1alpha1.Routing{}, Files: map[string]rollout.File{}},
		Observation: rollout.Observation{At: noon, Exists: rollout.Yes, ManagerIdentity: owner, ConflictToken: []byte("token"),
			Routing: rollout.RoutingConfig{Current: id("v1"), CurrentChangedAt: ago(48 * time.Hour), Revision: 7},
			Stuck:   rollout.Stuck{Unattributed: rollout.Counted(0), Problems: rollout.Counted(0)}},
	}}
	g.rec = &g.Record.Routing.Spec
	*g.rec = v1alpha1.RoutingSpec{
		WorkerDeployment: "payments/checkout", TemporalNamespace: "prod", SpecPath: "workers/checkout.yaml",
		Basis:      &v1alpha1.RoutingBasis{},
		Target:     &v1alpha1.RoutingTarget{BuildID: id("v1"), TemplateHash: hash("v1"), Attempt: 1, Since: stamp(ago(49 * time.Hour))},
		Promotions: []v1alpha1.Promotion{{BuildID: id("v1"), At: stamp(ago(48 * time.Hour))}},
	}
	for _, c := range []change{inGit("v1"), up("v1"), desires("v1", "", 0)} {
		c(g)
	}
	g.version("v1").RoutedAt = stamp(ago(48 * time.Hour))
	return g
}

// of builds a snapshot from changes to the steady one.
func of(changes ...change) rollout.Snapshot {
	g := steady()
	for _, c := range changes {
		c(g)
	}
	if g.Record.Routing != nil {
		g.Record.Routing.Seal()
	}
	return g.Snapshot
}

func all(changes ...change) change {
	return func(g *given) {
		for _, c := range changes {
			c(g)
		}
	}
}

func (g *given) version(tag string) *v1alpha1.RecordedVersion {
	return rollout.FindVersion(g.rec.Versions, id(tag))
}
func (g *given) listed(tag string) *rollout.VersionObservation { return g.Observation.Version(id(tag)) }

// asks pushes a spec with another image; the record does not know it yet.
func asks(tag string) change { return func(g *given) { g.Spec.Spec.Template = template(tag) } }

// wants is asks, and the record knows it.
func wants(tag string) change {
	return func(g *given) {
		asks(tag)(g)
		g.rec.Target = &v1alpha1.RoutingTarget{BuildID: id(tag), TemplateHash: hash(tag), Attempt: 1, Since: stamp(ago(5 * time.Minute))}
	}
}

// inGit gives a version files in Git.
func inGit(tag string) change {
	return func(g *given) {
		g.rec.Versions = append(g.rec.Versions, v1alpha1.RecordedVersion{
			BuildID: id(tag), BuildIDFrom: v1alpha1.BuildIDTemplate, TemplateHash: hash(tag), ConnectionHash: g.Connection.Spec.Hash(),
			Deployment: "checkout-" + tag, CreatedAt: stamp(ago(5 * time.Minute)), Replicas: replicas(2), Guard: v1alpha1.GuardOn, Attempts: 1,
			Files: map[string]string{"deployment.yaml": "hash-of-" + tag},
		})
		g.Record.Files[layout.VersionFile(id(tag), "deployment.yaml")] = rollout.File{Hash: "hash-of-" + tag}
	}
}

// up lists a version at the server, with workers on the task queue orders.
func up(tag string) change {
	return func(g *given) {
		g.Observation.Versions = append(g.Observation.Versions, rollout.VersionObservation{
			BuildID: id(tag), CreatedAt: ago(5 * time.Minute), QueuesKnown: rollout.Yes, Queues: []rollout.TaskQueue{polled("orders")},
		})
	}
}

func polled(queue string) rollout.TaskQueue {
	return rollout.TaskQueue{Name: queue, Type: rollout.QueueWorkflow, Unversioned: rollout.No,
		Pollers: rollout.Pollers{Known: true, Count: 2, LastAccess: ago(20 * time.Second)}}
}

// candidate is v2 on its way: asked for, with files and workers.
func candidate() change { return all(wants("v2"), inGit("v2"), up("v2")) }

func desires(current, ramping string, percentage float64) change {
	return func(g *given) {
		d := v1alpha1.DesiredRouting{Current: id(current)}
		if ramping != "" {
			d.Ramping = &v1alpha1.DesiredRamp{BuildID: id(ramping), Percentage: percentage}
		}
		same := d
		g.rec.Desired, g.rec.Decided = d, &same
	}
}

// edits is what a person writes into routing.yaml.
func edits(current, ramping string, percentage float64) change {
	return func(g *given) {
		was := g.rec.Decided
		desires(current, ramping, percentage)(g)
		g.rec.Decided = was
	}
}

// routes is what Temporal has, moved some time ago.
func routes(current, ramping string, percentage float32, moved time.Duration) change {
	return func(g *given) {
		r := &g.Observation.Routing
		if r.Current != id(current) {
			r.CurrentChangedAt = ago(moved)
		}
		r.Current, r.Ramping, r.Percentage = id(current), id(ramping), percentage
		r.HasRamp = ramping != ""
		r.RampingChangedAt, r.PercentageChangedAt = ago(moved), ago(moved)
		r.Revision++
	}
}

// rampsAt is v2 ramping, as desired, since some time.
func rampsAt(percentage float32, since time.Duration) change {
	return all(candidate(), routes("v1", "v2", percentage, since), desires("v1", "v2", rollout.AsWritten(percentage)),
		func(g *given) { g.version("v2").RoutedAt = stamp(ago(since)) })
}

// promoted is v2 current after v1, since some time, and wanted.
func promoted(since time.Duration) change {
	return all(candidate(), routes("v2", "", 0, since), desires("v2", "", 0), func(g *given) {
		g.version("v2").RoutedAt = stamp(ago(since + time.Hour))
		g.rec.Promotions[0].LeftAt, g.rec.Promotions[0].LeftBy = stamp(ago(since)), v1alpha1.LeftByPromotion
		g.rec.Promotions = append(g.rec.Promotions, v1alpha1.Promotion{BuildID: id("v2"), At: stamp(ago(since))})
		drains("v1")(g)
	})
}

func drains(tag string) change {
	return func(g *given) { g.listed(tag).Drainage = rollout.Draining }
}

// drained is a version that drained some time ago, with no open workflow.
func drained(tag string, since time.Duration) change {
	return func(g *given) {
		o := g.listed(tag)
		o.Drainage, o.DrainageChangedAt, o.OpenPinned = rollout.Drained, ago(since), rollout.Counted(0)
	}
}

// noPollers: its workers are gone.
func noPollers(tag string) change {
	return func(g *given) { g.listed(tag).Queues[0].Pollers = rollout.Pollers{Known: true} }
}

// scaledDown is a version at 0 replicas with its guard off since some time.
func scaledDown(tag string, since time.Duration) change {
	return func(g *given) {
		r := g.version(tag)
		r.Replicas, r.Guard, r.RetiredAt = replicas(0), v1alpha1.GuardOff, stamp(ago(since))
	}
}

func unlisted(tag string) change {
	return func(g *given) {
		g.Observation.Versions = slices.DeleteFunc(g.Observation.Versions, func(o rollout.VersionObservation) bool { return o.BuildID == id(tag) })
	}
}

func counted(tag string, n int64) change {
	return func(g *given) { g.Observation.Unlisted = map[string]rollout.Count{id(tag): rollout.Counted(n)} }
}

func barsBuild(tag string) change {
	return func(g *given) {
		g.rec.Bars = append(g.rec.Bars, v1alpha1.Bar{BuildID: id(tag), TemplateHash: hash(tag), By: "canary", Reason: "too many failures", At: stamp(ago(time.Hour))})
		if r := g.version(tag); r != nil {
			r.TurnedBack = 1
		}
	}
}

func holds(kind v1alpha1.HoldKind, tag string) change {
	return func(g *given) {
		g.rec.Hold = &v1alpha1.Hold{Kind: kind, BuildID: id(tag), By: "ada", Reason: "lunch", At: stamp(ago(time.Hour))}
	}
}

func strategy(k v1alpha1.RolloutKind) change {
	return func(g *given) {
		g.Spec.Spec.Rollout.Strategy = k
		if k != v1alpha1.Progressive {
			g.Spec.Spec.Rollout.Steps = nil
		}
	}
}

func foreign() change { return func(g *given) { g.Observation.ManagerIdentity = "someone/else" } }

// gate asks for a first gate.
func gate(onFailure v1alpha1.OnGateFailure) change {
	return func(g *given) {
		g.Spec.Spec.Rollout.Gate = &v1alpha1.Gate{WorkflowType: "Smoke", OnFailure: onFailure, Timeout: lasting(time.Hour)}
	}
}

// stepGate asks for a gate at a step, from 1.
func stepGate(step int, onFailure v1alpha1.OnGateFailure) change {
	return func(g *given) {
		g.Spec.Spec.Rollout.Steps[step-1].Gate = &v1alpha1.Gate{WorkflowType: "Smoke", OnFailure: onFailure, Timeout: lasting(time.Hour)}
	}
}

// stepGateIs is the state of a step's gate on orders, for the first attempt at v2.
func stepGateIs(step int, state rollout.GateState) change {
	return func(g *given) {
		spec := rollout.GateSpec{Deployment: g.Deployment, BuildID: id("v2"), TemplateHash: hash("v2"), Point: fmt.Sprintf("step-%d", step), Attempt: 1, WorkflowType: "Smoke"}
		g.Observation.Gates = append(g.Observation.Gates, rollout.GateRun{WorkflowID: spec.WorkflowID("orders"), TaskQueue: "orders", State: state})
	}
}

// gateIs is the state of the gate's test workflow on orders for an attempt at v2.
func gateIs(state rollout.GateState, attempt int) change {
	return func(g *given) {
		spec := rollout.GateSpec{Deployment: g.Deployment, BuildID: id("v2"), TemplateHash: hash("v2"), Point: "first", Attempt: attempt, WorkflowType: "Smoke"}
		g.Observation.Gates = append(g.Observation.Gates, rollout.GateRun{WorkflowID: spec.WorkflowID("orders"), TaskQueue: "orders", State: state})
	}
}

// analysed asks for an analysis of ramps and of promotions.
func analysed(changes ...func(*v1alpha1.Analysis)) change {
	return func(g *given) {
		a := &v1alpha1.Analysis{Window: lasting(5 * time.Minute), MinSamples: 50, MaxWait: lasting(2 * time.Hour),
			OnTooFewSamples: v1alpha1.SamplesHold, Alpha: 0.01}
		for _, c := range changes {
			c(a)
		}
		g.Spec.Spec.Rollout.Analysis = a
	}
}

// closed are closed workflows of a version that started since traffic was moved, and none that are stuck.
func closed(tag string, completed, failed int64) change {
	return func(g *given) {
		since := g.Observation.Routing.MovedAt()
		g.listed(tag).Closed = rollout.ClosedCounts{Known: true, Since: since, Completed: completed, Failed: failed}
		g.Observation.Stuck = rollout.Stuck{Since: since, Unattributed: rollout.Counted(0), Problems: rollout.Counted(0)}
	}
}

func baked(a *v1alpha1.Analysis) { a.Bake = lasting(30 * time.Minute) }

func stuck(change func(*rollout.Stuck)) change {
	return func(g *given) { change(&g.Observation.Stuck) }
}

func at(now time.Time) change { return func(g *given) { g.Now, g.Observation.At = now, now } }

// said is an action in short, such as "Ramp v2 0->10 step 1/2".
func said(a rollout.Action) string {
	out := fmt.Sprintf("%s %s", a.Kind, a.BuildID)
	if a.Routes() {
		out += fmt.Sprintf(" %v->%v", a.From, a.To)
	}
	if a.Step > 0 {
		out += fmt.Sprintf(" step %d/%d", a.Step, a.Steps)
	}
	for _, part := range []string{string(a.Cause), a.Bar, string(a.Update)} {
		if part != "" {
			out += " " + part
		}
	}
	if a.Drift != nil {
		out += fmt.Sprintf(" %s%s", a.Drift.Direction, a.Drift.Path)
	}
	if a.Approved {
		out += " approved"
	}
	if a.Replicas != nil && !a.Routes() {
		out += fmt.Sprintf(" x%d", *a.Replicas)
	}
	for _, w := range a.Resources {
		out += map[bool]string{true: " -", false: " +"}[w.Removes()] + w.Template
	}
	if len(a.Queues) > 0 {
		out += fmt.Sprintf(" on %v", a.Queues)
	}
	return named(out)
}

func sayAll(actions []rollout.Action) []string {
	var out []string
	for _, a := range actions {
		if a.Kind != rollout.Continue {
			out = append(out, said(a))
		}
	}
	return out
}

// allowed are verdicts that allow everything, with the default answers to drift.
func allowed(p rollout.Proposal) rollout.Verdicts {
	v := rollout.Verdicts{Spec: rollout.Verdict{Effect: rollout.Allow}, Actions: map[string]rollout.Verdict{}}
	for _, a := range p.Actions {
		verdict := rollout.Verdict{Effect: rollout.Allow}
		if a.Drift != nil {
			verdict.Drift = rollout.DriftRevert
			if a.Drift.Direction == rollout.DriftLower {
				verdict.Drift = rollout.DriftAdopt
			}
		}
		v.Actions[a.ID] = verdict
	}
	return v
}

// verdictOn changes the verdicts on all actions of a kind.
func verdictOn(kind rollout.ActionKind, verdict rollout.Verdict) func(rollout.Proposal) rollout.Verdicts {
	return func(p rollout.Proposal) rollout.Verdicts {
		v := allowed(p)
		for _, a := range p.Actions {
			if a.Kind == kind {
				v.Actions[a.ID] = verdict
			}
		}
		return v
	}
}

func effect(e rollout.Effect) rollout.Verdict {
	return rollout.Verdict{Effect: e, Findings: []rollout.Finding{{Package: "rampart.rollout", Rule: "some.rule", Effect: e, Message: "says so"}}}
}

// decide gives the plan for a snapshot, which must be one that may be carried out.
func decide(t require.TestingT, s rollout.Snapshot, judge func(rollout.Proposal) rollout.Verdicts) rollout.Plan {
	p := Look(s).Propose()
	plan := Look(s).Resolve(p, judge(p))
	require.Empty(t, Never(s, plan))
	require.Subset(t, Rows(), p.Rows())
	requireTabled(t, plan.Status)
	return plan
}

// twice gives a snapshot a first read that is the same as the second.
func twice(s rollout.Snapshot) rollout.Snapshot {
	first := s.Observation
	first.At = first.At.Add(-time.Second)
	s.FirstRead = &first
	return s
}

func sayCall(c *rollout.RoutingCall) []string {
	if c == nil {
		return nil
	}
	var out []string
	for _, s := range c.Steps {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %v", s.Kind, named(s.BuildID), s.Percentage)))
	}
	return out
}

func TestSteadyIsQuiet(t *testing.T) {
	s := of()
	plan := decide(t, s, allowed)
	require.Equal(t, "complete", plan.Row)
	require.True(t, plan.Settled)
	require.Empty(t, plan.Versions)
	require.Equal(t, s.Record.Routing.Spec, *plan.Record)
}

// clone copies by way of JSON, as a snapshot that was written to a file is.
func clone[T any](t require.TestingT, from T, to *T) {
	b, err := json.Marshal(from)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, to))
}
