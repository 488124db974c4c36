package gitops

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/signature"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// The commit that brought an approval is found along first parents, whatever was committed after it. What the branch
// had before it was rewritten approves nothing.
func TestApprovalIn(t *testing.T) {
	const dir, ada, bob, bot = "deploy/shop/x", "Ada <ada@example.com>", "Bob <bob@example.com>", "rampart <rampart@example.com>"
	r := gittest.NewBareRepo(t)
	commit := func(by, message string, ids ...string) string {
		return r.Commit(gittest.Commit{By: by, Message: message, Write: map[string]string{dir + "/routing.yaml": withVersions(ids...)}})
	}
	// A record is approved once it has a version of this build ID.
	approved := func(rec v1alpha1.RoutingSpec) bool {
		return len(rec.Versions) > 0 && rec.Versions[len(rec.Versions)-1].BuildID == "approved"
	}
	r.Commit(gittest.Commit{By: ada, Write: map[string]string{"x.yaml": specYAML("shop", "x", "i:1"), "connection.yaml": connectionYAML}})
	repo := open(t, r)
	find := func() (rollout.ApprovalCommit, bool) {
		t.Helper()
		c, found, err := repo.ApprovalIn(t.Context(), read(t, repo).Environments[0].Environment, dir, approved)
		require.NoError(t, err)
		return c, found
	}
	c, found := find()
	require.False(t, found, "%+v", c)

	commit(bot, "propose", "v1")
	by := commit(bob, "approve", "v1", "approved")
	want := rollout.ApprovalCommit{Commit: by, Author: bob, Committer: bob}
	c, found = find()
	require.True(t, found)
	require.Equal(t, want, c)
	r.Commit(gittest.Commit{By: ada, Write: map[string]string{"other": "file"}})
	commit(bot, "something else changes", "v1", "v2", "approved")
	c, found = find()
	require.True(t, found)
	require.Equal(t, want, c)

	commit(bot, "put back", "v1")
	_, found = find()
	require.False(t, found)
	base := commit(bot, "propose again", "v1", "v3")
	side := r.Commit(gittest.Commit{By: bot, Branch: "rampart/x", Parent: base, Message: "the proposal",
		Write: map[string]string{dir + "/routing.yaml": withVersions("v1", "v3", "approved")}})
	tree := strings.TrimSpace(r.Git("rev-parse", side+"^{tree}"))
	merge := strings.TrimSpace(r.Git("-c", "user.name=Ada", "-c", "user.email=ada@example.com", "commit-tree", tree, "-p", base, "-p", side, "-m", "merge"))
	r.Git("update-ref", "refs/heads/main", merge)
	c, found = find()
	require.True(t, found)
	require.Equal(t, merge, c.Commit)
	require.True(t, c.Merge)
	require.False(t, c.Bot)

	r.Git("update-ref", "refs/heads/main", side) // fast-forward: it is unknown whose
	c, found = find()
	require.True(t, found)
	require.Equal(t, rollout.ApprovalCommit{Commit: side, Author: bot, Committer: bot, Bot: true}, c)

	alone := r.Commit(gittest.Commit{By: bob, Parent: "none", Write: map[string]string{"x.yaml": specYAML("shop", "x", "i:1"), "connection.yaml": connectionYAML,
		dir + "/routing.yaml": withVersions("v1", "approved")}})
	c, found = find()
	require.True(t, found, "the first commit of a branch that was rewritten")
	require.Equal(t, alone, c.Commit)

	cut, stop := context.WithCancel(t.Context())
	env := read(t, repo).Environments[0].Environment
	stop()
	_, _, err := repo.ApprovalIn(cut, env, dir, approved)
	require.ErrorIs(t, err, context.Canceled)
}

// A commit that is signed by a trusted signer says who that is; another does not count where the bot trusts some.
func TestApprovalInIsSigned(t *testing.T) {
	private, public := newSSHKey(t)
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{"x.yaml": specYAML("shop", "x", "i:1"), "connection.yaml": connectionYAML,
		"deploy/shop/x/routing.yaml": withVersions("v1")}})
	tree := strings.TrimSpace(r.Git("rev-parse", "main^{tree}"))
	signed := strings.TrimSpace(r.Git("-c", "gpg.format=ssh", "-c", "user.signingKey="+private, "commit-tree", "-S", tree, "-p", "main", "-m", "signed"))
	r.Git("update-ref", "refs/heads/main", signed)
	repo := open(t, r)
	signers, err := signature.Load(write(t, "bob@example.com "+public+"\n"))
	require.NoError(t, err)
	repo.cfg.Signers = signers
	env := read(t, repo).Environments[0].Environment
	seen := 0
	c, found, err := repo.ApprovalIn(t.Context(), env, "deploy/shop/x", func(v1alpha1.RoutingSpec) bool { seen++; return seen == 1 })
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, rollout.Yes, c.Signed)
	require.Equal(t, "bob@example.com", c.Signer)
	c, _, err = repo.ApprovalIn(t.Context(), env, "deploy/shop/x", func(v1alpha1.RoutingSpec) bool { return true })
	require.NoError(t, err)
	require.Equal(t, rollout.No, c.Signed)
}
