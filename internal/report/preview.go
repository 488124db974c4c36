package report

import (
	"regexp"
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Preview is what merging somebody's change would do.
type Preview struct {
	// Base is where the change goes, Head the change, Fork the commit that they have in common.
	Base Commit `json:"base"`
	Head Commit `json:"head"`
	Fork Commit `json:"fork"`
	// At is when it is taken to be merged.
	At time.Time `json:"at"`
	// Outcome is what all of it comes to.
	Outcome PreviewOutcome `json:"outcome"`
	// Deployments that change, sorted by environment and name.
	Deployments []Previewed `json:"deployments"`
	// Unchanged is how many worker deployments stay as they are.
	Unchanged int `json:"unchanged"`
	// Problems are what is wrong with the change; what is wrong with the base already is not among them.
	Problems []v1alpha1.Problem `json:"problems"`
	// Unjudged are parts of the change that judge, such as policies: the change is not judged by them.
	Unjudged []string `json:"unjudged"`
	// Notes say what cannot be known here.
	Notes []string `json:"notes"`
}

// Commit is a revision and what it stands for.
type Commit struct {
	Name   string    `json:"name,omitempty"`
	Commit string    `json:"commit"`
	When   time.Time `json:"when"`
}

// PreviewOutcome is what a preview comes to.
type PreviewOutcome string

// The outcomes of a preview.
const (
	PreviewFine     PreviewOutcome = "Fine"     // no policy objects
	PreviewObjected PreviewOutcome = "Objected" // a policy would hold or turn back what the change asks for
	PreviewBroken   PreviewOutcome = "Broken"   // the change has errors
)

// ChangeKind is what a change does to a worker deployment.
type ChangeKind string

// What changes do to worker deployments.
const (
	ChangeNew      ChangeKind = "New"            // it was not there before
	ChangeVersion  ChangeKind = "NewVersion"     // another build ID
	ChangeEarlier  ChangeKind = "EarlierVersion" // the build ID of a version that is recorded
	ChangeUpdate   ChangeKind = "RollingUpdate"  // the same build ID, other manifests
	ChangeStrategy ChangeKind = "Strategy"       // how versions are rolled out or ended, and nothing else
	ChangeNothing  ChangeKind = "NothingRendered"
	ChangeRetire   ChangeKind = "Retire"
	ChangeGone     ChangeKind = "Gone"   // its spec is no longer there
	ChangeBroken   ChangeKind = "Broken" // its spec cannot be used
)

// Previewed is what a change does to one worker deployment.
type Previewed struct {
	Environment string     `json:"environment"`
	Name        string     `json:"name"`
	SpecPath    string     `json:"specPath,omitempty"`
	Line        int        `json:"line,omitempty"`
	Change      ChangeKind `json:"change"`
	// Through says what of it changed: spec, path, connection, resources, problems, references.
	Through []string `json:"through"`
	// From and To are the build IDs that the spec asks for, before and after.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Recorded is where traffic goes by the record; nil: there is none.
	Recorded *RecordedRouting `json:"recorded,omitempty"`
	// Then says what happens, in our own words.
	Then string `json:"then"`
	// Files are the manifests of the version that the spec asks for, compared with those that it asked for before.
	Files []File `json:"files,omitempty"`
	// Objections are rules that hold it for good, or turn it back. Waits hold it for a time, Approvals until somebody
	// approves it.
	Objections []PreviewFinding `json:"objections,omitempty"`
	Waits      []PreviewFinding `json:"waits,omitempty"`
	Approvals  []PreviewFinding `json:"approvals,omitempty"`
	Warnings   []PreviewFinding `json:"warnings,omitempty"`
	// Unknown are rules that go by what only the bot sees: what they will say is not known.
	Unknown []PreviewFinding `json:"unknown,omitempty"`
	// Timetable of the rollout when all goes well; nil: Untimed says why there is none.
	Timetable *rollout.Timetable `json:"timetable,omitempty"`
	Untimed   string             `json:"untimed,omitempty"`
}

// RecordedRouting is where traffic goes by a record.
type RecordedRouting struct {
	Routing
	// Since is when the record last says that it changed.
	Since    time.Time `json:"since,omitzero"`
	Versions int       `json:"versions"`
}

// NewRecordedRouting is where traffic goes by a record; nil where there is none.
func NewRecordedRouting(r rollout.Record) *RecordedRouting {
	if r.Routing == nil {
		return nil
	}
	rec := r.Routing.Spec
	out := &RecordedRouting{Routing: Routing{Current: rec.Desired.Current}, Versions: len(rec.Versions)}
	if ramp := rec.Desired.Ramping; ramp != nil {
		out.Ramping, out.Percentage = &ramp.BuildID, new(ramp.Percentage)
	}
	if b := rec.Basis; b != nil {
		out.Since = slices.MaxFunc([]time.Time{b.CurrentChangedAt.Time, b.RampingChangedAt.Time,
			b.PercentageChangedAt.Time}, time.Time.Compare)
	}
	return out
}

// PreviewFinding is what one rule says of a change.
type PreviewFinding struct {
	Package string         `json:"package,omitempty"`
	Rule    string         `json:"rule"`
	Effect  rollout.Effect `json:"effect,omitempty"`
	Message string         `json:"message"`
	// Location is where the rule is, file:line; "" where that is not known.
	Location string `json:"location,omitempty"`
	// Action that it is about; "": the spec.
	Action string `json:"action,omitempty"`
	// Line of the spec that it is about.
	Line int `json:"line,omitempty"`
	// From and Until are when it holds, in the simulation; Until is zero where it does not end by itself.
	From   time.Time `json:"from,omitzero"`
	Until  time.Time `json:"until,omitzero"`
	Waived string    `json:"waived,omitempty"`
}

// Conclude fills in what all of a preview comes to.
func (p *Preview) Conclude() {
	p.Outcome = PreviewFine
	if slices.ContainsFunc(p.Deployments, func(d Previewed) bool { return len(d.Objections) > 0 }) {
		p.Outcome = PreviewObjected
	}
	if v1alpha1.HasErrors(p.Problems) {
		p.Outcome = PreviewBroken
	}
}

// NewComparison compares two manifests, which may have other paths; nil: there is no manifest. Of a Kubernetes Secret
// nothing is shown.
func NewComparison(before, after *rollout.TextFile) File {
	was, is := rollout.TextFile{Path: "/dev/null"}, rollout.TextFile{Path: "/dev/null"}
	f := File{Op: UpdateFile}
	if before != nil {
		was = rollout.TextFile{Path: "a/" + before.Path, Text: before.Text}
		f.Path, f.Op = before.Path, DeleteFile
	}
	if after != nil {
		is = rollout.TextFile{Path: "b/" + after.Path, Text: after.Text}
		f.Path, f.Op = after.Path, UpdateFile
		if before == nil {
			f.Op = CreateFile
		}
	}
	if secret.MatchString(was.Text) || secret.MatchString(is.Text) {
		f.Hidden = "what a Secret holds is not shown"
		return f
	}
	f.Diff = unified(was, is)
	return f
}

// secret finds a manifest of a Secret. Manifests are of our own writing: the field stands in a line of its own, or
// within braces.
var secret = regexp.MustCompile(`(?im)(^|[{,\s])"?kind"?\s*:\s*"?'?(Secret|List)\b`)
