package reconcile

import (
	"maps"
	"slices"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// withRecords is a reading with what was just committed on top of it. So, while the repository is away, what the bot
// did itself does not count as drift.
func withRecords(was *reading, environment string, decisions []*rollout.Decision) *reading {
	if was == nil {
		return nil
	}
	env, ok := was.environment(environment)
	if !ok {
		return was
	}
	entries, since := env.Entries, slices.Clip(was.committed[environment])
	for _, d := range decisions {
		if at, ok := rollout.EntryAt(entries, d.Plan.Deployment); ok && d.Plan.Record != nil {
			s := asRead(d.Snapshot) // what loads a partial one has the record of before
			if full := entries[at].Full; full != nil {
				s = *full
			}
			s.Record.Routing = &v1alpha1.Routing{Spec: *d.Plan.Record}
			since = append(since, &rollout.IndexEntry{Deployment: s.Deployment, Full: &s})
		}
	}
	out := *was
	out.committed = maps.Clone(was.committed)
	if out.committed == nil {
		out.committed = map[string][]*rollout.IndexEntry{}
	}
	out.committed[environment] = since
	return &out
}

// withCommitted is an environment that was read last, with what was committed since.
func (of *reading) withCommitted(env rollout.EnvironmentWorld) rollout.EnvironmentWorld {
	if since := of.committed[env.Environment.Name]; len(since) > 0 {
		env.Entries = slices.Clone(env.Entries)
		for _, k := range since {
			if at, ok := rollout.EntryAt(env.Entries, k.Deployment); ok {
				env.Entries[at] = k
			}
		}
	}
	return env
}

// asRead is a snapshot as it came from the repository.
func asRead(s rollout.Snapshot) rollout.Snapshot {
	s.Observation, s.FirstRead, s.Deletions, s.Facts, s.GateInputs = rollout.Observation{}, nil, nil, nil, nil
	s.Failure, s.Review, s.Approver, s.Cluster = nil, nil, nil, nil
	return s
}
