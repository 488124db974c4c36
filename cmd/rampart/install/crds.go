package install

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/install/crds"
)

func crdsCommand(a *cmdutil.App) *cobra.Command {
	var (
		on               cmdutil.ClusterFlags
		install, replace bool
	)
	cmd := &cobra.Command{
		Use:   "crds",
		Short: "Print the custom resource definitions, or install them",
		Long: `Crds prints the custom resource definitions of the objects that reach a cluster: worker deployments
with their status, connections and templates. Install them before ArgoCD or Flux applies what the bot writes. With
--install it installs them in the cluster of the kubeconfig itself, and brings those of an earlier release up to
date. Where the cluster has those of a later release it changes nothing.

They have no status subresource, so that ArgoCD, Flux and kubectl apply the status with the objects. The in-cluster
worker controller has definitions of the same names, with that subresource: --install does not replace those, unless
--replace-controller says that this controller is to be replaced. Stop it before: without the subresource it cannot
write the status of its objects.`,
		Example: `  rampart crds | kubectl apply --server-side -f -
  rampart crds --install
  rampart crds --install --kubeconfig prod.yaml --context eu --replace-controller`,
		Args:              cmdutil.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if install {
				return installCRDs(cmd.Context(), a, on, replace)
			}
			if replace {
				return errors.New("--replace-controller needs --install")
			}
			_, err := a.Out.Write(crds.All())
			return err
		},
	}
	on.Add(cmd, "kubeconfig of the cluster (default: that of kubectl)")
	cmd.Flags().BoolVar(&install, "install", false, "install them in the cluster of the kubeconfig")
	cmd.Flags().BoolVar(&replace, "replace-controller", false,
		"replace the in-cluster worker controller's definitions too")
	return cmd
}

func installCRDs(ctx context.Context, a *cmdutil.App, on cmdutil.ClusterFlags, replace bool) error {
	c, err := on.Open()
	if err != nil {
		return err
	}
	var out error
	err = c.Install(ctx, replace, func(name, done string) {
		_, err := fmt.Fprintf(a.Out, "%s %s\n", name, done)
		out = errors.Join(out, err)
	})
	if err := errors.Join(err, out); err != nil {
		return err
	}
	running, err := c.Controllers(ctx)
	switch {
	case err != nil:
		a.Say("whether the in-cluster worker controller runs is not known: %v", err)
	case len(running) > 0:
		a.Say("the in-cluster worker controller runs (%s), and works on the same objects: scale it to 0",
			strings.Join(running, ", "))
	}
	return nil
}
