package plan

import (
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// While routing.yaml cannot be read, traffic is only lowered, on the last version of the file in history that can be
// read. A verdict, a gate, a bar, a spec that was reverted, or a person's command lowers it. That version may be older
// than the routing, so what it desires does not count as a wish any more: it makes no drift and no edit. Nothing is
// written, so that the file stays as it was left for the person who has to mend it. A mark in Temporal keeps what was
// turned back from coming again. Without such a version nothing moves.

// recordIn is the record to decide by: the one in Git; where that cannot be read, the last one that could. Nil: there
// is none.
func recordIn(s *rollout.Snapshot) *v1alpha1.RoutingSpec {
	routing := s.Record.Routing
	if s.Record.RoutingProblem != nil {
		routing = s.Record.LastReadable
	}
	if routing == nil {
		return nil
	}
	return &routing.Spec
}

// earlierRecord is a record of before the one that cannot be read.
func earlierRecord(rec v1alpha1.RoutingSpec) v1alpha1.RoutingSpec {
	rec.Basis, rec.Decided, rec.Proposal = nil, nil, nil
	return rec
}

// unreadable reports whether the record cannot be read, and an earlier one takes its place.
func (v *View) unreadable() bool {
	return v.s.Record.RoutingProblem != nil && v.s.Record.LastReadable != nil
}
