package specs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/printable"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/policy/parse"
	"github.com/rampart-gitops/rampart/policy/sandbox"
)

func validateCommand(a *cmdutil.App) *cobra.Command {
	var output cmdutil.Choice
	var base string
	cmd := &cobra.Command{
		Use:   "validate [PATH...]",
		Short: "Check specs, configuration and policies; no Temporal",
		Long: `Validate decodes specs, connections, waivers and rampart.yaml strictly, compiles the policies, and
asks the policies of package rampart.spec about each spec. Without a PATH it checks the folder -C; "-" is standard
input.

A -C inside of a Git checkout means the nearest folder above with a rampart.yaml, and what is below -C. PATHs count from
the working directory. Where -C has a rampart.yaml and each PATH is below it, the specs belong to its environments, with
their policies and connections. Else the given files are all there is, and the default policies apply.

With --base the folder -C, a Git checkout, is a change on top of a commit, such as a pull request on its branch:
specs are those of the folder; environments, policies, data and waivers that judge them are those of the commit, so
that a change cannot loosen what it is judged by. The change's own rampart.yaml and policies are checked for errors,
and judge nothing yet. A spec that is in no environment of the commit is an error. What is wrong in the commit's own
is a warning.

Nothing is asked over the network but for the bot's own --policy-bundle.

Each problem is a line on standard output, file:line: path: message. Exit code 1 with errors, 2 when only policy
refuses, 0 otherwise, warnings or not. Of the whole folder waivers that cannot have an effect are warned of. What
only rampart policy check finds in policies is a warning: the bot goes on with it.`,
		Example: `  rampart validate
  rampart validate workers/prod/checkout.yaml
  rampart validate --base origin/main
  kustomize build overlays/prod | rampart validate -
  rampart validate -o sarif > rampart.sarif`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if base != "" && len(args) > 0 {
				return errors.New("--base is about all of the folder -C: it goes with no PATH")
			}
			args, err := a.EnterRepository(args)
			if err != nil {
				return err
			}
			judges, err := a.Judges(cmd.Context())
			if err != nil {
				return err
			}
			defer judges.Close()
			if base != "" {
				v, err := validateChange(cmd.Context(), a, base, judges)
				if err != nil {
					return err
				}
				return printValidation(a, output.Value, v)
			}
			s, err := a.LoadSpecs(args)
			if err != nil {
				return err
			}
			if !s.WholeRepository {
				a.Say("no rampart.yaml is about these files: the default policies judge them")
			}
			if len(args) == 0 {
				if err := s.LoadWaivers(); err != nil {
					return err
				}
			}
			s.Environments = cmdutil.EnvironmentNames(s.World)
			if s.World, err = cmdutil.OnlyEnvironment(s.World, a.Env); err != nil {
				return err
			}
			v, err := validate(cmd.Context(), a, s, judges)
			if err != nil {
				return err
			}
			if v.Deployments == 0 && !v1alpha1.HasErrors(v.Problems) {
				a.SayNoSpecs(s.World, cmp.Or(strings.Join(args, ", "), a.Dir))
			}
			return printValidation(a, output.Value, v)
		},
	}
	cmdutil.AddOutput(cmd, &output, cmdutil.FormatText, cmdutil.FormatJSON, cmdutil.FormatYAML, cmdutil.FormatSARIF)
	cmdutil.AddPolicies(a, cmd)
	cmd.Flags().StringVar(&base, "base", "", "commit whose environments, policies, data and waivers judge: a branch "+
		"such as origin/main, a tag, a whole hash")
	cmdutil.CompleteFlag(cmd, "base", a.CompleteRevisions)
	return cmd
}

// validation is what was found.
type validation struct {
	// Valid says that there are no errors and that no policy refuses.
	Valid bool `json:"valid"`
	// Deployments that were checked.
	Deployments int                `json:"deployments"`
	Problems    []v1alpha1.Problem `json:"problems"`
	Findings    []specFinding      `json:"findings"`
}

// specFinding is a rule of policy that fired on a spec.
type specFinding struct {
	Environment string `json:"environment"`
	Deployment  string `json:"deployment"`
	File        string `json:"file"`
	Line        int    `json:"line"`
	rollout.Finding
}

func (f specFinding) refuses() bool {
	return f.Waived == "" && f.Effect.Strictness() > rollout.Warn.Strictness()
}

// String is file:line: deployment: message (rule).
func (f specFinding) String() string {
	out := f.File
	if f.Line > 0 {
		out += fmt.Sprintf(":%d", f.Line)
	}
	out += fmt.Sprintf(": %s: %s (%s: %s)", f.Deployment, printable.Line(f.Text()), printable.Line(f.Rule), f.Effect)
	if f.Waived != "" {
		out += " [waived by " + printable.Line(f.Waived) + "]"
	}
	return out
}

