package e2e

import (
	"slices"
	"strings"
	"testing"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/testneed"
)

// asPerson is the same world for who is not the bot: no proxy is in the way.
func (w *world) asPerson(r *review) *world {
	person := *w
	person.url = r.URL() + ".git"
	return &person
}

// pullsAsked are all pull requests, oldest first, such as "ramp shop/checkout to v2 at 10%: merged".
func (w *world) pullsAsked(r *review) []string {
	w.t.Helper()
	var out []string
	for _, p := range slices.Backward(w.pulls(r, sdk.StateAll)) {
		if w.closedByDeletion(r, p) {
			continue
		}
		became := string(p.State)
		if p.HasMerged {
			became = "merged"
		}
		out = append(out, buildSuffix.ReplaceAllString(strings.TrimPrefix(p.Title, "rampart(default): "), "$1")+": "+became)
	}
	return out
}

// awaitProposed is awaitPull, until all is done that the bot does about it. Its address is in the record, what is
// proposed goes on top of that, and its commit has a status.
func (w *world) awaitProposed(r *review, title string) *sdk.PullRequest {
	w.t.Helper()
	p := w.awaitPull(r, title)
	w.eventually("all is done about "+p.Title, func() bool {
		p = w.lookAt(r, p)
		list, _, err := r.person.Client(w.t).ListStatuses(r.Owner, r.Name, p.Head.Sha, sdk.ListStatusesOption{})
		require.NoError(w.t, err)
		return strings.Contains(w.repo.Files(p.Head.Sha)[w.dir()+"/routing.yaml"], p.HTMLURL) && len(list) > 0
	})
	return p
}

// killedAt are what the bot has to have died at when steps are reviewed on a Gitea.
var killedAt = []string{
	"push main", "push " + proposalBranch, "delete " + proposalBranch, "POST pulls", "PATCH pulls", "POST statuses", "POST issues comments",
}

// TestKilledAtEveryWriteOfAReview kills the bot at each write that it sends to a Gitea, and at each step of traffic.
// Meanwhile steps are proposed, superseded, closed, merged and withdrawn. What the bot does is done once: each step of
// traffic is one call and one commit, each proposal one pull request, and no branch is left.
func TestKilledAtEveryWriteOfAReview(t *testing.T) {
	testneed.Long(t)
	r, k := new(review), new(killer)
	w := newWorld(t, behindKiller(k, r))
	k.killAtTemporal()
	spec := func(image string) specText {
		return specText{image: image, strategy: oneStep, sunset: "scaledownDelay: 1h, deleteDelay: 1h"}
	}
	w.push("wants approval", map[string]string{"rampart.yaml": wantsApproval("Step"), specFile: spec("app:v1").String()})
	w.merge(r, w.awaitProposed(r, "promote shop/checkout to v1-"), sdk.MergeStyleSquash)
	w.awaitReady("app:v1")

	w.pushSpec("v2", spec("app:v2"))
	w.awaitPull(r, "to v2-")
	w.pushSpec("v3", spec("app:v3"))
	w.merge(r, w.awaitProposed(r, "ramp shop/checkout to v3-"), sdk.MergeStyleRebase)

	w.close(r, w.awaitPull(r, "promote shop/checkout to v3-"))
	w.awaitReason("ManualHold")
	w.awaitNoPull(r)
	require.True(t, w.asPerson(r).say("resume").Changed)
	w.merge(r, w.awaitPull(r, "promote shop/checkout to v3-"), sdk.MergeStyleSquash)
	w.awaitReady("app:v3")

	w.pushSpec("v2 again", spec("app:v2"))
	w.awaitProposed(r, "to v2-")
	w.pushSpec("rather not", spec("app:v3"))
	w.awaitReady("app:v3")
	w.awaitNoPull(r)
	k.end()

	t.Logf("%d bots, killed at: %v", k.bots, k.kills)
	for _, at := range killedAt {
		require.Positive(t, k.kills[at+" before"], at)
		require.Positive(t, k.kills[at+" after"], at)
	}
	steps := []string{"current v1", "ramp v3 10", "current v3"}
	require.Equal(t, steps, w.calls(), "each step of traffic is one call")
	w.checkSteps([]string{deployName}, steps...)
	require.Equal(t, []string{
		"promote shop/checkout to v1: merged", "ramp shop/checkout to v2 at 10%: closed", "ramp shop/checkout to v3 at 10%: merged",
		"promote shop/checkout to v3: closed", "promote shop/checkout to v3: merged", "ramp shop/checkout to v2 at 10%: closed",
	}, w.pullsAsked(r), "each proposal is one pull request")
	require.Nil(t, w.routing().Hold)
	require.Nil(t, w.routing().Proposal)
	w.checkHistory()
}

