package takeover

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/index"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/takeover"
)

type importFlags struct {
	output                        cmdutil.Choice
	specs, records                string
	deployments                   []string
	temporalNamespace, connection string
	overwrite, dryRun             bool
}

func importCommand(a *cmdutil.App) *cobra.Command {
	f := new(importFlags)
	cmd := &cobra.Command{
		Use:   "import [FILE...]",
		Short: "Make files of live objects: of the in-cluster controller, or of plain Deployments",
		Long: `Import reads live objects, as kubectl get -o yaml or -o json prints them, from files or standard
input, and writes what the bot goes on from into the folder -C: specs, connections, templates, and for each worker
deployment of the in-cluster controller the record with the manifests of its versions. Names, labels, selectors,
build IDs and pod templates stay, so that nothing restarts when they are applied. It asks neither the cluster nor
Temporal. Give it the worker deployments of a namespace with their connections and all Deployments.

With --deployment a Deployment without versions becomes a spec. The Deployment itself is not touched: its workers go
on until those of the first version have taken over.

A spec, connection or template that the repository has already, in whichever file, is not written again, if it says
the same. A file with other content is overwritten with --overwrite only. With one error nothing is written. Exit
code 1 then; with --dry-run 2 if there is something to write.`,
		Example: `  kubectl get -n payments twd,tconn,deployments -o yaml | rampart import
  rampart import live.yaml --env prod --dry-run
  kubectl get -n payments deployment checkout -o yaml | rampart import --deployment checkout --temporal-namespace payments --connection temporal`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return importLive(a, args, f) },
	}
	cmdutil.AddOutput(cmd, &f.output, cmdutil.FormatText, cmdutil.FormatJSON, cmdutil.FormatYAML)
	fs := cmd.Flags()
	fs.StringVar(&f.specs, "specs", "", "folder for specs, connections and templates, from the repository's root "+
		"(default: where the environment's specs are)")
	fs.StringVar(&f.records, "records", "",
		"checkout of the branch that the environment's output is on (default: -C, where it is on the same)")
	fs.StringSliceVar(&f.deployments, "deployment", nil,
		"Deployment without versions to make a spec of, as [NAMESPACE/]NAME; repeatable")
	fs.StringVar(&f.temporalNamespace, "temporal-namespace", "",
		"with --deployment: Temporal namespace of its workers (default: TEMPORAL_NAMESPACE of its containers)")
	fs.StringVar(&f.connection, "connection", "", "with --deployment: connection of its workers (default: temporal, "+
		"which is created from TEMPORAL_ADDRESS if the repository lacks it)")
	fs.BoolVar(&f.overwrite, "overwrite", false, "overwrite files that have another content")
	fs.BoolVar(&f.dryRun, "dry-run", false, "say what would be written, and write nothing")
	return cmd
}

func importLive(a *cmdutil.App, args []string, f *importFlags) error {
	if len(f.deployments) == 0 && (f.temporalNamespace != "" || f.connection != "") {
		return errors.New("--temporal-namespace and --connection go with --deployment")
	}
	in, err := importInput(a, f)
	if err != nil {
		return err
	}
	if in.Live, err = readLive(a, args); err != nil {
		return err
	}
	out, problems := takeover.FromLive(in)
	if err := a.SayProblems(problems, "nothing written: the objects cannot be imported as they are"); err != nil {
		return err
	}
	return writeImport(a, in.Environment, out, f)
}

