package index

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/gitops/tree"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// environment is one environment while it is read.
type environment struct {
	*Reader
	tree, out tree.Tree
	config    v1alpha1.Config
	git       rollout.GitContext
	world     rollout.EnvironmentWorld

	specFiles matching // those that may have specs
	builds    []*built // folders among them that were built
	// specs and records are sorted by name; specs of the same name are in the order of their files.
	specs       []*specAt
	records     []*recordAt
	rollouts    []rollout.InProgress
	broken      map[string][]v1alpha1.Problem // files with errors, by path
	connections map[rollout.Name]*connectionsAt
	refused     map[rollout.Name]v1alpha1.Problem // connections that lead where they may not
	holds       map[string]rollout.FileAt         // files of connections and templates, by their path
	waivers     []v1alpha1.Waiver
	waiversAt   []waiverAt
	resources   resourceTemplates
	// unversioned are documents of a spec's kind without an API version: specs, or patches of some.
	unversioned []*specAt
	// found are the folders of records, in the order in which they are listed.
	found []*recordsIn
	// policyProblem is why policies or data cannot be read; nil: they can.
	policyProblem *v1alpha1.Problem
	// rootFile is the kustomization of all of them; nil where there is none.
	rootFile *found
	// rivals are the environments that claim a worker deployment, too.
	rivals map[rollout.Name][]rollout.Rival
}

// specAt is a spec and where it is.
type specAt struct {
	name     rollout.Name
	spec     *v1alpha1.WorkerDeployment // nil: it has problems, or only its entry is there
	entry    *specEntry
	noted    bool // the next survey has only its entry
	file     *found
	line     int
	problems []v1alpha1.Problem
}

