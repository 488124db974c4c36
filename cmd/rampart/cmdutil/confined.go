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

// ServeConfined does the work of such a process, where the program's arguments, from its name on, are of one; false:
// they are not.
func ServeConfined(args []string) (served bool, err error) {
	if len(args) != 2 {
		return false, nil
	}
	switch args[1] {
	case buildSpecsArg:
		return true, source.Serve()
	case evaluatePoliciesArg:
		return true, sandbox.Serve()
	}
	return false, nil
}

// builder builds folders of specs in a process of its own.
func builder() *source.Process { return &source.Process{Process: confined.Self(buildSpecsArg)} }

// PolicyProcess is a process that evaluates policies.
func PolicyProcess() *confined.Process { return confined.Self(evaluatePoliciesArg) }
