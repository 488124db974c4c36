package forge

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const token = "s3cret/token+"

func bearer(token string) (string, string) { return "Authorization", "Bearer " + token }

// server is a forge that answers so.
func server(t *testing.T, answer http.HandlerFunc) (*Client, *time.Time) {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	now := time.Unix(1_700_000_000, 0)
	c, err := NewClient(Config{
		Repository: Repository{KindGitea, s.URL, "acme", "workers"},
		Token:      func(context.Context) (string, error) { return token, nil }, Now: func() time.Time { return now },
	}, bearer)
	require.NoError(t, err)
	return c, &now
}

func (c *Client) try(t *testing.T, method, path string) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, c.config.Repository.API()+path, strings.NewReader("what is sent"))
	require.NoError(t, err)
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return "", c.Fail(Failure{Op: "try", Err: err})
	}
	defer func() { require.NoError(t, resp.Body.Close()) }()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= http.StatusBadRequest {
		return "", c.Fail(Failure{Op: "try", Status: resp.StatusCode, Said: string(body), Need: "what is needed", Err: err})
	}
	return string(body), nil
}

// No token travels in clear text, except on this machine.
func TestTokenNeedsTLS(t *testing.T) {
	for base, fine := range map[string]bool{
		"http://git.example.com": false, "http://10.0.0.1": false, "http://localhost.example.com": false,
		"https://git.example.com": true, "http://127.0.0.1:3000": true, "http://localhost": true, "http://[::1]": true,
	} {
		_, err := NewClient(Config{Repository: Repository{KindGitea, base, "a", "b"}}, bearer)
		if fine {
			require.NoError(t, err, base)
			continue
		}
		var refused *RefusedError
		require.ErrorAs(t, err, &refused, base)
		require.Equal(t, ReasonInsecure, refused.Reason)
	}
}

// Redirects within the forge keep what is asked for; to others, the token does not go.
func TestRedirectsToOthersGetNoToken(t *testing.T) {
	reached := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	t.Cleanup(other.Close)
	c, _ := server(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/v1/moved":
			http.Redirect(w, r, "/api/v1/here", http.StatusMovedPermanently)
		case "/api/v1/found":
			http.Redirect(w, r, "/api/v1/here", http.StatusFound)
		case "/api/v1/other":
			http.Redirect(w, r, "/api/v1/here", http.StatusSeeOther)
		case "/api/v1/away":
			http.Redirect(w, r, other.URL+"/steal", http.StatusTemporaryRedirect)
		case "/api/v1/round":
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
		default:
			body, _ := io.ReadAll(r.Body)
			_, _ = io.WriteString(w, r.Method+" "+r.Header.Get("Authorization")+" "+string(body))
		}
	})
	for _, path := range []string{"/here", "/moved", "/found"} {
		for _, method := range []string{http.MethodPost, http.MethodPatch, http.MethodPut, http.MethodDelete} {
			got, err := c.try(t, method, path)
			require.NoError(t, err)
			require.Equal(t, method+" Bearer "+token+" what is sent", got)
		}
	}
	for path, want := range map[string]string{"/other": "something to be read", "/away": "which is not followed", "/round": "too many redirects: more than 3 from "} {
		_, err := c.try(t, http.MethodPost, path)
		var refused *RefusedError
		require.ErrorAs(t, err, &refused, path)
		require.Equal(t, ReasonReply, refused.Reason)
		require.Contains(t, refused.Said, want)
	}
	require.False(t, reached)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, other.URL, nil)
	require.NoError(t, err)
	_, err = c.HTTP.Transport.RoundTrip(req) //nolint:bodyclose // there is none
	require.ErrorContains(t, err, "not followed")
	require.False(t, reached)
}

