package decisions_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/decisions"
	"github.com/rampart-gitops/rampart/policy"
)

func TestGen(t *testing.T) {
	e := policy.Compile(policy.Config{})
	c := company{deployments: 60, days: 10, start: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}
	var all []decisions.Decision
	start := time.Now()
	for i := range c.deployments {
		all = append(all, c.each(t, i, e)...)
	}
	slices.SortStableFunc(all, func(a, b decisions.Decision) int { return a.Timestamp.Compare(b.Timestamp) })
	fmt.Println(len(all), time.Since(start), "per deployment and year", len(all)*365/c.days/c.deployments)
	enc := decisions.NewEncoder(decisions.NewState())
	start = time.Now()
	var segs [][]byte
	total, n, lastTotal, lastN := 0, 0, 0, 0
	for i := 0; i < len(all); {
		j := min(len(all), i+170)
		seg, err := enc.Append(all[i:j])
		require.NoError(t, err)
		segs = append(segs, seg)
		total += len(seg)
		n += j - i
		i = j
		if len(segs)%10 == 0 {
			fmt.Println(n, total, total/n, "last:", float64(total-lastTotal)/float64(n-lastN))
			lastTotal, lastN = total, n
		}
	}
	fmt.Println("encode", time.Since(start), time.Since(start)/time.Duration(n))
	start = time.Now()
	dec := decisions.NewDecoder(decisions.NewState())
	k := 0
	for _, seg := range segs {
		got, err := dec.Decode(seg, decisions.Filter{})
		require.NoError(t, err)
		for _, d := range got {
			if d.ID != all[k].ID {
				require.Equal(t, string(all[k].Input), string(d.Input))
				require.Equal(t, string(all[k].Result), string(d.Result))
				require.Equal(t, all[k], d)
			}
			k++
		}
	}
	fmt.Println("decode", time.Since(start), time.Since(start)/time.Duration(n))
}
