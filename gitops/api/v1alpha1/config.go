package v1alpha1

// Config is rampart.yaml at the repository's root. What it says is half trusted: it can tighten the bot's own
// configuration and never loosen it.
type Config struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Metadata   ObjectMeta `json:"metadata,omitempty"`
	Spec       ConfigSpec `json:"spec"`
}

// ConfigSpec of a Config.
type ConfigSpec struct {
	// Environments of the repository: at least one.
	// +kubebuilder:validation:MinItems=1
	// +listType=map
	// +listMapKey=name
	Environments []Environment `json:"environments"`
}

// Environment is one set of specs with its own output and rules. Without a rampart.yaml there is one, "default".
type Environment struct {
	// Name of the environment.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Specs are path globs (doublestar) of the spec files, from the repository's root, and of folders with a
	// kustomization.yaml or a Chart.yaml, which are built.
	// +kubebuilder:validation:MinItems=1
	Specs []string `json:"specs"`
	// Helm says how charts among the specs are rendered.
	Helm Helm `json:"helm,omitzero"`
	// Output is where the environment's manifests are written.
	Output Output `json:"output"`
	// Namespace is the Kubernetes namespace of specs that name none; "" makes that an error.
	Namespace string `json:"namespace,omitempty"`
	// Approval of what raises traffic.
	// +optional
	Approval Approval `json:"approval"`
	// PullRequests of what waits for approval.
	PullRequests PullRequests `json:"pullRequests,omitzero"`
	// CommitStatuses says what the commit that asked for something gets a status for at the forge. Environment
	// (default), one for all that it asked for there; WorkerDeployment, one for each; Off, none.
	CommitStatuses CommitStatuses `json:"commitStatuses,omitempty"`
	// Policies are path globs of Rego files.
	Policies []string `json:"policies,omitempty"`
	// Data are path globs of data files that policies read.
	Data []string `json:"data,omitempty"`
	// CD is what applies the output, and how it shows a rollout.
	// +optional
	CD CD `json:"cd"`
	// ManagerIdentity owns the routing in Temporal; by default rampart/<environment>.
	// +optional
	ManagerIdentity string `json:"managerIdentity"`
	// WorkerEnv says under which names the pods get their environment: Current by default.
	// +optional
	WorkerEnv WorkerEnv `json:"workerEnv"`
	// Status says whether status.yaml is applied to the cluster: On by default.
	// +optional
	Status StatusMode `json:"status"`
	// ResourceKinds narrows the kinds that a WorkerResourceTemplate may make to those of the list, each a Kind or
	// Kind.group. Left out: all that the bot's own configuration allows, which no list goes beyond.
	ResourceKinds []string `json:"resourceKinds,omitzero"`
}

// Helm says how charts are rendered.
type Helm struct {
	// Values are files over the values.yaml of each chart, the later over the earlier. They are paths from the chart's
	// folder, or, after a slash, from the repository's root. Each chart has to have all of them.
	Values []string `json:"values,omitempty"`
}

// Output is where an environment's manifests are written.
type Output struct {
	// Path of the folder, from the repository's root.
	// +kubebuilder:validation:MinLength=1
	Path string `json:"path"`
	// Branch is the output's branch; "" is the branch that the specs are on.
	Branch string `json:"branch,omitempty"`
	// Commits says what of a cycle goes into one commit: Cycle, all of it; Deployment, what is about one worker
	// deployment.
	Commits CommitsPer `json:"commits,omitempty"`
}

// CommitsPer says what goes into one commit.
// +kubebuilder:validation:Enum=Cycle;Deployment
type CommitsPer string

// The sizes of commits. Those of one cycle are pushed together in any case.
const (
	CommitPerCycle      CommitsPer = "Cycle"
	CommitPerDeployment CommitsPer = "Deployment"
)

// ApprovalMode says how raises reach the branch.
// +kubebuilder:validation:Enum=Direct;PullRequest
type ApprovalMode string

// The approval modes.
const (
	Direct      ApprovalMode = "Direct"
	PullRequest ApprovalMode = "PullRequest"
)

// ApprovalScope says what one approval covers.
// +kubebuilder:validation:Enum=Step;Rollout
type ApprovalScope string

// The approval scopes.
const (
	ScopeStep    ApprovalScope = "Step"
	ScopeRollout ApprovalScope = "Rollout"
)

// Approval of raises in an environment. Policy can ask for approval in Direct mode too.
type Approval struct {
	// Mode is Direct, what policy allows is done, or PullRequest, each raise of traffic waits for a person.
	// +optional
	Mode ApprovalMode `json:"mode"`
	// Scope of one approval: a step, or the whole rollout.
	// +optional
	Scope ApprovalScope `json:"scope"`
}

