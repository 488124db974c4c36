// Package policies has the commands below `rampart policy`: `check`, `schema`, `test`, `eval` and `backtest`. It is not
// called policy as the command is, since its files use package policy of this module.
package policies

import (
	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
)

// Commands returns the commands of this group.
func Commands(a *cmdutil.App) []*cobra.Command { return []*cobra.Command{policyCommand(a)} }

// policyCommand is the parent of the commands for people who write policies.
func policyCommand(a *cmdutil.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Work on policies",
		Long: `Policy has the commands for people who write policies. They need no network, and write nothing to
the repository.`,
		RunE: cmdutil.Parent,
	}
	cmd.AddCommand(policyCommands(a)...)
	return cmd
}

func policyCommands(a *cmdutil.App) []*cobra.Command {
	return []*cobra.Command{policyCheckCommand(a), policySchemaCommand(a), policyTestCommand(a), policyEvalCommand(a),
		policyBacktestCommand(a)}
}
