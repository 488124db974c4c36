// Package bot has the bot itself, `rampart run`, and `rampart doctor`, which checks that the bot could do its work. It
// wires the stages of internal/reconcile to Git, Temporal, forges, policies, webhooks, telemetry and the decision log.
package bot

import (
	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
)

// Commands returns the commands of this group.
func Commands(a *cmdutil.App) []*cobra.Command {
	return []*cobra.Command{runCommand(a), doctorCommand(a)}
}
