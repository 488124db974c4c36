package gitops

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/tree"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// A record that cannot be read has the last version of it in history that can, in whatever way the repository is read.
func TestLastReadable(t *testing.T) {
	const dir, file = "deploy/shop/x", "deploy/shop/x/routing.yaml"
	good := ramps(routingYAML("x", "x.yaml"))
	older := routingYAML("x", "old.yaml")
	for name, c := range map[string]struct {
		then   []gittest.Commit
		record string // the path of the spec in what is found; "": nothing is
	}{
		"a syntax error":              {[]gittest.Commit{{Write: map[string]string{file: good + "\t:"}}}, "x.yaml"},
		"two broken commits":          {[]gittest.Commit{{Write: map[string]string{file: "a: b\n"}}, {Write: map[string]string{file: "c: d\n"}}}, "x.yaml"},
		"a value that is none":        {[]gittest.Commit{{Write: map[string]string{file: strings.Replace(good, "percentage: 5", "percentage: 500", 1)}}}, "x.yaml"},
		"it is missing":               {[]gittest.Commit{{Write: map[string]string{dir + "/versions/v1/deployment.yaml": "a: b\n"}, Delete: []string{file}}}, "x.yaml"},
		"it is too large":             {[]gittest.Commit{{Write: map[string]string{file: "#" + strings.Repeat("x", tree.MaxFileSize)}}}, "x.yaml"},
		"one that was broken long":    {[]gittest.Commit{{Write: map[string]string{file: older}}, {Write: map[string]string{file: "a: b\n"}}}, "old.yaml"},
		"another's, and then nothing": {[]gittest.Commit{{Write: map[string]string{file: routingYAML("y", "y.yaml")}}, {Write: map[string]string{file: "a: b\n"}}}, "x.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			r := gittest.NewBareRepo(t)
			r.Commit(gittest.Commit{Write: map[string]string{"x.yaml": specYAML("shop", "x", "i:1"), "connection.yaml": connectionYAML, file: good}})
			for _, commit := range c.then {
				r.Commit(commit)
			}
			repo := open(t, r)
			for range 2 {
				whole := read(t, repo).Environments[0].Deployments
				survey, load, err := repo.Survey(t.Context())
				require.NoError(t, err)
				env := survey.World.Environments[0]
				surveyed, err := load(t.Context(), survey.Snapshots(env.Environment.Name, env.Entries))
				require.NoError(t, err)
				for _, snapshots := range [][]rollout.Snapshot{whole, surveyed} {
					require.Len(t, snapshots, 1)
					is := snapshots[0].Record
					require.NotNil(t, is.RoutingProblem)
					require.Nil(t, is.Routing)
					require.Equal(t, c.record, is.LastReadable.Spec.SpecPath)
				}
			}
			r.Commit(gittest.Commit{Write: map[string]string{file: good}})
			mended := read(t, repo).Environments[0].Deployments[0].Record
			require.NotNil(t, mended.Routing)
			require.Nil(t, mended.LastReadable)
		})
	}
}

// A readable record that history does not have is looked for again after some minutes, or when the record is
// another one.
func TestNeverReadable(t *testing.T) {
	const file = "deploy/shop/x/routing.yaml"
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{"x.yaml": specYAML("shop", "x", "i:1"), "connection.yaml": connectionYAML, file: "a: b\n"}})
	repo := open(t, r)
	now := time.Date(2026, 11, 24, 9, 0, 0, 0, time.UTC)
	var log strings.Builder
	repo.cfg.Now, repo.cfg.Log = func() time.Time { return now }, slog.New(slog.NewTextHandler(&log, nil))
	last := func() *v1alpha1.Routing { return read(t, repo).Environments[0].Deployments[0].Record.LastReadable }
	require.Nil(t, last())
	// The branch gets a readable record, and then the one that cannot be read again. That one is not looked for
	// again yet.
	r.Commit(gittest.Commit{Write: map[string]string{file: routingYAML("x", "x.yaml")}})
	r.Commit(gittest.Commit{Write: map[string]string{file: "a: b\n"}})
	require.Nil(t, last(), "it was looked for a moment ago")
	now = now.Add(readableAgain)
	require.NotNil(t, last())
	require.NotNil(t, last())
	require.Equal(t, 1, strings.Count(log.String(), "a record cannot be read"), "%s", log.String())
}
