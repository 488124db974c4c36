package webhook

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

const (
	looks    = "the bot looks"
	unproven = "the delivery is not signed with a secret that is known here"
	before   = "ignored: it was there before"
)

// The signatures that the documentations give for their examples are accepted, and none that differs by a bit.
func TestDocumentedSignatures(t *testing.T) {
	t.Run("github", func(t *testing.T) {
		// https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
		d := newFixture(t, secretGitHub)
		r := post("Hello, World!", "X-GitHub-Event", "push",
			"X-Hub-Signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17")
		require.Equal(t, result{202, looks, 1}, d.send(r))
		r = post("Hello, World?", "X-GitHub-Event", "push",
			"X-Hub-Signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17")
		require.Equal(t, result{401, unproven, 0}, d.send(r))
	})
	t.Run("standard webhooks", func(t *testing.T) {
		// The reference libraries' test of signing, https://github.com/standard-webhooks/standard-webhooks
		d := newFixture(t, secretStandard)
		d.at(time.Unix(1614265330, 0).Add(4 * time.Minute))
		headers := []string{"Webhook-Id", "msg_p5jXN8AQM9LWM0D4loKWxJek", "Webhook-Timestamp", "1614265330",
			"Webhook-Signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}
		require.Equal(t, result{401, unproven, 0}, d.send(post(`{"test": 2432232315}`, headers...)))
		require.Equal(t, result{202, looks, 1}, d.send(post(`{"test": 2432232314}`, headers...)))
	})
}

// Each forge wakes the bot by a push to a branch that is watched, and by its proposals.
func TestEachForgeWakesTheBot(t *testing.T) {
	main, proposal := "refs/heads/main", "rampart/prod/shop/checkout"
	for name, c := range map[string]struct {
		request *http.Request
		log     string
	}{
		"github push":         {delivery{"push", "a", push("team/workers", main), secretOther}.github(), "forge=github event=push delivery=a proof=hmac"},
		"github pull":         {delivery{"pull_request", "a", pull("Team/Workers", proposal), secretOther}.github(), "forge=github event=pull_request"},
		"github review":       {delivery{"pull_request_review", "a", pull("team/workers", proposal), secretOther}.github(), "event=pull_request_review"},
		"gitea push":          {delivery{"push", "b", push("team/workers", main), secretOther}.gitea(), "forge=gitea event=push delivery=b proof=hmac"},
		"gitea delete":        {delivery{"delete", "b", `{"ref":"` + proposal + `","ref_type":"branch"}`, secretOther}.gitea(), "forge=gitea event=delete"},
		"gitea approval":      {delivery{"pull_request_approved", "b", pull("team/workers", proposal), secretOther}.gitea(), "event=pull_request_approved"},
		"forgejo push":        {delivery{"push", "c", push("team/workers", main), secretOther}.forgejo(), "forge=forgejo event=push delivery=c proof=hmac"},
		"gitlab push":         {delivery{"Push Hook", "d", gitlabPush("team/workers", main), secretOther}.gitlab(), `forge=gitlab event="Push Hook" delivery=d proof=token`},
		"gitlab merge":        {delivery{"Merge Request Hook", "d", gitlabMerge("team/workers", proposal), secretOther}.gitlab(), `event="Merge Request Hook"`},
		"gitlab signed":       {delivery{event: "Push Hook", id: "e", body: gitlabPush("team/workers", main)}.signed(noon, secretStandard), "forge=gitlab event=\"Push Hook\" delivery=e proof=standard-webhooks"},
		"gitlab system":       {delivery{"System Hook", "d", gitlabPush("team/workers", main), secretOther}.gitlab(), `event="System Hook"`},
		"anybody":             {post("", "X-Hub-Signature-256", sumOf(secretOther, "")), `forge="" event="" delivery="" proof=hmac`},
		"anybody, in a form":  {post(`{"ref":"refs/heads/deploy"}`, "X-Hub-Signature-256", "sha256="+sumOf(secretOther, `{"ref":"refs/heads/deploy"}`)), "ref=refs/heads/deploy"},
		"not even JSON":       {delivery{"push", "a", `{"ref":`, secretOther}.github(), "event=push"},
		"JSON of other types": {delivery{"push", "a", `{"ref":5,"repository":[]}`, secretOther}.github(), "event=push"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFixture(t, secretOther, secretStandard)
			require.Equal(t, result{202, looks, 1}, d.send(c.request))
			require.Contains(t, d.log.String(), "level=INFO msg=webhook ")
			require.Contains(t, d.log.String(), c.log)
			require.NotContains(t, d.log.String(), secretOther)
		})
	}
}

