package v1alpha1

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Document is one object of a file.
type Document struct {
	File string
	// Line on which the object begins, from 1.
	Line int
	// Object is a *WorkerDeployment, *Connection, *WorkerResourceTemplate, *Config, *Waiver, *Routing or *Simulation.
	// It is nil if the document is foreign, and if one of its problems is an Error: an Object is always valid and has
	// its defaults.
	Object any
	// What the document says it is, "" for what it does not say.
	APIVersion, Kind, Namespace, Name string
	// Problems of this document, in the order of their lines. Decode gives them too.
	Problems []Problem

	// data and index find the document again when a position is asked for. Keeping every position of ten thousand specs
	// would take more memory than the specs.
	data  []byte
	index int
	// flawed is a Config with errors: Configured says which of its environments have none.
	flawed *Config
}

// Foreign says that the document is of a kind that this package does not know, such as a ConfigMap beside a spec.
func (d *Document) Foreign() bool { return d.Object == nil && !HasErrors(d.Problems) }

// MadeBy says that the document is in no file as it is, but made by one: it is on no line of it.
func (d *Document) MadeBy(file string) { d.File, d.Line, d.data = file, 0, nil }

// Position gives the line and the column of a field by its path, which is written as in Problem. If the field is
// not there, it gives those of the nearest one above it. It parses the file again.
func (d *Document) Position(path string) (line, column int) {
	r := &report{file: d.File}
	f := &file{report: r, budget: maxLooked}
	roots := f.split(parse(r, d.data))
	if d.index >= len(roots) {
		return d.Line, 0
	}
	n := newExpander(r).object(roots[d.index].root)
	if n == nil {
		return d.Line, 0
	}
	if roots[d.index].known() {
		respell(r, roots[d.index].kind, n)
	}
	n = n.find(path)
	return n.line, n.column
}

// Decode reads all objects of a file: YAML with any number of documents, or JSON. Objects of a v1 List are documents of
// their own; empty documents are left out. The problems are all those of the file in the order of their lines; each
// document has its own too. The data must not be changed afterwards.
//
// Decode is strict: an unknown field, a key given twice, a wrong type, a bad duration or percentage is an Error. Only a
// Routing keeps its unknown fields, each with a Warning: a newer release may have written them. Documents of foreign
// kinds are given back without a look inside. Aliases and merges (<<) are expanded within bounds.
func Decode(name string, data []byte) ([]Document, []Problem) {
	r := &report{file: name}
	if !readable(r, data) {
		return nil, r.problems
	}
	f := &file{report: r, budget: maxLooked}
	roots := f.split(parse(r, data))
	all := r.problems
	e := newExpander(r)
	documents := make([]Document, len(roots))
	for i, root := range roots {
		d := &documents[i]
		*d = Document{File: name, Line: root.root.Line, APIVersion: root.apiVersion, Kind: root.kind,
			Namespace: root.namespace, Name: root.name, data: data, index: i}
		r.problems = nil
		if e.nodes <= 0 || e.text < 0 || len(all) >= maxProblems {
			if root.ours() {
				d.Problems = []Problem{{Severity: Error, File: name, Line: d.Line,
					Message: "not checked: the file has too much wrong with it"}}
			}
			continue
		}
		d.Object = f.object(e, root)
		sortProblems(r.problems)
		d.Problems = slices.Clip(r.problems)
		all = append(all, r.problems...)
		if HasErrors(d.Problems) {
			d.flawed, _ = d.Object.(*Config)
			d.Object = nil
		}
	}
	sortProblems(all)
	return documents, all
}

// header is what a document says of itself.
type header struct {
	root                              *yaml.Node
	apiVersion, kind, namespace, name string
}

// group of the API version.
func (h *header) group() string {
	group, _, _ := strings.Cut(h.apiVersion, "/")
	return group
}

// ours says whether the document is of one of our API groups, or was meant to be.
func (h *header) ours() bool {
	switch h.group() {
	case "temporal.io", "rampart.dev", "temporal.io.temporal.io":
		return true
	case "":
		return slices.Contains([]string{KindTemporalWorkerDeployment, KindWorkerDeployment, KindTemporalConnection,
			KindClusterConnection, KindWorkerResourceTemplate}, h.kind)
	}
	near := Closest(h.apiVersion, []string{TemporalAPIVersion, RampartAPIVersion})
	return slices.Contains(kindsOf(near), h.kind)
}

