package cmdutil

import (
	"github.com/rampart-gitops/rampart/gitops/source"
	"github.com/rampart-gitops/rampart/internal/confined"
	"github.com/rampart-gitops/rampart/policy/sandbox"
)

// Arguments of processes of this program that work on what others wrote, and do nothing else.
const (
	buildSpecsArg       = "build-specs"
	evaluatePoliciesArg = "evaluate-policies"
)

// Confined is the work of such a process; nil: this program was started as another one.
func Confined() func() error {
	if serve := confined.Serving(buildSpecsArg, source.Serve); serve != nil {
		return serve
	}
	return confined.Serving(evaluatePoliciesArg, sandbox.Serve)
}

// builder builds folders of specs in a process of its own.
func builder() *source.Process { return &source.Process{Process: confined.Self(buildSpecsArg)} }

// PolicyProcess is a process that evaluates policies.
func PolicyProcess() *confined.Process { return confined.Self(evaluatePoliciesArg) }
