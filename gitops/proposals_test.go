package gitops

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/mirror"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

const proposedRecord = "deploy/shop/x/routing.yaml"

// proposing is a repository with one record, and a proposal to ask for v1.
func proposing(t *testing.T) (*gittest.Repo, *Repository, func(id, current string) Proposal) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{"a.yaml": specYAML("shop", "x", "i:1"), proposedRecord: routingYAML("x", "a.yaml"), "other": "1"}})
	repo := open(t, r)
	env := read(t, repo).Environments[0].Environment
	return r, repo, func(id, current string) Proposal {
		return Proposal{Environment: env, Deployment: rollout.Name{Namespace: "shop", Name: "x"}, ID: id, Dir: "deploy/shop/x", Message: "rampart(default): ask for " + current,
			Edit: func(routing []byte) ([]byte, error) {
				return []byte(strings.Replace(string(routing), `current: ""`, "current: "+current, 1)), nil
			}}
	}
}

func onlyProposal(t *testing.T, repo *Repository, p Proposal) Proposed {
	t.Helper()
	all, err := repo.Proposals(t.Context(), p.Environment.Name)
	require.NoError(t, err)
	require.Len(t, all, 1)
	return all[p.Deployment]
}

func TestProposalIsABranchOfItsOwn(t *testing.T) {
	r, repo, make := proposing(t)
	p := make("one", "v1")
	main := r.Tip("main")
	tip, err := repo.Propose(t.Context(), p, Proposed{})
	require.NoError(t, err)
	branch := "rampart/" + p.Environment.Name + "/shop/x"
	require.Equal(t, tip, r.Tip(branch))
	require.Equal(t, main, r.Git("rev-parse", branch+"^"))
	require.Equal(t, proposedRecord, r.Git("diff", "--name-only", "main", branch), "routing.yaml and nothing else")
	require.Contains(t, r.Files(branch)[proposedRecord], "current: v1")
	was := onlyProposal(t, repo, p)
	require.Equal(t, Proposed{Branch: branch, Tip: tip, ID: "one", tip: was.tip, parent: was.parent}, was)

	t.Run("the same again writes nothing", func(t *testing.T) {
		again, err := repo.Propose(t.Context(), p, was)
		require.NoError(t, err)
		require.Equal(t, tip, again)
		require.Equal(t, tip, r.Tip(branch))
	})
	t.Run("other files may move", func(t *testing.T) {
		r.Commit(gittest.Commit{Write: map[string]string{"other": "2"}})
		again, err := repo.Propose(t.Context(), p, was)
		require.NoError(t, err)
		require.Equal(t, tip, again)
	})
	t.Run("another record is asked from anew", func(t *testing.T) {
		r.Commit(gittest.Commit{Write: map[string]string{proposedRecord: routingYAML("x", "a.yaml") + "# more\n"}})
		tip, err = repo.Propose(t.Context(), p, was)
		require.NoError(t, err)
		require.Equal(t, tip, r.Tip(branch))
		require.Equal(t, r.Tip("main"), r.Git("rev-parse", branch+"^"))
		require.True(t, strings.HasSuffix(r.Files(branch)[proposedRecord], "# more\n"))
	})
	t.Run("what it was not is not written over", func(t *testing.T) {
		_, err := repo.Propose(t.Context(), make("two", "v2"), was)
		require.ErrorIs(t, err, rollout.ErrMoved)
		require.ErrorIs(t, repo.Withdraw(t.Context(), was), rollout.ErrMoved)
		require.Equal(t, tip, r.Tip(branch))
	})
	t.Run("another proposal takes its place", func(t *testing.T) {
		tip, err := repo.Propose(t.Context(), make("two", "v2"), onlyProposal(t, repo, p))
		require.NoError(t, err)
		require.Equal(t, tip, r.Tip(branch))
		require.Equal(t, "two", onlyProposal(t, repo, p).ID)
	})
	t.Run("and goes", func(t *testing.T) {
		require.NoError(t, repo.Withdraw(t.Context(), onlyProposal(t, repo, p)))
		all, err := repo.Proposals(t.Context(), p.Environment.Name)
		require.NoError(t, err)
		require.Empty(t, all)
	})
	r.Fsck()
}

