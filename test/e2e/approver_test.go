package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/test/giteatest"
)

// byOther asks for an approval by somebody other than who asked.
var byOther = []string{"--require-approval-by-other", "*"}

// is makes a person the one who pushes.
func (w *world) is(name, email string) { w.who, w.email = name, email }

// awaitRefused waits until an approval by somebody is written down as refused.
func (w *world) awaitRefused(by string) {
	w.t.Helper()
	w.eventually("the approval by "+by+" is refused", func() bool {
		p := w.routing().Proposal
		return p != nil && p.Refused != nil && strings.Contains(p.Refused.By, by) && p.Approved == nil
	})
}

// Who asked for a build does not approve it, neither by a command nor by a commit; somebody else does. That it was
// refused outlasts the bot.
func TestCommitOfAnotherApproves(t *testing.T) {
	w := newWorld(t)
	b := w.start(byOther...)
	w.is(person, "ada@example.com")
	w.pushSpec("v1", specText{image: "app:v1", strategy: slowSteps})
	w.awaitReason("AwaitingApproval")
	require.Equal(t, person+" <ada@example.com>", w.routing().Target.AskedIn[0].Author)

	why := w.refused(append([]string{"approve"}, byOther...)...)
	require.Contains(t, why, person+" asked for this, in commit ")
	require.Contains(t, why, "in environment default somebody else has to approve it, so this would not count")
	require.True(t, w.say("approve").Changed, "where the command knows nothing of it")
	w.awaitRefused(person)
	require.Contains(t, w.routing().Proposal.Refused.Reason, "asked for it, in commit ")
	b.stop()
	b = w.start(byOther...)
	w.settle()
	w.awaitRefused(person)
	require.Equal(t, "AwaitingApproval", w.reason())
	require.Contains(t, w.explain(), "the approval by "+person+" <ada@example.com> does not count, somebody else has to approve: ")
	require.Empty(t, w.calls())

	build := w.build("app:v1")
	w.editDesired("yes, says who asked", `current: ""`, "current: "+build)
	w.eventually("it is put back", func() bool { return w.routing().Desired.Current == "" })
	w.settle()
	require.Empty(t, w.calls())

	w.is("Grace", "grace@example.com")
	w.editDesired("yes, says somebody else", `current: ""`, "current: "+build)
	w.awaitReady("app:v1")
	require.Equal(t, []string{"current v1"}, w.changes())
	require.Nil(t, w.routing().Proposal)

	w.pushSpec("v2", specText{image: "app:v2", strategy: slowSteps})
	w.eventually("v2 is proposed", func() bool { p := w.routing().Proposal; return p != nil && p.BuildID == w.build("app:v2") })
	require.True(t, w.say("approve").Changed, "Grace asked, Ada approves")
	w.eventually("v2 ramps", func() bool { return len(w.changes()) == 2 })
	w.editDesired("more than is proposed", "percentage: 10", "percentage: 50")
	w.awaitReason("ManualHold")
	require.InDelta(t, 10, w.desiredShare(), 0, "put back")
	require.Equal(t, []string{"current v1", "ramp v2 10"}, w.changes())
	b.stop()
	w.repo.Fsck()
}

// TestMergeByAnotherApproves checks who approves on a forge: the account that merged, or that approved what was merged.
// It does not matter whom the commits name.
func TestMergeByAnotherApproves(t *testing.T) {
	testneed.Long(t)
	r := new(review)
	w := newWorld(t, onGitea(r))
	grace := giteatest.Start(t).User(t, "grace")
	r.Collaborators(t, grace)
	ada := r.person
	w.is(ada.Login, ada.Login+"@example.com")
	b := w.start(byOther...)
	w.pushSpec("v1", specText{image: "app:v1", strategy: slowSteps})
	first := w.awaitPull(r, "promote shop/checkout to ")
	w.merge(r, first, sdk.MergeStyleSquash)
	w.awaitRefused(ada.Login)
	require.Empty(t, w.calls())
	b.stop()
	w.forgetCache()
	w.start(byOther...)
	second := w.awaitProposed(r, "promote shop/checkout to ")
	require.NotEqual(t, first.Index, second.Index)
	w.awaitRefused(ada.Login)
	r.person = grace
	w.merge(r, second, sdk.MergeStyleMerge)
	w.awaitReady("app:v1")
	require.Equal(t, []string{"current v1"}, w.calls())

	w.pushSpec("v2", specText{image: "app:v2", strategy: slowSteps})
	p := w.awaitProposed(r, "at 10%")
	approve(t, r, grace, p)
	r.person = ada
	w.merge(r, p, sdk.MergeStyleSquash) // which grace approved
	w.eventually("v2 ramps", func() bool { return len(w.calls()) == 2 })

	w.is("nobody", "nobody@nowhere.example.com") // whom the forge does not know
	w.pushSpec("v3", specText{image: "app:v3", strategy: slowSteps})
	p = w.awaitProposed(r, w.awaitBuild("app:v3")+" at 10%")
	w.merge(r, p, sdk.MergeStyleMerge)
	w.awaitRefused(ada.Login)
	require.Contains(t, w.routing().Proposal.Refused.Reason, "the forge knows no account of nobody <nobody@nowhere.example.com>")
	w.repo.Fsck()
}

