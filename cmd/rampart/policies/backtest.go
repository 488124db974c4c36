package policies

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/internal/auditlog"
	"github.com/rampart-gitops/rampart/internal/printable"
	"github.com/rampart-gitops/rampart/internal/report"
)

type backtestFlags struct {
	output     cmdutil.Choice
	decisions  cmdutil.DecisionFlags
	repository cmdutil.RepositoryFlags
	since      cmdutil.Since
	show       string
}

func policyBacktestCommand(a *cmdutil.App) *cobra.Command {
	var f backtestFlags
	cmd := &cobra.Command{
		Use:   "backtest [NAME...]",
		Short: "Judge recorded decisions again by the policies of the folder -C",
		Long: `Backtest judges recorded decisions again by the policies that their environments have in the folder
-C, as it is on disk, and shows which would differ: stricter, looser, or the same by other rules. Time is that of
the decision and waivers are those that were recorded, for the rules that were waived then, so a freeze or a waiver
of then is one again. A NAME is namespace/name, or the name alone.

A decision is masked, and not compared, where the policies read a value that was masked when it was recorded.
Warnings alone are no difference. Give the flags of the bot about its own policies (--policy-dir, --policy-bundle,
--waivable-rule), or what they held shows as looser.

Decisions are read from --decisions; else from the ref that the bot records them on, of --repo or of the clone that
the folder -C is in (git fetch origin '+refs/rampart/decisions/*:refs/rampart/decisions/*' brings them there).

Exit code 2 if a decision differs, 0 if none does, 1 if the policies do not compile or decisions cannot be read.`,
		Example: `  rampart policy backtest --since 30d
  rampart policy backtest --since 2026-03-01 payments/checkout --repo https://git.example.com/team/workers.git -o json
  rampart policy backtest --decisions decisions.jsonl --show 018f`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.CompleteNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return policyBacktest(cmd.Context(), a, args, f)
		},
	}
	cmdutil.AddOutput(cmd, &f.output, cmdutil.FormatText, cmdutil.FormatJSON, cmdutil.FormatYAML)
	f.repository.AddReading(cmd)
	cmdutil.AddPolicies(a, cmd)
	f.decisions.Add(cmd)
	f.since = cmdutil.LookBack(30)
	cmd.Flags().Var(&f.since, "since", "how far back to look, such as 30d, 12h, 2026-03-01")
	cmd.Flags().StringVar(&f.show, "show", "", "show one decision in full, by its ID or how it begins")
	return cmd
}

func policyBacktest(ctx context.Context, a *cmdutil.App, names []string, f backtestFlags) error {
	source := a.Decisions(f.decisions, f.repository)
	since := f.since.Time(a.Now())
	b, err := newBacktest(ctx, a, names)
	if err != nil {
		return err
	}
	defer b.judges.Close()
	b.result = report.Backtest{Since: since, Rows: []report.BacktestRow{}}
	filter := auditlog.Filter{Since: since}
	if f.show != "" {
		return showBacktest(ctx, a, source, b, f)
	}
	a.Say("judging decisions since %s", since.Format(time.RFC3339))
	stop := progress(a, b)
	err = b.run(ctx, source, filter)
	stop()
	if err != nil {
		return err
	}
	if len(names) > 0 && b.result.Decisions == 0 {
		return fmt.Errorf("there is no decision about %s", strings.Join(names, ", "))
	}
	b.result.SortRows()
	err = a.Print(f.output.Value, b.result, func() error { return b.result.WriteText(a.Out, a.Style()) })
	if err != nil {
		return err
	}
	a.Say("%s", b.result.Summary())
	if b.result.Differ > 0 {
		return cmdutil.Pending(nil)
	}
	return nil
}

// run judges all decisions that are wanted. It holds as many as are judged at a time. Reading may take for ever, as
// from a pipe: when ctx ends it is left to itself.
func (b *backtest) run(ctx context.Context, source cmdutil.DecisionSource, filter auditlog.Filter) error {
	done := make(chan error, 1)
	go func() {
		group, working := errgroup.WithContext(ctx)
		group.SetLimit(runtime.GOMAXPROCS(0))
		for d, err := range source.Decisions(working, filter) {
			group.Go(func() error {
				if err != nil {
					return err
				}
				return b.one(working, d)
			})
			if working.Err() != nil {
				break
			}
		}
		done <- group.Wait()
	}()
	select {
	case err := <-done:
		return cmp.Or(err, ctx.Err())
	case <-ctx.Done():
		return ctx.Err()
	}
}

// one judges a decision again, if it is wanted.
func (b *backtest) one(ctx context.Context, d auditlog.Decision) error {
	about, err := d.Deployment()
	if err != nil {
		return err
	}
	if len(b.names) > 0 && !slices.ContainsFunc(b.names, func(n string) bool { return isNamed(n, about) }) {
		return nil
	}
	got, err := b.judge(ctx, d)
	if err != nil || got == nil {
		return err
	}
	b.count(d, about, *got)
	return nil
}

// progress shows on a terminal how far a backtest is, until it is stopped.
func progress(a *cmdutil.App, b *backtest) (stop func()) {
	f, ok := printable.Under(a.Err).(*os.File)
	if !ok {
		return func() {}
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				_, _ = fmt.Fprint(f, "\r\x1b[K")
				return
			case <-tick.C:
				b.mu.Lock()
				decided, differ := b.result.Decisions, b.result.Differ
				b.mu.Unlock()
				_, _ = fmt.Fprintf(f, "\r\x1b[Kdecisions: %d, differ: %d", decided, differ)
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}
