package gitops

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/index"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/gitops/tree"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// templateYAML is a PodDisruptionBudget for a worker deployment.
func templateYAML(name, deployment string) string {
	return fmt.Sprintf(`apiVersion: temporal.io/v1alpha1
kind: WorkerResourceTemplate
metadata: {name: %s, namespace: shop}
spec:
  workerDeploymentRef: {name: %s}
  versions: [Current]
  template:
    apiVersion: policy/v1
    kind: PodDisruptionBudget
    spec: {selector: {matchLabels: {}}, maxUnavailable: 1}
`, name, deployment)
}

// withObject is a record in which a version has an object of a template.
func withObject(name, template string) string {
	return strings.Replace(routingYAML(name, name+".yaml"), ", files: {}}", ", files: {}, resources: [{template: "+template+", hash: aa}]}", 1)
}

// sayTemplates is what a worker deployment has of templates: a * for what cannot be used, and a ? where there may be
// more.
func sayTemplates(s rollout.Snapshot) string {
	var out []string
	for _, t := range s.Resources {
		mark := ""
		if t.Problem != nil {
			mark = "*"
		}
		out = append(out, t.Name+mark)
	}
	if s.ResourcesProblem != nil {
		out = append(out, "?")
	}
	return strings.Join(out, " ")
}