func TestErrorsByStatusHaveNoToken(t *testing.T) {
	status := 0
	c, _ := server(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "no\x1b[2J\n  "+token+" s3cret%2Ftoken%2B "+strings.Repeat("y", 1000))
	})
	for code, want := range map[int]string{
		401: "unauthorized", 403: "forbidden", 423: "forbidden", 404: "not found", 410: "not found", 409: "conflict", 400: "invalid", 422: "invalid",
		500: "unavailable", 503: "unavailable",
	} {
		status = code
		_, err := c.try(t, http.MethodPost, "/x")
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, `no\u001b[2J (token) (token) yyy`)
		require.Less(t, len(err.Error()), 700)
		if code == 403 {
			require.ErrorContains(t, err, "what is needed")
		}
	}
}

func TestRepliesAreBounded(t *testing.T) {
	c, _ := server(t, func(w http.ResponseWriter, r *http.Request) {
		size := maxReply
		if r.URL.Path == "/api/v1/more" {
			size++
		}
		_, _ = w.Write(make([]byte, size))
	})
	got, err := c.try(t, http.MethodGet, "/enough")
	require.NoError(t, err)
	require.Len(t, got, maxReply)
	_, err = c.try(t, http.MethodGet, "/more")
	require.ErrorContains(t, err, "more than")
	var refused *RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, ReasonReply, refused.Reason)
}

func TestSilentForgeIsUnavailable(t *testing.T) {
	hang := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(hang) })
	c, err := NewClient(Config{Repository: Repository{KindGitea, s.URL, "a", "b"}, HTTP: &http.Client{Timeout: 50 * time.Millisecond}}, bearer)
	require.NoError(t, err)
	_, err = c.try(t, http.MethodGet, "/")
	var away *UnavailableError
	require.ErrorAs(t, err, &away)
	require.Equal(t, "it did not answer in time", away.Said)
}

// Where the token is kept, and no token at all.
func TestTokenIsReadForEachRequest(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Header.Get("Authorization")) }))
	t.Cleanup(s.Close)
	config := Config{Repository: Repository{KindGitea, s.URL, "a", "b"}}
	c, err := NewClient(config, bearer)
	require.NoError(t, err)
	got, err := c.try(t, http.MethodGet, "/")
	require.NoError(t, err)
	require.Empty(t, got)

	given := []string{"first", "second"}
	config.Token = func(context.Context) (string, error) {
		if len(given) == 0 {
			return "", errors.New("open token: no such file")
		}
		next := given[0]
		given = given[1:]
		return next, nil
	}
	c, err = NewClient(config, bearer)
	require.NoError(t, err)
	for _, want := range []string{"Bearer first", "Bearer second"} {
		got, err := c.try(t, http.MethodGet, "/")
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err = c.try(t, http.MethodGet, "/")
	require.ErrorContains(t, err, "unauthorized: read the token: open token: no such file; check the file")
}

// While a forge wants to be left alone, it is.
func TestRateLimit(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		header http.Header
		after  time.Duration // zero: it is not a rate limit
	}{
		"429":                    {429, nil, time.Minute},
		"in seconds":             {429, http.Header{"Retry-After": {"7"}}, 7 * time.Second},
		"at a time":              {429, http.Header{"Retry-After": {time.Unix(1_700_000_033, 0).UTC().Format(http.TimeFormat)}}, 33 * time.Second},
		"used up":                {403, http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"1700000100"}}, 100 * time.Second},
		"used up on GitLab":      {429, http.Header{"Ratelimit-Remaining": {"0"}, "Ratelimit-Reset": {"1700000100"}}, 100 * time.Second},
		"secondary":              {403, http.Header{"Retry-After": {"60"}, "X-Ratelimit-Remaining": {"4000"}, "X-Ratelimit-Reset": {"1700003000"}}, time.Minute},
		"maintenance":            {503, http.Header{"Retry-After": {"120"}}, 2 * time.Minute},
		"much too long":          {429, http.Header{"Retry-After": {"999999999"}}, time.Hour},
		"in the past":            {429, http.Header{"Retry-After": {"Mon, 01 Jan 2001 00:00:00 GMT"}}, time.Second},
		"nonsense":               {429, http.Header{"Retry-After": {"-5"}, "X-Ratelimit-Reset": {"x"}}, time.Minute},
		"forbidden":              {403, http.Header{"X-Ratelimit-Remaining": {"4000"}}, 0},
		"away":                   {503, nil, 0},
		"the last one, and fine": {200, http.Header{"X-Ratelimit-Remaining": {"0"}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			client, now := server(t, func(w http.ResponseWriter, _ *http.Request) {
				asked++
				for k, v := range c.header {
					w.Header()[k] = v
				}
				w.WriteHeader(c.status)
			})
			start := *now
			_, err := client.try(t, http.MethodGet, "/")
			var limited *RateLimitError
			if c.after == 0 {
				require.False(t, errors.As(err, &limited), "%v", err)
				return
			}
			require.ErrorAs(t, err, &limited)
			require.Equal(t, c.after, limited.Until.Sub(start))
			*now = limited.Until.Add(-1)
			_, err = client.try(t, http.MethodGet, "/")
			require.ErrorAs(t, err, &limited)
			require.Equal(t, 1, asked)
			*now = limited.Until
			_, _ = client.try(t, http.MethodGet, "/")
			require.Equal(t, 2, asked)
		})
	}
}

