package forge

import (
	"context"
	"time"
)

// Forge is one repository on a forge. Every call takes its time limit from its context, and has one of its own.
//
// Errors: *RefusedError, *RateLimitError, *UnavailableError; others where they are named.
type Forge interface {
	// Login is the name of the account that the token belongs to.
	Login(ctx context.Context) (string, error)

	Reader
	Writer
	Statuses
}

// Reader reads pull requests.
type Reader interface {
	// List gives pull requests of branches of the repository itself, the newest first. It takes several questions where
	// they are many: what changes meanwhile may be missing, and is there at the next time. Errors: *TooManyError.
	List(ctx context.Context, f Filter) ([]PullRequest, error)

	// Get gives one pull request, with what takes more than one question. One that does not exist is a *RefusedError
	// with ReasonNotFound.
	Get(ctx context.Context, number int64) (Details, error)

	// Authors gives the accounts that the forge takes for the author and the committer of a commit, in this order. It
	// goes by the e-mail addresses that the commit names; one that belongs to no account, or to several, gives an empty
	// Login.
	Authors(ctx context.Context, commit string) ([]Person, error)
}

// Writer opens and changes pull requests.
type Writer interface {
	// Open opens a pull request. Where one from this head to this base is open: *ExistsError, and that one is returned.
	// A *PartialError says that the pull request stands, and is returned, without some of its labels or reviewers. What
	// no forge takes is a *TextError.
	Open(ctx context.Context, o Opening) (PullRequest, error)

	// Update changes a pull request, in the order of Change's fields. Errors: *PartialError, where reviewers or labels
	// failed and the rest was done; *TextError.
	Update(ctx context.Context, number int64, c Change) error

	// Merge merges a pull request, now or as soon as the forge's rules allow it, or takes such an order back. Errors:
	// *NotReadyError, *MovedError, *UnsupportedError.
	Merge(ctx context.Context, number int64, m Merge) (Merging, error)
}

// Statuses sets and reads commit statuses.
type Statuses interface {
	// SetStatus sets a commit status. One with the same context is replaced.
	SetStatus(ctx context.Context, commit string, s Status) error

	// Statuses gives the last status of each context of a commit, sorted by context. A commit that the forge does
	// not know is a *RefusedError. So is one with more contexts than are read, since a status that was not read
	// would look as if it had never been set.
	Statuses(ctx context.Context, commit string) ([]Status, error)
}

// Checker tells what the token and its account may do, and changes nothing. It serves diagnosis: the bot's work does
// not depend on it.
type Checker interface {
	// Branch tells about a branch; nil: it is not there.
	Branch(ctx context.Context, name string) (*Branch, error)
	// Lacks gives an error for each part of the bot's work that is refused. statuses says that commit statuses are a
	// part of it.
	Lacks(ctx context.Context, statuses bool) []error
	// Hooks lists the webhooks of the repository. Forges tell those who administer it: to others it is a *RefusedError.
	Hooks(ctx context.Context) ([]Hook, error)
}

// Hook is a webhook of a repository.
type Hook struct {
	URL    string
	Active bool
	// Pushes says that it tells of pushes.
	Pushes bool
	// Last says how the last delivery went; empty where there was none, or the forge does not tell.
	Last string
	// Failed says that the last delivery failed.
	Failed bool
}

// Branch is what a forge tells about one of its branches.
type Branch struct {
	Protected bool
	// MayPush says that the token's account may push to it.
	MayPush bool
}

// State is what became of a pull request.
type State string

// The states.
const (
	StateOpen   State = "open"
	StateMerged State = "merged"
	StateClosed State = "closed" // and not merged
)

// Filter says which pull requests to list: those to which all of its fields apply that are not empty.
type Filter struct {
	// Head is the branch that they are from.
	Head string
	// Base is the branch that they go to: one branch can have some to several.
	Base string
	// Open leaves out what is merged or closed. It is much cheaper where a forge cannot look for a branch (Gitea).
	Open bool
	// Since leaves out what did not change since, by the clock of the forge. Take the latest Updated that was seen:
	// what changed in the same second comes again.
	Since time.Time
}

