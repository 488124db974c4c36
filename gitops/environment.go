package gitops

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/mirror"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// The files of a record.
const (
	routingFile       = "routing.yaml"
	statusFile        = "status.yaml"
	kustomizationFile = "kustomization.yaml"
)

// environment is one environment while it is read.
type environment struct {
	*Reader
	tree, out tree
	config    v1alpha1.Config
	git       rollout.GitContext
	world     rollout.EnvironmentWorld

	specs       map[rollout.Name][]specAt
	broken      map[string][]v1alpha1.Problem // files with errors, by path
	connections map[rollout.Name]*v1alpha1.Connection
	waivers     []v1alpha1.Waiver
	resources   resourceTemplates
}

// specAt is a spec and where it is.
type specAt struct {
	spec     *v1alpha1.WorkerDeployment // nil: it has problems
	file     found
	line     int
	problems []v1alpha1.Problem
}

// read fills in the environment's world. owners remembers which environment a spec's file belongs to.
func (e *environment) read(owners map[string]string) error {
	e.specs, e.connections = map[rollout.Name][]specAt{}, map[rollout.Name]*v1alpha1.Connection{}
	e.broken = map[string][]v1alpha1.Problem{}
	specs, err := e.match(e.tree, e.world.Environment.Specs, e.outputs())
	if err != nil {
		return err
	}
	if err := e.unmatched(e.tree, specsField, e.world.Environment.Specs, specs); err != nil {
		return err
	}
	for _, f := range specs {
		if f.path == ConfigFile {
			continue
		}
		if err := e.file(f, owners); err != nil {
			return err
		}
	}
	if err := e.rulingWaivers(); err != nil {
		return err
	}
	if err := e.policies(); err != nil {
		return err
	}
	return e.deployments()
}

// outputs are the folders that specs are never looked for in: the outputs of all environments on the specs' branch.
func (e *environment) outputs() []string {
	var out []string
	for _, env := range e.config.Spec.Environments {
		if env.Output.Branch == "" || env.Output.Branch == e.git.Branch {
			out = append(out, path.Clean(env.Output.Path))
		}
	}
	return out
}

// file sorts the objects of one file.
func (e *environment) file(f found, owners map[string]string) error {
	d, err := e.decode(e.tree, f)
	if err != nil {
		return err
	}
	e.world.Problems = append(e.world.Problems, d.problems...)
	if v1alpha1.HasErrors(d.problems) {
		e.broken[f.path] = d.problems
		e.resources.unread(f, d)
	}
	for i := range d.documents {
		doc := &d.documents[i]
		name := rollout.Name{Namespace: cmp.Or(doc.Namespace, e.world.Environment.Namespace), Name: doc.Name}
		switch object := doc.Object.(type) {
		case *v1alpha1.WorkerDeployment:
			e.spec(specAt{spec: object, file: f, line: doc.Line}, name, owners)
		case *v1alpha1.Connection:
			named := *object
			named.Metadata.Namespace = name.Namespace
			e.connections[name] = &named
		case *v1alpha1.Waiver:
			e.waivers = append(e.waivers, *object)
		case *v1alpha1.WorkerResourceTemplate:
			e.template(templateAt{name: name, doc: doc, spec: &object.Spec, resource: d.resources[i]})
		case nil:
			if v1alpha1.HasErrors(doc.Problems) && isWorkerDeployment(doc.Kind) && name.Name != "" && name.Namespace != "" {
				e.specs[name] = append(e.specs[name], specAt{file: f, line: doc.Line, problems: doc.Problems})
			}
			if v1alpha1.HasErrors(doc.Problems) && doc.Kind == v1alpha1.KindWorkerResourceTemplate && name.Name != "" {
				e.template(templateAt{name: name, doc: doc, problem: firstError(doc.Problems)})
			}
		}
	}
	return nil
}

func isWorkerDeployment(kind string) bool {
	return kind == v1alpha1.KindWorkerDeployment || kind == v1alpha1.KindTemporalWorkerDeployment
}

