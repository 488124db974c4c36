package githubapp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

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
	apiVersion = "2022-11-28"
)

// question is one request to the API.
type question struct {
	op, method, path string
	body             any
	hints            map[int]string // by status
}

// findInstallation asks for the installation on the repository.
// https://docs.github.com/en/rest/apps/apps#get-a-repository-installation-for-the-authenticated-app
func (s *Source) findInstallation(ctx context.Context) (int64, error) {
	repo := s.cfg.Owner + "/" + s.cfg.Repo
	q := question{op: "find the GitHub App's installation", method: http.MethodGet,
		path: "/repos/" + url.PathEscape(s.cfg.Owner) + "/" + url.PathEscape(s.cfg.Repo) + "/installation",
		hints: map[int]string{http.StatusNotFound: "install the App on " + repo +
			", or check that the repository exists"}}
	var answer struct {
		ID int64 `json:"id"`
	}
	if err := s.ask(ctx, q, &answer); err != nil {
		return 0, err
	}
	if answer.ID <= 0 {
		return 0, &Error{Op: q.op, URL: s.base + q.path, Message: "the answer has no id"}
	}
	return answer.ID, nil
}

// exchange gets a token of the installation, for the one repository where that is known.
// https://docs.github.com/en/rest/apps/apps#create-an-installation-access-token-for-an-app
func (s *Source) exchange(ctx context.Context) (string, time.Time, error) {
	q := question{op: "get a token of the GitHub App", method: http.MethodPost,
		path: fmt.Sprintf("/app/installations/%d/access_tokens", s.installation),
		hints: map[int]string{
			http.StatusNotFound:            "check the installation's ID, and that it is this App's",
			http.StatusForbidden:           "the installation may be suspended",
			http.StatusUnprocessableEntity: "check that the installation may see the repository",
		}}
	if s.cfg.Repo != "" {
		q.body = map[string][]string{"repositories": {s.cfg.Repo}}
	}
	var answer struct {
		Token     string    `json:"token"`
		ExpiresAt time.Time `json:"expires_at"`
	}
	if err := s.ask(ctx, q, &answer); err != nil {
		return "", time.Time{}, err
	}
	if answer.Token == "" || answer.ExpiresAt.IsZero() {
		return "", time.Time{}, &Error{Op: q.op, URL: s.base + q.path,
			Message: "the answer has no token, or no expires_at"}
	}
	return answer.Token, answer.ExpiresAt, nil
}

// ask sends a request as the App and decodes the answer.
func (s *Source) ask(ctx context.Context, q question, answer any) error {
	req, err := s.request(ctx, q)
	if err != nil {
		return err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return s.failed(ctx, q, err)
	}
	defer func() { _ = resp.Body.Close() }() // it was read as far as it counts
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return s.failed(ctx, q, err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		e := s.refusal(q, resp.StatusCode, data)
		// https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
		e.Limited = resp.Header.Get("Retry-After") != "" || resp.Header.Get("X-RateLimit-Remaining") == "0"
		// What was sent may be in what comes back.
		e.Message = httpclient.OneLine(strings.ReplaceAll(e.Message,
			strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer "), "***"), maxMessage)
		return e
	}
	if err := json.Unmarshal(data, answer); err != nil {
		// The decoder's error may repeat what it read.
		return &Error{Op: q.op, URL: s.base + q.path, Message: "the answer is not the JSON that GitHub documents",
			Hint: "check the address of the API"}
	}
	return nil
}

func (s *Source) request(ctx context.Context, q question) (*http.Request, error) {
	proof, err := s.proof(ctx)
	if err != nil {
		return nil, err
	}
	var body io.Reader = http.NoBody
	if q.body != nil {
		data, err := json.Marshal(q.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, q.method, s.base+q.path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/vnd.github+json")
	req.Header.Set("Authorization", "Bearer "+proof)
	req.Header.Set("User-Agent", "rampart")
	req.Header.Set("X-GitHub-Api-Version", apiVersion)
	if q.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// refusal says what an answer with another status than 2xx means.
func (s *Source) refusal(q question, status int, data []byte) *Error {
	var said struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(data, &said) // a page of something in between has no message
	e := &Error{Op: q.op, URL: s.base + q.path, Status: status, Message: said.Message, Hint: q.hints[status]}
	if status == http.StatusUnauthorized {
		e.Hint = "check the App's ID and key, and this machine's clock"
	}
	return e
}

// failed tells why there is no answer.
func (s *Source) failed(ctx context.Context, q question, err error) error {
	var timeout interface{ Timeout() bool }
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", q.op, context.Cause(ctx))
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("%s: %s did not answer within %s", q.op, s.base, answerTime)
	}
	said := httpclient.Failure(err)
	var away *httpclient.RedirectError
	if errors.As(err, &away) {
		said = away.Error()
	}
	if said == "" {
		said = httpclient.OneLine(err.Error(), maxMessage)
	}
	return fmt.Errorf("%s: %s: %s", q.op, s.base, said)
}
