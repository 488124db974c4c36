package httpclient

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// What fails in a connection is said without what changes from one time to the next.
func TestFailuresAreSaidTheSameEachTime(t *testing.T) {
	get := func(err error) error {
		return &url.Error{Op: "Get", URL: "https://example.com/?token=s3cret", Err: err}
	}
	here := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 41234}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"refused":     {get(&net.OpError{Op: "dial", Source: here, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}), "dial: connection refused"},
		"reset":       {get(&net.OpError{Op: "read", Source: here, Addr: here, Err: os.NewSyscallError("read", syscall.ECONNRESET)}), "read: connection reset by peer"},
		"alert":       {get(&net.OpError{Op: "remote error", Err: errors.New("tls: handshake\nfailure")}), "remote error: tls: handshake failure"},
		"no name":     {get(&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "example.com", Server: "10.0.0.2:53"}}), "its name is not known to DNS, or DNS cannot be asked"},
		"stranger":    {get(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}), "its certificate is signed by an unknown authority"},
		"other name":  {get(x509.HostnameError{Certificate: &x509.Certificate{}, Host: "x"}), "its certificate is for another name"},
		"expired":     {get(x509.CertificateInvalidError{Reason: x509.Expired}), "its certificate is not valid, or not any more"},
		"plain":       {get(http.ErrSchemeMismatch), "it does not speak TLS"},
		"no TLS":      {get(tls.RecordHeaderError{Msg: "x", Conn: nil}), "it does not speak TLS"},
		"hung up":     {get(io.EOF), "it hung up before the end"},
		"cut off":     {fmt.Errorf("read: %w", io.ErrUnexpectedEOF), "it hung up before the end"},
		"other":       {get(errors.New("malformed\x1b[2J response")), "malformed\\u001b[2J response"},
		"no request":  {errors.New("it is larger than 8 MiB"), ""},
		"end of data": {io.EOF, ""},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, Failure(c.err)) })
	}
}

func TestOneLine(t *testing.T) {
	for text, want := range map[string]string{"a\n\tb  c": "a b c", "\x00": `\u0000`, "\xff": "?", strings.Repeat("a", 9): "aaaaaaaa…", "aaaaaaaé": "aaaaaaa…"} {
		require.Equal(t, want, OneLine(text, 8))
	}
}

func TestOriginHasSchemeHostAndPort(t *testing.T) {
	for text, want := range map[string]string{"https://EXAMPLE.com/a?b": "https://example.com:443", "http://[::1]/": "http://[::1]:80", "http://h:8080": "http://h:8080"} {
		u, err := url.Parse(text)
		require.NoError(t, err)
		require.Equal(t, want, Origin(u))
	}
	for host, want := range map[string]bool{"localhost": true, "127.0.0.9": true, "::1": true, "localhost.example.com": false, "10.0.0.1": false} {
		require.Equal(t, want, Loopback(host), host)
	}
}

// Redirects are followed on the same scheme, host and port, a few of them.
func TestRedirectsStayWithinTheOrigin(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to := map[string]string{"/": "/1", "/1": "/2", "/2": "/ok", "/round": "/round", "/away": "http://other.example.com/x"}[r.URL.Path]
		if to != "" {
			http.Redirect(w, r, to, http.StatusFound)
		}
	}))
	t.Cleanup(s.Close)
	at, err := url.Parse(s.URL)
	require.NoError(t, err)
	client := &http.Client{CheckRedirect: Within(Origin(at))}
	get := func(path string) error {
		resp, err := client.Get(s.URL + path)
		if err == nil {
			err = resp.Body.Close()
		}
		return err
	}
	require.NoError(t, get("/"))
	var redirects *TooManyRedirectsError
	require.ErrorAs(t, get("/round"), &redirects)
	var away *RedirectError
	require.ErrorAs(t, get("/away"), &away)
	require.Equal(t, "http://other.example.com:80", away.To)
}
