package policies

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/printable"
	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/policy/parse"
	"github.com/rampart-gitops/rampart/policy/sandbox"
	"github.com/rampart-gitops/rampart/rego"
)

func policyCheckCommand(a *cmdutil.App) *cobra.Command {
	var output cmdutil.Choice
	var given givenSources
	cmd := &cobra.Command{
		Use:   "check [PATH...]",
		Short: "Find mistakes in policies, their tests and their data",
		Long: `Check reads policies, their tests and their data without evaluating them, and says what can never
have the effect that was meant: fields of the input that do not exist, rules that nothing reads, rules of the wrong
shape, findings under a name of the library's, parameters that no file gives or no policy reads, and all that does
not compile.

Without a PATH it checks the policies and data of each environment of the folder -C. With PATHs, files or folders of
them, .rego files are policies (*_test.rego: tests) and .yaml, .yml and .json files are data; in a folder, files
with objects of Kubernetes or Rampart are left out. With --policy-dir it checks the bot's own policies in a
directory, read as the bot reads it: data is in files named data.yaml, data.yml or data.json, below data by the
folders that they are in.

Each problem is a line on standard output, file:line: message. Exit code 1 with problems, 0 otherwise.`,
		Example: `  rampart policy check
  rampart policy check --env prod
  rampart policy check policies
  rampart policy check policies/gold.rego policies/data.yaml
  rampart policy check --policy-dir /etc/rampart/policies
  rampart policy check -o sarif > policies.sarif`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"rego", "yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var result policyCheck
			given.paths = args
			sets, ok, err := given.sets()
			if err == nil && !ok {
				sets, result.Problems, err = environmentPolicies(a)
			}
			if err != nil {
				return err
			}
			result.check(cmd.Context(), sets)
			return printPolicyCheck(a, output.Value, result)
		},
	}
	cmdutil.AddOutput(cmd, &output, cmdutil.FormatText, cmdutil.FormatJSON, cmdutil.FormatYAML, cmdutil.FormatSARIF)
	given.addTo(cmd)
	return cmd
}

func policySchemaCommand(a *cmdutil.App) *cobra.Command {
	var output cmdutil.Choice
	schemas := map[string]func() string{"input": rego.InputSchema, "config": rego.ConfigSchema}
	cmd := &cobra.Command{
		Use:   "schema [input|config]",
		Short: "Print the JSON Schema of what policies see, or of the library's parameters",
		Long: `Schema prints a JSON Schema (draft-07): of the document that policies see as input, which is the
default, or of the library's parameters below rampart.config in data files (config). opa check and editors take
them.`,
		Example: `  rampart policy schema > input.json && opa check --schema input.json policies
  rampart policy schema config -o yaml`,
		Args:      cmdutil.OneOf(0, cmdutil.SortedKeys(schemas)...),
		ValidArgs: cmdutil.SortedKeys(schemas),
		RunE: func(_ *cobra.Command, args []string) error {
			text := schemas[append(args, "input")[0]]()
			if output.Value == cmdutil.FormatJSON {
				_, err := fmt.Fprint(a.Out, text)
				return err
			}
			var v any
			if err := json.Unmarshal([]byte(text), &v); err != nil {
				return fmt.Errorf("decode schema: %w", err)
			}
			return a.Encode(output.Value, v)
		},
	}
	cmdutil.AddOutput(cmd, &output, cmdutil.FormatJSON, cmdutil.FormatYAML)
	return cmd
}

// policySet is what is compiled together: the policies and data of environments, or what was given.
type policySet struct {
	// environments that have these policies, in the order of rampart.yaml; none for what was given.
	environments []string
	cfg          policy.Config
}

// environmentPolicies are those of the folder -C, with what is wrong in its rampart.yaml.
func environmentPolicies(a *cmdutil.App) ([]policySet, []policyProblem, error) {
	s, err := a.LoadRepository()
	if err != nil {
		return nil, nil, err
	}
	unread, err := s.UnreadPolicies()
	if err != nil {
		return nil, nil, err
	}
	for _, p := range unread { // they may be the bot's own, which are named to it and not here
		a.Say("  %s: %s", s.DisplayPath(p.File), p.Message)
	}
	names := cmdutil.EnvironmentNames(s.World)
	if s.World, err = cmdutil.OnlyEnvironment(s.World, a.Env); err != nil {
		return nil, nil, err
	}
	var problems []policyProblem
	for _, p := range s.World.Problems {
		if p.File == layout.Config && p.Severity == v1alpha1.Error {
			text := v1alpha1.Problem{Path: p.Path, Message: p.Message, Suggestion: p.Suggestion}.Error()
			problems = append(problems, policyProblem{File: s.DisplayPath(p.File), Line: p.Line,
				Message: strings.TrimPrefix(text, ": ")})
		}
	}
	var sets []policySet
	for _, env := range s.World.Environments {
		cfg := cmdutil.PolicyConfig(env)
		cfg.Environments = names
		for i := range cfg.Modules {
			cfg.Modules[i].Path = s.DisplayPath(cfg.Modules[i].Path)
		}
		for i := range cfg.Data {
			cfg.Data[i].Path = s.DisplayPath(cfg.Data[i].Path)
		}
		for i := range cfg.Problems {
			cfg.Problems[i].Path = s.DisplayPath(cfg.Problems[i].Path)
		}
		sets = append(sets, policySet{[]string{env.Environment.Name}, cfg})
	}
	return sets, problems, nil
}

