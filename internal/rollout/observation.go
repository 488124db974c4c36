package rollout

import (
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// Answer has three values: Yes, No, and the zero value, which means that it is not known.
type Answer string

// The known answers.
const (
	Yes Answer = "Yes"
	No  Answer = "No"
)

// Count is a number that may not be known. The zero value is "not known".
type Count struct {
	Known bool  `json:"known"`
	N     int64 `json:"n,omitempty"`
	// Reason says why it is not known.
	Reason string `json:"reason,omitempty"`
	// Unsupported says that the server cannot count this at all, however often it is asked.
	Unsupported bool `json:"unsupported,omitempty"`
}

// Counted is a known count.
func Counted(n int64) Count { return Count{Known: true, N: n} }

// None reports whether the count is known to be zero. (Not IsZero: encoding/json would leave a known zero out.)
func (c Count) None() bool { return c.Known && c.N == 0 }

// Observation is what Temporal said of one worker deployment in one read.
type Observation struct {
	// At is when we read, on our own clock; zero: Temporal was not asked.
	At time.Time `json:"at"`
	// Problem is set when Temporal could not be read: nothing else is to be relied on then.
	Problem *Problem `json:"problem,omitempty"`
	// CutShort says that not all was asked, since time or the budget of calls was over. Nothing is raised on it.
	CutShort bool `json:"cutShort,omitempty"`
	// NamespaceID is the ID of the Temporal namespace, where it was asked for; "": not known.
	NamespaceID string `json:"namespaceID,omitempty"`
	// ServerVersion is the release of Temporal that answered, such as "1.32.0"; "": not known.
	ServerVersion string `json:"serverVersion,omitempty"`
	// Exists says whether Temporal knows the worker deployment.
	Exists Answer `json:"exists"`
	// Routing as it is.
	Routing RoutingConfig `json:"routing"`
	// ConflictToken that came with Routing.
	ConflictToken   []byte `json:"conflictToken,omitempty"`
	ManagerIdentity string `json:"managerIdentity,omitempty"`
	LastModifier    string `json:"lastModifier,omitempty"`
	// Propagating says whether a routing change is still on its way to the task queues. A server up to 1.32 may say so
	// for ever; see docs/compatibility.md.
	Propagating Answer `json:"propagating,omitempty"`
	// Versions that the server lists, sorted by build ID.
	Versions []VersionObservation `json:"versions,omitempty"`
	// Unlisted counts open workflows that name a version which the server does not list, by build ID, where that was
	// asked.
	Unlisted map[string]Count `json:"unlisted,omitempty"`
	// Gates are the test workflows that were asked for, sorted by workflow ID.
	Gates []GateRun `json:"gates,omitempty"`
	// Stuck counts workflows that no count by version shows.
	Stuck Stuck `json:"stuck,omitzero"`
	// Batches are the batch jobs that were asked for.
	Batches Batches `json:"batches,omitzero"`
	// Missing is where workers are that were asked for since they did not register; nil: not asked, or not known.
	Missing *Missing `json:"missing,omitempty"`
}

// Version finds a listed version by its build ID, nil if the server does not list it.
func (o *Observation) Version(buildID string) *VersionObservation {
	for i := range o.Versions {
		if o.Versions[i].BuildID == buildID {
			return &o.Versions[i]
		}
	}
	return nil
}

// RoutingConfig is Temporal's routing configuration of a worker deployment. Build IDs only: the deployment is known.
type RoutingConfig struct {
	// Current build ID; "" means unversioned workers, or none at all.
	Current string `json:"current"`
	// Ramping build ID. With HasRamp and "" the ramp is to unversioned workers.
	Ramping string `json:"ramping,omitempty"`
	// HasRamp says that there is a ramp, be it at 0%.
	HasRamp bool `json:"hasRamp,omitempty"`
	// Percentage of new workflows that go to the ramping version, 0 to 100, with the server's precision.
	Percentage          float32   `json:"percentage,omitempty"`
	CurrentChangedAt    time.Time `json:"currentChangedAt,omitzero"`
	RampingChangedAt    time.Time `json:"rampingChangedAt,omitzero"`
	PercentageChangedAt time.Time `json:"percentageChangedAt,omitzero"`
	// Revision is 0 where the server does not count.
	Revision int64 `json:"revision,omitempty"`
}

// After is the routing that a step leads to, as the server does it. A version that becomes current stops ramping, and
// another version's ramp stays. Times and revision are those of before.
func (r RoutingConfig) After(step RoutingStep) RoutingConfig {
	ends := false
	switch step.Kind {
	case SetCurrent:
		r.Current = step.BuildID
		ends = r.HasRamp && r.Ramping == step.BuildID
	case SetRamp:
		// To the server, unversioned workers at 0% are no ramp.
		ends = step.BuildID == "" && step.Percentage == 0
		r.HasRamp, r.Ramping, r.Percentage = true, step.BuildID, step.Percentage
	case ClearRamp:
		ends = true
	}
	if ends {
		r.HasRamp, r.Ramping, r.Percentage = false, "", 0
	}
	return r
}

// AfterMove is where new workflows go once an action that routes was carried out, without times and revision.
func (r RoutingConfig) AfterMove(a Action) RoutingConfig {
	switch a.Kind {
	case Ramp:
		return RoutingConfig{Current: r.Current, HasRamp: true, Ramping: a.BuildID, Percentage: float32(a.To)}
	case ResetRamp:
		return RoutingConfig{Current: r.Current}
	case Unroute:
		return RoutingConfig{}
	}
	return RoutingConfig{Current: a.BuildID}
}

// Same reports whether the routing did not move between two reads: all of it is compared, times included.
func (r RoutingConfig) Same(o RoutingConfig) bool {
	return r.SameTraffic(o) && r.Revision == o.Revision && r.CurrentChangedAt.Equal(o.CurrentChangedAt) &&
		r.RampingChangedAt.Equal(o.RampingChangedAt) && r.PercentageChangedAt.Equal(o.PercentageChangedAt)
}

// MovedAt is when traffic was moved last, by the server's clock: the start of the cohorts that are compared. Zero:
// never.
func (r RoutingConfig) MovedAt() time.Time {
	latest := r.CurrentChangedAt
	for _, t := range []time.Time{r.RampingChangedAt, r.PercentageChangedAt} {
		if t.After(latest) {
			latest = t
		}
	}
	return latest
}

// SameTraffic reports whether both send traffic the same way.
func (r RoutingConfig) SameTraffic(o RoutingConfig) bool {
	return r.Current == o.Current && r.HasRamp == o.HasRamp && r.Ramping == o.Ramping && r.Percentage == o.Percentage
}

// Listing is how a namespace's worker deployments are routed, by name, as a list of many shows it. It does not change
// any more.
type Listing struct{ Routing map[string]RoutingConfig }

// Share is the percentage of new workflows that a build gets: 100 for a current version without a ramp.
func (r RoutingConfig) Share(buildID string) float32 {
	switch {
	case r.HasRamp && r.Ramping == buildID:
		return r.Percentage
	case r.Current == buildID && r.HasRamp:
		return 100 - r.Percentage
	case r.Current == buildID:
		return 100
	}
	return 0
}

// Drainage of a version.
type Drainage string

// The states of drainage; "" is unspecified.
const (
	Draining Drainage = "Draining"
	Drained  Drainage = "Drained"
)

// VersionObservation is one version that the server lists.
type VersionObservation struct {
	BuildID           string    `json:"buildID"`
	CreatedAt         time.Time `json:"createdAt,omitzero"`
	Drainage          Drainage  `json:"drainage,omitempty"`
	DrainageChangedAt time.Time `json:"drainageChangedAt,omitzero"`
	DrainageCheckedAt time.Time `json:"drainageCheckedAt,omitzero"`
	FirstActivatedAt  time.Time `json:"firstActivatedAt,omitzero"`
	// BecameCurrentAt is when it last became current.
	BecameCurrentAt time.Time `json:"becameCurrentAt,omitzero"`
	// DeactivatedAt is when it last stopped being current or ramping; zero while it is either.
	DeactivatedAt time.Time `json:"deactivatedAt,omitzero"`
	// Created says that it was created through the API and no worker polled yet.
	Created bool `json:"created,omitempty"`
	// Scaled says that Temporal itself scales the version (it has a compute configuration).
	Scaled bool `json:"scaled,omitempty"`
	// Queues of the version, sorted by name and type; only where they were asked for and QueuesKnown says so.
	Queues      []TaskQueue `json:"queues,omitempty"`
	QueuesKnown Answer      `json:"queuesKnown,omitempty"`
	// Workers are the polls by the pods of the Kubernetes Deployments that were asked for, by name. A worker's identity
	// ends with the name of its host, unless its code says otherwise.
	Workers map[string]Pollers `json:"workers,omitempty"`
	// TurnedBack is the mark in the version's metadata that a rollback left; "" if there is none or it was not asked
	// for.
	TurnedBack string `json:"turnedBack,omitempty"`
	// OpenPinned counts workflows pinned to the version that are not known to be closed.
	OpenPinned Count `json:"openPinned,omitzero"`
	// InUse counts workflows of the version that are not known to be closed, or were started since Ask.InUseSince.
	InUse Count `json:"inUse,omitzero"`
	// Closed counts closed workflows attributed to the version since the last ramp change, by status.
	Closed ClosedCounts `json:"closed,omitzero"`
}

// ActivatedAt is when the version first had traffic, as far as the server says; zero: never. Old servers do not give
// all of these times.
func (v *VersionObservation) ActivatedAt() time.Time {
	for _, t := range []time.Time{v.FirstActivatedAt, v.BecameCurrentAt, v.DeactivatedAt} {
		if !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}

// ClosedCounts are closed workflows by how they ended.
type ClosedCounts struct {
	Known      bool      `json:"known"`
	Reason     string    `json:"reason,omitempty"`
	Since      time.Time `json:"since,omitzero"`
	Completed  int64     `json:"completed,omitempty"`
	Failed     int64     `json:"failed,omitempty"`
	TimedOut   int64     `json:"timedOut,omitempty"`
	Terminated int64     `json:"terminated,omitempty"`
	Canceled   int64     `json:"canceled,omitempty"`
	// ContinuedAsNew runs are closed runs of workflows that go on.
	ContinuedAsNew int64 `json:"continuedAsNew,omitempty"`
}

// Stuck are running workflows on the deployment's task queues whose workflow task fails again and again. They are
// counted under the wrong version, or none (source: what the server does, see docs/temporal.md). Samples say whose they
// are.
type Stuck struct {
	Since time.Time `json:"since,omitzero"`
	// Unattributed: started since the ramp changed, due for at least 30 s, and not yet of any version.
	Unattributed       Count  `json:"unattributed,omitzero"`
	UnattributedSample Sample `json:"unattributedSample,omitzero"`
	// Problems: running with reported problems.
	Problems       Count  `json:"problems,omitzero"`
	ProblemsSample Sample `json:"problemsSample,omitzero"`
}

// Sample says of some workflows on which version their workflow task fails.
type Sample struct {
	// Candidate counts those on the candidate, Others those that are not: on another version, or not stuck at all.
	Candidate int64 `json:"candidate,omitempty"`
	Others    int64 `json:"others,omitempty"`
	// Unknown counts those for which it could not be told.
	Unknown int64 `json:"unknown,omitempty"`
	// Workflow is one of those on the candidate.
	Workflow string `json:"workflow,omitempty"`
}

// QueueType is the kind of tasks on a task queue.
type QueueType string

// The types of task queues.
const (
	QueueWorkflow QueueType = "Workflow"
	QueueActivity QueueType = "Activity"
	QueueNexus    QueueType = "Nexus"
)

// TaskQueue is one task queue of a version.
type TaskQueue struct {
	Name string    `json:"name"`
	Type QueueType `json:"type"`
	// Pollers of this version.
	Pollers Pollers `json:"pollers"`
	// Backlog of the version on the queue. For current and ramping versions the server splits the default queue's by
	// the ramp: weak evidence about a candidate.
	Backlog Backlog `json:"backlog,omitzero"`
	// Unversioned says whether pollers without versioning are on the queue.
	Unversioned Answer `json:"unversioned,omitempty"`
	// OtherDeployments that poll the queue, sorted.
	OtherDeployments []string `json:"otherDeployments,omitempty"`
}

// Backlog is what waits on a task queue, approximately. The zero value is "not known".
type Backlog struct {
	Known bool  `json:"known"`
	Count int64 `json:"count,omitempty"`
	// Age of the oldest task.
	Age time.Duration `json:"age,omitempty"`
	// AddRate and DispatchRate are tasks per second over the last half minute.
	AddRate      float64 `json:"addRate,omitempty"`
	DispatchRate float64 `json:"dispatchRate,omitempty"`
}

// Pollers of one version on one task queue. The zero value is "not known".
type Pollers struct {
	Known  bool   `json:"known"`
	Reason string `json:"reason,omitempty"`
	Count  int    `json:"count,omitempty"`
	// LastAccess is the latest poll of any of them.
	LastAccess time.Time `json:"lastAccess,omitzero"`
}

// ClockTolerance is how far a time of Temporal may be ahead of our clock. Beyond it, how old a poll is, is not known.
const ClockTolerance = 10 * time.Second

// Fresh reports whether the version polled the queue within maxAge before now.
func (p Pollers) Fresh(now time.Time, maxAge time.Duration) bool {
	return p.Known && p.Count > 0 && !p.LastAccess.IsZero() && now.Sub(p.LastAccess) <= maxAge && p.Ahead(now) == 0
}

// Ahead is by how much the latest poll is after now, 0 up to ClockTolerance.
func (p Pollers) Ahead(now time.Time) time.Duration {
	if d := p.LastAccess.Sub(now); p.Known && d > ClockTolerance {
		return d
	}
	return 0
}

// GateState is the state of a test workflow.
type GateState string

// The states of a test workflow. Missing means that it is known not to exist.
const (
	GateMissing   GateState = "Missing"
	GateRunning   GateState = "Running"
	GateCompleted GateState = "Completed"
	GateFailed    GateState = "Failed"
	GateCanceled  GateState = "Canceled"
	GateTerm      GateState = "Terminated"
	GateTimedOut  GateState = "TimedOut"
	GateUnread    GateState = "Unknown"
)

// Closed reports whether the state is one that a test workflow ends in.
func (s GateState) Closed() bool {
	switch s {
	case GateCompleted, GateFailed, GateCanceled, GateTerm, GateTimedOut:
		return true
	}
	return false
}

// GateRun is one test workflow: one for each workflow task queue of the target.
type GateRun struct {
	WorkflowID string    `json:"workflowID"`
	RunID      string    `json:"runID,omitempty"`
	TaskQueue  string    `json:"taskQueue"`
	State      GateState `json:"state"`
	Reason     string    `json:"reason,omitempty"`
	StartedAt  time.Time `json:"startedAt,omitzero"`
	ClosedAt   time.Time `json:"closedAt,omitzero"`
}

// ClosedAsk asks for the closed workflows of a version that started since a time.
type ClosedAsk struct {
	BuildID string    `json:"buildID"`
	Since   time.Time `json:"since"`
}

// StuckAsk asks for stuck workflows on the task queues of the versions that are asked for.
type StuckAsk struct {
	// Candidate is the version that the samples are about.
	Candidate string `json:"candidate"`
	// Since is when traffic was moved last; zero: nothing of it is the candidate's yet, and only reported problems are
	// counted.
	Since time.Time `json:"since,omitzero"`
}

// Ask says what to observe of a worker deployment beside the one describe that gives nearly everything.
type Ask struct {
	Deployment        Name   `json:"deployment"`
	TemporalNamespace string `json:"temporalNamespace"`
	// NamespaceID asks for the ID of the Temporal namespace.
	NamespaceID bool `json:"namespaceID,omitempty"`
	// Second says that this is the second of two reads that are compared.
	Second bool `json:"second,omitempty"`
	// Queues lists build IDs whose task queues and pollers matter.
	Queues []string `json:"queues,omitempty"`
	// Workers lists Kubernetes Deployments whose pods' polls matter, of whichever of these versions.
	Workers []string `json:"workers,omitempty"`
	// OpenPinned lists build IDs whose open pinned workflows matter.
	OpenPinned []string `json:"openPinned,omitempty"`
	// InUse lists build IDs for which it matters whether anything still uses them, since InUseSince.
	InUse      []string  `json:"inUse,omitempty"`
	InUseSince time.Time `json:"inUseSince,omitzero"`
	// Closed lists the closed workflows that matter, each version once.
	Closed []ClosedAsk `json:"closed,omitempty"`
	// Stuck asks for workflows that no count by version shows; nil: not.
	Stuck *StuckAsk `json:"stuck,omitempty"`
	// Gate asks for the test workflows of a gate; nil: none.
	Gate *GateSpec `json:"gate,omitempty"`
	// Batches asks for batch jobs.
	Batches []BatchAsk `json:"batches,omitempty"`
	// Missing asks where the workers of a version are that did not register; nil: not.
	Missing *MissingAsk `json:"missing,omitempty"`
	// Metrics asks a metrics store about the version that is judged; nil: nothing.
	Metrics *MetricsAsk `json:"metrics,omitempty"`
	// CountsRefused says why nothing is counted now, whatever is asked for; "": it is.
	CountsRefused string `json:"-"`
}

// Counts reports whether workflows are counted for an answer.
func (a Ask) Counts() bool {
	return len(a.OpenPinned) > 0 || len(a.InUse) > 0 || len(a.Closed) > 0 || a.Stuck != nil
}

// MissingAsk asks for workers of a build that did not register as the version that they should be.
type MissingAsk struct {
	BuildID string `json:"buildID"`
	// Workers are the Kubernetes Deployments that its pods belong to.
	Workers []string `json:"workers"`
}

// Missing is what Temporal knows of workers that did not register as the version that they should be.
type Missing struct {
	// Deployments are other worker deployments that have a version of the build ID, sorted.
	Deployments []string `json:"deployments,omitempty"`
	// Unversioned are the task queues that its pods poll without versioning, sorted.
	Unversioned []string `json:"unversioned,omitempty"`
}

// MetricsAsk asks for named metrics of a candidate.
type MetricsAsk struct {
	Candidate string            `json:"candidate"`
	Current   string            `json:"current"`
	Metrics   []v1alpha1.Metric `json:"metrics"`
}
