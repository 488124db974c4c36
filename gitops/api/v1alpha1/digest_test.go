package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

const short = `
apiVersion: temporal.io/v1alpha1
kind: WorkerDeployment
metadata: {name: a, namespace: b}
spec:
  workerOptions: {connectionRef: {name: c}, temporalNamespace: d}
  rollout: {strategy: Progressive, gate: {workflowType: x}, steps: [{rampPercentage: 5, pauseDuration: 10m}]}
  template: {spec: {containers: [{name: e, image: f}]}}
`

func digest(t *testing.T, text string) string {
	t.Helper()
	documents, problems := v1alpha1.Decode("x.yaml", []byte(text))
	require.False(t, v1alpha1.HasErrors(problems), "%v", problems)
	return documents[0].Object.(*v1alpha1.WorkerDeployment).Digest()
}

// TestDigestIsStable holds the bytes: a digest that a new Rampart computes in another way would rewrite every status.
func TestDigestIsStable(t *testing.T) {
	require.Equal(t, "sha256:bf12b921c0a6e996c233646a07b6abda06f5f87f8089ebd12173606fd1314c56", digest(t, short))
}

func TestDigestCovers(t *testing.T) {
	same := map[string][2]string{
		"comment":        {"metadata:", "# why\nmetadata:"},
		"kind":           {"kind: WorkerDeployment", "kind: TemporalWorkerDeployment"},
		"spelling":       {"rollout:", "cutover:"},
		"labels":         {"name: a,", "name: a, labels: {x: y}, annotations: {x: y},"},
		"duration":       {"10m", "600s"},
		"number":         {"Percentage: 5", "Percentage: 5.0"},
		"defaults":       {"strategy: Progressive,", "strategy: Progressive, rollback: {window: 1h},"},
		"gate's default": {"workflowType: x", "workflowType: x, timeout: 60m, onFailure: Hold"},
		"sunset":         {"  rollout:", "  sunset: {deleteDelay: 24h}\n  progressDeadlineSeconds: 600\n  minReadySeconds: 0\n  pools: []\n  rollout:"},
		"connection":     {"connectionRef: {name", "connectionRef: {kind: Connection, name"},
		"nulls":          {"  rollout:", "  sunset: null\n  replicas: null\n  rollout:"},
		"status":         {"spec:", "status: {conditions: []}\nspec:"},
	}
	other := map[string][2]string{
		"name":           {"name: a,", "name: aa,"},
		"namespace":      {"namespace: b", "namespace: bb"},
		"replicas":       {"  rollout:", "  replicas: 0\n  rollout:"},
		"image":          {"image: f", "image: g"},
		"template":       {"image: f", "image: f, args: []"},
		"percentage":     {"Percentage: 5", "Percentage: 5.5"},
		"zero window":    {"strategy: Progressive,", "strategy: Progressive, rollback: {window: 0s},"},
		"zero delay":     {"  rollout:", "  sunset: {scaledownDelay: 0s, deleteDelay: 24h}\n  rollout:"},
		"analysis":       {"strategy: Progressive,", "strategy: Progressive, analysis: {},"},
		"input":          {"workflowType: x", "workflowType: x, input: {}"},
		"empty input":    {"workflowType: x", "workflowType: x, input: []"},
		"answer":         {"workflowType: x", "workflowType: x, onFailure: Rollback"},
		"pod strategy":   {"  rollout:", "  strategy: {}\n  rollout:"},
		"custom build":   {"temporalNamespace: d", "temporalNamespace: d, unsafeCustomBuildID: v1"},
		"cluster's":      {"connectionRef: {name", "connectionRef: {kind: ClusterConnection, name"},
		"evacuate":       {"  rollout:", "  sunset: {evacuate: {}}\n  rollout:"},
		"evacuate later": {"  rollout:", "  sunset: {evacuate: {cancelAfter: 1h}}\n  rollout:"},
	}
	want := digest(t, short)
	for name, change := range same {
		require.Contains(t, short, change[0])
		require.Equal(t, want, digest(t, strings.Replace(short, change[0], change[1], 1)), name)
	}
	seen := map[string]string{want: "unchanged"}
	for name, change := range other {
		require.Contains(t, short, change[0])
		d := digest(t, strings.Replace(short, change[0], change[1], 1))
		require.Empty(t, seen[d], name)
		seen[d] = name
	}
}

// TestDigestOfRaw: what did not come by Decode is brought into canonical form.
func TestDigestOfRaw(t *testing.T) {
	documents, problems := v1alpha1.Decode("x.yaml", []byte(short))
	require.Empty(t, problems)
	w := documents[0].Object.(*v1alpha1.WorkerDeployment)
	want := w.Digest()
	w.Spec.Rollout.Gate.Input = []byte("{} ")
	withInput := w.Digest()
	require.NotEqual(t, want, withInput)
	w.Spec.Rollout.Gate.Input = []byte("{}")
	require.Equal(t, withInput, w.Digest())
	w.Spec.Template.Raw = []byte("null")
	none := w.Digest()
	w.Spec.Template.Raw = nil
	require.Equal(t, none, w.Digest())
}

