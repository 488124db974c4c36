package decisions_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/decisions"
	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/policy"
)

// A year of 1 000 worker deployments with 6 000 decisions each has to stay under 100 MB as Git objects: 16 bytes a decision with
// commits and trees, which BenchmarkMonth measures. Here is a part of a month that says early when it gets out of hand: what the
// first decision of a deployment costs weighs more in it than in a month, and little was learned yet.
func TestBudget(t *testing.T) {
	testneed.Plain(t)
	c := company{deployments: 30, days: 3, start: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}
	engine := policy.Compile(policy.Config{})
	var all []decisions.Decision
	for i := range c.deployments {
		all = append(all, c.each(t, i, engine)...)
	}
	slices.SortStableFunc(all, func(a, b decisions.Decision) int { return a.Timestamp.Compare(b.Timestamp) })
	e, d := decisions.NewEncoder(decisions.NewState()), decisions.NewDecoder(decisions.NewState())
	late, lateBytes, raw := 0, 0, 0
	for part := range slices.Chunk(all, 100) {
		segment, err := e.Append(part)
		require.NoError(t, err)
		got, err := d.Decode(segment, decisions.Filter{})
		require.NoError(t, err)
		require.Equal(t, part, got)
		if late += len(part); late > len(all)/2 {
			lateBytes += len(segment)
		}
		for i := range part {
			raw += len(part[i].Input) + len(part[i].Result)
		}
	}
	each := float64(lateBytes) / float64(len(all)-len(all)/2)
	t.Logf("%d decisions, %d bytes of JSON each; %.1f bytes each in the second half", len(all), raw/len(all), each)
	require.Greater(t, len(all), 1000)
	require.Less(t, each, 16.0)
}
