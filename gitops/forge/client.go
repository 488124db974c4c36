package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/rampart-gitops/rampart/internal/httpclient"
)

const (
	callTimeout = 30 * time.Second
	maxReply    = 16 << 20 // a page of fifty bodies of the largest size is some 3 MiB
	maxSaid     = 300
)

// Config is what an adapter needs to reach its forge.
type Config struct {
	Repository Repository
	// API is the root of the forge's API, if it is not Repository's.
	API string
	// Token gives the token each time one is needed, so that a renewed one is picked up. It must be safe for concurrent
	// use. Nil: none.
	Token func(context.Context) (string, error)
	// HTTP carries the certificates and the proxy. Nil: those of the system, and no proxy.
	HTTP *http.Client
	// Now is the time; nil: time.Now.
	Now func() time.Time
}

// Credential is the header that a token travels in, such as "Authorization" and "Bearer …".
type Credential func(token string) (name, value string)

// Client talks to one forge on behalf of an adapter. It may be used by several goroutines.
type Client struct {
	// HTTP is for the forge's library, without a token of its own.
	HTTP *http.Client

	config     Config
	credential Credential
	origin     string
	next       http.RoundTripper

	mu    sync.Mutex
	token string    // the last one, to be left out of what the forge says
	until time.Time // of the rate limit
}

// NewClient gives a client that adds the token to each request to the forge's own API and sends nothing anywhere else.
// Without a token there, credential may be nil. Errors: *RefusedError with ReasonInsecure.
func NewClient(config Config, credential Credential) (*Client, error) {
	api, err := url.Parse(cmp.Or(config.API, config.Repository.API()))
	if err != nil {
		return nil, fmt.Errorf("address of the forge: %w", err)
	}
	if api.Scheme != "https" && !httpclient.Loopback(api.Hostname()) {
		return nil, &RefusedError{
			Op: "use a token", Where: config.Repository.URL(), Reason: ReasonInsecure,
			Need: "the token would travel in clear text: give the forge's https address",
		}
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	c := &Client{config: config, credential: credential, origin: httpclient.Origin(api)}
	client := http.Client{Timeout: callTimeout}
	if config.HTTP != nil {
		c.next = config.HTTP.Transport
		client.Timeout = cmp.Or(config.HTTP.Timeout, callTimeout)
	}
	if c.next == nil {
		plain, ok := http.DefaultTransport.(*http.Transport)
		if !ok {
			return nil, errors.New("the default transport of net/http was replaced: give a client")
		}
		plain = plain.Clone()
		plain.Proxy = nil
		c.next = plain
	}
	client.Transport = roundTripper{c}
	client.CheckRedirect = c.redirect
	c.HTTP = &client
	return c, nil
}

type roundTripper struct{ client *Client }

func (t roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	c := t.client
	if err := c.limited(); err != nil {
		return nil, err
	}
	if to := httpclient.Origin(req.URL); to != c.origin {
		return nil, &httpclient.RedirectError{To: to}
	}
	req = req.Clone(req.Context())
	if err := c.authorize(req); err != nil {
		return nil, err
	}
	resp, err := c.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if until, ok := limit(resp, c.config.Now()); ok {
		_ = resp.Body.Close()
		c.mu.Lock()
		c.until = until
		c.mu.Unlock()
		return nil, c.limited()
	}
	// Of what was renamed, some forges tell the new place in a way that makes a question of a change: it would be lost
	// silently.
	if moved := resp.StatusCode; req.Method != http.MethodGet &&
		(moved == http.StatusMovedPermanently || moved == http.StatusFound) {
		resp.StatusCode = http.StatusTemporaryRedirect
	}
	resp.Body = http.MaxBytesReader(nil, resp.Body, maxReply) // fails there, instead of ending as if all was read
	return resp, nil
}

// errSeeOther says that a change was answered by a place to look at.
var errSeeOther = errors.New("it redirects a change to something to be read: is this the forge's own address?")

func (c *Client) redirect(req *http.Request, via []*http.Request) error {
	if req.Method != via[0].Method {
		return errSeeOther
	}
	return httpclient.Within(c.origin)(req, via)
}

func (c *Client) authorize(req *http.Request) error {
	if c.config.Token == nil {
		return nil
	}
	token, err := c.config.Token(req.Context())
	if err != nil {
		return &tokenError{err}
	}
	c.mu.Lock()
	c.token = token
	c.mu.Unlock()
	if token != "" {
		name, value := c.credential(token)
		req.Header.Set(name, value)
	}
	return nil
}

// tokenError says that a token could not be had. Its words come from where it is kept.
type tokenError struct{ err error }

func (e *tokenError) Error() string { return "read the token: " + e.err.Error() }
func (e *tokenError) Unwrap() error { return e.err }

// limited is a *RateLimitError while the forge wants to be left alone.
func (c *Client) limited() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.config.Now().Before(c.until) {
		return &RateLimitError{Where: c.config.Repository.Base, Until: c.until}
	}
	return nil
}

