package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/rampart-gitops/rampart/gitops/git"
)

// The exit codes. A command that a signal stops exits with 128 and the signal's number: 130 for SIGINT, 143 for
// SIGTERM.
const (
	exitFine  = 0
	exitError = 1
	// exitPending: changes are pending, something is not ready, or policy refuses.
	exitPending = 2
	exitSignal  = 128
)

// exit ends a command with a code. Without an error nothing more is said.
type exit struct {
	code int
	err  error
}

func (e *exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

// pending is the exit of a command that did what it was asked, with an answer that is not "fine".
func pending(err error) error { return &exit{exitPending, err} }

// stopped is the cause of a context that a signal ended.
type stopped struct{ signal os.Signal }

func (s *stopped) Error() string { return fmt.Sprintf("stopped by %s", s.signal) }

// untilSignal gives a context that the first SIGINT or SIGTERM ends. A second one ends the process, as it does where
// no handler is installed.
func untilSignal(parent context.Context) (context.Context, context.CancelFunc) {
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

// codeOf gives the exit code for what a command ended with.
func codeOf(ctx context.Context, err error) int {
	var e *exit
	switch {
	case err == nil:
		return exitFine
	case errors.As(err, &e):
		return e.code
	case signalOf(ctx) != nil:
		if n, ok := signalOf(ctx).signal.(syscall.Signal); ok {
			return exitSignal + int(n)
		}
	}
	return exitError
}

func signalOf(ctx context.Context) *stopped {
	var s *stopped
	if errors.As(context.Cause(ctx), &s) {
		return s
	}
	return nil
}

// hint says what a person can do about an error, "" where the error says all there is to say.
func hint(err error) string {
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
		return "the branch is protected: let the bot bypass that rule, or set output.branch in rampart.yaml to a branch of its own, " +
			"or pullRequests.onProtectedBranch to Propose, which puts each commit into a pull request"
	case errors.As(err, &rejected):
		return "a hook or a limit of the server refused the commit, for the reason that it gives; a branch of the bot's own (output.branch in " +
			"rampart.yaml) may be without it"
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
