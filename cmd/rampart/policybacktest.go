package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/rampart-gitops/rampart/internal/decisions"
	"github.com/rampart-gitops/rampart/internal/report"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy"
)

// backtestFlags say what is judged again.
type backtestFlags struct {
	output     choice
	decisions  decisionFlags
	repository repositoryFlags
	since      since
	show       string
}

func (a *app) policyBacktestCommand() *cobra.Command {
	var f backtestFlags
	cmd := &cobra.Command{
		Use:   "backtest [NAME...]",
		Short: "Judge recorded decisions again by the policies of the folder -C",
		Long: `Backtest judges recorded decisions again by the policies that their environments have in the folder -C, as it is on disk, and
shows which would differ: stricter, looser, or the same by other rules. Time is that of the decision and waivers are those that
were recorded, for the rules that were waived then, so a freeze or a waiver of then is one again. A NAME is namespace/name, or the name alone.

A decision is masked, and not compared, where the policies read a value that was masked when it was recorded. Warnings alone
are no difference. Give the flags of the bot about its own policies (--policy-dir, --policy-bundle, --waivable-rule), or what they
held shows as looser.

Decisions are read from --decisions; else from the ref that the bot records them on, of --repo or of the clone that the folder -C
is in (git fetch origin refs/rampart/decisions:refs/rampart/decisions brings it there).

Exit code 2 if a decision differs, 0 if none does, 1 if the policies do not compile or decisions cannot be read.`,
		Example: `  rampart policy backtest --since 30d
  rampart policy backtest --since 2026-03-01 payments/checkout --repo https://git.example.com/team/workers.git -o json
  rampart policy backtest --decisions decisions.jsonl --show 018f`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.policyBacktest(cmd.Context(), args, f)
		},
	}
	a.addOutput(cmd, &f.output, formatText, formatJSON, formatYAML)
	f.repository.addReading(cmd)
	a.addPolicies(cmd)
	f.decisions.add(cmd)
	f.since = since{text: "30d", back: 30 * 24 * time.Hour}
	cmd.Flags().Var(&f.since, "since", "how far back to look, such as 30d, 12h, 2026-03-01")
	cmd.Flags().StringVar(&f.show, "show", "", "show one decision in full, by its ID or how it begins")
	return cmd
}

func (a *app) policyBacktest(ctx context.Context, names []string, f backtestFlags) error {
	source := a.decisions(f.decisions, f.repository)
	since := f.since.time(a.now())
	b, err := a.newBacktest(ctx, names)
	if err != nil {
		return err
	}
	defer b.judges.close()
	b.result = report.Backtest{Since: since, Rows: []report.BacktestRow{}}
	filter := decisions.Filter{Since: since}
	if f.show != "" {
		return a.showBacktest(ctx, source, b, f)
	}
	a.say("judging decisions since %s", since.Format(time.RFC3339))
	stop := a.progress(b)
	err = b.run(ctx, source, filter)
	stop()
	if err != nil {
		return err
	}
	if len(names) > 0 && b.result.Decisions == 0 {
		return fmt.Errorf("there is no decision about %s", strings.Join(names, ", "))
	}
	b.result.SortRows()
	if f.output.value != formatText {
		err = a.encode(f.output.value, b.result)
	} else {
		err = b.result.WriteText(a.out, a.style())
	}
	if err != nil {
		return err
	}
	a.say("%s", b.result.Summary())
	if b.result.Differ > 0 {
		return pending(nil)
	}
	return nil
}

// backtestEngine is an environment's policies, ready for recorded inputs.
type backtestEngine struct {
	*policy.Engine
	masks *policy.Masks
}

// mask stands in recorded decisions where something was masked.
const mask = "***"

// backtest judges decisions again, some at a time.
type backtest struct {
	judges       *judges
	environments map[string]rollout.EnvironmentWorld
	// env is the only environment that is looked at; "": all.
	env   string
	names []string

	mu sync.Mutex
	// engines by their environment and the rules that may be waived beside those of the bot's configuration.
	engines map[string]backtestEngine
	result  report.Backtest
}

