package git

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/gittest"
)

// httpProxy makes tunnels, and notes what it could see.
type httpProxy struct {
	// names are addresses that only the proxy knows.
	names map[string]string
	// password is what it wants with the name me, "" for none.
	password string

	mu   sync.Mutex
	seen []string
}

func (p *httpProxy) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	p.mu.Lock()
	p.seen = append(p.seen, req.Method+" "+req.Host+" "+req.Header.Get("Proxy-Authorization")+req.Header.Get("Authorization"))
	p.mu.Unlock()
	if req.Method != http.MethodConnect {
		http.Error(w, "only tunnels", http.StatusForbidden)
		return
	}
	if p.password != "" && req.Header.Get("Proxy-Authorization") != "Basic "+base64.StdEncoding.EncodeToString([]byte("me:"+p.password)) {
		http.Error(w, "who are you?", http.StatusProxyAuthRequired)
		return
	}
	server, err := net.Dial("tcp", cmp.Or(p.names[req.Host], req.Host))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer func() { _ = server.Close() }()
	w.WriteHeader(http.StatusOK)
	client, said, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = client.Close() }()
	go func() { _, _ = io.Copy(server, said); _ = server.Close() }() // the server may have read ahead
	_, _ = io.Copy(client, server)
}

func TestProxy(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: first})
	server := gittest.ServeHTTP(t, r, gittest.HTTPConfig{User: "bot", Password: "s3cret", TLS: true})
	between := &httpProxy{}
	front := httptest.NewServer(between)
	t.Cleanup(front.Close)
	to, err := url.Parse(strings.Replace(front.URL, "http://", "http://me:pr0xypass@", 1))
	require.NoError(t, err)
	auth := Auth{User: "bot", Password: SecretValue("s3cret"), CAFile: server.CAFile, Proxy: http.ProxyURL(to)}
	m := openMirror(t, way{url: server.URL, auth: auth})
	_, err = m.Push(t.Context(), stage(t, m, commitOn(fetch(t, m, "main"), put("x", "y"))))
	require.NoError(t, err)
	want := "CONNECT " + gittest.HostOf(server.URL) + " Basic " + base64.StdEncoding.EncodeToString([]byte("me:pr0xypass"))
	require.NotEmpty(t, between.seen)
	for _, seen := range between.seen {
		require.Equal(t, want, seen, "it sees where to, and nothing of what is said")
	}

	to.Host = "127.0.0.1:1"
	_, err = openMirror(t, way{url: server.URL, auth: auth}).Fetch(soon(t), "main")
	require.ErrorContains(t, err, "check the host, the port and the proxy")
	require.NotContains(t, err.Error(), "pr0xypass")
}

// socksProxy is a SOCKS5 server that wants the name me and a password (RFC 1928, 1929). It notes whom it connected to.
type socksProxy struct {
	net.Listener
	names    map[string]string
	password string

	mu   sync.Mutex
	seen []string
}

func serveSOCKS(t *testing.T, p *socksProxy) (host string) {
	t.Helper()
	var err error
	p.Listener, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Close() })
	go func() {
		for {
			conn, err := p.Accept()
			if err != nil {
				return
			}
			go func() { _ = p.serve(conn); _ = conn.Close() }()
		}
	}()
	return p.Addr().String()
}

func (p *socksProxy) serve(conn net.Conn) error {
	read := func(n int) []byte {
		b := make([]byte, n)
		if _, err := io.ReadFull(conn, b); err != nil {
			return make([]byte, n)
		}
		return b
	}
	if methods := read(int(read(2)[1])); !bytes.Contains(methods, []byte{2}) {
		_, err := conn.Write([]byte{5, 0xff})
		return err
	}
	if _, err := conn.Write([]byte{5, 2}); err != nil {
		return err
	}
	user := string(read(int(read(2)[1])))
	if password := string(read(int(read(1)[0]))); user != "me" || password != p.password {
		_, err := conn.Write([]byte{1, 1})
		return err
	}
	if _, err := conn.Write([]byte{1, 0}); err != nil {
		return err
	}
	if head := read(4); head[1] != 1 || head[3] != 3 {
		return errors.New("only names")
	}
	name := string(read(int(read(1)[0])))
	port := read(2)
	address := net.JoinHostPort(name, fmt.Sprint(int(port[0])<<8|int(port[1])))
	p.mu.Lock()
	p.seen = append(p.seen, address)
	p.mu.Unlock()
	server, err := net.Dial("tcp", p.names[address])
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }()
	if _, err := conn.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0}); err != nil {
		return err
	}
	go func() { _, _ = io.Copy(server, conn); _ = server.Close() }()
	_, err = io.Copy(conn, server)
	return err
}

