package giteatest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "code.gitea.io/sdk/gitea"
)

// User is an account.
type User struct {
	Login string
	// Token may do everything that the user may.
	Token string

	server *Server
}

// User makes an account with a name that begins so.
func (s *Server) User(tb testing.TB, name string) User {
	tb.Helper()
	login := s.name(name)
	changed := false
	_, _, err := s.Admin(tb).AdminCreateUser(sdk.CreateUserOption{
		LoginName: login, Username: login, Email: login + "@example.com", Password: password,
		MustChangePassword: &changed,
	})
	check(tb, err)
	u := User{Login: login, server: s}
	u.Token = u.NewToken(tb, sdk.AccessTokenScopeAll)
	return u
}

func (s *Server) name(prefix string) string { return fmt.Sprintf("%s-%d", prefix, s.names.Add(1)) }

// NewToken makes a token with only those scopes.
func (u User) NewToken(tb testing.TB, scopes ...sdk.AccessTokenScope) string {
	tb.Helper()
	client, err := sdk.NewClient(u.server.URL, sdk.SetGiteaVersion(""), sdk.SetBasicAuth(u.Login, password))
	check(tb, err)
	token, _, err := client.CreateAccessToken(sdk.CreateAccessTokenOption{Name: u.server.name("token"), Scopes: scopes})
	check(tb, err)
	return token.Token
}

// Client does what the user does.
func (u User) Client(tb testing.TB) *sdk.Client {
	tb.Helper()
	return u.server.client(tb, u.Token)
}

// Get reads JSON of the API below /api/v1, which the client library cannot read.
func (u User) Get(tb testing.TB, path string, into any) {
	tb.Helper()
	req, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, u.server.URL+"/api/v1/"+path, nil)
	check(tb, err)
	req.Header.Set("Authorization", "token "+u.Token)
	resp, err := http.DefaultClient.Do(req)
	check(tb, err)
	defer func() { check(tb, resp.Body.Close()) }()
	if resp.StatusCode != http.StatusOK {
		tb.Fatalf("GET %s: HTTP %s", path, resp.Status)
	}
	check(tb, json.NewDecoder(resp.Body).Decode(into))
}

// Admin does what no user may.
func (s *Server) Admin(tb testing.TB) *sdk.Client {
	tb.Helper()
	return s.client(tb, s.admin)
}

func (s *Server) client(tb testing.TB, token string) *sdk.Client {
	tb.Helper()
	client, err := sdk.NewClient(s.URL, sdk.SetGiteaVersion(""), sdk.SetToken(token))
	check(tb, err)
	return client
}

// Organization makes one that belongs to a user.
func (s *Server) Organization(tb testing.TB, owner User) string {
	tb.Helper()
	name := s.name("org")
	_, _, err := owner.Client(tb).CreateOrg(sdk.CreateOrgOption{Name: name})
	check(tb, err)
	return name
}

// Repository is a repository, with a branch "main" that holds a README.
type Repository struct {
	Owner, Name string

	server *Server
}

// Repository makes one. The owner is a user or an organization.
func (s *Server) Repository(tb testing.TB, owner string) Repository {
	tb.Helper()
	r := Repository{Owner: owner, Name: s.name("repo"), server: s}
	_, _, err := s.Admin(tb).AdminCreateRepo(owner,
		sdk.CreateRepoOption{Name: r.Name, AutoInit: true, DefaultBranch: "main", Readme: "Default"})
	check(tb, err)
	check(tb, r.quickHooks())
	return r
}

// quickHooks has hooks that would do nothing do so without starting Gitea, which takes a quarter of a second of
// computing each. These are all that are run for Gitea's own pushes, and the one for each ref, which refuses refs of
// pull requests and lets all others pass.
func (r Repository) quickHooks() error {
	const internal = "#!/bin/sh\n[ \"$GITEA_INTERNAL_PUSH\" = true ] && exit 0\n"
	for _, hook := range []string{"pre-receive", "update", "post-receive"} {
		file := filepath.Join(r.Dir(), "hooks", hook+".d", "gitea")
		was, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		rest := strings.TrimPrefix(string(was), "#!/usr/bin/env bash\n")
		if hook == "update" {
			rest = "case \"$1\" in refs/pull/*) exit 1;; esac\n"
		}
		if err := os.WriteFile(file, []byte(internal+rest), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// URL is its page and, with .git, what Git clones from.
func (r Repository) URL() string { return r.server.URL + "/" + r.Owner + "/" + r.Name }

// Dir is where its Git repository is on this machine, to be looked at.
func (r Repository) Dir() string {
	return filepath.Join(r.server.path("repositories"), strings.ToLower(r.Owner), strings.ToLower(r.Name)+".git")
}

// CloneURL is for Git, with a user's token in it.
func (r Repository) CloneURL(u User) string {
	at, err := url.Parse(r.URL() + ".git")
	if err != nil {
		return r.URL() // it was made above
	}
	at.User = url.UserPassword(u.Login, u.Token)
	return at.String()
}

// Collaborators may write to it.
func (r Repository) Collaborators(tb testing.TB, users ...User) {
	tb.Helper()
	for _, u := range users {
		r.Collaborator(tb, u, sdk.AccessModeWrite)
	}
}

// Collaborator may do so much with it.
func (r Repository) Collaborator(tb testing.TB, u User, mode sdk.AccessMode) {
	tb.Helper()
	_, err := r.server.Admin(tb).AddCollaborator(r.Owner, r.Name, u.Login, sdk.AddCollaboratorOption{Permission: &mode})
	check(tb, err)
}

// Commit is one file to be committed.
type Commit struct {
	// Branch gets it. From is the branch that it is made from; empty: it is there.
	Branch, From string
	Path, Text   string
}

// Commit adds a file that is not there, and gives the commit.
func (r Repository) Commit(tb testing.TB, by User, c Commit) string {
	tb.Helper()
	options := sdk.FileOptions{BranchName: c.Branch}
	if c.From != "" {
		options.BranchName, options.NewBranchName = c.From, c.Branch
	}
	made, _, err := by.Client(tb).CreateFile(r.Owner, r.Name, c.Path, sdk.CreateFileOptions{
		FileOptions: options, Content: base64.StdEncoding.EncodeToString([]byte(c.Text)),
	})
	check(tb, err)
	return made.Commit.SHA
}

// Tip is the commit that a branch is at.
func (r Repository) Tip(tb testing.TB, branch string) string {
	tb.Helper()
	b, _, err := r.server.Admin(tb).GetRepoBranch(r.Owner, r.Name, branch)
	check(tb, err)
	return b.Commit.ID
}

// Protect protects a branch.
func (r Repository) Protect(tb testing.TB, rule sdk.CreateBranchProtectionOption) {
	tb.Helper()
	_, _, err := r.server.Admin(tb).CreateBranchProtection(r.Owner, r.Name, rule)
	check(tb, err)
}

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