// Pause is for an answer that asks to be left alone in its own words, and not by its status. Until its headers allow
// it, or for a minute, nothing is sent. It gives the error to return.
func (c *Client) Pause(resp *http.Response) error {
	c.mu.Lock()
	c.until = pause(resp.Header, c.config.Now())
	c.mu.Unlock()
	return c.limited()
}

// Said is what a forge said, fit for a message: one line, bounded, without the token.
func (c *Client) Said(text string) string {
	c.mu.Lock()
	token := c.token
	c.mu.Unlock()
	if token != "" {
		for _, form := range []string{token, url.QueryEscape(token), url.PathEscape(token)} {
			text = strings.ReplaceAll(text, form, "(token)")
		}
	}
	return httpclient.OneLine(text, maxSaid)
}

// Failure is a call that failed.
type Failure struct {
	Op     string // what was to be done
	Status int    // of HTTP; zero: no answer
	Said   string // by the forge; empty: what Err says
	Need   string // what helps where a right is missing
	Err    error
}

// Fail tells what a failed call means, as one of the errors of this package.
func (c *Client) Fail(f Failure) error {
	where := c.config.Repository.URL()
	var (
		rate      *RateLimitError
		redirect  *httpclient.RedirectError
		redirects *httpclient.TooManyRedirectsError
		tooLarge  *http.MaxBytesError
		token     *tokenError
	)
	refused := &RefusedError{Op: f.Op, Where: where}
	switch {
	case errors.As(f.Err, &rate):
		return rate
	case errors.As(f.Err, &token):
		refused.Reason, refused.Said, refused.Need = ReasonUnauthorized, c.Said(token.Error()),
			"check the file or variable it comes from"
		return refused
	case errors.As(f.Err, &redirect):
		refused.Reason, refused.Said = ReasonReply, redirect.Error()
		return refused
	case errors.As(f.Err, &tooLarge):
		refused.Reason, refused.Said = ReasonReply, fmt.Sprintf("the answer has more than %d bytes", tooLarge.Limit)
		return refused
	case errors.As(f.Err, &redirects), errors.Is(f.Err, errSeeOther):
		refused.Reason, refused.Said = ReasonReply, c.Said(innermost(f.Err).Error())
		return refused
	case f.Status == 0 || errors.Is(f.Err, context.Canceled) || errors.Is(f.Err, context.DeadlineExceeded):
		return &UnavailableError{Op: f.Op, Where: where,
			Said: c.Said(cmp.Or(interruption(f.Err), httpclient.Failure(f.Err), f.Err.Error())), Err: f.Err}
	case f.Status >= http.StatusInternalServerError:
		return &UnavailableError{Op: f.Op, Where: where, Status: f.Status, Said: c.said(f)}
	}
	refused.Status, refused.Said = f.Status, c.said(f)
	refused.Reason, refused.Need = meaning(f)
	return refused
}

func (c *Client) said(f Failure) string {
	if f.Said == "" && f.Err != nil {
		f.Said = f.Err.Error()
	}
	return c.Said(cmp.Or(f.Said, http.StatusText(f.Status)))
}

// innermost leaves out what net/http says of a request, which has its address in it.
func innermost(err error) error {
	var at *url.Error
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// interruption tells who had no patience.
func interruption(err error) string {
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, context.Canceled):
		return "interrupted"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "it did not answer in time"
	}
	return ""
}

// meaning is what the status of an answer says.
func meaning(f Failure) (reason Reason, need string) {
	switch f.Status {
	case http.StatusUnauthorized:
		return ReasonUnauthorized, "the token is wrong, has expired or was revoked: give a new one"
	case http.StatusForbidden, http.StatusLocked:
		return ReasonForbidden, f.Need
	case http.StatusNotFound, http.StatusGone:
		need = "check the address, and that the token may see the repository"
		if f.Need != "" {
			need += "; " + f.Need
		}
		return ReasonNotFound, need
	case http.StatusConflict:
		return ReasonConflict, ""
	}
	if f.Status < http.StatusBadRequest {
		return ReasonReply, "is this the address of the forge, or is something in between?"
	}
	return ReasonInvalid, ""
}
