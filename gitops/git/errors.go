package git

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/rampart-gitops/rampart/internal/printable"
)

// ErrClosed is returned after Close by what talks to the server.
var ErrClosed = errors.New("mirror is closed")

// ErrNothingStaged is returned by Push for a Staged that holds no commit, because its changes left the
// tree as it was.
var ErrNothingStaged = errors.New("nothing to push: the tree is unchanged")

// Reason says in one word why a repository could not be reached.
type Reason string

// The reasons of an AccessError.
const (
	ReasonAddress      Reason = "bad address"    // the URL cannot be used as it is
	ReasonInsecure     Reason = "insecure"       // credentials would travel in clear text
	ReasonCredentials  Reason = "no credentials" // a credential is missing or cannot be read
	ReasonUnauthorized Reason = "unauthorized"   // the server does not accept the credentials
	ReasonForbidden    Reason = "forbidden"      // the credentials are good, the right is missing
	ReasonNotFound     Reason = "not found"      // no such repository, or not for these credentials
	ReasonHostKey      Reason = "host key"       // the SSH server is not the one in known_hosts
	ReasonCertificate  Reason = "certificate"    // the TLS certificate is not trusted
	ReasonNetwork      Reason = "network"        // no connection, or it broke
	ReasonRateLimited  Reason = "rate limited"   // the server says to ask less often
	ReasonServer       Reason = "server"         // the server answered something unexpected
)

// AccessError says that the repository could not be reached or may not be used.
type AccessError struct {
	Op     string // "fetch", "push", "open"
	URL    string // without credentials
	Reason Reason
	Detail string // what the server or the system said; cleaned, may be empty
	Hint   string // what a person can do about it; may be empty
	Err    error  // the cause; may be nil
}

