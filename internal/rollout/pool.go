package rollout

import (
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// PoolSubject is the version whose pools are asked for.
type PoolSubject struct {
	// Deployment is the name of the worker deployment, BuildID the version.
	Deployment, BuildID string
	// Have are the pools that it has already.
	Have []v1alpha1.RecordedPool
	// Taken are names of Kubernetes Deployments that others have.
	Taken []string
}

// Pools are those that a version of a spec's pools is rendered with, sorted by name. One that it has already keeps its
// Deployment.
func (s PoolSubject) Pools(spec []v1alpha1.Pool) []v1alpha1.RecordedPool {
	var out []v1alpha1.RecordedPool
	taken := slices.Clone(s.Taken)
	for _, p := range spec {
		pool := v1alpha1.RecordedPool{Name: p.Name, Replicas: p.Replicas}
		had := slices.IndexFunc(s.Have, func(h v1alpha1.RecordedPool) bool { return h.Name == p.Name })
		if had >= 0 {
			pool.Deployment, pool.Replicas = s.Have[had].Deployment, ReplicasFor(p.Replicas, s.Have[had].Replicas)
		} else {
			pool.Deployment = PoolDeploymentName(s.Deployment, s.BuildID, p.Name, taken)
		}
		taken = append(taken, pool.Deployment)
		out = append(out, pool)
	}
	slices.SortFunc(out, func(a, b v1alpha1.RecordedPool) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// TakenBy are the names of Kubernetes Deployments that recorded versions have, those of their pools too.
func TakenBy(versions []v1alpha1.RecordedVersion) []string {
	var out []string
	for _, r := range versions {
		out = append(out, r.Deployment)
		for _, p := range r.Pools {
			out = append(out, p.Deployment)
		}
	}
	return out
}
