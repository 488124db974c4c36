package bot

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/gitops/forge/gitea"
	"github.com/rampart-gitops/rampart/gitops/forge/github"
	"github.com/rampart-gitops/rampart/gitops/forge/gitlab"
	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/internal/pullrequest"
	"github.com/rampart-gitops/rampart/render"
)

// forgeFlags say where proposals are reviewed.
type forgeFlags struct {
	kind, url, tokenFile string
}

const variableForgeToken = "RAMPART_FORGE_TOKEN"

// lookEvery is how often a forge is asked about one pull request.
const lookEvery = 10 * time.Second

func addForge(cmd *cobra.Command, f *forgeFlags) {
	var kinds []string
	for _, k := range forge.Kinds() {
		kinds = append(kinds, string(k))
	}
	fs := cmd.Flags()
	fs.StringVar(&f.kind, "forge", "", "where proposals are reviewed: "+strings.Join(kinds, ", ")+
		" (default: by the host of --repo, else none)")
	fs.StringVar(&f.url, "forge-url", "", "address of the forge, where --repo does not tell it")
	fs.StringVar(&f.tokenFile, "forge-token-file", "",
		"file with the forge's token (or "+variableForgeToken+"; default: the one for Git)")
	cmdutil.CompleteFlag(cmd, "forge", cobra.FixedCompletions(kinds, cobra.ShellCompDirectiveNoFileComp))
}

func newProposer(a *cmdutil.App, on forge.Forge, repository cmdutil.RepositoryFlags, repo *gitops.Repository,
	judges *cmdutil.Judges) *pullrequest.Manager {
	return pullrequest.New(pullrequest.Config{Branches: repo, Forge: on, Base: repository.Branch, Edit: render.Proposed,
		Same: render.SameProposal, Title: proposalTitle, Body: proposalBody(judges), Commit: commitText,
		Now: a.Now, Log: a.Log, LookEvery: lookEvery})
}

// located is a forge, and where it is; without a forge, neither its kind nor anything else of that is known.
type located struct {
	forge forge.Forge
	at    forge.Repository
}

// locateForge is the forge of a repository, whose library may break.
func locateForge(a *cmdutil.App, f forgeFlags, repository cmdutil.RepositoryFlags) (located, error) {
	on, at, err := openForge(a, f, repository)
	if err != nil {
		return located{}, err
	}
	return located{forge.Contained(on), at}, nil
}

// adapter is a forge that also tells what its token may do.
type adapter interface {
	forge.Forge
	forge.Checker
}

// openForge is where proposals are reviewed. A host of an unknown kind has none, unless a flag asks for one.
func openForge(a *cmdutil.App, f forgeFlags, repository cmdutil.RepositoryFlags) (
	on adapter, at forge.Repository, err error) {
	kind := forge.Kind(f.kind)
	if kind != "" && !slices.Contains(forge.Kinds(), kind) {
		return nil, at, fmt.Errorf("--forge %q: there is github, gitlab, gitea and none", f.kind)
	}
	at, err = forge.Locate(forge.Location{Clone: repository.URL, Kind: kind, Base: f.url})
	var unknown *forge.AddressError
	if kind == "" && f.url == "" && errors.As(err, &unknown) {
		return forge.None{}, forge.Repository{}, nil
	}
	if err != nil {
		return nil, at, fmt.Errorf("--forge: %w", err)
	}
	client, err := forgeClient(a, repository)
	if err != nil {
		return nil, at, err
	}
	token, err := forgeToken(a, f, repository, client)
	if err != nil {
		return nil, at, err
	}
	if at.Kind != forge.KindNone && token == nil {
		if kind == "" {
			// told by the host alone: branches are pushed with a key, and nothing is opened
			return forge.None{}, forge.Repository{}, nil
		}
		return nil, at, fmt.Errorf("--forge %s needs a token: --forge-token-file or %s", kind, variableForgeToken)
	}
	cfg := forge.Config{Repository: at, HTTP: client, Now: a.Now, Token: token}
	switch at.Kind {
	case forge.KindGitHub:
		on, err = github.New(cfg)
	case forge.KindGitLab:
		on, err = gitlab.New(cfg)
	case forge.KindGitea:
		on, err = gitea.New(cfg)
	default:
		on = forge.None{}
	}
	return on, at, err
}

// forgeClient carries the authorities to trust and the proxy: those of Git.
func forgeClient(a *cmdutil.App, f cmdutil.RepositoryFlags) (*http.Client, error) {
	trusted, err := git.Auth{CAFile: f.CAFile}.TLSConfig()
	if err != nil {
		return nil, fmt.Errorf("--git-ca-file: %w", err)
	}
	proxy, err := a.ProxyFunc(f.Proxy)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: &http.Transport{Proxy: proxy, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 90 * time.Second, TLSClientConfig: trusted}}, nil
}

// forgeToken is the forge's own token, else that of Git: a GitHub App's, or one that is given. Nil: there is none.
func forgeToken(a *cmdutil.App, f forgeFlags, repository cmdutil.RepositoryFlags,
	client *http.Client) (func(context.Context) (string, error), error) {
	if own := a.Secret(f.tokenFile, variableForgeToken); own != nil {
		return own, nil
	}
	app, err := a.GitHubApp(repository, client.Transport)
	if err != nil {
		return nil, err
	}
	if app != nil {
		return app.Token, nil
	}
	if given := a.Secret(repository.TokenFile, cmdutil.GitTokenVariable); given != nil {
		return given, nil
	}
	return nil, nil
}
