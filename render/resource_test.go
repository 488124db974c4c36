package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// The templates of the tests, as a user writes them.
var templates = map[string]string{
	"hpa": `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  labels: {team: payments}
  annotations: {note: "on"}
spec:
  scaleTargetRef: {}
  minReplicas: 2
  maxReplicas: 10
  metrics:
  - type: External
    external:
      metric: {name: temporal_backlog, selector: {matchLabels: {task_type: Activity}}}
      target: {type: AverageValue, averageValue: "10"}
  - type: External
    external:
      metric: {name: queue_depth}
      target: {type: Value, value: "1"}
  - type: Resource
    resource: {name: cpu, target: {type: Utilization, averageUtilization: 70}}
`,
	"pdb": `
apiVersion: policy/v1
kind: PodDisruptionBudget
spec:
  maxUnavailable: 25%
  selector: {matchLabels: {}}
`,
	"scaler": `
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
spec:
  scaleTargetRef: {}
  minReplicaCount: 1
  triggers:
  - type: temporal
    metadata:
      endpoint: temporal.example.com:7233
      taskQueue: checkout
      namespace: ""
      workerDeploymentName: ""
      workerDeploymentBuildId: ""
  - type: temporal
    metadata: {taskQueue: other}
  - type: cron
    metadata: {namespace: "", timezone: Europe/Berlin}
`,
	"vertical": `
apiVersion: example.com/v1
kind: VerticalThing
spec:
  selector: {}
  policies:
  - name: first
    scaleTargetRef: {}
  - nested: [{scaleTargetRef: {}}, {scaleTargetRef: null}]
  metrics: {not: a list}
  triggers: [plain, {type: temporal}]
`,
}

// templateWrite is the write that gives a version the object of a template, by way of Decode.
func templateWrite(t testing.TB, name string) rollout.ResourceWrite {
	t.Helper()
	text := "apiVersion: temporal.io/v1alpha1\nkind: WorkerResourceTemplate\nmetadata: {name: " + name + ", namespace: payments}\n" +
		"spec:\n  workerDeploymentRef: {name: checkout}\n  template:" + strings.ReplaceAll(templates[name], "\n", "\n    ")
	docs, problems := v1alpha1.Decode(name+".yaml", []byte(text))
	require.False(t, v1alpha1.HasErrors(problems), "%v", problems)
	spec := docs[0].Object.(*v1alpha1.WorkerResourceTemplate).Spec
	r := spec.Resource()
	return rollout.ResourceWrite{Template: name, Object: spec.Template, Hash: r.Hash, Scales: r.Scales}
}

// change asks for changes of the target's objects, and records them as a plan does.
func (s *scene) change(w rollout.VersionWrite, changes ...rollout.ResourceWrite) {
	s.t.Helper()
	if w.BuildID == "" {
		w.BuildID = s.target()
	}
	w.Resources = changes
	s.plan.Versions = []rollout.VersionWrite{w}
	versions := slices.Clone(s.plan.Record.Versions)
	at := slices.IndexFunc(versions, func(v v1alpha1.RecordedVersion) bool { return v.BuildID == w.BuildID })
	versions[at].Resources = rollout.WithResources(versions[at].Resources, changes)
	versions[at].Files = maps.Clone(versions[at].Files)
	for _, c := range changes {
		if c.Removes() {
			delete(versions[at].Files, rollout.ResourceFile(c.Template))
		}
	}
	record := *s.plan.Record
	record.Versions = versions
	s.plan.Record = &record
}

// playResources goes through the life of a version's objects.
func playResources(t *testing.T, show show) {
	s := newScene(t, with(checkoutSpec, "  replicas: 3\n", ""), noAuth())
	on := rollout.VersionWrite{Op: rollout.WriteResources, Guard: v1alpha1.GuardOn}
	s.change(rollout.VersionWrite{Op: rollout.RenderVersion, Guard: v1alpha1.GuardOn}, templateWrite(t, "hpa"), templateWrite(t, "pdb"))
	show("created", manifestOnly(s.commit()))
	show("again", s.commit())
	hpa := templateWrite(t, "hpa")
	hpa.Object = json.RawMessage(strings.Replace(string(hpa.Object), `"maxReplicas":10`, `"maxReplicas":20`, 1))
	s.change(on, hpa)
	show("changed", manifestOnly(s.commit()))
	s.change(on, rollout.ResourceWrite{Template: "hpa"}, templateWrite(t, "scaler"))
	show("another-scaler", s.commit())
	retired := rollout.VersionWrite{Op: rollout.EditVersion, Replicas: replicas(0), Guard: v1alpha1.GuardOff}
	s.change(retired, rollout.RemoveResources(s.plan.Record.Versions[0].Resources)...)
	show("scaled-down", s.commit())
	s.change(rollout.VersionWrite{Op: rollout.EditVersion, Guard: v1alpha1.GuardOn}, templateWrite(t, "vertical"))
	show("restored", manifestOnly(s.commit()))
}

