package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/preview"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

func (a *app) renderCommand() *cobra.Command {
	var output choice
	var out string
	cmd := &cobra.Command{
		Use:   "render [PATH...]",
		Short: "Print the manifests of each spec's target version; no Git, no network",
		Long: `Render prints the manifests of the version that each spec asks for, as a YAML stream on standard output, or writes them
below --out in the layout of the repository. Without a PATH it renders the folder -C; "-" is standard input.

What the folder's records say counts: a template that has a recorded version keeps its build ID and its manifest, so that
the result is what the bot writes. Without records it is what a first rollout writes.

A spec needs its connection in the repository, or among the given files. --out deletes nothing and writes nothing outside
of its folder. Exit code 1 if any file has an error; nothing is printed or written then.`,
		Example: `  rampart render | kubectl diff -f -
  rampart render workers/prod/checkout.yaml connection.yaml
  rampart render --env prod --out build/manifests`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := a.loadSpecs(args)
			if err != nil {
				return err
			}
			if s.world, err = onlyEnvironment(s.world, a.env); err != nil {
				return err
			}
			manifests, err := a.render(s)
			if err != nil {
				return err
			}
			if out != "" {
				files := make([]rollout.TextFile, len(manifests))
				for i, m := range manifests {
					files[i] = rollout.TextFile{Path: m.Path, Text: m.Data}
				}
				return a.writeTree(out, files)
			}
			return a.printManifests(output.value, manifests)
		},
	}
	a.addOutput(cmd, &output, formatText, formatJSON, formatYAML)
	cmd.Flags().StringVar(&out, "out", "", "folder to write the manifests to")
	return cmd
}

// manifest is one rendered file.
type manifest struct {
	Environment string `json:"environment"`
	Deployment  string `json:"deployment"`
	BuildID     string `json:"buildID"`
	Path        string `json:"path"`
	Data        string `json:"data"`
}

// render renders the target version of every spec, sorted by path.
func (a *app) render(s specs) ([]manifest, error) {
	if err := a.sayProblems(s.problems(), "nothing rendered: the files have errors"); err != nil {
		return nil, err
	}
	var errs []error
	out := []manifest{}
	for _, env := range s.world.Environments {
		for _, d := range env.Deployments {
			if d.Spec == nil {
				continue
			}
			m, err := preview.NewTarget(d)
			var missing *preview.NoConnectionError
			if errors.As(err, &missing) {
				err = fmt.Errorf("%s: %w: add its file to the paths", s.show(d.SpecPath), err)
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
		a.sayNoSpecs(s.world, cmp.Or(s.base, "the given files"))
	}
	slices.SortFunc(out, func(a, b manifest) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

// sayProblems says what is wrong, and gives an error with the consequence if something is an Error.
func (a *app) sayProblems(problems []v1alpha1.Problem, consequence string) error {
	for _, p := range problems {
		a.say("%s", problemLine(p))
	}
	if v1alpha1.HasErrors(problems) {
		return errors.New(consequence)
	}
	return nil
}

func (a *app) printManifests(format string, manifests []manifest) error {
	if format != formatText {
		return a.encode(format, manifests)
	}
	var b bytes.Buffer
	for _, m := range manifests {
		fmt.Fprintf(&b, "---\n# Source: %s\n%s", m.Path, m.Data)
	}
	_, err := a.out.Write(b.Bytes())
	return err
}

// writeTree writes files below a folder, which it makes if need be: all or none. What is there with other content is
// overwritten.
func (a *app) writeTree(dir string, files []rollout.TextFile) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	set := newFileSet()
	defer func() { err = errors.Join(err, set.close()) }()
	written, _, err := set.add(dir, files, true)
	if err != nil {
		return err
	}
	if err := set.write(); err != nil {
		return fmt.Errorf("below %s: %w", dir, err)
	}
	a.say("%d of %d manifests written below %s, the others were as they are", len(written), len(files), dir)
	return nil
}
