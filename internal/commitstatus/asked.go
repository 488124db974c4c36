package commitstatus

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/internal/report"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/render"
)

// standing is where a worker deployment is with what a commit asked for.
type standing struct {
	// commit that asked; "": none is known, or nothing is asked for any more.
	commit string
	// dir is the folder of its record.
	dir string
	// state is empty where it is not known just now.
	state forge.StatusState
	// text says it in words.
	text string
	// since is when it came to that, as its conditions say.
	since time.Time
}

// standingOf is where a decision leaves a worker deployment. What cannot be seen just now leaves it where it was, if
// that was asked by the same commit.
func standingOf(d *rollout.Decision, commit string, was standing) standing {
	state := report.StateOf(d.Proposal, d.Plan)
	now := standing{commit: commit, dir: d.Plan.Dir, text: string(state.Reason), since: sinceOf(d)}
	switch state.Reason {
	case rollout.TemporalStateFetchFailed, rollout.TemporalClientCreationFailed, rollout.StaleFacts,
		rollout.PlanGenerationFailed, rollout.PlanExecutionFailed:
		if was.commit == commit && was.state != "" {
			return was
		}
		return now
	}
	switch render.HealthOf(state, render.Verdict(d.Plan.Status), v1alpha1.RampProgressing) {
	case render.Degraded:
		now.state, now.text = forge.StatusFailure, now.text+": "+state.Message
	case render.Healthy:
		now.state, now.text = forge.StatusSuccess, "rollout complete"
	default:
		now.state = forge.StatusPending
	}
	return now
}

// sinceOf is the last time that a condition changed; zero: not known.
func sinceOf(d *rollout.Decision) (since time.Time) {
	status := d.Plan.Status
	if was := d.Snapshot.Record.Status; status == nil && was != nil {
		status = was.Status
	}
	if status == nil {
		return since
	}
	for _, c := range status.Conditions {
		if c.LastTransitionTime.After(since) {
			since = c.LastTransitionTime.Time
		}
	}
	return since
}

// key is one status at the forge.
type key struct{ commit, context string }

// wanted is what a status is to say.
type wanted struct {
	forge.Status
	since time.Time
	// weak says that it is not known just now: it is only said where nothing was said before.
	weak bool
}

// wantedOf are the statuses of an environment, by what its worker deployments stand at.
func wantedOf(env v1alpha1.Environment, all map[rollout.Name]standing,
	link func(v1alpha1.Environment, string) string) map[key]wanted {
	groups := map[key][]rollout.Name{}
	for _, n := range slices.SortedFunc(maps.Keys(all), rollout.Name.Compare) {
		k := key{all[n].commit, Own + env.Name}
		if env.CommitStatuses == v1alpha1.StatusPerWorkerDeployment {
			k.context += "/" + n.String()
		}
		if k.commit != "" {
			groups[k] = append(groups[k], n)
		}
	}
	out := make(map[key]wanted, len(groups))
	for k, names := range groups {
		w := together(names, all)
		dir := env.Output.Path
		if len(names) == 1 {
			dir = cmp.Or(all[names[0]].dir, dir)
		}
		w.Context, w.URL, w.Description = k.context, link(env, dir), forge.Description(w.Description)
		out[k] = w
	}
	return out
}

// together is what is so of some: a failure of one is the failure of all.
func together(names []rollout.Name, all map[rollout.Name]standing) (w wanted) {
	complete, worst := 0, names[0]
	w.weak = true
	for _, n := range names {
		s := all[n]
		if s.since.After(w.since) {
			w.since = s.since
		}
		if s.state != "" && s.state != forge.StatusSuccess {
			w.weak = false
		}
		if s.state == forge.StatusSuccess {
			complete++
		}
		if graver(s.state) > graver(all[worst].state) {
			worst = n
		}
	}
	s := all[worst]
	w.State, w.Description = cmp.Or(s.state, forge.StatusPending), worst.String()+": "+s.text
	switch {
	case complete == len(names):
		w.weak = false
		if len(names) > 1 {
			w.Description = fmt.Sprintf("%d worker deployments: %s", len(names), s.text)
		}
	case len(names) > 1:
		w.Description = fmt.Sprintf("%d of %d complete; %s", complete, len(names), w.Description)
	}
	return w
}

// graver orders states by what has to be told first: the gravest has the highest number. An unknown state, "", is
// graver than success only.
func graver(s forge.StatusState) int {
	return slices.Index([]forge.StatusState{forge.StatusSuccess, "", forge.StatusPending, forge.StatusError,
		forge.StatusFailure}, s)
}

// changes reports whether a status says something else than what is at the forge; was is nil where nothing is.
func (w wanted) changes(was *written, now time.Time) bool {
	switch {
	case was == nil:
		return true
	// it was complete once; what goes on now is something else
	case w.weak, was.State == forge.StatusSuccess && w.State == forge.StatusPending:
		return false
	case was.State != w.State:
		return true
	}
	return was.Description != w.Description && now.Sub(was.at) >= sayEvery
}

// longAgo reports whether it came to that so long ago that it was surely said.
func (w wanted) longAgo(now time.Time) bool {
	return !w.since.IsZero() && now.Sub(w.since) > longAgo
}

// superseded is what a commit is told that waits, when nothing asks for what it wanted any more.
func superseded(context string) wanted {
	return wanted{Status: forge.Status{Context: context, State: forge.StatusError,
		Description: "superseded: what this commit asked for is not waited for any more"}}
}
