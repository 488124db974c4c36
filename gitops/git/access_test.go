package git

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/testneed"
)

const password = "hunter2/@:x"

func TestAccessErrors(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: first})
	basic := gittest.ServeHTTP(t, r, gittest.HTTPConfig{User: "bot", Password: "right"})
	tls := gittest.ServeHTTP(t, r, gittest.HTTPConfig{TLS: true})
	ssh := gittest.ServeSSH(t)
	key, hosts := SecretFile(ssh.KeyFile), ssh.KnownHostsFile
	status := func(code int) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "<html>"+password+"</html>", code)
		}))
		t.Cleanup(s.Close)
		return s.URL + "/x.git"
	}
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "<html>welcome</html>")
	}))
	t.Cleanup(page.Close)
	failing := func(context.Context) (string, error) { return "", errors.New("vault is sealed") }

	tests := []struct {
		name   string
		url    string
		auth   Auth
		reason Reason
		says   string
	}{
		{"no credentials", basic.URL, Auth{}, ReasonUnauthorized, "give a token"},
		{"wrong password", basic.URL, Auth{User: "bot", Password: SecretValue(password)}, ReasonUnauthorized, "wrong or has expired"},
		{"wrong password in the URL", strings.Replace(basic.URL, "http://", "http://bot:hunter2@", 1), Auth{}, ReasonUnauthorized, "wrong or has expired"},
		{"unreadable password", basic.URL, Auth{Password: failing}, ReasonCredentials, "vault is sealed"},
		{"forbidden", status(403), Auth{Password: SecretValue(password)}, ReasonForbidden, "lacks the right to read"},
		{"not found", status(404), Auth{}, ReasonNotFound, "check the URL"},
		{"server error", status(503), Auth{}, ReasonServer, "HTTP 503 Service Unavailable"},
		{"a web page", page.URL + "/x", Auth{}, ReasonServer, "is this the URL of a Git repository?"},
		{"unknown certificate", tls.URL, Auth{}, ReasonCertificate, "give the CA"},
		{"connection refused", "http://127.0.0.1:1/x.git", Auth{}, ReasonNetwork, "check the host"},
		{"no such directory", "file:///no/such/repo.git", Auth{}, ReasonNotFound, "check the path"},
		{"no repository there", "file://" + t.TempDir(), Auth{}, ReasonNotFound, "does not appear to be a git repository"},
		{"wrong key", ssh.URL(r), Auth{SSHKey: SecretFile(ssh.OtherKeyFile), KnownHosts: hosts}, ReasonUnauthorized, "does not accept this key"},
		{"no key file", ssh.URL(r), Auth{SSHKey: SecretFile("/no/key"), KnownHosts: hosts}, ReasonCredentials, "read SSH key"},
		{"nonsense key", ssh.URL(r), Auth{SSHKey: SecretValue(password), KnownHosts: hosts}, ReasonCredentials, "no key found"},
		{"no known_hosts", ssh.URL(r), Auth{SSHKey: key, KnownHosts: "/no/hosts"}, ReasonHostKey, "read known_hosts"},
		{"unknown host", ssh.URL(r), Auth{SSHKey: key, KnownHosts: os.DevNull}, ReasonHostKey, "SHA256:"},
		{"changed host key", ssh.URL(r), Auth{SSHKey: key, KnownHosts: ssh.OtherHostsFile}, ReasonHostKey, "someone may be in between"},
		{"no such repository over SSH", "ssh://" + ssh.User + "@" + ssh.Addr + "/no/such.git", Auth{SSHKey: key, KnownHosts: hosts}, ReasonNotFound, "this key may read"},
		{"no SSH server", "ssh://git@127.0.0.1:1/x.git", Auth{SSHKey: key, KnownHosts: hosts}, ReasonNetwork, "check the host"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			log := &logs{}
			m, err := Open(Config{URL: test.url, Dir: t.TempDir(), Auth: test.auth, Log: log.logger()})
			require.NoError(t, err)
			defer m.Close()
			_, err = m.Fetch(soon(t), "main")
			var access *AccessError
			require.ErrorAs(t, err, &access)
			require.Equal(t, test.reason, access.Reason, err)
			require.Equal(t, "fetch", access.Op)
			require.Contains(t, err.Error(), test.says)
			for _, text := range []string{err.Error(), fmt.Sprintf("%+v", errors.Unwrap(err)), log.String()} {
				require.NotContains(t, text, "hunter2")
			}
		})
	}
}