func (e *AccessError) Error() string {
	s := fmt.Sprintf("%s %s: %s", e.Op, e.URL, e.Reason)
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

func (e *AccessError) Unwrap() error { return e.Err }

// NoBranchError says that the repository has branches, but not the one asked for. A push with a zero
// Parent creates it.
type NoBranchError struct {
	URL      string
	Branch   string
	Branches []string // those that exist, sorted
}

func (e *NoBranchError) Error() string {
	return fmt.Sprintf("%s has no branch %q (it has %s)", e.URL, e.Branch, listSome(e.Branches))
}

// EmptyRepositoryError says that the repository exists and holds no commit at all. A push with a zero
// Parent writes the first one.
type EmptyRepositoryError struct {
	URL    string
	Branch string // the branch that was asked for
}

func (e *EmptyRepositoryError) Error() string {
	return fmt.Sprintf("%s is empty: push a first commit to branch %q", e.URL, e.Branch)
}

// MovedError says that the branch is not at the commit that the caller built on. Nothing was written:
// fetch, and do everything again.
type MovedError struct {
	Branch   string
	Expected Hash // zero: the branch was to be created
	Actual   Hash // zero: the branch does not exist
}

func (e *MovedError) Error() string {
	return fmt.Sprintf("branch %q moved: expected %s, it is at %s", e.Branch, tipName(e.Expected), tipName(e.Actual))
}

// RejectedError says that the server refused the commit although the branch had not moved. The reason is a hook, a
// quota, or a protected branch, which is a *ProtectedError. Nothing was written.
type RejectedError struct {
	URL    string
	Branch string
	Reason string // the server's reason, cleaned
	Output string // what the server printed ("remote: ..."), cleaned; may be empty
}

func (e *RejectedError) Error() string {
	s := fmt.Sprintf("push to branch %q of %s rejected: %s", e.Branch, e.URL, e.Reason)
	if e.Output != "" {
		s += ": " + e.Output
	}
	return s
}

// ProtectedError says that a rule of the server keeps everybody like the bot from pushing to the branch, whatever is
// pushed. Nothing was written. Trying again does not help; a pull request may.
type ProtectedError struct {
	Rejected *RejectedError
}

func (e *ProtectedError) Error() string { return e.Rejected.Error() }

// Unwrap gives the *RejectedError.
func (e *ProtectedError) Unwrap() error { return e.Rejected }

// protectionWords are in what forges say when a rule for a branch is in the way, in lower case. Forges have no code for
// it: GitHub (rules of branches, rulesets), GitLab, Gitea and Forgejo, Bitbucket, Azure DevOps.
var protectionWords = []string{
	"gh006", "protected branch hook declined", "gh013", "push declined due to repository rule violations",
	"push code to protected branches", "push to protected branch", "is protected from",
	"only be modified through pull requests", "tf402455",
}

// protected makes it a *ProtectedError where the server says so.
func protected(r *RejectedError) error {
	said := strings.ToLower(r.Reason + " " + r.Output)
	if slices.ContainsFunc(protectionWords, func(words string) bool { return strings.Contains(said, words) }) {
		return &ProtectedError{r}
	}
	return r
}

// UnknownOutcomeError says that the connection ended after the commit was sent and before the server
// said what became of it. Fetch: the branch is at Commit, or it is not.
type UnknownOutcomeError struct {
	Branch string
	Commit Hash
	Err    error
}

func (e *UnknownOutcomeError) Error() string {
	return fmt.Sprintf("push of %s to branch %q: outcome unknown: %v", e.Commit, e.Branch, e.Err)
}

func (e *UnknownOutcomeError) Unwrap() error { return e.Err }

// TooLargeError says that an object is larger than the caller is ready to read.
type TooLargeError struct {
	Hash  Hash
	Size  int64 // bytes
	Limit int64 // bytes
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("object %s has %d bytes, more than the %d allowed", e.Hash, e.Size, e.Limit)
}

// MissingObjectError says that the mirror does not hold an object.
type MissingObjectError struct {
	Hash Hash
	// kind that was looked for.
	kind plumbing.ObjectType
	// filled is how often the mirror had been emptied when it was looked for.
	filled int
}

func (e *MissingObjectError) Error() string {
	return fmt.Sprintf("object %s is not in the mirror", e.Hash)
}

// UnusableObjectError says that the repository itself holds an object that is not what the caller takes it for. It
// is of another kind than the entry that names it says, or is not a tree or commit that can be decoded. The mirror
// is as it should be.
type UnusableObjectError struct {
	Hash Hash
	Err  error
}

func (e *UnusableObjectError) Error() string {
	return fmt.Sprintf("object %s cannot be used: %v", e.Hash, e.Err)
}

func (e *UnusableObjectError) Unwrap() error { return e.Err }

// CorruptObjectError says that an object, or the packs that it may be in, cannot be read: the mirror is damaged.
type CorruptObjectError struct {
	Hash Hash
	Err  error
}

func (e *CorruptObjectError) Error() string { return fmt.Sprintf("read object %s: %v", e.Hash, e.Err) }

func (e *CorruptObjectError) Unwrap() error { return e.Err }

// LockedError says that another process has the mirror's directory open.
type LockedError struct{ Dir string }

func (e *LockedError) Error() string {
	return fmt.Sprintf("mirror %s is in use by another process (give this one a cache directory of its own)", e.Dir)
}

// listSome joins the first few of sorted names.
func listSome(names []string) string {
	const most = 10
	if len(names) == 0 {
		return "none"
	}
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

func tipName(h Hash) string {
	if h.IsZero() {
		return "no commit"
	}
	return h.String()
}

// cleanText makes what a server said fit for an error message. It is one line, and bounded. Characters that people
// cannot see are escaped: a server could otherwise write escape sequences to a person's terminal.
func cleanText(s string) string {
	const most = 400
	s = printable.Line(strings.ToValidUTF8(s, " "))
	if len(s) <= most {
		return s
	}
	cut := most
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}
