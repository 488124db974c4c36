package temporal

import (
	"context"
	"errors"

	"go.temporal.io/api/serviceerror"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// The repository says where connections lead, and people who may push to it read what became of them. So what is said
// there is a class of failure: not which ports of the bot's network are open, who answers there, or which files the bot
// has. The log has the words.

// unknownError is an answer with a code that says nothing: of a server that is not Temporal, as a rule.
type unknownError struct{ err error }

// Error gives the server's words.
func (e *unknownError) Error() string { return e.err.Error() }

// Unwrap gives the server's words as an error.
func (e *unknownError) Unwrap() error { return e.err }

const seeLog = ": the bot's log has the details"

// Coarse is what may be said of it where others read it.
func (e *ConnectError) Coarse() string { return "Temporal cannot be reached" + seeLog }

// Coarse is what may be said of it where others read it.
func (e *CredentialsError) Coarse() string {
	return "the bot's credentials for Temporal cannot be used" + seeLog
}

// coarse says what kind of failure an error is. What Temporal says of what it was asked for keeps its words.
func coarse(err error) string {
	var (
		connect     *ConnectError
		credentials *CredentialsError
		unknown     *unknownError
		service     serviceerror.ServiceError
	)
	switch {
	case errors.Is(err, rollout.ErrBusy):
		return err.Error()
	case errors.As(err, &credentials):
		return credentials.Coarse()
	case errors.As(err, &connect):
		return connect.Coarse()
	case errors.Is(err, context.DeadlineExceeded):
		return "Temporal does not answer" + seeLog
	}
	if _, answered := status.FromError(err); !answered && !errors.As(err, &unknown) && !errors.As(err, &service) {
		return err.Error() // our own words
	}
	switch code := codeOf(err); code {
	case codes.Unauthenticated:
		return "Temporal does not accept the bot's credentials" + seeLog
	case codes.Unavailable, codes.DeadlineExceeded:
		return "Temporal does not answer" + seeLog
	case codes.Unknown, codes.Internal, codes.Unimplemented, codes.PermissionDenied:
		return "Temporal refuses the call, or does not know it (" + code.String() + ")" + seeLog
	}
	return err.Error()
}