// A request that is not a delivery, or has no proof, is refused, with the reason in the log and no secret anywhere.
func TestDeliveriesWithoutProofAreRefused(t *testing.T) {
	good := delivery{"push", "a", push("team/workers", "refs/heads/main"), secretOther}
	change := func(r *http.Request, headers ...string) *http.Request {
		for i := 0; i < len(headers); i += 2 {
			if r.Header.Del(headers[i]); headers[i+1] != "" {
				r.Header.Set(headers[i], headers[i+1])
			}
		}
		return r
	}
	get := good.github()
	get.Method = http.MethodGet
	lies := good.github() // about its length
	lies.ContentLength = MaxBody + 1
	large := post("", "X-Hub-Signature-256", sumOf(secretOther, ""))
	large.Body, large.ContentLength = io.NopCloser(io.LimitReader(zeros{}, MaxBody+1)), -1
	cut := good.github()
	cut.Body = io.NopCloser(io.MultiReader(strings.NewReader("{"), broken{}))
	standard := delivery{event: "Push Hook", id: "e", body: good.body}
	for name, c := range map[string]struct {
		request *http.Request
		want    result
		log     string
	}{
		"not a POST":          {get, result{405, "a delivery is a POST", 0}, "status=405"},
		"a form":              {change(good.github(), "Content-Type", "application/x-www-form-urlencoded"), result{415, "set the webhook's content type to application/json", 0}, "status=415"},
		"no type":             {change(good.github(), "Content-Type", ""), result{415, "set the webhook's content type to application/json", 0}, "status=415"},
		"compressed":          {change(good.github(), "Content-Encoding", "gzip"), result{415, "a delivery is not compressed", 0}, "status=415"},
		"says it is large":    {lies, result{413, "the delivery is too large", 0}, "status=413"},
		"is large":            {large, result{413, "the delivery is too large", 0}, "status=413"},
		"cut off":             {cut, result{400, "the delivery was cut off", 0}, "unexpected EOF"},
		"no signature":        {change(good.github(), "X-Hub-Signature-256", "", "X-Hub-Signature", ""), result{401, unproven, 0}, "no proof by any secret"},
		"SHA-1 only":          {change(good.github(), "X-Hub-Signature-256", ""), result{401, unproven, 0}, "no proof by any secret"},
		"empty signature":     {change(good.gitea(), "X-Hub-Signature-256", "sha256="), result{401, unproven, 0}, "does the forge's webhook have a secret?"},
		"signature cut":       {change(good.github(), "X-Hub-Signature-256", "sha256=7571"), result{401, unproven, 0}, "a SHA-256 in hex"},
		"wrong secret":        {delivery{good.event, good.id, good.body, "0123456789abcdef0123456789abcdee"}.github(), result{401, unproven, 0}, "the signature is wrong"},
		"body changed":        {post(good.body+" ", "X-Hub-Signature-256", sumOf(secretOther, good.body)), result{401, unproven, 0}, "the signature is wrong"},
		"wrong token":         {delivery{"Push Hook", "a", good.body, "another token that is long"}.gitlab(), result{401, unproven, 0}, "no proof by any secret"},
		"start of the token":  {delivery{"Push Hook", "a", good.body, secretOther[:16]}.gitlab(), result{401, unproven, 0}, "no proof by any secret"},
		"no token":            {delivery{"Push Hook", "a", good.body, ""}.gitlab(), result{401, unproven, 0}, "no proof by any secret"},
		"signed long ago":     {standard.signed(noon.Add(-6*time.Minute), secretStandard), result{401, unproven, 0}, "6m0s off"},
		"signed in future":    {standard.signed(noon.Add(6*time.Minute), secretStandard), result{401, unproven, 0}, "-6m0s off"},
		"another time":        {change(standard.signed(noon, secretStandard), "Webhook-Timestamp", "1772366401"), result{401, unproven, 0}, "the signature is wrong"},
		"another ID":          {change(standard.signed(noon, secretStandard), "Webhook-Id", "f"), result{401, unproven, 0}, "the signature is wrong"},
		"no ID":               {change(standard.signed(noon, secretStandard), "Webhook-Id", ""), result{401, unproven, 0}, "Webhook-Id is missing"},
		"ID with a dot":       {change(standard.signed(noon, secretStandard), "Webhook-Id", "e.5"), result{401, unproven, 0}, "has a dot in it"},
		"no time":             {change(standard.signed(noon, secretStandard), "Webhook-Timestamp", ""), result{401, unproven, 0}, "a time in seconds"},
		"asymmetric only":     {change(standard.signed(noon, secretStandard), "Webhook-Signature", "v1a,AAAA"), result{401, unproven, 0}, "no signature of version v1"},
		"token beside stale":  {change(standard.signed(noon.Add(-time.Hour), secretStandard), "X-Gitlab-Token", secretOther), result{401, unproven, 0}, "off"},
		"token for a wrong":   {change(delivery{good.event, good.id, good.body, "0123456789abcdef0123456789abcdee"}.github(), "X-Gitlab-Token", secretOther), result{401, unproven, 0}, "the signature is wrong"},
		"plain key, standard": {standard.signed(noon, secretOther), result{401, unproven, 0}, "the signature is wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFixture(t, secretOther, secretStandard)
			require.Equal(t, c.want, d.send(c.request))
			require.Contains(t, d.log.String(), `level=WARN msg="webhook refused"`)
			require.Contains(t, d.log.String(), c.log)
			require.NotContains(t, d.log.String(), secretOther)
			require.NotContains(t, d.log.String(), strings.TrimPrefix(secretStandard, "whsec_"))
		})
	}
}

