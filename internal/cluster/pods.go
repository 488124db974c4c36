package cluster

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// restless is how long a container that was started again counts as one that crashes. A kubelet forgets its back-off
// when it has run for as long.
const restless = 10 * time.Minute

// pods are those of a version, by what is known of the namespace.
func (n *namespace) pods(v rollout.VersionDeployments, now time.Time) rollout.VersionPods {
	out := rollout.VersionPods{BuildID: v.BuildID}
	found := tally{}
	for _, name := range v.Deployments {
		object, _, _ := n.deployments.GetByKey(n.name + "/" + name) // it has no errors
		d, _ := object.(*deployment)
		if d == nil || d.buildID != v.BuildID {
			found.add(&problem{rollout.NoDeployment, fmt.Sprintf("%s is not in namespace %s, or not with the "+
				"label %s: %s", name, n.name, rollout.LabelBuildID, v.BuildID)}, 0)
			continue
		}
		out.Desired, out.Ready, out.Available = out.Desired+d.desired, out.Ready+d.ready, out.Available+d.available
		refused := d.refused
		for _, set := range indexed[*replicaSet](n.replicaSets.ByIndex(byOwner, string(d.UID))) {
			if set.refused != nil { // it has the API server's words
				refused = set.refused
			}
			for _, p := range indexed[*pod](n.stores.pods.ByIndex(byOwner, string(set.UID))) {
				if p.over {
					continue
				}
				out.Pods++
				found.add(n.why(p, now), 1)
			}
		}
		found.add(refused, 0)
	}
	out.Problems = found.problems()
	return out
}

// why says why a pod does not run, nil if nothing is known to be wrong.
func (n *namespace) why(p *pod, now time.Time) *problem {
	switch {
	case p.problem != nil:
		return p.problem
	case p.crashed != nil && now.Sub(p.restarted) < restless:
		return p.crashed
	case p.starting:
		return n.warned(p.UID)
	}
	return nil
}

// warned is the last warning about a pod that does not start; nil: there is none.
func (n *namespace) warned(pod types.UID) *problem {
	var last *event
	for _, e := range indexed[*event](n.events.ByIndex(byPod, string(pod))) {
		if e.problem != nil && (last == nil || e.at.After(last.at) || e.at.Equal(last.at) && e.Name > last.Name) {
			last = e
		}
	}
	if last == nil {
		return nil
	}
	return last.problem
}

// indexed are the objects of an index. A lookup fails for an index that is not there only.
func indexed[T any](objects []any, _ error) []T {
	out := make([]T, 0, len(objects))
	for _, o := range objects {
		if is, ok := o.(T); ok {
			out = append(out, is)
		}
	}
	return out
}

// tally counts pods by what keeps them from running.
type tally map[problem]int

func (t tally) add(p *problem, pods int) {
	if p != nil {
		t[*p] += pods
	}
}

// problems are one for each reason, with the message of the most pods.
func (t tally) problems() []rollout.PodProblem {
	var each []rollout.PodProblem
	for p, pods := range t {
		each = append(each, rollout.PodProblem{Reason: p.reason, Pods: pods, Message: p.message})
	}
	slices.SortFunc(each, rollout.PodProblem.Compare)
	var out []rollout.PodProblem
	for _, p := range each {
		if at := slices.IndexFunc(out, func(o rollout.PodProblem) bool { return o.Reason == p.Reason }); at >= 0 {
			out[at].Pods += p.Pods
		} else {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, rollout.PodProblem.Compare)
	return out
}
