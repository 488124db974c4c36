package e2e

import (
	"slices"
	"strings"
	"testing"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// said are the statuses that were set on a commit in a context, the newest first: "state: description".
func (w *world) said(r *review, commit, context string) []string {
	w.t.Helper()
	all, _, err := r.person.Client(w.t).ListStatuses(r.Owner, r.Name, commit, sdk.ListStatusesOption{})
	require.NoError(w.t, err)
	var out []string
	for _, s := range all {
		if s.Context == context {
			out = append(out, string(s.State)+": "+s.Description)
		}
	}
	return out
}

// awaitSaid waits until the last status of a commit in a context begins with a text.
func (w *world) awaitSaid(r *review, commit, context, text string) {
	w.t.Helper()
	w.eventually("status "+context+" of "+commit+": "+text, func() bool {
		return strings.HasPrefix(w.statusIn(r, commit, context), text)
	})
}

// statusIn is the last status of a commit in a context: "state: description".
func (w *world) statusIn(r *review, commit, context string) string {
	w.t.Helper()
	all, _, err := r.person.Client(w.t).GetCombinedStatus(r.Owner, r.Name, commit)
	require.NoError(w.t, err)
	for _, s := range all.Statuses {
		if s.Context == context {
			return string(s.State) + ": " + s.Description
		}
	}
	return ""
}

// The commit that asked says what becomes of that: one status for the environment, or one for each worker deployment.
func TestCommitStatuses(t *testing.T) {
	testneed.Long(t)
	r := new(review)
	w := newWorld(t, onGitea(r), withImages(map[string]temporalenv.Image{
		"refund:v1": temporalenv.DefaultImage("refund"), "refund:v2": temporalenv.DefaultImage("refund"), "refund:v3": temporalenv.DefaultImage("refund")}))
	b := w.start()
	const all = "rampart/default"
	first := w.push("both", map[string]string{"rampart.yaml": environmentWith(""), specFile: specText{image: "app:v1"}.String(),
		"workers/refund.yaml": specText{name: "refund", image: "refund:v1"}.String()})
	w.awaitSaid(r, first, all, "success: 2 worker deployments: rollout complete")

	second := w.pushSpecs("v2 of both", map[string]specText{"checkout": {image: "app:v2", strategy: slowSteps}, "refund": {image: "refund:v2"}})
	w.awaitSaid(r, second, all, "pending: 0 of 2 complete; shop/checkout: ")
	w.awaitReason("Ramping")
	w.named("refund").awaitReady("refund:v2")
	third := w.named("refund").pushSpec("v3 of one", specText{image: "refund:v3", gate: "{workflowType: SmokeFails}"})
	w.awaitSaid(r, third, all, "failure: shop/refund: GateFailed: ")
	require.Contains(t, w.statusIn(r, second, all), "pending: ", "the other one still ramps")
	require.Contains(t, w.statusIn(r, first, all), "success: ")

	w.push("one for each", map[string]string{"rampart.yaml": environmentWith("      commitStatuses: WorkerDeployment\n")})
	w.awaitSaid(r, second, all+"/shop/checkout", "pending: shop/checkout: Ramping")
	w.awaitSaid(r, third, all+"/shop/refund", "failure: shop/refund: GateFailed: ")
	w.awaitSaid(r, second, all, "error: superseded")

	// A bot that was killed says what came of it after its next start, and nothing twice.
	before := w.said(r, third, all+"/shop/refund")
	b.kill()
	require.True(t, w.say("rollback", "--reason", "too slow").Changed)
	w.start()
	w.awaitSaid(r, second, all+"/shop/checkout", "failure: shop/checkout: ")
	require.Equal(t, before, w.said(r, third, all+"/shop/refund"))
	require.Empty(t, w.statusIn(r, first, all+"/shop/checkout"), "nothing asks for what the first commit did")
	for _, commit := range []string{first, second, third} {
		for _, s := range w.said(r, commit, all) {
			require.LessOrEqual(t, len(s), 160)
		}
	}
	w.repo.Fsck()
}

// saysWhich is a policy that names what the CD tool says beside success.
const saysWhich = `package rampart.rollout

hold contains {"rule": concat("", ["shop.cd_", state]), "msg": concat(" ", ["the CD tool says", state])} if {
	input.action.raises
	state := input.facts["status:cd/workers"].value
	state != "success"
}
`

// A policy holds a rollout until what applies the manifests says that it is well. That is on the newest commit that
// holds the version and has its status.
func TestHeldByACommitStatus(t *testing.T) {
	testneed.Long(t)
	r := new(review)
	w := newWorld(t, onGitea(r))
	w.start()
	set := func(commit string, state sdk.StatusState) {
		t.Helper()
		_, _, err := r.person.Client(t).CreateStatus(r.Owner, r.Name, commit, sdk.CreateStatusOption{State: state, Context: "cd/workers"})
		require.NoError(t, err)
	}
	w.push("waits for the CD tool", map[string]string{"rampart.yaml": environmentWith("      data: [\"data/*.yaml\"]\n"), specFile: specText{image: "app:v1"}.String(),
		"policies/cd.rego": saysWhich, "data/cd.yaml": "rampart: {config: {rollout: {statuses: {required: [{context: cd/workers}]}}}}\n"})
	w.awaitReason("PolicyHold")
	w.eventually("it says for what it waits", func() bool { return strings.Contains(w.file(w.dir()+"/status.yaml"), "cd/workers") })
	later := w.push("something else", map[string]string{"README.md": "what the CD tool sees last\n"})
	set(later, sdk.StatusSuccess)
	w.awaitReady("app:v1")

	w.pushSpec("v2", specText{image: "app:v2"})
	w.awaitBuild("app:v2")
	w.awaitReason("PolicyHold")
	set(later, sdk.StatusSuccess) // of a commit that does not hold v2
	rendered := w.repo.Git("log", "--format=%H", "--diff-filter=A", "main", "--", w.dir()+"/versions/"+w.build("app:v2"))
	set(rendered, sdk.StatusPending)
	newest := w.push("something else again", map[string]string{"README.md": "newer\n"})
	w.eventually("the pending status is seen", func() bool { return slices.Contains(w.status().Decision.Rules, "shop.cd_pending") })
	require.Equal(t, []string{"current v1"}, w.calls())
	set(newest, sdk.StatusSuccess)
	w.awaitReady("app:v2")
	require.Equal(t, []string{"current v1", "ramp v2 10", "ramp v2 50", "current v2"}, w.calls())
	w.repo.Fsck()
}
