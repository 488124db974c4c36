package preview

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/report"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// nine is when changes are merged in these tests: a Monday.
var nine = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

const objects = `
apiVersion: temporal.io/v1alpha1
kind: WorkerDeployment
metadata: {name: checkout, namespace: payments%s}
spec:
  replicas: %d
  workerOptions: {connectionRef: {name: temporal}, temporalNamespace: payments}
  rollout: %s
  template: {spec: {containers: [{name: worker, image: "app:%s"}]}}
%s
---
apiVersion: temporal.io/v1alpha1
kind: Connection
metadata: {name: temporal, namespace: payments}
spec: {hostPort: "%s:7233"}
`

// state is a spec as it is on one side of a change.
type state struct {
	annotations, rollout, image, more, host string
	replicas                                int
}

const steps = `{strategy: Progressive, steps: [{rampPercentage: 10, pauseDuration: 10m}]}`

func (s state) snapshot(t *testing.T) *rollout.Snapshot {
	t.Helper()
	if s.rollout == "" {
		s.rollout = steps
	}
	if s.host == "" {
		s.host = "temporal"
	}
	if s.replicas == 0 {
		s.replicas = 2
	}
	documents, problems := v1alpha1.Decode("spec.yaml", fmt.Appendf(nil, objects, s.annotations, s.replicas, s.rollout, s.image, s.more, s.host))
	require.Empty(t, problems)
	return &rollout.Snapshot{Deployment: rollout.Name{Namespace: "payments", Name: "checkout"}, SpecPath: "spec.yaml",
		Environment: v1alpha1.Environment{Name: "prod", Output: v1alpha1.Output{Path: "deploy"}, ManagerIdentity: "rampart/prod",
			Approval: v1alpha1.Approval{Mode: v1alpha1.Direct}, Status: v1alpha1.StatusOn},
		Spec: documents[0].Object.(*v1alpha1.WorkerDeployment), Connection: documents[1].Object.(*v1alpha1.Connection),
		Record: rollout.Record{Dir: "deploy/payments/checkout"}, Limits: rollout.DefaultLimits()}
}

// record is what the bot wrote once versions were rolled out, one after the other: the last one is current.
func record(t *testing.T, states ...state) rollout.Record {
	t.Helper()
	out := rollout.Record{Dir: "deploy/payments/checkout", Files: map[string]rollout.File{}}
	spec := v1alpha1.RoutingSpec{WorkerDeployment: "payments/checkout", TemporalNamespace: "payments", SpecPath: "spec.yaml"}
	for i, s := range states {
		snapshot := s.snapshot(t)
		target, err := NewTarget(*snapshot)
		require.NoError(t, err)
		at := v1alpha1.NewTime(nine.Add(-48 * time.Hour).Add(time.Duration(i) * time.Hour))
		for _, f := range target.Files {
			out.Files[strings.TrimPrefix(f.Path, out.Dir+"/")] = rollout.File{Hash: "1", Data: f.Text}
		}
		replicas := int32(2)
		spec.Versions = append(spec.Versions, v1alpha1.RecordedVersion{BuildID: target.BuildID, BuildIDFrom: v1alpha1.BuildIDTemplate,
			TemplateHash: rollout.TemplateHash(snapshot.Spec.Spec), ConnectionHash: snapshot.Connection.Spec.Hash(), Replicas: &replicas, Guard: v1alpha1.GuardOn,
			Deployment: rollout.DeploymentName("checkout", target.BuildID, nil), CreatedAt: at, RoutedAt: at, Attempts: 1, Files: map[string]string{}})
		spec.Promotions = append(spec.Promotions, v1alpha1.Promotion{BuildID: target.BuildID, At: at})
		spec.Desired = v1alpha1.DesiredRouting{Current: target.BuildID}
		spec.Basis = &v1alpha1.RoutingBasis{Current: target.BuildID, CurrentChangedAt: at, Revision: int64(i + 1)}
		spec.Target = &v1alpha1.RoutingTarget{BuildID: target.BuildID, TemplateHash: rollout.TemplateHash(snapshot.Spec.Spec), Attempt: 1, Since: at}
	}
	decided := spec.Desired
	spec.Decided = &decided
	out.Routing = &v1alpha1.Routing{Spec: spec}
	return out
}

