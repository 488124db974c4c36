package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// policyCommand is the parent of the commands for people who write policies.
func (a *app) policyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Work on policies",
		Long:  `Policy has the commands for people who write policies. They need no network, and write nothing to the repository.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		},
	}
	cmd.AddCommand(a.policyCommands()...)
	return cmd
}

// policyCommands are the commands below policy.
func (a *app) policyCommands() []*cobra.Command {
	return []*cobra.Command{a.policyCheckCommand(), a.policySchemaCommand(), a.policyTestCommand(), a.policyEvalCommand(), a.policyBacktestCommand()}
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
	if near := nearest(name, known); near != "" {
		return fmt.Errorf("%w (did you mean %s?)", err, near)
	}
	return fmt.Errorf("%w\n  run %q to see what there is", err, parent.CommandPath()+" --help")
}

// policyTopCommands are the commands of the group.
func (a *app) policyTopCommands() []*cobra.Command { return []*cobra.Command{a.policyCommand()} }
