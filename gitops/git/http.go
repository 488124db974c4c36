package git

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
)

// httpRemote speaks Git's smart HTTP through go-git's client, which also watches redirects: a credential
// does not follow one to another host.
type httpRemote struct {
	addr      address
	auth      Auth
	watch     *watch
	transport *http.Transport

	// used is what was logged in with last. Conversations take turns.
	used login
}

func newHTTPTransport(auth Auth, config *tls.Config) *http.Transport {
	return &http.Transport{
		Proxy:               auth.Proxy,
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSClientConfig:     config,
		TLSHandshakeTimeout: dialTimeout,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 2,
		IdleConnTimeout:     90 * time.Second,
	}
}

const dialTimeout = 20 * time.Second

// readLogin reads the credentials as they are now.
func (r *httpRemote) readLogin(ctx context.Context) error {
	r.watch.waits() // a token may have to be fetched
	defer r.watch.got()
	used, err := r.auth.basic(ctx, r.addr)
	if err != nil {
		return &credentialError{"password", err}
	}
	r.used = used
	return nil
}

func (r *httpRemote) hide(said string) string { return r.used.hide(said) }

func (r *httpRemote) close() { r.transport.CloseIdleConnections() }

// open logs in with the credentials that there are. If the server refuses them, it tries once more with those that
// there are then: a token may have been renewed, or have ended before its time.
func (r *httpRemote) open(ctx context.Context, s service) (session, *packp.AdvRefs, error) {
	if err := r.readLogin(ctx); err != nil {
		return nil, nil, r.fail(ctx, s, err)
	}
	sess, adv, err := r.try(ctx, s)
	if !errors.Is(err, transport.ErrAuthenticationRequired) || !r.used.given {
		return sess, adv, err
	}
	refused := r.used
	if again := r.readLogin(ctx); again != nil || r.used == refused {
		return nil, nil, err
	}
	return r.try(ctx, s)
}

func (r *httpRemote) try(ctx context.Context, s service) (session, *packp.AdvRefs, error) {
	h, talk, err := r.talk(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	adv, err := talk.AdvertisedReferencesContext(ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return h, packp.NewAdvRefs(), nil
	}
	if err != nil {
		h.close()
		return nil, nil, r.fail(ctx, s, err)
	}
	return h, adv, nil
}

// goOn is a conversation with a server that said before what it has and can do. The server does not remember that it
// said so. Where this does not work, because the repository moved or a credential ended, open may.
func (r *httpRemote) goOn(ctx context.Context, s service) (session, error) {
	if err := r.readLogin(ctx); err != nil {
		return nil, r.fail(ctx, s, err)
	}
	h, _, err := r.talk(ctx, s)
	return h, err
}

// talk makes a conversation in which nothing was said yet.
func (r *httpRemote) talk(ctx context.Context, s service) (*httpSession, transport.Session, error) {
	ep := &transport.Endpoint{Protocol: r.addr.scheme, Host: r.addr.host, Port: r.addr.port, Path: r.addr.path}
	if strings.Contains(ep.Host, ":") {
		ep.Host = "[" + ep.Host + "]"
	}
	// A nil AuthMethod in an interface would not be nil to go-git.
	var auth transport.AuthMethod
	if r.used.given {
		auth = &githttp.BasicAuth{Username: r.used.user, Password: r.used.password}
	}
	keeper := &bodyKeeper{next: watchedTransport{r.transport, r.watch}}
	h := &httpSession{remote: r, service: s, bodies: keeper}
	client := githttp.NewClient(&http.Client{Transport: keeper})
	var (
		talk transport.Session
		err  error
	)
	if s == receivePack {
		h.receive, err = client.NewReceivePackSession(ep, auth)
		talk = h.receive
	} else {
		h.upload, err = client.NewUploadPackSession(ep, auth)
		talk = h.upload
	}
	if err != nil {
		return nil, nil, r.fail(ctx, s, err)
	}
	return h, talk, nil
}

// httpSession is at most one GET and one POST.
type httpSession struct {
	remote  *httpRemote
	service service
	upload  transport.UploadPackSession
	receive transport.ReceivePackSession
	bodies  *bodyKeeper
}

func (h *httpSession) close() { h.bodies.close() }

func (h *httpSession) fetch(ctx context.Context, req *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	resp, err := h.upload.UploadPack(ctx, req)
	if err != nil {
		return nil, h.remote.fail(ctx, h.service, err)
	}
	return resp, nil
}

func (h *httpSession) push(ctx context.Context, req *packp.ReferenceUpdateRequest) (*packp.ReportStatus, error) {
	connected := false
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected = true },
	})
	report, err := h.receive.ReceivePack(traced, req)
	switch {
	case report != nil:
		return report, nil // err only repeats it
	case err == nil:
		return nil, &sentError{errors.New("the server sent an empty answer")}
	}
	failed := h.remote.fail(ctx, h.service, err)
	if !connected || h.bodies.redirected == http.MethodPost || refusedToListen(err) {
		return nil, failed
	}
	return nil, &sentError{failed}
}