// importInput is the environment that objects are imported to, and what is there already.
func importInput(a *cmdutil.App, f *importFlags) (takeover.Input, error) {
	if err := cmdutil.CheckFolder(a.Dir); err != nil {
		return takeover.Input{}, err
	}
	world, err := index.ReadFolder(a.Dir, a.ReadOptions()...)
	if err != nil {
		return takeover.Input{}, err
	}
	if world, err = cmdutil.OnlyEnvironment(world, a.Env); err != nil {
		return takeover.Input{}, err
	}
	if len(world.Environments) != 1 {
		names := cmdutil.EnvironmentNames(world)
		return takeover.Input{}, a.SayWorldProblems(world, fmt.Errorf("rampart.yaml has %d environments that can be "+
			"used (%s): say with --env which one the objects go to", len(names), strings.Join(names, ", ")))
	}
	env := world.Environments[0]
	if env.Unusable != nil {
		return takeover.Input{}, a.SayWorldProblems(world,
			fmt.Errorf("environment %s cannot be used: %s", env.Environment.Name, env.Unusable.Message))
	}
	in := takeover.Input{Environment: env.Environment, Specs: f.specs}
	if in.Specs == "" {
		in.Specs = specsFolder(env.Environment)
	}
	for _, name := range f.deployments {
		of := rollout.Name{Name: name}
		if namespace, name, ok := strings.Cut(name, "/"); ok {
			of = rollout.Name{Namespace: namespace, Name: name}
		}
		in.Plain = append(in.Plain, takeover.Plain{Deployment: of, TemporalNamespace: f.temporalNamespace,
			Connection: f.connection})
	}
	if env.Environment.Output.Branch != "" && f.records == "" {
		return takeover.Input{}, fmt.Errorf("environment %s has its output on branch %s: give a checkout of it with "+
			"--records", env.Environment.Name, env.Environment.Output.Branch)
	}
	if in.Roots, err = recordRoots(filepath.Join(recordsFolder(a, f),
		filepath.FromSlash(env.Environment.Output.Path))); err != nil {
		return takeover.Input{}, err
	}
	in.Repository, err = specObjects(a, world)
	return in, err
}

func recordsFolder(a *cmdutil.App, f *importFlags) string {
	if f.records != "" {
		return f.records
	}
	return a.Dir
}

// specsFolder is where an environment's specs are: what its first pattern has before a wildcard.
func specsFolder(env v1alpha1.Environment) string {
	for _, glob := range env.Specs {
		if base, _ := doublestar.SplitPattern(glob); base != "." {
			return base
		}
	}
	return "workers"
}

// recordRoots are the folders of records below an output.
func recordRoots(output string) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(output, "*", "*", layout.Routing))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, f := range found {
		below, err := filepath.Rel(output, filepath.Dir(f))
		if err != nil {
			return nil, err
		}
		out = append(out, filepath.ToSlash(below))
	}
	return out, nil
}

// specObjects are the objects in the files that the world's environments take specs from.
func specObjects(a *cmdutil.App, world rollout.World) ([]v1alpha1.Document, error) {
	s := cmdutil.Specs{World: world, Base: a.Dir}
	found, err := cmdutil.FilesBelow(a.Dir)
	if err != nil {
		return nil, err
	}
	var out []v1alpha1.Document
	for _, below := range found {
		if below == layout.Config || !s.Claimed(below) {
			continue
		}
		text, err := cmdutil.ReadFile(filepath.Join(a.Dir, filepath.FromSlash(below)))
		if err != nil {
			return nil, err
		}
		documents, problems := v1alpha1.Decode(below, []byte(text))
		if v1alpha1.HasErrors(problems) {
			return nil, a.SayWorldProblems(rollout.World{Problems: problems},
				fmt.Errorf("look for objects that exist already: %s has errors, and may hold them: correct it, "+
					"and import again", below))
		}
		out = append(out, documents...)
	}
	return out, nil
}

// maxLive bounds what is read of live objects, in bytes.
const maxLive = 64 << 20

// readLive reads files, or standard input.
func readLive(a *cmdutil.App, args []string) ([]rollout.TextFile, error) {
	if len(args) == 0 {
		args = []string{"-"}
	}
	var out []rollout.TextFile
	for _, name := range args {
		if name == "-" {
			text, err := readAtMost(a.In, "standard input")
			if err != nil {
				return nil, err
			}
			out = append(out, rollout.TextFile{Path: "<stdin>", Text: text})
			continue
		}
		found, err := cmdutil.WalkFiles(name)
		if err != nil {
			return nil, err
		}
		for _, file := range found {
			opened, err := os.Open(file)
			if err != nil {
				return nil, err
			}
			text, err := readAtMost(opened, file)
			if err := errors.Join(err, opened.Close()); err != nil {
				return nil, err
			}
			out = append(out, rollout.TextFile{Path: file, Text: text})
		}
	}
	return out, nil
}

