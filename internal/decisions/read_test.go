package decisions_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/decisions"
	"github.com/rampart-gitops/rampart/policy"
)

// lively are segments as they come in life.
var lively = sync.OnceValues(func() ([]decisions.Decision, error) {
	c := company{deployments: 10, days: 12, start: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}
	engine := policy.Compile(policy.Config{})
	var all []decisions.Decision
	for i := range c.deployments {
		all = append(all, c.each(fatal{}, i, engine)...)
	}
	slices.SortStableFunc(all, func(a, b decisions.Decision) int { return a.Timestamp.Compare(b.Timestamp) })
	return all, nil
})

// fatal ends the process where no test is there to fail.
type fatal struct{}

func (fatal) Errorf(format string, args ...any) { panic(format) }
func (fatal) FailNow()                          { panic("failed") }

// BenchmarkCode writes and reads an epoch: ns/decision.
func BenchmarkCode(b *testing.B) {
	all, err := lively()
	require.NoError(b, err)
	var segments [][]byte
	write := func(b *testing.B) {
		segments = nil
		e := decisions.NewEncoder(decisions.NewState())
		for part := range slices.Chunk(all, 100) {
			s, err := e.Append(part)
			require.NoError(b, err)
			segments = append(segments, s)
		}
	}
	run := func(name string, do func(b *testing.B)) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				do(b)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(all)), "us/decision")
		})
	}
	run("write", write)
	write(b)
	one, err := all[0].Deployment()
	require.NoError(b, err)
	for name, f := range map[string]decisions.Filter{"all": {}, "one": {Deployment: one.String()}} {
		run("read/"+name, func(b *testing.B) {
			d := decisions.NewDecoder(decisions.NewState())
			for _, s := range segments {
				_, err := d.Decode(s, f)
				require.NoError(b, err)
			}
		})
	}
}