// newBacktest compiles the policies of the environments of the folder -C. All of them have to compile.
func (a *app) newBacktest(ctx context.Context, names []string) (*backtest, error) {
	world, err := a.soundWorld()
	if err != nil {
		return nil, err
	}
	judges, err := a.judges(ctx)
	if err != nil {
		return nil, err
	}
	b := &backtest{judges: judges, env: a.env, names: names, environments: map[string]rollout.EnvironmentWorld{}, engines: map[string]backtestEngine{}}
	broken := 0
	for _, env := range world.Environments {
		b.environments[env.Environment.Name] = env
		e, _ := b.engine(env.Environment.Name, rollout.Verdicts{})
		for _, p := range e.Problems() {
			a.say("%s", oneLine(p.Error()))
			broken++
		}
	}
	if broken > 0 {
		judges.close()
		return nil, errors.New("the policies cannot be used: see rampart policy check")
	}
	return b, nil
}

// engine is the policies of an environment. What was waived when the verdicts were recorded may be waived again: another
// configuration of the bot let it be then.
func (b *backtest) engine(environment string, recorded rollout.Verdicts) (backtestEngine, bool) {
	env, ok := b.environments[environment]
	if !ok {
		return backtestEngine{}, false
	}
	waived := map[string]bool{}
	for _, v := range append(slices.Collect(maps.Values(recorded.Actions)), recorded.Spec) {
		for _, f := range v.Findings {
			if f.Waived != "" {
				waived[f.Rule] = true
			}
		}
	}
	rules := sortedKeys(waived)
	key := environment + "\n" + strings.Join(rules, "\n")
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.engines[key]; !ok {
		judges := b.judges
		if len(rules) > 0 {
			judges = judges.waiving(rules)
		}
		e := judges.engine(env)
		b.engines[key] = backtestEngine{e, e.Masks(mask)}
	}
	return b.engines[key], true
}

// waiving are the same policies, with more rules that may be waived. They are not closed.
func (j *judges) waiving(rules []string) *judges {
	j.mu.Lock()
	defer j.mu.Unlock()
	return &judges{store: j.store, waivable: slices.Concat(j.waivable, rules), floor: j.floor}
}

// maxRows bounds what is kept of decisions that differ; beyond that they are counted.
const maxRows = 10_000

