package bundle

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/internal/httpclient"
)

const maxETag = 1 << 10

func newTransport(c Config) (*http.Transport, error) {
	t := &http.Transport{
		Proxy:                  c.Proxy,
		DialContext:            (&net.Dialer{Timeout: c.Timeout}).DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    c.Timeout,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    1,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		// The archive is compressed already: what comes is what is kept and measured.
		DisableCompression: true,
	}
	if c.CAFile == "" {
		return t, nil
	}
	text, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("authorities for policy bundles: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("authorities for policy bundles: %s holds no certificate in PEM", c.CAFile)
	}
	t.TLSClientConfig.RootCAs = pool
	return t, nil
}

// fetcher downloads one bundle.
type fetcher struct {
	url     *url.URL
	token   func(context.Context) (string, error)
	client  *http.Client
	timeout time.Duration
}

func newFetcher(b Bundle, transport http.RoundTripper, timeout time.Duration) (*fetcher, error) {
	u, err := parseURL(b.URL)
	if err != nil {
		return nil, err
	}
	f := &fetcher{url: u, token: b.Token, timeout: timeout}
	f.client = &http.Client{Transport: transport, CheckRedirect: httpclient.Within(httpclient.Origin(u))}
	return f, nil
}

// download is what a server answered.
type download struct {
	// unchanged says that the bundle is the one whose ETag was sent.
	unchanged bool
	archive   []byte
	etag      string
}

// get downloads the bundle unless it still has the ETag; "" downloads it in any case.
func (f *fetcher) get(ctx context.Context, etag string) (download, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, f.timeout, errLate)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url.String(), nil)
	if err != nil {
		return download{}, err
	}
	req.Header.Set("User-Agent", "rampart")
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	if f.token != nil {
		token, err := f.token(ctx)
		if err == nil && (token == "" || strings.ContainsAny(token, " \t\r\n")) {
			err = errors.New("it is empty, or not one word")
		}
		if err != nil {
			return download{}, &credentialError{err}
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := f.client.Do(req)
	if err != nil {
		return download{}, cause(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }() // all that is wanted of it was read
	switch {
	case resp.StatusCode == http.StatusNotModified && etag != "":
		return download{unchanged: true, etag: etag}, nil
	case resp.StatusCode != http.StatusOK:
		return download{}, &statusError{resp.StatusCode}
	}
	archive, err := io.ReadAll(io.LimitReader(resp.Body, MaxDownload+1))
	if err == nil {
		err = ctx.Err() // a server that sees us go may still end its answer as if that were all
	}
	switch {
	case err != nil:
		return download{}, cause(ctx, err)
	case len(archive) > MaxDownload:
		return download{}, fmt.Errorf("it is larger than %d MiB", MaxDownload>>20)
	}
	d := download{archive: archive, etag: resp.Header.Get("ETag")}
	if len(d.etag) > maxETag {
		d.etag = ""
	}
	return d, nil
}

var errLate = errors.New("no whole answer in time")

// cause prefers our own reason for an end to what the client makes of it.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
