package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// templatesFile holds a scaler for each version, and a budget for the current one.
const templatesFile = "workers/templates.yaml"

func templatesText(maxReplicas int) string {
	return fmt.Sprintf(`apiVersion: temporal.io/v1alpha1
kind: WorkerResourceTemplate
metadata: {name: hpa, namespace: %[1]s}
spec:
  workerDeploymentRef: {name: %[2]s}
  template:
    apiVersion: autoscaling/v2
    kind: HorizontalPodAutoscaler
    spec: {scaleTargetRef: {}, minReplicas: 1, maxReplicas: %[3]d}
---
apiVersion: temporal.io/v1alpha1
kind: WorkerResourceTemplate
metadata: {name: pdb, namespace: %[1]s}
spec:
  workerDeploymentRef: {name: %[2]s}
  versions: [Current]
  template:
    apiVersion: policy/v1
    kind: PodDisruptionBudget
    spec: {maxUnavailable: 1, selector: {matchLabels: {}}}
`, kubeNamespace, deployName, maxReplicas)
}

// versionFiles are the files of versions at a revision, with images' tags in place of build IDs.
func (w *world) versionFiles(revision string) []string {
	out := []string{}
	for path := range w.repo.Files(revision) {
		if name, ok := strings.CutPrefix(path, recordDir+"/versions/"); ok {
			out = append(out, buildSuffix.ReplaceAllString(name, "$1"))
		}
	}
	slices.Sort(out)
	return out
}

// commitOf is the bot's commit with a subject.
func (w *world) commitOf(short string) string {
	w.t.Helper()
	for _, commit := range strings.Split(w.repo.Git("log", "-z", "--format=%H|%an|%b", w.branch), "\x00") {
		hash, rest, _ := strings.Cut(commit, "|")
		if rest = buildSuffix.ReplaceAllString(rest, "$1"); strings.HasPrefix(rest, "rampart|") && strings.Contains(rest+"\n", "\n  "+short+"\n") {
			return hash
		}
	}
	w.t.Fatalf("no commit %q", short)
	return ""
}

// TestObjectsOfTemplates checks the objects of templates. They come with a version, follow its state and their
// template, are put back when edited by hand, and go when the version is scaled down.
func TestObjectsOfTemplates(t *testing.T) {
	w := newWorld(t)
	w.push("templates", map[string]string{templatesFile: templatesText(5)})
	b := w.start()
	w.pushSpec("add checkout", specText{image: "app:v1"})
	v1 := w.awaitReady("app:v1")
	w.eventually("the budget of the current version", func() bool { return len(w.versionFiles("main")) == 3 })
	require.Equal(t, []string{"v1/deployment.yaml", "v1/hpa.yaml"}, w.versionFiles(w.commitOf("create v1")))
	require.Equal(t, []string{"v1/deployment.yaml", "v1/hpa.yaml", "v1/pdb.yaml"}, w.versionFiles("main"))
	require.NotContains(t, w.manifest(v1), "replicas:", "the scaler owns the number")
	dir := recordDir + "/versions/" + v1
	written := w.file(dir + "/hpa.yaml")
	require.Contains(t, written, "  name: "+rollout.DeploymentName(deployName, v1, nil)+"\n")
	scaler := "HorizontalPodAutoscaler " + kubeNamespace + "/" + rollout.ResourceName(deployName, "hpa", v1)
	w.eventually("the scaler is in the cluster", func() bool {
		return slices.ContainsFunc(w.fleet.Status(), func(s temporalenv.Status) bool { return s.Object == scaler })
	})

	w.commit(gittest.Commit{Write: map[string]string{dir + "/hpa.yaml": strings.Replace(written, "maxReplicas: 5", "maxReplicas: 500", 1)},
		Delete: []string{dir + "/pdb.yaml"}, Message: "by hand"})
	w.eventually("put back", func() bool { return w.file(dir+"/hpa.yaml") == written && w.file(dir+"/pdb.yaml") != "" })

	w.push("more replicas", map[string]string{templatesFile: templatesText(7)})
	w.eventually("followed", func() bool { return strings.Contains(w.file(dir+"/hpa.yaml"), "maxReplicas: 7") })

	w.pushSpec("v2", specText{image: "app:v2"})
	w.awaitReady("app:v2")
	w.eventually("v1 removed", func() bool { return w.build("app:v1") == "" })
	require.Equal(t, []string{"v1/deployment.yaml", "v1/hpa.yaml", "v1/pdb.yaml", "v2/deployment.yaml", "v2/hpa.yaml"}, w.versionFiles(w.commitOf("create v2")))
	down := w.commitOf("scale down v1")
	require.Equal(t, []string{"v1/deployment.yaml", "v2/deployment.yaml", "v2/hpa.yaml", "v2/pdb.yaml"}, w.versionFiles(down))
	require.NotContains(t, w.repo.Files(down)[recordDir+"/kustomization.yaml"], v1+"/hpa.yaml")
	require.Contains(t, w.repo.Files(down)[dir+"/deployment.yaml"], "replicas: 0")
	require.Equal(t, []string{"v2/deployment.yaml", "v2/hpa.yaml", "v2/pdb.yaml"}, w.versionFiles("main"))
	w.eventually("the scaler is gone from the cluster", func() bool {
		return slices.ContainsFunc(w.fleet.Events(), func(e temporalenv.Event) bool { return e.Kind == temporalenv.Pruned && e.Object == scaler })
	})
	require.Empty(t, w.fleet.Orphans())
	require.Equal(t, []string{"current v1", "ramp v2 10", "ramp v2 50", "current v2"}, w.calls())

	commits := len(w.botCommits())
	w.settle()
	require.Len(t, w.botCommits(), commits, "and then quiet")

	// A template that is gone takes its object from every version; the spec's number of replicas counts again.
	head, tail, _ := strings.Cut(templatesText(7), "---\n")
	require.Contains(t, head, "name: hpa")
	w.push("no scaler", map[string]string{templatesFile: tail})
	w.eventually("the number is back", func() bool { return strings.Contains(w.manifest(w.build("app:v2")), "replicas: 1") })
	require.Equal(t, []string{"v2/deployment.yaml", "v2/pdb.yaml"}, w.versionFiles("main"))
	b.stop()

	// What the bot's configuration does not allow is reported and not made; the rest goes on.
	w.push("a secret", map[string]string{"workers/secret.yaml": strings.NewReplacer("name: pdb", "name: secret", "policy/v1", "v1",
		"PodDisruptionBudget", "Secret").Replace(tail)})
	out := w.once()
	require.Contains(t, out, "workers/secret.yaml:9: spec.template.kind: a template may not make Secret here")
	require.Equal(t, []string{"v2/deployment.yaml", "v2/pdb.yaml"}, w.versionFiles("main"))
	w.repo.Fsck()
}

