package reconcile

import (
	"context"
	"slices"

	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// withLost adds to snapshots the versions that Temporal has a use for and Git lost, as far as history has them, and
// observes those again. What cannot be looked for is not known: nothing is done about it, and it is told.
func (p *Planner) withLost(ctx context.Context, g *group, seen []rollout.Snapshot) []rollout.Snapshot {
	if p.Records == nil || g.blind {
		return seen
	}
	var lost []rollout.LostVersions
	var of []int
	for i, s := range seen {
		if allRecorded(s) { // as nearly always
			continue
		}
		if ids := plan.Look(s).LostVersions(); len(ids) > 0 {
			lost, of = append(lost, rollout.LostVersions{Deployment: s.Deployment, Dir: s.Record.Dir,
				TemporalNamespace: plan.TemporalNamespace(s), BuildIDs: ids}), append(of, i)
		}
	}
	if len(lost) == 0 {
		return seen
	}
	soon, cancel := g.within(ctx)
	defer cancel()
	release, err := p.repository.take(soon)
	if err != nil {
		return seen
	}
	found, err := p.Records.Recorded(soon, g.env.Environment, lost)
	release()
	if err != nil {
		p.Log.WarnContext(ctx, "versions that Git lost could not be looked for", "environment", g.env.Environment.Name,
			"error", err)
	}
	var again []rollout.Snapshot
	of = slices.DeleteFunc(of, func(i int) bool { return len(found[seen[i].Deployment]) == 0 })
	for _, i := range of {
		s := withoutObservation(seen[i])
		s.Lost = found[s.Deployment]
		for _, v := range s.Lost {
			p.Log.WarnContext(ctx, "Git lost a version that is in use: it is put back", "deployment",
				s.Deployment.String(), "buildID", v.BuildID)
		}
		again = append(again, s)
	}
	again = p.observe(ctx, g, again)
	out := slices.Clone(seen)
	for k, i := range of {
		if !again[k].Observation.CutShort { // else the first look showed more: they come back in the next cycle
			out[i] = again[k]
		}
	}
	return out
}

// allRecorded reports whether a record has all versions that Temporal lists.
func allRecorded(s rollout.Snapshot) bool {
	recorded := s.Record.Versions()
	return !slices.ContainsFunc(s.Observation.Versions, func(o rollout.VersionObservation) bool {
		return rollout.FindVersion(recorded, o.BuildID) == nil
	})
}
