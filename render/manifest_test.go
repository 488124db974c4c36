package render

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// takenOver is a manifest as the in-cluster controller leaves it: no annotations on the pods, and an address that the
// user had set before.
const takenOver = `# written by hand
apiVersion: apps/v1
kind: Deployment
metadata:
  name: checkout-v1-f95c
  namespace: payments
  ownerReferences: [{apiVersion: temporal.io/v1alpha1, kind: WorkerDeployment, name: checkout, uid: 0-1}]
  annotations: {argocd.argoproj.io/sync-options: Replace=true}
spec:
  replicas: 2
  revisionHistoryLimit: 0x0A
  selector: {matchLabels: {temporal.io/build-id: v1-f95c}}
  template:
    metadata:
      labels: {temporal.io/build-id: v1-f95c}
    spec:
      containers:
      - name: worker
        image: app:v1
        resources: {limits: {cpu: 1.50, memory: 1e9}}
        env:
        - {name: TEMPORAL_API_KEY, value: my own}
        - {name: TEMPORAL_ADDRESS, value: set by the user}
        - {name: TEMPORAL_ADDRESS, value: "old:7233"}
        - {name: TEMPORAL_NAMESPACE, value: payments-prod}
        - {name: TEMPORAL_DEPLOYMENT_NAME, value: payments/checkout}
        - {name: TEMPORAL_WORKER_BUILD_ID, value: v1-f95c}
        - {name: TEMPORAL_TLS, value: "true"}
        - {name: TEMPORAL_TLS_CLIENT_KEY_PATH, value: /etc/temporal/tls/tls.key}
        - {name: TEMPORAL_TLS_CLIENT_CERT_PATH, value: /etc/temporal/tls/tls.crt}
        - {name: ADDED_LATER, value: "1"}
        volumeMounts:
        - {name: temporal-tls, mountPath: /etc/temporal/tls}
        - {name: scratch, mountPath: /scratch}
      volumes:
      - {name: temporal-tls, secret: {secretName: old-client}}
      - {name: scratch, emptyDir: {}}
`

func TestReconnectTakenOver(t *testing.T) {
	w := wiring{connection: apiKey("key", "token"), namespace: "other", deployment: "other/name", buildID: "other", names: v1alpha1.EnvWithLegacyNames}
	got, err := editManifest(takenOver, edit{replicas(2), v1alpha1.GuardOn, &w})
	require.NoError(t, err)
	want := `apiVersion: apps/v1
kind: Deployment
metadata:
  annotations:
    argocd.argoproj.io/sync-options: Replace=true,Prune=false,Delete=false
    helm.sh/resource-policy: keep
    kustomize.toolkit.fluxcd.io/prune: disabled
  name: checkout-v1-f95c
  namespace: payments
  ownerReferences:
  - apiVersion: temporal.io/v1alpha1
    kind: WorkerDeployment
    name: checkout
    uid: 0-1
spec:
  replicas: 2
  revisionHistoryLimit: 10
  selector:
    matchLabels:
      temporal.io/build-id: v1-f95c
  template:
    metadata:
      annotations:
        temporal.io/connection-spec-hash: ` + w.connection.ControllerHash() + `
      labels:
        temporal.io/build-id: v1-f95c
    spec:
      containers:
      - env:
        - name: TEMPORAL_API_KEY
          value: my own
        - name: TEMPORAL_ADDRESS
          value: set by the user
        - name: TEMPORAL_ADDRESS
          value: temporal.example.com:7233
        - name: TEMPORAL_NAMESPACE
          value: payments-prod
        - name: TEMPORAL_DEPLOYMENT_NAME
          value: payments/checkout
        - name: TEMPORAL_WORKER_BUILD_ID
          value: v1-f95c
        - name: TEMPORAL_API_KEY
          valueFrom:
            secretKeyRef:
              key: token
              name: key
        - name: ADDED_LATER
          value: "1"
        image: app:v1
        name: worker
        resources:
          limits:
            cpu: 1.50
            memory: 1e9
        volumeMounts:
        - mountPath: /scratch
          name: scratch
      volumes:
      - emptyDir: {}
        name: scratch
`
	require.Empty(t, cmp.Diff(want, got))
}

