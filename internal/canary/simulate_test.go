package canary_test

import (
	"math"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/canary"
)

// stage of a simulated rollout: looks at it, and closed workflows of both versions between two looks.
type stage struct {
	share       float64 // of the candidate
	looks, step int
	rates       []float64 // one after the other, in equal parts of the stage
}

// judge says of the counts of a stage whether the candidate is turned back.
type judge func(s stage, c canary.Input) bool

// scene is a kind of healthy rollout.
type scene struct {
	name    string
	rates   []float64
	ceiling float64
	step    int
}

// scenes are of 100 000 rollouts together. Where there is a ceiling, the rate is exactly at it: the worst case of what
// is healthy.
var scenes = []scene{
	{name: "0.1%", rates: []float64{0.001}, ceiling: 0.001, step: 200},
	{name: "1%", rates: []float64{0.01}, ceiling: 0.01, step: 50},
	{name: "10%", rates: []float64{0.1}, ceiling: 0.1, step: 10},
	{name: "50%", rates: []float64{0.5}, ceiling: 0.5, step: 5},
	{name: "an outage of both", rates: []float64{0.01, 0.9, 0.01, 0.01}, step: 10},
	{name: "failures close first", rates: []float64{1, 0.3, 0.05, 0.01, 0.001}, step: 10},
}

const (
	rollouts = 100_000
	looks    = 80
)

// stages of a rollout: ramps of 1%, 10% and 50%, then the bake, where nothing new closes on the version before.
func (s scene) stages() []stage {
	var out []stage
	for _, share := range []float64{0.01, 0.1, 0.5, 1} {
		out = append(out, stage{share: share, looks: looks, step: s.step, rates: s.rates})
	}
	return out
}

// falseRollbacks simulates healthy rollouts and counts those that were turned back at any look.
func falseRollbacks(s scene, n int, j judge) int {
	r := rand.New(rand.NewPCG(7, uint64(len(s.name))))
	stages := s.stages()
	samplers := make([]*sampler, len(stages))
	for i, st := range stages {
		samplers[i] = newSampler(st)
	}
	back := 0
	for range n {
		for i, st := range stages {
			in := canary.Input{Share: st.share, Alpha: v1alpha1.DefaultAlpha, Stages: len(stages), Ceiling: s.ceiling}
			if samplers[i].turnedBack(r, in, j) {
				back++
				break
			}
		}
	}
	return back
}

// sampler draws the workflows between two looks from tables.
type sampler struct {
	stage
	failures []binomial // for each rate
	mine     []binomial // the candidate's of so many
}

func newSampler(s stage) *sampler {
	out := &sampler{stage: s}
	for _, rate := range s.rates {
		out.failures = append(out.failures, newBinomial(s.step, rate))
	}
	for n := range s.step + 1 {
		out.mine = append(out.mine, newBinomial(n, s.share))
	}
	return out
}

func (s *sampler) turnedBack(r *rand.Rand, in canary.Input, j judge) bool {
	for look := range s.looks {
		failed := s.failures[look*len(s.rates)/s.looks].draw(r)
		a, b := s.mine[failed].draw(r), s.mine[s.step-failed].draw(r)
		in.Candidate.Failed += int64(a)
		in.Candidate.Closed += int64(a + b)
		in.Current.Failed += int64(failed - a)
		in.Current.Closed += int64(s.step - a - b)
		if j(s.stage, in) {
			return true
		}
	}
	return false
}

// binomial is a table of cumulative probabilities.
type binomial []float64

func newBinomial(n int, p float64) binomial {
	var out binomial
	sum := 0.0
	for k := 0; k <= n && sum < 1-1e-13; k++ {
		sum += math.Exp(lgamma(n+1) - lgamma(k+1) - lgamma(n-k+1) + times(k, math.Log(p)) + times(n-k, math.Log1p(-p)))
		out = append(out, sum)
	}
	out[len(out)-1] = 2 // whatever rounding left of 1
	return out
}

func lgamma(n int) float64 {
	out, _ := math.Lgamma(float64(n))
	return out
}

// times is n*x, and 0 for none of an infinite x.
func times(n int, x float64) float64 {
	if n == 0 {
		return 0
	}
	return float64(n) * x
}

func (b binomial) draw(r *rand.Rand) int {
	u := r.Float64()
	if len(b) > 16 {
		return sort.SearchFloat64s(b, u)
	}
	for k, p := range b {
		if u < p {
			return k
		}
	}
	return len(b) - 1
}

// always is the test itself. Most looks are nowhere near a rollback, which a cheaper number shows: the evidence in
// natural logarithms is at most Pearson's X squared of the table, since log x <= x-1.
func always(t *testing.T) judge {
	return func(_ stage, in canary.Input) bool {
		limit := math.Log(float64(in.Stages) / in.Alpha)
		if pearson(in) < limit && overCeiling(in) < limit {
			return false
		}
		r := compare(t, in)
		return r.Worse || r.AboveCeiling
	}
}

// pearson is X squared of the table of a candidate that fails more often than current, else 0.
func pearson(in canary.Input) float64 {
	n1, n2 := float64(in.Candidate.Closed), float64(in.Current.Closed)
	f1, f2 := float64(in.Candidate.Failed), float64(in.Current.Failed)
	n, f := n1+n2, f1+f2
	d := f1*n - f*n1
	if d <= 0 {
		return 0
	}
	return d * d / (f * (n - f)) * n / (n1 * n2)
}

// overCeiling is X squared of a candidate that fails more often than the ceiling, else 0.
func overCeiling(in canary.Input) float64 {
	n := float64(in.Candidate.Closed)
	d := float64(in.Candidate.Failed) - n*in.Ceiling
	if in.Ceiling == 0 || d <= 0 {
		return 0
	}
	return d * d / (n * in.Ceiling * (1 - in.Ceiling))
}

// eachTime is what not to do: a test of fixed size, at the same limit, at every look.
func eachTime(_ stage, in canary.Input) bool {
	const z = 2.807 // exceeded by 0.25%: DefaultAlpha over four stages
	return pearson(in) > z*z || overCeiling(in) > z*z
}

// TestFalseRollbacks: of 100 000 healthy rollouts fewer than alpha are turned back.
func TestFalseRollbacks(t *testing.T) {
	total := 0
	for _, s := range scenes {
		n := rollouts / len(scenes)
		back := falseRollbacks(s, n, always(t))
		t.Logf("%s: %d of %d", s.name, back, n)
		require.Less(t, float64(back), v1alpha1.DefaultAlpha*float64(n), s.name)
		total += back
	}
	require.Positive(t, total, "rollouts that nothing can turn back show nothing")
}

// TestSimulationTells: the simulation finds out a test that does not allow for being looked at again and again.
func TestSimulationTells(t *testing.T) {
	for _, s := range scenes {
		n := rollouts / len(scenes) / 10
		back := falseRollbacks(s, n, eachTime)
		t.Logf("%s: %d of %d", s.name, back, n)
		require.Greater(t, float64(back), 2*v1alpha1.DefaultAlpha*float64(n), s.name)
	}
}
