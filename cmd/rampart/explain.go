package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/report"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

func (a *app) explainCommand() *cobra.Command {
	var (
		output     choice
		repository repositoryFlags
		snapshot   string
	)
	cmd := &cobra.Command{
		Use:   "explain NAME",
		Short: "Say why a rollout is where it is",
		Long: `Explain says why a worker deployment is where it is, from what the bot wrote to the folder -C or the branch of --repo: its
state, what policy decided and by which rules, the steps done and to come, gates, holds and bars and how to lift them, and
what each other version waits for.

With --snapshot, the JSON that rampart observe wrote, it decides again and shows the row and every verdict and finding.`,
		Example: `  rampart explain payments/checkout
  rampart observe | rampart explain checkout --snapshot -`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeName,
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := a.explain(cmd.Context(), args[0], snapshot, repository)
			if err != nil {
				return err
			}
			if output.value != formatText {
				return a.encode(output.value, e)
			}
			return e.WriteText(a.out, a.style(), a.now())
		},
	}
	a.addOutput(cmd, &output, formatText, formatJSON, formatYAML)
	repository.addReading(cmd)
	a.addPolicies(cmd)
	cmd.Flags().StringVar(&snapshot, "snapshot", "", "file that rampart observe wrote; decide again on it")
	cmd.MarkFlagsMutuallyExclusive("snapshot", "repo")
	return cmd
}

func (a *app) explain(ctx context.Context, name, snapshot string, repository repositoryFlags) (e report.Explanation, err error) {
	if snapshot != "" {
		return a.explainSnapshot(ctx, name, snapshot)
	}
	source, closeSource, err := a.source(repository)
	if err != nil {
		return e, err
	}
	defer func() { err = errors.Join(err, closeSource()) }()
	world, err := source.Read(ctx)
	if err != nil {
		return e, err
	}
	s, err := deployment(world, name)
	if err != nil {
		return e, a.because(world, err)
	}
	return report.NewExplanation(s), nil
}

func (a *app) explainSnapshot(ctx context.Context, name, snapshot string) (report.Explanation, error) {
	world, err := a.readSnapshot(snapshot)
	if err != nil {
		return report.Explanation{}, err
	}
	s, err := deployment(world, name)
	if err != nil {
		return report.Explanation{}, err
	}
	e := report.NewExplanation(s)
	judges, err := a.judges(ctx)
	if err != nil {
		return e, err
	}
	defer judges.close()
	for _, env := range world.Environments {
		if env.Environment.Name == s.Environment.Name {
			d := reported(reconcile.Render(reconcile.DecideFor(ctx, judges.engine(env), env.Deployments, s.Deployment)))
			decision := report.NewPlan([]report.Decided{d}, nil).Deployments[0]
			e.Decision = &decision
		}
	}
	return e, ctx.Err()
}

// because says what is wrong with the repository's files where that may be why something is not there.
func (a *app) because(world rollout.World, err error) error {
	for _, p := range worldProblems(world) {
		a.say("%s", problemLine(p))
	}
	return err
}