// run judges all decisions that are wanted. It holds as many as are judged at a time. Reading may take for ever, as from a pipe:
// when ctx ends it is left to itself.
func (b *backtest) run(ctx context.Context, source decisionSource, filter decisions.Filter) error {
	type read struct {
		decisions.Decision
		err error
	}
	group, working := errgroup.WithContext(ctx) // ended when the work is done, too
	queue := make(chan read)
	go func() {
		defer close(queue)
		for d, err := range source.Decisions(working, filter) {
			select {
			case queue <- read{d, err}:
			case <-working.Done():
				return
			}
		}
	}()
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() error {
			for {
				select {
				case <-working.Done():
					return working.Err()
				case r, ok := <-queue:
					if !ok {
						return nil
					}
					if r.err != nil {
						return r.err
					}
					if err := b.one(working, r.Decision); err != nil {
						return err
					}
				}
			}
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// one judges a decision again, if it is wanted.
func (b *backtest) one(ctx context.Context, d decisions.Decision) error {
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

// rejudged is a decision that was judged again.
type rejudged struct {
	in          recordedInput
	engine      backtestEngine
	now         rollout.Verdicts
	differences []report.Difference
	// failed says why it could not be evaluated; masked that it is not comparable.
	failed string
	masked bool
}

// judge judges a decision again; nil: it is of an environment that is not looked at. Only that ctx ended is an error.
func (b *backtest) judge(ctx context.Context, d decisions.Decision) (*rejudged, error) {
	in, unread := readable(d)
	out := &rejudged{in: in, failed: unread}
	if unread != "" {
		return out, nil
	}
	if b.env != "" && in.document.Environment() != b.env {
		return nil, nil
	}
	var ok bool
	if out.engine, ok = b.engine(in.document.Environment(), *in.verdicts); !ok {
		out.failed = fmt.Sprintf("there is no environment %q", in.document.Environment())
		return out, nil
	}
	out.now = out.engine.JudgeDocument(ctx, in.document)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out.failed = failure(out.now)
	out.differences = report.Differences(*in.verdicts, out.now)
	if len(d.Erased) > 0 {
		var err error
		if out.masked, err = out.engine.masks.Read(ctx, in.document, d.Erased); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// readable reads what a decision is about and its result, or says why it cannot.
func readable(d decisions.Decision) (recordedInput, string) {
	in, err := judgedOf(d)
	switch {
	case err != nil:
		return in, err.Error()
	case in.verdicts == nil:
		return in, "it has no result"
	}
	return in, ""
}

// failure is why verdicts are no answer: what a policy failed with; "" where they are one. A fact that was not known is an answer.
func failure(v rollout.Verdicts) string {
	all := []rollout.Verdict{v.Spec}
	for _, id := range sortedKeys(v.Actions) {
		all = append(all, v.Actions[id])
	}
	for _, verdict := range all {
		for _, f := range verdict.Findings {
			switch f.Rule {
			case "policy.error", "policy.timeout", "policy.broken", "policy.shape", "policy.input", "policy.empty":
				return f.Rule + ": " + f.Text()
			}
		}
	}
	return ""
}

// count adds a decision to the result.
func (b *backtest) count(d decisions.Decision, about rollout.Name, got rejudged) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &b.result
	r.Decisions++
	row := report.BacktestRow{ID: d.ID, At: d.Timestamp.UTC(), Deployment: about.String()}
	switch {
	case got.failed != "":
		r.Failed++
		row.Note = "could not be evaluated: " + got.failed
		b.add(row)
		return
	case got.masked:
		r.Masked++
		row.Note = "not comparable: the policies read what is masked"
		b.add(row)
		return
	case len(got.differences) == 0:
		return
	}
	r.Differ++
	changes := map[report.Change]bool{}
	for _, x := range got.differences {
		was, is := report.SumOf(x.Recorded), report.SumOf(x.Now)
		row.Action, row.Change, row.Recorded, row.Now = x.Action, x.Change, &was, &is
		if row.Action == "" {
			row.Action = "spec"
		}
		changes[x.Change] = true
		b.add(row)
	}
	switch {
	case changes[report.Stricter]:
		r.Stricter++
	case changes[report.Looser]:
		r.Looser++
	}
}

func (b *backtest) add(row report.BacktestRow) {
	if len(b.result.Rows) >= maxRows {
		b.result.More++
		return
	}
	b.result.Rows = append(b.result.Rows, row)
}

// progress shows on a terminal how far a backtest is, until it is stopped.
func (a *app) progress(b *backtest) (stop func()) {
	f, ok := a.err.(*os.File)
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
				_, _ = fmt.Fprint(a.err, "\r\x1b[K")
				return
			case <-tick.C:
				b.mu.Lock()
				decided, differ := b.result.Decisions, b.result.Differ
				b.mu.Unlock()
				_, _ = fmt.Fprintf(a.err, "\r\x1b[Kdecisions: %d, differ: %d", decided, differ)
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// shown is one decision in full.
type shown struct {
	ID         string                `json:"id"`
	At         time.Time             `json:"at"`
	Deployment string                `json:"deployment"`
	Recorded   rollout.Verdicts      `json:"recorded"`
	Now        rollout.Verdicts      `json:"now"`
	Differs    []string              `json:"differs"`
	Masked     bool                  `json:"masked,omitempty"`
	Failed     string                `json:"failed,omitempty"`
	Policy     []rollout.Explanation `json:"policy,omitempty"`
}

// showBacktest shows one decision: what was said then and what is said now of all that differs, and why.
func (a *app) showBacktest(ctx context.Context, source decisionSource, b *backtest, f backtestFlags) error {
	d, err := oneDecision(ctx, source, f.show)
	if err != nil {
		return err
	}
	got, err := b.judge(ctx, d)
	if err != nil {
		return err
	}
	if got == nil {
		return fmt.Errorf("decision %s is of another environment than --env %s", d.ID, b.env)
	}
	if got.in.document == nil || got.in.verdicts == nil || got.engine.Engine == nil {
		return errors.New(got.failed)
	}
	return a.showDecision(ctx, d, *got, f)
}

// maxMatches are named where several decisions match.
const maxMatches = 10

// oneDecision finds the decision of an ID, or the only one whose ID begins so.
func oneDecision(ctx context.Context, source decisionSource, id string) (one decisions.Decision, err error) {
	found := map[string]decisions.Decision{} // the first of each ID
	var ids []string
	for d, err := range source.Decisions(ctx, decisions.Filter{}) {
		if err != nil {
			return one, err
		}
		if d.ID == id {
			return d, nil
		}
		if _, again := found[d.ID]; strings.HasPrefix(d.ID, id) && !again {
			found[d.ID] = d
			ids = append(ids, d.ID)
		}
	}
	switch len(ids) {
	case 0:
		return one, fmt.Errorf("there is no decision whose ID begins with %q", id)
	case 1:
		return found[ids[0]], nil
	}
	lines := []string{fmt.Sprintf("the IDs of %d decisions begin with %q: give more of one", len(ids), id)}
	for _, id := range ids[:min(len(ids), maxMatches)] {
		about, err := found[id].Deployment()
		if err != nil {
			return one, err
		}
		lines = append(lines, fmt.Sprintf("  %s %s %s", oneLine(id), found[id].Timestamp.UTC().Format(time.RFC3339), oneLine(about.String())))
	}
	if n := len(ids) - maxMatches; n > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", n))
	}
	return one, errors.New(strings.Join(lines, "\n"))
}

func (a *app) showDecision(ctx context.Context, d decisions.Decision, got rejudged, f backtestFlags) error {
	out := shown{ID: d.ID, At: d.Timestamp.UTC(), Deployment: got.in.document.Deployment().String(), Recorded: *got.in.verdicts, Now: got.now,
		Differs: []string{}, Masked: got.masked, Failed: got.failed}
	for _, x := range got.differences {
		explained, err := got.engine.Explain(ctx, got.in.document, x.Action)
		if err != nil {
			return err
		}
		out.Policy = append(out.Policy, explained)
		out.Differs = append(out.Differs, x.Action)
	}
	var err error
	if f.output.value != formatText {
		err = a.encode(f.output.value, out)
	} else {
		err = a.printShown(out, got.differences)
	}
	if err == nil && len(got.differences) > 0 && !got.masked {
		return pending(nil)
	}
	return err
}

func (a *app) printShown(s shown, differences []report.Difference) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s, decision %s\n", oneLine(s.Deployment), s.At.Format(time.RFC3339), oneLine(s.ID))
	if s.Failed != "" {
		fmt.Fprintf(&b, "could not be evaluated: %s\n", oneLine(s.Failed))
	}
	if s.Masked {
		b.WriteString("not comparable: the policies read what is masked\n")
	}
	style := a.style()
	for _, x := range differences {
		about := x.Action
		if about == "" {
			about = "the spec"
		}
		fmt.Fprintf(&b, "\n%s: %s\n", oneLine(about), strings.ToLower(string(x.Change)))
		report.WriteVerdict(&b, "recorded", x.Recorded, style)
		report.WriteVerdict(&b, "now", x.Now, style)
	}
	if len(differences) == 0 {
		b.WriteString("no difference\n")
	}
	tree := report.PolicyTree{DecisionID: s.ID, At: s.At, PolicyDigest: s.Now.PolicyDigest, RecordedDigest: s.Recorded.PolicyDigest, Explanations: s.Policy}
	if len(s.Policy) > 0 {
		tree.WriteText(&b, report.View{Style: style, Fold: report.Folded, Now: a.now()})
	}
	_, err := fmt.Fprint(a.out, b.String())
	return err
}
