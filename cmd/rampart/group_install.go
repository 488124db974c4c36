package main

import "github.com/spf13/cobra"

// installCommands are the commands of this group.
func (a *app) installCommands() []*cobra.Command {
	return []*cobra.Command{a.crdsCommand(), a.schemaCommand(), a.argocdCommand(), a.fluxCommand()}
}