func (e *environment) spec(s specAt, name rollout.Name, owners map[string]string) {
	if name.Namespace == "" {
		e.fault(s, "metadata.namespace", "is required: the environment %s has no default namespace", e.world.Environment.Name)
		return
	}
	if owner, taken := owners[s.file.path]; taken && owner != e.world.Environment.Name {
		e.fault(s, "", "is matched by the environments %s and %s: a spec belongs to one", owner, e.world.Environment.Name)
		return
	}
	owners[s.file.path] = e.world.Environment.Name
	if s.spec.Metadata.Namespace == "" {
		named := *s.spec
		named.Metadata.Namespace = name.Namespace
		s.spec = &named
	}
	e.checkTemporal(&s)
	e.specs[name] = append(e.specs[name], s)
}

// fault reports what is wrong with a spec beside its own content.
func (e *environment) fault(s specAt, field, format string, args ...any) {
	e.world.Problems = append(e.world.Problems, v1alpha1.Problem{Severity: v1alpha1.Error, File: s.file.path, Line: s.line,
		Path: field, Message: fmt.Sprintf(format, args...)})
}

// policies reads the environment's Rego and data files.
func (e *environment) policies() error {
	for _, part := range []struct {
		field string
		globs []string
		to    *[]rollout.TextFile
	}{{"policies", e.world.Environment.Policies, &e.world.Policies}, {"data", e.world.Environment.Data, &e.world.Data}} {
		from, prefix := e.ruling(e.tree)
		files, err := e.match(from, part.globs, nil)
		if err != nil {
			return err
		}
		if err := e.unmatched(from, part.field, part.globs, files); err != nil {
			return err
		}
		for _, f := range files {
			data, err := from.read(f.path, f.hash)
			var large *mirror.TooLargeError
			if errors.As(err, &large) { // what takes its place is neither Rego nor data: the environment's policies cannot be used
				e.world.Problems = append(e.world.Problems, tooLarge(prefix+f.path))
				data, err = []byte("this file is too large to be read"), nil
			}
			if err != nil {
				return err
			}
			*part.to = append(*part.to, rollout.TextFile{Path: prefix + f.path, Text: string(data)})
		}
	}
	return nil
}

// deployments makes one snapshot for each spec and for each record.
func (e *environment) deployments() error {
	records, err := e.recorded()
	if err != nil {
		return err
	}
	names := map[rollout.Name]bool{}
	for n := range e.specs {
		names[n] = true
	}
	for n := range records {
		names[n] = true
	}
	e.withoutForeign(names, records)
	e.assign(names)
	recorded := sortedNames(records)
	rollouts := inProgress(recorded, records)
	for _, n := range sortedNames(names) {
		s := rollout.Snapshot{Deployment: n, Environment: e.world.Environment, Git: rollout.GitContext{Branch: e.git.Branch}, Waivers: e.waivers, Record: records[n]}
		if s.Record.Dir == "" {
			s.Record.Dir = path.Join(e.world.Environment.Output.Path, n.Namespace, n.Name)
		}
		e.chooseSpec(&s)
		e.lastSpec(&s)
		e.lastConnection(&s)
		e.chooseResources(&s)
		s.TakenNames = takenNames(n, recorded, records)
		s.Rollouts = others(rollouts, n)
		e.world.Deployments = append(e.world.Deployments, s)
	}
	return nil
}

// chooseSpec picks the spec of a deployment. Of two with the same name the recorded path keeps it, else the first one.
func (e *environment) chooseSpec(s *rollout.Snapshot) {
	candidates := e.specs[s.Deployment]
	recorded := ""
	if s.Record.Routing != nil {
		recorded = s.Record.Routing.Spec.SpecPath
	}
	if len(candidates) == 0 {
		if problems, ok := e.broken[recorded]; ok {
			s.Problems = asProblems(problems)
		}
		return
	}
	keeper := max(0, slices.IndexFunc(candidates, func(c specAt) bool { return c.file.path == recorded }))
	for i, c := range candidates {
		if i != keeper {
			e.fault(c, "metadata.name", "%s is already the name of the spec in %s", s.Deployment, candidates[keeper].file.path)
		}
	}
	c := candidates[keeper]
	s.Spec, s.SpecPath, s.Problems, s.Git.SpecBlob = c.spec, c.file.path, asProblems(c.problems), c.file.hash
	if c.spec != nil {
		s.Connection = e.connections[rollout.Name{Namespace: s.Deployment.Namespace, Name: c.spec.Spec.WorkerOptions.ConnectionRef.Name}]
	}
}

