package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"
)

// killer stands between the bot and a Gitea, and kills the bot with SIGKILL at each write. It does so before it gets
// through; when it is tried again, after it did and before the bot hears of it; and then it passes. Whenever the test
// waits, the next bot is started: every second one knows nothing of those before.
type killer struct {
	w *world

	mu  sync.Mutex
	bot *bot // that lives
	// off lets everything pass.
	off bool
	// tried is how often a write was tried, and bots how many there were.
	tried map[string]int
	bots  int
	// kills is how often a bot died, by the kind of the write and the moment.
	kills map[string]int
}

// behindKiller is onGitea with a killer before it. People get there without.
func behindKiller(k *killer, r *review) option {
	return func(w *world) {
		k.w, k.tried, k.kills = w, map[string]int{}, map[string]int{}
		w.behind(r, k.before)
		w.tend = k.tend
	}
}

// behind is onGitea with something before it.
func (w *world) behind(r *review, before func(gitea http.Handler) http.Handler) {
	w.t.Helper()
	onGitea(r)(w)
	gitea, err := url.Parse(r.URL())
	require.NoError(w.t, err)
	pass := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: gitea.Scheme, Host: gitea.Host})
	server := httptest.NewServer(before(pass))
	w.t.Cleanup(server.Close)
	w.url = server.URL + gitea.Path + ".git"
}

// toTheEnd is onGitea, where what a bot asked for comes to its end, also when the bot is killed meanwhile. A Gitea
// itself ends its git with the connection, which can leave a lock for ever.
func toTheEnd(r *review) option {
	return func(w *world) {
		w.behind(r, func(gitea http.Handler) http.Handler {
			return http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
				ctx, end := context.WithCancel(context.WithoutCancel(req.Context())) // a proxy asks the connection itself where none can end
				defer end()
				gitea.ServeHTTP(rw, req.WithContext(ctx))
			})
		})
	}
}

// killAtTemporal kills the bot at each step of traffic too, once the call is on its way.
func (k *killer) killAtTemporal() {
	k.w.ns.BeforeForward(func(method string, request proto.Message) {
		switch request.(type) {
		case *workflowservice.SetWorkerDeploymentRampingVersionRequest, *workflowservice.SetWorkerDeploymentCurrentVersionRequest:
			k.dies(method, fmt.Sprint(request), 1)
		}
	})
}

// tend starts a bot if none lives.
func (k *killer) tend() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.bot != nil || k.off {
		return
	}
	if k.bots++; k.bots%2 == 0 {
		k.w.forgetCache()
	}
	k.bot = k.w.start()
}

// end lets everything pass from now on, and stops the last bot.
func (k *killer) end() {
	k.mu.Lock()
	last := k.bot
	k.off = true
	k.mu.Unlock()
	if last != nil {
		last.stop()
	}
}

// before is the server that the bot knows.
func (k *killer) before(pass http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, write := writes(r)
		if kind == "" {
			pass.ServeHTTP(w, r)
			return
		}
		if k.dies(kind+" before", write, 1) {
			panic(http.ErrAbortHandler)
		}
		answer := httptest.NewRecorder()
		pass.ServeHTTP(answer, r)
		if k.dies(kind+" after", write, 2) {
			panic(http.ErrAbortHandler)
		}
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	})
}

// dies kills the bot if a write comes to a moment, from 1, at which it was not killed yet, and reports whether it did.
func (k *killer) dies(kind, write string, moment int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.off || k.tried[write] != moment-1 {
		return false
	}
	k.tried[write]++
	if k.bot != nil { // else it is what the one before left on its way
		k.bot.kill()
		k.bot = nil
		k.kills[kind]++
	}
	return true
}

var (
	numbers = regexp.MustCompile(`/[0-9]+\b`)
	hashes  = regexp.MustCompile(`/[0-9a-f]{40}\b`)
)

// writes gives what a request writes: its kind, "" if it only reads, and what makes two tries the same write. That they
// are about the same is enough: a text that tells a time is another with each try.
func writes(r *http.Request) (kind, write string) {
	_, path, api := strings.Cut(r.URL.Path, "/api/v1/repos/")
	if !api || r.Method == http.MethodGet {
		return pushOf(r)
	}
	var about struct{ Title, State string }
	_ = json.Unmarshal(bodyOf(r), &about) // a body that is not JSON is about nothing
	parts := strings.Split(hashes.ReplaceAllString(numbers.ReplaceAllString(path, ""), ""), "/")
	return r.Method + " " + strings.Join(parts[2:], " "), r.Method + path + about.Title + about.State
}

// pushOf is what a request to a Git server pushes, such as "push main" or "delete main"; "" if it pushes nothing. push
// is what makes two tries the same push. The request's first line says what a branch is moved from and to.
func pushOf(r *http.Request) (what, push string) {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/git-receive-pack") {
		return "", ""
	}
	line, _, _ := bytes.Cut(bodyOf(r), []byte{0})
	fields := strings.Fields(string(line))
	if len(fields) != 3 {
		return "", "" // it asks whether it may
	}
	from, to, branch := fields[0][4:], fields[1], strings.TrimPrefix(fields[2], "refs/heads/")
	what = "push " + branch
	if strings.Trim(to, "0") == "" {
		what = "delete " + branch
	}
	return what, what + from
}

// bodyOf reads a request's body, and leaves it there. One that ends early, since the client is gone, ends as early for
// who reads it next.
func bodyOf(r *http.Request) []byte {
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), iotest.ErrReader(cmp.Or(err, io.EOF))))
	return body
}
