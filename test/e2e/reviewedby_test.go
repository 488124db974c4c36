package e2e

import (
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/test/giteatest"
)

// refusesMerge says how Gitea refuses to merge a pull request.
func (w *world) refusesMerge(r *review, p *sdk.PullRequest) int {
	w.t.Helper()
	ok, resp, err := r.person.Client(w.t).MergePullRequest(r.Owner, r.Name, p.Index, sdk.MergePullRequestOption{Style: sdk.MergeStyleSquash, Title: p.Title})
	require.NotNil(w.t, resp, err)
	require.False(w.t, ok, "it was merged")
	return resp.StatusCode
}

// TestReviewIsRequired has a branch that takes no pull request without an approval. Gitea refuses the merge before
// that, and takes it as the step's once somebody else approved. The bot leaves the commit that was approved as it is,
// though the branch moves on: another one would need another approval.
func TestReviewIsRequired(t *testing.T) {
	testneed.Long(t)
	w, r, _ := reviewed(t, "Step")
	second := giteatest.Start(t).User(t, "grace")
	r.Collaborators(t, second)
	r.Protect(t, sdk.CreateBranchProtectionOption{RuleName: "main", EnablePush: true, RequiredApprovals: 1, DismissStaleApprovals: true, BlockAdminMergeOverride: true})
	w.pushSpec("v2", specText{image: "app:v2", strategy: slowSteps})
	p := w.awaitProposed(r, "at 10%")
	w.eventually("it could be merged, but for the review", func() bool { return w.pull(r, p.Index).Mergeable })
	require.Equal(t, http.StatusMethodNotAllowed, w.refusesMerge(r, p))
	w.settle()
	require.Equal(t, []string{"current v1"}, w.calls(), "nothing moves before")
	approve(t, r, second, p)
	w.push("something else", map[string]string{"NOTES.md": "the weather is fine\n"})
	w.settle()
	require.Equal(t, p.Head.Sha, w.pull(r, p.Index).Head.Sha)
	w.merge(r, p, sdk.MergeStyleSquash)
	w.eventually("v2 ramps", func() bool { return len(w.calls()) == 2 })
	require.Equal(t, []string{"current v1", "ramp v2 10"}, w.calls())
	w.awaitNoPull(r)
}

// approve reviews a pull request as a person.
func approve(t *testing.T, r *review, by giteatest.User, p *sdk.PullRequest) {
	t.Helper()
	_, _, err := by.Client(t).CreatePullReview(r.Owner, r.Name, p.Index, sdk.CreatePullReviewOptions{State: sdk.ReviewStateApproved, CommitID: p.Head.Sha})
	require.NoError(t, err)
}

// A person takes traffic back while the next step is in review. It goes back at once, the pull request is closed, and
// is not asked for again. One that is merged all the same raises nothing: the bot had not closed it yet, and the person
// who merged it took the proposal's side.
func TestRollbackCommandWhileAProposalIsOpen(t *testing.T) {
	testneed.Long(t)
	w, r, b := reviewed(t, "Step")
	w.pushSpec("v2", specText{image: "app:v2", strategy: slowSteps})
	calls := []string{"current v1", "ramp v2 10", "ramp none"}
	w.merge(r, w.awaitPull(r, "at 10%"), sdk.MergeStyleMerge)
	w.awaitReason("Ramping")
	w.pushSpec("quicker", specText{image: "app:v2"})
	p := w.awaitProposed(r, "at 50%")
	require.True(t, w.say("rollback", "--reason", "timeouts").Changed)
	w.awaitReason("RolledBack")
	w.awaitNoPull(r)
	require.Equal(t, sdk.StateClosed, w.pull(r, p.Index).State)
	w.eventually("it says why", func() bool { return strings.Contains(w.comments(r, p.Index), "This does not come next any more.") })
	require.Contains(t, []int{http.StatusMethodNotAllowed, http.StatusConflict, http.StatusNotFound}, w.refusesMerge(r, p))
	w.settle()
	require.Equal(t, calls, w.changes())

	w.pushSpec("v3", specText{image: "app:v3"})
	w.merge(r, w.awaitPull(r, "at 10%"), sdk.MergeStyleMerge)
	w.awaitProposed(r, "at 50%")
	b.stop()
	require.True(t, w.say("rollback", "--reason", "timeouts again").Changed)
	w.mergeByHand(proposalBranch)
	require.InDelta(t, 50, w.routing().Desired.Ramping.Percentage, 0, "as the merge left it")
	w.start()
	w.awaitNoPull(r)
	w.eventually("put back", func() bool { return w.routing().Desired.Ramping == nil })
	w.settle()
	require.Equal(t, append(calls, "ramp v3 10", "ramp none"), w.changes())
	require.Equal(t, "RolledBack", w.reason())
	require.Equal(t, []string{person, person}, barredBy(w.routing()))
	w.repo.Fsck()
}

// mergeByHand merges a branch as a person does who knows better: in a conflict the branch's side is taken.
func (w *world) mergeByHand(branch string) {
	w.t.Helper()
	run := func(work string, args ...string) error {
		cmd := exec.Command("git", append([]string{"-C", work, "-c", "user.name=ada", "-c", "user.email=a@example.com"}, args...)...)
		cmd.Env = gittest.Env()
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%v: %w: %s", args, err, out)
		}
		return nil
	}
	w.eventually("merged by hand", func() bool {
		work := w.t.TempDir()
		require.NoError(w.t, run(work, "clone", "-q", w.origin, "."))
		require.NoError(w.t, run(work, "merge", "-q", "--no-ff", "-X", "theirs", "-m", "yes", "origin/"+branch))
		err := run(work, "push", "-q", "origin", "HEAD:main")
		if err != nil { // the bot was faster
			w.t.Log(err)
		}
		return err == nil
	})
}
