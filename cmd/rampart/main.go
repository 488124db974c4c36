// Command rampart rolls out Temporal workers through Git. `rampart run` is the bot, the other commands check specs,
// show what the bot would do, and read what it wrote.
//
// This package puts the tree of commands together, and is the process that builds folders of specs, or evaluates
// policies. Each group of commands is a package below it, and cmdutil has what groups share: global flags, variables,
// files of configuration, exit codes. Flags are fields of the command they belong to. Data goes to standard output,
// everything else to standard error.
package main

import (
	"os"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
)

func main() {
	if serve := cmdutil.Confined(); serve != nil {
		if serve() != nil {
			os.Exit(cmdutil.ExitFailure)
		}
		return
	}
	os.Exit(run(os.Args[1:]))
}
