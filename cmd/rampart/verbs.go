package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
)

// foreignVerbs are commands of tools like this one, with what does here what they do there.
var foreignVerbs = map[string]string{
	"abort": `to take traffic back from the new version: rampart rollback NAME
  to turn down the step that waits for approval: rampart reject NAME`,
	"pause": `to stop every raise until it is resumed: rampart hold NAME, then rampart resume NAME`,
	"promote": `to let the step that waits for approval go on: rampart approve NAME
  to go on after a hold: rampart resume NAME; to go without steps: strategy AllAtOnce in the spec`,
	"undo": `to bring the version before back: rampart rollback NAME
  to ask for it again by its spec: git revert the commit that changed the spec`,
}

// foreignCommands answer verbs of other tools with the command that is meant. They are not listed, and do nothing.
func foreignCommands() []*cobra.Command {
	var out []*cobra.Command
	for _, verb := range cmdutil.SortedKeys(foreignVerbs) {
		out = append(out, &cobra.Command{Use: verb, Long: "There is no such command:\n  " + foreignVerbs[verb],
			Hidden: true, DisableFlagParsing: true, ValidArgsFunction: cobra.NoFileCompletions,
			PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
			RunE: func(*cobra.Command, []string) error {
				return fmt.Errorf("there is no command %q\n  %s", verb, foreignVerbs[verb])
			}})
	}
	return out
}
