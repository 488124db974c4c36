// Command rampart rolls out Temporal workers through Git: `rampart run` is the bot, the other commands check specs,
// show what the bot would do, and read what it wrote.
//
// Everything about the outside is here: flags, variables, files of configuration, signals, exit codes. Flags are fields
// of the command they belong to. Wiring (wiring.go) is the only place that knows all packages. Data goes to standard
// output, everything else to standard error.
package main

import (
	"os"

	"github.com/rampart-gitops/rampart/gitops/source"
)

// buildSpecs is the argument of the process that builds folders of specs, which does nothing else.
const buildSpecs = "build-specs"

func main() {
	if len(os.Args) == 2 && os.Args[1] == buildSpecs {
		if source.Serve(os.Stdin, os.Stdout) != nil {
			os.Exit(exitError)
		}
		return
	}
	os.Exit(run(os.Args[1:]))
}

// builder builds folders of specs in a process of its own: this program, once more.
func builder() *source.Process {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return &source.Process{Path: self, Args: []string{os.Args[0], buildSpecs}}
}