// A commit of somebody else's, on top, in place of the bot's, or with its message, makes the branch theirs.
func TestProposalOfOthers(t *testing.T) {
	for name, change := range map[string]func(r *gittest.Repo, branch string){
		"on top": func(r *gittest.Repo, b string) {
			r.Commit(gittest.Commit{Branch: b, Write: map[string]string{"more": "1"}})
		},
		"merged with": func(r *gittest.Repo, b string) {
			r.Git("update-ref", "refs/heads/"+b, r.Git("commit-tree", "-p", b, "-p", "main", "-m", r.Git("log", "-1", "--format=%B", b), b+"^{tree}"))
		},
		"amended": func(r *gittest.Repo, b string) {
			r.Git("update-ref", "refs/heads/"+b, r.Git("commit-tree", "-p", "main", "-m", r.Git("log", "-1", "--format=%B", b), "main^{tree}"))
		},
		"without a seal": func(r *gittest.Repo, b string) {
			r.Git("update-ref", "refs/heads/"+b, r.Git("commit-tree", "-p", "main", "-m", "hello", b+"^{tree}"))
		},
		"squashed elsewhere": func(r *gittest.Repo, b string) {
			r.Commit(gittest.Commit{Branch: b, Write: map[string]string{"more": "1"}})
			r.Commit(gittest.Commit{Write: map[string]string{"more": "1"}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, repo, make := proposing(t)
			p := make("one", "v1")
			_, err := repo.Propose(t.Context(), p, Proposed{})
			require.NoError(t, err)
			branch := onlyProposal(t, repo, p).Branch
			change(r, branch)
			tip := r.Tip(branch)
			theirs := onlyProposal(t, repo, p)
			require.True(t, theirs.Theirs)
			_, err = repo.Propose(t.Context(), p, theirs)
			require.ErrorContains(t, err, branch+" has commits of others, and is left alone")
			require.NoError(t, repo.Withdraw(t.Context(), theirs))
			require.NoError(t, repo.Withdraw(t.Context(), Proposed{}))
			require.Equal(t, tip, r.Tip(branch), "left alone")
		})
	}
}

// What was merged is nobody's any more: the next proposal takes the branch, without which no other would follow.
func TestProposalOfOthersThatWasMerged(t *testing.T) {
	for name, merge := range map[string]func(r *gittest.Repo, branch string){
		"by a merge": func(r *gittest.Repo, b string) {
			r.Git("update-ref", "refs/heads/main", r.Git("commit-tree", "-p", "main", "-p", b, "-m", "merge", b+"^{tree}"))
			r.Commit(gittest.Commit{Write: map[string]string{"since": "1"}})
		},
		"by a fast-forward": func(r *gittest.Repo, b string) { r.Git("update-ref", "refs/heads/main", b) },
		"there is nothing on it": func(r *gittest.Repo, b string) {
			r.Git("update-ref", "refs/heads/"+b, "main")
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, repo, make := proposing(t)
			p := make("one", "v1")
			_, err := repo.Propose(t.Context(), p, Proposed{})
			require.NoError(t, err)
			branch := onlyProposal(t, repo, p).Branch
			r.Commit(gittest.Commit{Branch: branch, Write: map[string]string{"more": "1"}})
			require.True(t, onlyProposal(t, repo, p).Theirs)
			merge(r, branch)
			read(t, repo)
			was := onlyProposal(t, repo, p)
			require.False(t, was.Theirs)
			next := make("two", "v2")
			next.Edit = func(routing []byte) ([]byte, error) { return append(routing, "# v2\n"...), nil }
			tip, err := repo.Propose(t.Context(), next, was)
			require.NoError(t, err)
			require.Equal(t, tip, r.Tip(branch))
			require.Equal(t, r.Tip("main"), r.Git("rev-parse", tip+"^"))
			require.NoError(t, repo.Withdraw(t.Context(), onlyProposal(t, repo, p)))
			require.Empty(t, r.Git("branch", "--list", branch))
		})
	}
}

func TestProposalWithoutARecord(t *testing.T) {
	_, repo, make := proposing(t)
	p := make("one", "v1")
	p.Dir = "deploy/shop/gone"
	_, err := repo.Propose(t.Context(), p, Proposed{})
	require.ErrorIs(t, err, rollout.ErrMoved)
	p = make("one", "v1")
	p.Edit = func([]byte) ([]byte, error) { return nil, errors.New("no") }
	_, err = repo.Propose(t.Context(), p, Proposed{})
	require.EqualError(t, err, "deploy/shop/x/routing.yaml: no")
}

// Branches below rampart/ that are no worker deployment's are people's.
func TestOtherBranchesAreNoProposals(t *testing.T) {
	r, repo, make := proposing(t)
	p := make("one", "v1")
	for _, b := range []string{"rampart/" + p.Environment.Name + "/x", "rampart/" + p.Environment.Name + "/a/b/c", "rampart/elsewhere/shop/x"} {
		r.Commit(gittest.Commit{Branch: b, Parent: "main", Write: map[string]string{"x": "1"}})
	}
	all, err := repo.Proposals(t.Context(), p.Environment.Name)
	require.NoError(t, err)
	require.Empty(t, all)
}

