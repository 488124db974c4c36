// Package specs has the commands that work on specs without Temporal: `validate`, `render`, `preview` and `simulate`.
package specs

import (
	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
)

// Commands returns the commands of this group.
func Commands(a *cmdutil.App) []*cobra.Command {
	return []*cobra.Command{validateCommand(a), renderCommand(a), previewCommand(a), simulateCommand(a)}
}
