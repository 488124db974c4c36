package v1alpha1

import "encoding/json"

// Routing is routing.yaml: the desired routing of one worker deployment and everything the bot has to remember of it.
// The bot writes it; a person may edit spec.desired.
type Routing struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	Metadata   ObjectMeta  `json:"metadata"`
	Spec       RoutingSpec `json:"spec"`
	// Whole is the object as it was read, as JSON, if it has fields that this release does not know: they are written
	// again. Nil: it has none.
	Whole json.RawMessage `json:"-"`
}

// AnnotationRoutingDigest holds the digest of spec as the bot wrote it: a routing.yaml whose digest does not fit was
// edited by a person.
const AnnotationRoutingDigest = "rampart.dev/routing-digest"

// RoutingSpec is the record of a worker deployment.
type RoutingSpec struct {
	// MinReader is the least RecordFormat of a release that may raise traffic by this record. A release below it
	// neglects a field in use, and could raise traffic that must not be raised. 0: every release.
	MinReader int `json:"minReader,omitempty"`
	// WorkerDeployment is the name in Temporal, <namespace>/<name>.
	WorkerDeployment string `json:"workerDeployment"`
	// TemporalNamespace that it is in.
	TemporalNamespace string `json:"temporalNamespace"`
	// Environment that the worker deployment is in. With it traffic can be taken back by the record alone, while
	// rampart.yaml cannot be used. "": not known.
	Environment string `json:"environment,omitempty"`
	// ManagerIdentity of the environment in Temporal, for the same; "": not known.
	ManagerIdentity string `json:"managerIdentity,omitempty"`
	// TemporalNamespaceID is the ID that the server has for it, by which the same namespace is known at another
	// address; "": not known.
	TemporalNamespaceID string `json:"temporalNamespaceID,omitempty"`
	// SpecPath is where the spec was last seen.
	SpecPath string `json:"specPath"`
	// Connection that the spec named when it could be used last: Temporal is asked by it while there is none in Git.
	// Left out: not known.
	Connection *RecordedConnection `json:"connection,omitempty"`
	// Desired routing. A person may edit it.
	Desired DesiredRouting `json:"desired"`
	// Decided is Desired as the bot decided it last: where the two differ, a person edited Desired and it was not
	// answered yet. Left out before the first routing.
	Decided *DesiredRouting `json:"decided,omitempty"`
	// Basis is the whole routing configuration that the decision for Desired was made on; left out before the first
	// routing.
	Basis *RoutingBasis `json:"basis,omitempty"`
	// Target is the version that the spec asks for.
	Target *RoutingTarget `json:"target,omitempty"`
	// Proposal is the raise that waits for a person's approval; left out: none does.
	Proposal *RecordedProposal `json:"proposal,omitempty"`
	// Versions whose files are beside this file, in the order of their creation.
	Versions []RecordedVersion `json:"versions,omitempty"`
	// Promotions in order, the newest last: which build became current when, and how the one before it left.
	Promotions []Promotion `json:"promotions,omitempty"`
	// Bars against builds that were turned back.
	Bars []Bar `json:"bars,omitempty"`
	// Hold set by a person.
	Hold *Hold `json:"hold,omitempty"`
	// SetAside are versions that the server refuses to delete.
	SetAside []SetAside `json:"setAside,omitempty"`
	// Removed are versions whose files were removed, the newest last: one that polls again was left behind by what
	// applies Git.
	Removed []RemovedVersion `json:"removed,omitempty"`
	// Retire asks for the end of the worker deployment; left out: it is not asked for.
	Retire *Retire `json:"retire,omitempty"`
}

// RecordedConnection is the connection of a worker deployment as it was. It names Secrets, and holds none.
type RecordedConnection struct {
	// Kind is ClusterConnection, or "" for a connection in the worker deployment's namespace.
	Kind ConnectionKind `json:"kind,omitempty"`
	// Name of the connection.
	Name string `json:"name"`
	// Spec of the connection.
	Spec ConnectionSpec `json:"spec"`
	// Path of the file that it was in, from the repository's root; "": not known. Of several connections with this name
	// the one there counts. It is compared, and never opened.
	Path string `json:"path,omitempty"`
}

