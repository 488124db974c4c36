package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// evidence is an answer with three values and the words for it.
type evidence struct {
	answer rollout.Answer
	why    string
}

func yes() evidence { return evidence{answer: rollout.Yes} }
func no(format string, args ...any) evidence {
	return evidence{rollout.No, fmt.Sprintf(format, args...)}
}
func unknown(format string, args ...any) evidence { return evidence{"", fmt.Sprintf(format, args...)} }

// serves answers whether a version has pollers of its own on every queue that it must serve. These are its own queues,
// and those of each version named in also. The server raises traffic to versions without pollers, so this is our duty.
func (v *View) serves(buildID string, also ...string) evidence {
	o := v.obs.Version(buildID)
	if o == nil {
		return no("version %s has not registered with Temporal yet", buildID)
	}
	if o.QueuesKnown != rollout.Yes {
		return unknown("the task queues of %s could not be read", buildID)
	}
	if len(o.Queues) == 0 {
		return no("version %s has no task queue yet", buildID)
	}
	for _, q := range o.Queues {
		if e := v.polled(buildID, q); e.answer != rollout.Yes {
			return e
		}
	}
	for _, other := range also {
		if other == "" || other == buildID {
			continue
		}
		x := v.obs.Version(other)
		if x == nil || x.QueuesKnown != rollout.Yes {
			return unknown("the task queues of %s, which has traffic, could not be read", other)
		}
		for _, q := range x.Queues {
			if !slices.ContainsFunc(o.Queues, func(own rollout.TaskQueue) bool {
				return own.Name == q.Name && own.Type == q.Type
			}) {
				return no("version %s does not serve the %s task queue %s, which %s serves", buildID,
					strings.ToLower(string(q.Type)), q.Name, other)
			}
		}
	}
	return yes()
}

func (v *View) polled(buildID string, q rollout.TaskQueue) evidence {
	kind := strings.ToLower(string(q.Type))
	switch {
	case !q.Pollers.Known:
		return unknown("the pollers of the %s task queue %s could not be read: %s", kind, q.Name, q.Pollers.Reason)
	case q.Pollers.Ahead(v.now) > 0:
		return v.ahead(q.Pollers, fmt.Sprintf("a worker of %s on the %s task queue %s", buildID, kind, q.Name))
	case !q.Pollers.Fresh(v.now, v.s.Limits.PollerMaxAge):
		return no("no worker of %s polled the %s task queue %s in the last %s", buildID, kind, q.Name,
			v.s.Limits.PollerMaxAge)
	}
	return yes()
}

// ahead says that it is not known how old a poll is, since it is in the future of our clock.
func (v *View) ahead(p rollout.Pollers, who string) evidence {
	return unknown("%s polled %s after the time of our clock: set the clock of the bot's machine, or of Temporal's",
		who, p.Ahead(v.now).Round(time.Second))
}

// shared names a task queue of the version that another worker deployment polls, "" for none.
func (v *View) shared(buildID string) string {
	o := v.obs.Version(buildID)
	if o == nil {
		return ""
	}
	for _, q := range o.Queues {
		for _, d := range q.OtherDeployments {
			if d != v.s.Deployment.String() {
				return fmt.Sprintf("task queue %s of %s is also polled by worker deployment %s", q.Name, buildID, d)
			}
		}
	}
	return ""
}

// unversioned answers whether pollers without versioning are on the version's queues.
func (v *View) unversioned(buildID string) evidence {
	o := v.obs.Version(buildID)
	if o == nil || o.QueuesKnown != rollout.Yes {
		return unknown("the task queues of %s could not be read", buildID)
	}
	seen := no("")
	for _, q := range o.Queues {
		switch q.Unversioned {
		case rollout.Yes:
			return yes()
		case rollout.No:
		default:
			seen = unknown("it is not known whether unversioned workers poll task queue %s", q.Name)
		}
	}
	return seen
}

