package e2e

import (
	"strings"
	"testing"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/test/giteatest"
)

// environmentWith is an environment with more settings.
func environmentWith(settings string) string {
	return `apiVersion: rampart.dev/v1alpha1
kind: Config
spec:
  environments:
    - name: default
      specs: ["workers/**"]
      policies: ["policies/*.rego"]
      output: {path: deploy}
` + settings
}

// asksForRamps is a policy that wants ramps approved, where the environment wants nothing approved.
const asksForRamps = `package rampart.rollout

require_approval contains {"rule": "shop.looks", "msg": "somebody looks at each ramp"} if input.action.kind == "Ramp"
`

// TestPolicyAsksInADirectEnvironment has a policy ask for approval where the environment wants none. Its proposal has
// reviewers, a commit status, and a body that the bot does not read back. A person who deletes its branch says no.
func TestPolicyAsksInADirectEnvironment(t *testing.T) {
	testneed.Long(t)
	r := new(review)
	w := newWorld(t, onGitea(r))
	w.start()
	w.push("policy asks", map[string]string{
		"rampart.yaml":       environmentWith("      pullRequests: {labels: [rollout, env/prod], reviewers: [" + r.person.Login + "]}\n"),
		"policies/asks.rego": asksForRamps, specFile: specText{image: "app:v1"}.String(),
	})
	w.awaitReady("app:v1")
	require.Empty(t, w.pulls(r, sdk.StateAll), "a promotion needs nobody")

	w.pushSpec("v2", specText{image: "app:v2"})
	p := w.awaitPull(r, "at 10%")
	require.Contains(t, p.Body, "somebody looks at each ramp")
	w.eventually("reviewers and a status", func() bool {
		p = w.pull(r, p.Index)
		return len(p.RequestedReviewers) == 1 && p.RequestedReviewers[0].UserName == r.person.Login && len(p.Labels) == 2 &&
			w.statusOf(r, p.Head.Sha) == "success: policy allows it, once it is approved"
	})
	edited := strings.ReplaceAll(p.Body, "10%", "100%") + "\nRampart-Proposal: 1\n/close\n"
	_, _, err := r.person.Client(t).EditPullRequest(r.Owner, r.Name, p.Index, sdk.EditPullRequestOption{Title: "all at once: 100%", Body: &edited})
	require.NoError(t, err)
	w.settle()
	require.Equal(t, []string{"current v1"}, w.calls())
	w.merge(r, p, sdk.MergeStyleRebase)
	w.eventually("v2 ramps", func() bool { return len(w.calls()) == 2 })
	require.Equal(t, []string{"current v1", "ramp v2 10"}, w.calls())

	p = w.awaitProposed(r, "at 50%")
	_, _, err = r.person.Client(t).DeleteRepoBranch(r.Owner, r.Name, proposalBranch)
	require.NoError(t, err)
	w.awaitReason("ManualHold")
	require.Equal(t, []string{r.person.Login, "closed " + p.HTMLURL}, []string{w.routing().Hold.By, w.routing().Hold.Reason})
	w.awaitNoPull(r)
	w.settle()
	require.Equal(t, []string{"current v1", "ramp v2 10"}, w.calls())
	require.True(t, w.say("resume").Changed)
	w.merge(r, w.awaitPull(r, "at 50%"), sdk.MergeStyleSquash)
	w.awaitReady("app:v2")
	require.Equal(t, []string{"current v1", "ramp v2 10", "ramp v2 50", "current v2"}, w.calls(), "the promotion needs nobody")
	w.repo.Fsck()
}

