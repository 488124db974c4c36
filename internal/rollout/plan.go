package rollout

import (
	"encoding/json"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// Plan is what is done now for one worker deployment, and the status that explains it. One value serves dry-run,
// preview, simulation and carrying it out.
type Plan struct {
	Deployment  Name                 `json:"deployment"`
	Environment v1alpha1.Environment `json:"environment"`
	Dir         string               `json:"dir"`
	Target      *Target              `json:"target,omitempty"`
	// Row that decided about the target.
	Row string `json:"row"`
	// Actions that are carried out.
	Actions []Action `json:"actions,omitempty"`
	// Held are actions that are not, each with the verdict that says why.
	Held []Held `json:"held,omitempty"`
	// Verdicts of policy, as they were given.
	Verdicts Verdicts `json:"verdicts"`

	// Record is the content of routing.yaml, but for the hashes of files that are rendered with this plan. Nil: there
	// is none and none is written.
	Record *v1alpha1.RoutingSpec `json:"record,omitempty"`
	// Versions to write.
	Versions []VersionWrite `json:"versions,omitempty"`
	// Remove says that the record goes, with its folder: the worker deployment was retired and nothing of it is left.
	Remove bool `json:"remove,omitempty"`
	// Status is the content of status.yaml, nil: nothing is written.
	Status *v1alpha1.WorkerDeploymentStatus `json:"status,omitempty"`
	// Spec and Connection that files are rendered from.
	Spec       *v1alpha1.WorkerDeployment `json:"spec,omitempty"`
	Connection *v1alpha1.Connection       `json:"connection,omitempty"`
	PolicyHash string                     `json:"policyHash,omitempty"`

	// Lower is called before the commit, Raise after the push.
	Lower *RoutingCall `json:"lower,omitempty"`
	Raise *RoutingCall `json:"raise,omitempty"`
	// Gates to start.
	Gates []GateStart `json:"gates,omitempty"`
	// Batches to start, after the push.
	Batches []BatchStart `json:"batches,omitempty"`
	// Deletions of server records, each only after a second read.
	Deletions []string `json:"deletions,omitempty"`
	// SecondRead asks for another observation in this cycle: something is to be removed.
	SecondRead bool `json:"secondRead,omitempty"`
	// Review is what people are asked to approve; nil: nothing.
	Review *ReviewAsk `json:"review,omitempty"`
	// Approving asks who approved what the record proposes; nil: it is not asked.
	Approving *ApproverAsk `json:"approving,omitempty"`
	// Summary is what the commit says of this deployment, one line each, the first the subject's.
	Summary []string `json:"summary,omitempty"`
	// NextDue is when the answer changes by itself.
	NextDue time.Time `json:"nextDue,omitzero"`
	// Settled says that nothing moves: the deployment need not be observed often.
	Settled bool `json:"settled,omitempty"`
}

// Held is an action that is not carried out.
type Held struct {
	Action  Action  `json:"action"`
	Verdict Verdict `json:"verdict"`
}

// Subject is a worker deployment in Temporal, and the manager identity with which it is changed.
type Subject struct {
	Connection        v1alpha1.Connection
	Deployment        Name
	TemporalNamespace string
	Identity          string
}

// RoutingCall is one change of Temporal's routing, bound to what it was decided on.
type RoutingCall struct {
	// Basis is the routing the decision was made on: if it is not that any more, the call is not made.
	Basis RoutingConfig `json:"basis"`
	// Token that came with Basis.
	Token []byte `json:"token,omitempty"`
	// Claim says that the manager identity has to be claimed first.
	Claim Claim `json:"claim"`
	// Steps are made in order; each response's token goes into the next.
	Steps []RoutingStep `json:"steps"`
	// LeavesBehind are the task queues of the current version that the raised version may lack, as a person approved.
	// If it lacks any other one, the call is not made. Empty: the server refuses if any missing one is in use.
	LeavesBehind []v1alpha1.RecordedQueue `json:"leavesBehind,omitempty"`
	// TurnedBack builds get a mark in Temporal's metadata, with the reason.
	TurnedBack map[string]string `json:"turnedBack,omitempty"`
	Identity   string            `json:"identity"`
}

// Claim says whether the manager identity is claimed first.
type Claim string

// The values of Claim. None is invalid.
const (
	ClaimNeeded Claim = "Needed"
	ClaimHeld   Claim = "Held"
)

// RoutingStep is one SetCurrent or SetRamping.
type RoutingStep struct {
	Kind RoutingStepKind `json:"kind"`
	// BuildID to make current or to ramp; ignored when clearing a ramp.
	BuildID string `json:"buildID,omitempty"`
	// Percentage of a ramp.
	Percentage float32 `json:"percentage,omitempty"`
}

// RoutingStepKind is a kind of routing step.
type RoutingStepKind string

// The kinds of routing steps.
const (
	SetCurrent RoutingStepKind = "SetCurrent"
	SetRamp    RoutingStepKind = "SetRamp"
	ClearRamp  RoutingStepKind = "ClearRamp"
)

// GateStart is one test workflow to start.
type GateStart struct {
	Gate      GateSpec `json:"gate"`
	TaskQueue string   `json:"taskQueue"`
	// Content of an input from a ConfigMap or Secret, one JSON value: filled in when the gate starts, and in no plan.
	Content json.RawMessage `json:"-"`
}

// VersionWrite says what happens to a version's files.
type VersionWrite struct {
	BuildID string `json:"buildID"`
	// Op says how.
	Op WriteOp `json:"op"`
	// Replicas and Guard of the manifest after the write.
	Replicas *int32         `json:"replicas,omitempty"`
	Guard    v1alpha1.Guard `json:"guard,omitempty"`
	// Pools of the version after the write.
	Pools []v1alpha1.RecordedPool `json:"pools,omitempty"`
	// Blobs to put back, by path below versions/<build ID>/, with RestoreFiles.
	Blobs map[string]string `json:"blobs,omitempty"`
	// Manifest of a Deployment that runs already, as JSON, with TakeOverVersion.
	Manifest json.RawMessage `json:"manifest,omitempty"`
	// Resources are changes of its objects made from WorkerResourceTemplates, with any Op but RestoreFiles and
	// RemoveVersion.
	Resources []ResourceWrite `json:"resources,omitempty"`
}

// WriteOp is a way to write a version's files.
type WriteOp string

// The ways to write a version's files.
const (
	RenderVersion    WriteOp = "Render"     // from the spec: a new version, or a changed template
	EditVersion      WriteOp = "Edit"       // replicas and guard, nothing else
	ReconnectVersion WriteOp = "Reconnect"  // what a changed connection demands, with replicas and guard
	WriteResources   WriteOp = "Resources"  // objects made from templates; the Deployment is not touched
	RestoreFiles     WriteOp = "RestoreOld" // bytes that Git had earlier
	RemoveVersion    WriteOp = "Remove"
	TakeOverVersion  WriteOp = "TakeOver" // a Deployment that runs already, as it is but for replicas and guard
)
