package v1alpha1_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// decodeFile reads a sample without errors.
func decodeFile(t *testing.T, name string) []v1alpha1.Document {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	documents, problems := v1alpha1.Decode(name, data)
	require.False(t, v1alpha1.HasErrors(problems), "%v", problems)
	return documents
}

func ptr[T any](v T) *T { return &v }

func duration(d time.Duration) v1alpha1.Duration { return v1alpha1.Duration{Duration: d} }

func TestDecodeWorkerDeployment(t *testing.T) {
	documents := decodeFile(t, "checkout.yaml")
	want := []v1alpha1.Document{{
		File: "checkout.yaml", Line: 2, APIVersion: "temporal.io/v1alpha1", Kind: "WorkerDeployment",
		Namespace: "payments", Name: "checkout",
		Object: &v1alpha1.WorkerDeployment{
			APIVersion: "temporal.io/v1alpha1", Kind: "WorkerDeployment",
			Metadata: v1alpha1.ObjectMeta{Name: "checkout", Namespace: "payments",
				Labels: map[string]string{"app.kubernetes.io/part-of": "payments"}},
			Spec: v1alpha1.WorkerDeploymentSpec{
				Replicas: ptr(int32(3)),
				Template: v1alpha1.PodTemplate{
					Raw: json.RawMessage(`{"metadata":{"labels":{"app":"checkout"}},"spec":{"containers":[{"env":[{"name":"LOG_LEVEL",` +
						`"value":"info"}],"image":"registry.example.com/payments/checkout:v2.3.0","name":"worker",` +
						`"resources":{"requests":{"cpu":"500m","memory":"256Mi"}}}]}}`),
					FirstImage: "registry.example.com/payments/checkout:v2.3.0",
				},
				ProgressDeadlineSeconds: ptr(int32(600)),
				Rollout: v1alpha1.RolloutStrategy{
					Strategy: v1alpha1.Progressive,
					Steps: []v1alpha1.RolloutStep{
						{RampPercentage: 5, PauseDuration: duration(10 * time.Minute)},
						{RampPercentage: 25, PauseDuration: duration(30 * time.Minute)},
					},
					Gate:     &v1alpha1.Gate{WorkflowType: "SmokeTest", OnFailure: v1alpha1.GateHold, Timeout: duration(time.Hour)},
					Rollback: v1alpha1.RollbackPolicy{Window: duration(time.Hour)},
				},
				Sunset: v1alpha1.SunsetStrategy{ScaledownDelay: duration(time.Hour), DeleteDelay: duration(24 * time.Hour)},
				WorkerOptions: v1alpha1.WorkerOptions{
					ConnectionRef:     v1alpha1.ConnectionRef{Name: "production"},
					TemporalNamespace: "payments-prod",
				},
			},
		},
	}}
	if diff := cmp.Diff(want, documents, cmpopts.IgnoreUnexported(v1alpha1.Document{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSamples compares everything that the samples decode to with a golden file, and reads it back from JSON in the two
// ways there are.
func TestSamples(t *testing.T) {
	names, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	require.Len(t, names, 8)
	var got strings.Builder
	for _, name := range names {
		for _, d := range decodeFile(t, filepath.Base(name)) {
			roundTrip(t, d.Object)
			encoded, err := json.MarshalIndent(d.Object, "", "  ")
			require.NoError(t, err)
			got.WriteString("// " + d.File + "\n" + string(encoded) + "\n")
		}
	}
	const golden = "testdata/samples.golden"
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got.String()), 0o644))
		return
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// roundTrip writes an object as JSON and reads it back, by Decode and by encoding/json.
func roundTrip(t *testing.T, object any) {
	t.Helper()
	encoded, err := json.Marshal(object)
	require.NoError(t, err)
	documents, problems := v1alpha1.Decode("again.json", encoded)
	require.False(t, v1alpha1.HasErrors(problems), "%v\n%s", problems, encoded)
	require.Len(t, documents, 1)
	if diff := cmp.Diff(object, documents[0].Object); diff != "" {
		t.Fatalf("another object by Decode (-first +second):\n%s", diff)
	}
	var second any
	switch object.(type) {
	case *v1alpha1.WorkerDeployment:
		second = new(v1alpha1.WorkerDeployment)
	case *v1alpha1.Connection:
		second = new(v1alpha1.Connection)
	case *v1alpha1.WorkerResourceTemplate:
		second = new(v1alpha1.WorkerResourceTemplate)
	case *v1alpha1.Config:
		second = new(v1alpha1.Config)
	case *v1alpha1.Waiver:
		second = new(v1alpha1.Waiver)
	case *v1alpha1.Routing:
		second = new(v1alpha1.Routing)
	case *v1alpha1.Simulation:
		second = new(v1alpha1.Simulation)
	}
	require.NoError(t, json.Unmarshal(encoded, second))
	// encoding/json keeps raw JSON that is not a pod template as it comes: escaped for HTML.
	canonical := cmp.Transformer("canonical", func(raw json.RawMessage) string {
		if len(raw) == 0 {
			return ""
		}
		c, err := v1alpha1.CanonicalJSON(raw)
		require.NoError(t, err)
		return string(c)
	})
	if diff := cmp.Diff(object, second, canonical); diff != "" {
		t.Fatalf("another object by encoding/json (-first +second):\n%s", diff)
	}
	if w, ok := object.(*v1alpha1.WorkerDeployment); ok {
		require.Equal(t, w.Digest(), second.(*v1alpha1.WorkerDeployment).Digest())
	}
}

// TestSameInOtherWords reads one object in several notations.
func TestSameInOtherWords(t *testing.T) {
	const plain = `
apiVersion: temporal.io/v1alpha1
kind: WorkerDeployment
metadata: {name: a, namespace: b}
spec:
  workerOptions: {connectionRef: {name: c}, temporalNamespace: d}
  rollout: {strategy: Manual}
  template: {spec: {containers: [{name: e, image: f, readinessProbe: {initialDelaySeconds: 10, tcpSocket: {port: 80}}}], hostNetwork: true}}
`
	tests := map[string]string{
		"CRLF":           strings.ReplaceAll(plain, "\n", "\r\n"),
		"BOM":            "\ufeff" + plain,
		"start and end":  "%YAML 1.2\n---" + plain + "...\n",
		"comments":       strings.ReplaceAll(plain, "\n", " # why\n"),
		"number":         strings.ReplaceAll(plain, "Seconds: 10", "Seconds: 1e1"),
		"fraction":       strings.ReplaceAll(plain, "Seconds: 10", "Seconds: 10.0"),
		"octal":          strings.ReplaceAll(plain, "Seconds: 10", "Seconds: 0o12"),
		"old octal":      strings.ReplaceAll(plain, "Seconds: 10", "Seconds: 012"),
		"hexadecimal":    strings.ReplaceAll(plain, "Seconds: 10", "Seconds: 0xA"),
		"yes":            strings.ReplaceAll(plain, "hostNetwork: true", "hostNetwork: yes"),
		"alias":          strings.ReplaceAll(strings.ReplaceAll(plain, "name: c}", "name: &x c}"), "namespace: b", "namespace: b, annotations: {}"),
		"server's":       strings.ReplaceAll(plain, "{name: a,", "{uid: x, ownerReferences: [], finalizers: [], generateName: z, selfLink: q, name: a,"),
		"explicit nulls": strings.ReplaceAll(plain, "strategy: Manual", "strategy: Manual, steps: null, gate: ~"),
		"explicit tag":   strings.ReplaceAll(plain, "name: e", "name: !!str e"),
		"in JSON": `{"kind": "WorkerDeployment", "apiVersion": "temporal.io\/v1alpha1", "metadata": {"name": "a", "namespace": "b"},
			"spec": {"rollout": {"strategy": "Manual"}, "workerOptions": {"temporalNamespace": "d", "connectionRef": {"name": "c"}},
			"template": {"spec": {"hostNetwork": true, "containers":[{"image":"f","name":"\u0065","readinessProbe":{"initialDelaySeconds":10, "tcpSocket": {"port": 80}}}]}}}}`,
		"in a list": "apiVersion: v1\nkind: List\nitems:\n-" + strings.ReplaceAll(plain, "\n", "\n  "),
	}
	documents, problems := v1alpha1.Decode("x.yaml", []byte(plain))
	require.Empty(t, problems)
	want := documents[0].Object
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			documents, problems := v1alpha1.Decode("x.yaml", []byte(text))
			require.Empty(t, problems)
			require.Len(t, documents, 1)
			if diff := cmp.Diff(want, documents[0].Object); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDefaultConfig(t *testing.T) {
	config := v1alpha1.DefaultConfig()
	want := v1alpha1.Config{APIVersion: "rampart.dev/v1alpha1", Kind: "Config", Spec: v1alpha1.ConfigSpec{
		Environments: []v1alpha1.Environment{{
			Name: "default", Specs: []string{"**/*.{yaml,yml,json}"},
			Output: v1alpha1.Output{Path: "deploy"}, Approval: v1alpha1.Approval{Mode: "Direct", Scope: "Step"},
			CD: v1alpha1.CD{Tool: "Both", RampHealth: "Progressing"}, ManagerIdentity: "rampart/default", WorkerEnv: "Current", Status: "On",
		}},
	}}
	if diff := cmp.Diff(want, config); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	roundTrip(t, &config)
}

func TestPositionsOfFieldsInTheFile(t *testing.T) {
	documents := decodeFile(t, "legacy.yaml")
	tests := []struct {
		path         string
		line, column int
	}{
		{"", 11, 1},
		{"spec.replicas", 19, 3},
		{"spec.rollout.steps[1].rampPercentage", 28, 9}, // written as cutover
		{"spec.rollout.steps[7].rampPercentage", 25, 5},
		{"spec.workerOptions.connectionRef.name", 21, 5},
		{"spec.template.spec.containers[0].env[3]", 35, 11},
		{`metadata.labels["app"]`, 17, 5},
		{"metadata.nothing", 13, 1},
		{`["`, 11, 1},
		{"[x]..[", 11, 1},
	}
	for _, test := range tests {
		line, column := documents[1].Position(test.path)
		require.Equal(t, [2]int{test.line, test.column}, [2]int{line, column}, test.path)
	}
}

func TestProblemString(t *testing.T) {
	p := v1alpha1.Problem{Severity: v1alpha1.Error, File: "a.yaml", Line: 3, Column: 5, Path: "spec.replica",
		Message: "unknown field", Suggestion: "replicas"}
	require.Equal(t, "a.yaml:3: spec.replica: unknown field (did you mean replicas?)", p.String())
	require.EqualError(t, v1alpha1.Problem{File: "a.yaml", Message: "too large"}, "a.yaml: too large")
	encoded, err := json.Marshal(p)
	require.NoError(t, err)
	require.JSONEq(t, `{"severity": "Error", "file": "a.yaml", "line": 3, "column": 5, "path": "spec.replica",
		"message": "unknown field", "suggestion": "replicas"}`, string(encoded))
}
