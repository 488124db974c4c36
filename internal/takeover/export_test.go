package takeover_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/takeover"
)

const spec = `
apiVersion: temporal.io/v1alpha1
kind: WorkerDeployment
metadata: {name: checkout, namespace: payments, annotations: {owner: payments, argocd.argoproj.io/sync-wave: "1", rampart.dev/retire: "false"}}
spec:
  rollout: {strategy: Progressive, steps: [{rampPercentage: 5, pauseDuration: 30s}]}
  workerOptions: {connectionRef: {name: temporal}, temporalNamespace: orders}
  template: {spec: {containers: [{name: worker, image: "checkout:v1"}]}}
`

// exported is a spec whose version runs.
func exported(t *testing.T, text string) rollout.Snapshot {
	t.Helper()
	documents, problems := v1alpha1.Decode("spec.yaml", []byte(text))
	require.False(t, v1alpha1.HasErrors(problems), problems)
	w := documents[0].Object.(*v1alpha1.WorkerDeployment)
	id, from := rollout.BuildIDFor(w.Spec, nil)
	return rollout.Snapshot{
		Deployment: rollout.Name{Namespace: "payments", Name: "checkout"}, Spec: w, SpecPath: "spec.yaml",
		Connection: &v1alpha1.Connection{APIVersion: v1alpha1.TemporalAPIVersion, Kind: v1alpha1.KindConnection, Metadata: v1alpha1.ObjectMeta{Name: "temporal", Namespace: "payments"},
			Spec: v1alpha1.ConnectionSpec{HostPort: "temporal:7233"}},
		Record: rollout.Record{Dir: "deploy/payments/checkout", Routing: &v1alpha1.Routing{Spec: v1alpha1.RoutingSpec{Versions: []v1alpha1.RecordedVersion{
			{BuildID: id, BuildIDFrom: from, TemplateHash: rollout.TemplateHash(w.Spec), Deployment: "checkout-" + id}}}}},
	}
}

// What only Rampart has is left out with a warning, and what the controller cannot have is an error: nothing is
// exported then.
func TestOwnFields(t *testing.T) {
	replace := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(spec) }
	for name, c := range map[string]struct{ text, warning, err string }{
		"as it is":        {text: spec, warning: "unsafeCustomBuildID: v1-"},
		"analysis":        {text: replace("strategy: Progressive,", "strategy: Progressive, analysis: {},"), warning: "no spec.rollout.analysis"},
		"a step's gate":   {text: replace("pauseDuration: 30s", "pauseDuration: 30s, gate: {workflowType: Smoke}"), warning: "spec.rollout.steps[0].gate is left out"},
		"a gate's answer": {text: replace("strategy: Progressive,", "strategy: Progressive, gate: {workflowType: Smoke, onFailure: Rollback},"), warning: "no onFailure and no timeout"},
		"strategy":        {text: replace("  rollout:", "  strategy: {type: Recreate}\n  rollout:"), warning: "no spec.strategy"},
		"evacuation":      {text: replace("  rollout:", "  sunset: {evacuate: {cancelAfter: 1h}}\n  rollout:"), warning: "no spec.sunset.evacuate"},
		"a fraction":      {text: replace("rampPercentage: 5", "rampPercentage: 0.5"), err: "export payments/checkout: spec.rollout.steps[0].rampPercentage: the controller has whole percentages, not 0.5"},
		"a short pause":   {text: replace("30s", "29s"), err: "spec.rollout.steps[0].pauseDuration: the controller wants 30s at least, not 29s"},
		"pools": {text: replace("  rollout:", "  pools: [{name: a, template: {spec: {containers: [{name: worker, image: \"checkout:v1\"}]}}}]\n  rollout:"),
			err: "the controller has no spec.pools"},
	} {
		t.Run(name, func(t *testing.T) {
			s := exported(t, c.text)
			before := *s.Spec
			e, err := takeover.ToController(s, nil)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				require.Empty(t, e)
				return
			}
			require.NoError(t, err)
			require.Contains(t, strings.Join(e.Warnings, "\n"), c.warning)
			require.Equal(t, before, *s.Spec, "what was given is not changed")
			text := e.Objects[len(e.Objects)-1].Text
			for _, own := range []string{"analysis", "onFailure", "evacuate", "rollback", "timeout", "Recreate", "rampart.dev"} {
				require.NotContains(t, text, own)
			}
			require.Contains(t, text, "owner: payments")
			_, problems := v1alpha1.Decode("back.yaml", []byte(text))
			require.False(t, v1alpha1.HasErrors(problems), problems)
		})
	}
}

// What keeps a worker deployment from going back is said.
func TestNoExport(t *testing.T) {
	for want, change := range map[string]func(*rollout.Snapshot){
		"it has no spec in the repository": func(s *rollout.Snapshot) { s.Spec = nil },
		"spec.yaml:3: what is wrong": func(s *rollout.Snapshot) {
			s.Spec, s.Problems = nil, []rollout.Problem{{Message: "spec.yaml:3: what is wrong"}}
		},
		"deploy/payments/checkout has no record of it that can be read": func(s *rollout.Snapshot) { s.Record.Routing = nil },
		"connection payments/temporal is not in the repository":         func(s *rollout.Snapshot) { s.Connection = nil },
		"which has no files yet: let the bot make it":                   func(s *rollout.Snapshot) { s.Record.Routing.Spec.Versions = nil },
		"template hpa: it is broken": func(s *rollout.Snapshot) {
			s.Resources = []rollout.ResourceTemplate{{Name: "hpa", Problem: &rollout.Problem{Message: "it is broken"}}}
		},
		"WorkerDeployment payments/checkout in owners.yaml has no uid": func(*rollout.Snapshot) {},
		"has pools, which the controller does not have: wait until it is gone": func(s *rollout.Snapshot) {
			s.Record.Routing.Spec.Versions[0].Pools = []v1alpha1.RecordedPool{{Name: "a"}}
		},
		"deployment.yaml: not a Deployment": func(*rollout.Snapshot) {},
	} {
		t.Run(want, func(t *testing.T) {
			s := exported(t, spec)
			change(&s)
			owner := "apiVersion: temporal.io/v1alpha1\nkind: WorkerDeployment\nmetadata: {name: checkout, namespace: payments, uid: aaaa-1}\n"
			if strings.Contains(want, "uid") {
				owner = strings.Replace(owner, ", uid: aaaa-1", "", 1)
			}
			e, err := takeover.ToController(s, []rollout.TextFile{{Path: "owners.yaml", Text: owner}})
			require.ErrorContains(t, err, want)
			require.Empty(t, e)
		})
	}
}

// The controller gives an object to every version, also a scaler to one that runs with a number of replicas.
func TestScalerOfRunningVersions(t *testing.T) {
	warnings := func(applyTo v1alpha1.ApplyTo) string {
		s := exported(t, spec)
		replicas := int32(2)
		s.Record.Routing.Spec.Versions[0].Replicas = &replicas
		s.Resources = []rollout.ResourceTemplate{{Name: "hpa", Object: []byte("{}"), Scales: true, ApplyTo: applyTo}}
		e, err := takeover.ToController(s, nil)
		require.NoError(t, err)
		return strings.Join(e.Warnings, "\n")
	}
	require.Contains(t, warnings(v1alpha1.NewVersions), "no spec.applyTo of WorkerResourceTemplate hpa: version v1-")
	require.NotContains(t, warnings(v1alpha1.AllVersions), "spec.applyTo")
}
