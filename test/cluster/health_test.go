package cluster

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	manifests "github.com/rampart-gitops/rampart/install/delivery"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/statetable"
	"github.com/rampart-gitops/rampart/render"
)

// judgment is what the tools say of an object: a row of docs/cd.md but for the commit status.
type judgment struct{ Kubectl, Helm, ArgoCD, Guide, Flux string }

// TestHealthOfEveryState gives an object in each state of the table in docs/cd.md to the tools themselves. These are
// ArgoCD's own command with the guide's script and with ours, the evaluator of Flux's kustomize-controller with the
// expressions that we ship, and kstatus, by which Helm waits. The planner's tests make sure that the table has every
// state.
func TestHealthOfEveryState(t *testing.T) {
	t.Parallel()
	judges := newJudges(t)
	for _, row := range statetable.Rows(t) {
		t.Run(row.State, func(t *testing.T) {
			t.Parallel()
			want := judgment{row.Kubectl, row.Helm, row.ArgoCD, row.Guide, row.Flux}
			require.Equal(t, want, judges.judge(t, inState(t, row, v1alpha1.RampProgressing)))
			if row.Reason == rollout.Ramping {
				want.ArgoCD, want.Flux = "Healthy", "done"
				require.Equal(t, want, judges.judge(t, inState(t, row, v1alpha1.RampHealthy)), "a ramp that counts as healthy")
			}
		})
	}
}

// TestHealthOfGoldenStatuses: of each status in our test data and documents the tools say what the table has.
func TestHealthOfGoldenStatuses(t *testing.T) {
	t.Parallel()
	judges := newJudges(t)
	rows := map[string]statetable.Row{}
	for _, row := range statetable.Rows(t) {
		rows[row.State] = row
	}
	seen := map[string]bool{}
	for file, objects := range goldenStatuses(t) {
		for _, object := range objects {
			var typed v1alpha1.WorkerDeploymentStatus
			data, err := yaml.Marshal(object.Object["status"])
			require.NoError(t, err)
			require.NoError(t, yaml.Unmarshal(data, &typed))
			state := statetable.StateOf(&typed)
			if seen[state+string(data)] {
				continue
			}
			seen[state+string(data)] = true
			t.Run(path.Base(file)+"/"+state, func(t *testing.T) {
				row, ok := rows[state]
				require.True(t, ok, "no row")
				require.Equal(t, judgment{row.Kubectl, row.Helm, row.ArgoCD, row.Guide, row.Flux}, judges.judge(t, object), file)
			})
		}
	}
	require.Greater(t, len(seen), 3)
}

// objectName is the name of the object in a state.
func objectName(row statetable.Row) string {
	return strings.ToLower(strings.NewReplacer(", ", "-", " ", "-").Replace(row.State))
}

// inState is what the bot writes as status.yaml in a state.
func inState(t *testing.T, row statetable.Row, ramp v1alpha1.RampHealth) *unstructured.Unstructured {
	t.Helper()
	name := objectName(row)
	spec := fmt.Sprintf(`apiVersion: temporal.io/v1alpha1
kind: TemporalWorkerDeployment
metadata: {name: %s, namespace: payments}
spec:
  workerOptions: {connectionRef: {name: temporal}, temporalNamespace: orders}
  rollout: {strategy: AllAtOnce}
  template: {spec: {containers: [{name: worker, image: "worker:v1"}]}}
`, name)
	docs, problems := v1alpha1.Decode("checkout.yaml", []byte(spec))
	require.Empty(t, problems)
	plan := rollout.Plan{
		Deployment: rollout.Name{Namespace: "payments", Name: name}, Dir: "deploy/" + name,
		Environment: v1alpha1.Environment{CD: v1alpha1.CD{Tool: v1alpha1.Both, RampHealth: ramp}},
		Spec:        docs[0].Object.(*v1alpha1.WorkerDeployment),
		Record: &v1alpha1.RoutingSpec{WorkerDeployment: "payments/" + name, TemporalNamespace: "orders",
			SpecPath: "workers/checkout.yaml"},
		Status: row.Status(v1alpha1.NewTime(time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC))),
	}
	files, err := render.Files(plan, rollout.Record{Dir: plan.Dir})
	require.NoError(t, err)
	for _, f := range files {
		if path.Base(f.Path) == "status.yaml" {
			object, ok := parsed([]byte(f.Data))
			require.True(t, ok)
			return object
		}
	}
	require.Fail(t, "no status.yaml")
	return nil
}

