package report

import (
	"fmt"
	"path"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// LeftBehind is a version whose workers poll though they should have stopped.
type LeftBehind struct {
	v1alpha1.LeftBehind
	// Do says what to do about it.
	Do string `json:"do"`
}

// leftBehind adds what to do to the versions of a status.
func leftBehind(s rollout.Snapshot, list []v1alpha1.LeftBehind) []LeftBehind {
	tool := "ArgoCD or Flux"
	if one := s.Environment.CD.Tool; one == v1alpha1.ArgoCD || one == v1alpha1.Flux {
		tool = string(one)
	}
	var out []LeftBehind
	for _, l := range list {
		object := fmt.Sprintf("-n %s deployment/%s", s.Deployment.Namespace, l.Deployment)
		do := fmt.Sprintf("%s did not apply that: see that it syncs %s, or: kubectl scale %s --replicas 0",
			tool, path.Clean(s.Environment.Output.Path), object)
		if !l.RemovedAt.IsZero() {
			do = fmt.Sprintf("%s did not prune it: kubectl delete %s", tool, object)
		}
		out = append(out, LeftBehind{l, do})
	}
	return out
}

// what says what was done in Git, and that workers poll.
func (l LeftBehind) what(now time.Time) string {
	done, at := "scaled down in", l.ScaledDownAt
	if !l.RemovedAt.IsZero() {
		done, at = "removed from", l.RemovedAt
	}
	return fmt.Sprintf("%s: %s Git %s ago, still polling", l.BuildID, done, Age(now.Sub(at.Time)))
}
