package canary

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The formula is the mixture written as what it predicts, one observation after the other.
func TestMixtureIsAProductOfPredictions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, m := rapid.IntRange(0, 2000).Draw(t, "k"), rapid.IntRange(0, 2000).Draw(t, "m")
		a, b := rapid.Float64Range(1e-3, 1000).Draw(t, "a"), rapid.Float64Range(1e-3, 1000).Draw(t, "b")
		want := 0.0
		for i := range k {
			want += math.Log((a + float64(i)) / (a + b + float64(i)))
		}
		for i := range m {
			want += math.Log((b + float64(i)) / (a + b + float64(k+i)))
		}
		n := float64(k + m)
		want -= logRatio(float64(k), n) + logRatio(float64(m), n)
		require.InDelta(t, want, mixed(float64(k), float64(m), a, b), 1e-9)
	})
}

// TestMixedIsExactForLargeCounts: with Beta(1, 1) and halves the likelihood is 1/((n+1) binomial(n, n/2)). De Moivre's
// formula with its first correction gives the binomial to more digits than are compared.
func TestMixedIsExactForLargeCounts(t *testing.T) {
	for _, n := range []float64{1e4, 1e6, 1e9, 1e12} {
		want := 0.5*math.Log(math.Pi*n/2) + 1/(4*n) - math.Log(n+1)
		require.InDelta(t, want, mixed(n/2, n/2, 1, 1), 1e-9, "%g", n)
	}
}

// logOf is n log p, 0 for none.
func logOf(n, p float64) float64 {
	if n == 0 {
		return 0
	}
	return n * math.Log(p)
}

// The solution is what a search finds, too.
func TestExcessIsWhatASearchFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := func(name string) float64 {
			most := rapid.SampledFrom([]int{3, 100, 1e6}).Draw(t, name+" size")
			return float64(rapid.IntRange(0, most).Draw(t, name))
		}
		x := table{f1: count("f1"), f2: count("f2"), s1: count("s1"), s2: count("s2")}
		limit := 1 + rapid.SampledFrom([]float64{0, 0.2, 5}).Draw(t, "tolerance")
		likelihood := func(logZ float64) float64 {
			y := 1 / (1 + math.Exp(-logZ))
			z := 1 / (1 + math.Exp(-logZ-math.Log(limit)))
			return logOf(x.f1, z) + logOf(x.f2, 1-z) + logOf(x.s1, y) + logOf(x.s2, 1-y)
		}
		low, high := -20.0, 20.0
		for range 200 {
			a, b := low+(high-low)/3, high-(high-low)/3
			if likelihood(a) < likelihood(b) {
				low = a
			} else {
				high = b
			}
		}
		f, s := x.f1+x.f2, x.s1+x.s2
		best := logRatio(x.f1, f) + logRatio(x.f2, f) + logRatio(x.s1, s) + logRatio(x.s2, s)
		want := 0.0
		if x.f1*x.s2 > limit*x.f2*x.s1 {
			want = best - likelihood(low)
		}
		require.InDelta(t, want, x.excess(limit), 1e-6+1e-9*math.Abs(best))
	})
}