// Ref is how the spec named the connection.
func (c *RecordedConnection) Ref() ConnectionRef { return ConnectionRef{Kind: c.Kind, Name: c.Name} }

// DesiredRouting is what Temporal shall route.
type DesiredRouting struct {
	// Current build ID; "" means unversioned workers, or none.
	Current string `json:"current"`
	// Ramping build; left out: no ramp.
	Ramping *DesiredRamp `json:"ramping,omitempty"`
	// TemplateHash is that of the version that a proposal asks for. It keeps a late merge from being taken for the
	// same step of another template under the same build ID. Only a proposal has it: what the bot decides and what
	// a person writes do not have it.
	TemplateHash string `json:"templateHash,omitempty"`
}

// DesiredRamp is a ramp to a build ID; "" means to unversioned workers.
type DesiredRamp struct {
	// BuildID that ramps; "" means unversioned workers.
	BuildID string `json:"buildID"`
	// Percentage of new workflows that start on it.
	Percentage float64 `json:"percentage"`
}

// RoutingBasis is Temporal's routing configuration as it was read.
type RoutingBasis struct {
	// Current build ID; "" means unversioned workers, or none.
	Current string `json:"current"`
	// Ramping build; left out: no ramp.
	Ramping *DesiredRamp `json:"ramping,omitempty"`
	// CurrentChangedAt is when Current changed last.
	CurrentChangedAt Time `json:"currentChangedAt,omitzero"`
	// RampingChangedAt is when Ramping changed last.
	RampingChangedAt Time `json:"rampingChangedAt,omitzero"`
	// PercentageChangedAt is when the ramp's percentage changed last.
	PercentageChangedAt Time `json:"percentageChangedAt,omitzero"`
	// Revision is Temporal's number of the routing configuration.
	Revision int64 `json:"revision,omitempty"`
}

// RoutingTarget is the version a spec asked for when the file was written.
type RoutingTarget struct {
	// BuildID of the version.
	BuildID string `json:"buildID"`
	// TemplateHash of the spec's pod template.
	TemplateHash string `json:"templateHash"`
	// Attempt counts how often this build became the target, from 1: each begins at its first gate and step.
	Attempt int `json:"attempt"`
	// Since is when it became the target.
	Since Time `json:"since"`
	// StuckBefore is how many workflows had reported problems before it got any traffic; left out: not known.
	StuckBefore *int64 `json:"stuckBefore,omitempty"`
	// Gates are the outcomes of this attempt's test workflows, in the order in which they were seen: none runs again
	// because its run is gone.
	Gates []RecordedGate `json:"gates,omitempty"`
	// LeavesBehind are task queues of the version before that may be in use. Raises of this attempt leave them
	// behind, since a person approved that.
	LeavesBehind []RecordedQueue `json:"leavesBehind,omitempty"`
	// Approved is the approval of this attempt's whole rollout, where one approval covers all of it; left out: there is
	// none.
	Approved *Asked `json:"approved,omitempty"`
	// ApprovedSteps is the timetable that was approved, in short: another wants an approval of its own.
	ApprovedSteps string `json:"approvedSteps,omitempty"`
	// AskedIn are the commits that gave the spec what it has since it asks for this version, the oldest first. They
	// are recorded where somebody other than their authors has to approve.
	AskedIn []AskingCommit `json:"askedIn,omitempty"`
}

// AskingCommit is a commit by which people asked for something.
type AskingCommit struct {
	// Commit is its hash.
	Commit string `json:"commit"`
	// Author as the commit names them: name <e-mail address>.
	Author string `json:"author"`
	// Committer, where that is another one.
	Committer string `json:"committer,omitempty"`
}

