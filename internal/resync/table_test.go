package resync

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Worker deployments that were described together are described again over half of the interval.
func TestIntervalsAreSpread(t *testing.T) {
	parts := map[time.Duration]int{}
	for i := range 1000 {
		of := jittered(rollout.Name{Namespace: "shop", Name: fmt.Sprintf("w%d", i)})
		require.LessOrEqual(t, of, Interval)
		require.Greater(t, of, Interval/2)
		parts[of.Truncate(30*time.Second)]++
	}
	require.Len(t, parts, 5)
	for from, n := range parts {
		require.InDelta(t, 200, n, 60, "from %s", from)
	}
}

// A walk finds at rest what the table has at rest, whatever came, went and was settled anew between two walks.
func TestWalk(t *testing.T) {
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	hash, conn := NewConnectionHash(), &v1alpha1.Connection{}
	rapid.Check(t, func(rt *rapid.T) {
		var table Table
		shared := table.Share("live", Shared{})
		all := map[string]*rollout.IndexEntry{}
		for range rapid.IntRange(1, 8).Draw(rt, "walks") {
			for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}), rapid.ID[string]).Draw(rt, "about") {
				key := Key{Env: "live", Name: rollout.Name{Namespace: "shop", Name: name}}
				k := &rollout.IndexEntry{Deployment: key.Name, Connection: conn, Tree: rapid.SampledFrom([]string{"1", "2"}).Draw(rt, "tree")}
				switch rapid.SampledFrom([]string{"settle", "drop", "change", "same", "go"}).Draw(rt, name) {
				case "settle":
					all[name] = k
					table.Settle(key, Row{Inputs: InputsOfEntry(k, *shared, hash)}, now)
				case "drop":
					table.Drop(key)
				case "change":
					all[name] = k
				case "same":
					if was := all[name]; was != nil {
						is := *was
						all[name] = &is
					}
				case "go":
					delete(all, name)
				}
			}
			var want, got []string
			walk := table.Walk("live")
			for _, name := range slices.Sorted(maps.Keys(all)) {
				k := all[name]
				if r := table.rows[Key{Env: "live", Name: k.Deployment}]; r != nil && r.Inputs == InputsOfEntry(k, *shared, hash) {
					want = append(want, name)
				}
				if walk.Rests(k, shared, hash, now) {
					got = append(got, name)
				}
			}
			require.Equal(rt, want, got)
			for i, r := range walk.End() {
				require.Same(rt, all[got[i]], r.Entry())
			}
		}
	})
}
