package takeover

import (
	"bytes"
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/render"
)

// Input is what is imported, and where to.
type Input struct {
	// Live are texts of live objects, as kubectl get -o yaml or -o json prints them.
	Live []rollout.TextFile
	// Environment that they go to.
	Environment v1alpha1.Environment
	// Repository are the objects that the environment's files have already, in any order.
	Repository []v1alpha1.Document
	// Roots are the folders of the environment's records below its output's path.
	Roots []string
	// Specs is the folder that specs, connections and templates are written to, from the repository's root.
	Specs string
	// Plain are Deployments without versions that specs are made of.
	Plain []Plain
}

// Plain is a Deployment without versions that a spec is made of.
type Plain struct {
	// Deployment by its name; without a namespace: the one of that name.
	Deployment rollout.Name
	// TemporalNamespace and Connection of the spec; "": what the containers' variables say.
	TemporalNamespace, Connection string
}

// Import is what is imported.
type Import struct {
	// Deployments sorted by name.
	Deployments []Deployment `json:"deployments"`
	// Files to write, by path from the repository's root, sorted.
	Files []rollout.TextFile `json:"files"`
	// Ignored are how many objects were left alone, by their kind.
	Ignored map[string]int `json:"ignored,omitempty"`
}

// Deployment is a worker deployment that is imported.
type Deployment struct {
	Name     string `json:"name"` // namespace/name
	SpecPath string `json:"specPath"`
	// Target is the version that the spec asks for; "": none was made yet.
	Target string `json:"target,omitempty"`
	// Versions in the order of their creation; none: it comes from a Deployment without versions.
	Versions []string `json:"versions,omitempty"`
	// ManagerIdentity is who owns the routing in Temporal, as the status says.
	ManagerIdentity string `json:"managerIdentity,omitempty"`
}

type importer struct {
	in       Input
	problems []v1alpha1.Problem
	files    map[string]string
	dirs     []string // of records
	out      Import

	workers, connections, templates, deployments []*object
	// named are connections and templates as they will be in the repository.
	named map[named]place
}

// fail notes what is wrong with an object, at a field; "": the object.
func (i *importer) fail(o *object, field, format string, args ...any) {
	i.problems = append(i.problems, o.problem(field, format, args...))
}

// warn notes what people should know of an object.
func (i *importer) warn(o *object, field, format string, args ...any) {
	p := o.problem(field, format, args...)
	p.Severity = v1alpha1.Warning
	i.problems = append(i.problems, p)
}

// named is an object of the repository: its kind by the newer of its two names.
type named struct {
	kind string
	name rollout.Name
}

// place is an object of the repository, and the file that it is in.
type place struct {
	object any
	path   string
}

// FromLive turns live objects into files of a repository. There are no files if one of the problems is an Error.
func FromLive(in Input) (Import, []v1alpha1.Problem) {
	i := &importer{in: in, files: map[string]string{}, named: map[named]place{}, out: Import{Ignored: map[string]int{}}}
	for _, d := range in.Repository {
		if d.Object != nil {
			i.named[named{newKind(d.Kind), nameIn(in.Environment, d)}] = place{d.Object, d.File}
		}
	}
	live, problems := read(in.Live)
	i.problems = problems
	i.sort(live)
	for _, o := range i.connections {
		i.take(o)
	}
	for _, o := range i.templates {
		i.take(o)
	}
	for _, o := range i.workers {
		i.worker(o)
	}
	for _, p := range in.Plain {
		i.plain(p)
	}
	i.others()
	i.root()
	return i.finish()
}

// newKind is the newer name of a kind.
func newKind(kind string) string {
	switch kind {
	case v1alpha1.KindTemporalWorkerDeployment:
		return v1alpha1.KindWorkerDeployment
	case v1alpha1.KindTemporalConnection:
		return v1alpha1.KindConnection
	}
	return kind
}

// nameIn is the name of an object of the repository, with the environment's namespace where it has none.
func nameIn(env v1alpha1.Environment, d v1alpha1.Document) rollout.Name {
	n := rollout.Name{Namespace: d.Namespace, Name: d.Name}
	if n.Namespace == "" && d.Kind != v1alpha1.KindClusterConnection {
		n.Namespace = env.Namespace
	}
	return n
}

// sort puts the live objects in their places. Of the two kinds of one name the newer counts, once the controller went
// on with it.
func (i *importer) sort(live []*object) {
	for _, o := range live {
		isOurs := o.apiVersion == v1alpha1.TemporalAPIVersion
		switch kind := newKind(o.kind); {
		case isOurs && kind == v1alpha1.KindWorkerDeployment:
			i.workers = i.add(i.workers, o)
		case isOurs && (kind == v1alpha1.KindConnection || kind == v1alpha1.KindClusterConnection):
			i.connections = i.add(i.connections, o)
		case isOurs && kind == v1alpha1.KindWorkerResourceTemplate:
			i.templates = i.add(i.templates, o)
		case o.apiVersion == "apps/v1" && kind == "Deployment":
			i.deployments = i.add(i.deployments, o)
		default:
			i.out.Ignored[o.kind]++
		}
	}
	for _, list := range [][]*object{i.workers, i.connections, i.templates, i.deployments} {
		slices.SortFunc(list, func(a, b *object) int { return a.name.Compare(b.name) })
	}
}

