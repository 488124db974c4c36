package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// missingAfter is how long the target's workers may take to register before it is asked where they are.
const missingAfter = time.Minute

// askMissing asks where the target's workers are, if they have not registered for some time; nil: not yet.
func (v *View) askMissing() *rollout.MissingAsk {
	r := v.recorded(v.target.BuildID)
	if r == nil || v.obs.Version(r.BuildID) != nil || !v.now.After(v.awaitedSince().Add(missingAfter)) {
		return nil
	}
	return &rollout.MissingAsk{BuildID: r.BuildID, Workers: rollout.TakenBy([]v1alpha1.RecordedVersion{*r})}
}

// sayMissing says where the target's workers are, as far as Temporal knows, and what to do. That is certain, and will
// not pass with time, if the target's pods are there without versioning. The text is "" if the workers registered, or
// Temporal was not asked.
func (v *View) sayMissing() (text string, certain bool) {
	known := v.obs.Missing
	if known == nil || v.obs.Version(v.target.BuildID) != nil {
		return "", false
	}
	const fix = "with TEMPORAL_DEPLOYMENT_NAME and TEMPORAL_WORKER_BUILD_ID of their environment"
	if len(known.Unversioned) > 0 {
		return fmt.Sprintf(": its pods poll task queue %s without versioning: let them turn it on, %s",
			strings.Join(known.Unversioned, ", "), fix), true
	}
	if len(known.Deployments) > 0 {
		return fmt.Sprintf(": its build is a version of worker deployment %s: if these are its own workers, they use "+
			"a wrong deployment name: let them register %s",
			strings.Join(known.Deployments, ", "), fix), false
	}
	if others := v.unversionedQueues(v.actual.Current); len(others) > 0 {
		return fmt.Sprintf(": Temporal knows no worker of it, but unversioned workers on task queue %s: if these are "+
			"its own, let them turn versioning on, %s",
			strings.Join(others, ", "), fix), false
	}
	return ": Temporal knows no worker of it under any name: look whether its pods run, and whether they " +
		"reach Temporal", false
}

func (v *View) unversionedQueues(buildID string) (out []string) {
	o := v.obs.Version(buildID)
	if o == nil {
		return nil
	}
	for _, q := range o.Queues {
		if q.Unversioned == rollout.Yes && !slices.Contains(out, q.Name) {
			out = append(out, q.Name)
		}
	}
	return out
}
