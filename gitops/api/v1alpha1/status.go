package v1alpha1

import "slices"

// WorkerDeploymentStatus is what the bot knows of a worker deployment, in the shape that the in-cluster controller
// gives it. It is written on transitions only and holds no counter and no clock that moves by itself.
type WorkerDeploymentStatus struct {
	// TargetVersion is the version that the spec asks for.
	TargetVersion *VersionStatus `json:"targetVersion,omitempty"`
	// CurrentVersion is the version that new workflows start on.
	CurrentVersion *VersionStatus `json:"currentVersion,omitempty"`
	// DeprecatedVersions are those beside them that still have files.
	DeprecatedVersions []VersionStatus `json:"deprecatedVersions,omitempty"`
	// UnrecordedVersions are build IDs that Temporal knows and Git has no files of, sorted. The bot does not look
	// after them.
	UnrecordedVersions []string `json:"unrecordedVersions,omitempty"`
	// LeftBehind are versions whose workers poll though Git has scaled them down, or removed them: what applies Git did
	// not.
	LeftBehind []LeftBehind `json:"leftBehind,omitempty"`
	// UnusableTemplates are the WorkerResourceTemplates that cannot be used, sorted by name: what was made from them
	// stays as it is.
	UnusableTemplates []TemplateProblem `json:"unusableTemplates,omitempty"`
	// OlderServer says what Temporal's release lacks that this worker deployment asks for, and what to do; "" for
	// nothing.
	OlderServer string `json:"olderServer,omitempty"`
	// Pods is why the target's pods do not run, while its workers are waited for and the bot reads the cluster.
	Pods *PodsStatus `json:"pods,omitempty"`
	// ManagerIdentity that owns the routing in Temporal.
	ManagerIdentity string `json:"managerIdentity,omitempty"`
	// ObservedConnectionRef is the connection that the versions were made with, or are changed to.
	ObservedConnectionRef *ConnectionRef `json:"observedConnectionRef,omitempty"`
	// Conditions Ready, Progressing, Reconciling and Stalled, all with one reason.
	Conditions []Condition `json:"conditions"`
	// Decision explains the state.
	Decision *Decision `json:"decision,omitempty"`
}

// Versions are all that the status tells of, the current one and the target last; a version may be both.
func (s *WorkerDeploymentStatus) Versions() []VersionStatus {
	all := slices.Clone(s.DeprecatedVersions)
	for _, v := range []*VersionStatus{s.CurrentVersion, s.TargetVersion} {
		if v != nil {
			all = append(all, *v)
		}
	}
	return all
}

// PodsStatus is why pods do not run. How many they are changes all the time, and is in the message of the conditions as
// of when this changed last.
type PodsStatus struct {
	// Reasons that were seen last or in the hour before that, sorted, such as ImagePullBackOff; Running where all pods
	// are ready, and do not poll.
	Reasons []string `json:"reasons"`
	// Since is when the reasons changed last.
	Since Time `json:"since"`
}

// LeftBehind is a version whose workers poll though they should have stopped.
type LeftBehind struct {
	// BuildID of the version.
	BuildID string `json:"buildID"`
	// Deployment is the Kubernetes Deployment's name.
	Deployment string `json:"deployment"`
	// ScaledDownAt is when Git scaled the version down.
	ScaledDownAt Time `json:"scaledDownAt,omitzero"`
	// RemovedAt is when Git removed its files.
	RemovedAt Time `json:"removedAt,omitzero"`
}

// TemplateProblem is why a WorkerResourceTemplate cannot be used.
type TemplateProblem struct {
	// Name of the template; "" for a file that could not be read, and may hold one.
	Name string `json:"name,omitempty"`
	// Message says why it cannot be used.
	Message string `json:"message"`
}

