package report

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Decided is what was decided for one worker deployment, and the files it leads to.
type Decided struct {
	Snapshot rollout.Snapshot
	Proposal rollout.Proposal
	Plan     rollout.Plan
	Files    []rollout.FileChange
	// Refused says why the plan is not carried out although it was decided; "" if it is.
	Refused string
}

// Plan is what the next cycle does.
type Plan struct {
	// Pending says that it does anything at all.
	Pending bool `json:"pending"`
	// Deployments sorted by environment and name.
	Deployments []Deployment `json:"deployments"`
	// Files of environments as a whole, sorted by path.
	Files []File `json:"files,omitempty"`
	// Problems of the repository's files.
	Problems []v1alpha1.Problem `json:"problems,omitempty"`
}

// Deployment is what the next cycle does for one worker deployment.
type Deployment struct {
	Environment string        `json:"environment"`
	Name        string        `json:"name"`
	SpecPath    string        `json:"specPath,omitempty"`
	Pending     bool          `json:"pending"`
	Row         string        `json:"row"`
	State       rollout.State `json:"state"`
	Refused     string        `json:"refused,omitempty"`
	Target      *Target       `json:"target,omitempty"`
	Actions     []Action      `json:"actions"`
	// Spec is policy's verdict on the spec itself.
	Spec    rollout.Verdict `json:"spec"`
	Routing *RoutingChange  `json:"routing,omitempty"`
	// Gates are task queues on which a test workflow is started.
	Gates []string `json:"gates,omitempty"`
	// Batches are IDs of batch jobs that are started on workflows that stay on old versions.
	Batches []string `json:"batches,omitempty"`
	// Deletions are build IDs whose version the server is asked to delete.
	Deletions    []string   `json:"deletions,omitempty"`
	Files        []File     `json:"files,omitempty"`
	NextDue      *time.Time `json:"nextDue,omitempty"`
	PolicyDigest string     `json:"policyDigest,omitempty"`
}

// Target is the version that the spec asks for.
type Target struct {
	BuildID string                `json:"buildID"`
	Status  rollout.VersionStatus `json:"status"`
	Attempt int                   `json:"attempt"`
}

// Outcome is what becomes of a proposed action.
type Outcome string

// The outcomes.
const (
	Now  Outcome = "Now"  // carried out
	Held Outcome = "Held" // policy, or a missing approval, holds it
	// Later: something else goes first, or its evidence is not complete.
	Later Outcome = "Later"
	// Judged: traffic as it is, which policy is asked about in every cycle.
	Judged Outcome = "Judged"
)

// Action is one proposed action, what policy says of it, and what becomes of it.
type Action struct {
	ID       string            `json:"id"`
	Title    string            `json:"title"`
	Outcome  Outcome           `json:"outcome"`
	Effect   rollout.Effect    `json:"effect"`
	Action   rollout.Action    `json:"action"`
	Findings []rollout.Finding `json:"findings,omitempty"`
}

// RoutingChange is how traffic moves.
type RoutingChange struct {
	Before Routing `json:"before"`
	After  Routing `json:"after"`
	// Order says when Temporal is called: BeforeCommit (lowering) or AfterPush (raising).
	Order Order `json:"order"`
}

// Order says when Temporal is called.
type Order string

// The orders.
const (
	BeforeCommit Order = "BeforeCommit"
	AfterPush    Order = "AfterPush"
)

// Routing is where new workflows go.
type Routing struct {
	Current    string   `json:"current"`
	Ramping    *string  `json:"ramping,omitempty"`
	Percentage *float64 `json:"percentage,omitempty"`
}

// FileOp is what happens to a file.
type FileOp string

// What happens to files.
const (
	CreateFile  FileOp = "Create"
	UpdateFile  FileOp = "Update"
	DeleteFile  FileOp = "Delete"
	RestoreFile FileOp = "Restore" // bytes that Git had earlier
)

// File is one changed file.
type File struct {
	Path string `json:"path"`
	Op   FileOp `json:"op"`
	// Diff is unified; empty where a file is brought back from history, or where Hidden says why.
	Diff string `json:"diff,omitempty"`
	// Hidden says why a difference is not shown.
	Hidden string `json:"hidden,omitempty"`
}

