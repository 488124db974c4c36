package githubapp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/internal/httpclient"
)

// DefaultBaseURL is GitHub's API. That of GitHub Enterprise Server is https://HOST/api/v3.
const DefaultBaseURL = "https://api.github.com"

// Config says which App, installed where. Printing it shows no secret: the key is a function.
type Config struct {
	// AppID is the App's ID or client ID. Required.
	AppID string
	// Key gives the App's private key in PEM (PKCS #1 or #8), each time that one is needed. Required.
	Key func(ctx context.Context) (string, error)
	// Installation is the installation's ID; zero: the one that has Owner/Repo is asked for.
	Installation int64
	// Owner and Repo name the repository that tokens are for. Required without Installation; with it, they may be left
	// out.
	Owner, Repo string
	// BaseURL of the API; "": DefaultBaseURL.
	BaseURL string
	// Transport carries the requests: proxies and authorities are its own. Required.
	Transport http.RoundTripper
	// Now gives the time. Required.
	Now func() time.Time
}

// Source gives tokens. Use New.
type Source struct {
	cfg    Config
	base   string
	client *forge.Client

	// turn is held by who looks at what follows. It is a channel so that waiting for it can be interrupted.
	turn         chan struct{}
	installation int64
	token        string
	ends         time.Time
}

// The times of tokens.
const (
	// early is how long before its end a token is renewed: what was begun with it is to end with it.
	early = 5 * time.Minute
	// proofLife is how long a JWT is good; GitHub takes none of more than ten minutes.
	proofLife = 5 * time.Minute
	// skew is how far GitHub's clock may be behind.
	skew = time.Minute
)

// New makes a source; it makes no request.
func New(cfg Config) (*Source, error) {
	switch {
	case cfg.AppID == "" || cfg.Key == nil || cfg.Transport == nil || cfg.Now == nil:
		return nil, errors.New("GitHub App: the App's ID, its key, a transport and a clock are required")
	case cfg.Installation == 0 && (cfg.Owner == "" || cfg.Repo == ""):
		return nil, errors.New("GitHub App: the installation's ID, or the repository that it is installed on, " +
			"is required")
	case cfg.Installation < 0:
		return nil, fmt.Errorf("GitHub App: want the ID of an installation, got %d", cfg.Installation)
	}
	base := strings.TrimRight(cfg.BaseURL, "/")
	if base == "" {
		base = DefaultBaseURL
	}
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" ||
		u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("GitHub App: the API's address is not of the form https://HOST/PATH")
	case u.Scheme == "http" && !httpclient.Loopback(u.Hostname()):
		return nil, fmt.Errorf("GitHub App: %s: credentials are not sent over plain HTTP: use https", base)
	}
	client, err := forge.NewClient(forge.Config{API: base, HTTP: &http.Client{Transport: cfg.Transport}, Now: cfg.Now,
		Repository: forge.Repository{Kind: forge.KindGitHub, Base: base, Owner: cfg.Owner, Name: cfg.Repo}}, nil)
	if err != nil {
		return nil, err
	}
	return &Source{cfg: cfg, base: base, client: client, turn: make(chan struct{}, 1),
		installation: cfg.Installation}, nil
}

// Token gives a token that is good for some minutes at least. One that could not be renewed in time is given while it
// is good at all. Errors: *forge.RefusedError, *forge.RateLimitError, *forge.UnavailableError; those of the key.
func (s *Source) Token(ctx context.Context) (string, error) {
	if err := s.take(ctx); err != nil {
		return "", err
	}
	defer s.give()
	now := s.cfg.Now()
	if s.token != "" && now.Before(s.ends.Add(-early)) {
		return s.token, nil
	}
	err := s.renew(ctx)
	switch {
	case err == nil:
		return s.token, nil
	case s.token != "" && now.Before(s.ends) && ctx.Err() == nil:
		return s.token, nil
	}
	return "", err
}

// Refused says that a server did not take a token: if it is the one there is, the next call of Token gets another. A
// token that was revoked, or whose installation's rights were changed, ends before its time.
func (s *Source) Refused(token string) {
	s.turn <- struct{}{} // held for one request at most, which is bounded
	defer s.give()
	if s.token == token {
		s.token = ""
	}
}

func (s *Source) take(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for a GitHub token: %w", context.Cause(ctx))
	}
}

func (s *Source) give() { <-s.turn }

// renew gets a token. An installation that is gone is looked for anew at the next try: the App may have been installed
// again.
func (s *Source) renew(ctx context.Context) error {
	if s.installation == 0 {
		id, err := s.findInstallation(ctx)
		if err != nil {
			return err
		}
		s.installation = id
	}
	token, ends, err := s.exchange(ctx)
	var refused *forge.RefusedError
	if errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		s.installation = s.cfg.Installation
	}
	if err != nil {
		return err
	}
	s.token, s.ends = token, ends
	return nil
}

// proof is the JWT that the App proves itself with.
func (s *Source) proof(ctx context.Context) (string, error) {
	text, err := s.cfg.Key(ctx)
	if err != nil {
		return "", fmt.Errorf("read the GitHub App's key: %w", err)
	}
	key, err := jwt.ParseRSAPrivateKeyFromPEM([]byte(text))
	if err != nil {
		return "", errors.New("read the GitHub App's key: want an RSA private key in PEM, as GitHub gives it")
	}
	now := s.cfg.Now()
	signed, err := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.RegisteredClaims{Issuer: s.cfg.AppID,
		IssuedAt: jwt.NewNumericDate(now.Add(-skew)), ExpiresAt: jwt.NewNumericDate(now.Add(proofLife))}).
		SignedString(key)
	if err != nil {
		return "", fmt.Errorf("sign with the GitHub App's key: %w", err)
	}
	return signed, nil
}
