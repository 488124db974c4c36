package temporal

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// StaleError says that the routing is not what a call was decided on. What the call had done by then stays.
type StaleError struct {
	// Basis is what was expected, Actual what is there.
	Basis, Actual rollout.RoutingConfig
}

// Error names both routings.
func (e *StaleError) Error() string {
	return fmt.Sprintf("routing was moved: decided on %s, found %s", describeRouting(e.Basis),
		describeRouting(e.Actual))
}

// Is makes it one of the errors that say that a plan is thrown away and made again.
func (e *StaleError) Is(target error) bool { return target == rollout.ErrStale }

// MissingQueueError says that a version which was to be raised does not serve a task queue that was not among those it
// was decided on.
type MissingQueueError struct {
	BuildID string
	Queue   rollout.TaskQueue
}

// Error names the task queue.
func (e *MissingQueueError) Error() string {
	return fmt.Sprintf("version %s does not serve the %s task queue %s, and leaving it behind was not approved",
		e.BuildID, strings.ToLower(string(e.Queue.Type)), e.Queue.Name)
}

// Is makes it one of the errors that say that a plan is thrown away and made again.
func (e *MissingQueueError) Is(target error) bool { return target == rollout.ErrStale }

// OwnerError says that the worker deployment's manager identity is not the one a call was to be made with.
type OwnerError struct {
	// Manager is who owns the routing now, "" for no owner; Identity is who was to make the call.
	Manager, Identity string
}

// Error names the owner.
func (e *OwnerError) Error() string {
	if e.Manager == "" {
		return fmt.Sprintf("manager identity %q was taken away", e.Identity)
	}
	return fmt.Sprintf("manager identity is %q, not %q", e.Manager, e.Identity)
}

// RefusedError says that the server refused a change although nothing had moved.
type RefusedError struct {
	Site Site
	Err  error
}

// Error gives the server's reason.
func (e *RefusedError) Error() string { return fmt.Sprintf("%s refused: %v", e.Site, e.Err) }

// Unwrap gives the server's error.
func (e *RefusedError) Unwrap() error { return e.Err }

// ConnectError says that there is no connection to Temporal: a bad address, or one that was never reached.
type ConnectError struct{ Err error }

// Error says why.
func (e *ConnectError) Error() string { return fmt.Sprintf("connect to temporal: %v", e.Err) }

// Unwrap gives the cause.
func (e *ConnectError) Unwrap() error { return e.Err }

// CredentialsError says that the bot's credentials for an address cannot be used. It never holds the credentials.
type CredentialsError struct{ Err error }

// Error says why.
func (e *CredentialsError) Error() string { return fmt.Sprintf("credentials for temporal: %v", e.Err) }

// Unwrap gives the cause.
func (e *CredentialsError) Unwrap() error { return e.Err }

// BudgetError says that a call was not made, since the namespace's budget had no room for it in time.
type BudgetError struct {
	// Kind of calls whose budget is used up, such as visibility.
	Kind      string
	Namespace string
}

// Error names the budget.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("budget for %s calls to namespace %q is used up", e.Kind, e.Namespace)
}

// Is makes it a rollout.ErrBusy.
func (e *BudgetError) Is(target error) bool { return target == rollout.ErrBusy }

// BusyError says that the server was asked too much at once: of the namespace, or of one worker deployment. Whether a
// change was made all the same is not known.
type BusyError struct{ Err error }

// Error gives the server's words.
func (e *BusyError) Error() string { return e.Err.Error() }

// Is makes it a rollout.ErrBusy.
func (e *BusyError) Is(target error) bool { return target == rollout.ErrBusy }

// Unwrap gives the server's error.
func (e *BusyError) Unwrap() error { return e.Err }

// unresolved is the error of a connection that was never made, with why its host has no address: gRPC does not say.
func unresolved(ctx context.Context, hostPort string, err error) error {
	host, _, splitErr := net.SplitHostPort(hostPort)
	if splitErr != nil {
		return err
	}
	var dns *net.DNSError
	if _, lookup := net.DefaultResolver.LookupHost(ctx, host); errors.As(lookup, &dns) && dns.IsNotFound {
		return fmt.Errorf("%w: %w", dns, err)
	}
	return err
}

// problem is a failed read of something as data. The reasons are the in-cluster controller's.
func problem(what string, err error) *rollout.Problem {
	var (
		connect     *ConnectError
		credentials *CredentialsError
	)
	reason := rollout.TemporalStateFetchFailed
	switch {
	case errors.As(err, &credentials), codeOf(err) == codes.Unauthenticated:
		reason = rollout.AuthSecretInvalid
	case errors.As(err, &connect):
		reason = rollout.TemporalClientCreationFailed
	}
	return &rollout.Problem{Reason: reason, Message: what + ": " + coarse(err), Busy: errors.Is(err, rollout.ErrBusy)}
}

// problem is a failed read as data, in the words that this pool may use.
func (p *Pool) problem(what string, err error) *rollout.Problem {
	out := problem(what, err)
	if p.cfg.InFull {
		out.Message = what + ": " + err.Error()
	}
	return out
}

// serviceError gives an error of the SDK's client the type that says what to do about it.
func serviceError(err error) error {
	if err == nil {
		return nil
	}
	st := serviceerror.ToStatus(err)
	if st.Code() == codes.Unknown {
		return &unknownError{errors.New(st.Message())}
	}
	err = serviceerror.FromStatus(st)
	var exhausted *serviceerror.ResourceExhausted
	if errors.As(err, &exhausted) && exhausted.Cause != enumspb.RESOURCE_EXHAUSTED_CAUSE_WORKER_DEPLOYMENT_LIMITS {
		return &BusyError{err} // of versions or task queues there will be too many the next time too
	}
	return err
}

func codeOf(err error) codes.Code {
	var service serviceerror.ServiceError
	if errors.As(err, &service) {
		return service.Status().Code()
	}
	return status.Code(err) // of a code that has no type, such as Unauthenticated
}

// notFound reports whether the thing asked for is known not to exist. A missing namespace has the same code and says
// nothing about what would be in it.
func notFound(err error) bool {
	var missing *serviceerror.NotFound
	return errors.As(err, &missing)
}

func failedPrecondition(err error) bool { return codeOf(err) == codes.FailedPrecondition }

// ambiguous reports whether a failed change may have happened all the same.
func ambiguous(err error) bool {
	switch codeOf(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Aborted, codes.Internal, codes.Unknown:
		return true
	}
	return false
}

// rateLimited reports whether the namespace as a whole was asked too much. The other causes of ResourceExhausted (busy
// workflow, too many versions, too many at a time) do not get better by asking less.
func rateLimited(err error) bool {
	var exhausted *serviceerror.ResourceExhausted
	return errors.As(err, &exhausted) && exhausted.Cause == enumspb.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT
}

func describeRouting(r rollout.RoutingConfig) string {
	name := func(build string) string {
		if build == "" {
			return "unversioned"
		}
		return build
	}
	if !r.HasRamp {
		return fmt.Sprintf("current %s (revision %d)", name(r.Current), r.Revision)
	}
	return fmt.Sprintf("current %s, %s at %s (revision %d)", name(r.Current), name(r.Ramping),
		rollout.Percent(rollout.AsWritten(r.Percentage)), r.Revision)
}