// TestKilledWhileItIsReviewed kills the bot at random times while the steps of three worker deployments are reviewed
// beside each other. A person merges whatever waits, also while no bot lives. Each step is one pull request, one merge,
// and one change of traffic.
func TestKilledWhileItIsReviewed(t *testing.T) {
	testneed.Long(t)
	random, r := chance(t), new(review)
	names, crowd := many(3, "v1", "v2")
	w := newWorld(t, crowd, toTheEnd(r))
	like := specText{strategy: oneStep, sunset: "scaledownDelay: 1h, deleteDelay: 1h"}
	w.pushSpecs("three", specsOf(names, "v1", like))
	first := w.start()
	for _, name := range names {
		w.named(name).awaitReady(name + ":v1")
	}
	first.stop()

	w.push("wants approval", map[string]string{"rampart.yaml": wantsApproval("Step")})
	w.pushSpecs("v2", specsOf(names, "v2", like))
	killed, caches := w.killAtRandom(random, kills/2, func() { w.mergeWhatWaits(r) }, func() bool { return len(w.notYetReady(names, "v2")) == 0 })
	w.start()
	w.eventually("nothing waits any more", func() bool {
		return len(w.pulls(r, sdk.StateOpen)) == 0 && w.repo.Git("branch", "--list", "rampart/*") == ""
	})
	t.Logf("killed %d times, with %d caches", killed, len(caches))

	var asked []string
	for _, name := range names {
		asked = append(asked, "promote shop/"+name+" to v2: merged", "ramp shop/"+name+" to v2 at 10%: merged")
	}
	require.ElementsMatch(t, asked, w.pullsAsked(r), "each step is one pull request")
	w.checkSteps(names, "current v1", "ramp v2 10", "current v2")
	w.checkNoRepeats(names)
	w.checkHistory()
}

// mergeWhatWaits merges each open pull request that can be merged.
func (w *world) mergeWhatWaits(r *review) {
	w.t.Helper()
	for _, p := range w.pulls(r, sdk.StateOpen) {
		p = w.lookAt(r, p)
		// One that the bot is about to bring up to date may be refused: it is there the next time.
		ok, _, err := r.person.Client(w.t).MergePullRequest(r.Owner, r.Name, p.Index, sdk.MergePullRequestOption{Style: sdk.MergeStyleSquash, Title: p.Title, HeadCommitId: p.Head.Sha})
		if !ok {
			w.t.Logf("not merged: %s (%v)", p.Title, err)
		}
	}
}

// The bot is killed at each write while its commits are proposed, since the branch is protected. One pull request is
// open at most, and what is merged is carried out once.
func TestKilledWhileCommitsAreProposed(t *testing.T) {
	testneed.Long(t)
	r, k := new(review), new(killer)
	w := newWorld(t, behindKiller(k, r))
	k.killAtTemporal()
	w.push("propose commits", map[string]string{"rampart.yaml": protectedOutput, specFile: specText{image: "app:v1", strategy: oneStep}.String()})
	r.Protect(t, sdk.CreateBranchProtectionOption{RuleName: "main", EnablePush: true, EnablePushWhitelist: true, PushWhitelistUsernames: []string{r.person.Login}})
	w.eventually("the version is current", func() bool {
		require.LessOrEqual(t, len(w.pulls(r, sdk.StateOpen)), 1)
		w.mergeWhatWaits(r)
		return w.reason() == "RolloutComplete"
	})
	w.eventually("nothing is left open", func() bool {
		return len(w.pulls(r, sdk.StateOpen)) == 0 && w.repo.Git("branch", "--list", "rampart-output/*") == ""
	})
	k.end()
	t.Logf("%d bots, killed at: %v", k.bots, k.kills)
	for _, at := range []string{"push main", "push rampart-output/default", "delete rampart-output/default", "POST pulls"} {
		require.Positive(t, k.kills[at+" before"], at)
	}
	require.Equal(t, []string{"current v1"}, w.calls())
	w.checkSteps([]string{deployName}, "current v1")
	w.checkHistory()
}