// known says whether the document is of a kind that is decoded.
func (h *header) known() bool {
	return slices.Contains(kindsOf(h.apiVersion), h.kind)
}

// kindsOf an API version.
func kindsOf(apiVersion string) []string {
	switch apiVersion {
	case TemporalAPIVersion:
		return []string{KindWorkerDeployment, KindTemporalWorkerDeployment, KindConnection, KindTemporalConnection,
			KindClusterConnection, KindWorkerResourceTemplate}
	case RampartAPIVersion:
		return []string{KindConfig, KindWaiver, KindRouting, KindSimulation}
	}
	return nil
}

// file is a file while it is decoded.
type file struct {
	report *report
	// budget is how many keys may be looked at to find out what the documents are. A list of many aliases to one large
	// object would else take a time that grows with the square of the file's size.
	budget int
}

// split gives the documents of a file, those in lists too.
func (f *file) split(roots []*yaml.Node) []header {
	headers := make([]header, 0, len(roots))
	for _, root := range roots {
		if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
			continue
		}
		h := f.header(root)
		if !isList(&h) {
			headers = append(headers, h)
			continue
		}
		items := f.field(h.root, "items", 0)
		if items == nil || items.Kind != yaml.SequenceNode {
			f.report.add(Problem{Severity: Error, Line: root.Line, Path: "items",
				Message: "a " + h.kind + " needs a list of items"})
			continue
		}
		for _, item := range items.Content {
			line, column := item.Line, item.Column
			item = unalias(item)
			h := f.header(item)
			if isList(&h) {
				f.report.add(Problem{Severity: Error, Line: line, Column: column,
					Message: "a list inside a list is not read"})
				continue
			}
			headers = append(headers, h)
		}
	}
	return headers
}

// isList says whether a document holds others: kubectl's List, or a list of one of our kinds.
func isList(h *header) bool {
	if h.apiVersion == "v1" {
		return h.kind == "List"
	}
	kind, ok := strings.CutSuffix(h.kind, "List")
	return ok && slices.Contains(kindsOf(h.apiVersion), kind)
}

func (f *file) header(root *yaml.Node) header {
	text := func(in *yaml.Node, key string) string {
		v := f.field(in, key, 0)
		if v == nil || v.Kind != yaml.ScalarNode || v.Tag == "!!null" {
			return ""
		}
		return v.Value
	}
	h := header{root: root, apiVersion: text(root, "apiVersion"), kind: text(root, "kind")}
	metadata := f.field(root, "metadata", 0)
	h.namespace, h.name = text(metadata, "namespace"), text(metadata, "name")
	return h
}

// field gives the value of a key, one that is merged in too, without expanding anything.
func (f *file) field(in *yaml.Node, key string, depth int) *yaml.Node {
	if in == nil || in.Kind != yaml.MappingNode || depth > 4 {
		return nil
	}
	var merged *yaml.Node
	for i := 0; i+1 < len(in.Content); i += 2 {
		if f.budget--; f.budget < 0 {
			return nil
		}
		switch k := in.Content[i]; {
		case k.Tag == "!!merge":
			merged = unalias(in.Content[i+1])
		case k.Value == key:
			return unalias(in.Content[i+1])
		}
	}
	if merged == nil {
		return nil
	}
	if merged.Kind != yaml.SequenceNode {
		return f.field(merged, key, depth+1)
	}
	for _, m := range merged.Content {
		if v := f.field(unalias(m), key, depth+1); v != nil || f.budget < 0 {
			return v
		}
	}
	return nil
}

func unalias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// object decodes a document: nil for a foreign one, and for one that can't be used.
func (f *file) object(e *expander, h header) any {
	if f.budget < 0 {
		f.report.add(Problem{Severity: Error, Line: h.root.Line, Message: fmt.Sprintf("the file's "+
			"aliases stand for more than %d keys: write the values out", maxLooked)})
		return nil
	}
	if !h.known() {
		f.unknownKind(&h)
		return nil
	}
	n := e.object(h.root)
	if n == nil {
		return nil
	}
	respell(f.report, h.kind, n)
	return build(&assigner{report: f.report}, h.kind, n)
}

