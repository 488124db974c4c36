package reconcile

import (
	"context"
	"maps"
	"path"
	"slices"

	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Statuses reads commit statuses of others.
type Statuses interface {
	// Read gives for each version that is asked about, in their order, a fact for each context, by its name. It takes
	// no longer than a cycle may wait for it. Failures are in the facts.
	Read(ctx context.Context, q rollout.StatusQuestion) []map[string]rollout.Fact
}

// nobodyAsks says why a status is not known where the forge is not asked.
const nobodyAsks = "the forge is not asked here: rampart run reads statuses, with --forge"

// withStatuses decides again what commit statuses bear on.
func (p *Planner) withStatuses(ctx context.Context, g *group, decisions []*rollout.Decision) []*rollout.Decision {
	judge := g.judge
	contexts := judge.Looks().Statuses
	if len(contexts) == 0 || len(decisions) == 0 {
		return decisions
	}
	q := rollout.StatusQuestion{Environment: g.env.Environment, Contexts: contexts,
		Versions: make([]string, len(decisions))}
	for i, d := range decisions {
		if t := d.Proposal.Target; t != nil {
			q.Versions[i] = path.Join(d.Snapshot.Record.Dir, layout.Version(t.BuildID))
		}
	}
	facts := p.readStatuses(ctx, g, q)
	out := make([]*rollout.Decision, len(decisions))
	for i, d := range decisions {
		s := d.Snapshot
		s.Now = p.Now()
		if s.Facts = maps.Clone(s.Facts); s.Facts == nil {
			s.Facts = map[string]rollout.Fact{}
		}
		maps.Copy(s.Facts, facts[i])
		out[i] = Decide(ctx, judge, s)
	}
	return out
}

// readStatuses reads commit statuses. It uses the repository, which knows the commits that hold a version.
func (p *Planner) readStatuses(ctx context.Context, g *group, q rollout.StatusQuestion) []map[string]rollout.Fact {
	why := nobodyAsks
	if p.Statuses != nil && g.blind {
		why = "the repository is away"
	} else if p.Statuses != nil {
		soon, cancel := g.within(ctx)
		defer cancel()
		release, err := p.repository.take(soon)
		if err == nil {
			defer release()
			return p.Statuses.Read(ctx, q)
		}
		why = "the repository was in use for too long: " + err.Error()
	}
	unknown := map[string]rollout.Fact{}
	for _, c := range q.Contexts {
		unknown[rollout.StatusFacts+c] = rollout.Fact{Source: "status " + c, Error: why}
	}
	return slices.Repeat([]map[string]rollout.Fact{unknown}, len(q.Versions))
}
