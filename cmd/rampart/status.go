package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/report"
)

func (a *app) statusCommand() *cobra.Command {
	var (
		output     choice
		repository repositoryFlags
		k8s        clusterFlags
		watch      bool
		interval   time.Duration
	)
	cmd := &cobra.Command{
		Use:   "status [NAME...]",
		Short: "Show where each rollout stands, as Git says",
		Long: `Status prints a table of worker deployments from what the bot wrote to the repository: the branch of --repo, or the clone
that the folder -C is in. A NAME is namespace/name, or the name alone. The state is Pending while the status is not about the spec as it is. With --kubeconfig and
--env it also says how the pods of versions are now that are rolled out.

` + inAClone + `

Exit code 0, ready or not; 1 when a named worker deployment does not exist. For a condition to wait for, see rampart wait.`,
		Example: `  rampart status
  rampart status payments/checkout -o json
  rampart status --repo https://git.example.com/team/workers.git --watch`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			source, closeSource, err := a.published(repository)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, closeSource()) }()
			pods, err := a.pods(k8s)
			if err != nil {
				return err
			}
			defer pods.close()
			show := &statusView{app: a, source: source, pods: pods, names: args, format: output.value, where: cmp.Or(repository.url, a.dir)}
			if err := show.print(cmd.Context()); err != nil || !watch {
				return err
			}
			return show.watch(cmd.Context(), interval)
		},
	}
	a.addOutput(cmd, &output, formatText, formatJSON, formatYAML)
	repository.addReading(cmd)
	repository.addOffline(cmd)
	k8s.addPods(cmd)
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "print again whenever something changes, until stopped")
	cmd.Flags().DurationVar(&interval, "interval", 5*time.Second, "how often to look with --watch")
	return cmd
}

// statusView prints statuses.
type statusView struct {
	*app
	source reconcile.Source
	// pods is nil where no cluster is read.
	pods   *podReader
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
	found, err := deployments(world, v.names)
	if err != nil {
		return v.because(world, err)
	}
	v.pods.look(ctx, found)
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
		for _, p := range worldProblems(world) {
			v.say("%s", problemLine(p))
		}
	} else if v.format == formatText {
		if _, err := fmt.Fprintln(v.out); err != nil {
			return err
		}
	}
	v.last = now
	if v.format != formatText {
		return v.encode(v.format, list)
	}
	if len(list) == 0 {
		v.sayNoSpecs(world, v.where)
		return nil
	}
	return report.WriteStatuses(v.out, list, v.now())
}

// watch prints again until it is stopped. What cannot be read for a while is logged.
func (v *statusView) watch(ctx context.Context, interval time.Duration) error {
	for {
		if err := sleep(ctx, interval); err != nil {
			return err
		}
		if err := v.print(ctx); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			v.log.WarnContext(ctx, "not read", "error", err)
		}
	}
}

// sleep waits, or ends with the context's error.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
