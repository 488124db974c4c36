package reconcile

import (
	"fmt"
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// remembered is what a Reconciler remembers of settled worker deployments.
type remembered struct{ Settled []rememberedSettled }

type rememberedSettled struct {
	Key               steadyKey
	Inputs            []byte
	Until, Due        time.Time
	Routing           rollout.RoutingConfig
	TemporalNamespace string
}

// Remember gives which worker deployments are settled, and on what. Those with which something went wrong are not among
// them.
func (r *Reconciler) Remember() any {
	var out remembered
	now := r.Now()
	for key, s := range r.resync.rows {
		if r.failures[key.Name] != nil || now.After(s.until.Add(resyncInterval)) { // what is that old is there no more
			continue
		}
		out.Settled = append(out.Settled, rememberedSettled{Key: key, Inputs: s.inputs[:], Until: s.until, Due: s.due, Routing: s.routing,
			TemporalNamespace: s.temporalNamespace})
	}
	return out
}

// Recall takes which worker deployments were settled in an earlier run. Each is described again when it would have
// been; those whose time came meanwhile one after the other, within the time that any may be left alone, the ones that
// wait longest first. What shows in a list, in Git or by its time is seen in the first cycle.
func (r *Reconciler) Recall(decode func(into any) error) error {
	var known remembered
	if err := decode(&known); err != nil {
		return err
	}
	all := make(map[steadyKey]*entry, len(known.Settled))
	now := r.Now()
	slices.SortFunc(known.Settled, func(a, b rememberedSettled) int { return a.Until.Compare(b.Until) })
	for i, s := range known.Settled {
		if len(s.Inputs) != len(inputs{}) {
			return fmt.Errorf("%s: its inputs are %d bytes", s.Key.Name, len(s.Inputs))
		}
		inTurn := now.Add(resyncInterval * time.Duration(i) / time.Duration(len(known.Settled)))
		until := earlier(s.Due, later(s.Until, inTurn))
		if most := now.Add(resyncInterval); until.After(most) { // the clock went back
			until = most
		}
		all[s.Key] = &entry{inputs: inputs(s.Inputs), listed: s.Key.Name.String(), until: until, due: s.Due, routing: s.Routing,
			temporalNamespace: s.TemporalNamespace}
	}
	r.resync.rows = all
	return nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
