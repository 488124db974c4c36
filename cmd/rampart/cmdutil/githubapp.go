package cmdutil

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/net/http/httpproxy"

	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/internal/githubapp"
)

// variableAppKey is the variable of a secret, as those for Git are.
const variableAppKey = "RAMPART_GITHUB_APP_KEY"

// githubAppFlags say which GitHub App logs in.
type githubAppFlags struct {
	id, keyFile, apiURL string
	installation        int64
}

func (f *githubAppFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.id, "github-app-id", "", "ID or client ID of a GitHub App to log in as, in place of a token")
	fs.StringVar(&f.keyFile, "github-app-key-file", "", "private key of the GitHub App, PEM (or "+variableAppKey+")")
	fs.Int64Var(&f.installation, "github-app-installation", 0,
		"ID of the App's installation (default: the one on the repository)")
	fs.StringVar(&f.apiURL, "github-api-url", "",
		"GitHub's API (default: https://api.github.com, or https://HOST/api/v3 of another host)")
}

// GitHubApp gives the source of the GitHub App's tokens, and nil where no App is given.
func (a *App) GitHubApp(f RepositoryFlags, transport http.RoundTripper) (*githubapp.Source, error) {
	app := f.githubApp
	key := a.Secret(app.keyFile, variableAppKey)
	switch {
	case app.id == "" && (app.keyFile != "" || app.installation != 0 || app.apiURL != ""):
		return nil, errors.New("there are flags about a GitHub App, and no --github-app-id")
	case app.id == "":
		return nil, nil
	case key == nil:
		return nil, errors.New("--github-app-id needs the App's key: --github-app-key-file FILE, or " + variableAppKey)
	case f.TokenFile != "":
		return nil, errors.New("--github-app-id and --git-token-file exclude each other")
	}
	at, err := url.Parse(f.URL)
	if err != nil || at.Scheme != "https" && at.Scheme != "http" {
		return nil, errors.New("a GitHub App logs in over HTTPS: --repo has to be https://HOST/OWNER/REPOSITORY")
	}
	owner, repo, ok := strings.Cut(strings.TrimSuffix(strings.Trim(at.Path, "/"), ".git"), "/")
	if !ok || owner == "" || repo == "" || strings.Contains(repo, "/") {
		return nil, errors.New("with --github-app-id, --repo has to be https://HOST/OWNER/REPOSITORY")
	}
	cfg := githubapp.Config{AppID: app.id, Key: key, Installation: app.installation, Owner: owner, Repo: repo,
		BaseURL: app.apiURL, Transport: transport, Now: a.Now}
	if cfg.BaseURL == "" && at.Hostname() != "github.com" {
		cfg.BaseURL = at.Scheme + "://" + at.Host + "/api/v3"
	}
	return githubapp.New(cfg)
}

// logIn adds the tokens of a GitHub App to how the repository is logged in to.
func logIn(a *App, f RepositoryFlags, auth *git.Auth) error {
	trusted, err := auth.TLSConfig()
	if err != nil {
		return fmt.Errorf("--git-ca-file: %w", err)
	}
	source, err := a.GitHubApp(f, &http.Transport{Proxy: auth.Proxy, TLSClientConfig: trusted, ForceAttemptHTTP2: true})
	if err != nil || source == nil {
		return err
	}
	auth.Password, auth.Refused = source.Token, source.Refused
	return nil
}

// ProxyFunc chooses proxies by a flag, else by the usual variables. ALL_PROXY is for SSH too, as it is to curl.
// NO_PROXY counts for HTTP and SSH, and no request to this machine goes through a proxy. What cannot be a proxy is
// refused here: Go's own complaint, at the first request, would repeat its password.
func (a *App) ProxyFunc(flag string) (func(*http.Request) (*url.URL, error), error) {
	value := func(names ...string) string {
		for _, name := range names {
			if v, ok := a.LookupEnv(name); ok && v != "" {
				return v
			}
		}
		return ""
	}
	for _, names := range [][]string{{"HTTP_PROXY", "http_proxy"}, {"HTTPS_PROXY", "https_proxy"},
		{"ALL_PROXY", "all_proxy"}} {
		if text := value(names...); flag == "" && text != "" && !isProxy(text) {
			return nil, notAProxy(names[0])
		}
	}
	if flag != "" && !isProxy(flag) {
		return nil, notAProxy("--git-proxy")
	}
	other := cmp.Or(flag, value("ALL_PROXY", "all_proxy"))
	cfg := httpproxy.Config{HTTPProxy: cmp.Or(flag, value("HTTP_PROXY", "http_proxy"), other),
		HTTPSProxy: cmp.Or(flag, value("HTTPS_PROXY", "https_proxy"), other), NoProxy: value("NO_PROXY", "no_proxy")}
	web, ssh := cfg.ProxyFunc(), (&httpproxy.Config{HTTPSProxy: other, NoProxy: cfg.NoProxy}).ProxyFunc()
	return func(req *http.Request) (*url.URL, error) {
		if req.URL.Scheme == "ssh" {
			return ssh(&url.URL{Scheme: "https", Host: req.URL.Host}) // a port other than 443 matters to NO_PROXY only
		}
		return web(req.URL)
	}, nil
}

func notAProxy(name string) error {
	return fmt.Errorf("%s: want the address of a proxy: http://, https:// or socks5://HOST:PORT", name)
}

// isProxy takes what Go takes for a proxy: a URL, or host:port.
func isProxy(text string) bool {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return false
	}
	return u.Scheme == "http" || u.Scheme == "https" || u.Scheme == "socks5" || u.Scheme == "socks5h"
}
