// Package policies has the commands below `rampart policy`: `check`, `schema`, `test`, `eval` and `backtest`. It is not
// called policy as the command is, since its files use package policy of this module.
package policies

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
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
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		},
	}
	cmd.AddCommand(policyCommands(a)...)
	return cmd
}

// policyCommands are the commands below policy.
func policyCommands(a *cmdutil.App) []*cobra.Command {
	return []*cobra.Command{policyCheckCommand(a), policySchemaCommand(a), policyTestCommand(a), policyEvalCommand(a),
		policyBacktestCommand(a)}
}

// unknownCommand is the error for a subcommand that a parent does not have, with the nearest that it has.
func unknownCommand(parent *cobra.Command, name string) error {
	var known []string
	for _, c := range parent.Commands() {
		if c.IsAvailableCommand() {
			known = append(known, c.Name())
		}
	}
	err := fmt.Errorf("unknown command %q", parent.CommandPath()+" "+name)
	if near := v1alpha1.Closest(name, known); near != "" {
		return fmt.Errorf("%w (did you mean %s?)", err, near)
	}
	return fmt.Errorf("%w\n  run %q to see what there is", err, parent.CommandPath()+" --help")
}
