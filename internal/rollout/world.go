package rollout

import (
	"errors"
	"slices"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// ErrMoved is what a commit ends with when its branch is not any more what was read: read again, and decide again.
var ErrMoved = errors.New("the branch moved")

// ErrProtected is what a commit ends with when a rule of its branch keeps the bot from pushing to it, whatever it
// pushes.
var ErrProtected = errors.New("the branch is protected")

// ErrRefused is what reading the repository ends with when it does not accept the bot's credentials, or is not there.
// It may be another's by now.
var ErrRefused = errors.New("the repository refuses the bot's credentials, or is gone: " +
	"check the credentials and the URL")

// ErrNotOurs is what a cycle ends with after the repository refused the bot for too long. The bot does not take it for
// its own any more: nothing is touched.
var ErrNotOurs = errors.New("the repository is not the bot's own any more")

// ErrStale is what a routing call ends with when the routing is not any more what it was decided on: the plan is void.
var ErrStale = errors.New("what the plan was decided on has changed: read it and decide again")

// ErrBusy is what a change in Temporal ends with when nothing is wrong but that it was asked too much at once. It is
// decided again, and asked again, in the next cycle.
var ErrBusy = errors.New("Temporal is too busy") //nolint:staticcheck // a name

// UnwritableError is what a commit ends with when it cannot write at a path. Something in the repository, or another
// file of the commit, is in the way at that path or below it. Or content that is to be there again is nowhere in
// history. There may be several, joined.
type UnwritableError struct {
	Path string
	Err  error
}

// Error says what is in the way.
func (e *UnwritableError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *UnwritableError) Unwrap() error { return e.Err }

// Unwritable are the UnwritableErrors that an error is made of.
func Unwritable(err error) []*UnwritableError {
	switch e := err.(type) { //nolint:errorlint // the chain is gone through here
	case *UnwritableError:
		return []*UnwritableError{e}
	case interface{ Unwrap() []error }:
		var out []*UnwritableError
		for _, err := range e.Unwrap() {
			out = append(out, Unwritable(err)...)
		}
		return out
	case interface{ Unwrap() error }:
		return Unwritable(e.Unwrap())
	}
	return nil
}

// World is what one commit of a repository says: its environments, and what is wrong with its files.
type World struct {
	Git          GitContext         `json:"git"`
	Environments []EnvironmentWorld `json:"environments"`
	Problems     []v1alpha1.Problem `json:"problems,omitempty"`
}

// EnvironmentWorld is one environment at one commit.
type EnvironmentWorld struct {
	Environment v1alpha1.Environment `json:"environment"`
	// Base is the commit of the output's branch that Records were read from, and that a commit has to follow. It is ""
	// if the branch does not exist yet.
	Base string `json:"base,omitempty"`
	// Deployments sorted by name: snapshots without an observation and without the time.
	Deployments []Snapshot `json:"deployments"`
	// Entries are the index entries of a survey, sorted by name; Deployments is empty then. Those that are the same as
	// in another survey may be the very same pointers: they are not to be changed.
	Entries []*IndexEntry `json:"-"`
	// PeopleMerge says that the bot's own configuration demands approval: no raise that is proposed is merged by
	// itself, whatever the environment says.
	PeopleMerge bool `json:"peopleMerge,omitempty"`
	// ByOther says that the bot's own configuration demands that somebody else approves a raise than asked for it.
	ByOther bool `json:"byOther,omitempty"`
	// Waivers are those that all Deployments have.
	Waivers []v1alpha1.Waiver `json:"-"`
	// Policies and Data of the environment, sorted by path.
	Policies []TextFile `json:"policies,omitempty"`
	Data     []TextFile `json:"data,omitempty"`
	// PolicyProblems say what is wrong with Policies and Data as a whole, such as a file that is named and not there.
	// They hold what policies can hold.
	PolicyProblems []v1alpha1.Problem `json:"policyProblems,omitempty"`
	// BuiltFrom are the folders and files that specs were built from, sorted: with a kustomization.yaml or a
	// Chart.yaml, and what these name.
	BuiltFrom []string `json:"builtFrom,omitempty"`
	// Roots are the folders of records below the output's path, sorted: what its kustomization.yaml lists.
	Roots []string `json:"roots,omitempty"`
	// RootFile is the kustomization.yaml of the output as it is.
	RootFile File `json:"rootFile"`
	// Problems of the environment's files; a file that cannot be read says so here, and holds what depends on it.
	Problems []v1alpha1.Problem `json:"problems,omitempty"`
	// Unusable says why the environment cannot be used as the branch has it. Everything above is as it could be used
	// last, and traffic only goes down. Nil: it can be used.
	Unusable *Problem `json:"unusable,omitempty"`
	// Unrecorded says that the records are older than Base, because those at Base cannot be read: nothing is committed
	// on them.
	Unrecorded bool `json:"unrecorded,omitempty"`
}

// IndexEntry is a worker deployment as the index has it: by which files it is there, without what they say. Two that
// are equal are the same.
type IndexEntry struct {
	Deployment Name
	// SpecPath and SpecBlob are where its spec is, and the Git hash of that.
	SpecPath, SpecBlob string
	// Dir and Tree are where its record is, and the Git hash of that.
	Dir, Tree string
	// Connection, LastConnection and ConnectionPath as a Snapshot has them.
	Connection, LastConnection *v1alpha1.Connection
	ConnectionPath             string
	// Rivals are those of a Snapshot, as SayRivals has them.
	Rivals string
	// Released says that a person handed its routing back.
	Released bool
	// Full is all that its files say, where those had to be read; nothing else is set then.
	Full *Snapshot
}

// EntryAt finds a worker deployment among the index entries of a survey.
func EntryAt(entries []*IndexEntry, n Name) (int, bool) {
	return slices.BinarySearchFunc(entries, n, func(k *IndexEntry, n Name) int { return k.Deployment.Compare(n) })
}

// Survey is a World that says which worker deployments there are, and what gives their snapshots.
type Survey struct {
	World World
	// Snapshots gives snapshots of an environment's worker deployments: Partial ones where their files were not read.
	Snapshots func(environment string, entries []*IndexEntry) []Snapshot
}

// TextFile is a file by its path from the repository's root.
type TextFile struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

// Commit is one commit of one environment.
type Commit struct {
	Environment v1alpha1.Environment `json:"environment"`
	// Base is EnvironmentWorld.Base: the commit that has to be the branch's tip still.
	Base    string       `json:"base"`
	Changes []FileChange `json:"changes"`
	Message string       `json:"message"`
	// Parts are the same changes where each is to be a commit of its own; nil: all are one. They are pushed together.
	Parts []CommitPart `json:"parts,omitempty"`
}

// CommitPart is what becomes one of several commits.
type CommitPart struct {
	Changes []FileChange `json:"changes"`
	Message string       `json:"message"`
}
