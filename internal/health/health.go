// Package health answers over HTTP how a bot is. It serves /healthz, whether its process answers, and /readyz, whether
// it has read Git and Temporal, with /metrics beside them.
package health

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// State is how a bot is. It is safe for concurrent use.
type State struct {
	mu    sync.Mutex
	shown report
}

// report is what both addresses show, as JSON.
type report struct {
	// Ready says that a cycle has read Git and Temporal, and that the repository is still the bot's own.
	Ready bool `json:"ready"`
	// LastSuccess is the end of the last such cycle.
	LastSuccess *time.Time `json:"lastSuccess,omitempty"`
	// Problem is what the last cycle could not do, in short: the log says why.
	Problem string `json:"problem,omitempty"`
}

// Succeeded records a cycle that has read Git and Temporal, and what it could not do otherwise, "" for nothing. The
// text is public, so it has no details.
func (s *State) Succeeded(at time.Time, problem string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown = report{Ready: true, LastSuccess: &at, Problem: problem}
}

// Failed records why a cycle has not. The text is public, so it has no details. A bot that was ready stays ready: it
// goes on once it can.
func (s *State) Failed(problem string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown.Problem = problem
}

// Refused records that the repository does not accept the bot any more, or is gone: it is not ready until it has read
// it again.
func (s *State) Refused(problem string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown.Ready, s.shown.Problem = false, problem
}

// ServeHTTP answers GET and HEAD of /healthz with 200, and of /readyz with 200 or 503. Both show the same JSON.
func (s *State) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	shown := s.shown
	s.mu.Unlock()
	status := http.StatusOK
	switch {
	case r.URL.Path != "/healthz" && r.URL.Path != "/readyz":
		http.NotFound(w, r)
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "GET or HEAD", http.StatusMethodNotAllowed)
		return
	case r.URL.Path == "/readyz" && !shown.Ready:
		status = http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(shown) // the client has closed the connection
}

// Bounds of one request.
const (
	readTime   = 5 * time.Second
	leaveTime  = time.Second
	maxHeaders = 8 << 10
)

// Beside is what is answered beside health checks, and where problems are told.
type Beside struct {
	// Metrics answers GET of /metrics.
	Metrics http.Handler
	Log     *slog.Logger
}

// Listen answers on host:port until stop is called; address is where it listens. The context bounds the start alone.
func (s *State) Listen(ctx context.Context, hostPort string, beside Beside) (address string, stop func(), err error) {
	var listening net.ListenConfig
	listener, err := listening.Listen(ctx, "tcp", hostPort)
	if err != nil {
		return "", nil, fmt.Errorf("listen for health checks and metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", s)
	mux.Handle("GET /metrics", beside.Metrics)
	server := &http.Server{Handler: mux, ReadTimeout: readTime, WriteTimeout: readTime, IdleTimeout: time.Minute,
		MaxHeaderBytes: maxHeaders}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			beside.Log.Error("health checks and metrics are not answered any more; the loop goes on", "error", err)
		}
	}()
	end := func() {
		leave, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
		defer cancel()
		if server.Shutdown(leave) != nil {
			_ = server.Close() // a check that takes this long is cut off
		}
		<-done
	}
	return listener.Addr().String(), end, nil
}