// Without a forge, a proposal is its branch.
func TestWithoutAForgeAProposalIsItsBranch(t *testing.T) {
	var f Forge = None{}
	pr, err := f.Open(t.Context(), Opening{Title: "t", Body: "b", Head: "h", Base: "main"})
	require.NoError(t, err)
	require.Equal(t, PullRequest{Title: "t", Body: "b", Head: "h", Base: "main", State: StateOpen}, pr)
	list, err := f.List(t.Context(), Filter{})
	require.NoError(t, err)
	require.Empty(t, list)
	require.NoError(t, f.Update(t.Context(), 0, Change{Close: true}))
	require.NoError(t, f.SetStatus(t.Context(), "", Status{}))
	var refused *RefusedError
	_, err = f.Get(t.Context(), 0)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, ReasonNotFound, refused.Reason)
	var unsupported *UnsupportedError
	_, err = f.Merge(t.Context(), 0, Merge{})
	require.ErrorAs(t, err, &unsupported)
	require.EqualError(t, err, "none: there is no merging")
	login, err := f.Login(t.Context())
	require.NoError(t, err)
	require.Empty(t, login)
}

func TestTitlesAndBodiesAreChecked(t *testing.T) {
	long := strings.Repeat("x", MaxBody+1)
	for want, err := range map[string]error{
		"a title is one line of at most 250 bytes":                          Opening{}.Check(),
		"the title has 251 bytes, more than the 250 that every forge takes": Opening{Title: long[:MaxTitle+1]}.Check(),
		"the body has 60001 bytes, more than the 60000 that every forge takes": errors.Join(
			Change{Comment: long}.Check()),
	} {
		require.EqualError(t, err, want)
	}
	require.Error(t, Change{Title: "a\nb"}.Check())
	require.Error(t, Change{Title: " "}.Check())
	require.NoError(t, Change{}.Check())
	require.NoError(t, Opening{Title: long[:MaxTitle], Body: long[:MaxBody]}.Check())
	require.Equal(t, "a b", Description("a\n b"))
	require.Len(t, Description(long), MaxDescription)
}

// An answer that asks for it in words only its adapter knows is a limit like the others.
func TestPauseIsALimitLikeOthers(t *testing.T) {
	asked := 0
	c, now := server(t, func(http.ResponseWriter, *http.Request) { asked++ })
	for until, header := range map[time.Duration]http.Header{
		time.Minute:     {"X-Ratelimit-Remaining": {"7"}, "X-Ratelimit-Reset": {"1700000500"}},
		5 * time.Second: {"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"1700000005"}},
		9 * time.Second: {"Retry-After": {"9"}},
	} {
		var limited *RateLimitError
		require.ErrorAs(t, c.Pause(&http.Response{Header: header}), &limited)
		require.Equal(t, now.Add(until), limited.Until)
		_, err := c.try(t, http.MethodGet, "/x")
		require.ErrorAs(t, err, &limited)
	}
	require.Zero(t, asked)
}
