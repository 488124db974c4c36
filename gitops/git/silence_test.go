package git

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/gittest"
)

const (
	soonest = 20 * time.Second
	tick    = 10 * time.Millisecond
)

func containsAll(text string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}

func openPatient(t *testing.T, url string, silence time.Duration) *Mirror {
	t.Helper()
	m, err := Open(Config{URL: url, Dir: t.TempDir(), Log: (&logs{}).logger(), Silence: silence})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

// hang lets some bytes of an answer through and waits then, until the client leaves.
func hang(at string, after int) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if strings.HasSuffix(req.URL.Path, at) {
				w = &stuck{w, after, req}
			}
			next.ServeHTTP(w, req)
			if s, ok := w.(*stuck); ok {
				<-s.req.Context().Done()
			}
		})
	}
}

type stuck struct {
	http.ResponseWriter
	left int
	req  *http.Request
}

func (s *stuck) Write(p []byte) (int, error) {
	n := min(len(p), s.left)
	if s.left -= n; n > 0 {
		_, _ = s.ResponseWriter.Write(p[:n])
		_ = http.NewResponseController(s.ResponseWriter).Flush()
	}
	if n < len(p) {
		return n, errors.New("held")
	}
	return n, nil
}

// A server falls silent before and in the middle of a conversation.
func TestSilentServerIsGivenUp(t *testing.T) {
	const limit = 400 * time.Millisecond
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: first})
	serve := func(at string, after int) string {
		return gittest.ServeHTTP(t, r, gittest.HTTPConfig{Wrap: hang(at, after)}).URL
	}
	for name, url := range map[string]string{
		"before a word":            "http://" + deaf(t) + "/x.git",
		"in the advertisement":     serve("/info/refs", 50),
		"before the pack":          serve("/git-upload-pack", 0),
		"in the middle of a fetch": serve("/git-upload-pack", 100),
		"git itself":               slowRepo(t).URL(),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := openPatient(t, url, limit).Fetch(soon(t), "main")
			var access *AccessError
			require.ErrorAs(t, err, &access)
			require.Equal(t, ReasonNetwork, access.Reason)
			require.Contains(t, err.Error(), "the server was silent for 400ms")
		})
	}
	t.Run("in the middle of a push", func(t *testing.T) {
		const limit = 3 * time.Second // what comes before it has to succeed
		m := openPatient(t, serve("/git-receive-pack", 0), limit)
		_, err := m.Push(soon(t), stage(t, m, commitOn(fetch(t, m, "main"), put("x", "y"))))
		var unknown *UnknownOutcomeError
		require.ErrorAs(t, err, &unknown, "it may have got through")
		require.ErrorContains(t, err, "silent for 3s")
	})
}

// A server says something all the time, and never comes to an end.
func TestEndlessServerIsGivenUp(t *testing.T) {
	r := gittest.NewBareRepo(t)
	drip := func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			for i := 0; req.Context().Err() == nil; i++ {
				fmt.Fprintf(w, "004e%040x refs/heads/branch-number-%08d\n", i+1, i)
				_ = http.NewResponseController(w).Flush()
				<-time.After(10 * time.Millisecond)
			}
		})
	}
	m := openPatient(t, gittest.ServeHTTP(t, r, gittest.HTTPConfig{Wrap: drip}).URL, 50*time.Millisecond)
	_, err := m.Fetch(soon(t), "main")
	var access *AccessError
	require.ErrorAs(t, err, &access)
	if !strings.Contains(err.Error(), "longer than 1.5s") {
		require.Contains(t, err.Error(), "silent for", "a slow machine")
	}
}

// slowRepo is one that git itself blocks on.
func slowRepo(t *testing.T) *gittest.Repo {
	t.Helper()
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: first})
	fifo := filepath.Join(t.TempDir(), "objects")
	require.NoError(t, mkfifo(fifo))
	require.NoError(t, os.Symlink(fifo, filepath.Join(r.Dir, "objects/info/alternates")))
	return r
}

// A server that works for long says so on the side band: that does not count as silence.
func TestBusyServerIsNotSilent(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: first})
	r.Git("config", "receive.keepAlive", "1")
	r.Hook("pre-receive", "sleep 5")
	m := openPatient(t, gittest.ServeHTTP(t, r, gittest.HTTPConfig{Wrap: atOnce}).URL, 3*time.Second)
	_, err := m.Push(soon(t), stage(t, m, commitOn(fetch(t, m, "main"), put("x", "y"))))
	require.NoError(t, err)
}

// atOnce passes on what the server says as it says it.
func atOnce(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { next.ServeHTTP(flushed{w}, req) })
}

type flushed struct{ w http.ResponseWriter }

func (f flushed) Header() http.Header { return f.w.Header() }

func (f flushed) WriteHeader(code int) { f.w.WriteHeader(code) }

func (f flushed) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	return n, errors.Join(err, http.NewResponseController(f.w).Flush())
}

// The server answers 500 and the like to one request after the other of a fetch and a push.
func TestServerErrors(t *testing.T) {
	for _, code := range []int{500, 502, 503, 504} {
		r := gittest.NewBareRepo(t)
		r.Commit(gittest.Commit{Write: first})
		fail := 0 // the request that fails, from the next one
		server := gittest.ServeHTTP(t, r, gittest.HTTPConfig{Wrap: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if fail--; fail == 0 {
					http.Error(w, "<html>gateway</html>", code)
					return
				}
				next.ServeHTTP(w, req)
			})
		}})
		m := openMirror(t, way{url: server.URL})
		for at := 1; at <= 2; at++ {
			fail = at
			_, err := m.Fetch(soon(t), "main")
			require.ErrorContains(t, err, fmt.Sprintf("HTTP %d %s", code, http.StatusText(code)))
		}
		s := stage(t, m, commitOn(fetch(t, m, "main"), put("x", fmt.Sprint(code))))
		fail = 1
		_, err := m.Push(soon(t), s)
		var access *AccessError
		require.ErrorAs(t, err, &access, "nothing was sent")
		fail = 2
		_, err = m.Push(soon(t), s)
		var unknown *UnknownOutcomeError
		require.ErrorAs(t, err, &unknown, "a gateway may have sent it on")
		_, err = m.Push(soon(t), s)
		require.NoError(t, err)
		r.Fsck()
	}
}
