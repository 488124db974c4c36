package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/cmd/rampart/apptest"
	"github.com/rampart-gitops/rampart/cmd/rampart/cmdtest"
	"github.com/rampart-gitops/rampart/internal/gittest"
)

// Each kind of secret goes through a run that fails, and one that works, at the most talkative level. None of it is in
// any output.
func TestSecretsAreInNoOutput(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{"README.md": "hello\n"}})
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		http.Error(w, fmt.Sprintf("%v", req.Header), map[bool]int{true: 401, false: 500}[strings.Contains(req.URL.Path, "401")])
	}))
	t.Cleanup(echo.Close)
	app := cmdtest.NewGitHubServer(t, r)
	good := gittest.ServeHTTP(t, r, gittest.HTTPConfig{User: "bot", Password: "s3cretT0ken"})
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "secret")
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		return name
	}
	pemText, err := os.ReadFile(app.KeyFile)
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
		"App":                  {args: []string{"--repo", app.URL, "--github-app-id", "7", "--github-app-key-file", app.KeyFile}},
		"App, by a variable":   {args: []string{"--repo", echo.URL + "/acme/repo", "--github-app-id", "7"}, env: map[string]string{"RAMPART_GITHUB_APP_KEY": string(pemText)}},
		"App, failing":         {args: []string{"--repo", app.URL, "--github-app-id", "7", "--github-app-key-file", app.KeyFile, "--github-api-url", echo.URL}},
		"SSH":                  {args: []string{"--repo", ssh.URL(r), "--git-ssh-key-file", locked, "--git-known-hosts", ssh.KnownHostsFile}, env: map[string]string{"RAMPART_GIT_SSH_PASSPHRASE": "passphr4se"}},
		"SSH, another's host":  {args: []string{"--repo", ssh.URL(r), "--git-ssh-key-file", locked, "--git-known-hosts", ssh.OtherHostsFile, "--git-ssh-passphrase-file", file("passphr4se")}},
		"key as passphrase":    {args: []string{"--repo", ssh.URL(r), "--git-ssh-key-file", file(string(pemText)), "--git-known-hosts", ssh.KnownHostsFile}},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			a, _ := apptest.New(t)
			a.Out, a.Err = &out, &errs
			a.LookupEnv = func(name string) (string, bool) { v, ok := c.env[name]; return v, ok }
			root := newRoot(a)
			root.SetOut(&out)
			root.SetErr(&errs)
			root.SetArgs(append([]string{"run", "--once", "--log-level", "debug", "--cache-dir", t.TempDir()}, c.args...))
			err := root.ExecuteContext(t.Context())
			a.PrintError(t.Context(), err)
			for _, secret := range secrets {
				require.NotContains(t, out.String()+errs.String(), secret)
			}
			t.Log(errs.String())
		})
	}
}
