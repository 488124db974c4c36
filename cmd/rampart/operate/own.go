package operate

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/internal/operator"
	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/temporal"
)

func adoptCommand(a *cmdutil.App) *cobra.Command {
	f := new(operatorFlags)
	var from string
	cmd := &cobra.Command{
		Use:   "adopt NAME",
		Short: "Take a worker deployment's routing over from its owner",
		Long: `Adopt makes the environment the owner of a worker deployment's routing in Temporal (its manager
identity), and takes the routing as it is for the desired one. From then on the bot moves it as the spec says;
rampart hold first keeps it where it is.

If the routing has an owner, --from has to name it: if the owner is another by now, nothing is taken over.`,
		Example: `  rampart adopt payments/checkout --from temporal-worker-controller --repo https://git.example.com/team/workers.git`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return operate(a, cmd, args[0], *f, func(ctx context.Context, o *operation) (told, error) {
				var believed *string
				if cmd.Flags().Changed("from") {
					believed = &from
				}
				return o.own(ctx, f.server, func(s rollout.Snapshot) (operator.Owner, error) {
					return operator.Adopt(s, o.person, believed)
				})
			})
		},
	}
	addOperator(a, cmd, f)
	f.server.Add(cmd)
	cmd.Flags().StringVar(&from, "from", "", "manager identity that owns the routing now")
	return cmd
}

func releaseCommand(a *cmdutil.App) *cobra.Command {
	f := new(operatorFlags)
	var to string
	cmd := &cobra.Command{
		Use:   "release NAME",
		Short: "Transfer or release the routing",
		Long: `Release makes the bot leave a worker deployment's routing alone, and hands its manager identity in
Temporal to --to, or takes it away. Files of versions are still rendered; nothing is scaled down or removed. rampart
adopt takes the routing back.`,
		Example: `  rampart release payments/checkout --reason "manual migration" --repo https://git.example.com/team/workers.git
  rampart release payments/checkout --to temporal-worker-controller`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return operate(a, cmd, args[0], *f, func(ctx context.Context, o *operation) (told, error) {
				return o.own(ctx, f.server, func(s rollout.Snapshot) (operator.Owner, error) {
					return operator.Release(s, o.person, to)
				})
			})
		},
	}
	addOperator(a, cmd, f)
	f.server.Add(cmd)
	cmd.Flags().StringVar(&to, "to", "", "manager identity that owns the routing from then on (default: none)")
	return cmd
}

// own writes down whose the routing is to be, and then asks Temporal for it. A bot in between finds it in Git, and
// leaves it alone.
func (o *operation) own(ctx context.Context, server cmdutil.TemporalFlags,
	do func(rollout.Snapshot) (operator.Owner, error)) (t told, err error) {
	pool, err := o.OpenPool(server, cmdutil.PoolHooks{})
	if err != nil {
		return told{}, err
	}
	defer pool.Close()
	commit := ""
	err = o.again(ctx, func() error {
		at, err := o.find(ctx)
		if err != nil {
			return err
		}
		s, err := o.observe(ctx, pool, at.Snapshot, (*plan.View).Ask)
		if err != nil {
			return err
		}
		owner, err := do(s)
		if err != nil {
			return err
		}
		if t, err = o.commit(ctx, at, owner.Change); err != nil {
			return err
		}
		if t.Commit != "" {
			commit = t.Commit
		}
		t.Commit = commit
		if owner.From == owner.To || owner.Did == "" {
			return nil
		}
		return pool.SetManager(ctx, plan.Look(s).Subject(),
			temporal.ManagerCall{From: owner.From, To: owner.To, Token: s.Observation.ConflictToken})
	})
	if err != nil && commit != "" {
		return t, fmt.Errorf("it is written down in Git (%s), but Temporal's manager identity is not changed; say it "+
			"again: %w", commit, err)
	}
	return t, err
}
