package githubapp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	gh "github.com/google/go-github/v88/github"

	"github.com/rampart-gitops/rampart/internal/httpclient"
)

// Error says that GitHub refused, or answered something that cannot be used.
type Error struct {
	Op      string // what was asked for
	URL     string
	Status  int    // of HTTP; zero: the answer cannot be read
	Message string // what GitHub said, on one line; may be empty
	Hint    string // what a person can do; may be empty
	// Limited says that the answer was to ask less often.
	Limited bool
}

// Refused reports whether GitHub refuses the App, or the repository is not there for it.
func (e *Error) Refused() bool {
	switch e.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return !e.Limited
	}
	return false
}

// Error says all of it.
func (e *Error) Error() string {
	s := e.Op + ": " + e.URL
	if e.Status != 0 {
		s += fmt.Sprintf(" answered %d %s", e.Status, http.StatusText(e.Status))
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

const (
	maxAnswer  = 1 << 20
	maxMessage = 300 // of what GitHub says, in an error
)

// bounded reads no more of an answer than maxAnswer.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(req)
	if err == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxAnswer)
	}
	return resp, err
}

// question is one request to the API.
type question struct {
	op    string
	hints map[int]string // by status
}

// findInstallation asks for the installation on the repository.
func (s *Source) findInstallation(ctx context.Context) (int64, error) {
	repo := s.cfg.Owner + "/" + s.cfg.Repo
	q := question{"find the GitHub App's installation", map[int]string{
		http.StatusNotFound: "install the App on " + repo + ", or check that the repository exists"}}
	found, at, err := ask(ctx, s, q, func(apps *gh.AppsService) (*gh.Installation, *gh.Response, error) {
		return apps.GetRepositoryInstallation(ctx, url.PathEscape(s.cfg.Owner), url.PathEscape(s.cfg.Repo))
	})
	if err == nil && found.GetID() <= 0 {
		err = &Error{Op: q.op, URL: at, Message: "the answer has no id"}
	}
	return found.GetID(), err
}

// exchange gets a token of the installation, for the one repository where that is known.
func (s *Source) exchange(ctx context.Context) (string, time.Time, error) {
	q := question{"get a token of the GitHub App", map[int]string{
		http.StatusNotFound:            "check the installation's ID, and that it is this App's",
		http.StatusForbidden:           "the installation may be suspended",
		http.StatusUnprocessableEntity: "check that the installation may see the repository",
	}}
	var options gh.InstallationTokenOptions
	if s.cfg.Repo != "" {
		options.Repositories = []string{s.cfg.Repo}
	}
	got, at, err := ask(ctx, s, q, func(apps *gh.AppsService) (*gh.InstallationToken, *gh.Response, error) {
		return apps.CreateInstallationToken(ctx, s.installation, &options)
	})
	if err == nil && (got.GetToken() == "" || got.GetExpiresAt().IsZero()) {
		err = &Error{Op: q.op, URL: at, Message: "the answer has no token, or no expires_at"}
	}
	return got.GetToken(), got.GetExpiresAt().Time, err
}

// ask puts a question as the App, with a proof of its own. It gives the address beside the answer.
func ask[T any](ctx context.Context, s *Source, q question,
	call func(*gh.AppsService) (T, *gh.Response, error)) (answer T, at string, err error) {
	proof, err := s.proof(ctx)
	if err != nil {
		return answer, "", err
	}
	base := s.base + "/"
	api, err := gh.NewClient(gh.WithHTTPClient(s.client), gh.WithURLs(&base, &base), gh.WithAuthToken(proof),
		gh.WithUserAgent("rampart"), gh.WithDisableRateLimitCheck())
	if err != nil {
		return answer, "", fmt.Errorf("%s: %w", q.op, err)
	}
	answer, resp, err := call(api.Apps)
	if err != nil {
		err = s.failed(ctx, q, resp, err)
		var refused *Error
		if errors.As(err, &refused) { // what was sent may be in what comes back
			refused.Message = httpclient.OneLine(strings.ReplaceAll(refused.Message, proof, "***"), maxMessage)
		}
		return answer, "", err
	}
	return answer, resp.Request.URL.String(), nil
}

// failed tells why there is no answer that can be used.
func (s *Source) failed(ctx context.Context, q question, resp *gh.Response, err error) error {
	var (
		timeout interface{ Timeout() bool }
		away    *httpclient.RedirectError
	)
	said := httpclient.Failure(err)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", q.op, context.Cause(ctx))
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("%s: %s did not answer within %s", q.op, s.base, answerTime)
	case errors.As(err, &away):
		said = away.Error()
	case said != "":
	case resp == nil:
		said = httpclient.OneLine(err.Error(), maxMessage)
	default:
		return unusable(q, resp)
	}
	return fmt.Errorf("%s: %s: %s", q.op, s.base, said)
}

// unusable says what an answer means that is not the one that GitHub documents. The library keeps the body of one with
// another status than 2xx.
func unusable(q question, resp *gh.Response) *Error {
	e := &Error{Op: q.op, URL: resp.Request.URL.String()}
	if resp.StatusCode >= 200 && resp.StatusCode <= 299 {
		// The decoder's error may repeat what it read.
		e.Message, e.Hint = "the answer is not the JSON that GitHub documents", "check the address of the API"
		return e
	}
	var said struct {
		Message string `json:"message"`
	}
	if body, err := io.ReadAll(resp.Body); err == nil {
		_ = json.Unmarshal(body, &said) // a page of something in between has no message
	}
	e.Status, e.Message, e.Hint = resp.StatusCode, said.Message, q.hints[resp.StatusCode]
	if e.Status == http.StatusUnauthorized {
		e.Hint = "check the App's ID and key, and this machine's clock"
	}
	// https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
	e.Limited = resp.Header.Get("Retry-After") != "" || resp.Header.Get("X-RateLimit-Remaining") == "0"
	return e
}