func TestRoutingSeal(t *testing.T) {
	routing := decodeFile(t, "routing.yaml")[0].Object.(*v1alpha1.Routing)
	require.True(t, routing.Edited(), "never sealed")
	before := routing.Metadata.Annotations
	routing.Seal()
	require.False(t, routing.Edited())
	require.NotContains(t, before, v1alpha1.AnnotationRoutingDigest)
	require.Equal(t, "true", routing.Metadata.Annotations["config.kubernetes.io/local-config"])
	require.Equal(t, "sha256:6b48578f119122ce4498eae10bd34f3fb56c0cf805e4860a07f8b666fd850ba3", routing.Metadata.Annotations[v1alpha1.AnnotationRoutingDigest])
	roundTrip(t, routing)

	for name, edit := range map[string]func(*v1alpha1.RoutingSpec){
		"percentage": func(s *v1alpha1.RoutingSpec) {
			s.Desired.Ramping = &v1alpha1.DesiredRamp{BuildID: s.Desired.Ramping.BuildID, Percentage: 12}
		},
		"ramp":    func(s *v1alpha1.RoutingSpec) { s.Desired.Ramping = nil },
		"current": func(s *v1alpha1.RoutingSpec) { s.Desired.Current = "" },
		"hold":    func(s *v1alpha1.RoutingSpec) { s.Hold = nil },
		"file":    func(s *v1alpha1.RoutingSpec) { s.Versions = nil },
	} {
		edited := *routing
		edit(&edited.Spec)
		require.True(t, edited.Edited(), name)
	}
	sealed := *routing
	sealed.Metadata.Labels = map[string]string{"a": "b"}
	require.False(t, sealed.Edited())
}

// TestConnectionHashStays: a connection keeps its hash, or its pods would restart with an upgrade of the bot. A field
// that is added later may be in the hash only where it is set.
func TestConnectionHashStays(t *testing.T) {
	mutual := v1alpha1.ConnectionSpec{HostPort: "temporal:7233", TLS: &v1alpha1.ConnectionTLS{ServerName: "x"}, MutualTLSSecretRef: &v1alpha1.SecretReference{Name: "tls"}}
	ca := &v1alpha1.ConnectionTLS{CACertSecretRef: &v1alpha1.SecretReference{Name: "ca"}}
	for want, c := range map[string]v1alpha1.ConnectionSpec{
		"7c74fafbd348b2eaed4321509d4b102a7dcf69a97b3ca279f8affe0f839d9bd2": {HostPort: "temporal:7233"}, "17f4880efb3ebe90f8f3bbc8289e8fbce955db7bdc67cfd8c8d5615410356829": mutual,
		"a7c5760501a52929b744f36770be4a449b3e00e6af1f30b1aa9c846e6e74deee": {HostPort: "temporal:7233", TLS: ca},
	} {
		require.Equal(t, want, c.Hash())
	}
}

func TestConnectionHash(t *testing.T) {
	tls := func(name string) *v1alpha1.SecretReference { return &v1alpha1.SecretReference{Name: name} }
	key := func(name, key string, optional *bool) *corev1.SecretKeySelector {
		return &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key, Optional: optional}
	}
	ca := func(name string) *v1alpha1.ConnectionTLS { return &v1alpha1.ConnectionTLS{CACertSecretRef: tls(name)} }
	all := []v1alpha1.ConnectionSpec{
		{HostPort: "a:1"},
		{HostPort: "a:1x"},
		{HostPort: "a:1", TLS: &v1alpha1.ConnectionTLS{ServerName: "x"}},
		{HostPort: "a:1", MutualTLSSecretRef: tls("x")},
		{HostPort: "a:1", APIKeySecretRef: key("x", "", nil)},
		{HostPort: "a:1", APIKeySecretRef: key("x", "k", nil)},
		{HostPort: "a:1", APIKeySecretRef: key("xk", "", nil)},
		{HostPort: "a:1", APIKeySecretRef: key("x", "k", ptr(true))},
		{HostPort: "a:1", TLS: &v1alpha1.ConnectionTLS{ServerName: "x"}, MutualTLSSecretRef: tls("x")},
		{HostPort: "a:1", TLS: &v1alpha1.ConnectionTLS{ServerName: `x","`}},
		{HostPort: `a:1","x`},
		{HostPort: "a:1", TLS: ca("x")},
		{HostPort: "a:1", TLS: ca("y")},
		{HostPort: "a:1", TLS: ca("x"), MutualTLSSecretRef: tls("x")},
		{HostPort: "a:1", TLS: ca("x"), APIKeySecretRef: key("x", "k", nil)},
		{HostPort: "a:1", TLS: ca("optional"), APIKeySecretRef: key("x", "k", nil)},
	}
	seen := map[string]int{}
	for i, c := range all {
		h := c.Hash()
		require.Len(t, h, 64)
		first, ok := seen[h]
		require.False(t, ok, "%d and %d", first, i)
		seen[h] = i
	}
	// What pods can't tell apart is the same.
	require.Equal(t, all[0].Hash(), v1alpha1.ConnectionSpec{HostPort: "a:1", TLS: &v1alpha1.ConnectionTLS{}}.Hash())
	require.Equal(t, all[0].Hash(), v1alpha1.ConnectionSpec{HostPort: "a:1", TLS: ca("")}.Hash())
	require.Equal(t, all[5].Hash(), v1alpha1.ConnectionSpec{HostPort: "a:1", APIKeySecretRef: key("x", "k", ptr(false))}.Hash())
	require.Equal(t, "fb521ce5727f1002c5d3ebbd1b79ca15c5fdbdca9f549c4ec559eacd5c402441", all[3].Hash())
	require.Equal(t, []v1alpha1.AuthMode{"None", "MutualTLS", "APIKey"}, []v1alpha1.AuthMode{all[0].Auth(), all[3].Auth(), all[4].Auth()})
}
