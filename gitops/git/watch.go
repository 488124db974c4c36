package git

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// DefaultSilence is how long a server may be silent unless the configuration says otherwise. A git server that works on
// something says so every few seconds.
const DefaultSilence = time.Minute

// waitError says why a server is not waited for any longer.
type waitError struct{ what string }

func (e *waitError) Error() string { return e.what }

// patience is how many times the limit of silence a whole conversation may take.
const patience = 30

// watch ends an operation in which the server is waited for too long. It is used by one operation after the other;
// whatever talks to the server says when it begins to wait and when it got something.
type watch struct {
	limit time.Duration
	timer atomic.Pointer[time.Timer] // of the operation under way; nil: there is none
}

// over watches one operation: its context ends when the server is waited for too long. stop has to be called at its
// end.
func (w *watch) over(ctx context.Context) (watched context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	after := func(limit time.Duration, said string) *time.Timer {
		return time.AfterFunc(limit, func() { cancel(&waitError{fmt.Sprintf(said, limit)}) })
	}
	silence := after(w.limit, "the server was silent for %s")
	silence.Stop()
	whole := after(patience*w.limit, "the server took longer than %s, a little at a time")
	w.timer.Store(silence)
	return ctx, func() {
		w.timer.Store(nil)
		silence.Stop()
		whole.Stop()
		cancel(context.Canceled)
	}
}

// waits says that the server is waited for from now on, again where it was waited for already.
func (w *watch) waits() {
	if t := w.timer.Load(); t != nil {
		t.Reset(w.limit)
	}
}

// got says that the server is not waited for any more.
func (w *watch) got() {
	if t := w.timer.Load(); t != nil {
		t.Stop()
	}
}

// watchedReader is what comes from the server.
type watchedReader struct {
	io.Reader
	watch *watch
}

func (r watchedReader) Read(p []byte) (int, error) {
	r.watch.waits()
	defer r.watch.got()
	return r.Reader.Read(p)
}

// watchedWriter is what goes to the server.
type watchedWriter struct {
	io.WriteCloser
	watch *watch
}

func (w watchedWriter) Write(p []byte) (int, error) {
	w.watch.waits()
	defer w.watch.got()
	return w.WriteCloser.Write(p)
}

// sentBody is a request's body: the server takes some of it each time that it is read.
type sentBody struct {
	io.ReadCloser
	watch *watch
}

func (b sentBody) Read(p []byte) (int, error) {
	b.watch.waits()
	return b.ReadCloser.Read(p)
}

// watchedTransport waits for answers.
type watchedTransport struct {
	next  http.RoundTripper
	watch *watch
}

var _ http.RoundTripper = watchedTransport{}

func (t watchedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil && req.Body != http.NoBody {
		req = req.Clone(req.Context())
		req.Body = sentBody{req.Body, t.watch}
		if again := req.GetBody; again != nil {
			req.GetBody = func() (io.ReadCloser, error) {
				body, err := again()
				return sentBody{body, t.watch}, err
			}
		}
	}
	t.watch.waits()
	defer t.watch.got()
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{watchedReader{resp.Body, t.watch}, resp.Body}
	return resp, nil
}