// The recommended way for several teams, as examples/protected-output has it. Only the bot may push to the output, a
// merge there wants the approval of somebody, and who approves is not who asked.
func TestOutputOfTheBotAlone(t *testing.T) {
	testneed.Long(t)
	r := new(review)
	w := newWorld(t, onGitea(r), onBranch("deploy"), inFolder("prod"))
	ada, grace := r.person, giteatest.Start(t).User(t, "grace")
	r.Collaborators(t, grace)
	r.Protect(t, sdk.CreateBranchProtectionOption{RuleName: "deploy", EnablePush: true, EnablePushWhitelist: true, PushWhitelistUsernames: []string{r.bot.Login},
		RequiredApprovals: 1, BlockAdminMergeOverride: true})
	config, err := os.ReadFile(filepath.Join(repositoryRoot, "examples/protected-output/rampart.yaml"))
	require.NoError(t, err)
	w.is(ada.Login, ada.Login+"@example.com")
	w.start(byOther...)
	w.push("as the example has it", map[string]string{"rampart.yaml": string(config), specFile: specText{image: "app:v1", strategy: slowSteps}.String()})
	p := w.awaitProposed(r, "promote shop/checkout to ")
	require.Equal(t, "deploy", p.Base.Ref)

	out, ok := w.tryPush("deploy", w.dir()+"/routing.yaml", func(text string) string {
		return strings.Replace(text, `current: ""`, "current: "+w.build("app:v1"), 1)
	})
	require.False(t, ok, "a person's push to the output: %s", out)
	require.Contains(t, out, "protected branch")
	out, ok = w.tryPush("deploy", w.dir()+"/kustomization.yaml", func(text string) string { return text + "\n# mine\n" })
	require.False(t, ok, "a person's push to the output: %s", out)
	hers := *w
	hers.access = []string{"--git-user", grace.Login, "--git-token-file", tokenFile(t, grace)}
	why := hers.refused("approve")
	require.Contains(t, why, "protected", "approve is a push, too")

	require.Equal(t, http.StatusMethodNotAllowed, w.refusesMerge(r, p), "nobody approved it")
	approve(t, r, grace, p)
	w.merge(r, p, sdk.MergeStyleSquash)
	w.awaitReady("app:v1")
	require.Equal(t, []string{"current v1"}, w.calls())
	w.repo.Fsck()
}

// tokenFile is a file with a user's token.
func tokenFile(t *testing.T, u giteatest.User) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(name, []byte(u.Token+"\n"), 0o600))
	return name
}

// tryPush changes a file of a branch as the person who pushes, and says what became of it.
func (w *world) tryPush(branch, file string, change func(string) string) (string, bool) {
	w.t.Helper()
	work := w.t.TempDir()
	git := func(args ...string) (string, bool) {
		cmd := exec.Command("git", append([]string{"-C", work, "-c", "user.name=" + w.who, "-c", "user.email=" + w.email}, args...)...)
		cmd.Env = gittest.Env()
		out, err := cmd.CombinedOutput()
		return string(out), err == nil
	}
	out, ok := git("clone", "-q", "-b", branch, w.origin, ".")
	require.True(w.t, ok, out)
	text, err := os.ReadFile(filepath.Join(work, file))
	require.NoError(w.t, err)
	changed := change(string(text))
	require.NotEqual(w.t, string(text), changed)
	require.NoError(w.t, os.WriteFile(filepath.Join(work, file), []byte(changed), 0o644))
	out, ok = git("commit", "-q", "-a", "-m", "mine")
	require.True(w.t, ok, out)
	return git("push", "-q", "origin", "HEAD:"+branch)
}
