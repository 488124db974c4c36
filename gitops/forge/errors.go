package forge

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Reason says in a word why a forge refused.
type Reason string

// The reasons of a RefusedError.
const (
	ReasonUnauthorized Reason = "unauthorized" // the token is wrong, expired or missing
	ReasonForbidden    Reason = "forbidden"    // the token is good, a right is missing
	ReasonNotFound     Reason = "not found"    // it is not there, or not for this token
	ReasonConflict     Reason = "conflict"     // with what is there
	ReasonInvalid      Reason = "invalid"      // what was asked for makes no sense to the forge
	ReasonInsecure     Reason = "insecure"     // the token would travel in clear text; nothing was sent
	ReasonReply        Reason = "reply"        // the forge answered what it should not
)

// RefusedError says that a forge did not do what it was asked for. Asking again does not help until something else
// changes.
type RefusedError struct {
	Op     string // "open a pull request from rampart/prod/payments/checkout"
	Where  string // the repository's address, without credentials
	Reason Reason
	Status int    // of HTTP; zero where there was none
	Said   string // by the forge: one line, bounded, without the token; may be empty
	Need   string // what would help: a scope, a right, a setting; may be empty
}

func (e *RefusedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s at %s: %s", e.Op, e.Where, e.Reason)
	if e.Status != 0 {
		fmt.Fprintf(&b, " (HTTP %d)", e.Status)
	}
	if e.Said != "" {
		b.WriteString(": " + e.Said)
	}
	if e.Need != "" {
		b.WriteString("; " + e.Need)
	}
	return b.String()
}

// Refused reports whether the forge refuses the account, or what was asked for is not there for it.
func (e *RefusedError) Refused() bool {
	switch e.Reason {
	case ReasonUnauthorized, ReasonForbidden, ReasonNotFound:
		return true
	}
	return false
}

// UnavailableError says that a forge could not be reached, did not answer in time, or failed. Whether it did what it
// was asked for is not known. It may be asked again.
type UnavailableError struct {
	Op     string
	Where  string
	Status int    // of HTTP; zero where there was no answer
	Said   string // what went wrong: one line, bounded, without the token
	Err    error  // may be nil
}

func (e *UnavailableError) Error() string {
	status := ""
	if e.Status != 0 {
		status = fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	return fmt.Sprintf("%s at %s: unavailable%s: %s", e.Op, e.Where, status, e.Said)
}

func (e *UnavailableError) Unwrap() error { return e.Err }

// RateLimitError says that the forge wants to be left alone. Until then, its client sends nothing.
type RateLimitError struct {
	Where string
	Until time.Time
}

func (e *RateLimitError) Error() string {
	return fmt.Sprintf("%s limits how often it is asked: not before %s", e.Where, e.Until.UTC().Format(time.RFC3339))
}

// ExistsError says that there is an open pull request from the same head to the same base, which is left as it is.
type ExistsError struct{ PullRequest PullRequest }

func (e *ExistsError) Error() string {
	return fmt.Sprintf("pull request %d from %s to %s is open already", e.PullRequest.Number, e.PullRequest.Head,
		e.PullRequest.Base)
}

// PartialError says that a pull request is there and lacks something that is not needed for it to be reviewed and
// merged.
type PartialError struct {
	Number int64
	// Failed says what, each with its reason. Not empty.
	Failed []error
}

func (e *PartialError) Error() string {
	return fmt.Sprintf("pull request %d stands, but: %v", e.Number, errors.Join(e.Failed...))
}

func (e *PartialError) Unwrap() []error { return e.Failed }

// Later reports whether an error, or a part of one, is a forge that does not answer now: what was asked may work later.
func Later(err error) bool {
	var away *UnavailableError
	var limit *RateLimitError
	return errors.As(err, &away) || errors.As(err, &limit)
}

// NotReadyError says that a pull request may not be merged yet, or not so. Checks or approvals are missing, it is a
// draft, it has conflicts, or its method is not allowed.
type NotReadyError struct {
	Number int64
	Said   string // by the forge: one line, bounded; may be empty
	Err    error
}

func (e *NotReadyError) Error() string {
	s := fmt.Sprintf("pull request %d cannot be merged yet", e.Number)
	if e.Said != "" {
		s += ": " + e.Said
	}
	return s
}

func (e *NotReadyError) Unwrap() error { return e.Err }

// MovedError says that a pull request has another last commit than expected: somebody pushed to its branch.
type MovedError struct {
	Number           int64
	Expected, Actual string // Actual may be empty, where the forge does not tell
}

func (e *MovedError) Error() string {
	at := "at another commit"
	if e.Actual != "" {
		at = "at " + e.Actual
	}
	return fmt.Sprintf("pull request %d moved: expected %s, it is %s", e.Number, e.Expected, at)
}

// UnsupportedError says that a forge cannot do something, or that it is turned off there.
type UnsupportedError struct {
	Forge Kind
	What  string // "automatic merge"
	Need  string // how to turn it on; empty: it cannot
}

func (e *UnsupportedError) Error() string {
	if e.Need == "" {
		return fmt.Sprintf("%s: there is no %s", e.Forge, e.What)
	}
	return fmt.Sprintf("%s: no %s: %s", e.Forge, e.What, e.Need)
}

// TooManyError says that a list is longer than is read.
type TooManyError struct {
	Where string
	Most  int
}

func (e *TooManyError) Error() string {
	return fmt.Sprintf("%s has more than %d pull requests to look through: ask for open ones, or for those "+
		"changed of late", e.Where, e.Most)
}

// TextError says that a title or a body is missing, too long, or has too many lines for some forge. Nothing was sent.
type TextError struct {
	What string // "title"
	Most int    // bytes
	Size int    // bytes; zero: it is missing, or has more than one line
}

func (e *TextError) Error() string {
	if e.Size == 0 {
		return fmt.Sprintf("a %s is one line of at most %d bytes", e.What, e.Most)
	}
	return fmt.Sprintf("the %s has %d bytes, more than the %d that every forge takes", e.What, e.Size, e.Most)
}
