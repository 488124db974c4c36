package policies

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/internal/auditlog"
	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/printable"
	"github.com/rampart-gitops/rampart/internal/report"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/policy/sandbox"
)

type evalFlags struct {
	output               cmdutil.Choice
	input, action, query string
	policies             []string
}

func policyEvalCommand(a *cmdutil.App) *cobra.Command {
	var f evalFlags
	cmd := &cobra.Command{
		Use:   "eval --input FILE [NAME]",
		Short: "Judge one recorded input by the policies as they are",
		Long: `Eval judges an input by the policies of its environment in the folder -C (or of --env), or by those
of --policy alone, with the library. The input is one of these, as JSON:

- what policies see, with one action, or with a list of actions as it is recorded;
- recorded decisions, one on each line: the last one is judged, with a NAME the last one about it;
- what rampart observe printed: the worker deployment NAME is judged, and can be left out if there is only one.

An input with fields or values that policies never see is an error, and of a recorded decision a warning.

It prints what policy says of the spec and of each action, with each finding. With --query it prints the value of a Rego
expression in place of that.

Exit code 2 if policy refuses the spec or an action that is shown: it holds it, turns it back, or asks for approval;
or if the expression is undefined. 1 for an error, 0 otherwise.`,
		Example: `  rampart policy eval --input input.json
  rampart policy eval --input decisions.jsonl payments/checkout --action Ramp/v3@25% -o json
  rampart observe | rampart policy eval --input - payments/checkout
  rampart policy eval --input input.json --action Ramp/v3@25% --query 'input.canary.candidate.counted'
  tail -n 1 decisions.jsonl | rampart policy eval --input - --policy policies/`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.CompleteName,
		RunE: func(cmd *cobra.Command, args []string) error {
			return policyEval(cmd.Context(), a, strings.Join(args, ""), f)
		},
	}
	cmdutil.AddOutput(cmd, &f.output, cmdutil.FormatText, cmdutil.FormatJSON, cmdutil.FormatYAML)
	cmdutil.AddPolicies(a, cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.input, "input", "",
		`file with the input, with recorded decisions, or with what rampart observe printed; "-" is standard input`)
	flags.StringVar(&f.action, "action", "", "look at one action only, by its ID")
	flags.StringVar(&f.query, "query", "", "print the value of a Rego expression on the input (without --action on "+
		"that about the one action, or else about the spec)")
	flags.StringArrayVar(&f.policies, "policy", nil,
		"file or folder of policies and data to judge by, in place of the environment's; may be repeated")
	return cmd
}

// evaluation is what policy says of an input.
type evaluation struct {
	Environment string    `json:"environment"`
	Deployment  string    `json:"deployment"`
	Now         time.Time `json:"now"`
	// DecisionID of a recorded decision.
	DecisionID string `json:"decisionID,omitempty"`
	// Refused says that policy refuses the spec or an action.
	Refused bool `json:"refused"`
	rollout.Verdicts
	// order of the actions.
	order []string
}

func policyEval(ctx context.Context, a *cmdutil.App, name string, f evalFlags) error {
	if f.input == "" {
		return errors.New("--input is missing: a file with what policies see, or with recorded decisions")
	}
	in, err := readJudged(ctx, a, name, f.input)
	if err != nil {
		return err
	}
	if err := fits(a, in, f.input); err != nil {
		return err
	}
	engine, closeAll, err := engineFor(ctx, a, in.Document, f.policies)
	if err != nil {
		return err
	}
	defer closeAll()
	if f.query != "" {
		return ask(ctx, a, engine, in.Document, f)
	}
	out := evaluation{Environment: in.Document.Environment(), Deployment: in.Document.Deployment().String(),
		Now: in.Document.Now(), Verdicts: engine.JudgeDocument(ctx, in.Document), order: in.Document.Actions()}
	if err := ctx.Err(); err != nil {
		return err
	}
	if in.Decision != nil {
		out.DecisionID = in.Decision.ID
	}
	if f.action != "" {
		if err := out.only(f.action); err != nil {
			return err
		}
	}
	out.Refused = refuses(out.Spec) && f.action == ""
	for _, v := range out.Actions {
		out.Refused = out.Refused || refuses(v)
	}
	err = a.Print(f.output.Value, out, func() error { return printEvaluation(a, out) })
	if err == nil && out.Refused {
		return cmdutil.Pending(nil)
	}
	return err
}

