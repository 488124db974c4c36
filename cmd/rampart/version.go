package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
)

func versionCommand(a *cmdutil.App) *cobra.Command {
	var output cmdutil.Choice
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Example: `  rampart version
  rampart version -o json`,
		Args:              cmdutil.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			v := cmdutil.ReadVersion()
			return a.Print(output.Value, v, func() error {
				_, err := fmt.Fprintln(a.Out, v)
				return err
			})
		},
	}
	cmdutil.AddOutput(cmd, &output, cmdutil.FormatText, cmdutil.FormatJSON, cmdutil.FormatYAML)
	return cmd
}