// SSH goes through proxies of each kind, to a name that only the proxy knows, and the server's key is checked behind
// it.
func TestSSHProxy(t *testing.T) {
	const name = "git.example.test:2222"
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: first})
	ssh := gittest.ServeSSH(t)
	names := map[string]string{name: ssh.Addr}
	known := func(file string) string {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		_, key, _ := strings.Cut(string(text), " ")
		out := filepath.Join(t.TempDir(), "known_hosts")
		require.NoError(t, os.WriteFile(out, []byte("[git.example.test]:2222 "+key), 0o600))
		return out
	}
	tunnels, inTLS := &httpProxy{names: names, password: "pr0xypass"}, &httpProxy{names: names, password: "pr0xypass"}
	plain, secure := httptest.NewServer(tunnels), httptest.NewTLSServer(inTLS)
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, pemOf(secure.Certificate().Raw), 0o600))
	socks := &socksProxy{names: names, password: "pr0xypass"}
	socksHost := serveSOCKS(t, socks)
	connects := "CONNECT " + name + " Basic " + base64.StdEncoding.EncodeToString([]byte("me:pr0xypass"))
	for kind, c := range map[string]struct {
		proxy string
		seen  *[]string
		want  string
	}{
		"http":   {strings.Replace(plain.URL, "://", "://me:PASSWORD@", 1), &tunnels.seen, connects},
		"https":  {strings.Replace(secure.URL, "://", "://me:PASSWORD@", 1), &inTLS.seen, connects},
		"socks5": {"socks5://me:PASSWORD@" + socksHost, &socks.seen, name},
	} {
		t.Run(kind, func(t *testing.T) {
			through := func(password string) Auth {
				to, err := url.Parse(strings.Replace(c.proxy, "PASSWORD", password, 1))
				require.NoError(t, err)
				return Auth{SSHKey: SecretFile(ssh.KeyFile), KnownHosts: known(ssh.KnownHostsFile), CAFile: ca, Proxy: http.ProxyURL(to)}
			}
			fails := func(auth Auth, reason Reason, says string) {
				t.Helper()
				_, err := openMirror(t, way{url: "ssh://" + ssh.User + "@" + name + r.Dir, auth: auth}).Fetch(soon(t), "main")
				var access *AccessError
				require.ErrorAs(t, err, &access)
				require.Equal(t, reason, access.Reason, err)
				require.ErrorContains(t, err, says)
				require.NotContains(t, err.Error(), "pr0xypass")
			}
			m := openMirror(t, way{url: "ssh://" + ssh.User + "@" + name + r.Dir, auth: through("pr0xypass")})
			_, err := m.Push(soon(t), stage(t, m, commitOn(fetch(t, m, "main"), put("by-"+kind, "y"))))
			require.NoError(t, err)
			require.Equal(t, []string{c.want}, *c.seen, "one connection, and it sees where to")

			strange, unknown := through("pr0xypass"), through("pr0xypass")
			strange.KnownHosts, unknown.KnownHosts = known(ssh.OtherHostsFile), os.DevNull
			fails(strange, ReasonHostKey, "someone may be in between")
			fails(unknown, ReasonHostKey, "SHA256:")
			fails(through("not-pr0xypass"), ReasonNetwork, "check the host, the port and the proxy")
		})
	}
	t.Run("none is taken that cannot be one", func(t *testing.T) {
		for address, says := range map[string]string{"ftp://me:pr0xypass@127.0.0.1:1": "use http, https or socks5", "http://me:pr0xypass@127.0.0.1:1": "refused"} {
			to, err := url.Parse(address)
			require.NoError(t, err)
			auth := Auth{SSHKey: SecretFile(ssh.KeyFile), KnownHosts: ssh.KnownHostsFile, Proxy: http.ProxyURL(to)}
			_, err = openMirror(t, way{url: ssh.URL(r), auth: auth}).Fetch(soon(t), "main")
			require.ErrorContains(t, err, says)
			require.NotContains(t, err.Error(), "pr0xypass")
		}
	})
}

// OpenSSH is a SOCKS5 server too, with "ssh -D".
func TestSSHThroughOpenSSH(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: first})
	ssh := gittest.ServeSSH(t)
	to, err := url.Parse("socks5h://" + ssh.Forward(t))
	require.NoError(t, err)
	before := ssh.Connections()
	auth := Auth{SSHKey: SecretFile(ssh.KeyFile), KnownHosts: ssh.KnownHostsFile, Proxy: http.ProxyURL(to)}
	m := openMirror(t, way{url: ssh.URL(r), auth: auth})
	_, err = m.Push(soon(t), stage(t, m, commitOn(fetch(t, m, "main"), put("x", "y"))))
	require.NoError(t, err)
	require.Equal(t, before+1, ssh.Connections())

	auth.KnownHosts = ssh.OtherHostsFile
	_, err = openMirror(t, way{url: ssh.URL(r), auth: auth}).Fetch(soon(t), "main")
	require.ErrorContains(t, err, "someone may be in between")
}

func pemOf(certificate []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
}
