package webhook

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/keytest"
)

// listening is a server that answers, until the test ends.
func listening(t *testing.T, cfg ServerConfig, handler http.Handler) (s *Server, stop func() error) {
	t.Helper()
	cfg.Address, cfg.Path, cfg.Log = "127.0.0.1:0", "/webhook", slog.New(slog.DiscardHandler)
	s, err := Listen(t.Context(), cfg, handler)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	stop = func() error { cancel(); return <-ended }
	t.Cleanup(cancel)
	return s, stop
}

// raw sends a text as it is, and gives the answer's status. The server has to say that it closes the connection.
func raw(t *testing.T, s *Server, text string) int {
	t.Helper()
	conn, err := net.Dial("tcp", s.Address())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, text)
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.True(t, resp.Close)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

// A delivery that does not come to its end is cut off, and does not wake the bot.
func TestSlowBody(t *testing.T) {
	d := newFixture(t, secretOther)
	s, stop := listening(t, ServerConfig{ReadTime: 200 * time.Millisecond}, d.handler)
	head := "POST /webhook HTTP/1.1\r\nHost: bot\r\nContent-Type: application/json\r\nContent-Length: 2\r\nX-Hub-Signature-256: sha256=" + sumOf(secretOther, "{}") + "\r\n\r\n"
	require.Equal(t, 408, raw(t, s, head+"{"))
	require.Zero(t, d.rung.Load())
	require.Contains(t, d.log.String(), "the delivery was too slow")
	require.Equal(t, 202, raw(t, s, head+"{}"))
	require.NoError(t, stop())
}

// Only the path of webhooks is served, headers are bounded, and connections are not kept.
func TestOnlyThePathOfWebhooksIsServed(t *testing.T) {
	d := newFixture(t, secretOther)
	s, stop := listening(t, ServerConfig{}, d.handler)
	head := func(path string) string {
		return "POST " + path + " HTTP/1.1\r\nHost: bot\r\nContent-Type: application/json\r\nContent-Length: 0\r\nX-Hub-Signature-256: " + sumOf(secretOther, "") + "\r\n"
	}
	for path, want := range map[string]int{"/webhook": 202, "/": 404, "/webhook/": 404, "/webhooks": 404, "/../webhook": 404} {
		require.Equal(t, want, raw(t, s, head(path)+"\r\n"), path)
	}
	require.Equal(t, 200, raw(t, s, head("/webhook?x=y")+"\r\n"), "it was there before")
	require.Equal(t, 431, raw(t, s, head("/webhook")+"X-Long: "+strings.Repeat("x", maxHeaders+8<<10)+"\r\n\r\n"))
	require.NoError(t, stop())
	_, err := net.Dial("tcp", s.Address())
	require.Error(t, err)
}

// A delivery under way when the bot is told to end is finished.
func TestEndsGracefully(t *testing.T) {
	began, release := make(chan struct{}), make(chan struct{})
	s, stop := listening(t, ServerConfig{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(began)
		<-release
		w.WriteHeader(http.StatusAccepted)
	}))
	answered := make(chan int, 1)
	go func() {
		resp, err := http.Post("http://"+s.Address()+"/webhook", "application/json", strings.NewReader("{}"))
		if err != nil {
			answered <- 0
			return
		}
		answered <- resp.StatusCode
		_ = resp.Body.Close()
	}()
	<-began
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	require.Eventually(t, func() bool { // no new connection is let in
		conn, err := net.Dial("tcp", s.Address())
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	}, 10*time.Second, time.Millisecond)
	close(release)
	require.Equal(t, http.StatusAccepted, <-answered)
	require.NoError(t, <-ended)
}

// A server that ends by itself says so.
func TestEndsByItself(t *testing.T) {
	s, err := Listen(t.Context(), ServerConfig{Address: "127.0.0.1:0", Path: "/", Log: slog.New(slog.DiscardHandler)}, http.NotFoundHandler())
	require.NoError(t, err)
	require.NoError(t, s.listener.Close())
	require.ErrorIs(t, s.Serve(t.Context()), net.ErrClosed)
}