func readAtMost(r io.Reader, name string) (string, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxLive+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("read %s: %w", name, err)
	case len(data) > maxLive:
		return "", fmt.Errorf("read %s: it is larger than %d MiB: read one namespace at a time", name, maxLive>>20)
	}
	return string(data), nil
}

type imported struct {
	takeover.Import
	// Written are the paths of files that were written, or would be; Unchanged those that are as they should be.
	Written   []string `json:"written"`
	Unchanged []string `json:"unchanged"`
}

// writeImport compares the files with those that are there, and writes them, all or none.
func writeImport(a *cmdutil.App, env v1alpha1.Environment, out takeover.Import, f *importFlags) (err error) {
	s := cmdutil.Specs{World: rollout.World{Environments: []rollout.EnvironmentWorld{{Environment: env}}}}
	output := path.Clean(env.Output.Path) + "/"
	plans := map[string][]rollout.TextFile{}
	for _, file := range out.Files {
		folder := a.Dir
		switch {
		case strings.HasPrefix(file.Path, output):
			folder = recordsFolder(a, f)
		case !s.Claimed(file.Path):
			return fmt.Errorf("environment %s takes no specs from %s: choose another folder with --specs, or add it "+
				"to specs in rampart.yaml", env.Name, file.Path)
		}
		plans[folder] = append(plans[folder], file)
	}
	done := imported{Import: out, Written: []string{}, Unchanged: []string{}}
	set := cmdutil.NewFileSet()
	defer func() { err = errors.Join(err, set.Close()) }()
	for _, folder := range cmdutil.SortedKeys(plans) {
		written, unchanged, err := set.Add(folder, plans[folder], f.overwrite)
		if err != nil {
			return err
		}
		done.Written, done.Unchanged = append(done.Written, written...), append(done.Unchanged, unchanged...)
	}
	slices.Sort(done.Written)
	slices.Sort(done.Unchanged)
	if !f.dryRun {
		if err := set.Write(); err != nil {
			return fmt.Errorf("nothing is written: %w", err)
		}
	}
	if err := printImport(a, done, f); err != nil {
		return err
	}
	if f.dryRun && len(done.Written) > 0 {
		return cmdutil.Pending(nil)
	}
	return nil
}

func printImport(a *cmdutil.App, done imported, f *importFlags) error {
	if f.output.Value != cmdutil.FormatText {
		return a.Encode(f.output.Value, done)
	}
	var b strings.Builder
	for _, d := range done.Deployments {
		what := "a spec of a Deployment without versions"
		if len(d.Versions) > 0 {
			what = "versions " + strings.Join(d.Versions, ", ") + "; the spec asks for " + d.Target
		}
		fmt.Fprintf(&b, "%s: %s\n", d.Name, what)
	}
	verb := "written"
	if f.dryRun {
		verb = "to write"
	}
	for _, file := range done.Written {
		fmt.Fprintf(&b, "%s %s\n", verb, file)
	}
	for _, file := range done.Unchanged {
		fmt.Fprintf(&b, "unchanged %s\n", file)
	}
	if _, err := io.WriteString(a.Out, b.String()); err != nil {
		return err
	}
	var others []string
	for _, kind := range cmdutil.SortedKeys(done.Ignored) {
		others = append(others, fmt.Sprintf("%s (%d)", kind, done.Ignored[kind]))
	}
	if others != nil {
		a.Say("left alone: %s", strings.Join(others, ", "))
	}
	if len(done.Written) > 0 {
		a.Say("next: commit these files and push them")
	}
	for _, d := range done.Deployments {
		if d.ManagerIdentity != "" {
			a.Say("next: rampart adopt %s --from %q", d.Name, d.ManagerIdentity)
		}
	}
	return nil
}