// fits refuses an input with what policies never see. A recorded decision may be of another version: it is judged all
// the same.
func fits(a *cmdutil.App, in cmdutil.RecordedInput, file string) error {
	misfits := in.Document.Misfits()
	for _, m := range misfits {
		a.Say("%s: %s", file, printable.Line(m))
	}
	if in.Decision == nil && len(misfits) > 0 {
		return fmt.Errorf("%s does not fit the input of policies: rampart policy schema prints what one may have", file)
	}
	return nil
}

func refuses(v rollout.Verdict) bool { return v.Effect.Strictness() > rollout.Warn.Strictness() }

func (e *evaluation) only(action string) error {
	v, ok := e.Actions[action]
	if !ok {
		return fmt.Errorf("the input has no action %q that policy is asked about; it has: %s", action,
			strings.Join(e.order, ", "))
	}
	e.Actions, e.order = map[string]rollout.Verdict{action: v}, []string{action}
	return nil
}

// readJudged reads an input: a document, or the last of recorded decisions about a name.
func readJudged(ctx context.Context, a *cmdutil.App, name, file string) (cmdutil.RecordedInput, error) {
	data, err := a.ReadInput(file)
	if err != nil {
		return cmdutil.RecordedInput{}, fmt.Errorf("read --input: %w", err)
	}
	var shape struct {
		Input        json.RawMessage `json:"input"`
		Action       json.RawMessage `json:"action"`
		Actions      json.RawMessage `json:"actions"`
		Environments json.RawMessage `json:"environments"`
	}
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&shape); err != nil {
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) {
			err = fmt.Errorf("this is a JSON %s", kind.Value)
		}
		return cmdutil.RecordedInput{}, fmt.Errorf("read --input %s: want a JSON object: an input, a snapshot as "+
			"rampart observe prints it without -o yaml, or a recorded decision: %w", file, err)
	}
	if shape.Input != nil && shape.Action == nil && shape.Actions == nil {
		return lastJudged(ctx, name, cmdutil.DecisionsFrom(bytes.NewReader(data)))
	}
	if shape.Environments != nil {
		document, err := observedInput(a, name, data)
		if err != nil {
			return cmdutil.RecordedInput{}, fmt.Errorf("read --input %s: %w", file, err)
		}
		return cmdutil.RecordedInput{Document: document}, nil
	}
	document, err := policy.DecodeDocument(data)
	if err != nil {
		return cmdutil.RecordedInput{}, fmt.Errorf("read --input %s: %w", file, err)
	}
	if !isNamed(name, document.Deployment()) {
		return cmdutil.RecordedInput{}, fmt.Errorf("read --input %s: it is about %s, not %s", file,
			document.Deployment(), name)
	}
	return cmdutil.RecordedInput{Document: document}, nil
}

// observedInput is what policies see of a worker deployment that was observed.
func observedInput(a *cmdutil.App, name string, data []byte) (*policy.Document, error) {
	world, err := cmdutil.DecodeSnapshot(data)
	if err != nil {
		return nil, err
	}
	if one, err := cmdutil.OnlyEnvironment(world, a.Env); err == nil { // else --env only says which policies judge
		world = one
	}
	all, err := cmdutil.Deployments(world, nil)
	if err != nil {
		return nil, err
	}
	if name == "" {
		if len(all) != 1 {
			return nil, fmt.Errorf("it holds %d worker deployments: name the one to judge, as rampart policy eval "+
				"--input FILE NAMESPACE/NAME", len(all))
		}
		name = all[0].Deployment.String()
	}
	s, err := cmdutil.Deployment(world, name)
	if err != nil {
		return nil, err
	}
	v := plan.Look(s)
	return policy.NewDocument(v.JudgedBy(), v.Propose())
}

