package inspect

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/internal/report"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

func referencesCommand(a *cmdutil.App) *cobra.Command {
	var (
		output     cmdutil.Choice
		repository cmdutil.RepositoryFlags
	)
	cmd := &cobra.Command{
		Use:   "references NAME",
		Short: "List the ConfigMaps, Secrets and other objects that versions need",
		Long: `References lists what the pod templates of a worker deployment's versions name: ConfigMaps, Secrets,
ServiceAccounts and PersistentVolumeClaims, in variables, volumes and as image pull secrets. It reads the rendered
manifests in Git, and no cluster.

The state says what a version is needed for: traffic or open workflows. IN GIT names the YAML and JSON files of the
same commit that hold the object, by its kind, namespace and name; a file that names no namespace counts for each. An
object that a generator of Kustomize, a template of Helm or a controller makes is in no file.

` + cmdutil.CloneHelp,
		Example: `  rampart references payments/checkout
  rampart references checkout -o json --repo https://git.example.com/team/workers.git`,
		Args:              cmdutil.OneName,
		ValidArgsFunction: a.CompleteName,
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := references(cmd.Context(), a, args[0], repository)
			if err != nil {
				return err
			}
			return a.Print(output.Value, r, func() error { return r.WriteText(a.Out) })
		},
	}
	cmdutil.AddOutput(cmd, &output, cmdutil.FormatText, cmdutil.FormatJSON, cmdutil.FormatYAML)
	repository.AddPublished(cmd)
	return cmd
}

// references reads what the versions of a worker deployment name.
func references(ctx context.Context, a *cmdutil.App, name string,
	from cmdutil.RepositoryFlags) (r report.References, err error) {
	a.Locate = func(_ rollout.EnvironmentWorld, of rollout.Name, _ bool) bool {
		return of.String() == name || of.Name == name
	}
	source, closeSource, err := a.OpenPublished(from)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, closeSource()) }()
	world, s, err := a.ReadDeployment(ctx, source, name)
	if err != nil {
		return r, err
	}
	if s.References == nil && len(s.Record.Versions()) > 0 {
		err := fmt.Errorf("what the versions of %s name could not be looked for in the repository", s.Deployment)
		return r, a.SayWorldProblems(world, err)
	}
	if p := s.Record.RoutingProblem; p != nil {
		return r, errors.New(p.Message)
	}
	return report.NewReferences(s), nil
}
