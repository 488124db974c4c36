package e2e

import (
	"slices"
	"strings"
	"testing"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/stretchr/testify/require"
)

// asPerson is the same world for who is not the bot: no proxy is in the way.
func (w *world) asPerson(r *review) *world {
	person := *w
	person.url = r.URL() + ".git"
	return &person
}

// pullsAsked are all pull requests, oldest first, such as "ramp v2 at 10%: merged".
func (w *world) pullsAsked(r *review) []string {
	w.t.Helper()
	var out []string
	for _, p := range slices.Backward(w.pulls(r, sdk.StateAll)) {
		became := string(p.State)
		if p.HasMerged {
			became = "merged"
		}
		title := strings.Replace(strings.TrimPrefix(p.Title, "rampart(default): "), deployment+" to ", "", 1)
		out = append(out, buildSuffix.ReplaceAllString(title, "$1")+": "+became)
	}
	return out
}

// awaitProposed is awaitPull, until all is done that the bot does about it: its address is in the record, and its commit has a status.
func (w *world) awaitProposed(r *review, title string) *sdk.PullRequest {
	w.t.Helper()
	p := w.awaitPull(r, title)
	w.eventually("all is done about "+p.Title, func() bool {
		list, _, err := r.person.Client(w.t).ListStatuses(r.Owner, r.Name, w.repo.Tip(proposalBranch), sdk.ListStatusesOption{})
		require.NoError(w.t, err)
		return w.status().Decision != nil && w.status().Decision.PullRequest == p.HTMLURL && len(list) > 0
	})
	return p
}

// killedAt are what the bot has to have died at when steps are reviewed on a Gitea.
var killedAt = []string{
	"push main", "push " + proposalBranch, "delete " + proposalBranch, "POST pulls", "PATCH pulls", "POST statuses", "POST issues comments",
}

// The bot is killed at each write that it sends to a Gitea, and at each step of traffic, while steps are proposed, superseded, closed, merged
// and withdrawn. What it does is done once: each step of traffic is one call and one commit, each proposal one pull request, and no branch is
// left.
func TestKilledAtEveryWriteOfAReview(t *testing.T) {
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
		"promote v1: merged", "ramp v2 at 10%: closed", "ramp v3 at 10%: merged", "promote v3: closed", "promote v3: merged", "ramp v2 at 10%: closed",
	}, w.pullsAsked(r), "each proposal is one pull request")
	require.Nil(t, w.routing().Hold)
	require.Nil(t, w.routing().Proposal)
	w.checkHistory()
}
