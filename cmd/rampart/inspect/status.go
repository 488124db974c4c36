package inspect

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/report"
	"github.com/rampart-gitops/rampart/internal/retry"
)

func statusCommand(a *cmdutil.App) *cobra.Command {
	var (
		output     cmdutil.Choice
		repository cmdutil.RepositoryFlags
		k8s        cmdutil.ClusterFlags
		watch      bool
		interval   time.Duration
	)
	cmd := &cobra.Command{
		Use:   "status [NAME...]",
		Short: "Show where each rollout stands, as Git says",
		Long: `Status prints a table of worker deployments from what the bot wrote to the repository: the branch of
--repo, or the clone that the folder -C is in. A NAME is namespace/name, or the name alone. The state is Pending
while the status is not about the spec as it is. With --kubeconfig and --env it also says how the pods of versions
are now that are rolled out.

` + cmdutil.CloneHelp + `

Exit code 0, ready or not; 1 when a named worker deployment does not exist. For a condition to wait for, see rampart
wait.`,
		Example: `  rampart status
  rampart status payments/checkout -o json
  rampart status --repo https://git.example.com/team/workers.git --watch`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.CompleteNames,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if interval <= 0 {
				return fmt.Errorf("--interval has to be positive, not %s", interval)
			}
			source, closeSource, err := a.OpenPublished(repository)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, closeSource()) }()
			pods, err := a.OpenPods(k8s)
			if err != nil {
				return err
			}
			defer pods.Close()
			show := &statusView{App: a, source: source, pods: pods, names: args, format: output.Value,
				where: cmp.Or(repository.URL, a.Dir)}
			if err := show.print(cmd.Context()); err != nil || !watch {
				return err
			}
			return show.watch(cmd.Context(), interval)
		},
	}
	cmdutil.AddOutput(cmd, &output, cmdutil.FormatText, cmdutil.FormatJSON, cmdutil.FormatYAML)
	repository.AddPublished(cmd)
	k8s.AddPods(cmd)
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "print again whenever something changes, until stopped")
	cmd.Flags().DurationVar(&interval, "interval", 5*time.Second, "how often to look with --watch")
	return cmd
}

type statusView struct {
	*cmdutil.App
	source reconcile.Source
	// pods is nil where no cluster is read.
	pods   *cmdutil.PodReader
	names  []string
	format string
	// where it is read from, as a person named it.
	where string
	last  []byte
}

// print prints the statuses unless they are what was printed last.
func (v *statusView) print(ctx context.Context) error {
	world, err := v.source.Read(ctx)
	if err != nil {
		return err
	}
	found, err := cmdutil.Deployments(world, v.names)
	if err != nil {
		return v.SayWorldProblems(world, err)
	}
	v.pods.FillPods(ctx, found)
	list := make([]report.Status, 0, len(found))
	for _, s := range found {
		list = append(list, report.NewStatus(s))
	}
	report.SortStatuses(list)
	now, err := json.Marshal(list)
	if err != nil {
		return err
	}
	if v.last != nil && bytes.Equal(now, v.last) {
		return nil
	}
	if v.last == nil || len(world.Environments) == 0 {
		for _, p := range cmdutil.WorldProblems(world) {
			v.Say("%s", cmdutil.ProblemLine(p))
		}
	} else if v.format == cmdutil.FormatText {
		if _, err := fmt.Fprintln(v.Out); err != nil {
			return err
		}
	}
	v.last = now
	if v.format != cmdutil.FormatText {
		return v.Encode(v.format, list)
	}
	if len(list) == 0 {
		v.SayNoSpecs(world, v.where)
		return nil
	}
	return report.WriteStatuses(v.Out, list, v.Now())
}

// watch prints again until it is stopped. What cannot be read for a while is logged.
func (v *statusView) watch(ctx context.Context, interval time.Duration) error {
	for {
		if err := retry.Sleep(ctx, interval); err != nil {
			return err
		}
		if err := v.print(ctx); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			v.Log.WarnContext(ctx, "not read", "error", err)
		}
	}
}