// Where nothing has to be proven nothing is looked at of what could be a proof.
func TestUnsigned(t *testing.T) {
	d := newFixture(t)
	require.Equal(t, result{202, looks, 1}, d.send(post("{}", "X-GitHub-Event", "push", "X-GitHub-Delivery", "a")))
	require.Equal(t, result{200, before, 0}, d.send(post("{}", "X-GitHub-Event", "push", "X-GitHub-Delivery", "a")))
	require.Equal(t, result{202, looks, 1}, d.send(post("{}", "X-GitHub-Event", "push", "X-GitHub-Delivery", "b")))
	require.Equal(t, result{202, looks, 1}, d.send(post("{}")))
	require.Equal(t, result{202, looks, 1}, d.send(post("{}")))
}

// zeros never end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// broken is a body whose sender went away.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// A delivery that comes again does nothing, from any sender: what is signed is what tells it from others.
func TestReplays(t *testing.T) {
	one := delivery{"push", "1", push("team/workers", "refs/heads/main"), secretOther}
	renamed, other := one, one
	renamed.id = "2"
	other.body = push("team/workers", "refs/heads/deploy")
	merge := delivery{"Merge Request Hook", "1", gitlabMerge("team/workers", "rampart/x"), secretOther}
	again := merge
	again.id = "2"
	standard := delivery{event: "Push Hook", id: "1", body: one.body}
	for name, c := range map[string]struct {
		requests []*http.Request
		want     []result
	}{
		"the same":                   {[]*http.Request{one.github(), one.github()}, []result{{202, looks, 1}, {200, before, 0}}},
		"by another ID":              {[]*http.Request{one.github(), renamed.github()}, []result{{202, looks, 1}, {200, before, 0}}},
		"as another forge's":         {[]*http.Request{one.github(), one.forgejo()}, []result{{202, looks, 1}, {200, before, 0}}},
		"another push":               {[]*http.Request{one.github(), other.github()}, []result{{202, looks, 1}, {202, looks, 1}}},
		"token, retry":               {[]*http.Request{merge.gitlab(), merge.gitlab()}, []result{{202, looks, 1}, {200, before, 0}}},
		"token, same event twice":    {[]*http.Request{merge.gitlab(), again.gitlab()}, []result{{202, looks, 1}, {202, looks, 1}}},
		"signed, retried a bit late": {[]*http.Request{standard.signed(noon, secretStandard), standard.signed(noon.Add(time.Minute), secretStandard)}, []result{{202, looks, 1}, {200, before, 0}}},
		"refused before":             {[]*http.Request{post(one.body, "X-Hub-Signature-256", sumOf("who", one.body)), one.github()}, []result{{401, unproven, 0}, {202, looks, 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFixture(t, secretOther, secretStandard)
			var got []result
			for _, r := range c.requests {
				got = append(got, d.send(r))
			}
			require.Empty(t, cmp.Diff(c.want, got))
		})
	}
	t.Run("too old to be remembered", func(t *testing.T) {
		d := newFixture(t, secretOther, secretStandard)
		require.Equal(t, int64(1), d.send(one.github()).Rung)
		require.Equal(t, int64(1), d.send(standard.signed(noon, secretStandard)).Rung)
		d.at(noon.Add(rememberedFor + time.Second))
		require.Equal(t, int64(1), d.send(one.github()).Rung, "it costs a cycle")
		require.Equal(t, 401, d.send(standard.signed(noon, secretStandard)).Status, "where the time is signed not even that")
	})
}

// Secrets are read anew for each delivery: old and new ones count together while they are changed.
func TestOldAndNewSecretsCountTogether(t *testing.T) {
	d := newFixture(t, secretOther)
	n := 0
	by := func(secret string) int {
		n++
		return d.send(delivery{"push", "a", strings.Repeat(" ", n), secret}.github()).Status
	}
	require.Equal(t, []int{202, 401}, []int{by(secretOther), by(secretGitHub)})
	d.keys(secretGitHub, "", secretOther+"\r")
	require.Equal(t, []int{202, 202}, []int{by(secretOther), by(secretGitHub)})
	both := delivery{event: "Push Hook", id: "x", body: "{}"}.signed(noon, "whsec_b3RoZXIga2V5IG9mIHRoZSBmb3JnZQ==", secretStandard)
	require.Equal(t, 401, d.send(both).Status)
	d.keys(secretGitHub, secretStandard)
	require.Equal(t, []int{401, 202}, []int{by(secretOther), by(secretGitHub)})
	both = delivery{event: "Push Hook", id: "x", body: "{}"}.signed(noon, "whsec_b3RoZXIga2V5IG9mIHRoZSBmb3JnZQ==", secretStandard)
	require.Equal(t, 202, d.send(both).Status, "the forge signs with both")

	for name, text := range map[string]string{"too short": "hunter2-hunter2", "empty": "\n\n", "no base64": "whsec_hunter2hunter2!!!",
		"too many": strings.Repeat(secretOther+"\n", mostSecrets+1)} {
		d.keys(text)
		require.Equal(t, result{500, "the bot cannot read its webhook secrets", 0}, d.send(delivery{"push", "a", name, secretGitHub}.github()), name)
	}
	require.NotContains(t, d.log.String(), "hunter2")
	require.NotContains(t, d.log.String(), secretOther)
}

// Secrets that cannot be used are said at once.
func TestSecretsAtTheStart(t *testing.T) {
	away := errors.New("away")
	for name, c := range map[string]struct {
		text string
		err  error
		says string
	}{
		"away":      {"", away, "read the webhook secrets: away"},
		"empty":     {" \n", nil, "there is no webhook secret: write one in a line, made with openssl rand -hex 32"},
		"short":     {secretOther + "\nhunter2\n", nil, "the webhook secret in line 2 has 7 characters, and 16 are the least: make one with openssl rand -hex 32"},
		"no base64": {"whsec_hunter2hunter2!!!", nil, "the webhook secret in line 1 begins with whsec_, and is not base64 behind it: copy GitLab's signing token whole"},
		"too many":  {strings.Repeat(secretOther+"\n", mostSecrets+1), nil, "there are more than 8 webhook secrets: take out those that no forge uses any more"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewHandler(t.Context(), Config{Secrets: func(context.Context) (string, error) { return c.text, c.err }})
			require.EqualError(t, err, c.says)
		})
	}
}

