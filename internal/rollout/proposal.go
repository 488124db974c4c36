package rollout

import (
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// Proposal is what the rollout rules would do next, before policy was asked.
type Proposal struct {
	// Target is the version that the spec asks for; nil when the spec cannot be used.
	Target *Target `json:"target,omitempty"`
	// Row names the row of the rules that decided about the target.
	Row string `json:"row"`
	// Others are the rows that decided about versions that the spec does not ask for, by build ID.
	Others map[string]string `json:"others,omitempty"`
	// State is what there is to say of the target when its actions are carried out or there are none.
	State State `json:"state"`
	// Actions in the order in which they are carried out, at most one of them moving traffic.
	Actions []Action `json:"actions,omitempty"`
	// Canary is what the version that has new traffic is judged by; nil: none is judged.
	Canary *Canary `json:"canary,omitempty"`
	// Due is when what there is to do about the target changes by itself; zero: not by itself.
	Due time.Time `json:"due,omitzero"`
	// NextDue is when the answer changes by itself; zero: only something from outside changes it.
	NextDue time.Time `json:"nextDue,omitzero"`
}

// Rows are all rows of the rules that had a say, sorted.
func (p Proposal) Rows() []string {
	rows := []string{p.Row}
	for _, row := range p.Others {
		rows = append(rows, row)
	}
	for _, a := range p.Actions {
		rows = append(rows, a.Row)
	}
	slices.Sort(rows)
	return slices.Compact(rows)
}

// Target is the version that the spec asks for.
type Target struct {
	BuildID      string                 `json:"buildID"`
	BuildIDFrom  v1alpha1.BuildIDSource `json:"buildIDFrom"`
	TemplateHash string                 `json:"templateHash"`
	// Deployment is the name of its Kubernetes Deployment.
	Deployment string `json:"deployment"`
	// Attempt counts how often this build became the target, from 1.
	Attempt int `json:"attempt"`
	// Since is when it became the target.
	Since  time.Time     `json:"since"`
	Status VersionStatus `json:"status"`
}

// VersionStatus is what a version is to Temporal, and to Git.
type VersionStatus string

// The states of a version. Unknown is never a better state: it keeps everything. Gone is the one state in which files
// may go.
const (
	StatusCurrent       VersionStatus = "Current"
	StatusRamping       VersionStatus = "Ramping"
	StatusDraining      VersionStatus = "Draining"
	StatusDrained       VersionStatus = "Drained"
	StatusInactive      VersionStatus = "Inactive"
	StatusNotRegistered VersionStatus = "NotRegistered"
	StatusCreated       VersionStatus = "Created" // through Temporal's API, and no worker polled yet
	StatusUnknown       VersionStatus = "Unknown"
	StatusGone          VersionStatus = "Gone"
)

// State is a condition reason and what to tell a person.
type State struct {
	Reason  Reason `json:"reason"`
	Message string `json:"message"`
	// Stalled says that waiting will not help: a person has to act.
	Stalled bool `json:"stalled,omitempty"`
	// Meanwhile is what else happens while the spec cannot be used, which is the end of Message too; "" for nothing.
	Meanwhile string `json:"meanwhile,omitempty"`
}

// Beside puts what else happens at the end of a message; "" is nothing.
func Beside(message, meanwhile string) string {
	if meanwhile == "" {
		return message
	}
	return message + ". Meanwhile: " + meanwhile
}

// ActionKind is a kind of action.
type ActionKind string

// The kinds of actions.
const (
	CreateVersion ActionKind = "CreateVersion" // render a new version's files
	// in place: a changed template under a stable custom build ID, or a changed connection
	UpdateVersion ActionKind = "UpdateVersion"
	ScaleVersion  ActionKind = "ScaleVersion"  // the spec's replicas changed
	Restore       ActionKind = "Restore"       // guard and replicas back
	StartGate     ActionKind = "StartGate"     // start the test workflows that are missing
	Ramp          ActionKind = "Ramp"          // set the target's ramp
	Promote       ActionKind = "Promote"       // make the target current
	ResetRamp     ActionKind = "ResetRamp"     // clear a ramp
	Rollback      ActionKind = "Rollback"      // make an earlier version current again
	Continue      ActionKind = "Continue"      // keep the traffic that a version has
	DriftAction   ActionKind = "Drift"         // the world is not what the record says
	ScaleDown     ActionKind = "ScaleDown"     // replicas 0, guard off
	DeleteVersion ActionKind = "DeleteVersion" // delete the server's record of a version
	RemoveFiles   ActionKind = "RemoveFiles"   // remove a version's files
	SetAsideKind  ActionKind = "SetAside"      // the server refuses to delete the version
	Unroute       ActionKind = "Unroute"       // leave a worker deployment that is retired without a current version

	SignalWorkflows    ActionKind = "SignalWorkflows"    // ask the workflows that stay on a version to continue as new
	MoveWorkflows      ActionKind = "MoveWorkflows"      // move them to another version
	CancelWorkflows    ActionKind = "CancelWorkflows"    // cancel them
	TerminateWorkflows ActionKind = "TerminateWorkflows" // terminate them
)

// Lowers reports whether actions of the kind can only take traffic back: policy may comment and cannot stop them.
func (k ActionKind) Lowers() bool { return k == ResetRamp || k == Rollback }

// Removes reports whether the action takes something of a version away.
func (k ActionKind) Removes() bool { return k == ScaleDown || k == DeleteVersion || k == RemoveFiles }

// Action is one thing that could be done next.
type Action struct {
	// ID is unique in a proposal and the same for the same action in another.
	ID   string     `json:"id"`
	Kind ActionKind `json:"kind"`
	// BuildID of the version that the action is about. For ResetRamp: the version that ramps, "" for unversioned
	// workers.
	BuildID string `json:"buildID"`
	// From and To are the shares of the version before and after, in percent; 100 with Promote and Rollback.
	From float64 `json:"from"`
	To   float64 `json:"to"`
	// Step is the step that To belongs to, from 1; 0 for none. Steps is how many there are; the promotion is the one
	// after.
	Step  int `json:"step,omitempty"`
	Steps int `json:"steps,omitempty"`
	// Row of the rules that proposed it.
	Row string `json:"row"`
	// Reason in words a person can act on.
	Reason string `json:"reason"`
	// Cause says why traffic is taken back.
	Cause Cause `json:"cause,omitempty"`
	// Bar asks for a bar against BuildID, named after what turned it back.
	Bar string `json:"bar,omitempty"`
	// Update says what changes in place.
	Update UpdateKind `json:"update,omitempty"`
	// InTraffic says that workflows run on what an UpdateVersion changes.
	InTraffic bool `json:"inTraffic,omitempty"`
	// Replicas to set; nil: leave the field out.
	Replicas *int32 `json:"replicas,omitempty"`
	// Pools of the version as they are afterwards, where the action writes its files.
	Pools []v1alpha1.RecordedPool `json:"pools,omitempty"`
	// Resources are changes of the version's objects made from WorkerResourceTemplates.
	Resources []ResourceWrite `json:"resources,omitempty"`
	// Gate to start, on Queues.
	Gate   *GateSpec `json:"gate,omitempty"`
	Queues []string  `json:"queues,omitempty"`
	Drift  *Drift    `json:"drift,omitempty"`
	// Evacuation to carry out on the open workflows pinned to BuildID.
	Evacuation *Evacuation `json:"evacuation,omitempty"`
	// Approved says that a person asked for it in Git.
	Approved bool `json:"approved,omitempty"`
}

// Lowers reports whether the action can only take traffic back.
func (a Action) Lowers() bool { return a.Kind.Lowers() || a.Kind == Ramp && a.To < a.From }

// Raises reports whether the action gives a version more traffic, or, with Unroute, workers without versions.
func (a Action) Raises() bool {
	return a.Kind == Promote || a.Kind == Ramp && a.To >= a.From || a.Kind == Unroute
}

// IsRaise reports whether the action is judged, and approved, as a raise: it gives a version more traffic, or changes
// in place what has traffic.
func (a Action) IsRaise() bool {
	return a.Raises() || a.Kind == UpdateVersion && a.Update == UpdateTemplate && a.InTraffic
}

// Routes reports whether the action changes Temporal's routing.
func (a Action) Routes() bool { return a.Lowers() || a.Raises() }

// Reconnects reports whether the action lets a version follow its connection, and does nothing else.
func (a Action) Reconnects() bool { return a.Kind == UpdateVersion && a.Update == UpdateConnection }

// Cause says why traffic is taken back.
type Cause string

// The causes of taking traffic back.
const (
	CauseSpec    Cause = "Spec"    // the spec asks for another build
	CauseVerdict Cause = "Verdict" // policy
	CauseGate    Cause = "Gate"
	CausePerson  Cause = "Person"
	CauseBarred  Cause = "Barred" // it was turned back before
)

// UpdateKind says what an UpdateVersion changes.
type UpdateKind string

// The kinds of updates in place.
const (
	UpdateTemplate   UpdateKind = "Template"
	UpdateConnection UpdateKind = "Connection"
)

// Drift is one difference between the record and the world.
type Drift struct {
	Kind DriftKind `json:"kind"`
	// Direction of a drift of the routing.
	Direction DriftDirection `json:"direction,omitempty"`
	// Path of a manifest, below the record's folder.
	Path string `json:"path,omitempty"`
	// Recorded and Actual describe both sides; for a manifest they are blob hashes, "" for a missing one.
	Recorded string `json:"recorded"`
	Actual   string `json:"actual"`
}

// DriftKind is what drifted.
type DriftKind string

// The kinds of drift.
const (
	DriftRouting  DriftKind = "Routing"
	DriftManifest DriftKind = "Manifest"
)

// DriftDirection says whether drift lowered or raised traffic.
type DriftDirection string

// The directions of drift. Sideways counts as Higher.
const (
	DriftLower  DriftDirection = "Lower"
	DriftHigher DriftDirection = "Higher"
)
