package githubapp

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/keytest"
)

// github keeps state as GitHub does: it checks the App's proof, knows where the App is installed, and gives tokens of
// an hour.
type github struct {
	t   *testing.T
	url string
	key *rsa.PrivateKey
	pem string

	mu           sync.Mutex
	now          time.Time
	installation int64
	given        int
	asked        []string
	answer       func(w http.ResponseWriter, r *http.Request) bool // in place of the usual one
}

const appID = "Iv1.app"

func newGitHub(t *testing.T) *github {
	t.Helper()
	g := &github{t: t, now: time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC), installation: 42}
	g.key, g.pem = keytest.RSA(t)
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	g.url = server.URL + "/api/v3"
	return g
}

func (g *github) clock() time.Time { g.mu.Lock(); defer g.mu.Unlock(); return g.now }

func (g *github) pass(d time.Duration) { g.mu.Lock(); defer g.mu.Unlock(); g.now = g.now.Add(d) }

func (g *github) requests() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string{}, g.asked...)
}

func (g *github) config() Config {
	return Config{AppID: appID, Key: func(context.Context) (string, error) { return g.pem, nil }, Owner: "acme", Repo: "workers",
		BaseURL: g.url + "/", Transport: http.DefaultTransport, Now: g.clock}
}

func (g *github) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, r.Method+" "+r.URL.Path)
	if g.answer != nil && g.answer(w, r) {
		return
	}
	say := func(code int, body any) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(body)
	}
	if err := g.prove(r); err != nil {
		say(http.StatusUnauthorized, map[string]string{"message": err.Error()})
		return
	}
	tokens := fmt.Sprintf("/api/v3/app/installations/%d/access_tokens", g.installation)
	switch r.Method + " " + r.URL.Path {
	case "GET /api/v3/repos/acme/workers/installation":
		say(http.StatusOK, map[string]any{"id": g.installation, "app_id": 7})
	case "POST " + tokens:
		var body struct{ Repositories []string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Repositories != nil && !slices.Equal(body.Repositories, []string{"workers"}) {
			say(http.StatusUnprocessableEntity, map[string]string{"message": "There is at least one repository that does not exist"})
			return
		}
		g.given++
		say(http.StatusCreated, map[string]any{"token": fmt.Sprintf("ghs_%d", g.given), "expires_at": g.now.Add(time.Hour).Format(time.RFC3339)})
	default:
		say(http.StatusNotFound, map[string]string{"message": "Not Found"})
	}
}

// prove checks a JWT by GitHub's documented rules, and the headers.
func (g *github) prove(r *http.Request) error {
	text, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || r.Header.Get("Accept") != "application/vnd.github.v3+json" || r.Header.Get("X-GitHub-Api-Version") == "" {
		return errors.New("headers")
	}
	var claims jwt.RegisteredClaims
	_, err := jwt.ParseWithClaims(text, &claims, func(*jwt.Token) (any, error) { return &g.key.PublicKey, nil },
		jwt.WithValidMethods([]string{"RS256"}), jwt.WithIssuer(appID), jwt.WithExpirationRequired(), jwt.WithIssuedAt(),
		jwt.WithTimeFunc(func() time.Time { return g.now }))
	if err == nil && claims.ExpiresAt.Sub(g.now) > 10*time.Minute {
		err = errors.New("'Expiration time' claim ('exp') is too far in the future")
	}
	return err
}

func newSource(t *testing.T, cfg Config) *Source {
	t.Helper()
	s, err := New(cfg)
	require.NoError(t, err)
	return s
}

func token(t *testing.T, s *Source) string {
	t.Helper()
	got, err := s.Token(t.Context())
	require.NoError(t, err)
	return got
}

const (
	find     = "GET /api/v3/repos/acme/workers/installation"
	exchange = "POST /api/v3/app/installations/42/access_tokens"
)

