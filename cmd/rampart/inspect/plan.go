package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/internal/compose"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/report"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

func planCommand(a *cmdutil.App) *cobra.Command {
	var (
		output     cmdutil.Choice
		repository cmdutil.RepositoryFlags
		server     cmdutil.TemporalFlags
		k8s        cmdutil.ClusterFlags
		snapshot   string
	)
	cmd := &cobra.Command{
		Use:   "plan [NAME...]",
		Short: "Show what the bot's next cycle would do",
		Long: `Plan shows, for each worker deployment or those that are named, what the next cycle would do: the row
of the rules that decides, each action with what policy says of it, how the routing would move, and how the files
would change. It changes nothing: no writer is made.

It reads the folder -C as it is on disk (so a change can be tried before it is committed), or the branch of --repo
as rampart run does, and Temporal. With --snapshot it decides offline on what rampart observe printed; "-" is
standard input. A NAME is namespace/name, or the name alone. The others are decided too, since rollouts start one
after the other; they are not shown.

Exit code 2 if anything would change, 0 if nothing would, 1 if something could not be read.`,
		Example: `  rampart plan
  rampart plan payments/checkout
  rampart plan --repo https://git.example.com/team/workers.git --branch main -o json
  rampart observe > snapshot.json; rampart plan --snapshot snapshot.json`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.CompleteNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			var world rollout.World
			var decided [][]*rollout.Decision
			var err error
			if snapshot != "" {
				world, decided, err = decideSnapshot(cmd.Context(), a, snapshot)
			} else {
				world, decided, err = decideLive(cmd.Context(), a, liveFlags{repository, server, k8s})
			}
			if err != nil {
				return err
			}
			if decided, err = onlyNamed(world, decided, args); err != nil {
				return a.SayWorldProblems(world, err)
			}
			if cmdutil.NoDeployments(world) {
				a.SayNoSpecs(world, cmp.Or(snapshot, repository.URL, a.Dir))
			}
			return printPlan(a, output.Value, world, decided)
		},
	}
	cmdutil.AddOutput(cmd, &output, cmdutil.FormatText, cmdutil.FormatJSON, cmdutil.FormatYAML)
	repository.AddReading(cmd)
	server.Add(cmd)
	server.AddLimits(cmd)
	k8s.AddPods(cmd)
	cmdutil.AddPolicies(a, cmd)
	cmd.Flags().StringVar(&snapshot, "snapshot", "",
		"file that rampart observe wrote; neither Git nor Temporal are asked")
	cmd.MarkFlagsMutuallyExclusive("snapshot", "repo")
	return cmd
}

type liveFlags struct {
	repository cmdutil.RepositoryFlags
	temporal   cmdutil.TemporalFlags
	cluster    cmdutil.ClusterFlags
}

func decideLive(ctx context.Context, a *cmdutil.App,
	f liveFlags) (world rollout.World, decided [][]*rollout.Decision, err error) {
	source, closeSource, err := a.OpenSource(f.repository)
	if err != nil {
		return world, nil, err
	}
	defer func() { err = errors.Join(err, closeSource()) }()
	pool, err := a.OpenPool(f.temporal, cmdutil.PoolHooks{})
	if err != nil {
		return world, nil, err
	}
	defer pool.Close()
	judges, err := a.Judges(ctx)
	if err != nil {
		return world, nil, err
	}
	defer judges.Close()
	pods, err := a.OpenPods(f.cluster)
	if err != nil {
		return world, nil, err
	}
	defer pods.Close()
	planner, err := a.NewPlanner(cmdutil.PlannerPorts{Source: source, Observer: pool, Judges: judges, Pods: pods},
		f.temporal)
	if err != nil {
		return world, nil, err
	}
	cmdutil.UsePool(planner, pool)
	return cmdutil.PlanWithRetries(ctx, planner, time.Second)
}

// decideSnapshot decides on what was observed earlier.
func decideSnapshot(ctx context.Context, a *cmdutil.App, name string) (rollout.World, [][]*rollout.Decision, error) {
	world, err := readSnapshot(a, name)
	if err != nil {
		return world, nil, err
	}
	judges, err := a.Judges(ctx)
	if err != nil {
		return world, nil, err
	}
	defer judges.Close()
	out := make([][]*rollout.Decision, len(world.Environments))
	for i, env := range world.Environments {
		out[i] = reconcile.DecideAll(ctx, judges.Engine(env), env.Deployments)
	}
	return world, out, ctx.Err()
}

// readSnapshot reads what observe wrote.
func readSnapshot(a *cmdutil.App, name string) (rollout.World, error) {
	data, err := a.ReadInput(name)
	if err != nil {
		return rollout.World{}, fmt.Errorf("read --snapshot: %w", err)
	}
	world, err := cmdutil.DecodeSnapshot(data)
	if err != nil {
		return world, fmt.Errorf("read --snapshot %s: %w", name, err)
	}
	return cmdutil.OnlyEnvironment(world, a.Env)
}

// onlyNamed are the decisions about the worker deployments of those names, all of them without names.
func onlyNamed(world rollout.World, decided [][]*rollout.Decision, names []string) ([][]*rollout.Decision, error) {
	if len(names) == 0 {
		return decided, nil
	}
	chosen, err := cmdutil.Deployments(world, names)
	if err != nil {
		return nil, err
	}
	out := make([][]*rollout.Decision, len(decided))
	for i, env := range decided {
		for _, d := range env {
			if slices.ContainsFunc(chosen, func(s rollout.Snapshot) bool {
				return s.Deployment == d.Snapshot.Deployment && s.Environment.Name == d.Snapshot.Environment.Name
			}) {
				out[i] = append(out[i], d)
			}
		}
	}
	return out, nil
}

// printPlan prints what was decided. What could not be read of Temporal is an error: nothing is known to change then.
func printPlan(a *cmdutil.App, format string, world rollout.World, decided [][]*rollout.Decision) error {
	p, err := planReport(world, decided)
	if err != nil {
		return err
	}
	p.Problems = cmdutil.WorldProblems(world)
	err = a.Print(format, p, func() error {
		for _, problem := range p.Problems {
			a.Say("%s", cmdutil.ProblemLine(problem))
		}
		return p.WriteText(a.Out, a.Style())
	})
	if err != nil {
		return err
	}
	if unread, total := cmdutil.CountUnread(decided); unread > 0 {
		return fmt.Errorf("%d of %d worker deployments could not be read from Temporal", unread, total)
	}
	if len(world.Environments) == 0 {
		return cmdutil.ErrConfiguration
	}
	if p.Pending {
		return cmdutil.Pending(nil)
	}
	return nil
}

// planReport renders what was decided, as the next cycle does.
func planReport(world rollout.World, decided [][]*rollout.Decision) (report.Plan, error) {
	var all []report.Decided
	var rest []report.File
	for i, env := range world.Environments {
		parts, root, err := compose.Files(env, decided[i])
		if err != nil {
			return report.Plan{}, err
		}
		for _, part := range parts {
			all = append(all, reported(part))
		}
		if root != nil {
			rest = append(rest, report.NewFile(*root, env.RootFile.Data, env.RootFile.Hash != ""))
		}
	}
	return report.NewPlan(all, rest), nil
}

func reported(p compose.Part) report.Decided {
	return report.Decided{Snapshot: p.Snapshot, Proposal: p.Proposal, Plan: p.Plan, Files: p.Files, Refused: p.Refused}
}
