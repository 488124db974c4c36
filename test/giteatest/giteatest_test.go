package giteatest

import (
	"net/http"
	"os"
	"testing"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// One server serves a test binary; each test has a world of its own in it.
func TestOneServerHasAWorldForEachTest(t *testing.T) {
	s := Start(t)
	require.Same(t, s, Start(t))
	version, _, err := s.Admin(t).ServerVersion()
	require.NoError(t, err)
	require.Equal(t, "1.25.2", version)

	alice, bob := s.User(t, "alice"), s.User(t, "bob")
	r := s.Repository(t, s.Organization(t, alice))
	require.NotEqual(t, r.Name, s.Repository(t, alice.Login).Name)
	r.Collaborators(t, bob)
	commit := r.Commit(t, bob, Commit{Branch: "topic", From: "main", Path: "a.txt", Text: "a"})
	require.Equal(t, commit, r.Tip(t, "topic"))
	require.NotEqual(t, commit, r.Tip(t, "main"))

	r.Protect(t, sdk.CreateBranchProtectionOption{RuleName: "main"})
	_, resp, err := bob.Client(t).CreateFile(r.Owner, r.Name, "b.txt", sdk.CreateFileOptions{FileOptions: sdk.FileOptions{BranchName: "main"}})
	require.Error(t, err)
	require.Equal(t, http.StatusForbidden, resp.StatusCode)

	// Pages for people are made from templates, which are where they were when it was built.
	page, err := http.Get(r.URL() + "/commits/branch/topic")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, page.StatusCode)
	require.NoError(t, page.Body.Close())
}
