package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/test/giteatest"
)

// review is a repository on a real Gitea: with a bot that may write, and a person who reviews.
type review struct {
	giteatest.Repository
	bot, person giteatest.User
	// unmergeable is since when a pull request cannot be merged, by its number.
	unmergeable map[int64]time.Time
}

const proposalBranch = "rampart/default/" + deployment

// onGitea puts the repository on a Gitea.
func onGitea(r *review) option {
	return func(w *world) {
		s := giteatest.Start(w.t)
		r.person, r.bot = s.User(w.t, "ada"), s.User(w.t, "bot")
		r.Repository = s.Repository(w.t, r.person.Login)
		r.Collaborators(w.t, r.bot)
		r.unmergeable = map[int64]time.Time{}
		token := filepath.Join(w.t.TempDir(), "token")
		require.NoError(w.t, os.WriteFile(token, []byte(r.bot.Token+"\n"), 0o600))
		w.repo = gittest.OpenRepo(w.t, r.Dir())
		w.url, w.origin = r.URL()+".git", r.CloneURL(r.person)
		w.interval = "1s" // a Gitea is not as quick as files are
		w.access = []string{"--git-user", r.bot.Login, "--git-token-file", token}
		w.forge = []string{"--forge", "gitea"}
	}
}

// wantsApproval is an environment whose raises wait for people.
func wantsApproval(scope string) string {
	return environmentWith(`      approval: {mode: PullRequest, scope: ` + scope + `}
      pullRequests: {labels: [rollout]}
`)
}

// frozen holds every raise.
const frozen = `package rampart.rollout

deny contains {"rule": "shop.frozen", "msg": "frozen"} if input.action.raises
`

// reviewed is a world on a Gitea, with v1 current: its promotion was merged.
func reviewed(t *testing.T, scope string) (*world, *review, *bot) {
	r := new(review)
	w := newWorld(t, onGitea(r))
	b := w.start()
	w.push("wants approval", map[string]string{"rampart.yaml": wantsApproval(scope), specFile: specText{image: "app:v1"}.String()})
	w.merge(r, w.awaitPull(r, "promote shop/checkout to "), sdk.MergeStyleMerge)
	w.awaitReady("app:v1")
	return w, r, b
}

func (w *world) pulls(r *review, state sdk.StateType) []*sdk.PullRequest {
	list, _, err := r.person.Client(w.t).ListRepoPullRequests(r.Owner, r.Name, sdk.ListPullRequestsOptions{State: state})
	require.NoError(w.t, err)
	return list
}

// awaitPull waits for an open pull request whose title has a text.
func (w *world) awaitPull(r *review, title string) *sdk.PullRequest {
	w.t.Helper()
	var found *sdk.PullRequest
	w.eventually("a pull request: "+title, func() bool {
		for _, p := range w.pulls(r, sdk.StateOpen) {
			if strings.Contains(p.Title, title) {
				found = p
				return true
			}
		}
		return false
	})
	return found
}

func (w *world) awaitNoPull(r *review) {
	w.t.Helper()
	w.eventually("no pull request is open, and no branch", func() bool {
		return len(w.pulls(r, sdk.StateOpen)) == 0 && w.repo.Git("branch", "--list", proposalBranch) == ""
	})
}

// awaitBuild waits until an image has files, and gives its build ID.
func (w *world) awaitBuild(image string) string {
	w.t.Helper()
	w.eventually("files of "+image, func() bool { return w.build(image) != "" })
	return w.build(image)
}

// stuck is how long a pull request may be unmergeable in Gitea before the test pushes to its base. Gitea makes a check
// that failed there again with the next push, and not before.
const stuck = time.Minute

