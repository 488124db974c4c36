package main

import "github.com/spf13/cobra"

// botCommands are the commands of this group.
func (a *app) botCommands() []*cobra.Command {
	return []*cobra.Command{a.runCommand(), a.doctorCommand()}
}
