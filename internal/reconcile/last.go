package reconcile

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// reading is the repository as it was read, and what completes its snapshots. It may be used while the repository is read again.
type reading struct {
	rollout.Survey
	fill func(context.Context, []rollout.Snapshot) ([]rollout.Snapshot, error)
	// at is when it was read.
	at time.Time
	// committed are those that the bot wrote since, as it wrote them, by environment.
	committed map[string][]*rollout.Known
}

// survey reads the repository, no more of it than has to be: all of it where each worker deployment is looked at in every cycle.
func (r *Reconciler) survey(ctx context.Context) (reading, error) {
	if s, ok := r.Source.(Surveyor); ok && r.Lister != nil {
		survey, fill, err := s.Survey(ctx)
		return reading{Survey: survey, fill: fill}, err
	}
	world, err := r.Source.Read(ctx)
	survey, fill := Surveyed(world)
	return reading{Survey: survey, fill: fill}, err
}

// Surveyed is a world that was read as a whole, as a survey.
func Surveyed(world rollout.World) (survey rollout.Survey, fill func(context.Context, []rollout.Snapshot) ([]rollout.Snapshot, error)) {
	world.Environments = slices.Clone(world.Environments)
	for i := range world.Environments {
		env := &world.Environments[i]
		env.Known = make([]*rollout.Known, len(env.Deployments))
		for k := range env.Deployments {
			env.Known[k] = &rollout.Known{Deployment: env.Deployments[k].Deployment, Full: &env.Deployments[k]}
		}
		if len(env.Deployments) > 0 {
			env.Waivers = env.Deployments[0].Waivers
		}
	}
	brief := func(_ string, known []*rollout.Known) []rollout.Snapshot {
		out := make([]rollout.Snapshot, len(known))
		for i, k := range known {
			out[i] = *k.Full
		}
		return out
	}
	return rollout.Survey{World: world, Brief: brief}, func(_ context.Context, s []rollout.Snapshot) ([]rollout.Snapshot, error) { return s, nil }
}

// readAgain reads the repository once more in a cycle.
func (r *Reconciler) readAgain(ctx context.Context) (reading, error) {
	now, err := r.survey(ctx)
	if err == nil {
		r.keepLast(now)
	}
	return now, err
}

// keepLast keeps what was read last, for when the repository is away.
func (r *Reconciler) keepLast(now reading) {
	now.at = r.Now()
	r.last = &now
}

// withRecords is a reading with what was just committed on top of it: while the repository is away, what the bot did itself is no drift.
func withRecords(was *reading, environment string, decisions []*Decision) *reading {
	if was == nil {
		return nil
	}
	at := environmentAt(*was, environment)
	if at < 0 {
		return was
	}
	known, since := was.World.Environments[at].Known, slices.Clip(was.committed[environment])
	for _, d := range decisions {
		if at, ok := rollout.KnownAt(known, d.Plan.Deployment); ok && d.Plan.Record != nil {
			s := asRead(d.Snapshot) // what fills a brief one in has the record of before
			if full := known[at].Full; full != nil {
				s = *full
			}
			s.Record.Routing = &v1alpha1.Routing{Spec: *d.Plan.Record}
			since = append(since, &rollout.Known{Deployment: s.Deployment, Full: &s})
		}
	}
	out := *was
	out.committed = maps.Clone(was.committed)
	if out.committed == nil {
		out.committed = map[string][]*rollout.Known{}
	}
	out.committed[environment] = since
	return &out
}

// withCommitted is an environment that was read last, with what was committed since.
func (of *reading) withCommitted(env rollout.EnvironmentWorld) rollout.EnvironmentWorld {
	if since := of.committed[env.Environment.Name]; len(since) > 0 {
		env.Known = slices.Clone(env.Known)
		for _, k := range since {
			if at, ok := rollout.KnownAt(env.Known, k.Deployment); ok {
				env.Known[at] = k
			}
		}
	}
	return env
}

// asRead is a snapshot as it came from the repository.
func asRead(s rollout.Snapshot) rollout.Snapshot {
	s.Observation, s.FirstRead, s.Deletions, s.Facts, s.GateInputs, s.Failure, s.Review, s.Approver = rollout.Observation{}, nil, nil, nil, nil, nil, nil, nil
	s.Cluster = nil
	return s
}