// given is a change from one state to another, under policies.
func given(t *testing.T, before, after *state, rego string, recorded ...state) Input {
	t.Helper()
	world := v1alpha1.DefaultSimulation()
	world.At = v1alpha1.NewTime(nine)
	cfg := policy.Config{}
	if rego != "" {
		cfg.Modules = []parse.Module{{Path: "main:policies/p.rego", Source: rego}}
	}
	engine := policy.Compile(cfg)
	require.Empty(t, engine.Problems())
	in := Input{Policies: engine, World: world}
	of := func(s *state) *rollout.Snapshot {
		if s == nil {
			return nil
		}
		snapshot := s.snapshot(t)
		if len(recorded) > 0 {
			snapshot.Record = record(t, recorded...)
		}
		return snapshot
	}
	in.Before, in.After = of(before), of(after)
	return in
}

func preview(t *testing.T, in Input) report.Previewed {
	t.Helper()
	out, err := Deployment(t.Context(), in)
	require.NoError(t, err)
	return out
}

func TestPreviewOfEachKindOfChange(t *testing.T) {
	v1, v2, v3 := state{image: "v1"}, state{image: "v2"}, state{image: "v3"}
	with := func(s state, change func(*state)) *state {
		change(&s)
		return &s
	}
	for name, c := range map[string]struct {
		before, after *state
		recorded      []state
		want          report.ChangeKind
		through       []string
		files         int
		outcome       rollout.Outcome
	}{
		"new":                        {nil, &v1, nil, report.ChangeNew, []string{"spec", "path", "connection"}, 1, rollout.OutcomeComplete},
		"changed before its first":   {&v1, &v2, nil, report.ChangeNew, []string{"spec"}, 1, rollout.OutcomeComplete},
		"an image":                   {&v1, &v2, []state{v1}, report.ChangeVersion, []string{"spec"}, 1, rollout.OutcomeComplete},
		"an image after an image":    {&v2, &v3, []state{v1}, report.ChangeVersion, []string{"spec"}, 1, rollout.OutcomeComplete},
		"back to an image":           {&v2, &v1, []state{v1, v2}, report.ChangeEarlier, []string{"spec"}, 1, rollout.OutcomeComplete},
		"replicas":                   {&v1, with(v1, func(s *state) { s.replicas = 5 }), []state{v1}, report.ChangeUpdate, []string{"spec"}, 1, rollout.OutcomeComplete},
		"a connection":               {&v1, with(v1, func(s *state) { s.host = "other" }), []state{v1}, report.ChangeUpdate, []string{"connection"}, 1, rollout.OutcomeComplete},
		"a pool":                     {&v1, with(v1, func(s *state) { s.more = poolYAML }), []state{v1}, report.ChangeVersion, []string{"spec"}, 2, rollout.OutcomeComplete},
		"steps":                      {&v1, with(v1, func(s *state) { s.rollout = `{strategy: AllAtOnce}` }), []state{v1}, report.ChangeStrategy, []string{"spec"}, 0, rollout.OutcomeComplete},
		"labels":                     {&v1, with(v1, func(s *state) { s.annotations = `, labels: {a: b}` }), []state{v1}, report.ChangeNothing, []string{"spec"}, 0, ""},
		"to be retired":              {&v1, with(v1, func(s *state) { s.annotations = `, annotations: {rampart.dev/retire: "true"}` }), []state{v1}, report.ChangeRetire, []string{"spec"}, 0, rollout.OutcomeHeld},
		"gone":                       {&v1, nil, []state{v1}, report.ChangeGone, []string{"spec", "path", "connection"}, 0, ""},
		"gone before it was created": {&v1, nil, nil, report.ChangeGone, []string{"spec", "path", "connection"}, 0, ""},
		"by hand":                    {&v1, with(v2, func(s *state) { s.rollout = `{strategy: Manual}` }), []state{v1}, report.ChangeVersion, []string{"spec"}, 1, rollout.OutcomeHeld},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := given(t, c.before, c.after, "", c.recorded...)
			got := preview(t, in)
			require.Equal(t, c.want, got.Change)
			require.Equal(t, c.through, got.Through)
			require.Len(t, got.Files, c.files)
			require.Empty(t, got.Objections, "nothing of it is a policy's doing")
			if c.outcome == "" {
				require.Nil(t, got.Timetable)
			} else {
				require.Empty(t, got.Untimed)
				require.Equal(t, c.outcome, got.Timetable.Outcome)
				require.Equal(t, c.want == report.ChangeStrategy, got.Timetable.Target != got.To, "an image is made up only where nothing else would move")
			}
			again, err := json.Marshal(preview(t, in))
			require.NoError(t, err)
			first, err := json.Marshal(got)
			require.NoError(t, err)
			require.Equal(t, string(first), string(again))
		})
	}
}

