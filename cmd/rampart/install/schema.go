package install

import (
	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/install/schemas"
)

func schemaCommand(a *cmdutil.App) *cobra.Command {
	return &cobra.Command{
		Use:   "schema [KIND]",
		Short: "Print the JSON Schema of a kind of object, for editors",
		Long: `Schema prints the JSON Schema (draft-07) of one kind of object, or without KIND one schema for all
kinds: an object's kind says which part of it counts. Editors complete fields with it and mark what is misspelled. It
knows a pod template as Kubernetes has it.

It says less than rampart validate: rules that compare fields are not in it.`,
		Example: `  rampart schema > .rampart.schema.json
  rampart schema TemporalWorkerDeployment > twd.schema.json`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion,
			cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return schemas.Kinds(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			schema, ok := schemas.All(), true
			if len(args) > 0 {
				schema, ok = schemas.For(args[0])
			}
			if !ok {
				return cmdutil.NotFound("kind", args[0], schemas.Kinds())
			}
			_, err := a.Out.Write(schema)
			return err
		},
	}
}