// validate finds what is wrong with specs.
func validate(ctx context.Context, a *cmdutil.App, s cmdutil.Specs, judges *cmdutil.Judges) (validation, error) {
	out := validation{Problems: slices.Concat(s.Problems(), floorProblems(ctx, judges),
		cmdutil.UselessWaivers(s, judges)), Findings: []specFinding{}}
	for _, env := range s.World.Environments {
		engine := judges.Engine(env)
		out.Problems = append(out.Problems, policyProblems(ctx, engine, s, env)...)
		for _, d := range env.Deployments {
			out.Deployments++
			out.Problems = append(out.Problems, around(s, d)...)
			if d.Spec != nil {
				d.Now = a.Now()
				out.Findings = append(out.Findings, findings(ctx, engine, s, d)...)
			}
			if err := ctx.Err(); err != nil {
				return out, err // what policy says is cut short, too
			}
		}
	}
	slices.SortStableFunc(out.Findings, func(a, b specFinding) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, strings.Compare(a.Rule, b.Rule),
			strings.Compare(a.Message, b.Message))
	})
	out.conclude()
	return out, nil
}

// conclude sorts the problems, and says what all of it comes to.
func (out *validation) conclude() {
	cmdutil.SortProblems(out.Problems)
	out.Problems = slices.Compact(out.Problems)
	if out.Problems == nil {
		out.Problems = []v1alpha1.Problem{}
	}
	out.Valid = !v1alpha1.HasErrors(out.Problems) && !slices.ContainsFunc(out.Findings, specFinding.refuses)
}

// policyProblems are what is wrong with an environment's policies and data. Errors are in files that the bot cannot
// use, for which it holds; warnings tell where it goes on and something has no effect.
func policyProblems(ctx context.Context, engine *sandbox.Engine, s cmdutil.Specs,
	env rollout.EnvironmentWorld) []v1alpha1.Problem {
	cfg := cmdutil.PolicyConfig(env)
	cfg.Environments = s.Environments
	out := checked(ctx, engine.Problems(), cfg)
	for i := range out {
		out[i].File = s.DisplayPath(out[i].File)
	}
	return out
}

// floorProblems are what is wrong with the bot's own policies.
func floorProblems(ctx context.Context, j *cmdutil.Judges) []v1alpha1.Problem {
	cfg := policy.Config{Floor: j.Pinned().Layers}
	if len(cfg.Floor) == 0 {
		return nil
	}
	engine := sandbox.Compile(cfg, cmdutil.PolicyProcess)
	defer engine.Close()
	return checked(ctx, engine.Problems(), cfg)
}

// checked are the problems of policies; errors in the files that an engine found broken, and where a parameter has no
// effect for being misplaced.
func checked(ctx context.Context, broken []parse.Problem, cfg policy.Config) []v1alpha1.Problem {
	var out []v1alpha1.Problem
	for _, p := range sandbox.Check(ctx, cfg, cmdutil.PolicyProcess()) {
		severity := v1alpha1.Warning
		if p.Check == parse.CheckMisplaced || slices.ContainsFunc(broken, func(b parse.Problem) bool {
			return b.Path == p.Path
		}) {
			severity = v1alpha1.Error
		}
		out = append(out, v1alpha1.Problem{Severity: severity, File: p.Path, Line: p.Line, Message: p.Message})
	}
	return out
}

// around says what is wrong around a spec: with its connection and its record.
func around(s cmdutil.Specs, d rollout.Snapshot) []v1alpha1.Problem {
	var out []v1alpha1.Problem
	routing := s.DisplayPath(path.Join(d.Record.Dir, layout.Routing))
	if p := d.Record.RoutingProblem; p != nil {
		out = append(out, v1alpha1.Problem{Severity: v1alpha1.Error, File: routing, Message: p.Message})
	}
	switch {
	case d.Spec == nil && len(d.Problems) == 0 && d.Record.Routing != nil:
		out = append(out, v1alpha1.Problem{Severity: v1alpha1.Warning, File: routing,
			Message: fmt.Sprintf("the spec of %s is gone: its versions are kept", d.Deployment)})
	case d.Spec != nil && d.Connection == nil && !s.HasBrokenConnection(d):
		severity, where := v1alpha1.Error, "in the repository"
		if !s.WholeRepository {
			severity, where = v1alpha1.Warning, "among the given files"
		}
		p := specWarning(s, d, "spec.workerOptions.connectionRef.name", "%s is not %s",
			d.Spec.Spec.WorkerOptions.ConnectionRef.In(d.Deployment.Namespace), where)
		p.Severity = severity
		out = append(out, p)
	}
	out = append(out, ownTrust(s, d)...)
	out = append(out, waitingScalers(s, d)...)
	out = append(out, syncWaves(s, d)...)
	if n := replicasOf(d); n != nil && *n > 0 {
		for _, t := range d.Resources {
			if t.Scales && t.Problem == nil {
				out = append(out, specWarning(s, d, "spec.replicas", "%s (%s) scales the versions and owns the "+
					"number: it is left out of their manifests. Remove it here", t.Name, s.DisplayPath(t.Path)))
			}
		}
	}
	return out
}

