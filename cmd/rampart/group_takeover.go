package main

import "github.com/spf13/cobra"

// takeoverCommands are the commands of this group.
func (a *app) takeoverCommands() []*cobra.Command {
	return []*cobra.Command{a.importCommand(), a.exportCommand()}
}
