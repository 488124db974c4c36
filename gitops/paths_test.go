package gitops

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// A record names its spec's path. A path that the record's reader would refuse is refused where the spec is read, so
// that the bot never writes a record that it cannot read.
func TestPathsThatNoRecordCanName(t *testing.T) {
	for name, file := range map[string]string{
		"a tab":          "workers/a\tb.yaml",
		"a folder":       "work\x01ers/x.yaml",
		"a backslash":    `workers/a\b.yaml`,
		"not UTF-8":      "workers/\xff.yaml",
		"a C1 character": "workers/a\u0085b.yaml",
	} {
		t.Run(name, func(t *testing.T) {
			require.False(t, v1alpha1.MayBeRecorded(file))
			r := gittest.NewBareRepo(t)
			r.Commit(gittest.Commit{Write: map[string]string{"workers/good.yaml": specYAML("shop", "good", "i:1"), "connection.yaml": connectionYAML,
				"deploy/shop/bad/routing.yaml": routingYAML("bad", "workers/was.yaml"), file: specYAML("shop", "bad", "i:1")}})
			repo := open(t, r)
			for range 2 { // an index entry says so too
				survey, load, err := repo.Survey(t.Context())
				require.NoError(t, err)
				env := survey.World.Environments[0]
				require.Len(t, env.Problems, 1)
				require.Contains(t, env.Problems[0].Message, "rename")
				all, err := load(t.Context(), survey.Snapshots(env.Environment.Name, env.Entries))
				require.NoError(t, err)
				require.Len(t, all, 2)
				bad, good := all[0], all[1]
				require.Nil(t, bad.Spec)
				require.Len(t, bad.Problems, 1)
				require.Equal(t, rollout.InvalidSpec, bad.Problems[0].Reason)
				require.NotNil(t, good.Spec)
				require.Empty(t, good.Problems)
			}
		})
	}
}

// A connection at such a path is not there.
func TestConnectionAtSuchAPath(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{"x.yaml": specYAML("shop", "x", "i:1"), "c\x07.yaml": connectionYAML}})
	w := read(t, open(t, r))
	require.Len(t, w.Environments[0].Problems, 1)
	require.Nil(t, w.Environments[0].Deployments[0].Connection)
}
