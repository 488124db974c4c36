package plan

import (
	"reflect"
	"slices"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Pools are further Deployments of a version. They have no life of their own: what happens to the version's first
// Deployment happens to them, in the same commit.

// newPools are the pools that the target is rendered with. One that it has already keeps its Deployment.
func (v *View) newPools() []v1alpha1.RecordedPool {
	return rollout.PoolSubject{Deployment: v.s.Deployment.Name, BuildID: v.target.BuildID,
		Have: v.poolsOf(v.target.BuildID), Taken: v.takenNames()}.Pools(v.spec.Spec.Pools)
}

func (v *View) poolsOf(buildID string) []v1alpha1.RecordedPool {
	if r := v.recorded(buildID); r != nil {
		return r.Pools
	}
	return nil
}

// specPool is a pool as the spec has it now, nil if it has none of that name.
func (v *View) specPool(name string) *v1alpha1.Pool {
	if v.spec == nil {
		return nil
	}
	return find(v.spec.Spec.Pools, func(p *v1alpha1.Pool) bool { return p.Name == name })
}

// wantedPools are a version's pools with the spec's replicas, where the version follows these.
func (v *View) wantedPools(r *v1alpha1.RecordedVersion) []v1alpha1.RecordedPool {
	out := slices.Clone(r.Pools)
	for i := range out {
		if p := v.specPool(out[i].Name); p != nil && v.followsSpec(r.BuildID) {
			out[i].Replicas = rollout.ReplicasFor(p.Replicas, out[i].Replicas)
		}
	}
	return out
}

// restoredPools are a version's pools when it gets its workers back.
func (v *View) restoredPools(r *v1alpha1.RecordedVersion) []v1alpha1.RecordedPool {
	out := slices.Clone(r.Pools)
	for i := range out {
		switch p := v.specPool(out[i].Name); {
		case p != nil && (!isZero(p.Replicas) || v.isTarget(r.BuildID)):
			out[i].Replicas = p.Replicas
		case p != nil || isZero(out[i].Replicas):
			out[i].Replicas = new(int32(1))
		}
	}
	return out
}

func idlePools(r *v1alpha1.RecordedVersion) []v1alpha1.RecordedPool {
	out := slices.Clone(r.Pools)
	for i := range out {
		out[i].Replicas = new(int32)
	}
	return out
}

func samePools(a, b []v1alpha1.RecordedPool) bool {
	return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b)
}

// poolsServe answers whether each of the target's pools does its part where all task queues of the target are polled.
// The queues that a pool declares are among them, or else its workers poll whichever queue.
func (v *View) poolsServe() evidence {
	o := v.obs.Version(v.target.BuildID)
	for _, pool := range v.poolsOf(v.target.BuildID) {
		p := v.specPool(pool.Name)
		if p == nil || isZero(p.Replicas) {
			continue
		}
		if e := v.poolServes(o, p, pool.Deployment); e.answer != rollout.Yes {
			return e
		}
	}
	return yes()
}

func (v *View) poolServes(o *rollout.VersionObservation, p *v1alpha1.Pool, deployment string) evidence {
	for _, name := range p.TaskQueues {
		if !slices.ContainsFunc(o.Queues, func(q rollout.TaskQueue) bool { return q.Name == name }) {
			return no("version %s does not serve task queue %s yet, which its pool %s declares", o.BuildID, name,
				p.Name)
		}
	}
	if len(p.TaskQueues) > 0 {
		return yes()
	}
	own := o.Workers[deployment]
	switch {
	case !own.Known:
		return unknown("the pollers of pool %s could not be read: %s", p.Name, own.Reason)
	case own.Ahead(v.now) > 0:
		return v.ahead(own, "a worker of pool "+p.Name)
	case !own.Fresh(v.now, v.s.Limits.PollerMaxAge):
		return no("no worker of pool %s (Deployment %s) polled in the last %s. If its workers have identities of "+
			"their own, declare its taskQueues",
			p.Name, deployment, v.s.Limits.PollerMaxAge)
	}
	return yes()
}

// askWorkers asks for the polls of the target's pools that declare no task queues.
func (v *View) askWorkers(a *rollout.Ask) {
	for _, pool := range v.poolsOf(v.target.BuildID) {
		if p := v.specPool(pool.Name); p != nil && len(p.TaskQueues) == 0 {
			a.Workers = append(a.Workers, pool.Deployment)
		}
	}
}
