package operate

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/internal/operator"
	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

func rollbackCommand(a *cmdutil.App) *cobra.Command {
	f := new(operatorFlags)
	w := new(plan.TakeBack)
	cmd := &cobra.Command{
		Use:   "rollback NAME",
		Short: "Take a build's traffic back now, and bar it",
		Long: `Rollback takes traffic back in Temporal at once, and then commits why, with your name: the ramp of
the build that ramps is cleared; else the current build gives way to the version that was current before it. The
build stays barred until rampart retry, or until the spec asks for another one. Said twice, it is done once.

While rampart.yaml cannot be used, it works by the configuration that could be used last, and if none is known by
what the record says of its environment. Then --branch has to be the one that the record is on.

Outside of the rollback window of the spec, and where the spec asks for a build that has no traffic yet, name the
build that is meant with --build. Exit code 1 says why traffic could not be taken back, or that it was, and Git
could not be told.`,
		Example: `  rampart rollback payments/checkout --reason "timeouts" --repo https://git.example.com/team/workers.git
  rampart rollback payments/checkout --build v2.0.0-b676227c --to v1.8.0-99ab31c0`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return operate(a, cmd, args[0], *f, func(ctx context.Context, o *operation) (told, error) {
				w.By, w.Reason = o.person.Name, o.person.Reason
				if w.Reason == "" {
					w.Reason = "rolled back by " + w.By
				}
				return o.rollback(ctx, f.server, *w)
			})
		},
	}
	addOperator(a, cmd, f)
	f.server.Add(cmd)
	cmd.Flags().StringVar(&w.BuildID, "build", "",
		"build ID that loses its traffic (default: the one that ramps, else the one that the spec asks for)")
	cmd.Flags().StringVar(&w.To, "to", "",
		"build ID that gets the traffic of a current version (default: the one before it)")
	cmdutil.CompleteFlag(cmd, "build", completeBuilds(a))
	cmdutil.CompleteFlag(cmd, "to", completeBuilds(a))
	return cmd
}

// rollback moves traffic first, and writes it down then.
func (o *operation) rollback(ctx context.Context, server cmdutil.TemporalFlags, w plan.TakeBack) (t told, err error) {
	pool, err := o.OpenPool(server, cmdutil.PoolHooks{})
	if err != nil {
		return told{}, err
	}
	defer pool.Close()
	o.byRecord = true
	var taken plan.TakenBack
	moved := false
	err = o.again(ctx, func() error {
		at, err := o.find(ctx)
		if err != nil {
			return err
		}
		s, err := o.observe(ctx, pool, at.Snapshot, (*plan.View).Ask, func(v *plan.View) rollout.Ask {
			return v.AskTakeBack(w)
		})
		if err != nil {
			return err
		}
		v := plan.Look(s)
		if taken, err = v.DecideTakeBack(w); err != nil || taken.Plan.Lower == nil {
			return err
		}
		if never := plan.Never(s, taken.Plan); len(never) > 0 {
			return fmt.Errorf("lower traffic: nothing was changed: %s", never[0])
		}
		if err := pool.Lower(ctx, v.Subject(), *taken.Plan.Lower); err != nil {
			return fmt.Errorf("lower traffic: %w", err)
		}
		moved = true
		o.Log.InfoContext(ctx, "traffic was lowered in Temporal", "deployment", s.Deployment.String(), "routing",
			plan.Describe(taken.Now()))
		return nil
	})
	if err != nil {
		return told{}, err
	}
	t, err = o.change(ctx, func(s rollout.Snapshot) (operator.Change, error) { return written(s, taken) })
	if err != nil && moved {
		return t, fmt.Errorf("traffic was lowered in Temporal (%s), but the commit that records it failed: %w: until "+
			"a bot commits it, or you run this command again, a mark in Temporal's version metadata keeps %s from "+
			"being raised", taken.Said, err, taken.Bar.BuildID)
	}
	t.Changed = t.Changed || moved
	return t, err
}

// written is a rollback in the record at the tip.
func written(s rollout.Snapshot, taken plan.TakenBack) (operator.Change, error) {
	switch {
	case s.Record.RoutingProblem != nil:
		return operator.Change{}, errors.New(s.Record.RoutingProblem.Message)
	case s.Record.Routing == nil:
		return operator.Change{}, fmt.Errorf("the record in %s is gone", s.Record.Dir)
	case taken.Done:
		return operator.Change{Record: s.Record.Routing.Spec, Notes: []string{taken.Said}}, nil
	}
	c := operator.Change{Record: taken.Record(s.Record.Routing.Spec), Did: taken.Said}
	if id := taken.Bar.BuildID; id != "" {
		c.Notes = append(c.Notes, fmt.Sprintf("%s is barred; to try it again: rampart retry %s --build %[1]s", id,
			s.Deployment))
		if t := c.Record.Target; t != nil && t.BuildID != id {
			c.Notes = append(c.Notes, fmt.Sprintf("the spec asks for %s, whose rollout goes on; to stop that too: "+
				"rampart hold %s", t.BuildID, s.Deployment))
		}
	}
	return c, nil
}
