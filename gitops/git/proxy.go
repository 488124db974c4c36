package git

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"

	"golang.org/x/net/proxy"
)

// maxProxyAnswer is how much a proxy may say before the tunnel begins.
const maxProxyAnswer = 64 << 10

// dialThrough connects to a host and port: directly, or through the proxy that is chosen for it. The proxy looks the
// name up.
func (a Auth) dialThrough(ctx context.Context, hostPort string) (net.Conn, error) {
	direct := &net.Dialer{}
	if a.Proxy == nil {
		return direct.DialContext(ctx, "tcp", hostPort)
	}
	by, err := a.Proxy(&http.Request{Method: http.MethodConnect, URL: &url.URL{Scheme: "ssh", Host: hostPort},
		Host: hostPort})
	if err != nil || by == nil {
		if err == nil {
			return direct.DialContext(ctx, "tcp", hostPort)
		}
		// the parser's error repeats a password
		return nil, errors.New("no proxy can be chosen: its address cannot be parsed")
	}
	switch by.Scheme {
	case "http", "https":
		return a.tunnel(ctx, by, hostPort)
	case "socks5", "socks5h":
		var login *proxy.Auth
		if by.User != nil {
			password, _ := by.User.Password()
			login = &proxy.Auth{User: by.User.Username(), Password: password}
		}
		dialer, err := proxy.SOCKS5("tcp", proxyAddress(by, "1080"), login, direct)
		if err != nil {
			return nil, err
		}
		return dialer.(proxy.ContextDialer).DialContext(ctx, "tcp", hostPort)
	}
	return nil, fmt.Errorf("the proxy's scheme is %q: use http, https or socks5", by.Scheme)
}

// proxyAddress is where a proxy listens.
func proxyAddress(by *url.URL, port string) string {
	if by.Port() != "" {
		port = by.Port()
	}
	return net.JoinHostPort(by.Hostname(), port)
}

// tunnel asks an HTTP proxy for a connection (RFC 9110, section 9.3.6).
func (a Auth) tunnel(ctx context.Context, by *url.URL, hostPort string) (net.Conn, error) {
	conn, err := a.dialProxy(ctx, by)
	if err != nil {
		return nil, err
	}
	unwatch := context.AfterFunc(ctx, func() { _ = conn.Close() })
	through, err := ask(conn, by, hostPort)
	if !unwatch() {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("proxy %s: %w", by.Host, err), closeQuietly(conn))
	}
	return through, nil
}

func (a Auth) dialProxy(ctx context.Context, by *url.URL) (net.Conn, error) {
	if by.Scheme == "http" {
		return (&net.Dialer{}).DialContext(ctx, "tcp", proxyAddress(by, "80"))
	}
	config, err := a.TLSConfig()
	if err != nil {
		return nil, err
	}
	return (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", proxyAddress(by, "443"))
}

// ask has the proxy connect. What it passed on already, since an SSH server speaks first, is in the connection that ask
// gives.
func ask(conn net.Conn, by *url.URL, hostPort string) (net.Conn, error) {
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: hostPort}, Host: hostPort,
		Header: http.Header{}}
	if by.User != nil {
		password, _ := by.User.Password()
		req.Header.Set("Proxy-Authorization", "Basic "+
			base64.StdEncoding.EncodeToString([]byte(by.User.Username()+":"+password)))
	}
	if err := req.Write(conn); err != nil {
		return nil, err
	}
	bounded := &io.LimitedReader{R: conn, N: maxProxyAnswer}
	reader := bufio.NewReader(bounded)
	resp, err := http.ReadResponse(reader, req) //nolint:bodyclose // what follows is the tunnel
	if err != nil {
		return nil, fmt.Errorf("read answer to CONNECT %s: expected an HTTP response: %w", hostPort, err)
	}
	if resp.StatusCode/100 != 2 {
		return nil, fmt.Errorf("answers HTTP %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	bounded.N = math.MaxInt64
	return &tunneled{conn, reader}, nil
}

// tunneled is a connection with bytes that were read ahead.
type tunneled struct {
	net.Conn
	reader *bufio.Reader
}

// Read reads what was read ahead first.
func (t *tunneled) Read(p []byte) (int, error) { return t.reader.Read(p) }
