package report

import (
	"cmp"
	"fmt"
	"path"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Explanation is why a worker deployment is where it is, as far as Git says.
type Explanation struct {
	Status Status `json:"status"`
	// RecordPath is where routing.yaml is; "": there is none yet.
	RecordPath string `json:"recordPath,omitempty"`
	// TargetSince is when the target became the target, Attempt how often it did.
	TargetSince *time.Time `json:"targetSince,omitempty"`
	Attempt     int        `json:"attempt,omitempty"`
	Steps       []Step     `json:"steps,omitempty"`
	Gates       []Gate     `json:"gates,omitempty"`
	Bars        []Notice   `json:"bars,omitempty"`
	Hold        *Notice    `json:"hold,omitempty"`
	// Versions with files in Git, in the order of their creation.
	Versions []Version `json:"versions,omitempty"`
	// Cluster is what was read of the versions' pods; nil: it was not asked for.
	Cluster *rollout.Cluster `json:"cluster,omitempty"`
	// Unrecorded are build IDs that Temporal knows and Git has no files of.
	Unrecorded []string `json:"unrecorded,omitempty"`
	// Decision is what is decided anew from a snapshot; nil where there is none.
	Decision *Deployment `json:"decision,omitempty"`
	// Superseded is the last recorded decision where that is about an earlier state; nil: it is not, or there is none.
	Superseded *Superseded `json:"superseded,omitempty"`
	// Policy is why policy says what it says; nil where there is no input to ask it about.
	Policy *PolicyTree `json:"policy,omitempty"`
}

// Superseded is a recorded decision that does not explain what is so now.
type Superseded struct {
	DecisionID string    `json:"decisionID"`
	At         time.Time `json:"at"`
	// State that it was about.
	State string `json:"state"`
}

// Supersedes reports whether a status is newer than a decision about a target and a state.
func (st Status) Supersedes(at time.Time, target, state string) bool {
	switch {
	case target != st.Target || !st.Observed:
		return true
	case state == st.Reason:
		return false
	}
	return st.Since != nil && at.Before(*st.Since)
}

// Progress of a step.
type Progress string

// The progress of a step.
const (
	Done    Progress = "Done"
	Current Progress = "Current"
	ToCome  Progress = "ToCome"
)

// Step is a step of a rollout; the last one is the promotion, at 100%.
type Step struct {
	RampPercentage float64           `json:"rampPercentage"`
	Pause          v1alpha1.Duration `json:"pause,omitzero"`
	// GateBefore has to pass before the step, Gate while traffic is at it.
	GateBefore string   `json:"gateBefore,omitempty"`
	Gate       string   `json:"gate,omitempty"`
	Progress   Progress `json:"progress"`
}

// Gate is a test workflow of the target.
type Gate struct {
	TaskQueue  string `json:"taskQueue"`
	WorkflowID string `json:"workflowID"`
	Status     string `json:"status"`
}

// Notice is a bar against a build, or a hold, and how to lift it.
type Notice struct {
	BuildID string    `json:"buildID,omitempty"`
	By      string    `json:"by"`
	Reason  string    `json:"reason"`
	At      time.Time `json:"at"`
	Lift    string    `json:"lift"`
}

// Version is one version with files in Git.
type Version struct {
	BuildID    string         `json:"buildID"`
	Deployment string         `json:"deployment"`
	Status     string         `json:"status"`
	Replicas   *int32         `json:"replicas,omitempty"`
	Guard      v1alpha1.Guard `json:"guard"`
	// Waits says what it waits for, "" for nothing.
	Waits string `json:"waits,omitempty"`
	// WaitsUntil is when that comes by itself.
	WaitsUntil *time.Time `json:"waitsUntil,omitempty"`
	// Evacuation are the stages of freeing it of the workflows that stay on it.
	Evacuation []v1alpha1.EvacuationStatus `json:"evacuation,omitempty"`
}

// NewExplanation explains what Git says of a worker deployment.
func NewExplanation(s rollout.Snapshot) Explanation {
	e := Explanation{Status: NewStatus(s), Cluster: s.Cluster}
	if _, ok := s.Record.Files[layout.Routing]; ok {
		e.RecordPath = path.Join(s.Record.Dir, layout.Routing)
	}
	if s.Spec != nil {
		e.Steps = stepsOf(s.Spec.Spec.Rollout, e.Status)
	}
	routing := s.Record.Routing
	if routing == nil {
		return e
	}
	rec := routing.Spec
	if t := rec.Target; t != nil && t.BuildID == e.Status.Target {
		e.TargetSince, e.Attempt = new(t.Since.UTC()), t.Attempt
	}
	for _, b := range rec.Bars {
		e.Bars = append(e.Bars, Notice{BuildID: b.BuildID, By: b.By, Reason: b.Reason, At: b.At.UTC(),
			Lift: fmt.Sprintf("push another build, or: rampart retry %s --build %s", e.Status.Name, b.BuildID)})
	}
	if h := rec.Hold; h != nil {
		e.Hold = &Notice{BuildID: h.BuildID, By: h.By, Reason: h.Reason, At: h.At.UTC(),
			Lift: liftHold(*h, e.Status.Name)}
	}
	var status v1alpha1.WorkerDeploymentStatus
	if was := s.Record.LastStatus(); was != nil {
		status = *was
		e.Unrecorded = status.UnrecordedVersions
	}
	if t := status.TargetVersion; t != nil {
		for _, g := range t.Gates {
			e.Gates = append(e.Gates, Gate{TaskQueue: g.TaskQueue, WorkflowID: g.WorkflowID, Status: g.Status})
		}
	}
	lives := lifecycle{status: status, sunset: sunsetOf(s), setAside: rec.SetAside, target: e.Status.Target}
	for _, v := range rec.Versions {
		e.Versions = append(e.Versions, lives.of(v))
	}
	return e
}

func liftHold(h v1alpha1.Hold, name string) string {
	switch h.Kind {
	case v1alpha1.HoldReleased:
		return "rampart adopt " + name
	case v1alpha1.HoldDrift, v1alpha1.HoldRejected:
		return "rampart resume " + name + ", or push another build"
	}
	return "rampart resume " + name
}

func sunsetOf(s rollout.Snapshot) v1alpha1.SunsetStrategy {
	switch {
	case s.Spec != nil:
		return s.Spec.Spec.Sunset
	case s.Record.Status != nil:
		return s.Record.Status.Spec.Sunset
	}
	return v1alpha1.SunsetStrategy{ScaledownDelay: v1alpha1.Duration{Duration: v1alpha1.DefaultScaledownDelay},
		DeleteDelay: v1alpha1.Duration{Duration: v1alpha1.DefaultDeleteDelay}}
}

// stepsOf lists the steps and the promotion after them.
func stepsOf(r v1alpha1.RolloutStrategy, st Status) []Step {
	var out []Step
	if r.Strategy == v1alpha1.Progressive {
		for _, s := range r.Steps {
			step := Step{RampPercentage: s.RampPercentage, Pause: s.PauseDuration}
			if s.Gate != nil {
				step.Gate = s.Gate.WorkflowType
			}
			out = append(out, step)
		}
	}
	out = append(out, Step{RampPercentage: 100})
	if r.Gate != nil {
		out[0].GateBefore = r.Gate.WorkflowType
	}
	promoted := st.Current != "" && st.Current == st.Target
	for i := range out {
		switch {
		case promoted || i < st.Step-1:
			out[i].Progress = Done
		case i == st.Step-1:
			out[i].Progress = Current
		default:
			out[i].Progress = ToCome
		}
	}
	return out
}

// lifecycle is what tells how versions end.
type lifecycle struct {
	status   v1alpha1.WorkerDeploymentStatus
	sunset   v1alpha1.SunsetStrategy
	setAside []v1alpha1.SetAside
	target   string
}

// of says where a version is in its life.
func (l lifecycle) of(v v1alpha1.RecordedVersion) Version {
	out := Version{BuildID: v.BuildID, Deployment: v.Deployment, Replicas: v.Replicas, Guard: v.Guard}
	var drained time.Time
	for _, k := range l.status.Versions() {
		if k.BuildID == v.BuildID {
			out.Status, out.Evacuation = k.Status, k.Evacuation
			if k.DrainedSince != nil {
				drained = k.DrainedSince.Time
			}
		}
	}
	if v.Retire != nil {
		out.Waits = retiring(v, out.Status)
		return out
	}
	if v.BuildID == l.target {
		return out
	}
	for _, a := range l.setAside {
		if a.BuildID == v.BuildID {
			out.Waits = "the server refuses to delete it: " + oneLine(a.Reason)
			return out
		}
	}
	out.wait(v, drained, l.sunset)
	return out
}

func retiring(v v1alpha1.RecordedVersion, status string) string {
	what := cmp.Or(map[rollout.VersionStatus]string{
		rollout.StatusCurrent: "scaled down and removed once another version is current and its own workflows " +
			"are closed",
		rollout.StatusRamping: "its ramp is taken back, then it is scaled down and removed once its workflows " +
			"are closed",
		rollout.StatusDraining: "scaled down and removed, without delay, once its open workflows are closed",
		rollout.StatusDrained:  "scaled down, then removed once its pollers are gone: no delay is waited for",
		rollout.StatusGone:     "its files are removed",
	}[rollout.VersionStatus(status)], "scaled down and removed once Temporal says that it is no longer needed")
	return fmt.Sprintf("%s (retired by %s)", what, oneLine(v.Retire.By))
}

// wait says what a version other than the target waits for.
func (v *Version) wait(rec v1alpha1.RecordedVersion, drained time.Time, sunset v1alpha1.SunsetStrategy) {
	retired := rec.Guard == v1alpha1.GuardOff
	switch rollout.VersionStatus(v.Status) {
	case rollout.StatusCurrent:
		v.Waits = "keeps its traffic until the target is promoted"
	case rollout.StatusRamping:
		v.Waits = "its ramp is taken back"
	case rollout.StatusDraining:
		v.Waits = "its open workflows, then it is scaled down"
	case rollout.StatusDrained:
		v.Waits = "scaled down after this time"
		v.WaitsUntil = new(drained.Add(sunset.ScaledownDelay.Duration).UTC())
		if retired {
			v.Waits = "deleted after this time, once its pollers are gone"
			v.WaitsUntil = new(drained.Add(sunset.DeleteDelay.Duration).UTC())
		}
		if drained.IsZero() {
			v.WaitsUntil = nil
		}
	case rollout.StatusInactive, rollout.StatusCreated, rollout.StatusNotRegistered:
		v.Waits = "never had traffic: goes after this time"
		v.WaitsUntil = new(rec.CreatedAt.Add(sunset.DeleteDelay.Duration).UTC())
	case rollout.StatusGone:
		v.Waits = "its files are removed"
	default:
		v.Waits = "kept until Temporal says what it is"
	}
}
