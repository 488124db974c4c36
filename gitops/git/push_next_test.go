package git

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
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
	asked []string // method and last part of the path of each request
	// answer, if it is set, answers in place of the server, or passes a request on.
	answer func(w http.ResponseWriter, req *http.Request, next http.Handler)
	close  func() // ends the server
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
		p.asked = append(p.asked, req.Method+" "+req.URL.Path[strings.LastIndex(req.URL.Path, "/")+1:])
		if p.answer != nil {
			p.answer(w, req, proxy)
			return
		}
		proxy.ServeHTTP(w, req)
	}))
	t.Cleanup(front.Close)
	p.close = front.Close
	p.Mirror = openMirror(t, way{url: front.URL + real.Path, auth: auth})
	p.tip = fetch(t, p.Mirror, "main")
	require.NoError(t, p.again(t, "first"))
	p.asked = nil
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
		require.Equal(t, unasked, p.asked)
		p.asked = nil
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
	require.Equal(t, append(unasked, "GET refs"), p.asked)

	p.tip, p.asked = fetch(t, p.Mirror, "main"), nil
	require.NoError(t, p.again(t, "second"))
	require.Equal(t, asked, p.asked, "where another writes, too, the branch is asked for first")
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
}

func TestPushAfterPushWithATokenThatEnded(t *testing.T) {
	source := &cached{tokens: []string{"fresh-token"}}
	p := pushOnce(t, source)
	source.tokens = []string{"stale-token", "fresh-token"}
	require.NoError(t, p.again(t, "second"))
	require.Equal(t, []string{"stale-token"}, source.refused)
	require.Equal(t, append(unasked, asked...), p.asked)
}

// A connection may break that was kept since the push before.
func TestPushAfterPushOnABrokenConnection(t *testing.T) {
	for name, through := range map[string]bool{"before the commit": false, "after the commit": true} {
		t.Run(name, func(t *testing.T) {
			p := pushOnce(t, nil)
			p.answer = func(w http.ResponseWriter, req *http.Request, next http.Handler) {
				p.answer = nil
				if through {
					next.ServeHTTP(&devNull{header: http.Header{}}, req)
				}
				panic(http.ErrAbortHandler)
			}
			require.NoError(t, p.again(t, "second"))
		})
	}
}

func TestPushAfterPushOfUnknownOutcome(t *testing.T) {
	p := pushOnce(t, nil)
	p.answer = func(_ http.ResponseWriter, req *http.Request, next http.Handler) {
		if req.Method == http.MethodPost {
			next.ServeHTTP(&devNull{header: http.Header{}}, req)
		}
		panic(http.ErrAbortHandler)
	}
	var unknown *UnknownOutcomeError
	require.ErrorAs(t, p.again(t, "second"), &unknown, "that it cannot be asked does not say that nothing was sent")
	require.Equal(t, unknown.Commit.String(), p.repo.Tip("main"))
}

func TestPushAfterPushOfARepositoryThatWasRenamed(t *testing.T) {
	p := pushOnce(t, nil)
	p.answer = func(w http.ResponseWriter, req *http.Request, next http.Handler) {
		if path, found := strings.CutPrefix(req.URL.Path, "/new"); found {
			req.URL.Path = path
			next.ServeHTTP(w, req)
			return
		}
		http.Redirect(w, req, "/new"+req.URL.RequestURI(), http.StatusMovedPermanently)
	}
	require.NoError(t, p.again(t, "second"))
}

// Nothing was sent: the error says so, and the server is not asked any more.
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
			p.answer = func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
				http.Error(w, "slow down", http.StatusTooManyRequests)
			}
		}, ReasonRateLimited, unasked},
		"credentials lack the right": {func(p *pushed) {
			p.answer = func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
				http.Error(w, "no", http.StatusForbidden)
			}
		}, ReasonForbidden, append(unasked, "GET refs")},
	} {
		t.Run(name, func(t *testing.T) {
			p := pushOnce(t, nil)
			test.end(p)
			var access *AccessError
			require.ErrorAs(t, p.again(t, "second"), &access)
			require.Equal(t, test.reason, access.Reason)
			require.Equal(t, test.asked, p.asked)
		})
	}
}
