package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/operator"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// record makes a command that changes the record in Git, and asks no other system.
func record(a *cmdutil.App, cmd *cobra.Command, change func(rollout.Snapshot, operator.Person) (operator.Change,
	error)) *cobra.Command {
	f := new(operatorFlags)
	addOperator(a, cmd, f)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return operate(a, cmd, args[0], *f, func(ctx context.Context, o *operation) (told, error) {
			return o.change(ctx, func(s rollout.Snapshot) (operator.Change, error) { return change(s, o.person) })
		})
	}
	return cmd
}

func holdCommand(a *cmdutil.App) *cobra.Command {
	return record(a, &cobra.Command{
		Use:   "hold NAME",
		Short: "Pause raises and drift repair until resume",
		Long: `Hold stops every raise of a worker deployment's traffic until rampart resume. What has traffic keeps
it, and what people move in Temporal stays: the bot puts nothing of that back. It still lowers traffic where a
verdict of policy, a gate that failed or a reverted spec says so, and so do commands such as rampart rollback. It is
a commit with your name; Temporal is not asked.`,
		Example: `  rampart hold payments/checkout --reason "incident 4711" --repo https://git.example.com/team/workers.git`,
	}, operator.Hold)
}

func resumeCommand(a *cmdutil.App) *cobra.Command {
	return record(a, &cobra.Command{
		Use:   "resume NAME",
		Short: "Take away a hold",
		Long: `Resume takes away the hold of a person, and the one that follows when traffic was lowered outside of
Git or routing.yaml was edited. The rollout goes on from where traffic is, wherever people moved it meanwhile. A
target that was turned back by hand starts at its first gate. Exit code 0 also where nothing was held.`,
		Example: `  rampart resume payments/checkout --repo https://git.example.com/team/workers.git`,
	}, operator.Resume)
}

func retryCommand(a *cmdutil.App) *cobra.Command {
	var build string
	cmd := record(a, &cobra.Command{
		Use:   "retry NAME",
		Short: "Try a build again that was turned back, or whose gate failed",
		Long: `Retry takes away the bar against the build that the spec asks for (or --build): it starts anew, as
another attempt, at its first gate and first step. A build that is not barred and has no traffic starts anew too:
its failed gate runs again. The mark that the rollback left in Temporal is void with it.`,
		Example: `  rampart retry payments/checkout --reason "the database is back" --repo https://git.example.com/team/workers.git`,
	}, func(s rollout.Snapshot, p operator.Person) (operator.Change, error) {
		return operator.Retry(s, p, build)
	})
	cmd.Flags().StringVar(&build, "build", "", "build ID to try again (default: the one that the spec asks for)")
	cmdutil.CompleteFlag(cmd, "build", completeBuilds(a))
	return cmd
}

func approveCommand(a *cmdutil.App) *cobra.Command {
	return answer(a, &cobra.Command{
		Use:   "approve NAME",
		Short: "Let what waits for approval go on",
		Long: `Approve lets the step that is proposed go on, or a stage of an evacuation: it is decided again, and
carried out if it still comes next. It is a commit with your name, and does what merging the proposal does.`,
		Example: `  rampart approve payments/checkout --reason "looked at the dashboards" --repo https://git.example.com/team/workers.git
  rampart approve payments/checkout --to 25
  rampart approve payments/checkout --stage Terminate`,
	}, operator.Approve)
}

func rejectCommand(a *cmdutil.App) *cobra.Command {
	return answer(a, &cobra.Command{
		Use:   "reject NAME",
		Short: "Hold what waits for approval where it is",
		Long: `Reject turns the step down that is proposed: the worker deployment is held where it is, until the
spec asks for another build or it is resumed. Traffic is still taken back where policy, a gate or the spec says so.
A stage of an evacuation is declined for good. It is a commit with your name, and does what closing the proposal
does.`,
		Example: `  rampart reject payments/checkout --reason "wait for the load test" --repo https://git.example.com/team/workers.git`,
	}, operator.Reject)
}

