package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/internal/report"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

func (a *app) referencesCommand() *cobra.Command {
	var (
		output     choice
		repository repositoryFlags
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

` + inAClone,
		Example: `  rampart references payments/checkout
  rampart references checkout -o json --repo https://git.example.com/team/workers.git`,
		Args:              oneName,
		ValidArgsFunction: a.completeName,
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := a.references(cmd.Context(), args[0], repository)
			if err != nil {
				return err
			}
			if output.value != formatText {
				return a.encode(output.value, r)
			}
			return r.WriteText(a.out)
		},
	}
	a.addOutput(cmd, &output, formatText, formatJSON, formatYAML)
	repository.addReading(cmd)
	repository.addOffline(cmd)
	return cmd
}

// references reads what the versions of a worker deployment name.
func (a *app) references(ctx context.Context, name string, from repositoryFlags) (r report.References, err error) {
	a.locate = func(_ rollout.EnvironmentWorld, of rollout.Name, _ bool) bool {
		return of.String() == name || of.Name == name
	}
	source, closeSource, err := a.published(from)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, closeSource()) }()
	world, err := source.Read(ctx)
	if err != nil {
		return r, err
	}
	s, err := deployment(world, name)
	if err != nil {
		return r, a.because(world, err)
	}
	if s.References == nil && s.Record.Routing != nil && len(s.Record.Routing.Spec.Versions) > 0 {
		err := fmt.Errorf("what the versions of %s name could not be looked for in the repository", s.Deployment)
		return r, a.because(world, err)
	}
	if p := s.Record.RoutingProblem; p != nil {
		return r, errors.New(p.Message)
	}
	return report.NewReferences(s), nil
}
