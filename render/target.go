package render

import (
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// TargetInput is what a spec's target version is rendered from, without any record.
type TargetInput struct {
	Environment v1alpha1.Environment
	Spec        v1alpha1.WorkerDeployment
	Connection  v1alpha1.Connection
	// TakenNames are names of Deployments in the namespace that belong to other worker deployments.
	TakenNames []string
}

// Target gives the manifests of a spec's target version as a first rollout would write them, sorted by path: build ID from
// the spec alone, guard on, the replicas of the spec. The folder is <output>/<namespace>/<name>; a spec without a namespace
// gets the environment's. What a repository's record would add (an earlier build ID of the same template, names that
// are taken) is not known here.
func Target(in TargetInput) ([]rollout.FileChange, error) {
	meta := in.Spec.Metadata
	name := rollout.Name{Namespace: meta.Namespace, Name: meta.Name}
	if name.Namespace == "" {
		name.Namespace = in.Environment.Namespace
	}
	spec := in.Spec.Spec
	buildID, _ := rollout.BuildIDFor(spec, nil)
	rendered, err := version{
		name: name, buildID: buildID, spec: spec, replicas: spec.Replicas, guard: v1alpha1.GuardOn,
		deployment:   rollout.DeploymentName(name.Name, buildID, in.TakenNames),
		templateHash: rollout.TemplateHash(spec),
		wiring: wiring{
			connection: in.Connection.Spec, namespace: spec.WorkerOptions.TemporalNamespace, deployment: name.String(),
			buildID: buildID, names: in.Environment.WorkerEnv,
		},
	}.files()
	if err != nil {
		return nil, fmt.Errorf("render %s: %w", name, err)
	}
	dir := path.Join(in.Environment.Output.Path, name.Namespace, name.Name, versionDir(buildID))
	var out []rollout.FileChange
	for _, file := range slices.Sorted(maps.Keys(rendered)) {
		out = append(out, rollout.FileChange{Path: path.Join(dir, file), Data: rendered[file]})
	}
	return out, nil
}
