package git

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/gittest"
)

// cached is a token source that keeps its token until it is told that it was refused.
type cached struct {
	mu      sync.Mutex
	tokens  []string
	refused []string
}

func (c *cached) password(context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tokens[0], nil
}

func (c *cached) hear(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = append(c.refused, token)
	if len(c.tokens) > 1 && c.tokens[0] == token {
		c.tokens = c.tokens[1:]
	}
}

// counted counts requests.
func counted(n *int) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			*n++
			next.ServeHTTP(w, req)
		})
	}
}

func TestRefusedTokenIsReadOnceMore(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: first})
	requests := 0
	server := gittest.ServeHTTP(t, r, gittest.HTTPConfig{User: DefaultTokenUser, Password: "fresh-token", Wrap: counted(&requests)})

	source := &cached{tokens: []string{"stale-token", "fresh-token"}}
	m := openMirror(t, way{url: server.URL, auth: Auth{Password: source.password, Refused: source.hear}})
	tip := fetch(t, m, "main")
	require.Equal(t, 3, requests, "refused, again, the pack")
	require.Equal(t, []string{"stale-token"}, source.refused)

	source.tokens = []string{"stale-token", "fresh-token"} // it ended between a fetch and a push
	_, err := m.Push(t.Context(), stage(t, m, commitOn(tip, put("x", "y"))))
	require.NoError(t, err)

	source = &cached{tokens: []string{"stale-token", "stale-too", "fresh-token"}}
	m = openMirror(t, way{url: server.URL, auth: Auth{Password: source.password, Refused: source.hear}})
	requests = 0
	_, err = m.Fetch(t.Context(), "main")
	var access *AccessError
	require.ErrorAs(t, err, &access)
	require.Equal(t, ReasonUnauthorized, access.Reason)
	require.Equal(t, 2, requests, "once more, and no more")

	requests = 0
	_, err = openMirror(t, way{url: server.URL, auth: Auth{Password: SecretValue("stale-token")}}).Fetch(t.Context(), "main")
	require.Error(t, err)
	require.Equal(t, 1, requests, "the same credentials are not tried twice")
}

// What servers say may hold what they were sent.
func TestServersThatRepeatCredentials(t *testing.T) {
	const secret = "ghs_s3cretT0ken"
	basic := base64.StdEncoding.EncodeToString([]byte(DefaultTokenUser + ":" + secret))
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: first})
	hidden := func(t *testing.T, log *logs, err error) {
		t.Helper()
		require.Error(t, err)
		text := log.String()
		for e := err; e != nil; e = errors.Unwrap(e) {
			text += fmt.Sprintf("%v %+v %#v", e, e, e)
		}
		require.NotContains(t, text, secret)
		require.NotContains(t, text, basic)
		require.Contains(t, err.Error(), "***", "what else it said is kept")
	}
	open := func(t *testing.T, url string) (*Mirror, *logs) {
		t.Helper()
		log := &logs{}
		m, err := Open(Config{URL: url, Dir: t.TempDir(), Auth: Auth{Password: SecretValue(secret)}, Log: log.logger()})
		require.NoError(t, err)
		t.Cleanup(func() { _ = m.Close() })
		return m, log
	}
	t.Run("in an error line", func(t *testing.T) {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			line := "ERR who is " + req.Header.Get("Authorization") + " or " + secret
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			fmt.Fprintf(w, "001e# service=git-upload-pack\n0000%04x%s", len(line)+4, line)
		}))
		t.Cleanup(s.Close)
		m, log := open(t, s.URL+"/x.git")
		_, err := m.Fetch(soon(t), "main")
		hidden(t, log, err)
	})
	t.Run("in a hook's words", func(t *testing.T) {
		r.Hook("pre-receive", `echo "token `+secret+` may not do that" >&2; exit 1`)
		m, log := open(t, gittest.ServeHTTP(t, r, gittest.HTTPConfig{User: DefaultTokenUser, Password: secret}).URL)
		_, err := m.Push(soon(t), stage(t, m, commitOn(fetch(t, m, "main"), put("x", "y"))))
		hidden(t, log, err)
	})
}

// The words of forges, from a hook of a real server.
func TestProtectedBranch(t *testing.T) {
	for name, c := range map[string]struct {
		says      string
		protected bool
	}{
		"GitHub's branch rule": {`error: GH006: Protected branch update failed for refs/heads/main.\nerror: Changes must be made through a pull request.`, true},
		"GitHub's ruleset":     {`error: GH013: Repository rule violations found for refs/heads/main.\n\n- Changes must be made through a pull request.`, true},
		"GitLab":               {`GitLab: You are not allowed to push code to protected branches on this project.`, true},
		"Gitea":                {`Gitea: Not allowed to push to protected branch main`, true},
		"Forgejo":              {`Forgejo: Not allowed to push to protected branch main`, true},
		"Gitea's files":        {`Gitea: branch main is protected from changing file deploy/x.yaml`, true},
		"Bitbucket":            {`refs/heads/main: this branch can only be modified through pull requests.`, true},
		"Azure":                {`TF402455: Pushes to this branch are not permitted; you must use a pull request to update this branch.`, true},
		"a hook of their own":  {`commit messages need a ticket`, false},
		"no room":              {`GitLab: This repository has exceeded its size limit`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := gittest.NewBareRepo(t)
			r.Commit(gittest.Commit{Write: first})
			r.Hook("pre-receive", `printf '`+c.says+`\n' >&2; exit 1`)
			m := openFile(t, r)
			tip := fetch(t, m, "main")
			_, err := m.Push(soon(t), stage(t, m, commitOn(tip, put("x", "y"))))
			var rejected *RejectedError
			require.ErrorAs(t, err, &rejected)
			require.Equal(t, "main", rejected.Branch)
			var protected *ProtectedError
			require.Equal(t, c.protected, errors.As(err, &protected), err)
			require.Equal(t, tip.Commit.String(), r.Tip("main"))
		})
	}
}