// sentError says that something went wrong after the pack was sent: see session.push. It hides an AccessError.
type sentError struct{ err error }

func (e *sentError) Error() string { return e.err.Error() }

// Is lets the caller's own reasons be seen.
func (e *sentError) Is(target error) bool { return errors.Is(e.err, target) }

// refusedToListen says whether the server turned the request away before looking at it.
func refusedToListen(err error) bool {
	if errors.Is(err, transport.ErrAuthenticationRequired) || errors.Is(err, transport.ErrAuthorizationFailed) ||
		errors.Is(err, transport.ErrRepositoryNotFound) {
		return true
	}
	code := httpStatus(err)
	_, limited := errors.AsType[*rateLimitError](expected(err))
	return code >= 400 && code < 500 || limited
}

// expected takes off go-git's UnexpectedError, which has no Unwrap.
func expected(err error) error {
	if unexpected, ok := errors.AsType[*plumbing.UnexpectedError](err); ok {
		return unexpected.Err
	}
	return err
}

func httpStatus(err error) int {
	err = expected(err)
	if status, ok := errors.AsType[*githttp.Err](err); ok {
		return status.StatusCode()
	}
	return 0
}

// credentialError says that a credential could not be read.
type credentialError struct {
	what string
	err  error
}

func (e *credentialError) Error() string { return "read " + e.what + ": " + e.err.Error() }
func (e *credentialError) Unwrap() error { return e.err }

// fail says what an error of go-git's HTTP client means, and hears of credentials that are not taken.
func (r *httpRemote) fail(ctx context.Context, s service, err error) error {
	err = r.meaning(ctx, s, err)
	var e *AccessError
	if !errors.As(err, &e) {
		return err
	}
	if errors.Is(e, transport.ErrAuthenticationRequired) && r.used.given && r.auth.Refused != nil {
		r.auth.Refused(r.used.password)
	}
	e.Detail = r.hide(e.Detail)
	if text := e.Err.Error(); r.hide(text) != text {
		e.Err = errors.New(r.hide(text))
	}
	return e
}