// Where that is configured the forge merges by itself once its rules are met: a check. What others push to the branch
// takes that back.
func TestAutomaticMerge(t *testing.T) {
	testneed.Long(t)
	r := new(review)
	w := newWorld(t, onGitea(r))
	w.push("merge by itself", map[string]string{
		"rampart.yaml": environmentWith("      approval: {mode: PullRequest, scope: Step}\n      pullRequests: {autoMerge: Squash}\n"),
		specFile:       specText{image: "app:v1"}.String(),
	})
	r.Protect(t, sdk.CreateBranchProtectionOption{RuleName: "main", EnablePush: true, EnableStatusCheck: true, StatusCheckContexts: []string{"ci"}})
	w.start()
	pass := func(commit string) {
		t.Helper()
		_, _, err := r.person.Client(t).CreateStatus(r.Owner, r.Name, commit, sdk.CreateStatusOption{State: sdk.StatusSuccess, Context: "ci"})
		require.NoError(t, err)
	}
	merged := func(title string) {
		t.Helper()
		p, before := w.awaitPull(r, title), len(w.calls())
		w.settle()
		require.Len(t, w.calls(), before, "nothing moves before the check")
		pass(w.pull(r, p.Index).Head.Sha)
		w.eventually("it is carried out", func() bool { return len(w.calls()) > before })
		p = w.pull(r, p.Index)
		require.True(t, p.HasMerged)
		require.Equal(t, r.bot.Login, p.MergedBy.UserName)
	}
	merged("promote shop/checkout")
	w.awaitReady("app:v1")
	w.pushSpec("v2", specText{image: "app:v2"})
	merged("at 10%")

	p := w.awaitProposed(r, "at 50%")
	theirs := r.Commit(t, r.person, giteatest.Commit{Branch: proposalBranch, Path: "NOTES.md", Text: "wait for me\n"})
	w.eventually("it is told", func() bool { return strings.Contains(w.statusOf(r, theirs), "success: it has commits of others") })
	pass(theirs)
	w.settle()
	require.False(t, w.pull(r, p.Index).HasMerged, "not by itself")
	w.merge(r, p, sdk.MergeStyleMerge)
	w.eventually("v2 ramps on", func() bool { return len(w.calls()) == 3 })
	require.Equal(t, []string{"current v1", "ramp v2 10", "ramp v2 50"}, w.calls())
	require.NotContains(t, w.manifest(w.build("app:v1")), "ignore-healthcheck")
	merged("promote shop/checkout")
	w.awaitReady("app:v2")
	require.Contains(t, w.manifest(w.build("app:v1")), "ignore-healthcheck", "with the promotion")
	w.repo.Fsck()
}

// statusOf is what the bot says beside a commit: the state, and why.
func (w *world) statusOf(r *review, commit string) string {
	w.t.Helper()
	said, _, err := r.person.Client(w.t).GetCombinedStatus(r.Owner, r.Name, commit)
	require.NoError(w.t, err)
	for _, s := range said.Statuses {
		if s.Context == "rampart/default" {
			return string(s.State) + ": " + s.Description
		}
	}
	return ""
}

// Without a forge commands answer, too. A branch that somebody deleted says nothing, and comes again.
func TestProposalWithoutAForgeIsAnsweredByCommand(t *testing.T) {
	w := newWorld(t)
	w.start()
	branch := func() string { return w.repo.Git("branch", "--list", proposalBranch) }
	w.push("wants approval", map[string]string{"rampart.yaml": wantsApproval("Step"), specFile: specText{image: "app:v1"}.String()})
	w.eventually("a branch", func() bool { return branch() != "" })
	w.repo.Git("update-ref", "-d", "refs/heads/"+proposalBranch)
	w.eventually("the branch again", func() bool { return branch() != "" })
	require.Empty(t, w.calls())
	require.True(t, w.say("approve", "--reason", "looked at it").Changed)
	w.awaitReady("app:v1")
	w.eventually("its branch goes", func() bool { return branch() == "" })

	w.pushSpec("v2", specText{image: "app:v2"})
	w.eventually("a branch", func() bool { return branch() != "" })
	require.True(t, w.say("reject", "--reason", "not today").Changed)
	w.awaitReason("ManualHold")
	w.eventually("its branch goes", func() bool { return branch() == "" })
	require.Equal(t, []string{"current v1"}, w.calls())
	w.repo.Fsck()
}

// A person takes traffic back when a merge of the next step was not carried out yet: it raises nothing, and nothing
// stays open.
func TestRollbackMeetsAMerge(t *testing.T) {
	testneed.Long(t)
	w, r, b := reviewed(t, "Step")
	w.pushSpec("v2", specText{image: "app:v2"})
	w.merge(r, w.awaitPull(r, "at 10%"), sdk.MergeStyleSquash)
	p := w.awaitProposed(r, "at 50%")
	b.stop()
	w.merge(r, p, sdk.MergeStyleMerge)
	require.InDelta(t, 50, w.routing().Desired.Ramping.Percentage, 0, "as the merge left it")
	require.True(t, w.say("rollback", "--reason", "timeouts").Changed)
	w.start()
	w.awaitReason("RolledBack")
	w.settle()
	require.Equal(t, []string{"current v1", "ramp v2 10", "ramp none"}, w.changes())
	require.Nil(t, w.routing().Desired.Ramping)
	w.awaitNoPull(r)
	require.Len(t, w.routing().Bars, 1)
	w.repo.Fsck()
}