func TestTokensAreKeptAndRenewedBeforeTheyEnd(t *testing.T) {
	g := newGitHub(t)
	s := newSource(t, g.config())
	require.Equal(t, "ghs_1", token(t, s))
	require.Equal(t, "ghs_1", token(t, s))
	g.pass(time.Hour - early - time.Second)
	require.Equal(t, "ghs_1", token(t, s))
	g.pass(time.Second)
	require.Equal(t, "ghs_2", token(t, s), "five minutes before the end")
	require.Equal(t, []string{find, exchange, exchange}, g.requests(), "the installation is looked for once")
}

func TestInstallationMayBeGiven(t *testing.T) {
	g := newGitHub(t)
	cfg := g.config()
	cfg.Installation, cfg.Owner, cfg.Repo = 42, "", ""
	require.Equal(t, "ghs_1", token(t, newSource(t, cfg)))
	require.Equal(t, []string{exchange}, g.requests())
}

func TestKeysInEitherForm(t *testing.T) {
	g := newGitHub(t)
	der, err := x509.MarshalPKCS8PrivateKey(g.key)
	require.NoError(t, err)
	cfg := g.config()
	cfg.Key = func(context.Context) (string, error) {
		return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), nil
	}
	require.Equal(t, "ghs_1", token(t, newSource(t, cfg)))
}

func TestRefusedTokenIsReplaced(t *testing.T) {
	g := newGitHub(t)
	s := newSource(t, g.config())
	old := token(t, s)
	s.Refused("another")
	require.Equal(t, old, token(t, s), "it is about another one")
	s.Refused(old)
	require.Equal(t, "ghs_2", token(t, s))
	s.Refused(old)
	require.Equal(t, "ghs_2", token(t, s), "the news is old")
}

func TestGitHubAwayAtRenewal(t *testing.T) {
	g := newGitHub(t)
	s := newSource(t, g.config())
	require.Equal(t, "ghs_1", token(t, s))
	g.answer = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusBadGateway); return true }
	g.pass(time.Hour - time.Minute)
	require.Equal(t, "ghs_1", token(t, s), "it is good for another minute")
	g.pass(time.Minute)
	_, err := s.Token(t.Context())
	require.ErrorContains(t, err, "unavailable (HTTP 502): Bad Gateway")
}

func TestReinstalledAppIsFound(t *testing.T) {
	g := newGitHub(t)
	s := newSource(t, g.config())
	token(t, s)
	g.mu.Lock()
	g.installation = 43
	g.mu.Unlock()
	g.pass(time.Hour)
	_, err := s.Token(t.Context())
	require.ErrorContains(t, err, "check the installation's ID")
	require.Equal(t, "ghs_2", token(t, s))
}

