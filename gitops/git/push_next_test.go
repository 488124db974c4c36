package git

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/rampart-gitops/rampart/internal/gittest"
)

// pushed is a mirror that pushed once over HTTP, and what its server is asked from then on.
type pushed struct {
	*Mirror
	repo  *gittest.Repo
	tip   Tip
	close func() // ends the server

	mu     sync.Mutex
	asked  []string // method and last part of the path of each request
	answer answer
}

// answer answers in place of the server, or passes a request on.
type answer func(w http.ResponseWriter, req *http.Request, next http.Handler)

// setAnswer has another answer from now on; nil is the server's own.
func (p *pushed) setAnswer(a answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = a
}

// requests are those since the last time.
func (p *pushed) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.asked
	p.asked = nil
	return out
}

// pushOnce serves a repository and pushes to it; source may be nil.
func pushOnce(t *testing.T, source *cached) *pushed {
	t.Helper()
	p := &pushed{repo: gittest.NewBareRepo(t)}
	p.repo.Commit(gittest.Commit{Write: first})
	config, auth := gittest.HTTPConfig{}, Auth{}
	if source != nil {
		config.User, config.Password = DefaultTokenUser, "fresh-token"
		auth = Auth{Password: source.password, Refused: source.hear}
	}
	real, err := url.Parse(gittest.ServeHTTP(t, p.repo, config).URL)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: real.Scheme, Host: real.Host})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		p.mu.Lock()
		p.asked = append(p.asked, req.Method+" "+req.URL.Path[strings.LastIndex(req.URL.Path, "/")+1:])
		answer := p.answer
		p.mu.Unlock()
		if answer == nil {
			proxy.ServeHTTP(w, req)
			return
		}
		answer(w, req, proxy)
	}))
	t.Cleanup(front.Close)
	p.close = front.Close
	p.Mirror = openMirror(t, way{url: front.URL + real.Path, auth: auth})
	p.tip = fetch(t, p.Mirror, "main")
	require.NoError(t, p.again(t, "first"))
	p.requests()
	return p
}

// again pushes a file on top of the push before.
func (p *pushed) again(t *testing.T, name string) error {
	t.Helper()
	s := stage(t, p.Mirror, commitOn(p.tip, put(name, "1")))
	_, err := p.Push(soon(t), s)
	if err == nil {
		require.Equal(t, s.Commit.String(), p.repo.Tip("main"))
		p.tip.Commit, p.tip.Tree = s.Commit, s.Tree
	}
	return err
}

var (
	unasked = []string{"POST git-receive-pack"}
	asked   = []string{"GET refs", "POST git-receive-pack"}
)

func TestPushAfterPushDoesNotAskFirst(t *testing.T) {
	p := pushOnce(t, nil)
	for _, name := range []string{"second", "third"} {
		require.NoError(t, p.again(t, name))
		require.Equal(t, unasked, p.requests())
	}
	p.repo.Fsck()
}

func TestPushAfterPushOnABranchThatMoved(t *testing.T) {
	p := pushOnce(t, nil)
	theirs := p.repo.Commit(gittest.Commit{Write: map[string]string{"theirs": "1"}})
	var moved *MovedError
	require.ErrorAs(t, p.again(t, "second"), &moved)
	requireSame(t, &MovedError{Branch: "main", Expected: p.tip.Commit, Actual: plumbing.NewHash(theirs)}, moved)
	require.Equal(t, theirs, p.repo.Tip("main"), "nothing lost")
	require.Equal(t, append(unasked, "GET refs"), p.requests())

	p.tip = fetch(t, p.Mirror, "main")
	p.requests()
	require.NoError(t, p.again(t, "second"))
	require.Equal(t, asked, p.requests(), "after another was first, it asks")
}

func TestPushAfterPushOnABranchThatIsGone(t *testing.T) {
	p := pushOnce(t, nil)
	p.repo.Git("update-ref", "-d", "refs/heads/main")
	var moved *MovedError
	require.ErrorAs(t, p.again(t, "second"), &moved)
	requireSame(t, &MovedError{Branch: "main", Expected: p.tip.Commit}, moved)
}

func TestPushAfterPushIsRefused(t *testing.T) {
	p := pushOnce(t, nil)
	p.repo.Hook("update", `echo "main is protected" >&2; exit 1`)
	var rejected *RejectedError
	require.ErrorAs(t, p.again(t, "second"), &rejected)
	require.Contains(t, rejected.Output, "main is protected")
	require.Equal(t, p.tip.Commit.String(), p.repo.Tip("main"))
	requests := p.requests()
	require.Equal(t, "POST git-receive-pack", requests[0])
	require.NotContains(t, requests[1:], "POST git-receive-pack")

	for range 2 { // until one gets through
		require.ErrorAs(t, p.again(t, "second"), &rejected)
		require.Equal(t, asked, p.requests()[:2])
	}
}

func TestPushAfterPushWithATokenThatEnded(t *testing.T) {
	source := &cached{tokens: []string{"fresh-token"}}
	p := pushOnce(t, source)
	source.tokens = []string{"stale-token", "fresh-token"}
	require.NoError(t, p.again(t, "second"))
	require.Equal(t, []string{"stale-token"}, source.refused)
	require.Equal(t, append(unasked, asked...), p.requests())
}

