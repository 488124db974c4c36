package canary_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rampart-gitops/rampart/internal/canary"
)

func compare(t require.TestingT, in canary.Input) canary.Result {
	r, err := canary.Compare(in)
	require.NoError(t, err)
	return r
}

// given is an input with the settings that most tests share.
func given(candidate, current canary.Arm) canary.Input {
	return canary.Input{Candidate: candidate, Current: current, Alpha: 0.01, Stages: 4, MinSamples: 50}
}

// rate of failures, 0 if nothing is closed.
func rate(a canary.Arm) float64 { return float64(a.Failed) / float64(max(a.Closed, 1)) }

func TestCompareTellsWorseFromEqual(t *testing.T) {
	for _, c := range []struct {
		name               string
		in                 canary.Input
		enough             bool
		worse, overCeiling bool
	}{
		{name: "nothing closed", in: given(canary.Arm{}, canary.Arm{})},
		{name: "no candidate", in: given(canary.Arm{}, canary.Arm{Failed: 5, Closed: 1000})},
		{name: "no current", in: given(canary.Arm{Failed: 60, Closed: 60}, canary.Arm{}), enough: true},
		{name: "equal rates", in: given(canary.Arm{Failed: 10, Closed: 1000}, canary.Arm{Failed: 90, Closed: 9000}), enough: true},
		{name: "better", in: given(canary.Arm{Closed: 1000}, canary.Arm{Failed: 900, Closed: 9000}), enough: true},
		{name: "slightly worse", in: given(canary.Arm{Failed: 13, Closed: 1000}, canary.Arm{Failed: 90, Closed: 9000}), enough: true},
		{name: "five times as bad", in: given(canary.Arm{Failed: 50, Closed: 1000}, canary.Arm{Failed: 90, Closed: 9000}), enough: true, worse: true},
		{name: "all failed, too few to pass", in: given(canary.Arm{Failed: 6, Closed: 6}, canary.Arm{Closed: 100}), worse: true},
		{name: "one failed", in: given(canary.Arm{Failed: 1, Closed: 10}, canary.Arm{Closed: 1000})},
		{name: "the only failure of a million", in: given(canary.Arm{Failed: 1, Closed: 1}, canary.Arm{Closed: 1_000_000}), worse: true},
		{name: "current fails as well", in: given(canary.Arm{Failed: 50, Closed: 100}, canary.Arm{Failed: 450, Closed: 900}), enough: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := compare(t, c.in)
			require.Equal(t, []bool{c.enough, c.worse, c.overCeiling}, []bool{r.Enough, r.Worse, r.AboveCeiling}, "%+v", r)
			require.InDelta(t, math.Log10(400), r.Bound, 1e-12)
		})
	}
}

func TestCeilingNeedsProofOfMore(t *testing.T) {
	in := given(canary.Arm{Failed: 40, Closed: 100}, canary.Arm{})
	in.Ceiling = 0.2
	r := compare(t, in)
	require.InDelta(t, math.Log10(800), r.Bound, 1e-12, "two tests")
	require.True(t, r.AboveCeiling)
	require.False(t, r.Worse)

	in.Candidate.Failed = 22
	r = compare(t, in)
	require.False(t, r.AboveCeiling, "22 of 100 is no proof of more than 20%%: %+v", r)
	require.Positive(t, compare(t, scaled(in, 100)).CeilingEvidence)

	in.Candidate.Failed, in.Ceiling = 100, 0
	r = compare(t, in)
	require.False(t, r.AboveCeiling)
	require.Zero(t, r.CeilingEvidence)
}

// 1.5 times as bad is found in the end, unless half as much again is tolerated.
func TestToleranceAllowsAHigherRate(t *testing.T) {
	in := given(canary.Arm{Failed: 3000, Closed: 100_000}, canary.Arm{Failed: 2000, Closed: 100_000})
	require.True(t, compare(t, in).Worse)
	in.Tolerance = 0.2
	require.True(t, compare(t, in).Worse)
	in.Tolerance = 0.55
	require.False(t, compare(t, in).Worse)
}

func TestShareOnlyHelpsPower(t *testing.T) {
	in := given(canary.Arm{Failed: 9, Closed: 200}, canary.Arm{Failed: 15, Closed: 1800})
	without := compare(t, in).Evidence
	in.Share = 0.1
	require.Greater(t, compare(t, in).Evidence, without+0.5)
	for _, wrong := range []float64{1e-9, 0.9, 1} {
		in.Share = wrong
		require.Greater(t, compare(t, in).Evidence, without-0.31, "a wrong share costs at most a factor of 2")
	}
}