// NewPlan reports what was decided. Changes of files that belong to no worker deployment come with what they change.
func NewPlan(decided []Decided, rest []File) Plan {
	p := Plan{Deployments: []Deployment{}, Files: rest}
	for _, d := range decided {
		p.Deployments = append(p.Deployments, newDeployment(d))
	}
	slices.SortFunc(p.Deployments, func(a, b Deployment) int {
		return cmp.Or(strings.Compare(a.Environment, b.Environment), strings.Compare(a.Name, b.Name))
	})
	slices.SortFunc(p.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	p.Pending = len(p.Files) > 0 || slices.ContainsFunc(p.Deployments, func(d Deployment) bool { return d.Pending })
	return p
}

func newDeployment(d Decided) Deployment {
	out := Deployment{
		Environment: d.Plan.Environment.Name, Name: d.Plan.Deployment.String(), SpecPath: d.Snapshot.SpecPath,
		Row:   d.Plan.Row,
		State: StateOf(d.Proposal, d.Plan), Refused: d.Refused, Actions: actionsOf(d), Spec: d.Plan.Verdicts.Spec,
		PolicyDigest: d.Plan.PolicyHash,
	}
	if t := d.Proposal.Target; t != nil {
		out.Target = &Target{BuildID: t.BuildID, Status: t.Status, Attempt: t.Attempt}
	}
	if !d.Plan.NextDue.IsZero() {
		out.NextDue = new(d.Plan.NextDue.UTC())
	}
	if d.Refused != "" {
		return out
	}
	out.Routing, out.Deletions = routingOf(d), d.Plan.Deletions
	for _, g := range d.Plan.Gates {
		out.Gates = append(out.Gates, g.TaskQueue)
	}
	for _, b := range d.Plan.Batches {
		out.Batches = append(out.Batches, b.Job.JobID)
	}
	for _, c := range d.Files {
		was, exists := recorded(d.Snapshot.Record, c.Path)
		out.Files = append(out.Files, NewFile(c, was, exists))
	}
	out.Pending = len(out.Files)+len(out.Gates)+len(out.Batches)+len(out.Deletions) > 0 || out.Routing != nil
	return out
}

// StateOf is what the status will say; where none is written, what the rules say.
func StateOf(proposal rollout.Proposal, plan rollout.Plan) rollout.State {
	if plan.Status != nil {
		if state, told := rollout.StateOf(plan.Status.Conditions); told {
			return state
		}
	}
	return proposal.State
}

// actionsOf lists what was proposed in its order, and what resolving added to it.
func actionsOf(d Decided) []Action {
	outcomes := map[string]Outcome{}
	held := map[string]rollout.Verdict{}
	for _, h := range d.Plan.Held {
		outcomes[h.Action.ID], held[h.Action.ID] = Held, h.Verdict
	}
	for _, a := range d.Plan.Actions {
		outcomes[a.ID] = Now
	}
	out := []Action{}
	seen := map[string]bool{}
	for _, a := range slices.Concat(d.Proposal.Actions, d.Plan.Actions) {
		if seen[a.ID] {
			continue
		}
		seen[a.ID] = true
		verdict, asked := d.Plan.Verdicts.Actions[a.ID]
		if h, ok := held[a.ID]; ok {
			verdict, asked = h, true
		}
		if !asked {
			verdict.Effect = d.Plan.Verdicts.Of(a.ID).Effect
			if outcomes[a.ID] == Now { // made by resolving: a verdict led to it
				verdict.Effect = rollout.Allow
			}
		}
		outcome := outcomes[a.ID]
		switch {
		case outcome == Now && d.Refused != "":
			outcome = Later
		case outcome == "" && a.Kind == rollout.Continue:
			outcome = Judged
		case outcome == "":
			outcome = Later
		}
		out = append(out, Action{ID: a.ID, Title: title(a), Outcome: outcome, Effect: verdict.Effect, Action: a,
			Findings: verdict.Findings})
	}
	return out
}

func routingOf(d Decided) *RoutingChange {
	call, order := d.Plan.Lower, BeforeCommit
	if call == nil {
		call, order = d.Plan.Raise, AfterPush
	}
	if call == nil {
		return nil
	}
	after := call.Basis
	for _, step := range call.Steps {
		after = after.After(step)
	}
	return &RoutingChange{Before: routing(call.Basis), After: routing(after), Order: order}
}

func routing(c rollout.RoutingConfig) Routing {
	r := Routing{Current: c.Current}
	if c.HasRamp {
		r.Ramping, r.Percentage = &c.Ramping, new(rollout.AsWritten(c.Percentage))
	}
	return r
}

// recorded finds the earlier content of a file of a record.
func recorded(r rollout.Record, file string) (was string, exists bool) {
	rel, ok := strings.CutPrefix(file, path.Clean(r.Dir)+"/")
	if !ok {
		return "", false
	}
	f, exists := r.Files[rel]
	return f.Data, exists
}

// NewFile is a change of a file, which had a content if it existed.
func NewFile(c rollout.FileChange, was string, exists bool) File {
	before, after := "a/"+c.Path, "b/"+c.Path
	f := File{Path: c.Path, Op: UpdateFile}
	switch {
	case c.Delete:
		f.Op, after = DeleteFile, "/dev/null"
	case c.Blob != "":
		f.Op = RestoreFile
		return f
	case !exists:
		f.Op, before = CreateFile, "/dev/null"
	}
	f.Diff = unified(rollout.TextFile{Path: before, Text: was}, rollout.TextFile{Path: after, Text: c.Data})
	return f
}

// unified is the difference of two texts; "" if there is none.
func unified(before, after rollout.TextFile) string {
	_, text, _ := strings.Cut(string(diff.Diff(before.Path, []byte(before.Text), after.Path, []byte(after.Text))), "\n")
	return text
}