// PullRequests says how pull requests of proposals are opened.
type PullRequests struct {
	// Labels that they get; those that do not exist are created.
	Labels []string `json:"labels,omitempty"`
	// Reviewers are asked by their logins.
	Reviewers []string `json:"reviewers,omitempty"`
	// Teams are asked by their names in the organization that owns the repository.
	Teams []string `json:"teams,omitempty"`
	// AutoMerge lets the forge merge them in this way as soon as its rules (checks, approvals) allow it; "": people do.
	AutoMerge MergeMethod `json:"autoMerge,omitempty"`
	// OnProtectedBranch says what becomes of commits that a rule of the output's branch keeps the bot from pushing.
	// With Propose they are put into a pull request of their own. "": the bot says so, and tries again.
	OnProtectedBranch OnProtectedBranch `json:"onProtectedBranch,omitempty"`
}

// CommitStatuses says what a commit gets a status for.
// +kubebuilder:validation:Enum=Environment;WorkerDeployment;Off
type CommitStatuses string

// What a commit gets a status for. Left out, it is the environment.
const (
	StatusPerEnvironment      CommitStatuses = "Environment"
	StatusPerWorkerDeployment CommitStatuses = "WorkerDeployment"
	NoCommitStatuses          CommitStatuses = "Off"
)

// OnProtectedBranch says what becomes of commits that the output's branch does not take.
// +kubebuilder:validation:Enum=Propose
type OnProtectedBranch string

// ProposeCommits puts them into a pull request.
const ProposeCommits OnProtectedBranch = "Propose"

// MergeMethod is how a pull request gets into its base branch.
// +kubebuilder:validation:Enum=Merge;Squash;Rebase
type MergeMethod string

// The ways to merge.
const (
	MergeCommit MergeMethod = "Merge"
	MergeSquash MergeMethod = "Squash"
	MergeRebase MergeMethod = "Rebase"
)

// CD is what applies an environment's output to a cluster, and how it shows a rollout.
type CD struct {
	// Tool says whose hints are rendered beside the guards, which always are; by default Both.
	// +optional
	Tool CDTool `json:"tool"`
	// RampHealth is how the health checks of ArgoCD and Flux judge a worker deployment while its target ramps; by
	// default Progressing. What waits for them goes on during the ramp with Healthy.
	// +optional
	RampHealth RampHealth `json:"rampHealth"`
	// Hydrator names the commit that asked in each commit of the bot, as ArgoCD's source hydrator does. It does so in
	// trailers of its message, which ArgoCD shows beside the commit, and in hydrator.metadata in the output's folder.
	// No commit is made for that alone.
	// +optional
	Hydrator bool `json:"hydrator,omitempty"`
}

// ByArgoCD reports whether hints for ArgoCD are rendered.
func (c CD) ByArgoCD() bool { return c.Tool == ArgoCD || c.Tool == Both }

// CDTool is a continuous delivery tool.
// +kubebuilder:validation:Enum=ArgoCD;Flux;Both
type CDTool string

// The continuous delivery tools.
const (
	ArgoCD CDTool = "ArgoCD"
	Flux   CDTool = "Flux"
	Both   CDTool = "Both"
)

// RampHealth is the health of a worker deployment whose target ramps.
// +kubebuilder:validation:Enum=Progressing;Healthy
type RampHealth string

// The healths of a ramp.
const (
	RampProgressing RampHealth = "Progressing"
	RampHealthy     RampHealth = "Healthy"
)

// WorkerEnv says under which names the pods get their environment.
// +kubebuilder:validation:Enum=Current;WithLegacyNames
type WorkerEnv string

// The environments of pods.
const (
	EnvCurrent         WorkerEnv = "Current"
	EnvWithLegacyNames WorkerEnv = "WithLegacyNames"
)

// StatusMode says whether status.yaml is listed for the cluster.
// +kubebuilder:validation:Enum=On;Off
type StatusMode string

// The status modes.
const (
	StatusOn  StatusMode = "On"
	StatusOff StatusMode = "Off"
)

// Waiver is a policy exception that expires.
type Waiver struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Metadata   ObjectMeta `json:"metadata"`
	Spec       WaiverSpec `json:"spec"`
}

// WaiverSpec of a Waiver.
type WaiverSpec struct {
	// Rule that is waived, such as rollout.freeze.
	Rule string `json:"rule"`
	// Scope narrows the waiver. Left out: it is for every worker deployment.
	Scope WaiverScope `json:"scope,omitempty"`
	// Reason that is shown wherever the waiver has an effect.
	Reason string `json:"reason"`
	// Approver is who answers for the waiver.
	Approver string `json:"approver"`
	// ExpiresAt is when the waiver ends, in RFC 3339.
	ExpiresAt Time `json:"expiresAt"`
}

// WaiverScope narrows a waiver; an empty field matches everything.
type WaiverScope struct {
	// Environment that it is for.
	Environment string `json:"environment,omitempty"`
	// Deployment that it is for, as namespace/name.
	Deployment string `json:"deployment,omitempty"`
	// BuildID that it is for.
	BuildID string `json:"buildID,omitempty"`
}
