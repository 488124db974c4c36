package main

import (
	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/install/crds"
)

func (a *app) crdsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "crds",
		Short: "Print the custom resource definitions",
		Long: `Crds prints the custom resource definitions of the objects that reach a cluster: worker deployments with their status, connections and
templates. Install them before ArgoCD or Flux applies what the bot writes.

They have no status subresource, so that ArgoCD, Flux and kubectl apply the status with the objects. The in-cluster worker controller has definitions of
the same names, with that subresource: do not replace them while that controller runs.`,
		Example:           `  rampart crds | kubectl apply --server-side -f -`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			_, err := a.out.Write(crds.All())
			return err
		},
	}
}