func TestManyAskOnce(t *testing.T) {
	g := newGitHub(t)
	s := newSource(t, g.config())
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if got, err := s.Token(t.Context()); err != nil || got != "ghs_1" {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	all.Wait()
	require.Equal(t, []string{find, exchange}, g.requests())
}

func TestWaitingCanBeInterrupted(t *testing.T) {
	s := newSource(t, newGitHub(t).config())
	require.NoError(t, s.take(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Token(ctx)
	require.ErrorIs(t, err, context.Canceled)
	s.give()
}

// What goes wrong is told with what to do about it, and without a secret, also when a server repeats what it was sent.
func TestErrorsSayWhatToDoAndNoSecret(t *testing.T) {
	g := newGitHub(t)
	_, wrong := keytest.RSA(t)
	key := func(text string, err error) func(*Config) {
		return func(c *Config) { c.Key = func(context.Context) (string, error) { return text, err } }
	}
	answer := func(code int, body string) func(*Config) {
		return func(*Config) {
			g.answer = func(w http.ResponseWriter, r *http.Request) bool {
				w.WriteHeader(code)
				fmt.Fprint(w, strings.ReplaceAll(body, "ECHO", r.Header.Get("Authorization")))
				return true
			}
		}
	}
	for name, c := range map[string]struct {
		change func(*Config)
		says   string
	}{
		"another key":          {key(wrong, nil), "check the App's ID and key, and this machine's clock"},
		"no key":               {key("", errors.New("vault is sealed")), "vault is sealed"},
		"nonsense as key":      {key("hunter2", nil), "an RSA private key in PEM"},
		"another App":          {func(c *Config) { c.AppID = "Iv1.other" }, "check the App's ID"},
		"not installed":        {func(c *Config) { c.Repo = "elsewhere" }, "install the App on acme/elsewhere"},
		"another installation": {func(c *Config) { c.Installation = 7 }, "check the installation's ID"},
		"not its repository":   {func(c *Config) { c.Installation, c.Repo = 42, "elsewhere" }, "may see the repository"},
		"a slow clock":         {func(c *Config) { c.Now = func() time.Time { return g.clock().Add(-time.Hour) } }, "this machine's clock"},
		"a web page":           {answer(200, "<html>hunter2"), "not the JSON"},
		"an empty object":      {answer(200, "{}"), "has no id"},
		"no token":             {func(c *Config) { c.Installation = 42; answer(201, `{"token":"hunter2"}`)(c) }, "no expires_at"},
		"a proxy's page":       {answer(503, "<html>ECHO"), "unavailable (HTTP 503)"},
		"an echo":              {answer(400, `{"message":"what is ECHO?\u001b[2J"}`), "what is"},
		"a redirect":           {func(*Config) { g.answer = away }, "redirects to http://localhost:1"},
		"nobody there":         {func(c *Config) { c.BaseURL = "http://127.0.0.1:1" }, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			g.answer = nil
			cfg := g.config()
			c.change(&cfg)
			_, err := newSource(t, cfg).Token(t.Context())
			require.ErrorContains(t, err, c.says)
			for _, secret := range []string{"hunter2", "Bearer ey", "eyJ", "PRIVATE KEY", "\x1b"} {
				require.NotContains(t, err.Error(), secret)
			}
		})
	}
}

// Who is refused is told from who is to ask less often, which is done.
func TestRefusedIsToldFromLimited(t *testing.T) {
	for name, c := range map[string]struct {
		status  int
		header  string
		refused bool
	}{
		"no proof": {401, "", true}, "suspended": {403, "", true}, "gone": {404, "", true},
		"too often": {403, "Retry-After", false}, "broken": {500, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGitHub(t)
			g.answer = func(w http.ResponseWriter, _ *http.Request) bool {
				if c.header != "" {
					w.Header().Set(c.header, "60")
				}
				w.WriteHeader(c.status)
				return true
			}
			s := newSource(t, g.config())
			_, err := s.Token(t.Context())
			require.Error(t, err)
			var issuer interface{ Refused() bool }
			require.Equal(t, c.refused, errors.As(err, &issuer) && issuer.Refused(), "%v", err)
			_, again := s.Token(t.Context())
			require.Error(t, again)
			require.Len(t, g.requests(), map[bool]int{true: 1, false: 2}[c.header != ""], "%v", again)
		})
	}
}

func away(w http.ResponseWriter, r *http.Request) bool {
	http.Redirect(w, r, "http://localhost:1/x", http.StatusFound)
	return true
}

func TestConfigsThatCannotWork(t *testing.T) {
	for says, change := range map[string]func(*Config){
		"required":               func(c *Config) { c.AppID = "" },
		"a clock are required":   func(c *Config) { c.Now = nil },
		"that it is installed":   func(c *Config) { c.Repo = "" },
		"the ID of an install":   func(c *Config) { c.Installation = -1 },
		"use https":              func(c *Config) { c.BaseURL = "http://github.example.com/api/v3" },
		"not of the form":        func(c *Config) { c.BaseURL = "https://me:hunter2@github.example.com" },
		"of the form https://HO": func(c *Config) { c.BaseURL = "github.example.com" },
	} {
		cfg := newGitHub(t).config()
		change(&cfg)
		_, err := New(cfg)
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "hunter2")
	}
}
