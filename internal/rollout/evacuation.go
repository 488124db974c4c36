package rollout

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// ErrBatchBusy is what starting a batch job ends with when the Temporal namespace runs as many as it takes. It is tried
// again in the next cycle.
var ErrBatchBusy = errors.New("another batch job runs in the namespace")

// Evacuation is one stage of freeing a version of the workflows that are pinned to it.
type Evacuation struct {
	Stage v1alpha1.EvacuationStage `json:"stage"`
	// Attempt counts how often the version lost its traffic and was then evacuated, from 1.
	Attempt int `json:"attempt"`
	// Since is when the version lost its traffic; After how long after that the stage is due.
	Since time.Time     `json:"since"`
	After time.Duration `json:"after"`
	// Target is the build ID that workflows are moved to, with Move; Signal what they are sent, with Signal.
	Target string `json:"target,omitempty"`
	Signal string `json:"signal,omitempty"`
	// JobID is the batch job's.
	JobID string `json:"jobID"`
	// Open counts the open workflows that are pinned to the version.
	Open int64 `json:"open,omitempty"`
}

// EvacuationStages are the stages that a spec asks for, in the order in which they are due.
func EvacuationStages(e *v1alpha1.Evacuation) []Evacuation {
	if e == nil {
		return nil
	}
	var out []Evacuation
	if s := e.ContinueAsNewSignal; s != nil {
		out = append(out, Evacuation{Stage: v1alpha1.EvacuateBySignal, After: s.After.Duration, Signal: s.Name})
	}
	if m := e.MoveTo; m != nil {
		out = append(out, Evacuation{Stage: v1alpha1.EvacuateByMove, After: m.After.Duration, Target: m.Target})
	}
	if d := e.CancelAfter.Duration; d > 0 {
		out = append(out, Evacuation{Stage: v1alpha1.EvacuateByCancel, After: d})
	}
	if d := e.TerminateAfter.Duration; d > 0 {
		out = append(out, Evacuation{Stage: v1alpha1.EvacuateByTermination, After: d})
	}
	slices.SortStableFunc(out, func(a, b Evacuation) int { return cmp.Compare(a.After, b.After) })
	return out
}

// WantsApproval reports whether a person has to approve, whatever policy says: what moves or terminates workflows
// cannot be taken back.
func (e Evacuation) WantsApproval() bool {
	return e.Stage == v1alpha1.EvacuateByMove || e.Stage == v1alpha1.EvacuateByTermination
}

// EvacuationJobID derives the ID of the batch job of a stage. A job's ID cannot be used again, so it holds all that the
// job's meaning depends on: a restarted bot finds its own, and another attempt is another job.
func EvacuationJobID(d Name, buildID string, e Evacuation) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s", e.Since.UTC().Format(time.RFC3339Nano), e.Target, e.Signal))
	return fmt.Sprintf("rampart-evacuate:%s:%s:%s:%d:%s", d, buildID, e.Stage, e.Attempt,
		hex.EncodeToString(sum[:])[:12])
}

// EvacuationKind is the kind of action that a stage is.
func EvacuationKind(stage v1alpha1.EvacuationStage) ActionKind {
	switch stage {
	case v1alpha1.EvacuateBySignal:
		return SignalWorkflows
	case v1alpha1.EvacuateByMove:
		return MoveWorkflows
	case v1alpha1.EvacuateByCancel:
		return CancelWorkflows
	}
	return TerminateWorkflows
}

// BatchStart is one batch job to start, about the open workflows that are pinned to a version.
type BatchStart struct {
	BuildID string     `json:"buildID"`
	Job     Evacuation `json:"job"`
	// Identity is the environment's manager identity: the job is started only while the worker deployment has this
	// manager, or none.
	Identity string `json:"identity"`
}

// BatchAsk asks for the batch job of one stage. Where Temporal does not know it, what is needed to start it is read
// too: the version's open pinned workflows, whether another job runs, and for a move whether the server knows how to.
type BatchAsk struct {
	BuildID string                   `json:"buildID"`
	JobID   string                   `json:"jobID"`
	Stage   v1alpha1.EvacuationStage `json:"stage"`
}

// BatchState is the state of a batch job.
type BatchState string

// The states of a batch job. Missing means that it is known not to exist.
const (
	BatchMissing   BatchState = "Missing"
	BatchRunning   BatchState = "Running"
	BatchCompleted BatchState = "Completed"
	BatchFailed    BatchState = "Failed"
	BatchUnread    BatchState = "Unknown"
)

// BatchJob is one batch job that was asked for. Counts are of workflows.
type BatchJob struct {
	JobID     string     `json:"jobID"`
	State     BatchState `json:"state"`
	Reason    string     `json:"reason,omitempty"` // why it could not be read
	Total     int64      `json:"total,omitempty"`
	Done      int64      `json:"done,omitempty"`
	Failed    int64      `json:"failed,omitempty"`
	StartedAt time.Time  `json:"startedAt,omitzero"`
	EndedAt   time.Time  `json:"endedAt,omitzero"`
}

// Batches are the batch jobs that were asked for.
type Batches struct {
	// Jobs sorted by their ID.
	Jobs []BatchJob `json:"jobs,omitempty"`
	// OthersRun says whether a job runs in the namespace that was not asked for; Other is its ID.
	OthersRun Answer `json:"othersRun,omitempty"`
	Other     string `json:"other,omitempty"`
	// CannotMove says why the server moves no workflows, or that it is not known whether it does; "" if nothing stands
	// against it.
	CannotMove string `json:"cannotMove,omitempty"`
}

// Job finds a job by its ID; one that was not read is Unknown.
func (b Batches) Job(id string) BatchJob {
	for _, j := range b.Jobs {
		if j.JobID == id {
			return j
		}
	}
	return BatchJob{JobID: id, State: BatchUnread, Reason: "not asked"}
}
