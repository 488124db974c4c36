package gitops

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/internal/diskcache"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

const proposedRecord = "deploy/shop/x/routing.yaml"

// trifle is what may be added to a record without proposing anew.
const trifle = "# it is reviewed somewhere\n"

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
			},
			Same: func(was, is []byte) bool { return bytes.Equal(was, bytes.Replace(is, []byte(trifle), nil, 1)) }}
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
	require.Equal(t, Proposed{Branch: branch, Tip: tip, ID: "one", At: gittest.Epoch, tip: was.tip, parent: was.parent}, was)

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

// restarted is a repository that was closed and opened again.
func restarted(t *testing.T, repo *Repository) *Repository {
	t.Helper()
	require.NoError(t, repo.Close())
	again, err := Open(repo.cfg)
	require.NoError(t, err)
	repo.mirror = again.mirror // what is closed in the end
	_ = read(t, again)
	return again
}

// forged puts a commit on a proposal's branch that says that it is the bot's. It is a tree on a parent, with the seal
// that anybody can make.
func forged(r *gittest.Repo, branch, id, parent, tree string) {
	text := "rampart(default): ask for v1\n\n" + trailerProposal + id + "\n" + trailerSeal + seal(id, plumbing.NewHash(tree), plumbing.NewHash(parent)) + "\n"
	r.Git("update-ref", "refs/heads/"+branch, r.Git("commit-tree", "-p", parent, "-m", text, tree))
}

// treeWith is the tree of a commit with other files.
func treeWith(r *gittest.Repo, commit string, files map[string]string) string {
	return r.Git("rev-parse", r.Commit(gittest.Commit{Branch: "scratch", Parent: commit, Write: files})+"^{tree}")
}

// Whatever a commit says of itself, what does not hold what is proposed, on a commit of the output's branch, is written
// over. That is done by the bot that made the one before and by one that was started since. What does is left as it is.
func TestProposalThatIsForged(t *testing.T) {
	evil := map[string]string{"rampart.yaml": "policies: []\n"}
	for name, c := range map[string]struct {
		forge func(r *gittest.Repo, branch string)
		stays bool
	}{
		"more than is proposed": {func(r *gittest.Repo, b string) { forged(r, b, "one", r.Tip("main"), treeWith(r, b, evil)) }, false},
		"something else": {func(r *gittest.Repo, b string) {
			forged(r, b, "one", r.Tip("main"), treeWith(r, "main", map[string]string{proposedRecord: "evil\n"}))
		}, false},
		"on another parent": {func(r *gittest.Repo, b string) {
			parent := r.Commit(gittest.Commit{Branch: "scratch", Parent: "main", Write: evil})
			forged(r, b, "one", parent, treeWith(r, parent, map[string]string{proposedRecord: r.Files(b)[proposedRecord]}))
		}, false},
		"the same by another": {func(r *gittest.Repo, b string) { forged(r, b, "one", r.Tip("main"), r.Git("rev-parse", b+"^{tree}")) }, true},
		"the same, long ago": {func(r *gittest.Repo, b string) {
			tree := r.Git("rev-parse", b+"^{tree}")
			forged(r, b, "one", r.Tip("main"), tree)
			r.Commit(gittest.Commit{Write: map[string]string{"other": "2"}})
		}, true},
	} {
		for _, started := range []string{"", ", after a start"} {
			t.Run(name+started, func(t *testing.T) {
				r, repo, make := proposing(t)
				p := make("one", "v1")
				_, err := repo.Propose(t.Context(), p, Proposed{})
				require.NoError(t, err)
				branch := rollout.ProposalBranch(p.Environment.Name, p.Deployment)
				good := r.Files(branch)[proposedRecord]
				c.forge(r, branch)
				theirs := r.Tip(branch)
				if started != "" {
					repo = restarted(t, repo)
					r.Commit(gittest.Commit{Write: map[string]string{"other": "3"}})
				}
				tip, err := repo.Propose(t.Context(), p, onlyProposal(t, repo, p))
				require.NoError(t, err)
				require.Equal(t, tip, r.Tip(branch))
				require.Equal(t, c.stays, tip == theirs)
				require.Equal(t, proposedRecord, r.Git("diff", "--name-only", r.Git("merge-base", "main", branch), branch))
				require.Equal(t, good, r.Files(branch)[proposedRecord])
				again, err := repo.Propose(t.Context(), p, onlyProposal(t, repo, p))
				require.NoError(t, err)
				require.Equal(t, tip, again)
			})
		}
	}
}

