package temporal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rampart-gitops/rampart/internal/retry"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

const (
	// callTimeout bounds every change but the marks.
	callTimeout = 10 * time.Second
	// readTimeout bounds a read, and readTries how often one without an answer is tried. A describe of a worker
	// deployment is a query of a workflow, which now and then gets lost, or is refused, when the workflow is busy with
	// a change, and the next is not.
	readTimeout = 4 * time.Second
	readTries   = 3
	// busyPause is the first pause before a call is made again that the server was too busy for. Pauses double, up to
	// longestBusyPause.
	busyPause        = 400 * time.Millisecond
	longestBusyPause = 4 * busyPause
	// markTimeout bounds all marks of one call together, waiting for the budget included: a rollback does not wait for
	// them.
	markTimeout = 2 * time.Second
)

// rpc is a method of the workflow service's client.
type rpc[Req, Resp any] func(context.Context, Req, ...grpc.CallOption) (Resp, error)

// reading is a call that changes nothing, with the budget it counts against.
type reading struct {
	*session
	kind bucket
}

// read makes one call that changes nothing. It makes the call again if there was no answer, and after a pause if the
// worker deployment was busy. Except for counts and lists, whose limit people share, it also does so as long as the
// server says that the namespace was asked too much: what was read before it would be of no use without it.
func read[Req, Resp any](ctx context.Context, r reading, method rpc[Req, Resp], req Req) (Resp, error) {
	start, pauses := time.Now(), retry.Pauses(busyPause, longestBusyPause)
	for try := 1; ; {
		if err := r.limits.acquire(ctx, r.kind); err != nil {
			r.refused.Store(true)
			var none Resp
			return none, err
		}
		calling, cancel := context.WithTimeout(ctx, readTimeout)
		resp, err := once(calling, r.session, method, req)
		cancel()
		switch {
		case ctx.Err() != nil:
			return resp, err
		case codeOf(err) == codes.DeadlineExceeded && try < readTries:
			try++
		case rateLimited(err):
			if r.kind == visibility || time.Since(start) >= patience {
				return resp, err
			}
		case errors.Is(err, rollout.ErrBusy) && try < readTries:
			if retry.Sleep(ctx, pauses.NextBackOff()) != nil {
				return resp, err
			}
			try++
		default:
			return resp, err
		}
	}
}

// Site is a place in the code where the server is changed.
type Site string

// The sites, all of them.
const (
	SiteSetManager     Site = "SetManager"
	SiteSetCurrent     Site = "SetCurrent"
	SiteSetRamp        Site = "SetRamp"
	SiteClearRamp      Site = "ClearRamp"
	SiteMarkTurnedBack Site = "MarkTurnedBack"
	SiteStartGate      Site = "StartGate"
	SiteDeleteVersion  Site = "DeleteVersion"
	SiteStartBatch     Site = "StartBatch"
)

// Sites lists every Site.
func Sites() []Site {
	return []Site{
		SiteSetManager, SiteSetCurrent, SiteSetRamp, SiteClearRamp, SiteMarkTurnedBack, SiteStartGate,
		SiteDeleteVersion, SiteStartBatch,
	}
}

// Moment is when Config.OnWrite is called.
type Moment string

// The moments: right before a change is asked for, and right after the answer, whatever it was.
const (
	Before Moment = "Before"
	After  Moment = "After"
)

// writing is a change of the server at a site.
type writing struct {
	*session
	site Site
}

// write makes one call that changes the server. No other function may.
func write[Req, Resp any](ctx context.Context, w writing, method rpc[Req, Resp], req Req) (Resp, error) {
	if err := w.limits.acquire(ctx, changing); err != nil {
		var none Resp
		return none, err
	}
	w.pool.cfg.OnWrite(w.site, Before)
	defer w.pool.cfg.OnWrite(w.site, After)
	calling, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return once(calling, w.session, method, req)
}

// once makes one call, and draws the conclusions that concern more than this call.
func once[Req, Resp any](ctx context.Context, s *session, method rpc[Req, Resp], req Req) (Resp, error) {
	authorized, err := s.conn.authorized(ctx)
	if err != nil {
		var none Resp
		return none, err
	}
	resp, err := method(authorized, req)
	if err = serviceError(err); err == nil {
		s.conn.reached.Store(true)
		return resp, nil
	}
	code := codeOf(err)
	answered := code != codes.Unavailable && code != codes.DeadlineExceeded && code != codes.Canceled
	switch {
	case code == codes.Unauthenticated, code == codes.PermissionDenied:
		s.pool.evict(s.conn)
	case rateLimited(err):
		if s.limits.exhausted(time.Now()) {
			s.pool.cfg.Log.WarnContext(ctx, "Temporal was asked too much: the namespace is asked less often",
				"temporalNamespace", s.namespace, "error", err)
		}
	}
	switch {
	case answered:
		s.conn.reached.Store(true)
	case code != codes.Canceled && !s.conn.reached.Load():
		at := s.conn.address.HostPort
		err = &ConnectError{fmt.Errorf("%s: %w", at, unresolved(ctx, at, err))}
	}
	return resp, err
}
