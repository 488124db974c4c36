package canary

import "math"

// table is failures and successes of the candidate (1) and of current (2).
type table struct{ f1, f2, s1, s2 float64 }

func tableOf(in Input) table {
	a, b := in.Candidate, in.Current
	return table{f1: float64(a.Failed), f2: float64(b.Failed), s1: float64(a.Closed - a.Failed),
		s2: float64(b.Closed - b.Failed)}
}

// shareWeight is how many successes the share of the routing counts as in one half of the mixture. Any number is valid;
// by simulation, more gains little where the share is right and loses where it is not.
const shareWeight = 1000

// evidence is the natural logarithm of e for an odds ratio above limit. It is the mixture's likelihood relative to the
// best one of all, less what the best one within the null hypothesis falls short of it. Relative to the best one all
// parts are small, so that counts of 1e9 lose no digits that matter.
func (t table) evidence(share, limit float64) float64 {
	failures := mixed(t.f1, t.f2, 0.5, 0.5)
	successes := mixed(t.s1, t.s2, 0.5, 0.5)
	if share > 0 && share < 1 {
		around := mixed(t.s1, t.s2, shareWeight*share, shareWeight*(1-share))
		successes = logSum(successes, around) - math.Ln2
	}
	return t.excess(limit) + failures + successes
}

// excess is the logarithm of the largest likelihood of the table over the largest one with an odds ratio of at most
// limit. It is 0 if the table's own is not above it. The likelihood has one hill, so the largest allowed one is at the
// limit. There, with z the odds of a success being the candidate's and limit*z those of a failure, the derivative by
// log z is 0:
//
//	n1 = f * limit*z/(1+limit*z) + s * z/(1+z)
func (t table) excess(limit float64) float64 {
	if t.f1*t.s2 <= limit*t.f2*t.s1 {
		return 0
	}
	f, s, n1, n2 := t.f1+t.f2, t.s1+t.s2, t.f1+t.s1, t.f2+t.s2
	// limit*n2 z^2 - b z - n1 = 0, solved without a difference of nearly equal numbers.
	b := (1+limit)*n1 - limit*f - s
	root := math.Sqrt(b*b + 4*limit*n1*n2)
	var z float64
	if b >= 0 {
		z = (b + root) / (2 * limit * n2)
	} else {
		z = 2 * n1 / (root - b)
	}
	return logRatio(t.f1, f*limit*z/(1+limit*z)) + logRatio(t.f2, f/(1+limit*z)) +
		logRatio(t.s1, s*z/(1+z)) + logRatio(t.s2, s/(1+z))
}

// logRatio is seen * log(seen/expected), 0 if nothing was seen.
func logRatio(seen, expected float64) float64 {
	if seen == 0 {
		return 0
	}
	return seen * math.Log(seen/expected)
}

// mixed is the logarithm of a ratio of two likelihoods of one sequence with k of one kind and m of another. They are
// its likelihood under a Beta(a, b) mixture, over the largest likelihood of that sequence: the logarithm is about
// minus half that of k+m.
func mixed(k, m, a, b float64) float64 {
	return gammaOver(k, a) + gammaOver(m, b) - gammaOver(k+m, a+b) - logBeta(a, b)
}

func logBeta(a, b float64) float64 { return gammaOver(0, a) + gammaOver(0, b) - gammaOver(0, a+b) }

// gammaOver is log Gamma(k+a) - k log k + k. For large arguments the terms of the size of k log k cancel on paper and
// not in floating point, so Stirling's series is written without them (Abramowitz and Stegun 6.1.41; its error at 10 is
// under 1e-10).
func gammaOver(k, a float64) float64 {
	x := k + a
	if x < 10 {
		l, _ := math.Lgamma(x)
		if k == 0 {
			return l
		}
		return l - k*math.Log(k) + k
	}
	head := 0.0
	if k > 0 {
		head = k * math.Log1p(a/k)
	}
	return head + (a-0.5)*math.Log(x) - a + halfLog2Pi + (1-(1-2/(7*x*x))/(30*x*x))/(12*x)
}

const halfLog2Pi = 0.918938533204672741780329736405617639861

// logSum is log(exp(a) + exp(b)).
func logSum(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	return a + math.Log1p(math.Exp(b-a))
}

// timesCeiling are the odds, as multiples of the ceiling's, that the evidence against the ceiling is mixed from, in
// equal parts. All are above 1, so that a rate that changes with time stays covered.
var timesCeiling = [...]float64{1.1, 1.25, 1.5, 2, 3, 5, 10, 30, 100}

// aboveRate is the natural logarithm of the evidence for an arm's failure rate above a ceiling.
func aboveRate(arm Arm, ceiling float64) float64 {
	f, n := float64(arm.Failed), float64(arm.Closed)
	sum := math.Inf(-1)
	for _, times := range timesCeiling {
		sum = logSum(sum, f*math.Log(times)-n*math.Log1p((times-1)*ceiling))
	}
	return sum - math.Log(float64(len(timesCeiling)))
}
