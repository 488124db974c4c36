// Package operate has the commands by which people say what is to happen to one worker deployment. These are
// `rollback`, `hold`, `resume`, `retry`, `approve`, `reject`, `retire`, `adopt` and `release`. Each commits a change of
// the worker deployment's record, with the person as author.
package operate

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/index"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/operator"
	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/printable"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/retry"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/render"
	"github.com/rampart-gitops/rampart/temporal"
)

// Commands returns the commands of this group.
func Commands(a *cmdutil.App) []*cobra.Command {
	return []*cobra.Command{rollbackCommand(a), holdCommand(a), resumeCommand(a), retryCommand(a), approveCommand(a),
		rejectCommand(a), retireCommand(a), adoptCommand(a), releaseCommand(a)}
}

// operatorFlags are those of every command by which a person says something about one worker deployment.
type operatorFlags struct {
	output     cmdutil.Choice
	repository cmdutil.RepositoryFlags
	server     cmdutil.TemporalFlags
	reason     string
}

func addOperator(a *cmdutil.App, cmd *cobra.Command, f *operatorFlags) {
	cmd.Args = cmdutil.OneName
	cmd.ValidArgsFunction = a.CompleteName
	cmdutil.AddOutput(cmd, &f.output, cmdutil.FormatText, cmdutil.FormatJSON, cmdutil.FormatYAML)
	f.repository.AddReading(cmd)
	addPerson(&f.repository, cmd)
	cmd.Flags().StringVar(&f.reason, "reason", "", "why: is recorded, and shown to everybody who asks")
}

// operation carries out what a person says.
type operation struct {
	*cmdutil.App
	command, name, format string
	repo                  *gitops.Repository
	source                reconcile.Source
	person                operator.Person
	// byRecord says that the record alone will do where the world does not have the worker deployment.
	byRecord bool
}

// told is what a command did.
type told struct {
	Command     string `json:"command"`
	Name        string `json:"name"`
	Environment string `json:"environment"`
	// Changed says whether anything was changed, in Git or in Temporal.
	Changed bool `json:"changed"`
	// Commit that says so, "" if there was nothing to commit.
	Commit string   `json:"commit,omitempty"`
	Did    string   `json:"did,omitempty"`
	Notes  []string `json:"notes,omitempty"`
}

// operate runs one command, and prints what it did.
func operate(a *cmdutil.App, cmd *cobra.Command, name string, f operatorFlags,
	do func(context.Context, *operation) (told, error)) (err error) {
	if err := ofClone(a, cmd, &f.repository); err != nil {
		return err
	}
	if err := whoSpeaks(a, &f.repository); err != nil {
		return err
	}
	repo, closeRepo, err := a.OpenShortLived(f.repository)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeRepo()) }()
	o := &operation{App: a, command: cmd.Name(), name: name, format: f.output.Value, repo: repo,
		source: a.NarrowSource(repo),
		person: operator.Person{Name: printable.Line(f.repository.Author), Email: f.repository.Email,
			Reason: printable.Line(f.reason), At: a.Now()}}
	t, err := do(cmd.Context(), o)
	if err != nil {
		return err
	}
	return o.print(t)
}

// ofClone takes the repository that a person's clone is of, where none is named: that of the folder -C.
func ofClone(a *cmdutil.App, cmd *cobra.Command, f *cmdutil.RepositoryFlags) error {
	if f.URL != "" {
		return nil
	}
	clone, err := gitops.OpenClone(a.Dir)
	var none *gitops.NoCloneError
	if err == nil {
		f.URL, err = clone.RemoteURL()
		err = errors.Join(err, clone.Close())
	}
	switch {
	case err != nil && !errors.As(err, &none):
		return err
	case f.URL == "":
		return fmt.Errorf("%s needs a repository: call it in a clone, or give --repo URL or RAMPART_REPO", cmd.Name())
	}
	return nil
}

func (o *operation) print(t told) error {
	if o.format != cmdutil.FormatText {
		return o.Encode(o.format, t)
	}
	line := t.Did
	if !t.Changed {
		line = "nothing to do"
	}
	if _, err := fmt.Fprintf(o.Out, "%s: %s\n", t.Name, line); err != nil {
		return err
	}
	for _, n := range t.Notes {
		if _, err := fmt.Fprintf(o.Out, "  %s\n", n); err != nil {
			return err
		}
	}
	if t.Commit != "" {
		_, err := fmt.Fprintf(o.Out, "  commit %s\n", t.Commit)
		return err
	}
	return nil
}

// found is a worker deployment at the tip, and the environment that it is in.
type found struct {
	rollout.Snapshot
	base string
}

// find reads the tip, and where the worker deployment is not in its world, because rampart.yaml cannot be used, the
// record alone.
func (o *operation) find(ctx context.Context) (found, error) {
	at, err := o.inWorld(ctx)
	if !o.byRecord || ctx.Err() != nil || err == nil && !inOtherEnvironment(at.Snapshot) {
		return at, err
	}
	s, base, none := o.repo.RecordAlone(ctx, index.RecordQuery{Name: o.name, Environment: o.Env})
	switch {
	case none != nil && err == nil:
		return at, nil
	case none != nil:
		return found{}, fmt.Errorf("%w (%w)", err, none)
	}
	o.Say("%s is known by its record in %s alone", s.Deployment, s.Record.Dir)
	return found{s, base}, nil
}