// Deliveries that come together each get an answer; the same one counts once.
func TestConcurrentDeliveriesCountOnce(t *testing.T) {
	d := newFixture(t, secretOther)
	var all sync.WaitGroup
	for range 8 {
		for i := range 20 {
			all.Go(func() {
				d.send(delivery{"push", "a", strings.Repeat(" ", i), secretOther}.github())
			})
		}
	}
	all.Wait()
	require.Equal(t, int64(20), d.rung.Load())
}

// A body that is too large to be looked at still counts if its proof holds, and is not kept.
func TestLargeBody(t *testing.T) {
	body := `{"commits":"` + strings.Repeat("x", kept) + `","ref":"refs/heads/nobody"}`
	require.Equal(t, result{202, looks, 1}, newFixture(t, secretOther).send(delivery{"push", "a", body, secretOther}.github()))
	require.Equal(t, int64(0), newFixture(t, secretOther).send(delivery{"push", "a", body[len(body)-kept/2:], "who"}.github()).Rung)

	var h head
	n, err := io.Copy(&h, io.LimitReader(zeros{}, 20<<20))
	require.NoError(t, err)
	require.Equal(t, int64(20<<20), n)
	require.LessOrEqual(t, h.text.Cap(), 2*kept)
	require.Empty(t, h.all())
}