// answer makes a command that answers what waits for approval.
func answer(a *cmdutil.App, cmd *cobra.Command, change func(rollout.Snapshot, operator.Person,
	operator.Which) (operator.Change, error)) *cobra.Command {
	var which operator.Which
	stage := cmdutil.NewChoice("", string(v1alpha1.EvacuateBySignal), string(v1alpha1.EvacuateByMove),
		string(v1alpha1.EvacuateByCancel), string(v1alpha1.EvacuateByTermination))
	cmd = record(a, cmd, func(s rollout.Snapshot, p operator.Person) (operator.Change, error) {
		which.Stage = v1alpha1.EvacuationStage(stage.Value)
		return change(s, p, which)
	})
	fs := cmd.Flags()
	fs.StringVar(&which.Build, "build", "", "only if it is about this build ID")
	fs.Func("to", "only if it is the raise to this `percentage`, 100 for a promotion: what came in its place since is "+
		"not meant", func(text string) error {
		f, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
		if err != nil || !(f > 0 && f <= 100) {
			return fmt.Errorf("%q: want a percentage above 0, such as 25", text)
		}
		which.To = &f
		return nil
	})
	fs.Var(&stage, "stage", "only if it is this stage of an evacuation: "+stage.List())
	cmdutil.CompleteFlag(cmd, "build", completeBuilds(a))
	cmdutil.CompleteFlag(cmd, "stage", stage.Complete)
	return cmd
}

// retireFlags say what is retired, and how.
type retireFlags struct {
	version                string
	unroute, force, cancel bool
}

func retireCommand(a *cmdutil.App) *cobra.Command {
	f := new(retireFlags)
	cmd := record(a, &cobra.Command{
		Use:   "retire NAME",
		Short: "End a worker deployment, or one version of it",
		Long: `Retire ends a worker deployment: its ramp is cleared, no new version comes, and each version is
scaled down, deleted in Temporal and removed as ever: once it has drained, no open workflow is pinned to it, and its
delays are over. When nothing is left and the spec's file is gone, its folder goes too.

The current version keeps its traffic, since new workflows need somewhere to go. With --unroute it loses that once
unversioned workers poll all of its task queues, or once nothing was open or started on it for the sunset's
scaledownDelay (1m at least); with --unroute --force at once: then workflows that are started later, and open ones
that are not pinned, wait for unversioned workers. A pinned workflow always finishes on its version.

With --version one version goes, without the delays and the rollback window, on the same proof.`,
		Example: `  rampart retire payments/checkout --reason "moved to billing" --repo https://git.example.com/team/workers.git
  rampart retire payments/checkout --unroute
  rampart retire payments/checkout --cancel
  rampart retire payments/checkout --version v1.0.0-b676227c`,
	}, f.change)
	cmd.Flags().StringVar(&f.version, "version", "", "build ID of the one version to end")
	cmdutil.CompleteFlag(cmd, "version", completeBuilds(a))
	cmd.Flags().BoolVar(&f.unroute, "unroute", false,
		"take new workflows from the current version, once it is no longer needed")
	cmd.Flags().BoolVar(&f.force, "force", false, "with --unroute: at once, without proof")
	cmd.Flags().BoolVar(&f.cancel, "cancel", false, "take it back")
	cmd.MarkFlagsMutuallyExclusive("version", "unroute", "cancel")
	return cmd
}

func (f *retireFlags) change(s rollout.Snapshot, p operator.Person) (operator.Change, error) {
	switch {
	case f.force && !f.unroute:
		return operator.Change{}, errors.New("--force goes with --unroute")
	case f.version != "":
		return operator.RetireVersion(s, p, f.version)
	case f.cancel:
		return operator.Unretire(s, p)
	case f.force:
		return operator.Retire(s, p, v1alpha1.UnrouteAnyway)
	case f.unroute:
		return operator.Retire(s, p, v1alpha1.UnrouteProven)
	}
	return operator.Retire(s, p, v1alpha1.KeepCurrent)
}

// completeBuilds completes build IDs that have files: of the worker deployment that is named, else of all.
func completeBuilds(a *cmdutil.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		var out []string
		if world, ok := a.CompletionWorld(cmd); ok {
			found, err := cmdutil.Deployments(world, args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			for _, s := range found {
				for _, v := range s.Record.Versions() {
					out = append(out, v.BuildID)
				}
			}
		}
		slices.Sort(out)
		return slices.Compact(out), cobra.ShellCompDirectiveNoFileComp
	}
}