// inOtherEnvironment reports whether a record is of another environment than the one that a branch without a
// rampart.yaml has. Then it is on a branch that holds nothing but an output.
func inOtherEnvironment(s rollout.Snapshot) bool {
	is := s.Record.Routing
	return is != nil && is.Spec.Environment != "" && is.Spec.Environment != s.Environment.Name &&
		s.Environment.Name == v1alpha1.DefaultConfig().Spec.Environments[0].Name
}

// inWorld reads the worker deployment at the tip.
func (o *operation) inWorld(ctx context.Context) (found, error) {
	world, s, err := o.ReadDeployment(ctx, o.source, o.name)
	if err != nil {
		return found{}, err
	}
	for _, env := range world.Environments {
		if env.Environment.Name == s.Environment.Name {
			return found{s, env.Base}, nil
		}
	}
	return found{}, fmt.Errorf("environment %s is gone", s.Environment.Name)
}

// overtaken reports whether an attempt may do better the next time: somebody else pushed or moved the routing, or
// Temporal was busy.
func overtaken(err error) bool {
	return errors.Is(err, rollout.ErrMoved) || errors.Is(err, rollout.ErrStale) || errors.Is(err, rollout.ErrBusy)
}

// again runs an attempt until it is not overtaken any more.
func (o *operation) again(ctx context.Context, attempt func() error) error {
	var err error
	for try := range reconcile.MaxTries {
		if try > 0 {
			if err := retry.Sleep(ctx, retry.Pause(try)); err != nil {
				return err
			}
		}
		if err = attempt(); err == nil || !overtaken(err) {
			return err
		}
		o.Log.InfoContext(ctx, "overtaken: starting over", "try", try+1, "error", err)
	}
	return fmt.Errorf("gave up after %d tries: %w", reconcile.MaxTries, err)
}

// change changes the record at the tip.
func (o *operation) change(ctx context.Context, do func(rollout.Snapshot) (operator.Change, error)) (told, error) {
	var out told
	err := o.again(ctx, func() error {
		at, err := o.find(ctx)
		if err != nil {
			return err
		}
		c, err := do(at.Snapshot)
		if err != nil {
			return err
		}
		out, err = o.commit(ctx, at, c)
		return err
	})
	return out, err
}

// commit pushes one change of a record, and of the manifests that the record goes by, written as the bot writes them.
func (o *operation) commit(ctx context.Context, at found, c operator.Change) (told, error) {
	t := told{Command: o.command, Name: at.Deployment.String(), Environment: at.Environment.Name, Did: c.Did,
		Notes: c.Notes, Changed: c.Did != ""}
	if c.Did == "" {
		return t, nil
	}
	files, err := render.Files(rollout.Plan{Deployment: at.Deployment, Environment: at.Environment, Dir: at.Record.Dir,
		Record: &c.Record}, at.Record)
	files = slices.DeleteFunc(files, func(f rollout.FileChange) bool { // the rest is the bot's
		return path.Dir(f.Path) == at.Record.Dir && path.Base(f.Path) != layout.Routing
	})
	if err != nil || len(files) == 0 {
		return t, err
	}
	message := fmt.Sprintf("rampart(%s): %s: %s\n\n%s\n  said by %s", at.Environment.Name, at.Deployment, c.Did,
		at.Deployment, o.person.Name)
	if o.person.Reason != "" {
		message += "\n  because " + o.person.Reason
	}
	t.Commit, err = o.repo.Commit(ctx, rollout.Commit{Environment: at.Environment, Base: at.base, Changes: files,
		Message: message + "\n"})
	return t, err
}

// unreachable says why it is not known where the Temporal of a worker deployment is.
func unreachable(s rollout.Snapshot) error {
	switch {
	case len(s.Problems) > 0:
		return errors.New(s.Problems[0].Message)
	case s.Spec == nil:
		return fmt.Errorf("the spec of %s is gone from Git: it says where its Temporal is", s.Deployment)
	case plan.Look(s).JudgedBy().Spec == nil:
		return fmt.Errorf("the spec of %s cannot be used, and none that could is recorded: rampart status "+
			"%[1]s says why", s.Deployment)
	case s.Connection != nil:
		return fmt.Errorf("the connection by which %s is in Temporal namespace %s is not in the repository",
			s.Deployment, plan.TemporalNamespace(s))
	}
	return fmt.Errorf("%s is not in the repository", s.Spec.Spec.WorkerOptions.ConnectionRef.In(s.Deployment.Namespace))
}

// observe reads what ask names of a worker deployment, again and again as the answers say what more to ask.
func (o *operation) observe(ctx context.Context, pool *temporal.Pool, s rollout.Snapshot,
	asks ...func(*plan.View) rollout.Ask) (rollout.Snapshot, error) {
	s.Limits, s.Now = rollout.DefaultLimits(), o.Now()
	v := plan.Look(s)
	conn := v.Connection()
	if conn == nil {
		return s, unreachable(s)
	}
	for _, ask := range asks {
		s.Observation = pool.Observe(ctx, *conn, ask(v))
		s.Now = o.Now()
		v = plan.Look(s)
		if p := s.Observation.Problem; p != nil && p.Busy {
			return s, fmt.Errorf("%w: %s", rollout.ErrBusy, p.Message)
		}
	}
	return s, ctx.Err()
}
