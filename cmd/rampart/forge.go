package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/gitops/forge/gitea"
	"github.com/rampart-gitops/rampart/gitops/forge/github"
	"github.com/rampart-gitops/rampart/gitops/forge/gitlab"
	"github.com/rampart-gitops/rampart/internal/pullrequest"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/render"
)

// forgeFlags say where proposals are reviewed.
type forgeFlags struct {
	kind, url, tokenFile string
}

// variableForgeToken is the variable of the forge's token.
const variableForgeToken = "RAMPART_FORGE_TOKEN"

// lookEvery is how often a forge is asked about one pull request.
const lookEvery = 10 * time.Second

func (a *app) addForge(cmd *cobra.Command, f *forgeFlags) {
	var kinds []string
	for _, k := range forge.Kinds() {
		kinds = append(kinds, string(k))
	}
	fs := cmd.Flags()
	fs.StringVar(&f.kind, "forge", "", "where proposals are reviewed: "+strings.Join(kinds, ", ")+" (default: by the host of --repo, else none)")
	fs.StringVar(&f.url, "forge-url", "", "address of the forge, where --repo does not tell it")
	fs.StringVar(&f.tokenFile, "forge-token-file", "", "file with the forge's token (or "+variableForgeToken+"; default: the one for Git)")
	a.completeFlag(cmd, "forge", cobra.FixedCompletions(kinds, cobra.ShellCompDirectiveNoFileComp))
	a.completeFlag(cmd, "forge-url", cobra.NoFileCompletions)
}

// proposer proposes on the forge of a repository.
func (a *app) proposer(on forge.Forge, repository repositoryFlags, repo *gitops.Repository, judges *judges) reconcile.Proposer {
	return pullrequest.New(pullrequest.Config{Branches: repo, Forge: on, Base: repository.branch, Edit: render.Proposed, Same: render.SameProposal, Title: proposalTitle, Body: proposalBody(judges), Commit: commitText,
		Now: a.now, Log: a.log, LookEvery: lookEvery})
}

// located is a forge, and where it is; without a forge, neither its kind nor anything else of that is known.
type located struct {
	forge forge.Forge
	at    forge.Repository
}

// located is the forge of a repository, whose library may break.
func (a *app) located(f forgeFlags, repository repositoryFlags) (located, error) {
	on, at, err := a.forge(f, repository)
	if err != nil {
		return located{}, err
	}
	return located{forge.Contained(on), at}, nil
}

// forge is where proposals are reviewed. A host of an unknown kind has none, unless a flag asks for one.
func (a *app) forge(f forgeFlags, repository repositoryFlags) (on forge.Forge, at forge.Repository, err error) {
	kind := forge.Kind(f.kind)
	if kind != "" && !slices.Contains(forge.Kinds(), kind) {
		return nil, at, fmt.Errorf("--forge %q: there is github, gitlab, gitea and none", f.kind)
	}
	at, err = forge.Locate(forge.Location{Clone: repository.url, Kind: kind, Base: f.url})
	var unknown *forge.AddressError
	if kind == "" && f.url == "" && errors.As(err, &unknown) {
		return forge.None{}, forge.Repository{}, nil
	}
	if err != nil {
		return nil, at, fmt.Errorf("--forge: %w", err)
	}
	client, err := a.forgeClient(repository)
	if err != nil {
		return nil, at, err
	}
	token, err := a.forgeToken(f, repository, client)
	if err != nil {
		return nil, at, err
	}
	if at.Kind != forge.KindNone && token == nil {
		if kind == "" {
			return forge.None{}, forge.Repository{}, nil // told by the host alone: branches are pushed with a key, and nothing is opened
		}
		return nil, at, fmt.Errorf("--forge %s needs a token: --forge-token-file or %s", kind, variableForgeToken)
	}
	cfg := forge.Config{Repository: at, HTTP: client, Now: a.now, Token: token}
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
func (a *app) forgeClient(f repositoryFlags) (*http.Client, error) {
	trusted, err := trusting(f.caFile)
	if err != nil {
		return nil, err
	}
	proxy, err := a.proxy(f.proxy)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: &http.Transport{Proxy: proxy, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second,
		IdleConnTimeout: 90 * time.Second, TLSClientConfig: trusted}}, nil
}

// forgeToken is the forge's own token, else that of Git: a GitHub App's, or one that is given. Nil: there is none.
func (a *app) forgeToken(f forgeFlags, repository repositoryFlags, client *http.Client) (func(context.Context) (string, error), error) {
	if own := a.secret(f.tokenFile, variableForgeToken); own != nil {
		return own, nil
	}
	app, err := a.githubApp(repository, client.Transport)
	if err != nil {
		return nil, err
	}
	if app != nil {
		return app.Token, nil
	}
	if given := a.secret(repository.tokenFile, variableGitToken); given != nil {
		return given, nil
	}
	return nil, nil
}