// between are the lines between documents in YAML, archives of them, and pages that show them.
var between = regexp.MustCompile("(?m)^(---|-- .* --|```.*)$")

// goldenStatuses are the objects with a status of ours in the repository, by file.
func goldenStatuses(t *testing.T) map[string][]*unstructured.Unstructured {
	t.Helper()
	out := map[string][]*unstructured.Unstructured{}
	root := filepath.Join("..", "..")
	require.NoError(t, filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), ".git") || entry.Name() == "bin" || entry.Name() == "dist"):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(name) != ".txtar" && filepath.Ext(name) != ".yaml" && filepath.Ext(name) != ".md":
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, doc := range between.Split(string(text), -1) {
			object, ok := parsed([]byte(doc))
			if ok && object.Object["status"] != nil && object.GetAnnotations()[rollout.AnnotationHealth] != "" {
				out[name] = append(out[name], object)
			}
		}
		return nil
	}))
	return out
}

// judges are the tools.
type judges struct {
	argocd, ours, guide string
	flux                *cel.StatusEvaluator
}

func newJudges(t *testing.T) judges {
	t.Helper()
	what := manifests.Delivery{URL: "https://git.example.com/workers.git",
		Kinds:        []string{v1alpha1.KindTemporalWorkerDeployment},
		Environments: []manifests.Environment{{Name: "workers-prod", Branch: "main", Path: "deploy"}}}
	text, err := manifests.ArgoCD(what)
	require.NoError(t, err)
	j := judges{argocd: program(t, "argocd"), ours: filepath.Join(t.TempDir(), "argocd-cm.yaml")}
	docs := documents(t, text)
	require.NoError(t, os.WriteFile(j.ours, docs[len(docs)-1], 0o600))
	j.guide, err = filepath.Abs(filepath.Join("testdata", "guide-health.yaml"))
	require.NoError(t, err)

	text, err = manifests.Flux(what)
	require.NoError(t, err)
	var kustomization struct {
		Spec struct {
			HealthCheckExprs []kustomize.CustomHealthCheck `json:"healthCheckExprs"`
		} `json:"spec"`
	}
	docs = documents(t, text)
	require.NoError(t, yaml.Unmarshal(docs[len(docs)-1], &kustomization))
	require.Len(t, kustomization.Spec.HealthCheckExprs, 1)
	j.flux, err = cel.NewStatusEvaluator(&kustomization.Spec.HealthCheckExprs[0].HealthCheckExpressions)
	require.NoError(t, err)
	return j
}

// judge asks all of them about an object.
func (j judges) judge(t *testing.T, object *unstructured.Unstructured) judgment {
	t.Helper()
	data, err := yaml.Marshal(object.Object)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "status.yaml")
	require.NoError(t, os.WriteFile(file, data, 0o600))
	out := judgment{Kubectl: "waits", ArgoCD: j.health(t, file, j.ours), Guide: j.health(t, file, j.guide)}

	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	require.NoError(t, err)
	for _, c := range conditions { // as kubectl wait does
		if c := c.(map[string]any); c["type"] == "Ready" && c["status"] == "True" {
			out.Kubectl = "done"
		}
	}
	helm, err := status.Compute(object)
	require.NoError(t, err)
	out.Helm = waits(helm.Status)

	applied := object.DeepCopy()
	delete(applied.Object, "status") // Flux applies none
	flux, err := j.flux.Evaluate(t.Context(), applied)
	require.NoError(t, err)
	out.Flux = waits(flux.Status)
	return out
}

func waits(s status.Status) string {
	said := map[status.Status]string{status.CurrentStatus: "done", status.FailedStatus: "fails", status.InProgressStatus: "waits"}
	return said[s]
}

// health is what ArgoCD says of the object in a file with the script of a ConfigMap.
func (j judges) health(t *testing.T, file, config string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), j.argocd, "admin", "settings", "resource-overrides", "health", file,
		"--argocd-cm-path", config)
	cmd.Env = append(os.Environ(), "HOME="+filepath.Dir(file))
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.Output()
	require.NoError(t, err, log.String())
	said, message, _ := strings.Cut(strings.TrimPrefix(string(out), "STATUS: "), "\n")
	if config == j.ours {
		require.Regexp(t, `^MESSAGE: [A-Z]\w+: \S`, message, "reason and message of the condition")
	}
	return said
}