// build makes an object of a known kind from its nodes: types, defaults, rules.
func build(a *assigner, kind string, n *node) any {
	v := &validator{report: a.report}
	s := shapes()
	switch kind {
	case KindWorkerDeployment, KindTemporalWorkerDeployment:
		w := new(WorkerDeployment)
		a.object(n, s.workerDeployment, w)
		w.Status = status(a, s, n.get("status"))
		fillWorkerDeployment(w)
		v.workerDeployment(n, w)
		return w
	case KindConnection, KindTemporalConnection, KindClusterConnection:
		c := new(Connection)
		a.object(n, s.connection, c)
		v.connection(n, c)
		return c
	case KindWorkerResourceTemplate:
		t := new(WorkerResourceTemplate)
		a.object(n, s.resourceTemplate, t)
		v.resourceTemplate(n, t)
		return t
	case KindConfig:
		c := new(Config)
		a.object(n, s.config, c)
		fillConfig(c)
		v.config(n, c)
		return c
	case KindWaiver:
		w := new(Waiver)
		a.object(n, s.waiver, w)
		v.waiver(n)
		return w
	case KindSimulation:
		w := new(Simulation)
		a.object(n, s.simulation, w)
		v.simulation(n, &w.Spec)
		return w
	default:
		w := new(Routing)
		a.keeps = true
		if a.object(n, s.routing, w); a.kept {
			w.Whole = n.json()
		}
		v.routing(n, w)
		return w
	}
}

// status reads a worker deployment's status: Rampart's own is wanted, and what another tool wrote there is no reason to
// refuse a spec.
func status(of *assigner, s *shapeSet, n *node) *WorkerDeploymentStatus {
	if n == nil || n.kind == nullNode {
		return nil
	}
	a := &assigner{report: &report{}, lenient: true}
	out := new(WorkerDeploymentStatus)
	a.object(n, s.status, out)
	if len(a.report.problems) > 0 {
		of.report.warnf(n, "the status is not in a form that Rampart writes, and is left out")
		return nil
	}
	return out
}

// unknownKind reports a document of our API groups whose kind is not one of ours. Other projects have kinds in
// temporal.io too, so it ignores a kind that is neither near one of ours nor an early name of one.
func (f *file) unknownKind(h *header) {
	if !h.ours() {
		return
	}
	want := cmp.Or(Closest(h.apiVersion, []string{TemporalAPIVersion, RampartAPIVersion}), TemporalAPIVersion)
	kinds := kindsOf(want)
	p := Problem{Severity: Error, Line: h.root.Line, Column: h.root.Column, Path: "kind"}
	near := Closest(h.kind, kinds)
	switch {
	case h.kind == "":
		p.Message = "is required: one of " + strings.Join(kinds, ", ")
	case h.apiVersion == "":
		p.Path, p.Message, p.Suggestion = "apiVersion", "is required", want
	case slices.Contains(kinds, h.kind):
		p.Path, p.Message, p.Suggestion = "apiVersion", fmt.Sprintf("%s has no kind %s", quote(h.apiVersion), h.kind),
			want
	case h.kind == "TemporalWorker":
		p.Message = "TemporalWorker is an early name that is no longer read"
		p.Suggestion = KindWorkerDeployment
	case h.kind == "TemporalWorkerOwnedResource":
		p.Message = "TemporalWorkerOwnedResource is an early name that is no longer read; its spec.object is now " +
			"spec.template, its spec.workerRef is spec.workerDeploymentRef"
		p.Suggestion = KindWorkerResourceTemplate
	case near != "":
		p.Message, p.Suggestion = "unknown kind "+quote(h.kind), near
	case h.group() == "rampart.dev":
		p.Message = "unknown kind " + quote(h.kind) + ": one of " + strings.Join(kinds, ", ")
	case h.apiVersion == want:
		p.Severity, p.Message = Warning, "kind "+quote(h.kind)+" is not known, and left alone"
	default:
		return
	}
	if n := f.field(h.root, p.Path, 0); n != nil {
		p.Line, p.Column = n.Line, n.Column
	}
	f.report.add(p)
}
