package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/logtest"
)

// The secrets of the documentations: GitHub's example, one of ours, and the key of the reference test of Standard
// Webhooks.
const (
	secretGitHub   = "It's a Secret to Everybody"
	secretOther    = "0123456789abcdef0123456789abcdef"
	secretStandard = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
)

// noon is when the deliveries of these tests come.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fixture is a handler with all that it has to do with.
type fixture struct {
	t       testing.TB
	handler *Handler
	rung    atomic.Int64
	secrets atomic.Pointer[string]
	now     atomic.Pointer[time.Time]
	log     logtest.Buffer
}

// newFixture makes a handler for team/workers with main and deploy watched, and secrets; none: no proof is needed.
func newFixture(t testing.TB, secrets ...string) *fixture {
	t.Helper()
	d := &fixture{t: t}
	d.at(noon)
	d.keys(secrets...)
	cfg := Config{Repository: "team/workers", Proposals: []string{"rampart/"}, Watched: func(b string) bool { return b == "main" || b == "deploy" },
		Ring: func() { d.rung.Add(1) }, Log: slog.New(slog.NewTextHandler(&d.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Now: func() time.Time { return *d.now.Load() }}
	if len(secrets) > 0 {
		cfg.Secrets = func(context.Context) (string, error) { return *d.secrets.Load(), nil }
	}
	var err error
	d.handler, err = NewHandler(t.Context(), cfg)
	require.NoError(t, err)
	return d
}

func (d *fixture) at(t time.Time) { d.now.Store(&t) }

func (d *fixture) keys(secrets ...string) {
	text := strings.Join(secrets, "\n") + "\n"
	d.secrets.Store(&text)
}

// result is what came of a delivery.
type result struct {
	Status int
	Answer string
	Rung   int64
}

func (d *fixture) send(r *http.Request) result {
	d.t.Helper()
	before, w := d.rung.Load(), httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	return result{w.Code, strings.TrimSpace(w.Body.String()), d.rung.Load() - before}
}

// delivery is a request as a forge makes it.
type delivery struct {
	event, id, body string
	secret          string
}

func post(body string, headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/webhook", io.NopCloser(strings.NewReader(body)))
	r.ContentLength = int64(len(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func sumOf(secret, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

// github makes headers as https://docs.github.com/en/webhooks/webhook-events-and-payloads#delivery-headers has them.
func (d delivery) github() *http.Request {
	return post(d.body, "X-GitHub-Event", d.event, "X-GitHub-Delivery", d.id, "X-GitHub-Hook-ID", "292430182", "User-Agent", "GitHub-Hookshot/044aadd",
		"X-Hub-Signature", "sha1=7d38cdd689735b008b3c702edd92eea23791c5f6", "X-Hub-Signature-256", "sha256="+sumOf(d.secret, d.body))
}

// gitea makes headers as Gitea 1.25 sends them: its own, and those of Gogs and GitHub.
func (d delivery) gitea() *http.Request {
	sum := sumOf(d.secret, d.body)
	return post(d.body, "X-Gitea-Event", d.event, "X-Gitea-Event-Type", d.event, "X-Gitea-Delivery", d.id, "X-Gitea-Signature", sum,
		"X-Gogs-Event", d.event, "X-Gogs-Delivery", d.id, "X-Gogs-Signature", sum, "X-GitHub-Event", d.event, "X-GitHub-Delivery", d.id,
		"X-Hub-Signature-256", "sha256="+sum)
}

// forgejo makes headers with nothing that GitHub has.
func (d delivery) forgejo() *http.Request {
	return post(d.body, "X-Forgejo-Event", d.event, "X-Forgejo-Delivery", d.id, "X-Forgejo-Signature", sumOf(d.secret, d.body))
}

// gitlab makes headers as https://docs.gitlab.com/user/project/integrations/webhooks/#delivery-headers has them.
func (d delivery) gitlab() *http.Request {
	return post(d.body, "X-Gitlab-Event", d.event, "X-Gitlab-Token", d.secret, "Idempotency-Key", d.id, "User-Agent", "GitLab/17.0.0-pre",
		"X-Gitlab-Instance", "https://gitlab.example.com", "X-Gitlab-Webhook-UUID", "02affd2d-2cba-4033-917d-ec22d5dc4b38",
		"X-Gitlab-Event-UUID", "13792a34-cac6-4fda-95a8-c58e00a3954e")
}

// signed makes headers of Standard Webhooks, with the secrets that are given.
func (d delivery) signed(at time.Time, secrets ...string) *http.Request {
	stamp := strconv.FormatInt(at.Unix(), 10)
	var sums []string
	for _, s := range secrets {
		key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(s, "whsec_"))
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.%s", d.id, stamp, d.body)
		sums = append(sums, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return post(d.body, "X-Gitlab-Event", d.event, "Webhook-Id", d.id, "Webhook-Timestamp", stamp, "Webhook-Signature", strings.Join(sums, " "),
		"Idempotency-Key", d.id)
}

// push is the body of a push, as GitHub and Gitea have it.
func push(repository, ref string) string {
	return fmt.Sprintf(`{"ref":%q,"before":"0000000000000000000000000000000000000000","repository":{"id":1,"full_name":%q,"private":true},"commits":[]}`, ref, repository)
}

// pull is the body of an event of a pull request, as GitHub and Gitea have it.
func pull(repository, head string) string {
	return fmt.Sprintf(`{"action":"opened","number":2,"pull_request":{"head":{"ref":%q},"base":{"ref":"main"}},"repository":{"full_name":%q}}`, head, repository)
}

// gitlabPush is the body of a push, as GitLab has it.
func gitlabPush(repository, ref string) string {
	return fmt.Sprintf(`{"object_kind":"push","event_name":"push","ref":%q,"project_id":15,"project":{"id":15,"path_with_namespace":%q},"repository":{"name":"workers"}}`, ref, repository)
}

// gitlabMerge is the body of an event of a merge request.
func gitlabMerge(repository, head string) string {
	return fmt.Sprintf(`{"object_kind":"merge_request","project":{"path_with_namespace":%q},"object_attributes":{"source_branch":%q,"target_branch":"main","action":"merge"}}`, repository, head)
}
