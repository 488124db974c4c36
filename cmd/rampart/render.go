package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/render"
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
				return a.writeTree(out, manifests)
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
	problems := s.problems()
	var errs []error
	for _, p := range problems {
		a.say("%s", problemLine(p))
	}
	if v1alpha1.HasErrors(problems) {
		return nil, errors.New("nothing rendered: the files have errors")
	}
	out := []manifest{}
	for _, env := range s.world.Environments {
		for _, d := range env.Deployments {
			if d.Spec == nil {
				continue
			}
			m, err := target(d)
			var missing *noConnectionError
			if errors.As(err, &missing) {
				err = fmt.Errorf("%s: %w: add its file to the paths", s.show(d.SpecPath), err)
			}
			errs = append(errs, err)
			out = append(out, m...)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		a.say("no specs found")
	}
	slices.SortFunc(out, func(a, b manifest) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

// noConnectionError says that a spec's connection is not there.
type noConnectionError struct{ deployment, connection string }

func (e *noConnectionError) Error() string {
	return fmt.Sprintf("%s needs connection %s, which is not there", e.deployment, e.connection)
}

// target gives the manifests of a spec's target version as the bot has them, or would write them: recorded ones as they
// are in Git, with what the spec and the connection change in place.
func target(s rollout.Snapshot) ([]manifest, error) {
	if p := s.Record.RoutingProblem; p != nil {
		return nil, fmt.Errorf("%s: %s", s.Deployment, p.Message)
	}
	if s.Connection == nil {
		return nil, &noConnectionError{s.Deployment.String(), s.Deployment.Namespace + "/" + s.Spec.Spec.WorkerOptions.ConnectionRef.Name}
	}
	plan := targetPlan(s)
	buildID := plan.Versions[0].BuildID
	changes, err := render.Files(plan, s.Record)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	below := "versions/" + buildID + "/"
	for name, f := range s.Record.Files {
		if strings.HasPrefix(name, below) {
			files[path.Join(plan.Dir, name)] = f.Data
		}
	}
	for _, c := range changes {
		if !strings.HasPrefix(c.Path, path.Join(plan.Dir, below)+"/") {
			continue
		}
		files[c.Path] = c.Data
		if c.Delete {
			delete(files, c.Path)
		}
	}
	var out []manifest
	for _, name := range sortedKeys(files) {
		out = append(out, manifest{s.Environment.Name, s.Deployment.String(), buildID, name, files[name]})
	}
	return out, nil
}

// targetPlan is the plan that writes the target version and nothing else, whatever Temporal says.
func targetPlan(s rollout.Snapshot) rollout.Plan {
	spec := s.Spec.Spec
	var record v1alpha1.RoutingSpec
	if s.Record.Routing != nil {
		record = s.Record.Routing.Spec
	}
	versions := slices.Clone(record.Versions)
	record.WorkerDeployment = s.Deployment.String()
	if record.TemporalNamespace == "" {
		record.TemporalNamespace = spec.WorkerOptions.TemporalNamespace
	}
	id, from := rollout.BuildIDFor(spec, versions)
	hash := rollout.TemplateHash(spec)
	write := rollout.VersionWrite{BuildID: id, Op: rollout.EditVersion, Replicas: spec.Replicas, Guard: v1alpha1.GuardOn}
	at := slices.IndexFunc(versions, func(v v1alpha1.RecordedVersion) bool { return v.BuildID == id })
	switch {
	case at < 0:
		taken := slices.Clone(s.TakenNames)
		for _, v := range versions {
			taken = append(taken, v.Deployment)
		}
		versions = append(versions, v1alpha1.RecordedVersion{BuildID: id, BuildIDFrom: from, TemplateHash: hash,
			Deployment: rollout.DeploymentName(s.Deployment.Name, id, taken)})
		at = len(versions) - 1
		write.Op = rollout.RenderVersion
	case versions[at].TemplateHash != hash:
		versions[at].TemplateHash = hash
		write.Op = rollout.RenderVersion
	case versions[at].ConnectionHash != s.Connection.Spec.Hash():
		write.Op = rollout.ReconnectVersion
	}
	write.Resources = targetResources(&s, record, versions[at])
	versions[at].Resources = rollout.WithResources(versions[at].Resources, write.Resources)
	if rollout.Scaled(versions[at].Resources) {
		write.Replicas = nil
	}
	record.Versions = versions
	return rollout.Plan{Deployment: s.Deployment, Environment: s.Environment, Dir: s.Record.Dir, Record: &record,
		Versions: []rollout.VersionWrite{write}, Spec: s.Spec, Connection: s.Connection}
}

// targetResources are the changes of the target's objects made from templates. What it is beside the target is what the
// record desires.
func targetResources(s *rollout.Snapshot, record v1alpha1.RoutingSpec, target v1alpha1.RecordedVersion) []rollout.ResourceWrite {
	of := rollout.ResourceSubject{Have: target.Resources, States: []v1alpha1.VersionState{v1alpha1.StateTarget}, Pods: rollout.PodsWanted}
	if record.Desired.Current == target.BuildID {
		of.States = append(of.States, v1alpha1.StateCurrent)
	}
	if ramp := record.Desired.Ramping; ramp != nil && ramp.BuildID == target.BuildID {
		of.States = append(of.States, v1alpha1.StateRamping)
	}
	if n := s.Spec.Spec.Replicas; n != nil && *n == 0 {
		of.Pods = rollout.PodsUnscaled
	}
	return s.ResourceWrites(of)
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

// writeTree writes manifests below a folder. The folder's own links are not followed out of it.
func (a *app) writeTree(dir string, manifests []manifest) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	written := 0
	for _, m := range manifests {
		changed, err := writeFile(root, m)
		if err != nil {
			return fmt.Errorf("write %s: %w", filepath.Join(dir, filepath.FromSlash(m.Path)), err)
		}
		if changed {
			written++
		}
	}
	a.say("%d of %d manifests written below %s, the others were as they are", written, len(manifests), dir)
	return nil
}

// writeFile writes a file at once or not at all, and leaves one alone that is as it should be.
func writeFile(root *os.Root, m manifest) (changed bool, err error) {
	name := filepath.FromSlash(m.Path)
	if was, err := root.ReadFile(name); err == nil && string(was) == m.Data {
		return false, nil
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return false, err
	}
	draft := name + ".rampart-draft"
	if err := root.WriteFile(draft, []byte(m.Data), 0o644); err != nil {
		return false, err
	}
	if err := root.Rename(draft, name); err != nil {
		if gone := root.Remove(draft); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
		return false, err
	}
	return true, nil
}