// meaning is fail without regard to credentials. Pages that servers send with an error are not repeated: they are long,
// and mostly markup.
func (r *httpRemote) meaning(ctx context.Context, s service, err error) error {
	if ctx.Err() != nil {
		return interrupted(ctx, s, r.addr)
	}
	e := &AccessError{Op: s.op(), URL: r.addr.display, Err: err}
	err = expected(err)
	var (
		credential *credentialError
		cert       *tls.CertificateVerificationError
		network    net.Error
		remoteSays *pktline.ErrorLine
		limited    *rateLimitError
	)
	for _, known := range []error{transport.ErrAuthenticationRequired, transport.ErrAuthorizationFailed,
		transport.ErrRepositoryNotFound} {
		if errors.Is(err, known) {
			e.Err = known // go-git's repeats the page
		}
	}
	switch {
	case errors.As(err, &limited):
		e.Err, e.Reason, e.Detail, e.Hint = limited, ReasonRateLimited, limited.Error(),
			"the server is asked again later"
		if limited.after != "" {
			e.Hint = "the server says to come back after " + limited.after
		}
	case errors.As(err, &credential):
		e.Reason, e.Detail, e.Hint = ReasonCredentials, credential.Error(), "check the file or variable it comes from"
	case errors.Is(err, transport.ErrAuthenticationRequired) && !r.auth.hasBasic(r.addr):
		e.Reason, e.Hint = ReasonUnauthorized, "give a token or a user and password"
	case errors.Is(err, transport.ErrAuthenticationRequired):
		e.Reason, e.Hint = ReasonUnauthorized, "the token or password is wrong or has expired"
	case errors.Is(err, transport.ErrAuthorizationFailed):
		e.Reason, e.Hint = ReasonForbidden, "the token lacks the right to "+s.right()
	case errors.Is(err, transport.ErrRepositoryNotFound):
		e.Reason, e.Hint = ReasonNotFound, "check the URL, and that the credentials may see the repository"
	case errors.As(err, &remoteSays):
		e.Reason, e.Detail = ReasonServer, cleanText(remoteSays.Text)
	case errors.As(err, &cert):
		e.Reason, e.Detail, e.Hint = ReasonCertificate, cleanText(cert.Error()), "give the CA that signed it as CA file"
	case httpStatus(e.Err) != 0:
		code := httpStatus(e.Err)
		e.Reason, e.Detail = ReasonServer, fmt.Sprintf("HTTP %d %s", code, http.StatusText(code))
	case errors.As(err, &network), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		e.Reason, e.Detail, e.Hint = ReasonNetwork, cleanText(err.Error()), "check the host, the port and the proxy"
	default:
		e.Reason, e.Detail, e.Hint = ReasonServer, cleanText(err.Error()), "is this the URL of a Git repository?"
	}
	return e
}

func (s service) right() string {
	if s == receivePack {
		return "write"
	}
	return "read"
}

// bodyKeeper remembers response bodies, and bounds those that go-git reads whole: advertisements and errors. go-git
// leaves some bodies open, which would cost a connection each.
type bodyKeeper struct {
	next http.RoundTripper

	// redirected is the method of the last request whose answer led to another address; "": there was none. Only
	// questions follow, and no push.
	redirected string

	mu     sync.Mutex
	bodies []io.ReadCloser
}

const (
	maxErrorBody = 8 << 10
	maxDrain     = 64 << 10 // rest of a body worth reading to keep the connection
)

func (k *bodyKeeper) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := k.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	body := resp.Body
	if limited := rateLimited(resp); limited != nil {
		return nil, errors.Join(limited, body.Close())
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.bodies = append(k.bodies, body)
	if resp.StatusCode/100 == 3 {
		k.redirected = req.Method
	}
	kept := keptBody{body}
	switch {
	case resp.StatusCode >= http.StatusBadRequest:
		kept.Reader = io.LimitReader(body, maxErrorBody)
	case req.Method == http.MethodGet:
		kept.Reader = io.LimitReader(body, maxAdvertisement)
	}
	resp.Body = kept
	return resp, nil
}

// keptBody is closed by the bodyKeeper, at the end of the conversation.
type keptBody struct{ io.Reader }

func (keptBody) Close() error { return nil }

var _ http.RoundTripper = (*bodyKeeper)(nil)

// close reads what little is left of each body, so that its connection can serve again, and closes it.
func (k *bodyKeeper) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, body := range k.bodies {
		_, _ = io.CopyN(io.Discard, body, maxDrain)
		_ = body.Close()
	}
	k.bodies = nil
}
