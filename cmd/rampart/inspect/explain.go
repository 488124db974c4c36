package inspect

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/internal/auditlog"
	"github.com/rampart-gitops/rampart/internal/compose"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/report"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

func explainCommand(a *cmdutil.App) *cobra.Command {
	var (
		output     cmdutil.Choice
		repository cmdutil.RepositoryFlags
		flags      explainFlags
		all        bool
	)
	cmd := &cobra.Command{
		Use:   "explain NAME",
		Short: "Say why a rollout is where it is",
		Long: `Explain says why a worker deployment is where it is, from what the bot wrote to the folder -C or the
branch of --repo: its state, what policy decided and by which rules, the steps done and to come, gates, holds and
bars and how to lift them, and what each other version waits for.

` + cmdutil.CloneHelp + `

Where the bot records its decisions (rampart run --record-decisions), or with --decisions, it asks the policies of
the environment about the last recorded decision again, and shows rule by rule what they say of the action that is
held most (or of --action): what fired and what it saw, and of what did not fire the first line that was not true.
With --snapshot, the JSON that rampart observe wrote, it does so on what is decided from that, and shows the row and
every verdict and finding. With --kubeconfig and --env it also says how the pods of each version are in the cluster
now. It fits one screen; --all shows every rule.`,
		Example: `  rampart explain payments/checkout
  rampart explain payments/checkout --decisions decisions.jsonl --all
  rampart observe | rampart explain checkout --snapshot -`,
		Args:              cmdutil.OneName,
		ValidArgsFunction: a.CompleteName,
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := explain(cmd.Context(), a, args[0], flags, repository)
			if err != nil {
				return err
			}
			return a.Print(output.Value, e, func() error {
				return e.WriteText(a.Out, report.View{Style: a.Style(), All: all, Now: a.Now()})
			})
		},
	}
	cmdutil.AddOutput(cmd, &output, cmdutil.FormatText, cmdutil.FormatJSON, cmdutil.FormatYAML)
	repository.AddPublished(cmd)
	cmdutil.AddPolicies(a, cmd)
	flags.decisions.Add(cmd)
	flags.cluster.AddPods(cmd)
	cmd.Flags().StringVar(&flags.snapshot, "snapshot", "", "file that rampart observe wrote; decide again on it")
	cmd.Flags().StringVar(&flags.action, "action", "",
		"explain this action, by its ID, in place of the one that is held most")
	cmd.Flags().BoolVar(&all, "all", false, "show every rule, with every value")
	cmd.MarkFlagsMutuallyExclusive("snapshot", "repo")
	cmd.MarkFlagsMutuallyExclusive("snapshot", "decisions")
	return cmd
}

type explainFlags struct {
	snapshot, action string
	decisions        cmdutil.DecisionFlags
	cluster          cmdutil.ClusterFlags
}

func explain(ctx context.Context, a *cmdutil.App, name string, flags explainFlags,
	repository cmdutil.RepositoryFlags) (e report.Explanation, err error) {
	if flags.snapshot != "" {
		return explainSnapshot(ctx, a, name, flags)
	}
	repository.DecisionRef = flags.decisions.Ref
	source, closeSource, err := a.OpenPublished(repository)
	if err != nil {
		return e, err
	}
	defer func() { err = errors.Join(err, closeSource()) }()
	world, s, err := a.ReadDeployment(ctx, source, name)
	if err != nil {
		return e, err
	}
	if s, err = withPods(ctx, a, s, flags.cluster); err != nil {
		return e, err
	}
	e = report.NewExplanation(s)
	env := environmentOf(world, s)
	if env == nil {
		return e, nil
	}
	judges, err := a.Judges(ctx)
	if err != nil {
		return e, err
	}
	defer judges.Close()
	chosen := flags.decisions.File != "" || flags.decisions.Ref != auditlog.DefaultRef
	ask := policyQuestion{engine: judges.Engine(*env), action: flags.action,
		whatever: flags.decisions.File != "" || flags.action != ""}
	e.Policy, e.Superseded, err = explainDecision(ctx, a.Decisions(flags.decisions, repository), e.Status, ask)
	switch {
	case err != nil && !chosen && flags.action == "" && ctx.Err() == nil: // Git alone says something too
		var noClone *gitops.NoCloneError
		var noRef *gitops.NoRefError
		if !errors.As(err, &noClone) && !errors.As(err, &noRef) {
			a.Say("the last decision is not explained: %v", err)
		}
		err = nil
	case err == nil && e.Policy == nil && e.Superseded == nil && chosen:
		a.Say("no decision about %s is recorded there", s.Deployment)
	}
	if err == nil && e.Policy == nil && flags.action != "" {
		err = errors.New("--action needs an input: give --decisions or --snapshot, or let the bot record its decisions")
	}
	return e, err
}

// withPods adds what the cluster says of a worker deployment's pods, where one is read.
func withPods(ctx context.Context, a *cmdutil.App, s rollout.Snapshot,
	f cmdutil.ClusterFlags) (rollout.Snapshot, error) {
	pods, err := a.OpenPods(f)
	if err != nil {
		return s, err
	}
	defer pods.Close()
	one := []rollout.Snapshot{s}
	pods.FillPods(ctx, one)
	return one[0], nil
}

func environmentOf(world rollout.World, s rollout.Snapshot) *rollout.EnvironmentWorld {
	for i := range world.Environments {
		if world.Environments[i].Environment.Name == s.Environment.Name {
			return &world.Environments[i]
		}
	}
	return nil
}

func explainSnapshot(ctx context.Context, a *cmdutil.App, name string, flags explainFlags) (report.Explanation, error) {
	world, err := readSnapshot(a, flags.snapshot)
	if err != nil {
		return report.Explanation{}, err
	}
	s, err := cmdutil.Deployment(world, name)
	if err != nil {
		return report.Explanation{}, err
	}
	e := report.NewExplanation(s)
	env := environmentOf(world, s)
	if env == nil {
		return e, ctx.Err()
	}
	judges, err := a.Judges(ctx)
	if err != nil {
		return e, err
	}
	defer judges.Close()
	engine := judges.Engine(*env)
	decided := reconcile.DecideFor(ctx, engine, env.Deployments, s.Deployment)
	e.Decision = &report.NewPlan([]report.Decided{reported(compose.Render(decided))}, nil).Deployments[0]
	e.Policy, err = explainObserved(ctx, decided, policyQuestion{engine: engine, action: flags.action})
	return e, errors.Join(err, ctx.Err())
}
