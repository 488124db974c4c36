package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// A version's manifest is the one object that both worlds read: Kubernetes strictly, and ours to edit it.

func TestRenderedDeploymentsAreKubernetes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		v := versionGen(t).Draw(rt, "version")
		data := render(rt, v)
		var d appsv1.Deployment
		if err := yaml.UnmarshalStrict([]byte(data), &d); err != nil {
			rt.Fatalf("Kubernetes cannot read it: %v\n%s", err, data)
		}
		selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
		if err != nil || !selector.Matches(labels.Set(d.Spec.Template.Labels)) {
			rt.Fatalf("selector %v does not match the pods' labels %v", d.Spec.Selector, d.Spec.Template.Labels)
		}
		want := rollout.SelectorLabels(v.name.Name, v.buildID)
		if diff := cmp.Diff(want, d.Labels); diff != "" {
			rt.Fatalf("labels (-want +got):\n%s", diff)
		}
		for _, c := range d.Spec.Template.Spec.Containers {
			checkEnv(rt, v, c)
		}
	})
}

// checkEnv reads a container's environment as its process does, the last of a name winning.
func checkEnv(t *rapid.T, v version, c corev1.Container) {
	env := map[string]string{}
	for _, e := range c.Env {
		env[e.Name] = e.Value
		if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
			env[e.Name] = e.ValueFrom.SecretKeyRef.Name + "/" + e.ValueFrom.SecretKeyRef.Key
		}
	}
	got := map[string]string{}
	for _, name := range v1alpha1.OwnedEnv() {
		if value, ok := env[name]; ok {
			got[name] = value
		}
	}
	conn := v.wiring.connection
	want := map[string]string{
		"TEMPORAL_ADDRESS": conn.HostPort, "TEMPORAL_NAMESPACE": v.wiring.namespace,
		"TEMPORAL_DEPLOYMENT_NAME": v.name.String(), "TEMPORAL_WORKER_BUILD_ID": v.buildID,
	}
	if conn.TLS != nil && conn.TLS.ServerName != "" {
		want["TEMPORAL_TLS_SERVER_NAME"] = conn.TLS.ServerName
	}
	checkCA(t, v, c, env["TEMPORAL_TLS_SERVER_CA_CERT_PATH"])
	switch {
	case conn.MutualTLSSecretRef != nil:
		want["TEMPORAL_TLS"] = "true"
		want["TEMPORAL_TLS_CLIENT_KEY_PATH"] = "/etc/temporal/tls/tls.key"
		want["TEMPORAL_TLS_CLIENT_CERT_PATH"] = "/etc/temporal/tls/tls.crt"
		if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
			return m.Name == "temporal-tls" && m.MountPath == "/etc/temporal/tls"
		}) {
			t.Fatalf("%s does not mount the certificate: %v", c.Name, c.VolumeMounts)
		}
	case conn.APIKeySecretRef != nil:
		want["TEMPORAL_API_KEY"] = conn.APIKeySecretRef.Name + "/" + conn.APIKeySecretRef.Key
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s has the environment (-want +got):\n%s", c.Name, diff)
	}
}

// checkCA holds where a container finds the certificates to trust: where its own variable says so, else in the
// connection's Secret.
func checkCA(t *rapid.T, v version, c corev1.Container, got string) {
	want, secret := "", v.wiring.connection.CACertSecret()
	if secret != "" {
		want = "/etc/temporal/server-ca/ca.crt"
	}
	own := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "TEMPORAL_ADDRESS" })
	for _, e := range c.Env[:own] {
		if e.Name == "TEMPORAL_TLS_SERVER_CA_CERT_PATH" {
			want = e.Value
		}
	}
	if got != want {
		t.Fatalf("%s has the certificates to trust at %q, not %q: %v", c.Name, got, want, c.Env)
	}
	mounted := slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
		return m.Name == "temporal-server-ca" && m.MountPath == "/etc/temporal/server-ca"
	})
	if mounted != (secret != "") {
		t.Fatalf("%s mounts the certificates to trust: %v, with a Secret %q", c.Name, mounted, secret)
	}
}