func TestReconnectOlderEra(t *testing.T) {
	older := `{"metadata":{},"spec":{"template":{"spec":{"containers":[{"env":[
		{"name":"A","value":"b"},{"name":"TEMPORAL_HOST_PORT","value":"old:1"},{"name":"TEMPORAL_NAMESPACE","value":"n"},
		{"name":"TEMPORAL_DEPLOYMENT_NAME","value":"ns/x"},{"name":"WORKER_BUILD_ID","value":"b1"}]},{"name":"added"}]}}}}`
	w := wiring{connection: noAuth(), namespace: "n", deployment: "ns/x", buildID: "b1", names: v1alpha1.EnvCurrent}
	got, err := editManifest(older, edit{nil, v1alpha1.GuardOff, &w})
	require.NoError(t, err)
	require.Contains(t, got, "spec:\n  template:")
	d, err := parseManifest(got)
	require.NoError(t, err)
	spec, err := objectAt(d, "spec", "template", "spec")
	require.NoError(t, err)
	var names [2][]string
	for i, c := range spec["containers"].([]any) {
		for _, e := range c.(map[string]any)["env"].([]any) {
			names[i] = append(names[i], e.(map[string]any)["name"].(string))
		}
	}
	block := []string{"TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE", "TEMPORAL_DEPLOYMENT_NAME", "TEMPORAL_WORKER_BUILD_ID"}
	require.Equal(t, append(append([]string{"A"}, block...), "TEMPORAL_HOST_PORT", "WORKER_BUILD_ID"), names[0])
	require.Equal(t, block, names[1])
}

// TestReconnectKeepsAnotherVolume: a version may have a volume of its own under the name of the connection's. An
// earlier release rendered it, or it was taken over. It stays; only a connection that needs the name is refused.
func TestReconnectKeepsAnotherVolume(t *testing.T) {
	for name, volume := range map[string]string{
		"config map": "{configMap: {name: own}}", "Secret": "{secret: {secretName: own}}",
		"other files": "{secret: {secretName: own, items: [{key: ca.crt, path: root.crt}]}}",
	} {
		t.Run(name, func(t *testing.T) {
			own := strings.NewReplacer("{name: scratch, mountPath: /scratch}", "{name: temporal-server-ca, mountPath: /etc/temporal/server-ca}",
				"{name: scratch, emptyDir: {}}", "{name: temporal-server-ca, "+volume[1:]).Replace(takenOver)
			w := wiring{connection: noAuth()}
			got, err := editManifest(own, edit{replicas(2), v1alpha1.GuardOn, &w})
			require.NoError(t, err)
			was, now := podOf(t, own), podOf(t, got)
			require.Equal(t, was.Volumes[1:], now.Volumes, "the client certificate's goes")
			require.Equal(t, was.Containers[0].VolumeMounts[1:], now.Containers[0].VolumeMounts)

			w.connection = withCA(noAuth(), "ca")
			_, err = editManifest(own, edit{replicas(2), v1alpha1.GuardOn, &w})
			require.ErrorContains(t, err, `volume "temporal-server-ca" is the connection's`)
		})
	}
}

func podOf(t *testing.T, manifest string) corev1.PodSpec {
	t.Helper()
	var d appsv1.Deployment
	require.NoError(t, yaml.Unmarshal([]byte(manifest), &d))
	return d.Spec.Template.Spec
}