func TestReadTemplates(t *testing.T) {
	x, y := specYAML("shop", "x", "i:1"), specYAML("shop", "y", "i:1")
	const notYAML = "apiVersion: temporal.io/v1alpha1\nkind: [\n"
	metrics := strings.NewReplacer("policy/v1", "autoscaling/v2", "PodDisruptionBudget", "HorizontalPodAutoscaler",
		"{selector: {matchLabels: {}}, maxUnavailable: 1}", "{scaleTargetRef: {}, metrics: [{external: {metric: {selector: {matchLabels: {}}}}}]}")
	long := strings.Repeat("x", 59)
	for _, c := range []struct {
		name    string
		files   map[string]string
		options []index.Option
		want    map[string]string // by worker deployment
		problem []string
		// warnings says that the problems are no errors.
		warnings bool
	}{
		{name: "by name", files: map[string]string{"x.yaml": x, "y.yaml": y, "t/b.yaml": templateYAML("b", "x"), "t/a.yaml": templateYAML("a", "x") + "---\n" + templateYAML("c", "y")},
			want: map[string]string{"x": "a b", "y": "c"}},
		{name: "not there", files: map[string]string{"x.yaml": specYAML("shop", "checkout", "i:1"), "t.yaml": templateYAML("a", "chekout")}, want: map[string]string{"checkout": ""},
			problem: []string{"t.yaml:5: spec.workerDeploymentRef.name: worker deployment shop/chekout is not in the repository: nothing is made from this template (did you mean checkout?)"}},
		{name: "not among some files", files: map[string]string{"t.yaml": templateYAML("a", "x")}, options: []index.Option{index.SomeFiles()}, warnings: true,
			problem: []string{"t.yaml:5: spec.workerDeploymentRef.name: worker deployment shop/x is not among the given files"}},
		{name: "its spec is gone, its record is not", files: map[string]string{"t.yaml": templateYAML("a", "x"), "deploy/shop/x/routing.yaml": routingYAML("x", "x.yaml")},
			want: map[string]string{"x": "a"}},
		{name: "a spec with an error", files: map[string]string{"x.yaml": strings.Replace(x, "AllAtOnce", "Never", 1), "t.yaml": templateYAML("a", "x")},
			want: map[string]string{"x": "a"}, problem: []string{"x.yaml:6: "}},
		{name: "a kind that is not allowed", files: map[string]string{"x.yaml": x, "t.yaml": strings.Replace(templateYAML("a", "x"), "PodDisruptionBudget", "Secret", 1), "u.yaml": templateYAML("b", "x")},
			want: map[string]string{"x": "a* b"}, problem: []string{"t.yaml:9: spec.template.kind: a template may not make Secret here; " +
				"the bot's configuration allows HorizontalPodAutoscaler, PodDisruptionBudget, ScaledObject (--allowed-resource-kinds)"}},
		{name: "a kind of another group", files: map[string]string{"x.yaml": x, "t.yaml": strings.Replace(templateYAML("a", "x"), "policy/v1", "example.com/v1", 1)},
			want: map[string]string{"x": "a*"}, problem: []string{"a template may not make PodDisruptionBudget of example.com/v1 here"}},
		{name: "none is allowed", files: map[string]string{"x.yaml": x, "t.yaml": templateYAML("a", "x")}, options: []index.Option{index.AllowKinds(nil)},
			want: map[string]string{"x": "a*"}, problem: []string{"the bot's configuration allows none"}},
		{name: "another is allowed", files: map[string]string{"x.yaml": x, "t.yaml": strings.Replace(templateYAML("a", "x"), "PodDisruptionBudget", "Secret", 1)},
			options: []index.Option{index.AllowKinds([]string{"secret"})}, want: map[string]string{"x": "a"}},
		{name: "a kind that the environment does not allow", files: map[string]string{"rampart.yaml": withKinds("[ScaledObject]"), "x.yaml": x, "t.yaml": templateYAML("a", "x")},
			want: map[string]string{"x": "a*"}, problem: []string{"t.yaml:9: spec.template.kind: a template may not make PodDisruptionBudget in environment a, " +
				"which allows ScaledObject (resourceKinds in rampart.yaml)"}},
		{name: "the environment allows none", files: map[string]string{"rampart.yaml": withKinds("[]"), "x.yaml": x, "t.yaml": templateYAML("a", "x")},
			want: map[string]string{"x": "a*"}, problem: []string{"which allows none"}},
		{name: "a kind that the environment allows", files: map[string]string{"rampart.yaml": withKinds("[PodDisruptionBudget.policy]"), "x.yaml": x, "t.yaml": templateYAML("a", "x")},
			want: map[string]string{"x": "a"}},
		{name: "a kind that only the environment allows", files: map[string]string{"rampart.yaml": withKinds("[Secret]"), "x.yaml": x, "t.yaml": strings.Replace(templateYAML("a", "x"), "PodDisruptionBudget", "Secret", 1)},
			want: map[string]string{"x": "a*"}, problem: []string{"the bot's configuration allows HorizontalPodAutoscaler, PodDisruptionBudget, ScaledObject (--allowed-resource-kinds)"}},
		{name: "no namespace", files: map[string]string{"x.yaml": x, "t.yaml": strings.Replace(templateYAML("a", "x"), ", namespace: shop", "", 1)},
			want: map[string]string{"x": ""}, problem: []string{"t.yaml:3: metadata.namespace: is required"}},
		{name: "no namespace any more", files: map[string]string{"x.yaml": x, "t.yaml": strings.Replace(templateYAML("a", "x"), ", namespace: shop", "", 1),
			"deploy/shop/x/routing.yaml": withObject("x", "a")}, want: map[string]string{"x": "a*"}, problem: []string{"t.yaml:3: metadata.namespace: is required"}},
		{name: "two of one name", files: map[string]string{"x.yaml": x, "y.yaml": y, "t.yaml": templateYAML("a", "x"), "u.yaml": templateYAML("a", "y")},
			want: map[string]string{"x": "a*", "y": "a*"}, problem: []string{
				"t.yaml:1: metadata.name: shop/a is also the name of the template in u.yaml, which says something else: neither is used; keep one of them",
				"u.yaml:1: metadata.name: shop/a is also the name of the template in t.yaml, which says something else: neither is used; keep one of them"}},
		{name: "with an error, and in use", files: map[string]string{"x.yaml": x, "y.yaml": y, "t.yaml": strings.Replace(templateYAML("a", "x"), "Current", "Currentt", 1),
			"deploy/shop/x/routing.yaml": withObject("x", "a")}, want: map[string]string{"x": "a*", "y": ""}, problem: []string{"t.yaml:6: spec.versions[0]: "}},
		{name: "a ClusterConnection with an error", files: map[string]string{"x.yaml": x, "t.yaml": templateYAML("a", "x"), "cluster.yaml": strings.Replace(clusterConnectionYAML, ":7233", "", 1)},
			want: map[string]string{"x": "a"}, problem: []string{"cluster.yaml:4: spec.hostPort: "}},
		{name: "no YAML", files: map[string]string{"x.yaml": x, "t.yaml": notYAML}, want: map[string]string{"x": "?"}, problem: []string{"t.yaml:"}},
		{name: "in Git LFS", files: map[string]string{"x.yaml": x, "t.yaml": pointerOfLFS}, want: map[string]string{"x": "?"}, warnings: true,
			problem: []string{"t.yaml:1: the file is in Git LFS"}},
		{name: "a kind that could be it", files: map[string]string{"x.yaml": x, "t.yaml": strings.Replace(templateYAML("a", "x"), "ResourceTemplate", "ResourceTemplat", 1)},
			want: map[string]string{"x": "?"}, problem: []string{"t.yaml:2: kind"}},
		{name: "too large", files: map[string]string{"x.yaml": x, "t.yaml": "# temporal.io\n" + strings.Repeat("x", tree.MaxFileSize)}, want: map[string]string{"x": "?"}, problem: []string{"t.yaml: is larger"}},
		{name: "the name of a pool", files: map[string]string{"x.yaml": x + "  pools: [{name: a, template: {spec: {containers: [{name: w, image: \"i:1\"}]}}}]\n", "t.yaml": templateYAML("a", "x")},
			want: map[string]string{"x": "a*"}, problem: []string{"t.yaml:3: metadata.name: shop/x has a pool of this name"}},
		{name: "a metric's label that is too long", files: map[string]string{"x.yaml": specYAML("shop", long, "i:1"), "t.yaml": metrics.Replace(templateYAML("a", long))},
			want: map[string]string{long: "a*"}, problem: []string{"t.yaml:10: spec.template.spec.metrics: selects a metric by the label \"shop_" + long}},
		{name: "a metric's label that is long enough", files: map[string]string{"x.yaml": specYAML("shop", long[1:], "i:1"), "t.yaml": metrics.Replace(templateYAML("a", long[1:]))},
			want: map[string]string{long[1:]: "a"}},
		{name: "a long name without a metric", files: map[string]string{"x.yaml": specYAML("shop", long, "i:1"), "t.yaml": templateYAML("a", long)},
			want: map[string]string{long: "a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.files["connection.yaml"] = connectionYAML
			w, err := index.ReadFolder(writeFolder(t, c.files), c.options...)
			require.NoError(t, err)
			got := map[string]string{}
			for _, d := range w.Environments[0].Deployments {
				got[d.Deployment.Name] = sayTemplates(d)
			}
			if c.want == nil {
				c.want = map[string]string{}
			}
			require.Equal(t, c.want, got)
			said := problems(w)
			require.Len(t, said, len(c.problem), "%v", said)
			for i, p := range c.problem {
				require.Contains(t, said[i], p)
			}
			require.Equal(t, len(c.problem) > 0 && !c.warnings, v1alpha1.HasErrors(w.Environments[0].Problems))
		})
	}
}

