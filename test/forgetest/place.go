package forgetest

import (
	"net/http"
	"time"

	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/internal/gittest"
)

// Place is a repository on a forge, as all but the adapter use it: a World, or one on a real forge. What a forge does
// in the background may come a little later.
type Place interface {
	// Now is the forge's time, and Later waits until it is another one for what happens next.
	Now() time.Time
	Later()

	// NewUser makes an account, ReadToken a token of one with which nothing can be written, and Remove removes one.
	NewUser(login string, role Role) *User
	ReadToken(u *User) string
	Remove(u *User)
	// SetRules changes what the repository asks for; Allow has it merged in this way only.
	SetRules(change func(*Rules))
	Allow(method forge.Method)
	// Rename gives it another owner and name, and gives them: "owner/name".
	Rename(owner, name string) string

	// Branch makes a branch from main with a commit of its own. Push adds one, with files that no other commit has or
	// those that are named. Both give the commit. Advance has main be a commit, and DeleteBranch is what the person
	// does.
	Branch(name string) (commit string)
	Push(branch string, files map[string]string) (commit string)
	Advance(commit string)
	DeleteBranch(name string)

	// What people do with a pull request.
	ClosePull(number int64, by *User)
	Reopen(number int64)
	MergePull(number int64, by *User, method forge.Method)
	Rewrite(number int64, body string)
	SetDraft(number int64, draft bool)
	AddLabel(number int64, name string)
	// Say is a review: APPROVED, CHANGES_REQUESTED, COMMENTED; or DISMISSED, of the last one.
	Say(number int64, by *User, state string)
	// Check sets a commit status, as a CI would.
	Check(commit, context, state string)
	// OpenFork opens one from a branch of that name in a fork.
	OpenFork(branch string) (number int64)

	// Look gives a pull request's State, Labels, Comments, Reviewers and Teams as they are, Status the last status of a
	// context.
	Look(number int64) Pull
	Status(commit, context string) Status
}

var _ Place = (*World)(nil)

// Role is what an account may do.
type Role string

// The roles.
const (
	Writes   Role = "writes"
	Reads    Role = "reads"    // also what is private
	Stranger Role = "stranger" // sees nothing of a private repository
)

// Front is between an adapter and its forge.
type Front interface {
	// SetBefore has somebody answer in place of the forge; false: they did not.
	SetBefore(before func(http.ResponseWriter, *http.Request) bool)
	// Asked is how many requests there were.
	Asked() int
}

var _ Front = (*Server)(nil)

// Cast is a repository and who is there from the start.
type Cast struct {
	Owner, Name string
	Git         *gittest.Repo
	// The bot and the person may write.
	Bot, Person, Reader *User
}