func TestAddressesThatCannotWork(t *testing.T) {
	for url, want := range map[string]Reason{
		"":                                 ReasonAddress,
		"some/where":                       ReasonAddress,
		"git://host/x":                     ReasonAddress,
		"ftp://u:hunter2@host/x":           ReasonAddress,
		"https://u:hunter2@/x":             ReasonAddress,
		"https://u:hunter2@host":           ReasonAddress,
		"https://u:hunter2@ho st/x%zz":     ReasonAddress,
		"file://host/x":                    ReasonAddress,
		"ssh://u:hunter2@host/x":           ReasonAddress,
		"u:hunter2@https://host/x":         ReasonAddress,
		"ssh://u@host/x":                   ReasonCredentials,
		"http://u:hunter2@example.com/x":   ReasonInsecure,
		"http://hunter2@example.com/x":     ReasonInsecure,
		"http://u:hunter2@127.1.2.3.com/x": ReasonInsecure,
	} {
		_, err := Open(Config{URL: url, Dir: t.TempDir(), Log: (&logs{}).logger()})
		var access *AccessError
		require.ErrorAs(t, err, &access, url)
		require.Equal(t, want, access.Reason, url)
		require.NotContains(t, err.Error(), "hunter2")
	}
	_, err := Open(Config{URL: "http://example.com/x", Auth: Auth{Password: SecretValue("x")}, Dir: t.TempDir(), Log: (&logs{}).logger()})
	var access *AccessError
	require.ErrorAs(t, err, &access)
	requireSame(t, &AccessError{Op: "open", URL: "http://example.com/x", Reason: ReasonInsecure, Hint: "credentials are not sent over plain HTTP: use https"}, access)
}

func TestAddress(t *testing.T) {
	for raw, want := range map[string]address{
		"file:///srv/x.git":             {scheme: "file", path: "/srv/x.git", display: "file:///srv/x.git"},
		"/srv/x.git":                    {scheme: "file", path: "/srv/x.git", display: "file:///srv/x.git"},
		"https://u:p@h.example:8443/a/": {scheme: "https", user: "u", password: "p", host: "h.example", port: 8443, path: "/a", display: "https://h.example:8443/a"},
		"https://h/a%2Fb":               {scheme: "https", host: "h", path: "/a%2Fb", display: "https://h/a%2Fb"},
		"http://[::1]:80/a":             {scheme: "http", host: "::1", port: 80, path: "/a", display: "http://[::1]:80/a"},
		"ssh://me@h:2222/srv/x":         {scheme: "ssh", user: "me", host: "h", port: 2222, path: "/srv/x", display: "ssh://me@h:2222/srv/x"},
		"ssh://h/~bob/x":                {scheme: "ssh", user: "git", host: "h", path: "/~bob/x", display: "ssh://git@h/~bob/x"},
		"git@github.com:acme/x.git":     {scheme: "ssh", user: "git", host: "github.com", port: 22, path: "acme/x.git", display: "ssh://git@github.com/acme/x.git"},
		"https://h:443/" + "x?a=b#c":    {scheme: "https", host: "h", port: 443, path: "/x", display: "https://h:443/x"},
	} {
		got, err := parseAddress(raw)
		require.NoError(t, err, raw)
		require.Equal(t, want, got, raw)
	}
}