// A difference of the record that is not worth another commit leaves the commit that people approved in place, also
// after a start. A proposal that is forged on the record before is written over, with the record as it is.
func TestProposalStaysBesideATrifle(t *testing.T) {
	for name, c := range map[string]struct{ restarts, forges, stays bool }{
		"as it was": {false, false, true}, "after a start": {true, false, true}, "forged": {false, true, false}, "forged, after a start": {true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, repo, make := proposing(t)
			p := make("one", "v1")
			tip, err := repo.Propose(t.Context(), p, Proposed{})
			require.NoError(t, err)
			before := r.Tip("main")
			r.Commit(gittest.Commit{Write: map[string]string{proposedRecord: routingYAML("x", "a.yaml") + trifle}})
			branch := rollout.ProposalBranch(p.Environment.Name, p.Deployment)
			if c.forges {
				forged(r, branch, "one", before, treeWith(r, branch, map[string]string{"rampart.yaml": "policies: []\n"}))
				tip = r.Tip(branch)
			}
			if c.restarts {
				repo = restarted(t, repo)
			}
			for range 2 {
				again, err := repo.Propose(t.Context(), p, onlyProposal(t, repo, p))
				require.NoError(t, err)
				require.Equal(t, c.stays, again == tip)
				require.Equal(t, r.Tip(branch), again)
			}
			if !c.stays {
				require.Equal(t, proposedRecord, r.Git("diff", "--name-only", "main", branch))
				require.True(t, strings.HasSuffix(r.Files(branch)[proposedRecord], trifle))
			}
			r.Commit(gittest.Commit{Write: map[string]string{proposedRecord: routingYAML("x", "a.yaml") + trifle + "# more\n"}})
			again, err := repo.Propose(t.Context(), p, onlyProposal(t, repo, p))
			require.NoError(t, err)
			require.NotEqual(t, tip, again)
			require.Contains(t, r.Files(branch)[proposedRecord], "# more\n")
		})
	}
}

