package cmdutil

import (
	"os"

	"github.com/rampart-gitops/rampart/gitops/source"
)

// BuildSpecsArg is the argument of the process that builds folders of specs, which does nothing else.
const BuildSpecsArg = "build-specs"

// builder builds folders of specs in a process of its own: this program, once more.
func builder() *source.Process {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return &source.Process{Path: self, Args: []string{os.Args[0], BuildSpecsArg}}
}
