package decisions_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/decisions"
	"github.com/rampart-gitops/rampart/policy"
)

var update = flag.Bool("update", false, "write the segments of the version that is written now")

// What was written once is read forever: testdata has segments of each version, and the IDs of their decisions, which say all of
// their content. Those of a version that is not written any more are never made again.
func TestOldSegments(t *testing.T) {
	if *update {
		writeSegments(t, filepath.Join("testdata", fmt.Sprintf("v%d", decisions.Version)))
	}
	versions, err := filepath.Glob(filepath.Join("testdata", "v*"))
	require.NoError(t, err)
	require.Len(t, versions, decisions.Version)
	for _, dir := range versions {
		want, err := os.ReadFile(filepath.Join(dir, "ids"))
		require.NoError(t, err)
		var got strings.Builder
		d := decisions.NewDecoder(decisions.NewState())
		for n := 0; ; n++ {
			segment, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("%d.segment", n)))
			if os.IsNotExist(err) {
				break
			}
			require.NoError(t, err)
			ds, err := d.Decode(segment, decisions.Filter{})
			require.NoError(t, err, dir)
			for i := range ds {
				fmt.Fprintln(&got, ds[i].ID)
			}
		}
		require.NotEmpty(t, got.String())
		require.Equal(t, string(want), got.String(), dir)
	}
}

func writeSegments(t *testing.T, dir string) {
	require.NoError(t, os.MkdirAll(dir, 0o755))
	c := company{deployments: 3, days: 4, start: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}
	engine := policy.Compile(policy.Config{})
	e := decisions.NewEncoder(decisions.NewState())
	var ids strings.Builder
	for i := range c.deployments {
		ds := c.each(t, i, engine)
		segment, err := e.Append(ds)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.segment", i)), segment, 0o644))
		for _, d := range ds {
			fmt.Fprintln(&ids, d.ID)
		}
	}
	_, others := epoch(t, 80, 1) // in more than one lane
	segment, err := e.Append(others)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.segment", c.deployments)), segment, 0o644))
	for _, d := range others {
		fmt.Fprintln(&ids, d.ID)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ids"), []byte(ids.String()), 0o644))
}