func TestPathAtServer(t *testing.T) {
	for raw, want := range map[string]string{
		"https://u:p@h.example:8443/team/workers.git": "team/workers", "https://h/a%20b/c/": "a b/c", "ssh://git@h:2222/team/workers.git": "team/workers",
		"git@github.com:acme/x.git": "acme/x", "http://h/git/team/workers": "git/team/workers", "ssh://h/group/sub%20/x.git": "group/sub /x",
		"file:///srv/git/workers.git": "", "/srv/git/workers.git": "", "workers": "", "": "", "ftp://h/x": "",
	} {
		require.Equal(t, want, PathAtServer(raw), raw)
	}
}

func FuzzRedact(f *testing.F) {
	for _, seed := range []string{"https://%s@h/x", "%s@h:x", "https://u:%s@h/x", "ssh://%s@", "%s@", "://%s@h", "https://u:%s@h/%%zz", "https://a/b:%s@h", "me:%s@https://h/x", "0%s@://0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		before, after, found := strings.Cut(pattern, "%s")
		if !found || !strings.Contains(after, "@") {
			return
		}
		raw := before + "hunter2" + after
		if authority, _, _ := strings.Cut(after, "@"); strings.ContainsAny(authority, "/?#") {
			return // the secret is not in the place of one
		}
		require.NotContains(t, redact(raw), "hunter2")
		if a, err := parseAddress(raw); err == nil && a.password == "hunter2" {
			require.NotContains(t, a.display, "hunter2")
		} else if err != nil {
			require.NotContains(t, err.Error(), "hunter2")
		}
	})
}

func TestConfigHidesCredentials(t *testing.T) {
	log := &logs{}
	c := Config{URL: "https://u:hunter2@h/x", Dir: "/d", Auth: Auth{Password: SecretValue("hunter2")}}
	log.logger().Info("config", "config", c)
	for _, text := range []string{fmt.Sprint(c), fmt.Sprintf("%+v %#v %s", c, c, c), log.String()} {
		require.NotContains(t, text, "hunter2")
		require.Contains(t, text, "https://h/x")
	}
}

func TestPasswordInTheURLIsUsed(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: first})
	server := gittest.ServeHTTP(t, r, gittest.HTTPConfig{User: "me", Password: "hunter2"})
	dir := t.TempDir()
	m := openAt(t, dir, way{url: strings.Replace(server.URL, "http://", "http://me:hunter2@", 1)})
	tip := fetch(t, m, "main")
	_, err := m.Push(t.Context(), stage(t, m, commitOn(tip, put("x", "y"))))
	require.NoError(t, err)
	require.NoError(t, m.Close())
	require.NoError(t, filepath.Walk(dir, func(name string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		require.NotContains(t, string(data), "hunter2", name)
		return err
	}))
}

func TestCredentialsAreReadAgain(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: first})
	server := gittest.ServeHTTP(t, r, gittest.HTTPConfig{User: DefaultTokenUser, Password: "new"})
	file := filepath.Join(t.TempDir(), "token")
	overwrite(t, file, "old\n")
	m := openMirror(t, way{url: server.URL, auth: Auth{Password: SecretFile(file)}})
	_, err := m.Fetch(t.Context(), "main")
	require.Error(t, err)
	overwrite(t, file, "new\r\n")
	fetch(t, m, "main")
}

func TestCredentialsDoNotFollowRedirects(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: first})
	seen := make(chan string, 10)
	real := gittest.ServeHTTP(t, r, gittest.HTTPConfig{Wrap: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			seen <- req.Header.Get("Authorization")
			next.ServeHTTP(w, req)
		})
	}})
	elsewhere := strings.Replace(real.URL, "127.0.0.1", "localhost", 1)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, elsewhere+strings.TrimPrefix(req.URL.Path, "/repo.git")+"?"+req.URL.RawQuery, http.StatusFound)
	}))
	t.Cleanup(front.Close)
	m := openMirror(t, way{url: front.URL + "/repo.git", auth: Auth{Password: SecretValue("s3cret")}})
	fetch(t, m, "main")
	require.NoError(t, m.Close())
	for len(seen) > 0 {
		require.Empty(t, <-seen)
	}
}

