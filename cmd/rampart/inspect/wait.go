package inspect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/printable"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/report"
	"github.com/rampart-gitops/rampart/internal/retry"
)

func waitCommand(a *cmdutil.App) *cobra.Command {
	var (
		output            cmdutil.Choice
		repository        cmdutil.RepositoryFlags
		condition         string
		timeout, interval time.Duration
		failOnStalled     bool
	)
	cmd := &cobra.Command{
		Use:   "wait NAME",
		Short: "Wait for a condition of the spec as it is in Git",
		Long: `Wait blocks until the status in Git has a condition, of the spec as it is at the branch's tip: an
older status, about the spec before the last push, does not count (kubectl wait cannot tell them apart). It reads
the branch of --repo again and again, or the clone that the folder -C is in.

` + cmdutil.CloneHelp + `

A rollout that is Stalled (held by policy, waiting for approval, turned back, spec invalid, Temporal unreadable)
does not get ready by waiting: that ends the wait with exit code 2, unless --fail-on-stalled=false. So does the
timeout; a timeout of 0 looks once. Exit code 1 when the worker deployment does not exist or the repository cannot
be read at first.`,
		Example: `  rampart wait payments/checkout --repo https://git.example.com/team/workers.git --timeout 30m
  rampart wait checkout --for condition=Progressing=False --fail-on-stalled=false`,
		Args:              cmdutil.OneName,
		ValidArgsFunction: a.CompleteName,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			switch {
			case interval <= 0:
				return fmt.Errorf("--interval has to be positive, not %s", interval)
			case timeout < 0:
				return fmt.Errorf("--timeout may not be negative: %s", timeout)
			}
			w := waiter{App: a, name: args[0], format: output.Value, interval: interval, failOnStalled: failOnStalled}
			if err := w.parse(condition); err != nil {
				return err
			}
			source, closeSource, err := a.OpenPublished(repository)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, closeSource()) }()
			w.source = source
			return w.wait(cmd.Context(), timeout)
		},
	}
	cmdutil.AddOutput(cmd, &output, cmdutil.FormatText, cmdutil.FormatJSON, cmdutil.FormatYAML)
	repository.AddPublished(cmd)
	cmd.Flags().StringVar(&condition, "for", "condition=Ready", "condition=TYPE, or condition=TYPE=STATUS")
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Minute, "how long to wait at most")
	cmd.Flags().DurationVar(&interval, "interval", 5*time.Second, "how often to look")
	cmd.Flags().BoolVar(&failOnStalled, "fail-on-stalled", true, "give up on what does not get ready by waiting")
	cmdutil.CompleteFlag(cmd, "for", cobra.FixedCompletions([]string{"condition=Ready", "condition=Progressing",
		"condition=Stalled", "condition=Reconciling"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// waiter waits for one condition of one worker deployment.
type waiter struct {
	*cmdutil.App
	source        reconcile.Source
	name, format  string
	kind          string
	status        v1alpha1.ConditionStatus
	interval      time.Duration
	failOnStalled bool
	said          string
}

// parse takes the condition apart.
func (w *waiter) parse(condition string) error {
	rest, ok := strings.CutPrefix(condition, "condition=")
	if !ok || rest == "" {
		return fmt.Errorf("--for is condition=TYPE or condition=TYPE=STATUS, not %q", condition)
	}
	kind, status, given := strings.Cut(rest, "=")
	kinds := []string{v1alpha1.ConditionReady, v1alpha1.ConditionProgressing, v1alpha1.ConditionReconciling,
		v1alpha1.ConditionStalled}
	w.kind, w.status = "", v1alpha1.True
	for _, k := range kinds {
		if strings.EqualFold(k, kind) {
			w.kind = k
		}
	}
	if w.kind == "" {
		return cmdutil.NotFound("condition", kind, kinds)
	}
	if !given {
		return nil
	}
	for _, s := range []v1alpha1.ConditionStatus{v1alpha1.True, v1alpha1.False, v1alpha1.Unknown} {
		if strings.EqualFold(string(s), status) {
			w.status = s
			return nil
		}
	}
	return fmt.Errorf("a condition is True, False or Unknown, not %q", status)
}

// waited is how a wait ended.
type waited struct {
	Met       bool          `json:"met"`
	Condition string        `json:"condition"`
	Wanted    string        `json:"wanted"`
	Status    report.Status `json:"status"`
}

func (w *waiter) wait(ctx context.Context, timeout time.Duration) error {
	due, cancel := context.WithTimeout(ctx, max(timeout, time.Nanosecond))
	defer cancel()
	st, done, err := w.look(ctx) // once, however short the time is
	for err == nil && !done {
		if retry.Sleep(due, w.interval) != nil {
			break
		}
		next, finished, readErr := w.look(due)
		if readErr != nil && due.Err() == nil {
			w.Log.WarnContext(ctx, "not read", "error", readErr)
			continue
		}
		if readErr == nil {
			st, done = next, finished
		}
	}
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	met := w.met(st)
	if err := w.print(waited{met, w.kind, string(w.status), st}); err != nil {
		return err
	}
	switch {
	case met:
		return nil
	case done:
		return cmdutil.Pending(fmt.Errorf("%s does not get %s by waiting: %s", st.Name, w.wanted(), stateLine(st)))
	}
	return cmdutil.Pending(fmt.Errorf("timed out after %s waiting for %s to be %s: %s", timeout, st.Name, w.wanted(),
		stateLine(st)))
}

func (w *waiter) wanted() string {
	if w.status == v1alpha1.True {
		return w.kind
	}
	return w.kind + "=" + string(w.status)
}

func stateLine(st report.Status) string { return st.Reason + ": " + printable.Line(st.Message) }

// look reads the status; done says that there is nothing more to wait for.
func (w *waiter) look(ctx context.Context) (st report.Status, done bool, err error) {
	_, s, err := w.ReadDeployment(ctx, w.source, w.name)
	if err != nil {
		return st, false, err
	}
	st = report.NewStatus(s)
	if line := st.Name + ": " + stateLine(st); line != w.said {
		w.Say("%s", line)
		w.said = line
	}
	unusable := len(s.Problems) > 0 || s.Record.RoutingProblem != nil || s.Spec == nil
	stalled := unusable
	if c := st.Condition(v1alpha1.ConditionStalled); c != nil && st.Observed && c.Status == v1alpha1.True {
		stalled = true
	}
	return st, w.met(st) || w.failOnStalled && stalled, nil
}

// met reports whether the status is about the spec as it is and has the condition.
func (w *waiter) met(st report.Status) bool {
	c := st.Condition(w.kind)
	return st.Observed && c != nil && c.Status == w.status
}

func (w *waiter) print(r waited) error {
	if w.format != cmdutil.FormatText {
		return w.Encode(w.format, r)
	}
	if !r.Met {
		return nil
	}
	_, err := fmt.Fprintf(w.Out, "%s is %s: %s\n", r.Status.Name, w.wanted(), stateLine(r.Status))
	return err
}