// read fills in the environment's world. owners remembers which environment a spec's file belongs to.
func (e *environment) read(owners map[string]string) error {
	e.connections, e.broken = map[rollout.Name]*connectionsAt{}, map[string][]v1alpha1.Problem{}
	specs, err := e.match(e.tree, e.world.Environment.Specs, e.outputs(), true)
	if err != nil {
		return err
	}
	if specs.files, err = e.withFolders(e.tree, specs.files); err != nil {
		return err
	}
	e.specFiles = specs
	if err := e.reportPatterns(e.tree, "", patterns{specsField, e.world.Environment.Specs, specs.at}); err != nil {
		return err
	}
	if err := e.findRecords(); err != nil {
		return err
	}
	if err := e.bring(specs.files); err != nil {
		return err
	}
	if e.index != nil {
		e.decodeOnCores(e.tree, specs.files)
	}
	e.specs = make([]*specAt, 0, len(specs.files))
	for _, f := range specs.files {
		if f.path == layout.Config {
			continue
		}
		if err := e.file(f, owners); err != nil {
			return err
		}
	}
	e.settleUnversioned()
	e.settleWaivers(e.waiversAt)
	if err := e.rulingWaivers(); err != nil {
		return err
	}
	if err := e.policies(); err != nil {
		return err
	}
	if err := e.judgedAsBefore(); err != nil {
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
func (e *environment) file(f *found, owners map[string]string) error {
	if b := e.index.spec(f); b != nil {
		if b.Name != "" {
			e.spec(&specAt{name: e.nameOf(b), entry: b, file: f, line: b.Line}, owners)
		}
		return nil
	}
	d, err := e.decode(e.tree, f)
	if err != nil {
		return err
	}
	d = recordable(f.path, d)
	noted := e.index.noteSpec(f, d)
	e.world.Problems = append(e.world.Problems, d.problems...)
	if v1alpha1.HasErrors(d.problems) {
		e.broken[f.path] = d.problems
	}
	e.resources.unread(f, d)
	for i := range d.documents {
		doc := &d.documents[i]
		name := rollout.Name{Namespace: cmp.Or(doc.Namespace, e.world.Environment.Namespace), Name: doc.Name}
		if noted { // and so for long
			name = e.nameOf(f.entry)
		}
		switch object := doc.Object.(type) {
		case *v1alpha1.WorkerDeployment:
			e.spec(&specAt{name: name, spec: object, noted: noted, file: f, line: doc.Line}, owners)
		case *v1alpha1.Connection:
			if name.Namespace == "" && object.Kind != v1alpha1.KindClusterConnection {
				e.nowhere(f, doc.Line)
				continue
			}
			name = connectionKey(object.Ref(), name.Namespace)
			if why := e.foreignAddress(object.Spec.HostPort); why != "" {
				e.refuse(name, f, doc.Line, why)
				continue
			}
			e.addConnection(name, place{f.path, doc.Line, i}, object)
			e.beside(f)
		case *v1alpha1.Waiver:
			e.waiversAt = append(e.waiversAt, waiverAt{place{f.path, doc.Line, i}, name, object})
		case *v1alpha1.WorkerResourceTemplate:
			e.template(templateAt{name: name, doc: doc, nth: i, spec: &object.Spec, resource: d.resources[i]})
			e.beside(f)
		case nil:
			if v1alpha1.HasErrors(doc.Problems) && isWorkerDeployment(doc.Kind) && name.Name != "" {
				e.unusable(doc, &specAt{name: name, file: f, line: doc.Line, problems: doc.Problems})
			}
			if v1alpha1.HasErrors(doc.Problems) && doc.Kind == v1alpha1.KindWorkerResourceTemplate && name.Name != "" {
				e.template(templateAt{name: name, doc: doc, nth: i, problem: firstError(doc.Problems)})
			}
		}
	}
	return nil
}

// nowhere warns of a connection without a namespace. It does not count as a ClusterConnection, and no spec can name
// it.
func (e *environment) nowhere(f *found, line int) {
	e.world.Problems = append(e.world.Problems, v1alpha1.Problem{Severity: v1alpha1.Warning, File: f.path, Line: line,
		Path: "metadata.namespace",
		Message: fmt.Sprintf("is missing, and the environment %s has no default namespace: no spec can name this "+
			"connection", e.world.Environment.Name)})
}

func isWorkerDeployment(kind string) bool {
	return kind == v1alpha1.KindWorkerDeployment || kind == v1alpha1.KindTemporalWorkerDeployment
}

// spec adds a spec. owners is nil where there is one environment.
func (e *environment) spec(s *specAt, owners map[string]string) {
	if s.name.Namespace == "" {
		e.fault(s, "metadata.namespace", "is required: the environment %s has no default namespace",
			e.world.Environment.Name)
		return
	}
	if owner, taken := owners[s.file.path]; taken && owner != e.world.Environment.Name {
		e.fault(s, "", "is matched by the environments %s and %s: a spec belongs to one", owner,
			e.world.Environment.Name)
		return
	}
	if owners != nil {
		owners[s.file.path] = e.world.Environment.Name
	}
	if s.spec != nil {
		s.spec = named(s.spec, s.name.Namespace)
	}
	e.checkTemporal(s)
	e.specs = append(e.specs, s)
}

// specsOf are the specs with a name, in the order of their files.
func (e *environment) specsOf(n rollout.Name) []*specAt {
	from, _ := slices.BinarySearchFunc(e.specs, n, func(s *specAt, n rollout.Name) int { return s.name.Compare(n) })
	to := from
	for to < len(e.specs) && e.specs[to].name == n {
		to++
	}
	return e.specs[from:to:to]
}

// named is a spec with its namespace, which it need not name.
func named(spec *v1alpha1.WorkerDeployment, namespace string) *v1alpha1.WorkerDeployment {
	if spec.Metadata.Namespace != "" {
		return spec
	}
	out := *spec
	out.Metadata.Namespace = namespace
	return &out
}

// fault reports what is wrong with a spec beside its own content.
func (e *environment) fault(s *specAt, field, format string, args ...any) {
	e.world.Problems = append(e.world.Problems, v1alpha1.Problem{Severity: v1alpha1.Error, File: s.file.path,
		Line: s.line, Path: field, Message: fmt.Sprintf(format, args...)})
}

// policies reads the environment's Rego and data files.
func (e *environment) policies() error {
	for _, part := range []struct {
		field string
		globs []string
		to    *[]rollout.TextFile
	}{{"policies", e.world.Environment.Policies, &e.world.Policies}, {"data", e.world.Environment.Data,
		&e.world.Data}} {
		from, prefix := e.ruling(e.tree)
		files, err := e.match(from, part.globs, nil, false)
		if err != nil {
			return err
		}
		if err := e.reportPatterns(from, prefix, patterns{part.field, part.globs, files.at}); err != nil {
			return err
		}
		for _, f := range files.files {
			data, err := from.Read(f.path, f.hash)
			// what takes its place is neither Rego nor data: the environment's policies cannot be used
			if p, ok := Unreadable(prefix+f.path, err); ok {
				e.world.Problems = append(e.world.Problems, p)
				e.policyProblem = &p
				data, err = []byte("this file cannot be read"), nil
			}
			if err != nil {
				return err
			}
			*part.to = append(*part.to, rollout.TextFile{Path: prefix + f.path, Text: string(data)})
		}
	}
	if e.policyProblem == nil && len(e.world.PolicyProblems) > 0 {
		e.policyProblem = &e.world.PolicyProblems[0]
	}
	return nil
}

// deploymentAt is a worker deployment by its specs and its record; nil: it has none.
type deploymentAt struct {
	name   rollout.Name
	specs  []*specAt
	record *recordAt
}

// deployments says which worker deployments there are, by their specs and records: one snapshot for each, or its
// index entry.
func (e *environment) deployments() error {
	err := e.recorded()
	if err != nil {
		return err
	}
	slices.SortStableFunc(e.specs, func(a, b *specAt) int { return a.name.Compare(b.name) })
	e.world.Waivers = e.waivers
	all := e.withoutForeign(together(e.specs, e.records))
	e.assign(all)
	if e.index != nil {
		err = e.survey(all)
	} else {
		err = e.wholes(all)
	}
	if err != nil {
		return err
	}
	e.reportTemplates()
	e.reportConnections()
	return nil
}

// wholes gives the snapshots of worker deployments.
func (e *environment) wholes(all []deploymentAt) (err error) {
	e.world.Deployments = make([]rollout.Snapshot, len(all))
	for i, d := range all {
		if e.world.Deployments[i], err = e.whole(d); err != nil {
			return err
		}
	}
	return nil
}

// together goes through specs and records, both sorted by name.
func together(specs []*specAt, records []*recordAt) []deploymentAt {
	out := make([]deploymentAt, 0, max(len(specs), len(records)))
	for len(specs) > 0 || len(records) > 0 {
		var d deploymentAt
		if len(records) > 0 && (len(specs) == 0 || records[0].of.Compare(specs[0].name) <= 0) {
			d, records = deploymentAt{name: records[0].of, record: records[0]}, records[1:]
		} else {
			d.name = specs[0].name
		}
		n := 0
		for n < len(specs) && specs[n].name == d.name {
			n++
		}
		d.specs, specs = specs[:n:n], specs[n:]
		out = append(out, d)
	}
	return out
}

// snapshot begins the snapshot of a worker deployment with what it has beside its own files.
func (e *environment) snapshot(n rollout.Name) rollout.Snapshot {
	return rollout.Snapshot{Deployment: n, Environment: e.world.Environment, EnvironmentProblem: e.world.Unusable,
		ByOther: e.world.ByOther,
		Git:     rollout.GitContext{Branch: e.git.Branch}, Waivers: e.waivers, Rivals: e.rivals[n],
		TakenNames: takenNames(n, e.records), Rollouts: others(e.rollouts, n)}
}

// whole gives the snapshot of a worker deployment.
func (e *environment) whole(d deploymentAt) (rollout.Snapshot, error) {
	if d.record == nil {
		d.record = &recordAt{Record: rollout.Record{Dir: path.Join(e.world.Environment.Output.Path, d.name.Namespace,
			d.name.Name)}, of: d.name}
	}
	s := e.snapshot(d.name)
	err := e.complete(&s, d)
	return s, err
}

// lastSpec takes the spec of a worker deployment that is retired from its status once its own file is gone. What is
// left of it has to be found and ended.
func (e *environment) lastSpec(s *rollout.Snapshot) {
	routing, last := s.Record.Routing, s.Record.Status
	if s.Spec != nil || s.SpecPath != "" || len(s.Problems) > 0 || routing == nil || routing.Spec.Retire == nil ||
		last == nil {
		return
	}
	spec := *last
	spec.Status = nil
	s.Spec = &spec
	connection := e.chooseConnection(s, spec.Spec.WorkerOptions.ConnectionRef)
	s.Connection, s.ConnectionPath = connection.Connection, connection.path
}

// lastConnection is by which Temporal is asked while the spec cannot be used, or asks for another Temporal namespace.
// It is the one that the last good spec had, as it is now.
func (e *environment) lastConnection(s *rollout.Snapshot, r *recordAt) {
	if r.Routing == nil {
		return
	}
	last := r.says.Connection
	c := e.chooseConnection(s, last)
	switch {
	case s.Spec == nil:
		s.Connection, s.ConnectionPath = c.Connection, c.path
	case s.Spec.Spec.WorkerOptions.ConnectionRef != last:
		s.LastConnection = c.Connection
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

// others are rollouts without that of n. Worker deployments that roll nothing out share one list.
func others(rollouts []rollout.InProgress, n rollout.Name) []rollout.InProgress {
	i, found := slices.BinarySearchFunc(rollouts, n, func(r rollout.InProgress, n rollout.Name) int {
		return r.Deployment.Compare(n)
	})
	if !found {
		return rollouts
	}
	return slices.Concat(rollouts[:i], rollouts[i+1:])
}

// takenNames are the Kubernetes Deployments of worker deployments whose versions' names could be the same as ours.
// These are those whose name begins with ours and a hyphen, or the other way round. records are sorted by name.
func takenNames(n rollout.Name, records []*recordAt) []string {
	var taken []string
	find := func(n rollout.Name) (int, bool) {
		return slices.BinarySearchFunc(records, n, func(r *recordAt, n rollout.Name) int { return r.of.Compare(n) })
	}
	for i, c := range n.Name {
		if c == '-' {
			if at, ok := find(rollout.Name{Namespace: n.Namespace, Name: n.Name[:i]}); ok {
				taken = append(taken, records[at].says.Deployments...)
			}
		}
	}
	longer := rollout.Name{Namespace: n.Namespace, Name: n.Name + "-"}
	for i, _ := find(longer); i < len(records); i++ {
		if records[i].of.Namespace != n.Namespace || !strings.HasPrefix(records[i].of.Name, longer.Name) {
			break
		}
		taken = append(taken, records[i].says.Deployments...)
	}
	slices.Sort(taken)
	return taken
}