// specWarning is a warning about a field of a spec.
func specWarning(s cmdutil.Specs, d rollout.Snapshot, field, format string, args ...any) v1alpha1.Problem {
	p := v1alpha1.Problem{Severity: v1alpha1.Warning, File: s.DisplayPath(d.SpecPath), Path: field,
		Message: fmt.Sprintf(format, args...)}
	p.Line, p.Column = s.Position(d, field)
	return p
}

// ownTrust warns of containers that name certificates to trust themselves where their connection does too.
func ownTrust(s cmdutil.Specs, d rollout.Snapshot) []v1alpha1.Problem {
	if d.Spec == nil || d.Connection == nil || d.Connection.Spec.CACertSecret() == "" {
		return nil
	}
	var template corev1.PodTemplateSpec
	if json.Unmarshal(d.Spec.Spec.Template.Raw, &template) != nil {
		return nil // it was said of the spec
	}
	var out []v1alpha1.Problem
	for i, c := range template.Spec.Containers {
		for j, e := range c.Env {
			if e.Name == v1alpha1.CAPathEnv {
				out = append(out, specWarning(s, d, fmt.Sprintf("spec.template.spec.containers[%d].env[%d].name", i, j),
					"%s counts, and not the Secret %s in tls.caCertSecretRef of its connection (%s): remove one of "+
						"them", e.Name, d.Connection.Spec.CACertSecret(), s.DisplayPath(d.ConnectionPath)))
			}
		}
	}
	return out
}

// replicasOf is the number of replicas that a spec asks for, nil for none.
func replicasOf(d rollout.Snapshot) *int32 {
	if d.Spec == nil {
		return nil
	}
	return d.Spec.Spec.Replicas
}

// findings are the rules that fired on a spec. What is broken in the policies themselves is reported once, not for each
// spec.
func findings(ctx context.Context, engine *sandbox.Engine, s cmdutil.Specs, d rollout.Snapshot) []specFinding {
	var out []specFinding
	for _, f := range engine.JudgeSpec(ctx, d).Findings {
		if f.Location != "" && slices.ContainsFunc(engine.Problems(), func(p parse.Problem) bool {
			return p.Location() == f.Location
		}) {
			continue
		}
		var evidence struct {
			Path string `json:"path"`
		}
		if json.Unmarshal(f.Evidence, &evidence) != nil || evidence.Path == "" {
			evidence.Path = "spec"
		}
		found := specFinding{Environment: d.Environment.Name, Deployment: d.Deployment.String(),
			File: s.DisplayPath(d.SpecPath), Finding: f}
		found.Line, _ = s.Position(d, evidence.Path)
		out = append(out, found)
	}
	return out
}

func printValidation(a *cmdutil.App, format string, v validation) error {
	var err error
	switch format {
	case cmdutil.FormatSARIF:
		err = a.Encode(cmdutil.FormatJSON, sarifOf(v))
	case cmdutil.FormatText:
		err = printProblems(a, v)
	default:
		err = a.Encode(format, v)
	}
	if err != nil {
		return err
	}
	errs, refusals := 0, 0
	for _, p := range v.Problems {
		if p.Severity == v1alpha1.Error {
			errs++
		}
	}
	for _, f := range v.Findings {
		if f.refuses() {
			refusals++
		}
	}
	a.Say("worker deployments: %d, errors: %d, refused by policy: %d, warnings: %d", v.Deployments, errs, refusals,
		len(v.Problems)+len(v.Findings)-errs-refusals)
	switch {
	case errs > 0:
		return &cmdutil.ExitError{Code: cmdutil.ExitFailure}
	case refusals > 0:
		return cmdutil.Pending(nil)
	}
	return nil
}

func printProblems(a *cmdutil.App, v validation) error {
	for _, p := range v.Problems {
		if _, err := fmt.Fprintln(a.Out, cmdutil.ProblemLine(p)); err != nil {
			return err
		}
	}
	for _, f := range v.Findings {
		if _, err := fmt.Fprintln(a.Out, f); err != nil {
			return err
		}
	}
	return nil
}