// lookAt is pull, as a person looks who wants to merge it. One that Gitea left unchecked is checked by that, and one
// that it closed for a branch of its name that was deleted before is the one that the bot opened in its place.
func (w *world) lookAt(r *review, p *sdk.PullRequest) *sdk.PullRequest {
	w.t.Helper()
	p = w.pull(r, p.Index)
	if w.closedByDeletion(r, p) {
		for _, other := range w.pulls(r, sdk.StateOpen) {
			if other.Title == p.Title {
				p = w.pull(r, other.Index)
			}
		}
	}
	since, unmergeable := r.unmergeable[p.Index]
	switch {
	case p.Mergeable:
		delete(r.unmergeable, p.Index)
	case !unmergeable:
		r.unmergeable[p.Index] = time.Now()
	case time.Since(since) > stuck:
		w.push("have it checked again", map[string]string{"checked-again": time.Now().String()})
		delete(r.unmergeable, p.Index)
	}
	return p
}

// closedByDeletion reports whether Gitea closed a pull request for a deletion of its branch. Gitea looks at the
// branch's name alone, and not at once, so that it can be the next pull request of a branch that is there again.
func (w *world) closedByDeletion(r *review, p *sdk.PullRequest) bool {
	w.t.Helper()
	if p.State != sdk.StateClosed || p.HasMerged {
		return false
	}
	var list []struct{ Type string } // the client library cannot read those that have labels
	r.person.Get(w.t, fmt.Sprintf("repos/%s/%s/issues/%d/timeline", r.Owner, r.Name, p.Index), &list)
	return slices.ContainsFunc(list, func(c struct{ Type string }) bool { return c.Type == "delete_branch" })
}

func (w *world) merge(r *review, p *sdk.PullRequest, style sdk.MergeStyle) {
	w.t.Helper()
	refused := ""
	w.eventually("merged", func() bool {
		p = w.lookAt(r, p)
		ok, _, err := r.person.Client(w.t).MergePullRequest(r.Owner, r.Name, p.Index, sdk.MergePullRequestOption{Style: style, Title: p.Title})
		if err == nil && ok {
			return true
		}
		head := w.repo.Git("rev-parse", fmt.Sprintf("refs/pull/%d/head", p.Index))
		if why := fmt.Sprintf("%v (mergeable: %v, branch %s, pull request at %s)", err, p.Mergeable, p.Head.Sha, head); why != refused {
			refused = why
			w.t.Logf("not merged yet: %s: %s", p.Title, why)
		}
		return false
	})
}

func (w *world) close(r *review, p *sdk.PullRequest) {
	w.t.Helper()
	closed := sdk.StateClosed
	_, _, err := r.person.Client(w.t).EditPullRequest(r.Owner, r.Name, p.Index, sdk.EditPullRequestOption{State: &closed})
	require.NoError(w.t, err)
}

func (w *world) pull(r *review, number int64) *sdk.PullRequest {
	p, _, err := r.person.Client(w.t).GetPullRequest(r.Owner, r.Name, number)
	require.NoError(w.t, err)
	return p
}

func (w *world) comments(r *review, number int64) string {
	list, _, err := r.person.Client(w.t).ListIssueComments(r.Owner, r.Name, number, sdk.ListIssueCommentOptions{})
	require.NoError(w.t, err)
	var out []string
	for _, c := range list {
		out = append(out, c.Body)
	}
	return strings.Join(out, "\n")
}