// TestOwnPathStays: a variable that a person added behind ours is a user's own too, unless it says what ours says.
func TestOwnPathStays(t *testing.T) {
	w := wiring{connection: withCA(noAuth(), "ca"), names: v1alpha1.EnvCurrent}
	paths := func(manifest string) (out []string) {
		for _, e := range podOf(t, manifest).Containers[0].Env {
			if e.Name == "TEMPORAL_TLS_SERVER_CA_CERT_PATH" {
				out = append(out, e.Value)
			}
		}
		return out
	}
	for added, want := range map[string][]string{
		"{name: ADDED_LATER, value: \"1\"}":                                                {"/etc/temporal/server-ca/ca.crt"},
		"{name: TEMPORAL_TLS_SERVER_CA_CERT_PATH, value: /etc/temporal/server-ca/ca.crt}":  {"/etc/temporal/server-ca/ca.crt"},
		"{name: TEMPORAL_TLS_SERVER_CA_CERT_PATH, value: /certs/own.crt}":                  {"/certs/own.crt"},
		"{name: TEMPORAL_TLS_SERVER_CA_CERT_PATH, valueFrom: {secretKeyRef: {name: own}}}": {""},
	} {
		got, err := editManifest(strings.Replace(takenOver, "{name: ADDED_LATER, value: \"1\"}", added, 1), edit{replicas(2), v1alpha1.GuardOn, &w})
		require.NoError(t, err)
		require.Equal(t, want, paths(got), added)
		again, err := editManifest(got, edit{replicas(2), v1alpha1.GuardOn, &w})
		require.NoError(t, err)
		require.Equal(t, got, again)
	}
}

func TestEditWithoutChangeKeepsTheBytes(t *testing.T) {
	guarded := strings.Replace(takenOver, "Replace=true}",
		"'Replace=true, Prune=false,Delete=false', kustomize.toolkit.fluxcd.io/prune: disabled, helm.sh/resource-policy: keep}", 1)
	got, err := editManifest(guarded, edit{replicas(2), v1alpha1.GuardOn, nil})
	require.NoError(t, err)
	require.Equal(t, guarded, got)
}

