package bot

import (
	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
)

// Commands are the commands of this group.
func Commands(a *cmdutil.App) []*cobra.Command {
	return []*cobra.Command{runCommand(a), doctorCommand(a)}
}