func TestRefusedInput(t *testing.T) {
	for want, change := range map[string]func(*canary.Input){
		"candidate: 2 failed of 1 closed":      func(in *canary.Input) { in.Candidate = canary.Arm{Failed: 2, Closed: 1} },
		"current: -1 failed of 1 closed":       func(in *canary.Input) { in.Current = canary.Arm{Failed: -1, Closed: 1} },
		"alpha 0 is not above 0":               func(in *canary.Input) { in.Alpha = 0 },
		"alpha 1 is not above 0":               func(in *canary.Input) { in.Alpha = 1 },
		"alpha NaN is not above 0":             func(in *canary.Input) { in.Alpha = math.NaN() },
		"0 stages":                             func(in *canary.Input) { in.Stages = 0 },
		"minSamples -1":                        func(in *canary.Input) { in.MinSamples = -1 },
		"ceiling 1 is not between":             func(in *canary.Input) { in.Ceiling = 1 },
		"ceiling NaN is not between":           func(in *canary.Input) { in.Ceiling = math.NaN() },
		"share 1.1 is not between":             func(in *canary.Input) { in.Share = 1.1 },
		"tolerance -0.1 is not between 0":      func(in *canary.Input) { in.Tolerance = -0.1 },
		"tolerance +Inf is not between 0 and ": func(in *canary.Input) { in.Tolerance = math.Inf(1) },
	} {
		in := given(canary.Arm{}, canary.Arm{})
		change(&in)
		r, err := canary.Compare(in)
		require.ErrorContains(t, err, want)
		require.Zero(t, r)
	}
}

func scaled(in canary.Input, by int64) canary.Input {
	for _, a := range []*canary.Arm{&in.Candidate, &in.Current} {
		a.Failed, a.Closed = a.Failed*by, a.Closed*by
	}
	return in
}

// arms draws counts of every size up to 1e9, zero included.
func arms(t *rapid.T, name string) canary.Arm {
	most := rapid.SampledFrom([]int64{1, 10, 1000, 1e6, 1e9}).Draw(t, name+" size")
	closed := rapid.Int64Range(0, most).Draw(t, name+" closed")
	return canary.Arm{Failed: rapid.Int64Range(0, closed).Draw(t, name+" failed"), Closed: closed}
}

func inputs(t *rapid.T) canary.Input {
	return canary.Input{
		Candidate: arms(t, "candidate"), Current: arms(t, "current"),
		Alpha: rapid.Float64Range(1e-6, 0.5).Draw(t, "alpha"), Stages: rapid.IntRange(1, 21).Draw(t, "stages"),
		Share:     rapid.SampledFrom([]float64{0, 1e-4, 0.01, 0.1, 0.5, 0.99, 1}).Draw(t, "share"),
		Ceiling:   rapid.SampledFrom([]float64{0, 1e-6, 0.05, 0.5, 0.999999}).Draw(t, "ceiling"),
		Tolerance: rapid.SampledFrom([]float64{0, 0.1, 1, 100}).Draw(t, "tolerance"),
	}
}

// slack allows for rounding: what is compared is exact on paper.
const slack = 1e-6

func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := inputs(t)
		r := compare(t, in)
		for _, x := range []float64{r.Evidence, r.CeilingEvidence, r.Bound} {
			require.False(t, math.IsNaN(x) || math.IsInf(x, 0), "%+v", r)
		}
		require.Equal(t, r, compare(t, in), "the same counts, the same answer")
		require.Equal(t, r.Worse, r.Evidence >= r.Bound)

		// A candidate that is not worse by the counts has no evidence against it, nor has one without anybody to
		// compare with.
		a, b := in.Candidate, in.Current
		if a.Closed == 0 || b.Closed == 0 || rate(a) <= rate(b) {
			require.LessOrEqual(t, r.Evidence, slack)
		}
		if rate(a) <= in.Ceiling {
			require.LessOrEqual(t, r.CeilingEvidence, slack)
		}
		// Never are both worse than the other.
		other := in
		other.Candidate, other.Current = b, a
		other.Share = 0
		require.LessOrEqual(t, min(r.Evidence, compare(t, other).Evidence), slack)
		// More tolerance, a higher ceiling, a smaller alpha, more stages: never less patient.
		for name, change := range map[string]func(*canary.Input){
			"tolerance": func(in *canary.Input) { in.Tolerance = min(100, in.Tolerance+0.5) },
			"ceiling":   func(in *canary.Input) { in.Ceiling = min(0.9999999, in.Ceiling*1.5) },
			"alpha":     func(in *canary.Input) { in.Alpha /= 2 },
			"stages":    func(in *canary.Input) { in.Stages++ },
		} {
			patient := in
			change(&patient)
			p := compare(t, patient)
			require.False(t, p.Worse && !r.Worse || p.AboveCeiling && !r.AboveCeiling, name)
			require.LessOrEqual(t, p.Evidence-p.Bound, r.Evidence-r.Bound+slack, name)
		}
	})
}

// Once there is evidence, a failure of the candidate in place of a success is never in its favor. A failure of the
// current version is never against it.
func TestFailuresNeverFavorTheCandidate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := inputs(t)
		r := compare(t, in)
		if a := &in.Candidate; a.Failed < a.Closed {
			a.Failed++
			more := compare(t, in)
			if r.Evidence > 0 {
				require.Greater(t, more.Evidence, r.Evidence-slack)
			}
			require.GreaterOrEqual(t, more.CeilingEvidence, r.CeilingEvidence)
			a.Failed--
		}
		if b := &in.Current; b.Failed < b.Closed && r.Evidence > 0 {
			b.Failed++
			require.Less(t, compare(t, in).Evidence, r.Evidence+slack)
		}
	})
}
