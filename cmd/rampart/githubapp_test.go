package main

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/internal/gittest"
)

// appServer is GitHub as far as logging in goes: its API gives tokens, and its Git takes only the last one.
type appServer struct {
	url, keyFile string

	mu    sync.Mutex
	given int
}

func newAppServer(t *testing.T, r *gittest.Repo) *appServer {
	t.Helper()
	s := &appServer{keyFile: filepath.Join(t.TempDir(), "key.pem")}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(s.keyFile, pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}), 0o600))
	server := gittest.ServeHTTP(t, r, gittest.HTTPConfig{Wrap: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { s.serve(w, req, next) })
	}})
	s.url = strings.TrimSuffix(server.URL, "/repo.git") + "/acme/repo.git"
	return s
}

func (s *appServer) serve(w http.ResponseWriter, req *http.Request, repositories http.Handler) {
	s.mu.Lock()
	given := s.given
	s.mu.Unlock()
	switch req.URL.Path {
	case "/api/v3/repos/acme/repo/installation":
		_ = json.NewEncoder(w).Encode(map[string]int{"id": 42})
	case "/api/v3/app/installations/42/access_tokens":
		s.end()
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(map[string]any{"token": fmt.Sprintf("ghs_t0ken%d", given+1), "expires_at": time.Now().Add(time.Hour)})
	default:
		if user, password, _ := req.BasicAuth(); user != git.DefaultTokenUser || password != fmt.Sprintf("ghs_t0ken%d", given) {
			w.Header().Set("WWW-Authenticate", "Basic")
			http.Error(w, "Bad credentials", http.StatusUnauthorized)
			return
		}
		http.StripPrefix("/acme", repositories).ServeHTTP(w, req)
	}
}

// end ends the token before its time.
func (s *appServer) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.given++
}

func TestGitHubAppLogsIn(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{"README.md": "hello\n"}})
	s := newAppServer(t, r)
	a, _ := testApp(t)
	flags := repositoryFlags{url: s.url, branch: "main", cacheDir: t.TempDir(), silence: time.Minute,
		githubApp: githubAppFlags{id: "Iv1.app", keyFile: s.keyFile}}
	repo, err := a.repository(flags, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, repo.Close()) })
	_, err = repo.Read(t.Context())
	require.NoError(t, err)
	s.end()
	_, err = repo.Read(t.Context())
	require.NoError(t, err, "a token that ended before its time is replaced within the request")
	require.Equal(t, 3, s.given)
}