// PullRequest is what a list tells.
type PullRequest struct {
	Number int64
	URL    string // for people
	Title  string // without the mark of a draft, where that is a part of it
	Body   string
	State  State
	Head   string // the branch, also when it is deleted
	Base   string // the branch that it goes to
	Labels []string

	// HeadCommit is its last commit; when it is merged or closed, what it was then. Empty in a list where the forge
	// does not tell: ask Get.
	HeadCommit string
	// MergeCommit is the commit on the base branch that it became: the merge, the squashed one, or the last of those
	// rebased. Empty if it is not merged.
	MergeCommit string

	Updated time.Time
	Closed  time.Time // or merged; zero while open
}

// Details is a pull request with what takes more than one question.
type Details struct {
	PullRequest

	// ClosedBy closed or merged it; empty while it is open, and if the account was deleted.
	ClosedBy Person
	// Approvals that count: the last word of each reviewer, by name. One that was dismissed does not count.
	Approvals []Approval
	// Mergeable says that the forge found no conflict. False also while it is still looking.
	Mergeable bool
}

// Person is an account on the forge.
type Person struct {
	Login string
	// Self says that it is the bot's own.
	Self bool
}

// Approval is a reviewer's consent.
type Approval struct {
	By     Person
	Commit string // that was looked at; empty where the forge does not tell
}

// Opening is a pull request to be. Names that people chose are escaped already.
type Opening struct {
	Title string // one line, up to MaxTitle bytes
	Body  string // Markdown, up to MaxBody bytes
	Head  string // a branch, pushed before
	Base  string
	// Labels that do not exist are created. They are the last thing that is done: where they are, the reviewers were
	// asked.
	Labels []string
	// Reviewers are logins, Teams names of teams of the organization that owns the repository.
	Reviewers, Teams []string
}

// What every forge takes.
const (
	MaxTitle = 250
	MaxBody  = 60_000
	// MaxDescription is what there is room for beside a commit status. More is cut.
	MaxDescription = 140
	// LabelColor is that of labels that are made, in hexadecimal.
	LabelColor = "5b7083"
	// MaxStatusPages is how many pages of the statuses of one commit are read: with 50 a page, 500 contexts.
	MaxStatusPages = 10
)

// Change changes a pull request. What is empty stays as it is.
type Change struct {
	Title string
	Body  string
	// Reviewers and Teams are asked for a review, beside those who were; see Opening.
	Reviewers, Teams []string
	// Label adds labels; others stay.
	Label []string
	// Comment is Markdown.
	Comment string
	// Close closes it, unmerged.
	Close bool
}

// Method is how a pull request gets into its base branch.
type Method string

// The methods. Which are allowed is a setting of the repository.
const (
	MethodMerge  Method = "merge"
	MethodSquash Method = "squash"
	MethodRebase Method = "rebase"
)

// When says when to merge.
type When string

// When to merge.
const (
	// Now, or not at all: *NotReadyError where the forge's rules forbid it yet.
	Now When = "now"
	// WhenReady is the forge's automatic merge: as soon as its rules (checks, approvals) allow it. Where it has none,
	// or none turned on: *UnsupportedError; merge Now from time to time instead. What this account ordered before by
	// another method is ordered anew.
	WhenReady When = "when ready"
	// NotAnymore takes WhenReady back, where this account ordered it: what a person ordered stays. It is not an
	// error if there is nothing to take back.
	NotAnymore When = "not anymore"
)

// Merge is an order to merge.
type Merge struct {
	When When
	// Method may be empty for NotAnymore.
	Method Method
	// Commit is the last commit of the pull request as the bot knows it. If it has another: *MovedError. What is pushed
	// after an automatic merge was ordered is not seen by this; take the order back.
	Commit string
}

// Merging is what became of an order to merge.
type Merging string

// What became of it.
const (
	Merged    Merging = "merged"
	Scheduled Merging = "scheduled" // it may be merged in the next moment
	Cancelled Merging = "cancelled"
)

// StatusState is what a commit status says.
type StatusState string

// The states of a commit status. Where a forge has no error, it is a failure.
const (
	StatusPending StatusState = "pending"
	StatusSuccess StatusState = "success"
	StatusFailure StatusState = "failure" // looked at, and bad
	StatusError   StatusState = "error"   // could not be looked at
)

// Status is a commit status.
type Status struct {
	// Context tells it from others of the same commit, such as "rampart/prod".
	Context     string
	State       StatusState
	Description string // one line; cut at MaxDescription
	URL         string // to read more; may be empty
}
