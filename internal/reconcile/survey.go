package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/internal/resync"
	"github.com/rampart-gitops/rampart/internal/retry"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// DefaultPatience is how long a cycle waits for the repository unless the Reconciler says otherwise.
const DefaultPatience = 15 * time.Second

// reading is the repository at one moment, and what loads its worker deployments. It stays usable while the repository
// is read again.
type reading struct {
	rollout.Survey
	// load completes snapshots, in their order. With an error it leaves out those that it could not read.
	load func(context.Context, []rollout.Snapshot) ([]rollout.Snapshot, error)
	// at is when it was read.
	at time.Time
	// committed are the worker deployments that the bot wrote since, as it wrote them, by environment.
	committed map[string][]*rollout.IndexEntry
}

// environment finds an environment by its name.
func (of *reading) environment(name string) (rollout.EnvironmentWorld, bool) {
	at := slices.IndexFunc(of.World.Environments, func(e rollout.EnvironmentWorld) bool {
		return e.Environment.Name == name
	})
	if at < 0 {
		return rollout.EnvironmentWorld{}, false
	}
	return of.World.Environments[at], true
}

// survey reads the branch's tip. While the repository is away it lowers traffic by what was read last.
func (r *Reconciler) survey(ctx context.Context, report *Report) (reading, error) {
	var tip reading
	var err error
	if r.pauses.has(repositoryPause, r.Now()) {
		err = r.pauses[repositoryPause].err
	} else {
		tip, err = r.waitForTip(ctx, report)
		r.absence.noteRead(r.Now(), err)
		r.pauses.note(repositoryPause, r.Now(), err)
	}
	if gone := r.notOurs(); err != nil && gone != nil {
		return tip, fmt.Errorf("%w: %w", gone, err)
	}
	if err != nil {
		return tip, errors.Join(err, r.lowerBlind(ctx, report, false))
	}
	return r.keep(tip, report), nil
}

// surveyAgain reads the tip once more in a cycle, before a try, from 0.
func (r *Reconciler) surveyAgain(ctx context.Context, try int, report *Report) (reading, error) {
	if try > 0 {
		if err := retry.Sleep(ctx, retry.Pause(try)); err != nil {
			return reading{}, err
		}
	}
	tip, err := r.waitForTip(ctx, report)
	if err != nil {
		return tip, err
	}
	return r.keep(tip, report), nil
}

// waitForTip reads the tip, patiently.
func (r *Reconciler) waitForTip(ctx context.Context, report *Report) (tip reading, err error) {
	r.patiently(ctx, report, func() { tip, err = r.tip(ctx) })
	return tip, err
}

// patiently does something that waits for the repository. Where that takes long, traffic is lowered meanwhile by what
// was read last: a repository that does not answer, or answers slowly, does not keep broken builds their traffic.
func (r *Reconciler) patiently(ctx context.Context, report *Report, wait func()) {
	if r.last == nil {
		wait()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait()
	}()
	patience := time.NewTicker(cmp.Or(r.Patience, DefaultPatience))
	defer patience.Stop()
	for {
		select {
		case <-done:
			return
		case <-patience.C:
			r.Log.WarnContext(ctx, "the repository does not answer yet: traffic is lowered by what was read last")
			if err := r.lowerBlind(ctx, report, true); err != nil && ctx.Err() == nil {
				r.Log.ErrorContext(ctx, "traffic could not be lowered while the repository is away", "error", err)
			}
		}
	}
}

// tip reads the branch: all of it where each worker deployment is observed in every cycle, else as an index.
func (r *Reconciler) tip(ctx context.Context) (reading, error) {
	release, err := r.repository.take(ctx)
	if err != nil {
		return reading{}, err
	}
	defer release()
	if r.Surveyor != nil && r.Lister != nil {
		survey, load, err := r.Surveyor.Survey(ctx)
		return reading{Survey: survey, load: load}, err
	}
	world, err := r.Source.Read(ctx)
	survey, load := Surveyed(world)
	return reading{Survey: survey, load: load}, err
}

// keep keeps a reading for when the repository is away, and gives one that loads patiently.
func (r *Reconciler) keep(tip reading, report *Report) reading {
	tip.at = r.Now()
	last := tip
	r.last = &last
	tip.load = func(ctx context.Context, snapshots []rollout.Snapshot) (out []rollout.Snapshot, err error) {
		r.patiently(ctx, report, func() { out, err = last.load(ctx, snapshots) })
		return out, err
	}
	return tip
}

// Surveyed gives a world that was read as a whole as a survey.
func Surveyed(world rollout.World) (survey rollout.Survey,
	load func(context.Context, []rollout.Snapshot) ([]rollout.Snapshot, error)) {
	world.Environments = slices.Clone(world.Environments)
	for i := range world.Environments {
		env := &world.Environments[i]
		env.Entries = make([]*rollout.IndexEntry, len(env.Deployments))
		for k := range env.Deployments {
			env.Entries[k] = &rollout.IndexEntry{Deployment: env.Deployments[k].Deployment, Full: &env.Deployments[k]}
		}
		if len(env.Deployments) > 0 {
			env.Waivers = env.Deployments[0].Waivers
		}
	}
	snapshots := func(_ string, entries []*rollout.IndexEntry) []rollout.Snapshot {
		out := make([]rollout.Snapshot, len(entries))
		for i, k := range entries {
			out[i] = *k.Full
		}
		return out
	}
	return rollout.Survey{World: world, Snapshots: snapshots}, func(_ context.Context,
		s []rollout.Snapshot) ([]rollout.Snapshot, error) {
		return s, nil
	}
}

// row finds a worker deployment; nil: it is not there.
func (of *reading) row(key resync.Key) *rollout.IndexEntry {
	env, ok := of.environment(key.Env)
	if !ok {
		return nil
	}
	at, ok := rollout.EntryAt(env.Entries, key.Name)
	if !ok {
		return nil
	}
	return env.Entries[at]
}
