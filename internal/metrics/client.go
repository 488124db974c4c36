package metrics

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/sony/gobreaker/v2"

	"github.com/rampart-gitops/rampart/internal/httpclient"
)

// DefaultTimeout of one query.
const DefaultTimeout = 10 * time.Second

// Config says where Prometheus is.
type Config struct {
	// Address such as https://prometheus.example.com/prefix. Plain HTTP is for servers without a credential, or on
	// loopback.
	Address string
	// BearerTokenFile holds a token, read anew for each query since tokens are rotated; "": none.
	BearerTokenFile string
	// CAFile holds the certificates, in PEM, that may sign the server's; "": the system's.
	CAFile string
	// Timeout of one query; 0: DefaultTimeout. All of one call of Facts take twice as long at most.
	Timeout time.Duration
	// Proxy chooses a proxy; nil: none. http.ProxyFromEnvironment is the usual one.
	Proxy func(*http.Request) (*url.URL, error)
}

// Client asks one Prometheus. It remembers whether that is away, and where a call ran out of time.
type Client struct {
	api       prometheus.API
	transport *http.Transport
	timeout   time.Duration
	// breaker is open after a call that found the server away, and away says why.
	breaker *gobreaker.CircuitBreaker[[]answer]
	away    atomic.Pointer[awayError]
	// first is the question that a call begins with.
	first atomic.Int64

	mu sync.Mutex
	// last are the latest answers, for questions that have no turn: a slow server is not one that knows a value in one
	// call only.
	last map[question]answer
}

// keepLast is how long an answer may stand for the next one, at most: its metric's maxAge says whether it is good
// enough.
const keepLast = time.Hour

// New checks a configuration and gives a client. It does not connect yet.
func New(c Config) (*Client, error) {
	address, err := c.address()
	if err != nil {
		return nil, fmt.Errorf("address of Prometheus: %w", err)
	}
	timeout := c.Timeout
	switch {
	case timeout < 0:
		return nil, fmt.Errorf("timeout %s of Prometheus is negative", timeout)
	case timeout == 0:
		timeout = DefaultTimeout
	}
	transport := &http.Transport{
		Proxy:                  c.Proxy,
		DialContext:            (&net.Dialer{Timeout: timeout}).DialContext,
		TLSHandshakeTimeout:    timeout,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    parallel,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
	if c.CAFile != "" {
		if transport.TLSClientConfig, err = trust(c.CAFile); err != nil {
			return nil, fmt.Errorf("certificates for Prometheus: %w", err)
		}
	}
	if c.BearerTokenFile != "" {
		if _, err := readToken(c.BearerTokenFile); err != nil {
			return nil, fmt.Errorf("credential for Prometheus: %w", err)
		}
	}
	guard := &door{next: transport, origin: httpclient.Origin(address), tokenFile: c.BearerTokenFile}
	client, err := api.NewClient(api.Config{Address: address.String(),
		Client: &http.Client{Transport: guard, CheckRedirect: httpclient.Within(guard.origin)}})
	if err != nil {
		return nil, fmt.Errorf("address of Prometheus: %w", err)
	}
	return &Client{api: prometheus.NewAPI(client), transport: transport, timeout: timeout,
		breaker: newBreaker(openTimeouts * timeout), last: map[question]answer{}}, nil
}

// Close lets go of idle connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// address parses and checks the address.
func (c Config) address() (*url.URL, error) {
	u, err := url.Parse(c.Address)
	if err != nil {
		// The error of net/url quotes the whole address, which may hold a password.
		return nil, errors.New("it is not a URL, expected one like https://prometheus.example.com")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, fmt.Errorf("%s is not an http or https URL with a host", u.Redacted())
	case u.User != nil:
		return nil, fmt.Errorf("%s holds a user: credentials come from a file", u.Redacted())
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%s has a query or a fragment, expected a host and maybe a path", u.Redacted())
	case u.Scheme == "http" && c.CAFile != "":
		return nil, fmt.Errorf("%s is plain HTTP, and certificates are given for it: expected https", u)
	case u.Scheme == "http" && c.BearerTokenFile != "" && !httpclient.Loopback(u.Hostname()):
		return nil, fmt.Errorf("%s is plain HTTP, over which anybody on the way could read the token: expected https",
			u)
	}
	return u, nil
}

func trust(file string) (*tls.Config, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("%s holds no certificate in PEM", file)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

func readToken(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(data))
	if token == "" || strings.ContainsAny(token, " \t\r\n") {
		return "", fmt.Errorf("%s does not hold one token", file)
	}
	return token, nil
}

// door is what every request goes through: it adds the credential, refuses to go elsewhere and limits answers.
type door struct {
	next      http.RoundTripper
	origin    string
	tokenFile string
}

// maxAnswer is more than one number needs, and less than a hostile answer could have.
const maxAnswer = 1 << 20

// RoundTrip implements http.RoundTripper.
func (d *door) RoundTrip(req *http.Request) (*http.Response, error) {
	if to := httpclient.Origin(req.URL); to != d.origin {
		return nil, &httpclient.RedirectError{To: to}
	}
	if d.tokenFile != "" {
		token, err := readToken(d.tokenFile)
		if err != nil {
			return nil, &credentialError{err}
		}
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := d.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Body = http.MaxBytesReader(nil, resp.Body, maxAnswer)
	return resp, nil
}

// credentialError is a token that could not be read.
type credentialError struct{ err error }

// Error leaves out where the file is: it stands in the status, which others read.
func (e *credentialError) Error() string {
	err := e.err
	if of := (*fs.PathError)(nil); errors.As(err, &of) {
		err = of.Err
	}
	return "the file of --prometheus-token-file cannot be read: " + err.Error()
}
func (e *credentialError) Unwrap() error { return e.err }