// certificate writes a certificate for 127.0.0.1 that has signed itself.
func certificate(t *testing.T, cfg ServerConfig, serial int64) *x509.CertPool {
	t.Helper()
	c := keytest.SelfSigned(t, serial)
	require.NoError(t, os.WriteFile(cfg.CertFile, c.PEM, 0o600))
	require.NoError(t, os.WriteFile(cfg.KeyFile, c.KeyPEM, 0o600))
	return c.Pool
}

// HTTPS is served by the certificate as it is now: a renewed one counts without a restart.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	cfg := ServerConfig{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
	first := certificate(t, cfg, 1)
	d := newFixture(t, secretOther)
	s, stop := listening(t, cfg, d.handler)
	send := func(pool *x509.CertPool, body string) (int, error) {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: pool}}}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+s.Address()+"/webhook", strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Hub-Signature-256", sumOf(secretOther, body))
		resp, err := client.Do(r)
		if err != nil {
			return 0, err
		}
		return resp.StatusCode, resp.Body.Close()
	}
	status, err := send(first, "1")
	require.NoError(t, err)
	require.Equal(t, 202, status)
	second := certificate(t, cfg, 2)
	_, err = send(first, "2")
	require.ErrorContains(t, err, "certificate")
	status, err = send(second, "2")
	require.NoError(t, err)
	require.Equal(t, 202, status)
	require.Equal(t, 400, raw(t, s, "GET / HTTP/1.1\r\nHost: bot\r\n\r\n"), "HTTP where HTTPS is wanted")
	require.NoError(t, stop())
}

// What cannot be listened on is said before the bot begins.
func TestListenRefuses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	nothing := filepath.Join(t.TempDir(), "nothing.pem")
	for name, c := range map[string]struct {
		cfg  ServerConfig
		says string
	}{
		"no port":           {ServerConfig{Address: "127.0.0.1", Path: "/"}, `the address for webhooks, "127.0.0.1", is not host:port`},
		"no known port":     {ServerConfig{Address: "127.0.0.1:nothing", Path: "/"}, `the address for webhooks, "127.0.0.1:nothing", is not host:port`},
		"no path":           {ServerConfig{Address: "127.0.0.1:0", Path: "webhook"}, `the path of webhooks, "webhook", has to begin with a slash`},
		"taken":             {ServerConfig{Address: taken.Addr().String(), Path: "/"}, "address already in use"},
		"certificate alone": {ServerConfig{Address: "127.0.0.1:0", Path: "/", CertFile: nothing}, "a certificate and its key, and only one of them is given"},
		"no certificate":    {ServerConfig{Address: "127.0.0.1:0", Path: "/", CertFile: nothing, KeyFile: nothing}, "read the certificate for webhooks: open"},
		"all, unsigned":     {ServerConfig{Address: ":0", Path: "/"}, "webhooks on :0 need a secret: without one only a loopback address is listened on"},
		"zero, unsigned":    {ServerConfig{Address: "0.0.0.0:0", Path: "/"}, "need a secret"},
		"IPv6, unsigned":    {ServerConfig{Address: "[::]:0", Path: "/"}, "need a secret"},
	} {
		t.Run(name, func(t *testing.T) {
			c.cfg.Log = slog.New(slog.DiscardHandler)
			_, err := Listen(t.Context(), c.cfg, http.NotFoundHandler())
			require.ErrorContains(t, err, c.says)
		})
	}
	for _, address := range []string{"127.0.0.1:0", "localhost:0"} {
		s, err := Listen(t.Context(), ServerConfig{Address: address, Path: "/", Log: slog.New(slog.DiscardHandler)}, http.NotFoundHandler())
		require.NoError(t, err)
		require.True(t, netip.MustParseAddrPort(s.Address()).Addr().IsLoopback(), s.Address())
		require.NoError(t, s.listener.Close())
	}
	s, err := Listen(t.Context(), ServerConfig{Address: ":0", Path: "/", Proven: true, Log: slog.New(slog.DiscardHandler)}, http.NotFoundHandler())
	require.NoError(t, err)
	require.NoError(t, s.listener.Close())
}
