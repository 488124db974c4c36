package sandbox

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/rampart-gitops/rampart/internal/confined"
	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/policy/lint"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// Limits of what people wait for.
const (
	checkTime = time.Minute
	testTime  = 10 * time.Minute
)

// Check looks for mistakes in policies, as lint.Check does, in a process that is ended then. When ctx ends, it says so
// as a problem.
func Check(ctx context.Context, cfg policy.Config, process *confined.Process) []parse.Problem {
	if len(cfg.Foreign()) == 0 {
		return lint.Check(cfg)
	}
	defer process.Close()
	var out []parse.Problem
	if err := process.Call(ctx, checkTime, "Check", cfg, &out); err != nil {
		f := failure(cfg, err, "checking", checkTime)
		return []parse.Problem{{Path: f.Location, Message: f.Message}}
	}
	return out
}

// RunTests runs the tests of policies, as policy.RunTests does, in a process that is ended then. Errors: that of ctx.
func RunTests(ctx context.Context, cfg policy.Config, names *regexp.Regexp,
	process *confined.Process) (policy.TestReport, error) {
	defer process.Close()
	t := Tests{Config: cfg}
	if names != nil {
		t.Names = names.String()
	}
	var out policy.TestReport
	err := process.Call(ctx, testTime, "RunTests", t, &out)
	var ended *confined.EndedError
	if errors.As(err, &ended) {
		f := failure(cfg, err, "testing", testTime)
		return policy.TestReport{Problems: []parse.Problem{{Path: f.Location, Message: f.Message}}}, nil
	}
	if err != nil {
		return out, fmt.Errorf("test the policies: %w", err)
	}
	return out, nil
}