// A scaler that is added while a version runs comes with the next one. What runs keeps its number of replicas, also
// after the spec has none. AllVersions gives it to what runs, too.
func TestScalerComesWithTheNextVersion(t *testing.T) {
	w := newWorld(t)
	b := w.start()
	w.pushSpec("add checkout", specText{image: "app:v1"})
	v1 := w.awaitReady("app:v1")
	w.push("templates", map[string]string{templatesFile: templatesText(5)})
	w.eventually("the budget", func() bool { return len(w.versionFiles("main")) == 2 })
	require.Equal(t, []string{"v1/deployment.yaml", "v1/pdb.yaml"}, w.versionFiles("main"))
	require.Contains(t, w.manifest(v1), "replicas: 1")

	w.pushSpec("v2", specText{image: "app:v2"})
	w.awaitReady("app:v2")
	created := w.commitOf("create v2")
	require.Equal(t, []string{"v1/deployment.yaml", "v1/pdb.yaml", "v2/deployment.yaml", "v2/hpa.yaml"}, w.versionFiles(created))
	require.Contains(t, w.repo.Files(created)[recordDir+"/versions/"+v1+"/deployment.yaml"], "replicas: 1")
	v2 := w.build("app:v2")
	require.NotContains(t, w.manifest(v2), "replicas:")
	w.eventually("v1 removed", func() bool { return w.build("app:v1") == "" })

	head, tail, _ := strings.Cut(templatesText(5), "---\n")
	w.push("no scaler", map[string]string{templatesFile: tail})
	w.eventually("the number is back", func() bool { return strings.Contains(w.manifest(v2), "replicas: 1") })
	w.push("a scaler for all", map[string]string{templatesFile: strings.Replace(head, "spec:\n", "spec:\n  applyTo: AllVersions\n", 1) + "---\n" + tail})
	w.eventually("the scaler owns the number", func() bool { return !strings.Contains(w.manifest(v2), "replicas:") })
	require.Equal(t, []string{"v2/deployment.yaml", "v2/hpa.yaml", "v2/pdb.yaml"}, w.versionFiles("main"))
	b.stop()
	require.Empty(t, w.fleet.Orphans())
	w.repo.Fsck()
}