func TestOwnedEnvIsWhatIsRendered(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range []v1alpha1.ConnectionSpec{withServerName(mutualTLS("s"), "n"), apiKey("s", "k"), withCA(noAuth(), "ca")} {
		for _, e := range (wiring{connection: c}).block(nil, v1alpha1.EnvWithLegacyNames, nil) {
			seen[e.(map[string]any)["name"].(string)] = true
		}
	}
	owned := append(v1alpha1.OwnedEnv(), v1alpha1.LegacyEnv()...)
	owned = append(owned, v1alpha1.CAPathEnv) // a user's own counts
	require.ElementsMatch(t, owned, slices.Collect(maps.Keys(seen)))
}

// TestVolumesAreTheSecrets: the pods see the client certificate's whole Secret, and of that with the certificates to
// trust nothing but ca.crt.
func TestVolumesAreTheSecrets(t *testing.T) {
	secret := func(name string, items ...corev1.KeyToPath) corev1.VolumeSource {
		return corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name, Items: items}}
	}
	ca := corev1.Volume{Name: "temporal-server-ca", VolumeSource: secret("ca", corev1.KeyToPath{Key: "ca.crt", Path: "ca.crt"})}
	client := corev1.Volume{Name: "temporal-tls", VolumeSource: secret("client")}
	for _, tt := range []struct {
		connection v1alpha1.ConnectionSpec
		want       []corev1.Volume
	}{
		{noAuth(), nil}, {withCA(noAuth(), "ca"), []corev1.Volume{ca}}, {withCA(apiKey("key", "token"), "ca"), []corev1.Volume{ca}},
		{mutualTLS("client"), []corev1.Volume{client}}, {withCA(mutualTLS("client"), "ca"), []corev1.Volume{client, ca}},
	} {
		s := newScene(t, checkoutSpec, tt.connection)
		s.commit()
		require.Equal(t, tt.want, deploymentOf(t, s).Spec.Template.Spec.Volumes)
	}
}

func TestEditAndBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		v := versionGen(t).Draw(rt, "version")
		original := render(rt, v)
		there := rollout.VersionWrite{Replicas: replicasGen.Draw(rt, "replicas"), Guard: guardGen.Draw(rt, "guard")}
		back := rollout.VersionWrite{Replicas: v.replicas, Guard: v.guard}

		got := edited(rt, original, there, nil)
		changed := v
		changed.replicas, changed.guard = there.Replicas, there.Guard
		if diff := cmp.Diff(render(rt, changed), got); diff != "" {
			rt.Fatalf("edited otherwise than rendered (-rendered +edited):\n%s", diff)
		}
		if diff := cmp.Diff(original, edited(rt, got, back, nil)); diff != "" {
			rt.Fatalf("there and back (-original +got):\n%s", diff)
		}
	})
}

// TestReconnectIsRender goes through all pairs of connections. An edited manifest is what a render with the new
// connection would have given, so nothing of the old one stays and nothing of the new one is missing.
func TestReconnectIsRender(t *testing.T) {
	ends := []v1alpha1.ConnectionSpec{
		noAuth(), mutualTLS("client"), mutualTLS("client-2"), apiKey("key", "token"), apiKey("key-2", "token"), apiKey("key", "api"),
	}
	for _, c := range ends {
		c.HostPort = "other.example.com:443"
		ends = append(ends, withServerName(c, "temporal.internal"))
	}
	for _, c := range ends {
		ends = append(ends, withCA(c, "ca"), withCA(c, "ca-2"))
	}
	optional := apiKey("key", "token")
	yes := true
	optional.APIKeySecretRef.Optional = &yes
	ends = append(ends, optional)
	reconnect := func(t fataler, v version, from, to v1alpha1.ConnectionSpec, w rollout.VersionWrite) {
		t.Helper()
		old, now := v, v
		old.wiring.connection = from
		now.wiring.connection, now.replicas, now.guard = to, w.Replicas, w.Guard
		if diff := cmp.Diff(render(t, now), edited(t, render(t, old), w, &now.wiring)); diff != "" {
			t.Fatalf("%+v -> %+v (-rendered +reconnected):\n%s", from, to, diff)
		}
	}
	versions := versionGen(t)
	example := versions.Example(1)
	for _, from := range ends {
		for _, to := range ends {
			reconnect(t, example, from, to, rollout.VersionWrite{Guard: v1alpha1.GuardOn})
		}
	}
	end := rapid.SampledFrom(ends)
	rapid.Check(t, func(rt *rapid.T) {
		reconnect(rt, versions.Draw(rt, "version"), end.Draw(rt, "from"), end.Draw(rt, "to"),
			rollout.VersionWrite{Replicas: replicasGen.Draw(rt, "replicas"), Guard: guardGen.Draw(rt, "guard")})
	})
}