// What was checked once is not made again to be compared. That holds while its tip, its record and the branch that it
// goes to are the same.
func TestProposalIsCheckedOnce(t *testing.T) {
	r, repo, make := proposing(t)
	p := make("one", "v1")
	tip, err := repo.Propose(t.Context(), p, Proposed{})
	require.NoError(t, err)
	edits, edit := 0, p.Edit
	p.Edit = func(routing []byte) ([]byte, error) { edits++; return edit(routing) }
	repo = restarted(t, repo)
	for range 3 {
		again, err := repo.Propose(t.Context(), p, onlyProposal(t, repo, p))
		require.NoError(t, err)
		require.Equal(t, tip, again)
		require.Equal(t, 1, edits)
	}
	r.Git("update-ref", "refs/heads/elsewhere", r.Commit(gittest.Commit{Branch: "scratch", Parent: "main", Write: map[string]string{"more": "1"}})+"^")
	p.Environment.Output.Branch = "elsewhere"
	again, err := repo.Propose(t.Context(), p, onlyProposal(t, repo, p))
	require.NoError(t, err)
	require.Equal(t, tip, again)
	require.Equal(t, 2, edits, "that it is of this branch, too, was not known")
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

// A branch that was merged does not belong to others any more: the next proposal takes it, since otherwise no other
// would follow.
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

// A commit that its branch does not take is put on another one, in place of what was there, and only where it is
// another.
func TestCommitIsProposed(t *testing.T) {
	r, repo, make := proposing(t)
	env := make("", "").Environment
	r.Hook("update", `test "$1" != refs/heads/main || { echo "Gitea: Not allowed to push to protected branch main" >&2; exit 1; }`)
	commit := func(status string) rollout.Commit {
		return rollout.Commit{Environment: env, Base: r.Tip("main"), Message: "rampart(default): shop/x: say " + status,
			Changes: []rollout.FileChange{{Path: "deploy/shop/x/status.yaml", Data: status}}}
	}
	fingerprint := func(file, data string) string {
		require.Equal(t, "deploy/shop/x/status.yaml", file)
		said, _, _ := strings.Cut(data, " at ")
		return said
	}
	_, err := repo.Commit(t.Context(), commit("one"))
	require.ErrorIs(t, err, rollout.ErrProtected)
	var protected *git.ProtectedError
	require.ErrorAs(t, err, &protected)
	none, err := repo.ProposedCommit(t.Context(), env.Name)
	require.NoError(t, err)
	require.Equal(t, Proposed{Branch: "rampart-output/" + env.Name}, none)

	first, err := repo.ProposeCommit(t.Context(), commit("one at 12:00"), fingerprint)
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

	again, err := repo.ProposeCommit(t.Context(), commit("one at 12:01"), fingerprint)
	require.NoError(t, err)
	require.Equal(t, first, again, "reviews and checks of it go on")
	require.Equal(t, first.Tip, r.Tip(first.Branch))
	second, err := repo.ProposeCommit(t.Context(), commit("two"), fingerprint)
	require.NoError(t, err)
	require.NotEqual(t, first.Tip, second.Tip)
	require.Equal(t, r.Tip("main"), r.Git("rev-parse", second.Branch+"^"), "in its place, not on top")
	r.Hook("update", "exit 0")
	r.Commit(gittest.Commit{Write: map[string]string{"other": "2"}})
	read(t, repo)
	third, err := repo.ProposeCommit(t.Context(), commit("two"), fingerprint)
	require.NoError(t, err)
	require.Equal(t, r.Tip("main"), r.Git("rev-parse", third.Branch+"^"), "the branch moved")

	forged(r, third.Branch, outputID, r.Tip("main"), treeWith(r, "main", map[string]string{"deploy/shop/x/status.yaml": "two at 1970"}))
	byItself := commit("two at 12:02")
	byItself.Environment.PullRequests.AutoMerge = "Squash"
	third, err = repo.ProposeCommit(t.Context(), byItself, fingerprint)
	require.NoError(t, err)
	require.Equal(t, third.Tip, r.Tip(third.Branch))
	require.Equal(t, "two at 12:02", r.Files(third.Branch)["deploy/shop/x/status.yaml"], "the same in short, and not the bot's")

	r.Commit(gittest.Commit{Branch: third.Branch, Write: map[string]string{"deploy/shop/x/status.yaml": "mine"}})
	tip := r.Tip(third.Branch)
	theirs, err := repo.ProposeCommit(t.Context(), commit("three"), fingerprint)
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

// Who reviews a commit is not sent back to the start because the bot was started again. One that is merged by itself,
// and that is not in its cache, could be anybody's.
func TestCommitIsKnownAgain(t *testing.T) {
	for name, c := range map[string]struct {
		merge         v1alpha1.MergeMethod
		cached, stays bool
	}{"cached": {"Squash", true, true}, "forgotten": {"Squash", false, false}, "merged by people": {"", false, true}} {
		t.Run(name, func(t *testing.T) {
			r, repo, make := proposing(t)
			req := rollout.Commit{Environment: make("", "").Environment, Base: r.Tip("main"), Message: "say one"}
			req.Environment.PullRequests.AutoMerge = c.merge
			propose := func(at string) Proposed {
				req.Changes = []rollout.FileChange{{Path: "deploy/shop/x/status.yaml", Data: at}}
				is, err := repo.ProposeCommit(t.Context(), req, func(string, string) string { return "one" })
				require.NoError(t, err)
				return is
			}
			first := propose("one at 12:00")
			kept := diskcache.File{Path: filepath.Join(t.TempDir(), "cached"), Key: "v", Parts: []diskcache.Part{repo}}
			require.NoError(t, kept.Save())
			repo = restarted(t, repo)
			if kept.Parts = []diskcache.Part{repo}; c.cached {
				require.NoError(t, kept.Load())
			}
			require.Equal(t, c.stays, propose("one at 12:01").Tip == first.Tip)
		})
	}
}

// Nothing that is proposed is marked to start no CI: its checks would never run.
func TestProposalsStartCI(t *testing.T) {
	r, repo, make := proposing(t)
	repo.cfg.SkipCI = true
	p := make("one", "v1")
	_, err := repo.Propose(t.Context(), p, Proposed{})
	require.NoError(t, err)
	commit := rollout.Commit{Environment: p.Environment, Base: r.Tip("main"), Message: "say one", Changes: []rollout.FileChange{{Path: "deploy/shop/x/status.yaml", Data: "1"}}}
	proposed, err := repo.ProposeCommit(t.Context(), commit, func(_, data string) string { return data })
	require.NoError(t, err)
	_, err = repo.Commit(t.Context(), commit)
	require.NoError(t, err)
	for branch, want := range map[string]string{onlyProposal(t, repo, p).Branch: p.Message, proposed.Branch: "say one", "main": "say one " + skipCI} {
		require.Equal(t, want, r.Git("log", "-1", "--format=%s", branch))
	}
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