func (i *importer) add(list []*object, o *object) []*object {
	if o.name.Namespace == "" && o.kind != v1alpha1.KindClusterConnection {
		i.fail(o, "metadata", "it has no namespace: give what kubectl get -o yaml prints")
		return list
	}
	if text(o.value, "metadata", "deletionTimestamp") != "" {
		i.fail(o, "metadata.deletionTimestamp",
			"it is being deleted: wait until it is gone, or take its finalizers away, and read again")
		return list
	}
	was := slices.IndexFunc(list, func(other *object) bool {
		return newKind(other.kind) == newKind(o.kind) && other.name == o.name
	})
	switch {
	case was < 0:
		return append(list, o)
	case list[was].kind == o.kind:
		i.fail(o, "", "it is there twice, also in line %d of %s: give each object once", list[was].node.Line,
			list[was].file)
	case migrated(list[was]) || o.kind == v1alpha1.KindConnection:
		list[was] = o
	case !migrated(o) && newKind(o.kind) == v1alpha1.KindWorkerDeployment:
		i.fail(o, "", "there is a %s too, and the controller did not go on with one of them: let it finish the "+
			"migration", list[was])
	}
	return list
}

// migrated reports whether the controller went on with an object of the newer kind.
func migrated(o *object) bool {
	return text(o.value, "metadata", "labels", "temporal.io/migrated-to-wd") == "true"
}

// take writes a connection or a template, unless the repository has it.
func (i *importer) take(o *object) {
	d, ok := i.decode(o)
	if !ok {
		return
	}
	as := named{newKind(o.kind), o.name}
	if there, ok := i.named[as]; ok && there.path != i.fileOf(o) {
		if !same(there.object, d.Object) {
			i.fail(o, "spec", "it is not what %s has: make the two the same, or take it out of that file", there.path)
		}
		return
	}
	i.named[as] = place{d.Object, i.fileOf(o)}
	i.write(i.fileOf(o), o.source())
}

// decode reads an object as the bot will.
func (i *importer) decode(o *object) (v1alpha1.Document, bool) {
	data, err := render.YAML(o.source())
	if err != nil {
		i.fail(o, "", "%v", err)
		return v1alpha1.Document{}, false
	}
	documents, problems := v1alpha1.Decode(o.file, data)
	for _, p := range problems {
		p.Line, p.Column, p.Message = o.line(p.Path), 0, o.String()+": "+p.Message
		i.problems = append(i.problems, p)
	}
	if len(documents) != 1 || documents[0].Object == nil {
		return v1alpha1.Document{}, false
	}
	return documents[0], true
}

// same reports whether two objects say the same, whatever the kind's name and the metadata are.
func same(a, b any) bool {
	switch a := a.(type) {
	case *v1alpha1.Connection:
		b, ok := b.(*v1alpha1.Connection)
		return ok && a.Spec.Hash() == b.Spec.Hash()
	case *v1alpha1.WorkerResourceTemplate:
		b, ok := b.(*v1alpha1.WorkerResourceTemplate)
		return ok && a.Spec.Deployment() == b.Spec.Deployment() && bytes.Equal(a.Spec.Template, b.Spec.Template)
	case *v1alpha1.WorkerDeployment:
		b, ok := b.(*v1alpha1.WorkerDeployment)
		return ok && sameSpec(*a, *b)
	}
	return false
}

// sameSpec compares two specs. Templates are the same if they are to the controller, which sees them with its
// definition's defaults.
func sameSpec(a, b v1alpha1.WorkerDeployment) bool {
	if !bytes.Equal(a.Spec.Template.ControllerJSON(), b.Spec.Template.ControllerJSON()) {
		return false
	}
	a.Metadata.Namespace, a.Spec.Template = b.Metadata.Namespace, b.Spec.Template
	return a.Digest() == b.Digest()
}

// fileOf is the file that an object is written to. A worker deployment has no dot in its name.
func (i *importer) fileOf(o *object) string {
	name := o.name.Name
	if kind := newKind(o.kind); kind != v1alpha1.KindWorkerDeployment {
		name += "." + strings.ToLower(kind)
	}
	return path.Join(i.in.Specs, o.name.Namespace, name+".yaml")
}

func (i *importer) write(file string, value any) {
	data, err := render.YAML(value)
	if err != nil {
		i.problems = append(i.problems, v1alpha1.Problem{Severity: v1alpha1.Error, File: file, Message: err.Error()})
		return
	}
	i.files[file] = string(data)
}

// root writes the environment's kustomization.yaml with the new records.
func (i *importer) root() {
	if len(i.dirs) == 0 {
		return
	}
	change, err := render.Root(i.in.Environment, slices.Concat(i.in.Roots, i.dirs))
	if err != nil {
		i.problems = append(i.problems, v1alpha1.Problem{Severity: v1alpha1.Error, File: i.in.Environment.Output.Path,
			Message: err.Error()})
		return
	}
	i.files[change.Path] = change.Data
}

func (i *importer) finish() (Import, []v1alpha1.Problem) {
	if len(i.out.Deployments) == 0 && !v1alpha1.HasErrors(i.problems) {
		i.problems = append(i.problems, v1alpha1.Problem{Severity: v1alpha1.Error, File: files(i.in.Live),
			Message: "no worker deployment is among the objects: give what " +
				"kubectl get -n NAMESPACE temporalworkerdeployments,temporalconnections,deployments -o yaml " +
				"prints, or " +
				"name a Deployment without versions with --deployment"})
	}
	slices.SortStableFunc(i.problems, func(a, b v1alpha1.Problem) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line)
	})
	if v1alpha1.HasErrors(i.problems) {
		return Import{}, i.problems
	}
	slices.SortFunc(i.out.Deployments, func(a, b Deployment) int { return strings.Compare(a.Name, b.Name) })
	for _, name := range slices.Sorted(maps.Keys(i.files)) {
		i.out.Files = append(i.out.Files, rollout.TextFile{Path: name, Text: i.files[name]})
	}
	return i.out, i.problems
}

// files names where objects come from.
func files(live []rollout.TextFile) string {
	var names []string
	for _, f := range live {
		names = append(names, f.Path)
	}
	return strings.Join(names, ", ")
}