func TestSameBytesForTheSameInput(t *testing.T) {
	spec := with(checkoutSpec, "      labels: {app: checkout}\n", "      labels: {app: checkout, b: c, d: e, f: g}\n      annotations: {note: a, more: b, x: c}\n")
	s := newScene(t, spec, withServerName(mutualTLS("client"), "name"))
	raw, err := json.Marshal(s.plan)
	require.NoError(t, err)
	want, err := Files(s.plan, s.record)
	require.NoError(t, err)
	after, err := json.Marshal(s.plan)
	require.NoError(t, err)
	require.JSONEq(t, string(raw), string(after), "the plan was changed")

	t.Run("keys in another order", func(t *testing.T) {
		var v any
		require.NoError(t, yaml.Unmarshal([]byte(spec), &v))
		for seed := range uint64(20) {
			shuffled := newScene(t, string(shuffledJSON(v, rand.New(rand.NewPCG(seed, 0)))), withServerName(mutualTLS("client"), "name"))
			got, err := Files(shuffled.plan, shuffled.record)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(want, got))
		}
	})
	t.Run("through JSON", func(t *testing.T) {
		var plan rollout.Plan
		require.NoError(t, json.Unmarshal(raw, &plan))
		got, err := Files(plan, s.record)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(want, got))
	})
}

func shuffledJSON(v any, r *rand.Rand) []byte {
	switch x := v.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(x))
		r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		parts := make([]string, len(keys))
		for i, k := range keys {
			parts[i] = fmt.Sprintf("%q:%s", k, shuffledJSON(x[k], r))
		}
		return []byte("{" + strings.Join(parts, ",") + "}")
	case []any:
		parts := make([]string, len(x))
		for i, item := range x {
			parts[i] = string(shuffledJSON(item, r))
		}
		return []byte("[" + strings.Join(parts, ",") + "]")
	}
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func render(t fataler, v version) string {
	t.Helper()
	files, err := v.files()
	if err != nil {
		t.Fatalf("render: %v", err)
	}
	return files[layout.Deployment]
}

func edited(t fataler, data string, w rollout.VersionWrite, rewire *wiring) string {
	t.Helper()
	got, err := editManifest(data, edit{w.Replicas, w.Guard, rewire})
	if err != nil {
		t.Fatalf("edit: %v\n%s", err, data)
	}
	return got
}

var (
	guardGen    = rapid.SampledFrom([]v1alpha1.Guard{v1alpha1.GuardOn, v1alpha1.GuardOff})
	replicasGen = rapid.OneOf(rapid.Just[*int32](nil), rapid.Map(rapid.Int32Range(0, 9), replicas))
)