// lastSpec takes the spec of a worker deployment that is retired from its status once its own file is gone: what is left of it
// has to be found and ended.
func (e *environment) lastSpec(s *rollout.Snapshot) {
	routing, last := s.Record.Routing, s.Record.Status
	if s.Spec != nil || s.SpecPath != "" || len(s.Problems) > 0 || routing == nil || routing.Spec.Retire == nil || last == nil {
		return
	}
	spec := *last
	spec.Status = nil
	s.Spec = &spec
	s.Connection = e.connections[rollout.Name{Namespace: s.Deployment.Namespace, Name: spec.Spec.WorkerOptions.ConnectionRef.Name}]
}

// lastConnection is by which Temporal is asked while the spec cannot be used, or asks for another Temporal namespace: the one that the
// last good spec had, as it is now.
func (e *environment) lastConnection(s *rollout.Snapshot) {
	routing, last := s.Record.Routing, s.Record.Status
	name := ""
	switch {
	case routing == nil:
		return
	case routing.Spec.Connection != nil:
		name = routing.Spec.Connection.Name
	case last != nil:
		name = last.Spec.WorkerOptions.ConnectionRef.Name
	}
	c := e.connections[rollout.Name{Namespace: s.Deployment.Namespace, Name: name}]
	switch {
	case s.Spec == nil:
		s.Connection = c
	case s.Spec.Spec.WorkerOptions.ConnectionRef.Name != name:
		s.LastConnection = c
	}
}

func asProblems(problems []v1alpha1.Problem) []rollout.Problem {
	var out []rollout.Problem
	for _, p := range problems {
		if p.Severity == v1alpha1.Error {
			out = append(out, rollout.Problem{Reason: rollout.InvalidSpec, Message: p.String()})
		}
	}
	return out
}

func sortedNames[V any](m map[rollout.Name]V) []rollout.Name {
	names := make([]rollout.Name, 0, len(m))
	for n := range m {
		names = append(names, n)
	}
	slices.SortFunc(names, rollout.Name.Compare)
	return names
}

// inProgress are the rollouts of an environment that its records desire, in the order of sorted.
func inProgress(sorted []rollout.Name, records map[rollout.Name]rollout.Record) []rollout.InProgress {
	var out []rollout.InProgress
	for _, n := range sorted {
		if r, ok := records[n].InProgress(n); ok {
			out = append(out, r)
		}
	}
	return out
}

// others are rollouts without that of n. Worker deployments that roll nothing out share one list.
func others(rollouts []rollout.InProgress, n rollout.Name) []rollout.InProgress {
	i, found := slices.BinarySearchFunc(rollouts, n, func(r rollout.InProgress, n rollout.Name) int { return r.Deployment.Compare(n) })
	if !found {
		return rollouts
	}
	return slices.Concat(rollouts[:i], rollouts[i+1:])
}

// takenNames are the Kubernetes Deployments of worker deployments whose versions' names could be the same as ours: of
// those whose name begins with ours and a hyphen, or the other way round. sorted are the names of all records.
func takenNames(n rollout.Name, sorted []rollout.Name, records map[rollout.Name]rollout.Record) []string {
	var taken []string
	add := func(other rollout.Name) {
		if r, ok := records[other]; ok && r.Routing != nil {
			for _, v := range r.Routing.Spec.Versions {
				taken = append(taken, v.Deployment)
				for _, p := range v.Pools {
					taken = append(taken, p.Deployment)
				}
			}
		}
	}
	for i, c := range n.Name {
		if c == '-' {
			add(rollout.Name{Namespace: n.Namespace, Name: n.Name[:i]})
		}
	}
	longer := rollout.Name{Namespace: n.Namespace, Name: n.Name + "-"}
	for i, _ := slices.BinarySearchFunc(sorted, longer, rollout.Name.Compare); i < len(sorted); i++ {
		if sorted[i].Namespace != n.Namespace || !strings.HasPrefix(sorted[i].Name, longer.Name) {
			break
		}
		add(sorted[i])
	}
	slices.Sort(taken)
	return taken
}