// Each step is proposed, reviewed, merged in one of the three ways, and carried out; nothing moves before.
func TestStepsAreProposedAndMerged(t *testing.T) {
	w, r, _ := reviewed(t, "Step")
	w.pushSpec("v2", specText{image: "app:v2"})
	v2 := w.awaitBuild("app:v2")
	for _, step := range []struct {
		title string
		style sdk.MergeStyle
		calls []string
	}{
		{"ramp shop/checkout to " + v2 + " at 10%", sdk.MergeStyleSquash, []string{"current v1", "ramp v2 10"}},
		{"ramp shop/checkout to " + v2 + " at 50%", sdk.MergeStyleRebase, []string{"current v1", "ramp v2 10", "ramp v2 50"}},
		{"promote shop/checkout to " + v2, sdk.MergeStyleMerge, []string{"current v1", "ramp v2 10", "ramp v2 50", "current v2"}},
	} {
		p := w.awaitProposed(r, step.title)
		require.Equal(t, r.bot.Login, p.Poster.UserName)
		require.Equal(t, "main", p.Base.Ref)
		require.Equal(t, proposalBranch, p.Head.Ref)
		w.eventually("its label", func() bool { l := w.pull(r, p.Index).Labels; return len(l) == 1 && l[0].Name == "rollout" })
		require.Contains(t, p.Body, "```mermaid")
		require.Contains(t, p.Body, "Timetable, when all goes well")
		require.Regexp(t, `Rules: .*[1-9][0-9]* passed`, p.Body)
		require.Equal(t, recordDir+"/routing.yaml", w.repo.Git("diff", "--name-only", proposalBranch+"^", proposalBranch))
		w.eventually("its address is in the status", func() bool { return w.status().Decision != nil && w.status().Decision.PullRequest == p.HTMLURL })
		require.Equal(t, step.calls[:len(step.calls)-1], w.calls(), "nothing moves before")
		w.merge(r, p, step.style)
		w.eventually(step.title, func() bool { return len(w.calls()) == len(step.calls) })
		require.Equal(t, step.calls, w.calls())
	}
	w.awaitReady("app:v2")
	w.awaitNoPull(r)
	require.Nil(t, w.routing().Hold)
	require.Nil(t, w.routing().Proposal)
	w.repo.Fsck()
}

// With scope Rollout the first merge covers all steps, in whichever of the three ways; closing is a no to all of them.
func TestRolloutIsProposedOnce(t *testing.T) {
	testneed.Long(t)
	w, r, _ := reviewed(t, "Rollout")
	calls, asked := w.calls(), 1
	for _, rollout := range []struct {
		tag    string
		style  sdk.MergeStyle
		closed bool // at first
	}{
		{tag: "v2", style: sdk.MergeStyleMerge},
		{tag: "v3", style: sdk.MergeStyleSquash},
		{tag: "v2", style: sdk.MergeStyleRebase},
		{tag: "v3", style: sdk.MergeStyleSquash, closed: true},
	} {
		w.pushSpec("on to "+rollout.tag, specText{image: "app:" + rollout.tag})
		if rollout.closed {
			w.close(r, w.awaitPull(r, "to "+rollout.tag+"-"))
			asked++
			w.awaitReason("ManualHold")
			w.awaitNoPull(r)
			w.settle()
			require.Equal(t, calls, w.calls(), "nothing moves")
			require.True(t, w.say("resume").Changed)
		}
		p := w.awaitPull(r, "to "+rollout.tag+"-")
		require.Contains(t, p.Title, "at 10%")
		w.merge(r, p, rollout.style)
		asked++
		w.awaitReady("app:" + rollout.tag)
		calls = append(calls, "ramp "+rollout.tag+" 10", "ramp "+rollout.tag+" 50", "current "+rollout.tag)
		require.Equal(t, calls, w.calls())
		require.Len(t, w.pulls(r, sdk.StateAll), asked, "no other step is asked for")
	}
	require.Nil(t, w.routing().Hold)
	w.awaitNoPull(r)
	w.repo.Fsck()
}

// Closing is a no, which holds until a person resumes; then it is proposed anew.
func TestClosedProposalHolds(t *testing.T) {
	testneed.Long(t)
	w, r, _ := reviewed(t, "Step")
	w.pushSpec("v2", specText{image: "app:v2"})
	p := w.awaitPull(r, "at 10%")
	w.close(r, p)
	w.awaitReason("ManualHold")
	require.Equal(t, r.person.Login, w.routing().Hold.By)
	require.Equal(t, "closed "+p.HTMLURL, w.routing().Hold.Reason)
	w.awaitNoPull(r)
	w.settle()
	require.Equal(t, []string{"current v1"}, w.calls())
	require.True(t, w.say("resume").Changed)
	again := w.awaitPull(r, "at 10%")
	require.NotEqual(t, p.Index, again.Index)
	require.True(t, w.say("approve", "--reason", "after all").Changed)
	w.eventually("approved by command", func() bool { return len(w.calls()) == 2 })
	require.Equal(t, []string{"current v1", "ramp v2 10"}, w.calls()[:2])
}