const poolYAML = `  pools:
    - name: heavy
      replicas: 1
      template: {spec: {containers: [{name: worker, image: "app:v1"}]}}
`

// rules by where they are found, as rule@location.
func rules(found []report.PreviewFinding) []string {
	var out []string
	for _, f := range found {
		out = append(out, f.Rule+"@"+f.Location)
	}
	return out
}

func TestPreviewNamesTheRulesThatObject(t *testing.T) {
	const head = "package rampart.rollout\n\n"
	for name, c := range map[string]struct {
		rego                                          string
		objects, waits, approvals, warnings, unknowns []string
	}{
		"none": {rego: head},
		"for good": {rego: head + `deny contains {"rule": "a.b", "msg": "no"} if input.action.kind == "CreateVersion"` + "\n",
			objects: []string{"a.b@main:policies/p.rego:3"}},
		"turned back": {rego: head + `rollback contains {"rule": "a.b", "msg": "no"} if input.action.kind == "Continue"` + "\n",
			objects: []string{"a.b@main:policies/p.rego:3"}},
		"for a time": {rego: head + `hold contains {"rule": "a.b", "msg": "no"} if {
	input.action.kind == "Ramp"
	time.now_ns() < time.parse_rfc3339_ns("2026-03-02T12:00:00Z")
}
`, waits: []string{"a.b@main:policies/p.rego:3"}},
		"approval": {rego: head + `require_approval contains {"rule": "a.b", "msg": "ask"} if input.action.kind == "Promote"` + "\n",
			approvals: []string{"a.b@main:policies/p.rego:3"}},
		"warning": {rego: head + `warn contains {"rule": "a.b", "msg": "hm"} if input.action.kind == "Ramp"` + "\n", warnings: []string{"a.b@main:policies/p.rego:3"}},
		"a fact": {rego: head + "import data.rampart.facts\n" + `hold contains {"rule": "a.b", "msg": "no"} if facts.require("errors") > 5` + "\n",
			unknowns: []string{"policy.fact@main:policies/p.rego:4"}},
		"the commit": {rego: head + "signed if input.git.signed == \"Yes\"\n" + `deny contains {"rule": "a.b", "msg": "no"} if not signed` + "\n",
			unknowns: []string{"a.b@main:policies/p.rego:4"}},
		"evidence in sight": {rego: head + `hold contains {"rule": "a.b", "msg": "no"} if input.canary.candidate.failed > 1000000` + "\n",
			unknowns: []string{"a.b@main:policies/p.rego:3"}},
		"evidence behind a helper": {rego: head + "fine if not bad\nbad if input.canary.candidate.failed > 1000000\n" + `hold contains {"rule": "a.b", "msg": "no"} if not fine` + "\n",
			unknowns: []string{"a.b@main:policies/p.rego:5"}},
		"not about this":                {rego: head + `deny contains {"rule": "a.b", "msg": "no"} if input.deployment.metadata.name == "other"` + "\n"},
		"only about what is left later": {rego: "package rampart.sunset\n\n" + `deny contains {"rule": "a.b", "msg": "no"} if true` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := preview(t, given(t, &state{image: "v1"}, &state{image: "v2"}, c.rego, state{image: "v1"}))
			require.NotNil(t, got.Timetable, got.Untimed)
			require.Equal(t, c.objects, rules(got.Objections), "objections")
			require.Equal(t, c.waits, rules(got.Waits), "waits")
			require.Equal(t, c.approvals, rules(got.Approvals), "approvals")
			require.Equal(t, c.warnings, rules(got.Warnings), "warnings")
			var own []string
			for _, r := range rules(got.Unknown) {
				if !strings.Contains(r, "@rampart/") {
					own = append(own, r)
				}
			}
			require.Equal(t, c.unknowns, own, "unknown")
			for _, f := range got.Waits {
				require.Equal(t, nine.Add(3*time.Hour), f.Until)
			}
			for _, f := range got.Approvals {
				require.Equal(t, 10*time.Minute, f.Until.Sub(f.From).Round(time.Minute), "somebody approves after a while")
			}
		})
	}
}