// TestWriteResourcesLeavesTheRest: the Deployment and other files keep their bytes, be they edited by hand.
func TestWriteResourcesLeavesTheRest(t *testing.T) {
	s := newScene(t, checkoutSpec, noAuth())
	s.change(s.plan.Versions[0], templateWrite(t, "pdb"))
	s.commit()
	dir := layout.Version(s.target()) + "/"
	s.put(dir+layout.Deployment, "kind: Deployment\n")
	before := s.record.Routing.Spec.Versions[0].Files
	s.change(rollout.VersionWrite{Op: rollout.WriteResources, Guard: v1alpha1.GuardOn, Replicas: replicas(9)}, templateWrite(t, "hpa"))
	require.Equal(t, []string{"kustomization.yaml", "routing.yaml", dir + "hpa.yaml"}, paths(s, s.commit()))
	after := s.record.Routing.Spec.Versions[0].Files
	require.Equal(t, before[layout.Deployment], after[layout.Deployment])
	require.Equal(t, before["pdb.yaml"], after["pdb.yaml"])
	require.Equal(t, s.record.Files[dir+"hpa.yaml"].Hash, after["hpa.yaml"])
	require.Contains(t, s.record.Files[layout.Kustomization].Data, dir+"hpa.yaml")
}

// TestRenderKeepsObjects: a version that is rendered anew keeps the objects of its templates as they are.
func TestRenderKeepsObjects(t *testing.T) {
	s := newScene(t, checkoutSpec, noAuth())
	s.change(s.plan.Versions[0], templateWrite(t, "pdb"), templateWrite(t, "hpa"))
	s.commit()
	dir := layout.Version(s.target()) + "/"
	files := s.record.Routing.Spec.Versions[0].Files
	s.put(dir+"pdb.yaml", "edited by hand")
	s.change(rollout.VersionWrite{Op: rollout.RenderVersion, Replicas: replicas(9), Guard: v1alpha1.GuardOn}, rollout.ResourceWrite{Template: "hpa"})
	require.Equal(t, []string{"kustomization.yaml", "routing.yaml", dir + "deployment.yaml", dir + "hpa.yaml"}, paths(s, s.commit()))
	require.Equal(t, files["pdb.yaml"], s.record.Routing.Spec.Versions[0].Files["pdb.yaml"], "drift stays drift")
	require.NotContains(t, s.record.Files, dir+"hpa.yaml")
}

func TestResourcesRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		write rollout.ResourceWrite
		want  string
	}{
		"a path":         {rollout.ResourceWrite{Template: "../x", Object: []byte("{}")}, "has no name for a file"},
		"a path inside":  {rollout.ResourceWrite{Template: "a/b", Object: []byte("{}")}, "has no name for a file"},
		"the Deployment": {rollout.ResourceWrite{Template: "deployment"}, "has no name for a file"},
		"the list":       {rollout.ResourceWrite{Template: "kustomization", Object: []byte("{}")}, "has no name for a file"},
		"no JSON":        {rollout.ResourceWrite{Template: "x", Object: []byte("{")}, "template x: read JSON"},
		"a list":         {rollout.ResourceWrite{Template: "x", Object: []byte("[]")}, "template x: not an object"},
		"no metadata":    {rollout.ResourceWrite{Template: "x", Object: []byte(`{"metadata":1}`)}, "metadata is not an object"},
		"no labels":      {rollout.ResourceWrite{Template: "x", Object: []byte(`{"metadata":{"labels":[]}}`)}, "metadata.labels is not an object"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, checkoutSpec, noAuth())
			s.plan.Versions[0].Resources = []rollout.ResourceWrite{c.write}
			changes, err := Files(s.plan, s.record)
			require.ErrorContains(t, err, c.want)
			require.Nil(t, changes)
		})
	}
}

// TestResourceName has the vectors of the in-cluster controller.
func TestResourceName(t *testing.T) {
	require.Equal(t, "my-worker-my-hpa-v1-0-0-bcdf-99d0eb4e", rollout.ResourceName("my-worker", "my-hpa", "v1.0.0-bcdf"))
	require.Equal(t, "w-h-1-96cc3367", rollout.ResourceName("w", "h", "1"))
	valid := regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z]([a-z0-9-]{0,60}[a-z0-9])?`).Draw(t, "name")
		template := rapid.StringMatching(`[a-z]([a-z0-9.-]{0,20}[a-z0-9])?`).Draw(t, "template")
		build := rapid.StringMatching(`[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?`).Draw(t, "build")
		got := rollout.ResourceName(name, template, build)
		require.Regexp(t, valid, got)
		require.LessOrEqual(t, len(got), 47)
	})
}

// TestObjectsKeepTheirBytes: the same template gives the same bytes whatever its keys' order, and nothing of it is lost
// but what is filled in.
func TestObjectsKeepTheirBytes(t *testing.T) {
	r := resource{name: rollout.Name{Namespace: "payments", Name: "checkout"}, buildID: "v1.0-abc", deployment: "checkout-v1-0-abc", temporalNamespace: "prod"}
	for name := range templates {
		w := templateWrite(t, name)
		want, err := r.manifest(w)
		require.NoError(t, err)
		var v any
		require.NoError(t, json.Unmarshal(w.Object, &v))
		for seed := range uint64(10) {
			shuffled := w
			shuffled.Object = shuffledJSON(v, rand.New(rand.NewPCG(seed, 1)))
			got, err := r.manifest(shuffled)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(want, got))
		}
		again, err := r.manifest(w)
		require.NoError(t, err)
		require.Equal(t, want, again)
		require.NotContains(t, want, "Prune=false", "a scaler must be able to go")
		if name != "vertical" {
			require.NotContains(t, want, "{}", fmt.Sprintf("%s: all that is empty is filled in", name))
		}
	}
}