// A newer image takes the proposal's place: the old one is closed by the bot, with a link, which holds nothing.
func TestProposalIsSuperseded(t *testing.T) {
	testneed.Long(t)
	w, r, _ := reviewed(t, "Step")
	w.pushSpec("v2", specText{image: "app:v2"})
	old := w.awaitPull(r, "at 10%")
	w.pushSpec("v3", specText{image: "app:v3"})
	v3 := w.awaitBuild("app:v3")
	next := w.awaitPull(r, "ramp shop/checkout to "+v3+" at 10%")
	require.NotEqual(t, old.Index, next.Index)
	require.Equal(t, sdk.StateClosed, w.pull(r, old.Index).State)
	require.False(t, w.pull(r, old.Index).HasMerged)
	require.Contains(t, w.comments(r, old.Index), "This does not come next any more.")
	w.eventually("the link", func() bool { return strings.Contains(w.comments(r, old.Index), "Superseded by "+next.HTMLURL) })
	w.merge(r, next, sdk.MergeStyleMerge)
	w.eventually("v3 ramps", func() bool { return len(w.calls()) == 2 })
	require.Equal(t, []string{"current v1", "ramp v3 10"}, w.calls())
	require.Nil(t, w.routing().Hold)
}

// The bot leaves a branch alone that has commits of others. What is merged in the end counts.
func TestPersonPushesToTheProposal(t *testing.T) {
	testneed.Long(t)
	w, r, _ := reviewed(t, "Step")
	w.pushSpec("v2", specText{image: "app:v2"})
	p := w.awaitProposed(r, "at 10%")
	theirs := r.Commit(t, r.person, giteatest.Commit{Branch: proposalBranch, Path: "NOTES.md", Text: "looked at the dashboards\n"})
	w.settle()
	require.Equal(t, theirs, w.repo.Tip(proposalBranch))
	w.merge(r, p, sdk.MergeStyleSquash)
	w.eventually("v2 ramps", func() bool { return len(w.calls()) == 2 })
	require.Equal(t, []string{"current v1", "ramp v2 10"}, w.calls())
	require.Equal(t, "looked at the dashboards\n", w.repo.Files("main")["NOTES.md"])

	p = w.awaitProposed(r, "at 50%") // on the same branch, which Gitea keeps after a squash
	r.Commit(t, r.person, giteatest.Commit{Branch: proposalBranch, Path: "MORE.md", Text: "rather not\n"})
	w.close(r, p)
	w.awaitReason("ManualHold")
	require.True(t, w.say("resume").Changed)
	require.NotEqual(t, p.Index, w.awaitPull(r, "at 50%").Index)
	require.NotContains(t, w.repo.Files(proposalBranch), "MORE.md")
}

// A merge that meets another world than was proposed: it is refused, routing.yaml is put back, and it is proposed anew
// when it may be.
func TestMergeWhileTheWorldChanged(t *testing.T) {
	testneed.Long(t)
	w, r, b := reviewed(t, "Step")
	w.pushSpec("v2", specText{image: "app:v2"})
	p := w.awaitPull(r, "at 10%")
	b.stop()
	w.push("freeze", map[string]string{"policies/frozen.rego": frozen})
	w.merge(r, p, sdk.MergeStyleMerge)
	require.NotNil(t, w.routing().Desired.Ramping, "as the merge left it")
	w.start()
	w.awaitReason("PolicyHold")
	require.Nil(t, w.routing().Desired.Ramping, "put back")
	require.Nil(t, w.routing().Hold)
	require.Contains(t, w.repo.Git("log", "-3", "--format=%B", "main"), "which does not come next any more: frozen")
	w.awaitNoPull(r)
	w.commit(gittest.Commit{Delete: []string{"policies/frozen.rego"}, Message: "thaw"})
	again := w.awaitPull(r, "at 10%")
	require.NotEqual(t, p.Index, again.Index)
	require.Equal(t, []string{"current v1"}, w.calls())
	w.merge(r, again, sdk.MergeStyleMerge)
	w.eventually("v2 ramps", func() bool { return len(w.calls()) == 2 })
}

