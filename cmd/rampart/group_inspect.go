package main

import "github.com/spf13/cobra"

// inspectCommands are the commands of this group.
func (a *app) inspectCommands() []*cobra.Command {
	return []*cobra.Command{a.observeCommand(), a.planCommand(), a.statusCommand(), a.waitCommand(), a.explainCommand(), a.historyCommand(), a.referencesCommand()}
}