// A commit that its branch does not take is put on another one, in place of what was there, and only where it is another.
func TestCommitIsProposed(t *testing.T) {
	r, repo, make := proposing(t)
	env := make("", "").Environment
	r.Hook("update", `test "$1" != refs/heads/main || { echo "Gitea: Not allowed to push to protected branch main" >&2; exit 1; }`)
	commit := func(status string) rollout.Commit {
		return rollout.Commit{Environment: env, Base: r.Tip("main"), Message: "rampart(default): shop/x: say " + status,
			Changes: []rollout.FileChange{{Path: "deploy/shop/x/status.yaml", Data: status}}}
	}
	gist := func(file, data string) string {
		require.Equal(t, "deploy/shop/x/status.yaml", file)
		said, _, _ := strings.Cut(data, " at ")
		return said
	}
	_, err := repo.Commit(t.Context(), commit("one"))
	require.ErrorIs(t, err, rollout.ErrProtected)
	var protected *mirror.ProtectedError
	require.ErrorAs(t, err, &protected)
	none, err := repo.ProposedCommit(t.Context(), env.Name)
	require.NoError(t, err)
	require.Equal(t, Proposed{Branch: "rampart-output/" + env.Name}, none)

	first, err := repo.ProposeCommit(t.Context(), commit("one at 12:00"), gist)
	require.NoError(t, err)
	require.Equal(t, first.Tip, r.Tip(first.Branch))
	require.Equal(t, r.Tip("main"), r.Git("rev-parse", first.Branch+"^"))
	require.Equal(t, "one at 12:00", r.Files(first.Branch)["deploy/shop/x/status.yaml"])
	seen, err := repo.ProposedCommit(t.Context(), env.Name)
	require.NoError(t, err)
	require.Equal(t, first, seen)
	all, err := repo.Proposals(t.Context(), env.Name)
	require.NoError(t, err)
	require.Empty(t, all, "it is no proposal of a worker deployment's")

	again, err := repo.ProposeCommit(t.Context(), commit("one at 12:01"), gist)
	require.NoError(t, err)
	require.Equal(t, first, again, "reviews and checks of it go on")
	require.Equal(t, first.Tip, r.Tip(first.Branch))
	second, err := repo.ProposeCommit(t.Context(), commit("two"), gist)
	require.NoError(t, err)
	require.NotEqual(t, first.Tip, second.Tip)
	require.Equal(t, r.Tip("main"), r.Git("rev-parse", second.Branch+"^"), "in its place, not on top")
	r.Hook("update", "exit 0")
	r.Commit(gittest.Commit{Write: map[string]string{"other": "2"}})
	read(t, repo)
	third, err := repo.ProposeCommit(t.Context(), commit("two"), gist)
	require.NoError(t, err)
	require.Equal(t, r.Tip("main"), r.Git("rev-parse", third.Branch+"^"), "the branch moved")

	r.Commit(gittest.Commit{Branch: third.Branch, Write: map[string]string{"deploy/shop/x/status.yaml": "mine"}})
	tip := r.Tip(third.Branch)
	theirs, err := repo.ProposeCommit(t.Context(), commit("three"), gist)
	require.NoError(t, err)
	require.True(t, theirs.Theirs)
	require.NoError(t, repo.Withdraw(t.Context(), theirs))
	require.Equal(t, tip, r.Tip(third.Branch), "it is left alone")
	r.Git("update-ref", "refs/heads/"+third.Branch, third.Tip)
	third, err = repo.ProposedCommit(t.Context(), env.Name)
	require.NoError(t, err)
	require.NoError(t, repo.Withdraw(t.Context(), third))
	require.Empty(t, r.Git("branch", "--list", third.Branch))
	r.Fsck()
}

// Git takes no branch that ends in .lock, and Kubernetes takes such a name.
func TestProposalOfALock(t *testing.T) {
	r, repo, make := proposing(t)
	r.Commit(gittest.Commit{Write: map[string]string{"deploy/shop/x.lock/routing.yaml": routingYAML("x.lock", "b.yaml")}})
	p := make("one", "v1")
	p.Deployment.Name, p.Dir = "x.lock", "deploy/shop/x.lock"
	_, err := repo.Propose(t.Context(), p, Proposed{})
	require.NoError(t, err)
	was := onlyProposal(t, repo, p)
	require.Equal(t, "rampart/default/shop/x.lock-", was.Branch)
	require.NoError(t, repo.Withdraw(t.Context(), was))
	r.Fsck()
}