// A freeze while a step is in review: its pull request stays, and says that it is not to be merged now. After it, it is
// the same one.
func TestFreezeWhileAProposalIsOpen(t *testing.T) {
	testneed.Long(t)
	w, r, _ := reviewed(t, "Step")
	w.pushSpec("v2", specText{image: "app:v2"})
	p := w.awaitPull(r, "at 10%")
	all := len(w.pulls(r, sdk.StateAll))
	w.push("freeze", map[string]string{"policies/frozen.rego": frozen})
	w.awaitReason("PolicyHold")
	w.eventually("it says so", func() bool { return strings.HasPrefix(w.statusOf(r, w.repo.Tip(proposalBranch)), "pending") })
	w.settle()
	require.Equal(t, sdk.StateOpen, w.pull(r, p.Index).State)
	require.NotNil(t, w.routing().Proposal)
	w.commit(gittest.Commit{Delete: []string{"policies/frozen.rego"}, Message: "thaw"})
	w.eventually("it may be merged", func() bool { return strings.HasPrefix(w.statusOf(r, w.repo.Tip(proposalBranch)), "success") })
	require.Equal(t, []string{"current v1"}, w.calls())
	w.merge(r, p, sdk.MergeStyleMerge)
	w.eventually("v2 ramps", func() bool { return len(w.calls()) == 2 })
	require.Equal(t, []string{"current v1", "ramp v2 10"}, w.calls())
	w.eventually("the next step", func() bool { return len(w.pulls(r, sdk.StateAll)) == all+1 })
}

// The spec is reverted while the next step is in review: traffic goes back at once, and the proposal is closed.
func TestRollbackWhileAProposalIsOpen(t *testing.T) {
	testneed.Long(t)
	w, r, _ := reviewed(t, "Step")
	w.pushSpec("v2", specText{image: "app:v2"})
	w.merge(r, w.awaitPull(r, "at 10%"), sdk.MergeStyleMerge)
	p := w.awaitPull(r, "at 50%")
	w.pushSpec("back", specText{image: "app:v1"})
	w.awaitReady("app:v1")
	require.Equal(t, []string{"current v1", "ramp v2 10", "ramp none"}, w.calls())
	w.awaitNoPull(r)
	require.Equal(t, sdk.StateClosed, w.pull(r, p.Index).State)
	// A slow Gitea closes it with the branch of the step before, which is gone: then the bot opened another one.
	last := w.pulls(r, sdk.StateAll)[0]
	require.Contains(t, w.comments(r, last.Index), "This does not come next any more.")
	require.NotEmpty(t, w.comments(r, p.Index), "it says why")
}

// What was asked lies in review while its facts go stale. The world moved on without it, and merging it later does not
// do what was right then.
func TestProposalThatWentStale(t *testing.T) {
	testneed.Long(t)
	w, r, b := reviewed(t, "Step")
	w.pushSpec("v2", specText{image: "app:v2"})
	p := w.awaitPull(r, "at 10%")
	b.stop()
	w.pushSpec("v3", specText{image: "app:v3"})
	w.merge(r, p, sdk.MergeStyleRebase)
	w.start()
	next := w.awaitPull(r, "to "+w.awaitBuild("app:v3")+" at 10%")
	require.NotEqual(t, p.Index, next.Index)
	require.Equal(t, []string{"current v1"}, w.calls(), "v2 is not what is asked for any more")
	require.Nil(t, w.routing().Desired.Ramping)
}