func lastJudged(ctx context.Context, name string, source cmdutil.DecisionSource) (cmdutil.RecordedInput, error) {
	var last *auditlog.Decision
	for d, err := range source.Decisions(ctx, auditlog.Filter{}) {
		if err != nil {
			return cmdutil.RecordedInput{}, err
		}
		about, err := d.Deployment()
		if err != nil {
			return cmdutil.RecordedInput{}, err
		}
		if isNamed(name, about) && (last == nil || !d.Timestamp.Before(last.Timestamp)) {
			last = &d
		}
	}
	if last == nil {
		return cmdutil.RecordedInput{}, fmt.Errorf("there is no decision about %q", name)
	}
	return cmdutil.RecordedInputOf(*last)
}

// isNamed reports whether a person's name for a worker deployment, namespace/name or the name alone, is its; "" is
// any's.
func isNamed(name string, d rollout.Name) bool {
	return name == "" || name == d.String() || name == d.Name
}

// engineFor compiles the policies that a document is judged by. These are those of paths, or of its environment in the
// folder -C with those of the bot's own configuration. closeAll lets go of them.
func engineFor(ctx context.Context, a *cmdutil.App, d *policy.Document,
	paths []string) (engine *sandbox.Engine, closeAll func(), err error) {
	if len(paths) > 0 {
		sets, err := givenPolicies(paths)
		if err != nil {
			return nil, nil, err
		}
		cfg := sets[0].cfg
		cfg.Waivable = a.WaivableRules()
		engine = sandbox.Compile(cfg, cmdutil.PolicyProcess)
		return engine, engine.Close, nil
	}
	world, err := soundWorld(a)
	if err != nil {
		return nil, nil, err
	}
	judges, err := a.Judges(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, env := range world.Environments {
		if name := env.Environment.Name; name == d.Environment() || name == a.Env {
			return judges.Engine(env), judges.Close, nil
		}
	}
	judges.Close()
	err = cmdutil.NotFound("environment", d.Environment(), cmdutil.EnvironmentNames(world))
	return nil, nil, fmt.Errorf("%w: choose one with --env, or give policies with --policy", err)
}

func printEvaluation(a *cmdutil.App, e evaluation) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s) at %s\n", printable.Line(e.Deployment), printable.Line(e.Environment),
		e.Now.Format(time.RFC3339))
	style := a.Style()
	report.WriteVerdict(&b, "the spec", e.Spec, style)
	for _, id := range e.order {
		if v, ok := e.Actions[id]; ok {
			report.WriteVerdict(&b, id, v, style)
		}
	}
	_, err := fmt.Fprint(a.Out, b.String())
	return err
}

// ask prints the value of an expression.
func ask(ctx context.Context, a *cmdutil.App, engine *sandbox.Engine, d *policy.Document, f evalFlags) error {
	if ids := d.Actions(); f.action == "" && len(ids) == 1 {
		f.action = ids[0]
	}
	answers, err := engine.Ask(ctx, d, f.action, f.query)
	if err != nil {
		return fmt.Errorf("--query: %w", err)
	}
	if len(answers) == 0 {
		a.Say("undefined")
		return cmdutil.Pending(nil)
	}
	if value, ok := answers[0]["result"]; ok && len(answers) == 1 && len(answers[0]) == 1 {
		return encodeAnswer(a, f.output.Value, value)
	}
	return encodeAnswer(a, f.output.Value, answers)
}

// encodeAnswer prints JSON where text is asked for: an answer has no other form.
func encodeAnswer(a *cmdutil.App, format string, v any) error {
	if format == cmdutil.FormatText {
		format = cmdutil.FormatJSON
	}
	return a.Encode(format, v)
}
