package specs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/internal/preview"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

func renderCommand(a *cmdutil.App) *cobra.Command {
	var output cmdutil.Choice
	var out string
	cmd := &cobra.Command{
		Use:   "render [PATH...]",
		Short: "Print the manifests of each spec's target version; no Git, no network",
		Long: `Render prints the manifests of the version that each spec asks for, as a YAML stream on standard
output, or writes them below --out in the layout of the repository. Without a PATH it renders the folder -C; "-" is
standard input.

What the folder's records say counts: a template that has a recorded version keeps its build ID and its manifest, so
that the result is what the bot writes. Without records it is what a first rollout writes.

A spec needs its connection in the repository, or among the given files. --out deletes nothing and writes nothing
outside of its folder. Exit code 1 if any file has an error; nothing is printed or written then.`,
		Example: `  rampart render | kubectl diff -f -
  rampart render workers/prod/checkout.yaml connection.yaml
  rampart render --env prod --out build/manifests`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			args, err := a.EnterRepository(args)
			if err != nil {
				return err
			}
			s, err := a.LoadSpecs(args)
			if err != nil {
				return err
			}
			if s.World, err = cmdutil.OnlyEnvironment(s.World, a.Env); err != nil {
				return err
			}
			manifests, err := render(a, s)
			if err != nil {
				return err
			}
			if out != "" {
				files := make([]rollout.TextFile, len(manifests))
				for i, m := range manifests {
					files[i] = rollout.TextFile{Path: m.Path, Text: m.Data}
				}
				return cmdutil.WriteTree(a, out, files)
			}
			return printManifests(a, output.Value, manifests)
		},
	}
	cmdutil.AddOutput(cmd, &output, cmdutil.FormatText, cmdutil.FormatJSON, cmdutil.FormatYAML)
	cmd.Flags().StringVar(&out, "out", "", "folder to write the manifests to")
	return cmd
}

type manifest struct {
	Environment string `json:"environment"`
	Deployment  string `json:"deployment"`
	BuildID     string `json:"buildID"`
	Path        string `json:"path"`
	Data        string `json:"data"`
}

// render renders the target version of every spec, sorted by path.
func render(a *cmdutil.App, s cmdutil.Specs) ([]manifest, error) {
	if err := a.SayProblems(s.Problems(), "nothing rendered: the files have errors"); err != nil {
		return nil, err
	}
	var errs []error
	out := []manifest{}
	for _, env := range s.World.Environments {
		for _, d := range env.Deployments {
			if d.Spec == nil {
				continue
			}
			m, err := preview.NewTarget(d)
			var missing *preview.NoConnectionError
			if errors.As(err, &missing) {
				const field = "spec.workerOptions.connectionRef.name"
				line, _ := s.Position(d, field)
				err = fmt.Errorf("%s:%d: %s: %w", s.DisplayPath(d.SpecPath), line, field, err)
				if !s.WholeRepository {
					err = fmt.Errorf("%w: add its file to the paths", err)
				}
			}
			errs = append(errs, err)
			for _, f := range m.Files {
				out = append(out, manifest{d.Environment.Name, d.Deployment.String(), m.BuildID, f.Path, f.Text})
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		a.SayNoSpecs(s.World, cmp.Or(s.Base, "the given files"))
	}
	slices.SortFunc(out, func(a, b manifest) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

func printManifests(a *cmdutil.App, format string, manifests []manifest) error {
	if format != cmdutil.FormatText {
		return a.Encode(format, manifests)
	}
	var b bytes.Buffer
	for _, m := range manifests {
		fmt.Fprintf(&b, "---\n# Source: %s\n%s", m.Path, m.Data)
	}
	_, err := a.Out.Write(b.Bytes())
	return err
}
