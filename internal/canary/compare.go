package canary

import (
	"fmt"
	"math"
)

// Arm counts the closed workflows of one version since the stage began, and how many of them failed.
type Arm struct {
	Closed, Failed int64
}

// Input of Compare. A stage of a rollout is what lies between two ramp changes, and the bake after the promotion;
// counts begin anew with each.
type Input struct {
	Candidate, Current Arm
	// Share of new workflows that the routing gives the candidate, 0 to 1; 0: not known. A share that is far from what
	// the counts show costs time, never validity.
	Share float64
	// Alpha is the chance of a false rollback over all stages together, above 0 and below 1.
	Alpha float64
	// Stages of the rollout among which Alpha is divided, at least 1: its steps and the bake.
	Stages int
	// MinSamples is how many closed workflows the candidate needs for Result.Enough.
	MinSamples int64
	// Ceiling is the failure rate that the candidate may not exceed whatever current does, below 1; 0: none.
	Ceiling float64
	// Tolerance is how much larger the candidate's odds of failing may be: 0.1 is a tenth. 0: not at all. (For rates of
	// a few per cent, odds and rates are nearly the same.) At most 100.
	Tolerance float64
}

// Result of Compare.
type Result struct {
	// Enough closed workflows of the candidate for the lack of evidence to mean something. Worse and AboveCeiling do
	// not wait for it.
	Enough bool
	// Evidence that the candidate is worse, as the logarithm to the base 10 of e: 2 is a hundred to one. Always finite.
	Evidence float64
	// CeilingEvidence is the same for a rate above the ceiling; 0 without a ceiling.
	CeilingEvidence float64
	// Bound that Evidence or CeilingEvidence has to reach.
	Bound               float64
	Worse, AboveCeiling bool
}

// Compare looks at the counts of one stage. Over all stages of a rollout, looked at however often, the chance that
// Worse or AboveCeiling is ever true of a candidate that is neither is at most in.Alpha: each stage has the same part
// of it, and with a ceiling the two tests halve that part. It refuses input that makes no sense, which is never an
// answer.
func Compare(in Input) (Result, error) {
	if err := check(in); err != nil {
		return Result{}, err
	}
	r := Result{
		Enough:   in.Candidate.Closed >= in.MinSamples,
		Bound:    bound(in),
		Evidence: tableOf(in).evidence(in.Share, 1+in.Tolerance) / math.Ln10,
	}
	r.Worse = r.Evidence >= r.Bound
	if in.Ceiling > 0 {
		r.CeilingEvidence = aboveRate(in.Candidate, in.Ceiling) / math.Ln10
		r.AboveCeiling = r.CeilingEvidence >= r.Bound
	}
	return r, nil
}

// bound is the logarithm to the base 10 of what e has to reach in one test of one stage.
func bound(in Input) float64 {
	tests := 1
	if in.Ceiling > 0 {
		tests = 2
	}
	return math.Log10(float64(in.Stages*tests) / in.Alpha)
}

const maxTolerance = 100

func check(in Input) error {
	for _, arm := range []struct {
		name string
		Arm
	}{{"candidate", in.Candidate}, {"current", in.Current}} {
		if arm.Failed < 0 || arm.Closed < arm.Failed {
			return fmt.Errorf("%s: %d failed of %d closed workflows", arm.name, arm.Failed, arm.Closed)
		}
	}
	switch {
	case !(in.Share >= 0 && in.Share <= 1):
		return fmt.Errorf("share %v is not between 0 and 1", in.Share)
	case !(in.Alpha > 0 && in.Alpha < 1):
		return fmt.Errorf("alpha %v is not above 0 and below 1", in.Alpha)
	case in.Stages < 1:
		return fmt.Errorf("%d stages, expected at least 1", in.Stages)
	case in.MinSamples < 0:
		return fmt.Errorf("minSamples %d is negative", in.MinSamples)
	case !(in.Ceiling >= 0 && in.Ceiling < 1):
		return fmt.Errorf("ceiling %v is not between 0 and 1", in.Ceiling)
	case !(in.Tolerance >= 0 && in.Tolerance <= maxTolerance):
		return fmt.Errorf("tolerance %v is not between 0 and %v", in.Tolerance, maxTolerance)
	}
	return nil
}
