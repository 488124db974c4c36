package policies

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/internal/auditlog"
	"github.com/rampart-gitops/rampart/internal/mask"
	"github.com/rampart-gitops/rampart/internal/printable"
	"github.com/rampart-gitops/rampart/internal/report"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy/sandbox"
)

// backtest judges decisions again, some at a time.
type backtest struct {
	judges       *cmdutil.Judges
	environments map[string]rollout.EnvironmentWorld
	// env is the only environment that is looked at; "": all.
	env   string
	names []string

	mu sync.Mutex
	// engines by their environment and the rules that may be waived beside those of the bot's configuration.
	engines map[string]*sandbox.Engine
	result  report.Backtest
}

// newBacktest compiles the policies of the environments of the folder -C. All of them have to compile.
func newBacktest(ctx context.Context, a *cmdutil.App, names []string) (*backtest, error) {
	world, err := soundWorld(a)
	if err != nil {
		return nil, err
	}
	judges, err := a.Judges(ctx)
	if err != nil {
		return nil, err
	}
	b := &backtest{judges: judges, env: a.Env, names: names, environments: map[string]rollout.EnvironmentWorld{},
		engines: map[string]*sandbox.Engine{}}
	broken := 0
	for _, env := range world.Environments {
		b.environments[env.Environment.Name] = env
		e, _ := b.engine(env.Environment.Name, rollout.Verdicts{})
		for _, p := range e.Problems() {
			a.Say("%s", printable.Line(p.Error()))
			broken++
		}
	}
	if broken > 0 {
		judges.Close()
		return nil, errors.New("the policies cannot be used: see rampart policy check")
	}
	return b, nil
}

// engine is the policies of an environment. What was waived when the verdicts were recorded may be waived again:
// another configuration of the bot let it be then.
func (b *backtest) engine(environment string, recorded rollout.Verdicts) (*sandbox.Engine, bool) {
	env, ok := b.environments[environment]
	if !ok {
		return nil, false
	}
	waived := map[string]bool{}
	for _, v := range append(slices.Collect(maps.Values(recorded.Actions)), recorded.Spec) {
		for _, f := range v.Findings {
			if f.Waived != "" {
				waived[f.Rule] = true
			}
		}
	}
	rules := cmdutil.SortedKeys(waived)
	key := environment + "\n" + strings.Join(rules, "\n")
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.engines[key]; !ok {
		judges := b.judges
		if len(rules) > 0 {
			judges = judges.WithWaivable(rules)
		}
		b.engines[key] = judges.Engine(env)
	}
	return b.engines[key], true
}

// rejudged is a decision that was judged again.
type rejudged struct {
	in          cmdutil.RecordedInput
	engine      *sandbox.Engine
	now         rollout.Verdicts
	differences []report.Difference
	// failed says why it could not be evaluated; masked that it is not comparable.
	failed string
	masked bool
}

// judge judges a decision again; nil: it is of an environment that is not looked at. Only that ctx ended is an error.
func (b *backtest) judge(ctx context.Context, d auditlog.Decision) (*rejudged, error) {
	in, unread := readable(d)
	out := &rejudged{in: in, failed: unread}
	if unread != "" {
		return out, nil
	}
	if b.env != "" && in.Document.Environment() != b.env {
		return nil, nil
	}
	var ok bool
	if out.engine, ok = b.engine(in.Document.Environment(), *in.Verdicts); !ok {
		out.failed = fmt.Sprintf("there is no environment %q", in.Document.Environment())
		return out, nil
	}
	out.now = out.engine.JudgeDocument(ctx, in.Document)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out.failed = failure(out.now)
	out.differences = report.Differences(*in.Verdicts, out.now)
	if len(d.Masked) > 0 {
		var err error
		if out.masked, err = out.engine.ReadMasked(ctx, in.Document, mask.Mark, d.Masked); err != nil {
			out.failed = err.Error()
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return out, nil
}

// readable reads what a decision is about and its result, or says why it cannot.
func readable(d auditlog.Decision) (cmdutil.RecordedInput, string) {
	in, err := cmdutil.RecordedInputOf(d)
	switch {
	case err != nil:
		return in, err.Error()
	case in.Verdicts == nil:
		return in, "it has no result"
	}
	return in, ""
}

// failure is why verdicts are no answer: what a policy failed with; "" where they are one. A fact that was not known is
// an answer.
func failure(v rollout.Verdicts) string {
	all := []rollout.Verdict{v.Spec}
	for _, id := range cmdutil.SortedKeys(v.Actions) {
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

// maxRows bounds what is kept of decisions that differ; beyond that they are counted.
const maxRows = 10_000

func (b *backtest) count(d auditlog.Decision, about rollout.Name, got rejudged) {
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
		row.Action, row.Change = cmp.Or(x.Action, "spec"), x.Change
		row.Recorded, row.Now = new(report.SumOf(x.Recorded)), new(report.SumOf(x.Now))
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
