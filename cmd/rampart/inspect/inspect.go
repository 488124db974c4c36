// Package inspect has the commands that look at a repository and at Temporal, and explain what they find. These are
// `plan`, `observe`, `status`, `wait`, `explain`, `history` and `references`. They write nothing: no writer is
// constructed.
package inspect

import (
	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
)

// Commands returns the commands of this group.
func Commands(a *cmdutil.App) []*cobra.Command {
	return []*cobra.Command{observeCommand(a), planCommand(a), statusCommand(a), waitCommand(a), explainCommand(a),
		historyCommand(a), referencesCommand(a)}
}
