package v1alpha1

// EvacuationStage is one way to free a version of the workflows that stay on it.
// +kubebuilder:validation:Enum=Signal;Move;Cancel;Terminate
type EvacuationStage string

// The stages, from the mildest to the strongest.
const (
	EvacuateBySignal      EvacuationStage = "Signal"
	EvacuateByMove        EvacuationStage = "Move"
	EvacuateByCancel      EvacuationStage = "Cancel"
	EvacuateByTermination EvacuationStage = "Terminate"
)

// EvacuationState is where a stage stands.
// +kubebuilder:validation:Enum=Proposed;Approved;Declined;Running;Completed;Failed
type EvacuationState string

// The states of a stage. A person sets Approved or Declined in place of Proposed; all others are the bot's.
const (
	EvacuationProposed  EvacuationState = "Proposed"
	EvacuationApproved  EvacuationState = "Approved"
	EvacuationDeclined  EvacuationState = "Declined"
	EvacuationRunning   EvacuationState = "Running"
	EvacuationCompleted EvacuationState = "Completed"
	EvacuationFailed    EvacuationState = "Failed"
)

// RecordedEvacuation is one stage of freeing one version of its workflows. A person may edit its state.
type RecordedEvacuation struct {
	// Stage is the way to free the version.
	Stage EvacuationStage `json:"stage"`
	// Attempt counts how often the version lost its traffic and was then evacuated, from 1.
	Attempt int `json:"attempt"`
	// Since is when the version lost its traffic: the times of the stages count from it.
	Since Time `json:"since"`
	// Target is the build ID that workflows are moved to, with Move.
	Target string `json:"target,omitempty"`
	// Signal is what workflows are sent, with Signal.
	Signal string `json:"signal,omitempty"`
	// JobID of the batch job in Temporal.
	JobID string `json:"jobID"`
	// State of the stage. A person may set Approved or Declined in place of Proposed.
	State EvacuationState `json:"state"`
	// ProposedAt is when approval was asked for.
	ProposedAt Time `json:"proposedAt,omitzero"`
	// ApprovedAt is when the bot saw the approval.
	ApprovedAt Time `json:"approvedAt,omitzero"`
	// PullRequest is where people review it; "" where there is none.
	PullRequest string `json:"pullRequest,omitempty"`
	// StartedAt is when the job began.
	StartedAt Time `json:"startedAt,omitzero"`
	// EndedAt is when it ended.
	EndedAt Time `json:"endedAt,omitzero"`
	// Total is how many workflows the job was about: known once it ended, as the next two.
	Total int64 `json:"total,omitempty"`
	// Done is how many it reached.
	Done int64 `json:"done,omitempty"`
	// Failed is how many it did not reach.
	Failed int64 `json:"failed,omitempty"`
	// Message says why it failed.
	Message string `json:"message,omitempty"`
}

// Ended reports whether nothing more comes of the stage.
func (e RecordedEvacuation) Ended() bool {
	return e.State == EvacuationCompleted || e.State == EvacuationFailed || e.State == EvacuationDeclined
}

// EvacuationStatus is one stage in a status.
type EvacuationStatus struct {
	// Stage is the way to free the version.
	Stage EvacuationStage `json:"stage"`
	// State is that of the record; Held while policy holds the stage, Waiting while something else does.
	State string `json:"state"`
	// Target is the build ID that workflows are moved to.
	Target string `json:"target,omitempty"`
	// JobID of the batch job in Temporal.
	JobID string `json:"jobID,omitempty"`
	// StartedAt is when the job began.
	StartedAt Time `json:"startedAt,omitzero"`
	// EndedAt is when it ended.
	EndedAt Time `json:"endedAt,omitzero"`
	// Total is how many workflows the job was about: known once it ended, as the next two.
	Total int64 `json:"total,omitempty"`
	// Done is how many it reached.
	Done int64 `json:"done,omitempty"`
	// Failed is how many it did not reach.
	Failed int64 `json:"failed,omitempty"`
	// Message says what it waits for, and what a person can do.
	Message string `json:"message,omitempty"`
}

// evacuations checks the stages of a version that a person may have edited.
func (v *validator) evacuations(list *node) {
	for _, n := range list.items() {
		v.require(n, "stage")
		v.require(n, "state")
		v.printable(v.text(n, "jobID"))
		v.buildID(n.get("target"))
		v.printable(n.get("signal"))
		v.printable(n.get("pullRequest"))
		for _, key := range []string{"attempt", "total", "done", "failed"} {
			v.replicas(n.get(key))
		}
	}
}