// RecordedProposal is a raise that people are asked to approve. Which one it is, the version and its shares say: it
// stays the same one for as long as these are, whatever becomes of the facts.
type RecordedProposal struct {
	// Kind says what is proposed; "": a raise of the version's share.
	Kind ProposalKind `json:"kind,omitempty"`
	// BuildID of the version.
	BuildID string `json:"buildID"`
	// TemplateHash of its pod template.
	TemplateHash string `json:"templateHash"`
	// From is the version's share of new workflows before, in percent.
	From float64 `json:"from"`
	// To is its share after, in percent: 100 for the promotion.
	To float64 `json:"to"`
	// LeavesBehind are task queues of the current version that may be in use and that the raise leaves behind: who
	// approves it approves that.
	LeavesBehind []RecordedQueue `json:"leavesBehind,omitempty"`
	// Since is when it was first proposed.
	Since Time `json:"since"`
	// PullRequest is the address where it is reviewed; "": nowhere, or not yet.
	PullRequest string `json:"pullRequest,omitempty"`
	// Withdrawn says that it does not wait any more, without an approval: a merge of it comes too late.
	Withdrawn bool `json:"withdrawn,omitempty"`
	// Approved is a person's approval by a command; left out: there is none. A merge approves by what it makes of
	// Desired.
	Approved *Asked `json:"approved,omitempty"`
	// Refused is the last approval that did not count, whose it was and why; left out: there was none.
	Refused *Asked `json:"refused,omitempty"`
}

// ProposalKind says what is proposed.
// +kubebuilder:validation:Enum=Update
type ProposalKind string

// ProposeUpdate is the proposal to change the pod template of a version with traffic in place. It is approved once the
// desired routing has its template hash.
const ProposeUpdate ProposalKind = "Update"

// RecordedVersion is one version with files in Git.
type RecordedVersion struct {
	// BuildID of the version.
	BuildID string `json:"buildID"`
	// BuildIDFrom says whether the user chose the build ID or it came from the template.
	BuildIDFrom BuildIDSource `json:"buildIDFrom"`
	// TemplateHash of the pod template that its files were rendered from.
	TemplateHash string `json:"templateHash"`
	// ConnectionHash of the connection that its files were rendered with.
	ConnectionHash string `json:"connectionHash"`
	// Deployment is the Kubernetes Deployment's name.
	Deployment string `json:"deployment"`
	// CreatedAt is when its files were made.
	CreatedAt Time `json:"createdAt"`
	// Replicas in the manifest, if it has a number.
	Replicas *int32 `json:"replicas,omitempty"`
	// Pools are its further Deployments, sorted by name. Their files are among Files.
	Pools []RecordedPool `json:"pools,omitempty"`
	// Guard says whether the manifest is guarded against pruning.
	Guard Guard `json:"guard"`
	// Attempts is how often this build was the target.
	Attempts int `json:"attempts,omitempty"`
	// TurnedBack is the attempt that was turned back and barred last; 0: none. With the bar gone, the build is tried
	// anew.
	TurnedBack int `json:"turnedBack,omitempty"`
	// RoutedAt is when traffic was first desired for it; left out: never.
	RoutedAt Time `json:"routedAt,omitzero"`
	// RetiredAt is when it was scaled down; left out: not.
	RetiredAt Time `json:"retiredAt,omitzero"`
	// Resources are its objects made from WorkerResourceTemplates, sorted by template. Their files are among Files.
	Resources []RecordedResource `json:"resources,omitempty"`
	// Retire asks for the end of this version, without the delays of its sunset; left out: it is not asked for.
	Retire *Asked `json:"retire,omitempty"`
	// Evacuations are the stages of freeing it of the workflows that stay on it, in the order of their beginning.
	Evacuations []RecordedEvacuation `json:"evacuations,omitempty"`
	// Files are the Git blob hashes of its files by their name below versions/<build-id>/, as the bot wrote them.
	Files map[string]string `json:"files"`
}

// RecordedPool is a further Deployment of a version. It is guarded, scaled down and removed with the version's first.
type RecordedPool struct {
	// Name of the pool in the spec.
	Name string `json:"name"`
	// Deployment is the Kubernetes Deployment's name.
	Deployment string `json:"deployment"`
	// Replicas in the manifest, if it has a number.
	Replicas *int32 `json:"replicas,omitempty"`
}

// BuildIDSource says where a build ID comes from.
// +kubebuilder:validation:Enum=Template;Custom
type BuildIDSource string

// The sources of build IDs.
const (
	BuildIDTemplate BuildIDSource = "Template"
	BuildIDCustom   BuildIDSource = "Custom"
)

