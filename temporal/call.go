package temporal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

const (
	// callTimeout bounds every call but the marks.
	callTimeout = 10 * time.Second
	// markTimeout bounds all marks of one call together, waiting for the budget included: a rollback does not wait for them.
	markTimeout = 2 * time.Second
)

// rpc is a method of the workflow service's client.
type rpc[Req, Resp any] func(context.Context, Req, ...grpc.CallOption) (Resp, error)

// reading is a call that changes nothing, with the budget it counts against.
type reading struct {
	*session
	kind bucket
}

// read makes one call that changes nothing.
func read[Req, Resp any](ctx context.Context, r reading, method rpc[Req, Resp], req Req) (Resp, error) {
	if err := r.limits.acquire(ctx, r.kind); err != nil {
		var none Resp
		return none, err
	}
	return once(ctx, r.session, method, req)
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
	SiteClearMark      Site = "ClearMark"
	SiteStartGate      Site = "StartGate"
	SiteDeleteVersion  Site = "DeleteVersion"
)

// Sites lists every Site.
func Sites() []Site {
	return []Site{
		SiteSetManager, SiteSetCurrent, SiteSetRamp, SiteClearRamp, SiteMarkTurnedBack, SiteClearMark, SiteStartGate,
		SiteDeleteVersion,
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
	return once(ctx, w.session, method, req)
}

// once makes one call with a deadline, and draws the conclusions that concern more than this call.
func once[Req, Resp any](ctx context.Context, s *session, method rpc[Req, Resp], req Req) (Resp, error) {
	calling, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := method(calling, req)
	if err = serviceError(ctx, err); err == nil {
		s.conn.reached.Store(true)
		return resp, nil
	}
	code := codeOf(err)
	answered := code != codes.Unavailable && code != codes.DeadlineExceeded && ctx.Err() == nil
	switch {
	case code == codes.Unauthenticated, code == codes.PermissionDenied:
		s.pool.evict(s.conn)
	case rateLimited(err):
		s.limits.exhausted(time.Now())
	}
	switch {
	case answered:
		s.conn.reached.Store(true)
	case ctx.Err() == nil && !s.conn.reached.Load():
		err = &ConnectError{fmt.Errorf("%s: %w", s.conn.hostPort, err)}
	}
	return resp, err
}

// sleep waits, or gives the context's error.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// interrupted reports whether the caller's context ended a call, so that nothing more should be tried.
func interrupted(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, context.Canceled)
}