// Refusals that anybody can cause do not fill the log.
func TestRefusalsInTheLog(t *testing.T) {
	d := newFixture(t, secretOther)
	for range 100 {
		d.send(post("{}"))
	}
	require.Equal(t, 10, strings.Count(d.log.String(), "level=WARN"))
	require.Equal(t, 90, strings.Count(d.log.String(), "level=DEBUG"))
}

// Whatever comes, no more than one ring follows, and none without a proof; nothing panics.
func FuzzDelivery(f *testing.F) {
	for _, d := range []delivery{
		{"push", "a", push("team/workers", "refs/heads/main"), secretOther}, {"pull_request", "a", pull("a/b", "rampart/x"), secretOther},
		{"Push Hook", "a", gitlabPush("team/workers", "refs/tags/v1"), secretOther}, {"System Hook", "a", gitlabMerge("team/workers", "x"), secretOther},
	} {
		for _, r := range []*http.Request{d.github(), d.gitea(), d.forgejo(), d.gitlab(), d.signed(noon, secretStandard)} {
			var headers bytes.Buffer
			if err := r.Header.Write(&headers); err != nil {
				f.Fatal(err)
			}
			f.Add(headers.String(), []byte(d.body))
		}
	}
	f.Fuzz(func(t *testing.T, headers string, body []byte) {
		r := post(string(body))
		for line := range strings.Lines(headers) {
			name, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ": ")
			r.Header.Add(name, value)
		}
		proven := false
		for _, values := range r.Header {
			for _, v := range values {
				if sum, err := hex.DecodeString(strings.TrimPrefix(v, "sha256=")); err == nil && hex.EncodeToString(sum) == sumOf(secretOther, string(body)) || v == secretOther {
					proven = true
				}
			}
		}
		d := newFixture(t, secretOther)
		d.handler.cfg.Log = slog.New(slog.NewJSONHandler(&d.log, nil))
		got := d.send(r)
		require.LessOrEqual(t, got.Rung, int64(1))
		if got.Rung > 0 {
			require.True(t, proven, "%s\n%s", headers, body)
			require.Equal(t, 202, got.Status)
		}
	})
}
