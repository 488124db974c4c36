package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/internal/auditlog"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/report"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

func (a *app) explainCommand() *cobra.Command {
	var (
		output     choice
		repository repositoryFlags
		flags      explainFlags
		all        bool
	)
	cmd := &cobra.Command{
		Use:   "explain NAME",
		Short: "Say why a rollout is where it is",
		Long: `Explain says why a worker deployment is where it is, from what the bot wrote to the folder -C or the branch of --repo: its
state, what policy decided and by which rules, the steps done and to come, gates, holds and bars and how to lift them, and
what each other version waits for.

` + inAClone + `

Where the bot records its decisions (rampart run --record-decisions), or with --decisions, it asks the policies of the environment
about the last recorded decision again, and shows rule by rule what they say of the action that is held most (or of --action):
what fired and what it saw, and of what did not fire the first line that was not true. With --snapshot, the JSON that rampart observe wrote, it does so on what is decided from that, and shows
the row and every verdict and finding. With --kubeconfig and --env it also says how the pods of each version are in the cluster now. It fits one screen; --all shows every rule.`,
		Example: `  rampart explain payments/checkout
  rampart explain payments/checkout --decisions decisions.jsonl --all
  rampart observe | rampart explain checkout --snapshot -`,
		Args:              oneName,
		ValidArgsFunction: a.completeName,
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := a.explain(cmd.Context(), args[0], flags, repository)
			if err != nil {
				return err
			}
			if output.value != formatText {
				return a.encode(output.value, e)
			}
			view := report.View{Style: a.style(), Fold: report.Folded, Now: a.now()}
			if all {
				view.Fold = report.Unfolded
			}
			return e.WriteText(a.out, view)
		},
	}
	a.addOutput(cmd, &output, formatText, formatJSON, formatYAML)
	repository.addReading(cmd)
	repository.addOffline(cmd)
	a.addPolicies(cmd)
	flags.decisions.add(cmd)
	flags.cluster.addPods(cmd)
	cmd.Flags().StringVar(&flags.snapshot, "snapshot", "", "file that rampart observe wrote; decide again on it")
	cmd.Flags().StringVar(&flags.action, "action", "", "explain this action, by its ID, in place of the one that is held most")
	cmd.Flags().BoolVar(&all, "all", false, "show every rule, with every value")
	cmd.MarkFlagsMutuallyExclusive("snapshot", "repo")
	cmd.MarkFlagsMutuallyExclusive("snapshot", "decisions")
	return cmd
}

// explainFlags say what is explained.
type explainFlags struct {
	snapshot, action string
	decisions        decisionFlags
	cluster          clusterFlags
}

func (a *app) explain(ctx context.Context, name string, flags explainFlags, repository repositoryFlags) (e report.Explanation, err error) {
	if flags.snapshot != "" {
		return a.explainSnapshot(ctx, name, flags)
	}
	repository.decisionRef = flags.decisions.ref
	source, closeSource, err := a.published(repository)
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
	if s, err = a.withPods(ctx, s, flags.cluster); err != nil {
		return e, err
	}
	e = report.NewExplanation(s)
	env := environmentOf(world, s)
	if env == nil {
		return e, nil
	}
	judges, err := a.judges(ctx)
	if err != nil {
		return e, err
	}
	defer judges.close()
	chosen := flags.decisions.file != "" || flags.decisions.ref != auditlog.DefaultRef
	ask := policyQuestion{engine: judges.engine(*env), action: flags.action, whatever: flags.decisions.file != "" || flags.action != ""}
	e.Policy, e.Superseded, err = explainDecision(ctx, a.decisions(flags.decisions, repository), e.Status, ask)
	switch {
	case err != nil && !chosen && flags.action == "" && ctx.Err() == nil: // Git alone says something too
		var noClone *gitops.NoCloneError
		var noRef *gitops.NoRefError
		if !errors.As(err, &noClone) && !errors.As(err, &noRef) {
			a.say("the last decision is not explained: %v", err)
		}
		err = nil
	case err == nil && e.Policy == nil && e.Superseded == nil && chosen:
		a.say("no decision about %s is recorded there", s.Deployment)
	}
	if err == nil && e.Policy == nil && flags.action != "" {
		err = errors.New("--action needs an input: give --decisions or --snapshot, or let the bot record its decisions")
	}
	return e, err
}

// withPods adds what the cluster says of a worker deployment's pods, where one is read.
func (a *app) withPods(ctx context.Context, s rollout.Snapshot, f clusterFlags) (rollout.Snapshot, error) {
	pods, err := a.pods(f)
	if err != nil {
		return s, err
	}
	defer pods.close()
	one := []rollout.Snapshot{s}
	pods.look(ctx, one)
	return one[0], nil
}

// environmentOf is the environment of a worker deployment.
func environmentOf(world rollout.World, s rollout.Snapshot) *rollout.EnvironmentWorld {
	for i := range world.Environments {
		if world.Environments[i].Environment.Name == s.Environment.Name {
			return &world.Environments[i]
		}
	}
	return nil
}

func (a *app) explainSnapshot(ctx context.Context, name string, flags explainFlags) (report.Explanation, error) {
	world, err := a.readSnapshot(flags.snapshot)
	if err != nil {
		return report.Explanation{}, err
	}
	s, err := deployment(world, name)
	if err != nil {
		return report.Explanation{}, err
	}
	e := report.NewExplanation(s)
	env := environmentOf(world, s)
	if env == nil {
		return e, ctx.Err()
	}
	judges, err := a.judges(ctx)
	if err != nil {
		return e, err
	}
	defer judges.close()
	engine := judges.engine(*env)
	decided := reconcile.DecideFor(ctx, engine, env.Deployments, s.Deployment)
	decision := report.NewPlan([]report.Decided{reported(reconcile.Render(decided))}, nil).Deployments[0]
	e.Decision = &decision
	e.Policy, err = explainObserved(ctx, decided, policyQuestion{engine: engine, action: flags.action})
	return e, errors.Join(err, ctx.Err())
}

// because says what is wrong with the repository's files where that may be why something is not there.
func (a *app) because(world rollout.World, err error) error {
	for _, p := range worldProblems(world) {
		a.say("%s", problemLine(p))
	}
	return err
}
