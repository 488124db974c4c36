package takeover

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/takeover"
)

type exportFlags struct {
	repository  cmdutil.RepositoryFlags
	owners, out string
}

func exportCommand(a *cmdutil.App) *cobra.Command {
	f := new(exportFlags)
	cmd := &cobra.Command{
		Use:   "export [NAME...]",
		Short: "Print worker deployments as the in-cluster controller wants them",
		Long: `Export prints worker deployments as objects of the in-cluster controller, as a YAML stream on
standard output, or writes them below --out: connections, specs and WorkerResourceTemplates. Fields that only
Rampart has are left out with a warning; what the controller cannot have, such as pools, is an error.

With --owners, a file ("-" is standard input) with the worker deployments as they are in the cluster, it prints the
Deployments of their versions too, owned by those objects: by its owner the controller finds a Deployment. Their pod
templates stay, so that nothing restarts. First apply what export prints without --owners, then read the objects
back: a Deployment whose owner does not exist would be deleted by the cluster.

A version that the controller would give another build ID has it as unsafeCustomBuildID.

` + cmdutil.CloneHelp,
		Example: `  rampart export payments/checkout | kubectl apply --server-side -f -
  kubectl get -n payments twd -o yaml | rampart export payments/checkout --owners - | kubectl apply --server-side -f -
  rampart export --out controller`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.CompleteNames,
		RunE:              func(cmd *cobra.Command, args []string) error { return export(a, cmd, args, f) },
	}
	f.repository.AddPublished(cmd)
	cmd.Flags().StringVar(&f.owners, "owners", "",
		"file with the worker deployments as they are in the cluster: the Deployments too, owned by them")
	cmd.Flags().StringVar(&f.out, "out", "", "folder to write the objects to")
	return cmd
}

func export(a *cmdutil.App, cmd *cobra.Command, names []string, f *exportFlags) (err error) {
	source, closeSource, err := a.OpenPublished(f.repository)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeSource()) }()
	world, err := source.Read(cmd.Context())
	if err != nil {
		return err
	}
	found, err := cmdutil.Deployments(world, names)
	if err != nil {
		return a.SayWorldProblems(world, err)
	}
	if len(found) == 0 {
		return a.SayWorldProblems(world, errors.New("no worker deployments to export"))
	}
	var owners []rollout.TextFile
	if f.owners != "" {
		if owners, err = readLive(a, []string{f.owners}); err != nil {
			return err
		}
	}
	var all []takeover.Export
	var errs []error
	for _, s := range found {
		e, err := takeover.ToController(s, owners)
		all, errs = append(all, e), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("nothing is exported: %w", err)
	}
	for _, e := range all {
		for _, w := range e.Warnings {
			a.Say("%s", w)
		}
	}
	objects := takeover.Objects(all)
	if f.out != "" {
		return cmdutil.WriteTree(a, f.out, objects)
	}
	var b bytes.Buffer
	for _, o := range objects {
		b.WriteString("---\n" + o.Text)
	}
	_, err = a.Out.Write(b.Bytes())
	return err
}
