package v1alpha1

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What belongs to others is an error in a template. In a spec it is a warning; a status.yaml has keys of the bot's own,
// and no warning.
func TestKeysOfOthers(t *testing.T) {
	for key, owner := range map[string]string{
		"argocd.argoproj.io/sync-options": "ArgoCD", "argocd.argoproj.io/hook": "ArgoCD", "ArgoCD.argoproj.io/Instance": "ArgoCD", "kustomize.toolkit.fluxcd.io/force": "Flux",
		"helm.sh/hook": "Helm", "meta.helm.sh/release-name": "Helm", "kubectl.kubernetes.io/restartedAt": "kubectl", "temporal.io/build-id": "Temporal's controller and Rampart",
		"rampart.dev/status-hash": "Rampart", "argocd.argoproj.io/sync-wave": "", "rampart.dev/retire": "", "app.kubernetes.io/name": "", "nothelm.sh/x": "", "team": "",
	} {
		require.Equal(t, owner, KeyOwner(key), key)
		for _, in := range []string{"labels", "annotations"} {
			docs, problems := Decode("t.yaml", fmt.Appendf(nil, templateText, fmt.Sprintf("%s: {%s: x}", in, key), "matchLabels: {}"))
			require.Equal(t, owner != "", HasErrors(problems), "%s %s: %v", in, key, problems)
			require.Equal(t, owner != "", docs[0].Object == nil)

			_, problems = Decode("s.yaml", fmt.Appendf(nil, specText, in, key, ""))
			require.False(t, HasErrors(problems), "%v", problems)
			require.Equal(t, owner != "", len(problems) > 0, "%s: %v", key, problems)
			_, problems = Decode("status.yaml", fmt.Appendf(nil, specText, in, key, "status: {}\n"))
			require.Empty(t, problems)
		}
	}
}

// What else of a spec's metadata would keep or remove the object is dropped with a warning.
func TestWhatStatusLeavesOut(t *testing.T) {
	for text, want := range map[string]string{
		"finalizers: [example.com/keep]": "s.yaml:3: metadata.finalizers: is not written to status.yaml: remove it",
		"ownerReferences: [{name: x}]":   "s.yaml:3: metadata.ownerReferences: is not written to status.yaml: remove it",
		"finalizers: []":                 "",
	} {
		_, problems := Decode("s.yaml", []byte(strings.Replace(fmt.Sprintf(specText, "labels", "team", ""), "name: x,", "name: x, "+text+",", 1)))
		if want == "" {
			require.Empty(t, problems)
			continue
		}
		require.Len(t, problems, 1)
		require.Equal(t, Warning, problems[0].Severity)
		require.Equal(t, want, problems[0].String())
	}
}

const templateText = `apiVersion: temporal.io/v1alpha1
kind: WorkerResourceTemplate
metadata: {name: pdb, namespace: shop}
spec:
  workerDeploymentRef: {name: checkout}
  template:
    apiVersion: policy/v1
    kind: PodDisruptionBudget
    metadata: {%s}
    spec: {selector: {%s}}
`

const specText = `apiVersion: temporal.io/v1alpha1
kind: WorkerDeployment
metadata: {name: x, namespace: shop, %s: {%s: x}}
spec:
  workerOptions: {connectionRef: {name: temporal}, temporalNamespace: shop}
  rollout: {strategy: AllAtOnce}
  template: {spec: {containers: [{name: worker, image: "i:1"}]}}
%s`

func TestTemplatesThatReachBeyondTheirVersion(t *testing.T) {
	for _, c := range []struct{ metadata, selector, want string }{
		{"", "matchLabels: {}", ""},
		{"", "matchExpressions: [{key: app, operator: Exists}]", ""},
		{"", "", "selects all pods of the namespace"},
		{"", "matchLabels: null", "selects all pods of the namespace"},
		{"", "matchExpressions: []", "selects all pods of the namespace"},
		{"", "matchExpressions: [{key: app, operator: DoesNotExist}, {key: app, operator: NotIn, values: [a]}]", "selects all pods of the namespace"},
		{"", "matchExpressions: [{key: app, operator: DoesNotExist}, {key: app, operator: In, values: [a]}]", ""},
		{"finalizers: [example.com/keep]", "matchLabels: {}", "finalizers: keep the object in the cluster when its version goes"},
		{"finalizers: []", "matchLabels: {}", ""},
		{"ownerReferences: [{name: x}]", "matchLabels: {}", "ownerReferences: have the object removed with another one"},
	} {
		_, problems := Decode("t.yaml", fmt.Appendf(nil, templateText, c.metadata, c.selector))
		if c.want == "" {
			require.False(t, HasErrors(problems), "%v", problems)
			continue
		}
		require.NotEmpty(t, problems, "%s %s", c.metadata, c.selector)
		require.Equal(t, Error, problems[0].Severity)
		require.Contains(t, problems[0].String(), c.want)
	}
}

// The default kinds are those of Kubernetes and KEDA, not what another group calls the same.
func TestKindsMeanTheirGroups(t *testing.T) {
	kinds := DefaultResourceKinds()
	for _, fine := range [][2]string{{"keda.sh/v1alpha1", "ScaledObject"}, {"autoscaling/v2", "HorizontalPodAutoscaler"}, {"policy/v1", "PodDisruptionBudget"}} {
		require.True(t, AllowsKind(kinds, fine[0], fine[1]))
		require.False(t, AllowsKind(kinds, "evil.example.com/v1", fine[1]))
		require.True(t, AllowsKind([]string{fine[1] + ".evil.example.com"}, "evil.example.com/v1", fine[1]), "where it is asked for")
	}
	require.True(t, AllowsKind([]string{"Widget"}, "example.com/v1", "Widget"))
}
