package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/test/giteatest"
)

const hookSecret = "0123456789abcdef0123456789abcdef"

// promptly is within how long what a webhook tells is acted on: seconds, with room for a machine that does much else. A
// bot that polls every hour was told.
const promptly = 30 * time.Second

var (
	listensAt = regexp.MustCompile(`msg="listening for webhooks" .*url=(\S+)`)
	hookBlock = regexp.MustCompile("(?s)```sh\n(#!/bin/sh\n.*?)```")
)

// A bot that polls every hour commits within moments of a push. It is told by the hook that the documentation has for
// bare repositories, and by deliveries as the forges make them.
func TestWebhooks(t *testing.T) {
	w := newWorld(t, overHTTP())
	w.push("connection", map[string]string{})
	b, url, secret := w.hourly()
	path := strings.TrimSuffix(w.url[strings.LastIndexByte(w.url, '/')+1:], ".git")

	hook := filepath.Join(w.repo.Dir, "hooks", "post-receive")
	w.installHook(hook, url, secret)
	w.committedAfter("app:v1", func() {}) // the push is told by the hook
	require.Contains(t, b.log.String(), "msg=webhook part=webhook forge=\"\" event=\"\"")
	require.NoError(t, os.Remove(hook))

	body := fmt.Sprintf(`{"ref":"refs/heads/main","repository":{"full_name":%q}}`, path)
	w.committedAfter("app:v2", func() {
		require.Equal(t, http.StatusUnauthorized, deliver(t, url, body, "X-GitHub-Event", "push", "X-Hub-Signature-256", "sha256="+hexSum("not the secret", body)))
		require.Equal(t, http.StatusOK, deliver(t, url, `{"zen":"1"}`, "X-GitHub-Event", "ping", "X-Hub-Signature-256", "sha256="+hexSum(hookSecret, `{"zen":"1"}`)))
		require.Equal(t, http.StatusAccepted, deliver(t, url, body, "X-GitHub-Event", "push", "X-GitHub-Delivery", "1", "X-Hub-Signature-256", "sha256="+hexSum(hookSecret, body)))
	})
	body = fmt.Sprintf(`{"object_kind":"push","ref":"refs/heads/main","project":{"path_with_namespace":%q}}`, path)
	w.committedAfter("app:v3", func() {
		require.Equal(t, http.StatusOK, deliver(t, url, strings.Replace(body, path, "some/other", 1), "X-Gitlab-Event", "Push Hook", "Idempotency-Key", "2", "X-Gitlab-Token", hookSecret))
		require.Equal(t, http.StatusAccepted, deliver(t, url, body, "X-Gitlab-Event", "Push Hook", "Idempotency-Key", "3", "X-Gitlab-Token", hookSecret))
	})
	require.NotContains(t, b.log.String(), hookSecret)
}

// The same with a real Gitea, which sends the webhook by itself: the bot's commit follows a person's.
func TestWebhooksOfGitea(t *testing.T) {
	t.Parallel()
	forge := giteatest.Start(t)
	person, robot := forge.User(t, "person"), forge.User(t, "bot")
	repo := forge.Repository(t, person.Login)
	repo.Collaborators(t, robot)
	ns, err := server.Namespace(t.Context(), "webhooks-of-gitea")
	require.NoError(t, err)
	w := &world{t: t, cache: t.TempDir(), server: server, ns: ns}
	repo.Commit(t, person, giteatest.Commit{Branch: "main", Path: "workers/connection.yaml", Text: w.connection()})

	w.url = repo.CloneURL(robot)
	b, url, _ := w.hourly()
	_, _, err = person.Client(t).CreateRepoHook(repo.Owner, repo.Name, sdk.CreateHookOption{Type: sdk.HookTypeGitea, Active: true, Events: []string{"push"},
		Config: map[string]string{"url": url, "content_type": "json", "secret": hookSecret}})
	require.NoError(t, err)

	text := strings.ReplaceAll(specText{image: "app:v1"}.String(), "NAMESPACE", ns.Name())
	pushed := repo.Commit(t, person, giteatest.Commit{Branch: "main", Path: specFile, Text: text})
	w.promptly("the bot's commit", func() bool { return repo.Tip(t, "main") != pushed })
	require.Contains(t, b.log.String(), "msg=webhook part=webhook forge=gitea event=push")
	require.NotContains(t, b.log.String(), robot.Token)
}