// What the library says of a candidate is not known before there is one.
func TestTheCanaryIsUnknown(t *testing.T) {
	got := preview(t, given(t, &state{image: "v1"}, &state{image: "v2"}, "", state{image: "v1"}))
	require.Len(t, got.Unknown, 1)
	require.Equal(t, "rollout.canary", got.Unknown[0].Rule)
	require.Contains(t, got.Unknown[0].Message, "goes by input.canary")
}

// Findings on the spec come first, where there is nothing to simulate, too. A waived one is a warning, one of a policy
// that is not here unknown.
func TestSpecFindings(t *testing.T) {
	in := given(t, &state{image: "v1"}, &state{image: "v1", annotations: ", labels: {a: b}"}, "", state{image: "v1"})
	in.Missing = []string{"bundle org"}
	in.Spec = []SpecFinding{{Finding: rollout.Finding{Rule: "a.b", Effect: rollout.HoldEffect, Message: "no"}, Line: 7},
		{Finding: rollout.Finding{Rule: "a.c", Effect: rollout.HoldEffect, Message: "no", Waived: "w"}},
		{Finding: rollout.Finding{Rule: "a.d", Effect: rollout.Warn, Message: "hm"}},
		{Finding: rollout.Finding{Rule: "policy.broken", Effect: rollout.HoldEffect, Message: "there is none", Location: "bundle org"}}}
	got := preview(t, in)
	require.Equal(t, report.ChangeNothing, got.Change)
	require.Equal(t, []string{"a.b@"}, rules(got.Objections))
	require.Equal(t, 7, got.Objections[0].Line)
	require.Equal(t, []string{"a.c@", "a.d@"}, rules(got.Warnings))
	require.Equal(t, []string{"policy.broken@bundle org"}, rules(got.Unknown))
}

// What cannot be previewed is said.
func TestWhatCannotBePreviewedIsSaid(t *testing.T) {
	v1 := state{image: "v1"}
	in := given(t, &v1, &state{image: "v2"}, "", v1)
	in.After.Connection = nil
	require.Equal(t, "payments/checkout needs connection payments/temporal, which is not there", preview(t, in).Untimed)
	in.After.Spec.Spec.WorkerOptions.ConnectionRef.Kind = v1alpha1.KindClusterConnection
	require.Equal(t, "payments/checkout needs ClusterConnection temporal, which is not there", preview(t, in).Untimed)

	in = given(t, &v1, &state{image: "v2"}, "", v1)
	in.World.At = v1alpha1.NewTime(nine.Add(-1000 * time.Hour))
	require.Contains(t, preview(t, in).Untimed, "it cannot begin at")

	in = given(t, &v1, &v1, "", v1)
	in.After.Problems = []rollout.Problem{{Reason: rollout.InvalidSpec, Message: "spec.yaml:3: broken"}}
	got := preview(t, in)
	require.Equal(t, report.ChangeBroken, got.Change)
	require.Nil(t, got.Timetable)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got, err := Deployment(ctx, given(t, &v1, &state{image: "v2"}, "", v1))
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, got.Files, "many wait behind each other, and none renders any more")
}

// A worker deployment whose versions lose an object that they name changes by that alone.
func TestLostReferences(t *testing.T) {
	before := state{image: "v1"}.snapshot(t)
	after := *before
	require.Empty(t, Changes(before, &after))
	after.References = []rollout.VersionReferences{{BuildID: "v1", Objects: []rollout.Reference{
		{Kind: "Secret", Name: "a", Files: []string{"a.yaml"}}, {Kind: "Secret", Name: "b"}}}}
	require.Empty(t, Changes(before, &after), "nothing is removed")
	after.References[0].Objects[1].Removed = []string{"b.yaml"}
	require.Equal(t, []string{ThroughReferences}, Changes(before, &after))
}