func TestEncryptedSSHKey(t *testing.T) {
	testneed.Plain(t)
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: first})
	ssh := gittest.ServeSSH(t)
	locked := ssh.EncryptKey(t, "open sesame")
	for name, test := range map[string]struct {
		passphrase Secret
		says       string
	}{
		"right": {passphrase: SecretValue("open sesame")},
		"wrong": {passphrase: SecretValue("hunter2"), says: "check the SSH key and its passphrase"},
		"none":  {says: "no passphrase was given"},
	} {
		t.Run(name, func(t *testing.T) {
			m := openMirror(t, way{url: ssh.URL(r), auth: Auth{
				SSHKey: SecretFile(locked), SSHPassphrase: test.passphrase, KnownHosts: ssh.KnownHostsFile}})
			_, err := m.Fetch(soon(t), "main")
			if test.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.says)
			require.NotContains(t, err.Error(), "hunter2")
		})
	}
}

func TestSSHConnectionIsKeptAndReplaced(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: first})
	ssh := gittest.ServeSSH(t)
	m := openMirror(t, way{url: ssh.URL(r), auth: Auth{SSHKey: SecretFile(ssh.KeyFile), KnownHosts: ssh.KnownHostsFile}})
	tip := fetch(t, m, "main")
	for range 3 {
		fetch(t, m, "main")
	}
	_, err := m.Push(t.Context(), stage(t, m, commitOn(tip, put("x", "y"))))
	require.NoError(t, err)
	require.Equal(t, 1, ssh.Connections())
	require.NoError(t, m.remote.(*sshRemote).client.Close()) // as a firewall might
	fetch(t, m, "main")
	require.Equal(t, 2, ssh.Connections())
}

// deaf accepts connections and never says a word.
func deaf(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

func TestFetchCanBeInterrupted(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: first})
	ssh := gittest.ServeSSH(t)
	fifo := filepath.Join(t.TempDir(), "objects")
	slow := gittest.NewBareRepo(t)
	slow.Commit(gittest.Commit{Write: first})
	// git blocks on opening this while it looks for an object's alternates
	require.NoError(t, mkfifo(fifo))
	require.NoError(t, os.Symlink(fifo, filepath.Join(slow.Dir, "objects/info/alternates")))
	hosts := filepath.Join(t.TempDir(), "hosts")
	addr := deaf(t)
	overwrite(t, hosts, "")
	for name, w := range map[string]way{
		"http": {url: "http://" + addr + "/x.git"},
		"ssh":  {url: "ssh://git@" + addr + "/x.git", auth: Auth{SSHKey: SecretFile(ssh.KeyFile), KnownHosts: hosts}},
		"file": {url: slow.URL()},
	} {
		t.Run(name, func(t *testing.T) {
			m := openMirror(t, w)
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			start := time.Now()
			_, err := m.Fetch(ctx, "main")
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Less(t, time.Since(start), 5*time.Second)
			require.Contains(t, err.Error(), "fetch "+m.url)
		})
	}
	t.Run("waiting for its turn", func(t *testing.T) {
		m := openMirror(t, way{url: r.URL()})
		_, give, err := m.take(t.Context())
		require.NoError(t, err)
		defer give()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = m.Fetch(ctx, "main")
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestNoProcessIsLeftBehind(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: first})
	m := openFile(t, r)
	tip := fetch(t, m, "main")
	_, err := m.Push(t.Context(), stage(t, m, commitOn(tip, put("x", "y"))))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = m.Fetch(ctx, "main")
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, zombies(t))
}

// zombies lists this process's children that have ended and were not waited for.
func zombies(t *testing.T) []string {
	t.Helper()
	var found []string
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	for _, name := range stats {
		data, err := os.ReadFile(name)
		if err != nil {
			continue // it has gone meanwhile
		}
		_, rest, _ := strings.Cut(string(data), ") ")
		fields := strings.Fields(rest)
		if len(fields) > 1 && fields[0] == "Z" && fields[1] == fmt.Sprint(os.Getpid()) {
			found = append(found, string(data))
		}
	}
	return found
}