// installHook installs the hook of the documentation.
func (w *world) installHook(name, url, secret string) {
	w.t.Helper()
	page, err := os.ReadFile(filepath.Join(repositoryRoot, "docs", "webhooks.md"))
	require.NoError(w.t, err)
	m := hookBlock.FindSubmatch(page)
	require.NotNil(w.t, m)
	text := string(m[1])
	for was, is := range map[string]string{"https://rampart.example.com:8443/webhook": url, "/etc/rampart/webhook-secret": secret} {
		require.Contains(w.t, text, was)
		text = strings.ReplaceAll(text, was, is)
	}
	require.NoError(w.t, os.MkdirAll(filepath.Dir(name), 0o755)) // repositories of tests have no examples of hooks
	require.NoError(w.t, os.WriteFile(name, []byte(text), 0o755))
}

// committedAfter pushes a spec with an image, tells the bot, and waits for the bot's commit. Nothing of the spec is due
// by itself.
func (w *world) committedAfter(image string, tell func()) {
	w.t.Helper()
	w.pushSpec(image, specText{image: image, strategy: manual})
	tell()
	w.promptly("files of "+image, func() bool { return w.build(image) != "" })
}

// promptly is eventually for what has to come within seconds.
func (w *world) promptly(what string, ok func() bool) {
	w.t.Helper()
	start := time.Now()
	w.within(promptly, what, ok)
	w.t.Logf("%s after %s", what, time.Since(start).Round(10*time.Millisecond))
}

// hourly starts a bot that polls every hour and listens for webhooks, and waits until it has nothing to do. It gives
// the address that the bot is told at.
func (w *world) hourly() (b *bot, url, secret string) {
	w.t.Helper()
	b, secret = w.listening("1h")
	w.eventually("it waits for an hour", func() bool { return strings.Contains(b.log.String(), "msg=cycle ") })
	return b, listensAt.FindStringSubmatch(b.log.String())[1], secret
}

// listening starts a bot that polls so often and listens for webhooks, and gives the file of its secret.
func (w *world) listening(interval string) (b *bot, secret string) {
	w.t.Helper()
	secret = filepath.Join(w.t.TempDir(), "secret")
	require.NoError(w.t, os.WriteFile(secret, []byte(hookSecret+"\n"), 0o600))
	return w.start("--interval", interval, "--webhook-address", "127.0.0.1:0", "--webhook-secret-file", secret), secret
}

// A delivery that is lost costs time and nothing else: the bot that was not told finds the push when it polls.
func TestWebhookIsLost(t *testing.T) {
	w := newWorld(t, overHTTP())
	var lost atomic.Int64 // each push is told, the bot's too
	nobody := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		lost.Add(1)
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(nobody.Close)
	w.push("connection", map[string]string{})
	b, secret := w.listening("2s")
	w.installHook(filepath.Join(w.repo.Dir, "hooks", "post-receive"), nobody.URL, secret)
	w.pushSpec("v1", specText{image: "app:v1", strategy: manual})
	require.NotZero(t, lost.Load(), "the hook told nobody")
	w.promptly("files of app:v1", func() bool { return w.build("app:v1") != "" })
	require.NotContains(t, b.log.String(), "msg=webhook part=webhook")
}

func hexSum(secret, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

// deliver sends a delivery and gives the status of the answer.
func deliver(t *testing.T, url, body string, headers ...string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

// What a person does with a pull request on Gitea is acted on in moments too, by a bot that polls every hour.
func TestPullRequestClosedIsTold(t *testing.T) {
	testneed.Long(t)
	w, r, b := reviewed(t, "Step")
	w.pushSpec("v2", specText{image: "app:v2"})
	p := w.awaitPull(r, "at 10%")
	b.stop()
	b, url, _ := w.hourly()
	_, _, err := r.person.Client(t).CreateRepoHook(r.Owner, r.Name, sdk.CreateHookOption{Type: sdk.HookTypeGitea, Active: true, Events: []string{"pull_request"},
		Config: map[string]string{"url": url, "content_type": "json", "secret": hookSecret}})
	require.NoError(t, err)
	w.close(r, p)
	w.promptly("held", func() bool { return w.reason() == "ManualHold" })
	require.Equal(t, r.person.Login, w.routing().Hold.By)
	require.Contains(t, b.log.String(), "msg=webhook part=webhook forge=gitea event=pull_request")
	w.awaitNoPull(r)
}