// versionGen generates versions of valid pod templates, with what may stand in the way of wiring and guards.
func versionGen(t *testing.T) *rapid.Generator[version] {
	base := decodeSpec(t, checkoutSpec)
	return rapid.Custom(func(rt *rapid.T) version {
		spec := base.Spec
		raw, err := json.Marshal(templateGen.Draw(rt, "template"))
		if err != nil {
			rt.Fatalf("%v", err)
		}
		if err := spec.Template.UnmarshalJSON(raw); err != nil {
			rt.Fatalf("%v", err)
		}
		if rapid.Bool().Draw(rt, "strategy") {
			spec.Strategy = json.RawMessage(`{"type":"Recreate"}`)
		}
		connections := []v1alpha1.ConnectionSpec{noAuth(), mutualTLS("client"), apiKey("key", "token"), withServerName(noAuth(), "n"),
			withCA(withServerName(noAuth(), "n"), "ca"), withCA(mutualTLS("client"), "ca"), withCA(apiKey("key", "token"), "ca")}
		return version{
			name: rollout.Name{Namespace: "payments", Name: "checkout"}, buildID: "v1-0a1b2c3d", deployment: "checkout-v1-0a1b2c3d",
			spec: spec,
			wiring: wiring{
				connection: rapid.SampledFrom(connections).Draw(rt, "connection"), namespace: "payments-prod",
				deployment: "payments/checkout", buildID: "v1-0a1b2c3d",
				names: rapid.SampledFrom([]v1alpha1.WorkerEnv{v1alpha1.EnvCurrent, v1alpha1.EnvWithLegacyNames}).Draw(rt, "names"),
			},
			replicas: replicasGen.Draw(rt, "own replicas"), guard: guardGen.Draw(rt, "own guard"),
		}
	})
}

var templateGen = rapid.Custom(func(t *rapid.T) map[string]any {
	pod := map[string]any{"containers": rapid.SliceOfN(containerGen, 1, 3).Draw(t, "containers")}
	maybe(t, pod, "initContainers", rapid.SliceOfN(containerGen, 0, 2))
	maybe(t, pod, "volumes", rapid.SampledFrom([][]any{{}, {map[string]any{"name": "scratch", "emptyDir": map[string]any{}}}}))
	maybe(t, pod, "terminationGracePeriodSeconds", rapid.IntRange(0, 600))
	template := map[string]any{"spec": pod}
	meta := map[string]any{}
	maybe(t, meta, "labels", rapid.MapOfN(rapid.SampledFrom([]string{"app", "team", rollout.LabelBuildID}), rapid.SampledFrom([]string{"a", "1", "on"}), 0, 3))
	maybe(t, meta, "annotations", rapid.MapOfN(
		rapid.SampledFrom([]string{rollout.AnnotationArgoSync, rollout.AnnotationFluxPrune, rollout.AnnotationHelmPolicy,
			rollout.AnnotationConnectionHash, "note"}),
		rapid.SampledFrom([]string{"", "Prune=false", "Replace=true, Prune=false", "Replace=true", "Prune=true,Validate=false ", "disabled", "enabled", "a\nb\n"}),
		0, 4))
	maybe(t, template, "metadata", rapid.Just(meta))
	return template
})

var containerGen = rapid.Custom(func(t *rapid.T) map[string]any {
	c := map[string]any{"name": "c", "image": "registry.example.com/a/b:v1"}
	maybe(t, c, "env", rapid.SliceOfN(rapid.Custom(func(t *rapid.T) map[string]any {
		return map[string]any{
			// the last three are only Rampart's where it sets them
			"name":  rapid.SampledFrom([]string{"A", "LOG_LEVEL", "WORKER_BUILD_ID", "TEMPORAL_TLS_CERT_PATH", "TEMPORAL_TLS_SERVER_CA_CERT_PATH"}).Draw(t, "name"),
			"value": rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"yes", "0x1F", "a\nb", "${NAME}", "/etc/temporal/server-ca/ca.crt"})).Draw(t, "value"),
		}
	}), 0, 3))
	maybe(t, c, "volumeMounts", rapid.SampledFrom([][]any{{}, {map[string]any{"name": "scratch", "mountPath": "/scratch"}}}))
	maybe(t, c, "resources", rapid.Just(map[string]any{"limits": map[string]any{"cpu": json.Number("0.5"), "memory": "1Gi"}}))
	return c
})

// maybe sets a field, leaves it out, or sets it to null.
func maybe[V any](t *rapid.T, m map[string]any, key string, gen *rapid.Generator[V]) {
	switch rapid.IntRange(0, 4).Draw(t, key+"?") {
	case 0:
	case 1:
		m[key] = nil
	default:
		m[key] = gen.Draw(t, key)
	}
}