// Without a forge a proposal is its branch, and any merge approves it.
func TestProposalWithoutAForge(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.push("wants approval", map[string]string{"rampart.yaml": wantsApproval("Step"), specFile: specText{image: "app:v1", strategy: allAtOnce}.String()})
	w.eventually("a branch", func() bool { return w.repo.Git("branch", "--list", proposalBranch) != "" })
	require.Empty(t, w.calls())
	w.mergeByHand(proposalBranch)
	w.awaitReady("app:v1")
	w.eventually("its branch goes", func() bool { return w.repo.Git("branch", "--list", proposalBranch) == "" })
}

// TestTerminationIsReviewed checks that a termination is reviewed too, also where raises need no approval: merged, it
// is done; closed, it is declined.
func TestTerminationIsReviewed(t *testing.T) {
	testneed.Long(t)
	r := new(review)
	w := newWorld(t, onGitea(r))
	w.settledOn(specText{image: "app:v1", strategy: oneStep})
	w.startSlow("slow-1")
	w.start()
	evacuate := "{terminateAfter: 1s}"
	w.pushSpec("v2", specText{image: "app:v2", strategy: oneStep, evacuate: evacuate})
	w.awaitReady("app:v2")
	v1, v2 := w.build("app:v1"), w.build("app:v2")
	p := w.awaitPull(r, "terminate workflows of shop/checkout on "+v1)
	require.Contains(t, p.Body, "This cannot be taken back.")
	w.eventually("its address is in the status", func() bool {
		e := w.evacuation(v1)
		return len(e) == 1 && strings.Contains(e[0].Message, p.HTMLURL)
	})
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, w.ended("slow-1"))
	require.Equal(t, "-      state: Proposed\n+      state: Approved", changedLines(w.repo.Git("diff", "--unified=0", proposalBranch+"^", proposalBranch)))
	w.merge(r, p, sdk.MergeStyleSquash)
	w.eventually("v1 removed", func() bool { return w.build("app:v1") == "" })
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, w.ended("slow-1"))
	w.awaitNoPull(r)

	w.startSlow("slow-2")
	w.pushSpec("v3", specText{image: "app:v3", strategy: oneStep, evacuate: evacuate})
	w.awaitReady("app:v3")
	w.close(r, w.awaitPull(r, "terminate workflows of shop/checkout on "+v2))
	w.eventually("declined", func() bool {
		e := w.evacuation(v2)
		return len(e) == 1 && e[0].State == string(v1alpha1.EvacuationDeclined) && strings.Contains(e[0].Message, r.person.Login+" closed ")
	})
	w.awaitNoPull(r)
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, w.ended("slow-2"))
	require.Len(t, w.batchStarts(), 1)
	require.Nil(t, w.routing().Hold)
	w.repo.Fsck()
}

// changedLines are the lines of a diff that went and came.
func changedLines(diff string) string {
	var out []string
	for line := range strings.Lines(diff) {
		if len(line) > 1 && strings.ContainsRune("+-", rune(line[0])) && line[1] != line[0] {
			out = append(out, strings.TrimRight(line, "\n"))
		}
	}
	return strings.Join(out, "\n")
}

// protectedOutput is an environment whose commits are proposed where the branch does not take them.
const protectedOutput = `apiVersion: rampart.dev/v1alpha1
kind: Config
spec:
  environments:
    - name: default
      specs: ["workers/**"]
      output: {path: deploy}
      pullRequests: {onProtectedBranch: Propose}
`

