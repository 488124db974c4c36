// Package takeover has the commands that move worker deployments between a cluster and Git: `import` and `export`.
package takeover

import (
	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
)

// Commands returns the commands of this group.
func Commands(a *cmdutil.App) []*cobra.Command {
	return []*cobra.Command{importCommand(a), exportCommand(a)}
}