func TestGitHubAppFlags(t *testing.T) {
	for says, change := range map[string]func(*repositoryFlags){
		"no --github-app-id":          func(f *repositoryFlags) { f.githubApp.id = "" },
		"RAMPART_GITHUB_APP_KEY":      func(f *repositoryFlags) { f.githubApp.keyFile = "" },
		"exclude each other":          func(f *repositoryFlags) { f.tokenFile = "token" },
		"logs in over HTTPS":          func(f *repositoryFlags) { f.url = "git@github.com:acme/repo.git" },
		"HTTPS: --repo":               func(f *repositoryFlags) { f.url = "file:///acme/repo" },
		"HOST/OWNER/REPOSITORY":       func(f *repositoryFlags) { f.url = "https://github.com/acme" },
		"sent over plain HTTP":        func(f *repositoryFlags) { f.githubApp.apiURL = "http://example.com" },
		"want the address of a proxy": func(f *repositoryFlags) { f.proxy = "ftp://me:hunter2@proxy" },
		"--git-proxy: want":           func(f *repositoryFlags) { f.proxy = "http://me:hunter2@pro xy" },
		"read --git-ca-file":          func(f *repositoryFlags) { f.caFile = "/no/ca" },
		"--git-timeout has":           func(f *repositoryFlags) { f.silence = 0 },
		"read the GitHub App's ke":    func(f *repositoryFlags) { f.githubApp.keyFile = "/no/key" },
	} {
		a, _ := testApp(t)
		f := repositoryFlags{url: "https://127.0.0.1:1/acme/repo.git", branch: "main", cacheDir: t.TempDir(), silence: time.Minute,
			githubApp: githubAppFlags{id: "Iv1.app", keyFile: "key"}}
		change(&f)
		repo, err := a.repository(f, nil)
		if err == nil {
			_, err = repo.Read(t.Context())
			require.NoError(t, repo.Close())
		}
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func TestProxies(t *testing.T) {
	env := map[string]string{"HTTPS_PROXY": "http://env:3128", "no_proxy": "internal.example.com,.corp"}
	a := &app{variable: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
	ask := func(flag, url string) string {
		choose, err := a.proxy(flag)
		require.NoError(t, err)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		require.NoError(t, err)
		u, err := choose(req)
		require.NoError(t, err)
		if u == nil {
			return ""
		}
		return u.String()
	}
	require.Equal(t, "http://env:3128", ask("", "https://git.example.com/x"))
	require.Empty(t, ask("", "http://git.example.com/x"))
	require.Equal(t, "socks5://flag:1080", ask("socks5://flag:1080", "https://git.example.com/x"))
	require.Equal(t, "http://flag:1", ask("flag:1", "http://git.example.com/x"))
	require.Empty(t, ask("", "ssh://git.example.com:22"), "HTTPS_PROXY is not for SSH")
	require.Equal(t, "socks5://flag:1080", ask("socks5://flag:1080", "ssh://git.example.com:22"))
	env["ALL_PROXY"] = "socks5://all:1080"
	require.Equal(t, "http://env:3128", ask("", "https://git.example.com/x"), "the scheme's own comes first")
	require.Equal(t, "socks5://all:1080", ask("", "http://git.example.com/x"))
	require.Equal(t, "socks5://all:1080", ask("", "ssh://git.example.com:2222"))
	for _, direct := range []string{"ssh://internal.example.com:22", "ssh://git.corp:2222", "ssh://127.0.0.1:22"} {
		require.Empty(t, ask("", direct), direct)
	}
	for _, direct := range []string{"https://internal.example.com/x", "https://git.corp/x", "http://localhost:3000/x", "http://127.0.0.1/x", "http://[::1]/x"} {
		require.Empty(t, ask("http://flag:1", direct), direct)
	}
}

// Each kind of secret goes through a run that fails, and one that works, at the most talkative level. None of it is in
// any output.
func TestSecretsAreInNoOutput(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{"README.md": "hello\n"}})
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		http.Error(w, fmt.Sprintf("%v", req.Header), map[bool]int{true: 401, false: 500}[strings.Contains(req.URL.Path, "401")])
	}))
	t.Cleanup(echo.Close)
	app := newAppServer(t, r)
	good := gittest.ServeHTTP(t, r, gittest.HTTPConfig{User: "bot", Password: "s3cretT0ken"})
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "secret")
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		return name
	}
	pemText, err := os.ReadFile(app.keyFile)
	require.NoError(t, err)
	keyLine := strings.Split(string(pemText), "\n")[1]
	secrets := []string{"s3cretT0ken", "pr0xypass", "passphr4se", "ghs_t0ken", keyLine, "eyJhbGci",
		base64.StdEncoding.EncodeToString([]byte("bot:s3cretT0ken")), base64.StdEncoding.EncodeToString([]byte("me:pr0xypass"))}
	ssh := gittest.ServeSSH(t)
	locked := ssh.EncryptKey(t, "passphr4se")
	for name, c := range map[string]struct {
		args []string
		env  map[string]string
	}{
		"token, wrong":         {args: []string{"--repo", echo.URL + "/401/x.git", "--git-user", "bot", "--git-token-file", file("s3cretT0ken")}},
		"token, failing":       {args: []string{"--repo", echo.URL + "/x.git", "--git-user", "bot", "--git-token-file", file("s3cretT0ken")}},
		"token, right":         {args: []string{"--repo", good.URL, "--git-user", "bot"}, env: map[string]string{"RAMPART_GIT_TOKEN": "s3cretT0ken"}},
		"in the URL":           {args: []string{"--repo", strings.Replace(echo.URL, "http://", "http://bot:s3cretT0ken@", 1) + "/401/x.git"}},
		"in a bad URL":         {args: []string{"--repo", "https://bot:s3cretT0ken@ho st/%zz"}},
		"in a plain URL":       {args: []string{"--repo", "http://bot:s3cretT0ken@git.example.com/x.git"}},
		"in a variable's URL":  {env: map[string]string{"RAMPART_REPO": "ftp://bot:s3cretT0ken@git.example.com/x.git"}},
		"proxy":                {args: []string{"--repo", "https://git.example.com/x.git", "--git-proxy", "http://me:pr0xypass@127.0.0.1:1"}},
		"proxy, by a variable": {args: []string{"--repo", "https://git.example.com/x.git"}, env: map[string]string{"HTTPS_PROXY": "http://me:pr0xypass@127.0.0.1:1"}},
		"proxy, malformed":     {args: []string{"--repo", "https://git.example.com/x.git"}, env: map[string]string{"HTTPS_PROXY": "http://me:pr0xypass@127 0.0.1"}},
		"proxy, for SSH":       {args: []string{"--repo", "ssh://git.example.com/x.git", "--git-ssh-key-file", ssh.KeyFile, "--git-known-hosts", ssh.KnownHostsFile}, env: map[string]string{"ALL_PROXY": "http://me:pr0xypass@127.0.0.1:1"}},
		"ALL_PROXY, malformed": {args: []string{"--repo", "https://git.example.com/x.git"}, env: map[string]string{"ALL_PROXY": "socks5://me:pr0xypass@127 0.0.1"}},
		"App":                  {args: []string{"--repo", app.url, "--github-app-id", "7", "--github-app-key-file", app.keyFile}},
		"App, by a variable":   {args: []string{"--repo", echo.URL + "/acme/repo", "--github-app-id", "7"}, env: map[string]string{"RAMPART_GITHUB_APP_KEY": string(pemText)}},
		"App, failing":         {args: []string{"--repo", app.url, "--github-app-id", "7", "--github-app-key-file", app.keyFile, "--github-api-url", echo.URL}},
		"SSH":                  {args: []string{"--repo", ssh.URL(r), "--git-ssh-key-file", locked, "--git-known-hosts", ssh.KnownHostsFile}, env: map[string]string{"RAMPART_GIT_SSH_PASSPHRASE": "passphr4se"}},
		"SSH, another's host":  {args: []string{"--repo", ssh.URL(r), "--git-ssh-key-file", locked, "--git-known-hosts", ssh.OtherHostsFile, "--git-ssh-passphrase-file", file("passphr4se")}},
		"key as passphrase":    {args: []string{"--repo", ssh.URL(r), "--git-ssh-key-file", file(string(pemText)), "--git-known-hosts", ssh.KnownHostsFile}},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			a, _ := testApp(t)
			a.out, a.err = &out, &errs
			a.variable = func(name string) (string, bool) { v, ok := c.env[name]; return v, ok }
			root := a.newRoot()
			root.SetOut(&out)
			root.SetErr(&errs)
			root.SetArgs(append([]string{"run", "--once", "--log-level", "debug", "--cache-dir", t.TempDir()}, c.args...))
			err := root.ExecuteContext(t.Context())
			a.complain(t.Context(), err)
			for _, secret := range secrets {
				require.NotContains(t, out.String()+errs.String(), secret)
			}
			t.Log(errs.String())
		})
	}
}
