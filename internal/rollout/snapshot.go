package rollout

import (
	"cmp"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// Name identifies a worker deployment: the Kubernetes namespace and the name of its spec.
type Name struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// String is namespace/name, which is also the worker deployment's name in Temporal; the name alone where there is no
// namespace.
func (n Name) String() string {
	if n.Namespace == "" {
		return n.Name
	}
	return n.Namespace + "/" + n.Name
}

// Compare orders names by namespace, then by name.
func (n Name) Compare(o Name) int {
	return cmp.Or(strings.Compare(n.Namespace, o.Namespace), strings.Compare(n.Name, o.Name))
}

// Snapshot is everything that is known of one worker deployment at one moment. It has its spec and configuration at one
// commit, its record at one commit, what Temporal said, and the time. Every decision is a function of a Snapshot.
type Snapshot struct {
	Now        time.Time `json:"now"`
	Deployment Name      `json:"deployment"`
	// LoadFiles are files of the record, by their paths below its folder, whose contents are to be loaded, too.
	LoadFiles []string `json:"-"`
	// Partial says that its files were not read: Spec, LastConnection and what the record says are missing.
	Partial     bool                 `json:"partial,omitempty"`
	Environment v1alpha1.Environment `json:"environment"`
	// EnvironmentProblem says why the environment cannot be used as the branch has it. Then it is as it could be used
	// last, and traffic only goes down.
	EnvironmentProblem *Problem   `json:"environmentProblem,omitempty"`
	Git                GitContext `json:"git"`
	// Spec is nil when the spec's file is gone or cannot be used; Problems say why.
	Spec *v1alpha1.WorkerDeployment `json:"spec,omitempty"`
	// SpecPath is where the spec is, from the repository's root; "" if its file is gone. A worker deployment that is
	// retired has the spec of its status then.
	SpecPath string `json:"specPath,omitempty"`
	// SpecCopied says that other files have equal copies of the spec, none of them at the recorded path: which one
	// people mean is not known.
	SpecCopied bool `json:"specCopied,omitempty"`
	// Problems make the spec unusable.
	Problems []Problem `json:"problems,omitempty"`
	// Connection that the spec names, or, where that cannot be used, the last one that could; nil: not found.
	Connection *v1alpha1.Connection `json:"connection,omitempty"`
	// ConnectionPath is the file that Connection is in, from the repository's root. It is "" if it is not known, such
	// as when there are equal copies and none of them is at the recorded path.
	ConnectionPath string `json:"connectionPath,omitempty"`
	// LastConnection is the one that the record names where that is not the spec's, as it is in Git; nil: not found.
	LastConnection *v1alpha1.Connection `json:"lastConnection,omitempty"`
	// NamespaceThere is what the Temporal namespace at the address of Connection is, where that is another address than
	// the record has; nil: not asked.
	NamespaceThere *NamespaceThere   `json:"namespaceThere,omitempty"`
	Waivers        []v1alpha1.Waiver `json:"waivers,omitempty"`
	// Rivals are other environments that claim the same worker deployment in Temporal.
	Rivals []Rival `json:"rivals,omitempty"`
	// Resources are the WorkerResourceTemplates of the worker deployment, sorted by name.
	Resources []ResourceTemplate `json:"resources,omitempty"`
	// ResourcesProblem names a file that could not be read and may hold more of them: none is gone then.
	ResourcesProblem *Problem `json:"resourcesProblem,omitempty"`
	Record           Record   `json:"record"`
	// References are what the recorded versions name, and where the repository holds it. Nil: not asked.
	References []VersionReferences `json:"references,omitempty"`
	// Lost are versions that Temporal has a use for and the record lost, as it had them last. Its branch was rewritten,
	// or somebody deleted them.
	Lost []v1alpha1.RecordedVersion `json:"lost,omitempty"`
	// TakenNames are names of Kubernetes Deployments in the same namespace that belong to other worker deployments.
	TakenNames []string `json:"takenNames,omitempty"`
	// Rollouts of the environment's other worker deployments that are in progress by their records, sorted by name.
	// Those that start in the same cycle and go first are among them.
	Rollouts    []InProgress `json:"rollouts,omitempty"`
	Observation Observation  `json:"observation"`
	// the first of two reads in one cycle, nil until the second
	FirstRead *Observation    `json:"firstRead,omitempty"`
	Deletions []Deletion      `json:"deletions,omitempty"` // deletions that the server was asked for in this cycle
	Facts     map[string]Fact `json:"facts,omitempty"`
	// Cluster is what the environment's Kubernetes cluster says; nil: the bot reads none.
	Cluster *Cluster `json:"cluster,omitempty"`
	// GateInputs are the inputs of gates that come from a ConfigMap or Secret, by GateInputRef.String.
	GateInputs map[string]GateInput `json:"gateInputs,omitempty"`
	// Failure is what the last attempt to carry out a plan ended with; it explains, and decides nothing.
	Failure *Problem `json:"failure,omitempty"`
	// Review is what became of the record's proposal where people review it; nil: not known.
	Review *Review `json:"review,omitempty"`
	// Approved are the IDs of actions that were approved and that no record shows, as in simulations.
	Approved []string `json:"approved,omitempty"`
	// ByOther says that who approves a raise has to be somebody else than who asked for it.
	ByOther bool `json:"byOther,omitempty"`
	// Approver is who approved what the record proposes, where that was asked for; nil: not known yet.
	Approver *Approver `json:"approver,omitempty"`
	// Uncounted are the phases in which no policy looks at what is counted: it is asked for only where a row looks.
	Uncounted []CanaryPhase `json:"uncounted,omitempty"`
	Limits    Limits        `json:"limits"`
}

// NamespaceThere is what was read of a Temporal namespace at an address.
type NamespaceThere struct {
	// HostPort is the address as the connection has it, TemporalNamespace the name.
	HostPort          string `json:"hostPort"`
	TemporalNamespace string `json:"temporalNamespace"`
	// ID of the namespace; "": not known, and Problem says why.
	ID      string `json:"id,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// About reports whether it is about a namespace at the address of a connection.
func (n *NamespaceThere) About(c *v1alpha1.Connection, temporalNamespace string) bool {
	return n != nil && c != nil && strings.EqualFold(n.HostPort, c.Spec.HostPort) &&
		n.TemporalNamespace == temporalNamespace
}

// Limits are the bot's own bounds.
type Limits struct {
	// MaxVersions of one worker deployment, known to Git or Temporal, beyond which no new one is created.
	MaxVersions int `json:"maxVersions"`
	// FactMaxAge is how old our own read of Temporal may be for a raise.
	FactMaxAge time.Duration `json:"factMaxAge"`
	// PollerMaxAge is how long ago a poller may have polled to count as there. A poll lasts about 60 s.
	PollerMaxAge time.Duration `json:"pollerMaxAge"`
}

// DefaultLimits are the bounds that hold unless the bot's configuration says otherwise.
func DefaultLimits() Limits {
	return Limits{MaxVersions: 75, FactMaxAge: time.Minute, PollerMaxAge: 90 * time.Second}
}

// LostVersions are versions that Temporal has a use for and a record does not have.
type LostVersions struct {
	Deployment Name
	// Dir of the record.
	Dir string
	// TemporalNamespace that they are in: what a record had of another one is something else.
	TemporalNamespace string
	BuildIDs          []string
}

// GitContext is where a spec comes from. It is the commit that gave its file the content that it has, where that was
// asked for and is known.
type GitContext struct {
	Branch string `json:"branch,omitempty"`
	// Commit is empty where it is not known, and the fields up to Paths with it.
	Commit string `json:"commit,omitempty"`
	// Place of the commit among the first parents of the branch: a later commit's is larger. It compares commits that
	// one source gave; what they say of their time anybody can write.
	Place  int    `json:"-"`
	Author string `json:"author,omitempty"` // name <e-mail address>, as the commit claims
	// Committer as the commit claims, like Author.
	Committer string    `json:"committer,omitempty"`
	When      time.Time `json:"when,omitzero"`
	Message   string    `json:"message,omitempty"`
	// Signed says whether a signer that the bot trusts signed the commit, and Signer who; empty where the bot trusts
	// none.
	Signed Answer `json:"signed,omitempty"`
	Signer string `json:"signer,omitempty"`
	// Reverts is the commit that it says it reverts, as git revert writes it.
	Reverts string `json:"reverts,omitempty"`
	// Paths that the commit changed, sorted; the first MaxChangedPaths of them.
	Paths []string `json:"paths,omitempty"`
	// SpecBlob is the Git blob hash of the spec's file; where that is a folder's kustomization.yaml or Chart.yaml, a
	// hash of all Inputs.
	SpecBlob string `json:"specBlob,omitempty"`
	// Inputs are the files that the spec was built from, sorted by path. The commit is the last one that changed any of
	// them, and Signed covers all. None for a spec that is in its file as it is.
	Inputs []FileAt `json:"inputs,omitempty"`
	// Beside are the files, other than the spec's, that hold what it stands on: its connection and the templates of its
	// objects, sorted by path. Signed covers them too.
	Beside []FileAt `json:"beside,omitempty"`
}

// SpecFiles are the files that hold a snapshot's spec, as Git has them. There is one without a hash where that is not
// known, and none without a spec's file.
func (s *Snapshot) SpecFiles() []FileAt {
	if len(s.Git.Inputs) > 0 || s.SpecPath == "" {
		return s.Git.Inputs
	}
	return []FileAt{{s.SpecPath, s.Git.SpecBlob}}
}

// FileAt is a file of the specs' branch, by its path from the repository's root and its Git blob hash.
type FileAt struct {
	Path string `json:"path"`
	Blob string `json:"blob"`
}

// MaxChangedPaths is how many paths of one commit are known at most.
const MaxChangedPaths = 100

// Problem is a failure as data.
type Problem struct {
	// Reason is the condition reason it is reported under, such as InvalidSpec.
	Reason Reason `json:"reason"`
	// Message says what, where, what was expected and what to do.
	Message string `json:"message"`
	// Busy says that nothing is wrong but that there was too much to ask at once: nothing is said or done about it.
	Busy bool `json:"busy,omitempty"`
}

// Record is what the bot wrote for the worker deployment earlier, as it is in Git now.
type Record struct {
	// Dir of the record, from the repository's root.
	Dir string `json:"dir"`
	// Tree is the Git hash of Dir; "" if there is none.
	Tree string `json:"tree,omitempty"`
	// Routing is routing.yaml; nil if there is none or it cannot be read.
	Routing *v1alpha1.Routing `json:"routing,omitempty"`
	// RoutingProblem says why routing.yaml cannot be read.
	RoutingProblem *Problem `json:"routingProblem,omitempty"`
	// LastReadable is the last routing.yaml in history that could be read, where the one at the tip cannot: traffic is
	// lowered by it. Nil: none is known.
	LastReadable *v1alpha1.Routing `json:"lastReadable,omitempty"`
	// Status is status.yaml; nil if there is none or it cannot be read.
	Status *v1alpha1.WorkerDeployment `json:"status,omitempty"`
	// Files below Dir, by slash-separated path.
	Files map[string]File `json:"files,omitempty"`
}

// Versions are those of routing.yaml; none if there is no such file, or it cannot be read.
func (r Record) Versions() []v1alpha1.RecordedVersion {
	if r.Routing == nil {
		return nil
	}
	return r.Routing.Spec.Versions
}

// LastStatus is the status that status.yaml has; nil if it has none, or cannot be read.
func (r Record) LastStatus() *v1alpha1.WorkerDeploymentStatus {
	if r.Status == nil {
		return nil
	}
	return r.Status.Status
}

// FindVersion finds a recorded version by its build ID, nil if there is none.
func FindVersion(versions []v1alpha1.RecordedVersion, buildID string) *v1alpha1.RecordedVersion {
	for i := range versions {
		if versions[i].BuildID == buildID {
			return &versions[i]
		}
	}
	return nil
}

// File is one file of a record.
type File struct {
	// Hash is the Git blob hash, in hex.
	Hash string `json:"hash"`
	// Data is the content; "" for a manifest of a version in a survey's snapshot, until it is known that it is needed.
	Data string `json:"data,omitempty"`
}

// FileChange is one change of a file, from the repository's root.
type FileChange struct {
	Path string `json:"path"`
	// Data is the new content, unless Delete or Blob says otherwise.
	Data string `json:"data,omitempty"`
	// Blob restores a content that Git had earlier, by its blob hash.
	Blob   string `json:"blob,omitempty"`
	Delete bool   `json:"delete,omitempty"`
}

// Deletion is what became of asking the server to delete a version.
type Deletion struct {
	BuildID string `json:"buildID"`
	// Refused is why the server refused; "" means that it accepted, or that the version was gone already.
	Refused string `json:"refused,omitempty"`
}