// VersionStatus is one version in a status.
type VersionStatus struct {
	// BuildID of the version.
	BuildID string `json:"buildID"`
	// Status is its state: NotRegistered, Created, Inactive, Ramping, Current, Draining, Drained, Gone or Unknown.
	Status string `json:"status"`
	// Deployment that runs it.
	Deployment *ObjectRef `json:"deployment,omitempty"`
	// TaskQueues that its workers poll.
	TaskQueues []NameRef `json:"taskQueues,omitempty"`
	// RampPercent is its share of new workflows while it ramps.
	RampPercent *float64 `json:"rampPercentage,omitempty"`
	// RampingSince is when it began to ramp.
	RampingSince *Time `json:"rampingSince,omitempty"`
	// RampLastAt is when its share changed last.
	RampLastAt *Time `json:"rampLastModifiedAt,omitempty"`
	// DrainedSince is when it became drained.
	DrainedSince *Time `json:"drainedSince,omitempty"`
	// Gates are its test workflows.
	Gates []GateStatus `json:"testWorkflows,omitempty"`
	// Eligible says that it is scaled down.
	Eligible *bool `json:"eligibleForDeletion,omitempty"`
	// Evacuation are the stages of freeing the version of the workflows that stay on it.
	Evacuation []EvacuationStatus `json:"evacuation,omitempty"`
}

// ObjectRef names an object in the worker deployment's namespace.
type ObjectRef struct {
	// APIVersion of the object.
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind of the object.
	Kind string `json:"kind,omitempty"`
	// Namespace of the object.
	Namespace string `json:"namespace,omitempty"`
	// Name of the object.
	Name string `json:"name"`
}

// NameRef is a name.
type NameRef struct {
	// Name of what it refers to.
	Name string `json:"name"`
}

// GateStatus is one test workflow in a status.
type GateStatus struct {
	// WorkflowID of the test workflow.
	WorkflowID string `json:"workflowID"`
	// RunID of the test workflow.
	RunID string `json:"runID,omitempty"`
	// Status of the test workflow.
	Status string `json:"status"`
	// TaskQueue that it runs on.
	TaskQueue string `json:"taskQueue"`
}

// ConditionStatus is True, False or Unknown.
// +kubebuilder:validation:Enum=True;False;Unknown
type ConditionStatus string

// The values of a condition.
const (
	True    ConditionStatus = "True"
	False   ConditionStatus = "False"
	Unknown ConditionStatus = "Unknown"
)

// The types of conditions. Reconciling and Stalled are kstatus's.
const (
	ConditionReady       = "Ready"
	ConditionProgressing = "Progressing"
	ConditionReconciling = "Reconciling"
	ConditionStalled     = "Stalled"
)

// Condition of a status. LastTransitionTime moves only when Status does.
type Condition struct {
	// Type of the condition.
	Type string `json:"type"`
	// Status is True, False or Unknown.
	Status ConditionStatus `json:"status"`
	// Reason in one word, the same in all conditions.
	Reason string `json:"reason"`
	// Message says the same in words.
	Message string `json:"message"`
	// LastTransitionTime is when Status changed last.
	LastTransitionTime Time `json:"lastTransitionTime"`
}

// Decision explains the state: what is proposed, what policy says of it, and when something may happen next.
type Decision struct {
	// Action that is proposed, "" if none.
	Action string `json:"action,omitempty"`
	// From is the target's share of new workflows before, in percent.
	From string `json:"from,omitempty"`
	// To is its share after, in percent, or current.
	To string `json:"to,omitempty"`
	// Verdict of policy on it.
	Verdict string `json:"verdict,omitempty"`
	// Rules that decided, sorted.
	Rules []string `json:"rules,omitempty"`
	// Reasons in words a person can act on.
	Reasons []string `json:"reasons,omitempty"`
	// Meanwhile is what else happens while the spec cannot be used, "" for nothing.
	Meanwhile string `json:"meanwhile,omitempty"`
	// SpecDigest is the digest of the decoded spec that this is about. The annotation rampart.dev/spec-digest has it
	// too.
	SpecDigest string `json:"specDigest"`
	// NextStepAt is when the next step is due by itself.
	NextStepAt *Time `json:"nextStepAt,omitempty"`
	// Since is from when on this is decided, and the conditions give their reason.
	Since *Time `json:"since,omitempty"`
	// PullRequest that asks for the approval.
	PullRequest string `json:"pullRequest,omitempty"`
}