func TestEditRefuses(t *testing.T) {
	on := rollout.VersionWrite{Guard: v1alpha1.GuardOn}
	w := wiring{connection: mutualTLS("s")}
	for name, tt := range map[string]struct {
		data   string
		write  rollout.VersionWrite
		rewire *wiring
		want   string
	}{
		"no guard":             {takenOver, rollout.VersionWrite{}, nil, `guard "" is neither On nor Off`},
		"no YAML":              {"a: [", on, nil, "did not find"},
		"nothing":              {"", on, nil, "EOF"},
		"only a comment":       {"# nothing\n", on, nil, "EOF"},
		"no object":            {"- a\n", on, nil, "not an object"},
		"two documents":        {"a: 1\n---\nb: 2\n", on, nil, "more than one document"},
		"key twice":            {"a: 1\na: 2\n", on, nil, "line 2: key \"a\" is there twice"},
		"merge":                {"a: &a {b: 1}\nc:\n  <<: *a\n", on, nil, "line 3: merge keys are not supported"},
		"tag":                  {"a: !!binary aGk=\n", on, nil, "line 1: tag !!binary is not supported"},
		"alias bomb":           {aliasBomb(), on, nil, "more than 100000 values"},
		"alias to itself":      {"a: &a [*a]\n", on, nil, "more than 100000 values"},
		"key that is a number": {"1: a\n", on, nil, "line 1: a key must be a string, quote it"},
		"key that is a word":   {"on: a\n", on, nil, "line 1: a key must be a string, quote it"},
		"key that is a map":    {"? {a: 1}\n: b\n", on, nil, "a key must be a string"},
		"no pods":              {"metadata: {}\nspec: {}\n", on, nil, "spec.template is not an object"},
		"no metadata":          {"spec: {template: {}}\n", on, nil, "metadata is not an object"},
		"odd options": {"metadata: {annotations: {argocd.argoproj.io/sync-options: 1}}\nspec: {template: {}}\n", on, nil,
			"annotation argocd.argoproj.io/sync-options is not a string"},
		"no containers": {"metadata: {}\nspec: {template: {spec: {containers: {}}}}\n", on, &w, "containers is not a list"},
		"odd container": {"metadata: {}\nspec: {template: {spec: {containers: [a]}}}\n", on, &w, "containers[0] is not an object"},
		"odd env":       {"metadata: {}\nspec: {template: {spec: {containers: [{env: a}]}}}\n", on, &w, "containers[0]: env is not a list"},
		"odd mounts":    {"metadata: {}\nspec: {template: {spec: {containers: [{volumeMounts: a}]}}}\n", on, &w, "volumeMounts is not a list"},
		"odd volumes":   {"metadata: {}\nspec: {template: {spec: {volumes: a}}}\n", on, &w, "volumes is not a list"},
		"volume of the user's": {"metadata: {}\nspec: {template: {spec: {volumes: [{name: temporal-tls, emptyDir: {}}]}}}\n", on, &w,
			`volume "temporal-tls" is the connection's`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := editManifest(tt.data, edit{tt.write.Replicas, tt.write.Guard, tt.rewire})
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func aliasBomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x]\n")
	for i := range 40 {
		fmt.Fprintf(&b, "a%d: &a%d [*a%d, *a%d]\n", i+1, i+1, i, i)
	}
	return b.String()
}

// TestManifestIsReadAsKubernetesReadsIt: what readers disagree on means what it means to who applies the file.
func TestManifestIsReadAsKubernetesReadsIt(t *testing.T) {
	for in, want := range map[string]any{
		"yes": true, "Off": false, "y": true, "null": nil, "~": nil, "": nil, "0777": json.Number("511"), "0o17": json.Number("15"), "0x1F": json.Number("31"),
		"1_000": json.Number("1000"), ".5": json.Number("0.5"), "1.0": json.Number("1.0"), "1e3": json.Number("1e3"), "-0": json.Number("-0"),
		"2024-01-31": "2024-01-31", "'1'": "1", "!!str 1": "1", "a: b"[:1]: "a", ":x": ":x", "---": "---", "1e373": "1e373", "?x": "?x", "-1x": "-1x",
	} {
		got, err := parseManifest("v: " + in + "\n")
		require.NoError(t, err, in)
		require.Equal(t, map[string]any{"v": want}, got, in)
	}
	got, err := parseManifest("a: &x {b: yes}\nc: *x\n\"yes\": 1\n")
	require.NoError(t, err)
	x := map[string]any{"b": true}
	require.Equal(t, map[string]any{"a": x, "c": x, "yes": json.Number("1")}, got)
}

// FuzzParseManifest compares with sigs.k8s.io/yaml: what both can read, both read alike.
func FuzzParseManifest(f *testing.F) {
	for _, s := range []string{takenOver, "a: yes\n", "a: |\n  b\n", "{a: [1, 0x1, 1e3, 0o7]}", "? a\n: b\n", "a: &b c\nd: *b\n", "a: 2001-01-01\n", "a: 1_0\n",
		strings.Repeat("0", 60) + ": " + strings.Repeat("0", 60) + "\n", "a: 0b" + strings.Repeat("0", 60) + "\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, data string) {
		got, err := parseManifest(data)
		if err != nil || strings.Contains(data, "!") { // the parser does not tell the tag "!" from none
			return
		}
		raw, err := yaml.YAMLToJSONStrict([]byte(data))
		if err != nil {
			return
		}
		want, err := v1alpha1.DecodeJSON(raw)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(values(want), values(any(got))), "%q", data)
		if out, err := YAML(got); err == nil {
			again, err := parseManifest(string(out))
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(got, again), "%q", data)
		}
	})
}

// Flux leaves what has a placeholder of a shell in it as it is; what has none it may substitute in, which changes
// nothing.
func TestPlaceholdersStay(t *testing.T) {
	for text, want := range map[string]bool{
		"echo ${HOME}": true, "a\nb ${HOME}\n": true, "\x01${A}": true, "${A}": true,
		"echo $HOME $(NAME)": false, "$": false, "$\n{": false,
	} {
		for name, spec := range map[string]any{
			"value":    map[string]any{"args": []any{text}},
			"key":      map[string]any{text: map[string]any{}},
			"long key": map[string]any{text + strings.Repeat("x", 1200): nil},
		} {
			object := map[string]any{"metadata": map[string]any{"name": "a"}, "spec": spec}
			manifest, err := manifestText(object)
			require.NoError(t, err)
			read, err := parseManifest(manifest)
			require.NoError(t, err)
			require.Equal(t, object, read)
			annotations, _ := object["metadata"].(map[string]any)["annotations"].(map[string]any)
			require.Equal(t, want, annotations[rollout.AnnotationFluxSubstitute] == "disabled", "%s %q", name, text)
		}
	}
}
