package cmdutil

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/rampart-gitops/rampart/gitops/git"
)

// The exit codes. A command that a signal stops exits with 128 and the signal's number: 130 for SIGINT, 143 for
// SIGTERM.
const (
	ExitFine    = 0
	ExitFailure = 1
	// ExitPending: changes are pending, something is not ready, or policy refuses.
	ExitPending = 2
	exitSignal  = 128
)

// ExitError ends a command with an exit code. Without an Err nothing is printed.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

// Pending ends a command with ExitPending: it did what it was asked, and the answer is not "fine". err may be nil.
func Pending(err error) error { return &ExitError{ExitPending, err} }

// stopped is the cause of a context that a signal ended.
type stopped struct{ signal os.Signal }

func (s *stopped) Error() string { return fmt.Sprintf("stopped by %s", s.signal) }

// NotifyContext gives a context that the first SIGINT or SIGTERM ends. A second one ends the process, as it does where
// no handler is installed.
func NotifyContext(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(&stopped{s})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

// ExitCode gives the exit code for the error that a command ended with; ctx is that of NotifyContext.
func ExitCode(ctx context.Context, err error) int {
	var e *ExitError
	switch {
	case err == nil:
		return ExitFine
	case errors.As(err, &e):
		return e.Code
	case signalOf(ctx) != nil:
		if n, ok := signalOf(ctx).signal.(syscall.Signal); ok {
			return exitSignal + int(n)
		}
	}
	return ExitFailure
}

func signalOf(ctx context.Context) *stopped {
	var s *stopped
	if errors.As(context.Cause(ctx), &s) {
		return s
	}
	return nil
}

// Hint says what a person can do about an error, "" where the error says all there is to say.
func Hint(err error) string {
	var (
		access   *git.AccessError
		branch   *git.NoBranchError
		rejected *git.RejectedError
		guarded  *git.ProtectedError
		locked   *git.LockedError
	)
	switch {
	case errors.As(err, &branch):
		return "name another branch with --branch"
	case errors.As(err, &locked):
		return "give this one a directory of its own with --cache-dir"
	case errors.As(err, &guarded):
		return "the branch is protected: let the bot bypass that rule, or set output.branch in rampart.yaml to a " +
			"branch of its own, " +
			"or pullRequests.onProtectedBranch to Propose, which puts each commit into a pull request"
	case errors.As(err, &rejected):
		return "a hook or a limit of the server refused the commit, for the reason that it gives; a branch of the " +
			"bot's own (output.branch in rampart.yaml) may be without it"
	case errors.As(err, &access) && access.Hint == "":
		switch access.Reason {
		case git.ReasonUnauthorized, git.ReasonCredentials, git.ReasonForbidden:
			return "credentials come from --git-token-file, RAMPART_GIT_TOKEN, --github-app-id or --git-ssh-key-file"
		case git.ReasonNotFound:
			return "check --repo; servers also answer so when the credentials may not see the repository"
		case git.ReasonHostKey:
			return "the server's key has to be in the file that --git-known-hosts names"
		case git.ReasonCertificate:
			return "name the authority's certificate with --git-ca-file"
		}
	}
	return ""
}

// PrintError prints an error on standard error, and what to do about it.
func (a *App) PrintError(ctx context.Context, err error) {
	var e *ExitError
	if err == nil || errors.As(err, &e) && e.Err == nil {
		return
	}
	if s := signalOf(ctx); s != nil && errors.Is(err, context.Canceled) {
		err = s
	}
	a.Say("rampart: %s", strings.TrimSpace(err.Error()))
	if h := Hint(err); h != "" {
		a.Say("  %s", h)
	}
}