// Guard against pruning.
// +kubebuilder:validation:Enum=On;Off
type Guard string

// The states of a guard.
const (
	GuardOn  Guard = "On"
	GuardOff Guard = "Off"
)

// Promotion is one entry of the promotion order.
type Promotion struct {
	// BuildID that became current.
	BuildID string `json:"buildID"`
	// At is when it did.
	At Time `json:"at"`
	// LeftAt is when it stopped being current; left out: it has not.
	LeftAt Time `json:"leftAt,omitzero"`
	// LeftBy says how it stopped being current.
	LeftBy LeftBy `json:"leftBy,omitempty"`
}

// LeftBy says how a version stopped being current.
// +kubebuilder:validation:Enum=Promotion;Rollback;Outside
type LeftBy string

// The ways to stop being current.
const (
	LeftByPromotion LeftBy = "Promotion"
	LeftByRollback  LeftBy = "Rollback"
	LeftByOutside   LeftBy = "Outside"
)

// Bar keeps a build that was turned back from being raised again.
type Bar struct {
	// BuildID that was turned back.
	BuildID string `json:"buildID"`
	// TemplateHash of its pod template: another template is not barred.
	TemplateHash string `json:"templateHash"`
	// By is the rule, gate or person that turned it back.
	By string `json:"by"`
	// Reason why.
	Reason string `json:"reason"`
	// At is when.
	At Time `json:"at"`
}

// HoldKind says what ends a hold.
// +kubebuilder:validation:Enum=Manual;Drift;Rejected;Released
type HoldKind string

// The kinds of holds: one by a person ends when a person resumes, one after drift also when the spec asks for another
// build. One after a proposal that was closed ends likewise. A worker deployment that was released is left alone
// altogether, as if somebody else owned it, until a person adopts it.
const (
	HoldManual   HoldKind = "Manual"
	HoldDrift    HoldKind = "Drift"
	HoldRejected HoldKind = "Rejected"
	HoldReleased HoldKind = "Released"
)

// Hold stops every raise until a person resumes.
type Hold struct {
	// Kind says what ends the hold.
	Kind HoldKind `json:"kind"`
	// BuildID is the target at the time.
	BuildID string `json:"buildID,omitempty"`
	// By is who holds it.
	By string `json:"by"`
	// Reason why.
	Reason string `json:"reason"`
	// At is when.
	At Time `json:"at"`
}

// SetAside is a version that the server refuses to delete.
type SetAside struct {
	// BuildID of the version.
	BuildID string `json:"buildID"`
	// Reason that the server gave.
	Reason string `json:"reason"`
	// At is when it refused last.
	At Time `json:"at"`
	// Times counts the refusals: each time it is left alone for longer.
	Times int `json:"times,omitempty"`
}

// RemovedVersion is a version whose files were removed.
type RemovedVersion struct {
	// BuildID of the version.
	BuildID string `json:"buildID"`
	// Deployment is the Kubernetes Deployment's name.
	Deployment string `json:"deployment"`
	// At is when its files were removed.
	At Time `json:"at"`
}

// Asked is what a person asked for: who, why and when.
type Asked struct {
	// By is who asked.
	By string `json:"by"`
	// Reason why.
	Reason string `json:"reason,omitempty"`
	// At is when.
	At Time `json:"at"`
}

// RetireCurrent says what becomes of the current version of a worker deployment that is retired.
// +kubebuilder:validation:Enum=Keep;Unroute;UnrouteAnyway
type RetireCurrent string

// What becomes of the current version. It keeps its traffic until a person sees to that; it loses it once it is proven
// that the version is not needed; it loses it without that proof.
const (
	KeepCurrent   RetireCurrent = "Keep"
	UnrouteProven RetireCurrent = "Unroute"
	UnrouteAnyway RetireCurrent = "UnrouteAnyway"
)

// Retire is the wish that a worker deployment ends.
type Retire struct {
	// Current says what becomes of the current version.
	Current RetireCurrent `json:"current"`
	// By is who asked.
	By string `json:"by"`
	// Reason why.
	Reason string `json:"reason,omitempty"`
	// At is when.
	At Time `json:"at"`
}