func (v *View) pollersGone(obs *rollout.Observation, buildID string) evidence {
	o := obs.Version(buildID)
	if o == nil || o.QueuesKnown != rollout.Yes {
		return unknown("the task queues of %s could not be read", buildID)
	}
	for _, q := range o.Queues {
		switch {
		case !q.Pollers.Known:
			return unknown("the pollers of task queue %s could not be read: %s", q.Name, q.Pollers.Reason)
		case q.Pollers.Count > 0:
			return no("a worker of %s polled task queue %s %s ago", buildID, q.Name, age(v.now, q.Pollers.LastAccess))
		}
	}
	return yes()
}

func unpinned(obs *rollout.Observation, buildID string) evidence {
	c := openPinned(obs, buildID)
	switch {
	case !c.Known:
		return unknown("the open workflows pinned to %s could not be counted: %s", buildID, c.Reason)
	case c.N > 0:
		return no("%d open workflows are pinned to %s", c.N, buildID)
	}
	return yes()
}

func openPinned(obs *rollout.Observation, buildID string) rollout.Count {
	if o := obs.Version(buildID); o != nil {
		return o.OpenPinned
	}
	if c, ok := obs.Unlisted[buildID]; ok {
		return c
	}
	return rollout.Count{Reason: "not asked"}
}

// inWindow reports whether a version may still be needed for a rollback. It was current, left by a promotion, and the
// window since then is not over. The second result is when the window ends.
func (v *View) inWindow(buildID string, window time.Duration) (bool, time.Time) {
	for _, p := range slices.Backward(v.promotions) {
		if p.BuildID != buildID || p.LeftAt.IsZero() {
			continue
		}
		end := p.LeftAt.Add(window)
		return !v.now.After(end), end
	}
	return false, time.Time{}
}

// returnWindow is for how long a version may come back at once: the rollback window, or the bake of the one after it.
func (v *View) returnWindow() time.Duration {
	settings, _ := v.analysisOf()
	return max(v.spec.Spec.Rollout.Rollback.Window.Duration, settings.Bake.Duration)
}

// mayReturn reports whether a version may become current again at once. It stood before the current one in the
// promotion order, was not itself left by a rollback, and the window since then is not over.
func (v *View) mayReturn(buildID string) bool {
	if buildID == "" || buildID == v.actual.Current || v.spec == nil ||
		!slices.Contains(before(v.promotions), buildID) {
		return false
	}
	in, _ := v.inWindow(buildID, v.returnWindow())
	return in && v.promotions[lastPromotion(v.promotions, buildID)].LeftBy == v1alpha1.LeftByPromotion
}

// predecessors gives the versions that were current before and may be so again, the last one first. It ends with the
// first one whose files are in Git. The ones before that are known to Temporal only: others run their workers, as at a
// takeover.
func (v *View) predecessors() []string {
	var out []string
	for _, id := range slices.Backward(before(v.promotions)) {
		r := v.recorded(id)
		switch {
		case id == v.actual.Current || v.bar(id, v.templateHash(id)) != nil:
		case r != nil:
			return append(out, id)
		case v.obs.Version(id) != nil:
			out = append(out, id)
		}
	}
	return out
}

// predecessor gives the version that traffic goes back to, or "". A version whose workers others run counts only while
// they poll.
func (v *View) predecessor() string {
	for _, id := range v.predecessors() {
		if v.recorded(id) != nil || v.serves(id).answer == rollout.Yes {
			return id
		}
	}
	return ""
}

// canTakeBack answers whether traffic can go back to a version. Its own queues are polled, and nothing in Git says that
// this is about to end.
func (v *View) canTakeBack(buildID string) evidence {
	r := v.recorded(buildID)
	switch {
	case r == nil && v.obs.Version(buildID) == nil:
		return no("version %s has no files in Git", orUnversioned(buildID))
	case r != nil && (r.Guard != v1alpha1.GuardOn || isZero(r.Replicas) && !isZero(v.specReplicas())):
		return no("version %s is scaled down", buildID)
	}
	return v.serves(buildID)
}

func age(now, t time.Time) time.Duration { return now.Sub(t).Round(time.Second) }
