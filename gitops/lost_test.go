package gitops

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// withVersions is a record that has versions of these build IDs; one that ends with - is taken out of service, one with
// ! is asked to go.
func withVersions(ids ...string) string {
	text, _, _ := strings.Cut(routingYAML("x", "x.yaml"), "  versions:")
	text += "  versions:\n"
	for _, id := range ids {
		more := ", guard: \"On\""
		switch {
		case strings.HasSuffix(id, "-"):
			more = ", guard: \"Off\", replicas: 0"
		case strings.HasSuffix(id, "!"):
			more += ", retire: {by: ada, at: \"2026-01-01T00:00:00Z\"}"
		}
		text += "    - {buildID: " + strings.TrimRight(id, "-!") + ", buildIDFrom: Template, templateHash: aa, connectionHash: bb, deployment: d, createdAt: \"2026-01-01T00:00:00Z\"" + more + ", files: {}}\n"
	}
	return text
}

// What a record had and lost is found where it was last, in a branch that was rewritten, too.
func TestLostVersionsAreFoundInHistory(t *testing.T) {
	const dir = "deploy/shop/x"
	r := gittest.NewBareRepo(t)
	record := func(ids ...string) map[string]string {
		return map[string]string{dir + "/routing.yaml": withVersions(ids...)}
	}
	r.Commit(gittest.Commit{Write: map[string]string{"x.yaml": specYAML("shop", "x", "i:1"), "connection.yaml": connectionYAML}})
	before := r.Commit(gittest.Commit{Write: record("v1", "gone")})
	r.Commit(gittest.Commit{Write: record("v1", "gone-", "asked!")})
	r.Commit(gittest.Commit{Write: map[string]string{dir + "/routing.yaml": "no: record\n"}})
	r.Commit(gittest.Commit{Write: record("v2")})
	now := time.Date(2026, 11, 24, 9, 0, 0, 0, time.UTC)
	repo := open(t, r)
	var log strings.Builder
	repo.cfg.Now, repo.cfg.Log = func() time.Time { return now }, slog.New(slog.NewTextHandler(&log, nil))
	namespace := "shop"
	find := func(ids ...string) (found []string) {
		w := read(t, repo)
		got, err := repo.Recorded(t.Context(), w.Environments[0].Environment, []rollout.LostVersions{
			{Deployment: rollout.Name{Namespace: "shop", Name: "x"}, Dir: dir, TemporalNamespace: namespace, BuildIDs: ids},
			{Deployment: rollout.Name{Namespace: "shop", Name: "y"}, Dir: "deploy/shop/y", TemporalNamespace: namespace, BuildIDs: []string{"v1"}},
		})
		require.NoError(t, err)
		require.Empty(t, got[rollout.Name{Namespace: "shop", Name: "y"}])
		for _, v := range got[rollout.Name{Namespace: "shop", Name: "x"}] {
			require.Equal(t, v1alpha1.GuardOn, v.Guard)
			found = append(found, v.BuildID)
		}
		return found
	}
	require.Equal(t, []string{"v1"}, find("v1", "gone", "asked", "never"), "what was taken out of service, or was to go, is not lost")
	require.Equal(t, []string{"v1"}, find("v1"), "as often as it is asked for")

	r.Commit(gittest.Commit{Parent: before + "~1", Write: record()})
	r.Git("reflog", "expire", "--expire=now", "--all")
	r.Git("gc", "--quiet", "--prune=now")
	require.Equal(t, []string{"v2"}, find("v2"), "of before it was rewritten")
	require.Equal(t, 1, strings.Count(log.String(), "the branch was rewritten"), "%s", log.String())
	require.Empty(t, find("never"))
	r.Commit(gittest.Commit{Write: record("never")})
	r.Commit(gittest.Commit{Write: record()})
	require.Empty(t, find("never"), "it was looked for a moment ago")
	now = now.Add(lookAgain)
	require.Equal(t, []string{"never"}, find("never"))
	namespace = "another"
	require.Empty(t, find("v2"), "of another Temporal namespace")
}