func TestPushAfterPushOfUnknownOutcome(t *testing.T) {
	lost := &devNull{header: http.Header{}}
	for name, test := range map[string]struct {
		answer  answer
		through bool
	}{
		"the connection broke before the commit": {func(http.ResponseWriter, *http.Request, http.Handler) {
			panic(http.ErrAbortHandler)
		}, false},
		"the connection broke after the commit": {func(_ http.ResponseWriter, req *http.Request, next http.Handler) {
			next.ServeHTTP(lost, req)
			panic(http.ErrAbortHandler)
		}, true},
		"the answer is empty": {func(_ http.ResponseWriter, req *http.Request, next http.Handler) {
			next.ServeHTTP(lost, req)
		}, true},
		"a gateway gave up": {func(w http.ResponseWriter, req *http.Request, next http.Handler) {
			next.ServeHTTP(lost, req)
			w.WriteHeader(http.StatusGatewayTimeout)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := pushOnce(t, nil)
			p.setAnswer(test.answer)
			s := stage(t, p.Mirror, commitOn(p.tip, put("second", "1")))
			_, err := p.Push(soon(t), s)
			var unknown *UnknownOutcomeError
			require.ErrorAs(t, err, &unknown)
			require.Equal(t, test.through, p.repo.Tip("main") == unknown.Commit.String())
			require.Equal(t, unasked, p.requests(), "it is not for the push to find out")

			p.setAnswer(nil)
			commit, err := p.Push(soon(t), s)
			require.NoError(t, err)
			require.Equal(t, commit.String(), p.repo.Tip("main"))
			require.Equal(t, asked[:map[bool]int{true: 1, false: 2}[test.through]], p.requests())
		})
	}
}

func TestPushAfterPushThatIsInterrupted(t *testing.T) {
	p := pushOnce(t, nil)
	ctx, cancel := context.WithCancel(soon(t))
	p.setAnswer(func(_ http.ResponseWriter, req *http.Request, next http.Handler) {
		next.ServeHTTP(&devNull{header: http.Header{}}, req)
		cancel()
		<-req.Context().Done()
	})
	_, err := p.Push(ctx, stage(t, p.Mirror, commitOn(p.tip, put("second", "1"))))
	var unknown *UnknownOutcomeError
	require.ErrorAs(t, err, &unknown)
	require.ErrorIs(t, err, context.Canceled)
}

// A repository was renamed, and its old address leads to the new one. A push follows when it asked before.
func TestPushesToARepositoryThatWasRenamed(t *testing.T) {
	p := pushOnce(t, nil)
	renamed := func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if path, found := strings.CutPrefix(req.URL.Path, "/new"); found {
			req.URL.Path = path
			next.ServeHTTP(w, req)
			return
		}
		http.Redirect(w, req, "/new"+req.URL.RequestURI(), http.StatusMovedPermanently)
	}
	p.setAnswer(renamed)
	var access *AccessError
	require.ErrorAs(t, p.again(t, "second"), &access, "nothing was taken")
	require.Equal(t, unasked, p.requests())
	for _, name := range []string{"second", "third"} {
		require.NoError(t, p.again(t, name))
		require.Equal(t, append([]string{"GET refs"}, asked...), p.requests())
	}

	p.setAnswer(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if req.Method == http.MethodPost {
			req.URL.Path = strings.TrimPrefix(req.URL.Path, "/new")
			next.ServeHTTP(&devNull{header: http.Header{}}, req)
			panic(http.ErrAbortHandler)
		}
		renamed(w, req, next)
	})
	var unknown *UnknownOutcomeError
	require.ErrorAs(t, p.again(t, "fourth"), &unknown, "only the question was redirected")
	require.Equal(t, unknown.Commit.String(), p.repo.Tip("main"))
}

// The server refused the commit, and does not say any more where the branch is: it may have moved.
func TestPushAfterPushThatIsRefusedByAServerThatIsAwayThen(t *testing.T) {
	p := pushOnce(t, nil)
	p.repo.Commit(gittest.Commit{Write: map[string]string{"theirs": "1"}})
	p.setAnswer(func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if req.Method == http.MethodGet {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, req)
	})
	err := p.again(t, "second")
	var access *AccessError
	require.ErrorAs(t, err, &access)
	var rejected *RejectedError
	require.False(t, errors.As(err, &rejected), "that would say that the branch had not moved")
	require.ErrorContains(t, err, "HTTP 503")
	require.ErrorContains(t, err, "rejected")
}

// Nothing was taken: the error says so.
func TestPushAfterPushToAServerThatTakesNothing(t *testing.T) {
	for name, test := range map[string]struct {
		end    func(p *pushed)
		reason Reason
		asked  []string
	}{
		"it is away": {func(p *pushed) {
			p.close()
			p.remote.close() // on a connection that was kept something may have gone through
		}, ReasonNetwork, nil},
		"it is asked too much": {func(p *pushed) {
			p.setAnswer(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
				http.Error(w, "slow down", http.StatusTooManyRequests)
			})
		}, ReasonRateLimited, unasked},
		"credentials lack the right": {func(p *pushed) {
			p.setAnswer(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
				http.Error(w, "no", http.StatusForbidden)
			})
		}, ReasonForbidden, append(unasked, "GET refs")},
	} {
		t.Run(name, func(t *testing.T) {
			p := pushOnce(t, nil)
			test.end(p)
			var access *AccessError
			require.ErrorAs(t, p.again(t, "second"), &access)
			require.Equal(t, test.reason, access.Reason)
			require.Equal(t, test.asked, p.requests())
		})
	}
}