// givenPolicies are those in files and folders.
func givenPolicies(paths []string) ([]policySet, error) {
	var set policySet
	for _, given := range paths {
		found, err := policyFiles(given)
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			text, err := cmdutil.ReadFile(name)
			if err != nil {
				return nil, err
			}
			switch {
			case filepath.Ext(name) == ".rego":
				set.cfg.Modules = append(set.cfg.Modules, parse.Module{Path: name, Source: text})
			case name == given || !isObject(text):
				set.cfg.Data = append(set.cfg.Data, parse.DataFile{Path: name, Content: text})
			}
		}
	}
	if len(set.cfg.Modules)+len(set.cfg.Data) == 0 {
		return nil, fmt.Errorf("%s: no policies and no data", strings.Join(paths, ", "))
	}
	return []policySet{set}, nil
}

// policyFiles gives a file, or the policies and data below a folder. Links are not followed, as in a repository.
func policyFiles(name string) ([]string, error) {
	extensions := []string{".rego", ".yaml", ".yml", ".json"}
	if info, err := os.Stat(name); err == nil && !info.IsDir() && !slices.Contains(extensions, filepath.Ext(name)) {
		return nil, fmt.Errorf("%s: want a policy (.rego) or data (.yaml, .yml, .json)", name)
	}
	return cmdutil.WalkFiles(name, extensions...)
}

// isObject reports whether a file holds objects of Kubernetes or Rampart, which are no data of policies.
func isObject(text string) bool {
	var meta struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string `yaml:"kind"`
	}
	return yaml.NewDecoder(strings.NewReader(text)).Decode(&meta) == nil && meta.APIVersion != "" && meta.Kind != ""
}

type policyCheck struct {
	// Valid says that there are no problems.
	Valid bool `json:"valid"`
	// Environments that were checked, by name; none where files were given.
	Environments []string `json:"environments,omitempty"`
	// Files that were checked.
	Files    int             `json:"files"`
	Problems []policyProblem `json:"problems"`
}

// policyProblem is a mistake in a policy, a test or data.
type policyProblem struct {
	File string `json:"file"`
	Line int    `json:"line"`
	// Check that found it; "" where the file cannot be used at all.
	Check   parse.CheckKind `json:"check,omitempty"`
	Message string          `json:"message"`
	// Environments that it is in, where it is not in all that use the file.
	Environments []string `json:"environments,omitempty"`
}

// String is file:line: message.
func (p policyProblem) String() string {
	out := parse.Problem{Path: p.File, Line: p.Line, Message: printable.Line(p.Message)}.Error()
	if len(p.Environments) > 0 {
		out += " (in " + strings.Join(p.Environments, ", ") + ")"
	}
	return out
}

// check checks each set. What several have in common is said once.
func (c *policyCheck) check(ctx context.Context, sets []policySet) {
	users := map[string][]string{} // of files, by path
	found := map[parse.Problem][]string{}
	for _, set := range sets {
		c.Environments = append(c.Environments, set.environments...)
		own := policy.Layer{Modules: set.cfg.Modules, Data: set.cfg.Data}
		for _, layer := range append([]policy.Layer{own}, set.cfg.Floor...) {
			for _, m := range layer.Modules {
				users[m.Path] = append(users[m.Path], set.environments...)
			}
			for _, f := range layer.Data {
				users[f.Path] = append(users[f.Path], set.environments...)
			}
		}
		for _, p := range sandbox.Check(ctx, set.cfg, cmdutil.PolicyProcess()) {
			found[p] = append(found[p], set.environments...)
		}
	}
	for p, in := range found {
		problem := policyProblem{File: p.Path, Line: p.Line, Check: p.Check, Message: p.Message}
		if len(in) < len(users[p.Path]) {
			problem.Environments = in
		}
		c.Problems = append(c.Problems, problem)
	}
	slices.SortFunc(c.Problems, func(a, b policyProblem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), a.Line-b.Line, cmp.Compare(a.Message, b.Message))
	})
	c.Files = len(users)
	c.Valid = len(c.Problems) == 0
	c.Problems = append([]policyProblem{}, c.Problems...)
}

func printPolicyCheck(a *cmdutil.App, format string, c policyCheck) error {
	var err error
	switch format {
	case cmdutil.FormatText:
		for _, p := range c.Problems {
			if _, err = fmt.Fprintln(a.Out, p); err != nil {
				return err
			}
		}
	case cmdutil.FormatSARIF:
		err = a.Encode(cmdutil.FormatJSON, sarifOfPolicies(c))
	default:
		err = a.Encode(format, c)
	}
	if err != nil {
		return err
	}
	a.Say("files: %d, problems: %d", c.Files, len(c.Problems))
	if c.Files == 0 && c.Valid {
		a.Say("  no environment of %s has policies or data in rampart.yaml: to check files that it does not name, "+
			"give their paths", a.Dir)
	}
	if !c.Valid {
		return &cmdutil.ExitError{Code: cmdutil.ExitFailure}
	}
	return nil
}
