package render

import (
	"path"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// kustomization encodes a kustomization.yaml. resources is always there, even empty: kustomize refuses a file that says
// nothing. It says nothing else, so that ArgoCD, Flux and kubectl -k apply the manifests as they are in Git.
func kustomization(resources []string) (string, error) {
	list := make([]any, len(resources))
	for i, r := range slices.Sorted(slices.Values(resources)) {
		list[i] = r
	}
	return yamlText(map[string]any{
		"apiVersion": "kustomize.config.k8s.io/v1beta1",
		"kind":       "Kustomization",
		"resources":  list,
	})
}

// Root gives an environment's kustomization.yaml. dirs are the folders of its worker deployments below the output's
// path, <namespace>/<name>, in any order. ArgoCD takes a folder without such a file as plain and not recursive.
func Root(env v1alpha1.Environment, dirs []string) (rollout.FileChange, error) {
	data, err := kustomization(slices.Compact(slices.Sorted(slices.Values(dirs))))
	if err != nil {
		return rollout.FileChange{}, err
	}
	return rollout.FileChange{Path: path.Join(env.Output.Path, layout.Kustomization), Data: data}, nil
}

// writeKustomization lists what is applied. That is the status, the recorded files of each version that are there, and
// the files of versions that the record does not know, because a lost record must not take workers away.
func (f *filer) writeKustomization() error {
	var resources []string
	if f.plan.Environment.Status != v1alpha1.StatusOff && f.exists(layout.Status) {
		resources = append(resources, layout.Status)
	}
	known := map[string]bool{}
	for _, v := range f.versions {
		known[v.BuildID] = true
		for name := range v.Files {
			if p := layout.VersionFile(v.BuildID, name); f.exists(p) {
				resources = append(resources, p)
			}
		}
	}
	for p := range f.record.Files {
		rest, isVersion := strings.CutPrefix(p, layout.Versions+"/")
		buildID, _, _ := strings.Cut(rest, "/")
		if isVersion && !known[buildID] && strings.HasSuffix(p, ".yaml") && f.exists(p) {
			resources = append(resources, p)
		}
	}
	data, err := kustomization(resources)
	if err != nil {
		return err
	}
	f.put(layout.Kustomization, data)
	return nil
}
