package cmdutil

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdtest"
	"github.com/rampart-gitops/rampart/internal/gittest"
)

func TestGitHubAppLogsIn(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{"README.md": "hello\n"}})
	s := cmdtest.NewGitHubServer(t, r)
	a, _ := testApp(t)
	flags := RepositoryFlags{URL: s.URL, Branch: "main", CacheDir: t.TempDir(), silence: time.Minute,
		githubApp: githubAppFlags{id: "Iv1.app", keyFile: s.KeyFile}}
	repo, err := a.OpenRepository(flags)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, repo.Close()) })
	_, err = repo.Read(t.Context())
	require.NoError(t, err)
	s.End()
	_, err = repo.Read(t.Context())
	require.NoError(t, err, "a token that ended before its time is replaced within the request")
	require.Equal(t, 3, s.Given)
}

func TestGitHubAppFlags(t *testing.T) {
	for says, change := range map[string]func(*RepositoryFlags){
		"no --github-app-id":          func(f *RepositoryFlags) { f.githubApp.id = "" },
		"RAMPART_GITHUB_APP_KEY":      func(f *RepositoryFlags) { f.githubApp.keyFile = "" },
		"exclude each other":          func(f *RepositoryFlags) { f.TokenFile = "token" },
		"logs in over HTTPS":          func(f *RepositoryFlags) { f.URL = "git@github.com:acme/repo.git" },
		"HTTPS: --repo":               func(f *RepositoryFlags) { f.URL = "file:///acme/repo" },
		"HOST/OWNER/REPOSITORY":       func(f *RepositoryFlags) { f.URL = "https://github.com/acme" },
		"sent over plain HTTP":        func(f *RepositoryFlags) { f.githubApp.apiURL = "http://example.com" },
		"want the address of a proxy": func(f *RepositoryFlags) { f.Proxy = "ftp://me:hunter2@proxy" },
		"--git-proxy: want":           func(f *RepositoryFlags) { f.Proxy = "http://me:hunter2@pro xy" },
		"--git-ca-file: read":         func(f *RepositoryFlags) { f.CAFile = "/no/ca" },
		"--git-timeout has":           func(f *RepositoryFlags) { f.silence = 0 },
		"read the GitHub App's ke":    func(f *RepositoryFlags) { f.githubApp.keyFile = "/no/key" },
	} {
		a, _ := testApp(t)
		f := RepositoryFlags{URL: "https://127.0.0.1:1/acme/repo.git", Branch: "main", CacheDir: t.TempDir(), silence: time.Minute,
			githubApp: githubAppFlags{id: "Iv1.app", keyFile: "key"}}
		change(&f)
		repo, err := a.OpenRepository(f)
		if err == nil {
			_, err = repo.Read(t.Context())
			require.NoError(t, repo.Close())
		}
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func TestProxyComesFromFlagThenEnvironment(t *testing.T) {
	env := map[string]string{"HTTPS_PROXY": "http://env:3128", "no_proxy": "internal.example.com,.corp"}
	a := &App{LookupEnv: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
	ask := func(flag, url string) string {
		choose, err := a.ProxyFunc(flag)
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