// withKinds is a rampart.yaml with an environment that narrows the kinds of templates.
func withKinds(kinds string) string {
	return "{apiVersion: rampart.dev/v1alpha1, kind: Config, spec: {environments: [{name: a, specs: [\"**\"], output: {path: deploy}, resourceKinds: " + kinds + "}]}}"
}

// TestReadTemplate: what a snapshot holds of a template.
func TestReadTemplate(t *testing.T) {
	files := []rollout.TextFile{{Path: "x.yaml", Text: specYAML("shop", "x", "i:1")}, {Path: "t.yaml", Text: templateYAML("a", "x")},
		{Path: "u.yaml", Text: strings.Replace(templateYAML("b", "x"), "Current", "Currentt", 1)}, {Path: "deploy/shop/x/routing.yaml", Text: withObject("x", "b")}}
	w, err := index.ReadFiles(files)
	require.NoError(t, err)
	got := w.Environments[0].Deployments[0].Resources
	want := []rollout.ResourceTemplate{
		{Name: "a", Path: "t.yaml", Versions: []v1alpha1.VersionState{v1alpha1.StateCurrent}, Hash: got[0].Hash, ApplyTo: v1alpha1.NewVersions,
			Object: []byte(`{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","spec":{"maxUnavailable":1,"selector":{"matchLabels":{}}}}`)},
		{Name: "b", Path: "u.yaml", Problem: &rollout.Problem{Reason: rollout.InvalidSpec,
			Message: `u.yaml:6: spec.versions[0]: "Currentt": want one of Target, Current, Ramping, Draining, Drained, Inactive, NotRegistered (did you mean Current?)`}},
	}
	require.Empty(t, cmp.Diff(want, got))
	require.Len(t, got[0].Hash, 64)
}

// TestSharedTemplates: a template in a file of two environments is adrift only if neither has its worker deployment.
func TestSharedTemplates(t *testing.T) {
	config := strings.Replace(twoEnvironments, `specs: ["staging/**"]`, `specs: ["staging/**", "shared/*.yaml"]`, 1)
	read := func(deployment string) rollout.World {
		w, err := index.ReadFolder(writeFolder(t, map[string]string{layout.Config: config, "staging/x.yaml": specYAML("shop", "x", "i:1"),
			"policies/p.rego": "package p", "prod/y.yaml": specYAML("shop", "y", "i:1"), "shared/t.yaml": templateYAML("a", deployment)}))
		require.NoError(t, err)
		return w
	}
	w := read("y")
	require.Empty(t, problems(w))
	require.Equal(t, []string{"", "a"}, []string{sayTemplates(w.Environments[0].Deployments[0]), sayTemplates(w.Environments[1].Deployments[0])})
	require.Len(t, problems(read("z")), 2)
}