// A protected branch takes no commit of the bot's: each is proposed, and what is merged is carried out, step by step.
func TestProtectedBranch(t *testing.T) {
	testneed.Long(t)
	r := new(review)
	w := newWorld(t, onGitea(r))
	w.push("propose commits", map[string]string{"rampart.yaml": protectedOutput, specFile: specText{image: "app:v1", strategy: oneStep}.String()})
	r.Protect(t, sdk.CreateBranchProtectionOption{RuleName: "main", EnablePush: true, EnablePushWhitelist: true, PushWhitelistUsernames: []string{r.person.Login}})
	w.once()
	waits := w.pulls(r, sdk.StateOpen)
	require.Len(t, waits, 1)
	for asked := time.Now().Unix(); time.Now().Unix() == asked; {
		w.once() // decided again in another second, by a bot that remembers nothing
	}
	require.Equal(t, waits[0].Head.Sha, w.pulls(r, sdk.StateOpen)[0].Head.Sha, "who reviews it is not sent back to the start")
	w.start()
	var merged []string
	w.eventually("the version is current, by merges of a person alone", func() bool {
		for _, p := range w.pulls(r, sdk.StateOpen) {
			require.Equal(t, "rampart-output/default", p.Head.Ref)
			require.Equal(t, "rampart(default): commit to main", p.Title)
			require.Equal(t, r.bot.Login, p.Poster.UserName)
			if w.routing().Desired.Current == "" {
				require.Empty(t, w.calls(), "nothing is raised before it is merged")
			}
			head := p.Head.Sha
			ok, _, err := r.person.Client(t).MergePullRequest(r.Owner, r.Name, p.Index, sdk.MergePullRequestOption{Style: sdk.MergeStyleSquash, Title: p.Title, HeadCommitId: head})
			if err == nil && ok {
				merged = append(merged, head)
			}
		}
		return w.reason() == "RolloutComplete"
	})
	require.GreaterOrEqual(t, len(merged), 3, "created, promoted, complete")
	require.Equal(t, []string{"current v1"}, w.calls())
	w.eventually("nothing is left open", func() bool {
		return len(w.pulls(r, sdk.StateOpen)) == 0 && w.repo.Git("branch", "--list", "rampart-output/*") == ""
	})
	w.repo.Fsck()
}

// A changed template under a build ID that stays is a rolling update of workers that have traffic. It is proposed by
// its template, and made once that is merged.
func TestUpdateInPlaceIsMerged(t *testing.T) {
	testneed.Long(t)
	r := new(review)
	w := newWorld(t, onGitea(r))
	w.start()
	spec := specText{image: "app:v1", buildID: "stable", strategy: allAtOnce}
	w.push("wants approval", map[string]string{"rampart.yaml": wantsApproval("Step"), specFile: spec.String()})
	w.merge(r, w.awaitPull(r, "promote shop/checkout to stable"), sdk.MergeStyleMerge)
	w.eventually("Ready", func() bool { return w.reason() == "RolloutComplete" })
	was := w.routing()
	const manifest = "main:deploy/shop/checkout/versions/stable/deployment.yaml"
	require.Contains(t, w.repo.Git("show", manifest), "image: app:v1")

	spec.image = "app:v2"
	w.pushSpec("v2 in place", spec)
	p := w.awaitPull(r, "update ")
	waits := w.routing()
	require.Equal(t, was.Versions[0].TemplateHash, waits.Versions[0].TemplateHash)
	require.Equal(t, waits.Target.TemplateHash, waits.Proposal.TemplateHash)
	require.NotEqual(t, was.Target.TemplateHash, waits.Target.TemplateHash)
	require.Contains(t, w.repo.Git("show", manifest), "image: app:v1", "nothing is updated before it is merged")
	require.Contains(t, w.repo.Git("show", fmt.Sprintf("refs/pull/%d/head:deploy/shop/checkout/routing.yaml", p.Index)),
		"  desired:\n    current: stable\n    templateHash: "+waits.Target.TemplateHash, "that is what is approved")
	w.merge(r, p, sdk.MergeStyleSquash)
	w.eventually("updated", func() bool { return strings.Contains(w.repo.Git("show", manifest), "image: app:v2") })
	w.eventually("Ready again", func() bool { return w.reason() == "RolloutComplete" })
	is := w.routing()
	require.Equal(t, waits.Target.TemplateHash, is.Versions[0].TemplateHash)
	require.Nil(t, is.Proposal)
	require.Equal(t, []string{"current stable"}, w.changes())
}
