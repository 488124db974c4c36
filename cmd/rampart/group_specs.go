package main

import "github.com/spf13/cobra"

// specsCommands are the commands of this group.
func (a *app) specsCommands() []*cobra.Command {
	return []*cobra.Command{a.validateCommand(), a.renderCommand(), a.previewCommand(), a.simulateCommand()}
}
