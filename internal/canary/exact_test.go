package canary_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/canary"
)

// The test goes through everything that can happen to a healthy candidate in 30 closed workflows, looked at after each
// of them. It adds up the probabilities: no sampling, no luck. The evidence is at most 1 on average after each
// workflow, and reaches 1/alpha at any time with a probability of at most alpha. A rate that changes with time makes
// no difference.
func TestErrorsStayBelowAlphaInEachCase(t *testing.T) {
	const n, alpha = 30, 0.1
	for name, rate := range map[string]func(i int) float64{
		"1%":     func(int) float64 { return 0.01 },
		"10%":    func(int) float64 { return 0.1 },
		"50%":    func(int) float64 { return 0.5 },
		"outage": func(i int) float64 { return map[bool]float64{true: 0.9, false: 0.05}[i/5%2 == 1] },
	} {
		for _, share := range []float64{0.01, 0.1, 0.5} {
			for _, told := range []float64{0, share} {
				t.Run(fmt.Sprintf("%s on %v told %v", name, share, told), func(t *testing.T) {
					reached := 0.0
					now := map[[4]int64]float64{{}: 1}
					for i := range n {
						now = closeOne(now, rate(i), share)
						mean := reached / alpha // what was stopped counts as what it had reached
						for state, p := range now {
							r := compare(t, canary.Input{Alpha: alpha, Stages: 1, Share: told,
								Candidate: canary.Arm{Failed: state[0], Closed: state[0] + state[1]},
								Current:   canary.Arm{Failed: state[2], Closed: state[2] + state[3]}})
							mean += p * math.Pow(10, r.Evidence)
							if r.Worse {
								reached += p
								delete(now, state)
							}
						}
						require.LessOrEqual(t, mean, 1+1e-9, "after %d", i+1)
					}
					require.LessOrEqual(t, reached, alpha)
				})
			}
		}
	}
}

// closeOne closes one more workflow: states are candidate failed, candidate fine, current failed, current fine.
func closeOne(from map[[4]int64]float64, rate, share float64) map[[4]int64]float64 {
	to := make(map[[4]int64]float64, 2*len(from))
	for state, p := range from {
		for i, q := range []float64{share * rate, share * (1 - rate), (1 - share) * rate, (1 - share) * (1 - rate)} {
			next := state
			next[i]++
			to[next] += p * q
		}
	}
	return to
}
