package reconcile

import (
	"context"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Source reads the repository.
type Source interface {
	// Read gives the world at the branch's tip. The result is not to be changed.
	Read(ctx context.Context) (rollout.World, error)
}

// Prefetcher downloads objects between cycles that surveys left on the server.
type Prefetcher interface {
	// Complete downloads objects, in small parts, so that they are here when the server is away.
	Complete(ctx context.Context)
	// Forget drops caches of much that was read.
	Forget()
}

// Surveyor says which worker deployments there are without reading all files.
type Surveyor interface {
	// Survey is Read, but that it may give index entries alone of worker deployments. load completes snapshots of the
	// survey, in their order, or reads the LoadFiles of complete ones; with an error it leaves out those that it could
	// not. It may be called while the Source is asked for another world.
	Survey(ctx context.Context) (survey rollout.Survey,
		load func(context.Context, []rollout.Snapshot) ([]rollout.Snapshot, error), err error)
}

// Observer reads Temporal. Failures are in the Observation.
type Observer interface {
	// Observe reads what one describe of the worker deployment gives, and beside it what is asked for.
	Observe(ctx context.Context, conn v1alpha1.Connection, ask rollout.Ask) rollout.Observation
}

// Slots let few worker deployments be read at a time where Temporal allows few calls, so that each gets all that it
// asks for.
type Slots interface {
	// Slot waits until a worker deployment of a Temporal namespace may be read, at most until the context ends. free
	// gives the slot back.
	Slot(ctx context.Context, conn v1alpha1.Connection, temporalNamespace string) (free func(), err error)
	// CountSlot waits likewise until workflows of one may be counted. Who has it has a Slot.
	CountSlot(ctx context.Context, conn v1alpha1.Connection, temporalNamespace string) (free func(), err error)
}

// Namespaces knows what a Temporal namespace is at the address of a connection.
type Namespaces interface {
	// NamespaceAt gives the ID of the namespace at the connection's own address, or why it is not known.
	NamespaceAt(ctx context.Context, conn v1alpha1.Connection, temporalNamespace string) rollout.NamespaceThere
}

// SecretTaker knows by which connections Secrets may be sent.
type SecretTaker interface {
	// TakesSecrets says why no Secret may be sent by a connection, nil if one may.
	TakesSecrets(conn v1alpha1.Connection) error
}

// Judge is policy. It is asked about several worker deployments at once.
type Judge interface {
	Judge(ctx context.Context, s rollout.Snapshot, p rollout.Proposal) rollout.Verdicts
	// Digest names the policies and their data.
	Digest() string
	// Looks is what the policies may look at.
	Looks() rollout.Looks
}

// CommitHistory knows where specs come from.
type CommitHistory interface {
	// Origins gives the commits that gave the snapshots' specs their content, in the order of the snapshots. Where one
	// is unknown, its Commit is "". With an error it gives what it found until then.
	Origins(ctx context.Context, snapshots []rollout.Snapshot) ([]rollout.GitContext, error)
}

// RecordHistory knows what records had.
type RecordHistory interface {
	// Recorded gives versions that records of an environment had and lost, by worker deployment, as far as they are
	// found in recent history. With an error it gives what it found until then.
	Recorded(ctx context.Context, env v1alpha1.Environment,
		lost []rollout.LostVersions) (map[rollout.Name][]v1alpha1.RecordedVersion, error)
}

// Committer writes to the repository.
type Committer interface {
	// Commit pushes one commit on top of its base and gives its hash, "" if nothing changes. It ends with
	// rollout.ErrMoved when the branch moved.
	Commit(ctx context.Context, c rollout.Commit) (string, error)
	// Confirm reports whether the specs' branch still has these blobs, by path.
	Confirm(ctx context.Context, specs map[string]string) (bool, error)
}

// Router writes to Temporal. Calls end with rollout.ErrStale when the routing is not any more what they were decided
// on, and with rollout.ErrBusy when they may be made again later.
type Router interface {
	Lower(ctx context.Context, on rollout.Subject, call rollout.RoutingCall) error
	Raise(ctx context.Context, on rollout.Subject, call rollout.RoutingCall) error
}

// VersionAPI starts gates and batch jobs, and deletes versions. Calls end with rollout.ErrBusy as those of a Router do.
type VersionAPI interface {
	StartGate(ctx context.Context, on rollout.Subject, gate rollout.GateStart) error
	DeleteVersion(ctx context.Context, on rollout.Subject, buildID string) (rollout.Deletion, error)
	// StartBatch starts a batch job; one that was started before does not cause an error. It ends with
	// rollout.ErrBatchBusy while the namespace takes no other.
	StartBatch(ctx context.Context, on rollout.Subject, start rollout.BatchStart) error
}

// Metrics reads a metrics store.
type Metrics interface {
	// Read gives for each question, in their order, its metrics by name. It takes no longer than a cycle may wait for
	// it. Failures are in the facts.
	Read(ctx context.Context, questions []rollout.MetricsQuestion) []map[string]rollout.Fact
}

// Cluster reads the pods of worker deployments in the environment's Kubernetes cluster.
type Cluster interface {
	// Read says of each question, in their order, what is known now. A namespace that it is asked about for the first
	// time is waited for, at most for patience. Failures are in the answers.
	Read(ctx context.Context, asks []rollout.ClusterAsk, patience time.Duration) []rollout.Cluster
	// Changes counts what changed: while it is the same, so are the answers, but for their time.
	Changes() uint64
}

// Inputs has the inputs of gates that come from ConfigMaps and Secrets.
type Inputs interface {
	// Digest stands for an input's content, which is read only when the gate starts.
	Digest(in rollout.GateInputRef) (string, error)
}

// DecisionLog keeps what was decided.
type DecisionLog interface {
	// Record is given what a cycle, or a part of one, decided, at its end. It neither fails nor keeps the cycle
	// waiting: what goes wrong is its own to report and to mend. What it is given is not to be changed, and may be
	// looked at later.
	Record(ctx context.Context, made []rollout.Made)
}

// Proposer proposes to people what waits for their approval.
type Proposer interface {
	// Reviews gives what is known of an environment's reviews, and who approved what is proposed. It knows that as far
	// as Propose found it out. Both are by worker deployment. It does not ask the forge.
	Reviews(environment string) (map[rollout.Name]rollout.Review, map[rollout.Name]rollout.Approver)
	// Propose brings what is proposed in an environment in line with what was decided, after that was carried out, and
	// looks what became of it. It reports whether the next decision should know of something. What goes wrong is its
	// own to report, and to mend the next time.
	Propose(ctx context.Context, env rollout.EnvironmentWorld, decisions []*rollout.Decision) (news bool)
	// ProposeCommit proposes a commit that its branch does not take. The next Propose of the environment says that
	// there is none any more.
	ProposeCommit(ctx context.Context, commit rollout.Commit) error
}
