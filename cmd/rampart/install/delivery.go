package install

import (
	"cmp"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/install/delivery"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

func argocdCommand(a *cmdutil.App) *cobra.Command {
	return deliveryCommand(a, &cobra.Command{
		Use:   "argocd",
		Short: "Print ArgoCD's Applications and its health check",
		Long: `Argocd prints an Application for each environment of the folder -C, and the part of ArgoCD's
ConfigMap with the health check of worker deployments. Apply it server-side with a field manager of its own, so that
the rest of the ConfigMap stays.`,
		Example: `  rampart argocd --repo https://git.example.com/platform/workers.git | kubectl apply --server-side --field-manager rampart -f -
  rampart argocd --repo https://git.example.com/platform/workers.git --env prod > argocd.yaml`,
	}, delivery.ArgoCD)
}

func fluxCommand(a *cmdutil.App) *cobra.Command {
	return deliveryCommand(a, &cobra.Command{
		Use:   "flux",
		Short: "Print Flux's GitRepositories and Kustomizations",
		Long: `Flux prints a GitRepository and a Kustomization for each environment of the folder -C, with a health
check for each worker deployment that has a spec. The health checks need kustomize-controller's feature gate
CancelHealthCheckOnNewRevision.`,
		Example: `  rampart flux --repo https://git.example.com/platform/workers.git | kubectl apply --server-side --field-manager rampart -f -
  rampart flux --repo https://git.example.com/platform/workers.git --env prod > flux.yaml`,
	}, delivery.Flux)
}

// deliveryCommand completes a command that prints how a tool applies what the bot writes.
func deliveryCommand(a *cmdutil.App, cmd *cobra.Command,
	manifest func(delivery.Delivery) ([]byte, error)) *cobra.Command {
	var repo, branch string
	cmd.Args, cmd.ValidArgsFunction = cmdutil.NoArgs, cobra.NoFileCompletions
	cmd.Flags().StringVar(&repo, "repo", "", "URL of the repository, as the tool in the cluster reaches it (required)")
	cmd.Flags().StringVar(&branch, "branch", "main", "branch of outputs for which rampart.yaml names none")
	cmd.RunE = func(*cobra.Command, []string) error {
		if repo == "" {
			return errors.New("--repo is required: the URL of the repository, such as " +
				"https://git.example.com/platform/workers.git")
		}
		s, err := a.LoadRepository()
		if err != nil {
			return err
		}
		if s.World, err = cmdutil.OnlyEnvironment(s.World, a.Env); err != nil {
			return err
		}
		if err := a.SayProblems(s.Problems(), "nothing printed: the files have errors"); err != nil {
			return err
		}
		text, err := manifest(deliveryOf(s.World, repo, branch))
		if err != nil {
			return err
		}
		_, err = a.Out.Write(text)
		return err
	}
	return cmd
}

// deliveryOf is what a tool applies of a world, whose specs are on a branch.
func deliveryOf(w rollout.World, repo, branch string) delivery.Delivery {
	out := delivery.Delivery{URL: repo}
	for _, env := range w.Environments {
		e := delivery.Environment{Name: "workers-" + env.Environment.Name,
			Branch: cmp.Or(env.Environment.Output.Branch, branch), Path: env.Environment.Output.Path}
		for _, d := range env.Deployments {
			if d.Spec != nil {
				e.Deployments = append(e.Deployments,
					delivery.Deployment{Kind: d.Spec.Kind, Namespace: d.Deployment.Namespace, Name: d.Deployment.Name})
				out.Kinds = append(out.Kinds, d.Spec.Kind)
			}
		}
		out.Environments = append(out.Environments, e)
	}
	slices.Sort(out.Kinds)
	if out.Kinds = slices.Compact(out.Kinds); out.Kinds == nil {
		out.Kinds = []string{v1alpha1.KindTemporalWorkerDeployment, v1alpha1.KindWorkerDeployment}
	}
	return out
}
