package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/tree"
	"github.com/rampart-gitops/rampart/internal/cores"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// fileIndex has a Reader keep an entry of each file and record that was decoded once, with the folders that they are
// in. That is enough to say which worker deployments there are and whether anything about them moved, without what they
// say. Nothing in an entry depends on any other file, or on how the bot is configured.
type fileIndex struct {
	// specs and records are the entries of an earlier run, by path and hash, until the first read comes by them.
	specs   map[fileKey]specEntry
	records map[fileKey]recordEntry
	// full is how many worker deployments the last read decoded that the next one need not.
	full int
}

// specEntry is a file that holds one worker deployment and nothing that is to be said about it, or no objects at all.
type specEntry struct {
	Name, Namespace   string // "" and "": no objects
	TemporalNamespace string
	Connection        v1alpha1.ConnectionRef
	Line              int
}

// noObjects is the entry of all files that hold none: there may be many.
var noObjects = new(specEntry)

// recordEntry is a record that can be read and has neither a retirement nor a proposal.
type recordEntry struct {
	Deployments []string // names of its Kubernetes Deployments
	InProgress  *rollout.InProgress
	// Connection that it names, the file that it was in, and the address that it led to; "" for none.
	Connection              v1alpha1.ConnectionRef
	ConnectionPath, Address string
	// SpecPath is where the spec was.
	SpecPath string
	// Released says that a person handed the routing back.
	Released bool
	// Temporal namespaces that it names.
	Temporal []string
	// Files and folders that it has.
	Entries int
}

// spec is the entry of a file; nil: there is none yet.
func (b *fileIndex) spec(f *found) *specEntry {
	if b == nil || f.entry != nil || f.hash == "" || b.specs == nil {
		return f.entry
	}
	if entry, ok := b.specs[f.key()]; ok {
		f.entry = &entry
	}
	return f.entry
}

// nameOf is the name of the worker deployment that an entry is of.
func (e *environment) nameOf(b *specEntry) rollout.Name {
	return rollout.Name{Namespace: cmp.Or(b.Namespace, e.world.Environment.Namespace), Name: b.Name}
}

// noteSpec makes the entry of a file, if its objects fit into one, and reports whether they do.
func (b *fileIndex) noteSpec(f *found, d decoded) (noted bool) {
	if b == nil || f.hash == "" || len(d.problems) > 0 || len(d.documents) > 1 {
		return false
	}
	if len(d.documents) == 0 {
		f.entry = noObjects
		return true
	}
	doc := &d.documents[0]
	spec, ok := doc.Object.(*v1alpha1.WorkerDeployment)
	if !ok || doc.Name == "" {
		return false
	}
	options := spec.Spec.WorkerOptions
	f.entry = &specEntry{Name: strings.Clone(doc.Name), Namespace: strings.Clone(doc.Namespace),
		TemporalNamespace: options.TemporalNamespace, Connection: options.ConnectionRef,
		Line: doc.Line} // the header is a part of the file
	return true
}

// record is the entry that an earlier run had of a record that was not looked at yet; nil: none.
func (b *fileIndex) record(in *recordIn) *recordEntry {
	if b == nil || in.at != nil || in.hash == "" || b.records == nil {
		return nil
	}
	if entry, ok := b.records[fileKey{in.dir, in.hash}]; ok {
		return &entry
	}
	return nil
}

// notes reports whether an entry is enough of a record. For one with a retirement it is not: its spec is in its
// status. Nor is it for one with a proposal: the code that keeps the proposals needs all of it.
func (b *fileIndex) notes(r *rollout.Record) bool {
	return b != nil && r.Routing != nil && r.RoutingProblem == nil && r.Routing.Spec.Retire == nil &&
		r.Routing.Spec.Proposal == nil && len(rollout.ReviewedProposals(&r.Routing.Spec)) == 0
}

// recordAt is a record, or its entry.
type recordAt struct {
	rollout.Record
	of   rollout.Name
	says recordEntry
	// partial: only its entry is there. noted: the next survey has only its entry.
	partial, noted bool
}

// recordEntryOf is the entry of a record, but for the number of its files and folders.
func recordEntryOf(r *rollout.Record, of rollout.Name) recordEntry {
	var out recordEntry
	if p, ok := r.InProgress(of); ok {
		out.InProgress = &p
	}
	if r.Routing != nil {
		spec := &r.Routing.Spec
		out.Deployments, out.SpecPath = rollout.TakenBy(spec.Versions), spec.SpecPath
		out.Released = spec.Hold != nil && spec.Hold.Kind == v1alpha1.HoldReleased
		out.Temporal = []string{spec.TemporalNamespace}
		if c := spec.Connection; c != nil {
			out.Connection, out.ConnectionPath, out.Address = c.Ref(), c.Path, c.Spec.HostPort
		} else if r.Status != nil { // the last good spec
			out.Connection = r.Status.Spec.WorkerOptions.ConnectionRef
		}
	}
	if last := r.Status; last != nil && !slices.Contains(out.Temporal, last.Spec.WorkerOptions.TemporalNamespace) {
		out.Temporal = append(out.Temporal, last.Spec.WorkerOptions.TemporalNamespace)
	}
	return out
}

// survey gives the index entries of worker deployments, and reads all about those where an entry is not enough.
func (e *environment) survey(all []deploymentAt) error {
	out := make([]*rollout.IndexEntry, len(all))
	cores.Each(len(all), func(i int) { out[i] = e.indexEntry(&all[i]) })
	var full []int
	for i, entry := range out {
		if entry != nil {
			continue
		}
		full = append(full, i)
		if e.soonIndexed(&all[i]) {
			e.index.full++
		}
	}
	if err := e.bringFor(all, full); err != nil {
		return err
	}
	problems, errs := make([][]v1alpha1.Problem, len(full)), make([]error, len(full))
	cores.Each(len(full), func(k int) {
		own := *e
		own.world.Problems = nil
		errs[k] = own.open(&all[full[k]])
		problems[k] = own.world.Problems
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	e.world.Problems = slices.Concat(e.world.Problems, slices.Concat(problems...))
	for _, i := range full {
		s, err := e.whole(all[i])
		if err != nil {
			return err
		}
		out[i] = &rollout.IndexEntry{Deployment: all[i].name, Full: &s}
	}
	e.world.Entries = out
	return nil
}

// indexEntry gives the index entry of a worker deployment; nil: it is not enough. What a template says depends on the
// record.
func (e *environment) indexEntry(d *deploymentAt) *rollout.IndexEntry {
	if !e.plain(d) || !d.record.partial || d.specs[0].entry == nil {
		return nil
	}
	at, r := d.specs[0], d.record
	if r.says.SpecPath != at.file.path && e.stays(r.says.SpecPath) {
		return nil
	}
	if _, refused := e.refused[connectionKey(at.entry.Connection, d.name.Namespace)]; refused {
		return nil // what is wrong with it has to be said
	}
	entry := &rollout.IndexEntry{Deployment: d.name, SpecPath: at.file.path, SpecBlob: at.file.hash, Dir: r.Dir,
		Tree: r.Tree, Released: r.says.Released}
	var ok bool
	entry.Connection, entry.ConnectionPath, ok = e.entryConnection(at.entry.Connection, d.name.Namespace, &r.says)
	if last := r.says.Connection; ok && last != at.entry.Connection {
		entry.LastConnection, _, ok = e.entryConnection(last, d.name.Namespace, &r.says)
	}
	if !ok {
		return nil
	}
	return entry
}

// plain reports whether a worker deployment has one spec, a record and no templates, as an index entry can say.
func (e *environment) plain(d *deploymentAt) bool {
	return len(d.specs) == 1 && d.record != nil && !e.resources.concern(d.name)
}

// soonIndexed reports whether an index entry is enough for the next survey, though it was not for this one.
func (e *environment) soonIndexed(d *deploymentAt) bool {
	if !e.plain(d) {
		return false
	}
	at, r := d.specs[0], d.record
	return (r.noted || at.noted) && (r.partial || r.noted) && (at.entry != nil || at.noted)
}

// snapshotOf gives the snapshot of an index entry: a partial one, unless its files were read.
func (e *environment) snapshotOf(entry *rollout.IndexEntry) rollout.Snapshot {
	if entry.Full != nil {
		return *entry.Full
	}
	s := e.snapshot(entry.Deployment)
	s.Partial, s.SpecPath, s.Git.SpecBlob, s.Connection, s.LastConnection = true, entry.SpecPath, entry.SpecBlob,
		entry.Connection, entry.LastConnection
	s.ConnectionPath = entry.ConnectionPath
	s.Record.Dir, s.Record.Tree = entry.Dir, entry.Tree
	e.standsOn(&s)
	return s
}

// concern reports whether a worker deployment has templates, or may have.
func (r *resourceTemplates) concern(n rollout.Name) bool {
	return r.missed != nil || len(r.of[n]) > 0 || len(r.broken[n.Namespace]) > 0 || len(r.broken[""]) > 0
}

// complete loads a snapshot: all that its files say.
func (e *environment) complete(s *rollout.Snapshot, d deploymentAt) error {
	if err := e.open(&d); err != nil {
		return err
	}
	s.Partial, s.Record = false, d.record.Record
	e.chooseSpec(s, d.specs)
	e.lastSpec(s)
	e.lastConnection(s, d.record)
	e.chooseResources(s)
	e.standsOn(s)
	return nil
}

// open reads those files of a worker deployment that the index has only entries of.
func (e *environment) open(d *deploymentAt) error {
	if d.record != nil && d.record.partial {
		full, err := e.readRecord(recordIn{of: d.name, dir: d.record.Dir, hash: d.record.Tree}, tree.NewBudget())
		if err != nil {
			return err
		}
		d.record = &full
	}
	specs := make([]*specAt, len(d.specs))
	for i, s := range d.specs {
		var err error
		if specs[i], err = e.expanded(s); err != nil {
			return err
		}
	}
	d.specs = specs
	return nil
}

// expanded is a spec with what its file says, where only its entry is there.
func (e *environment) expanded(s *specAt) (*specAt, error) {
	if s.entry == nil || s.spec != nil {
		return s, nil
	}
	d, err := e.decodeAnew(e.tree, s.file)
	if err != nil {
		return nil, err
	}
	out := *s
	if len(d.documents) == 1 {
		if object, ok := d.documents[0].Object.(*v1alpha1.WorkerDeployment); ok {
			out.spec = named(object, s.name.Namespace)
		}
	}
	return &out, nil
}

// Surveyed are the environments of one survey, by name. Nothing changes them any more.
type Surveyed map[string]*environment

// Snapshots gives the snapshots of worker deployments of an environment, partial where their files were not read.
func (v Surveyed) Snapshots(environment string, entries []*rollout.IndexEntry) []rollout.Snapshot {
	out := make([]rollout.Snapshot, 0, len(entries))
	if e := v[environment]; e != nil {
		for _, k := range entries {
			out = append(out, e.snapshotOf(k))
		}
	}
	return out
}

// Load gives snapshots of the survey with what their files say, in their order; those that are complete get their
// LoadFiles. With an error those that could not be loaded are left out.
func (v Surveyed) Load(ctx context.Context, snapshots []rollout.Snapshot) ([]rollout.Snapshot, error) {
	errs := make([]error, len(snapshots))
	unbrought := v.bring(ctx, snapshots)
	if unbrought != nil {
		// what is here is loaded; the server is not asked again for each of the others
		given, giveUp := context.WithCancel(ctx)
		giveUp()
		ctx = given
	}
	loaded := make([]*rollout.Snapshot, len(snapshots))
	cores.Each(len(snapshots), func(i int) {
		s := &snapshots[i]
		loaded[i] = s
		if e := v[s.Environment.Name]; (s.Partial || len(s.LoadFiles) > 0) && e != nil {
			loaded[i], errs[i] = e.loaded(ctx, *s)
		}
	})
	out := make([]rollout.Snapshot, 0, len(snapshots))
	for i, s := range loaded {
		if errs[i] == nil {
			out = append(out, *s)
		}
	}
	if left := len(snapshots) - len(out); unbrought != nil && left > 0 { // all for the same reason
		return out, fmt.Errorf("%d worker deployments could not be read: %w", left, unbrought)
	}
	return out, errors.Join(errs...)
}

// loaded gives a snapshot with all that its files say. What there is to be said of it the survey said, and what is
// decoded is the caller's alone.
func (e *environment) loaded(ctx context.Context, s rollout.Snapshot) (*rollout.Snapshot, error) {
	own := e.within(ctx)
	if !s.Partial {
		return &s, own.loadFiles(&s)
	}
	d := deploymentAt{name: s.Deployment, specs: e.specsOf(s.Deployment),
		record: &recordAt{Record: s.Record, of: s.Deployment, partial: true}}
	err := own.complete(&s, d)
	return &s, err
}

// loadFiles loads the contents of a snapshot's LoadFiles. It leaves out those that can never be read.
func (e *environment) loadFiles(s *rollout.Snapshot) error {
	s.Record.Files = maps.Clone(s.Record.Files) // others have them, too
	for _, name := range s.LoadFiles {
		f, file := s.Record.Files[name], path.Join(s.Record.Dir, name)
		data, err := e.out.Read(file, f.Hash)
		if _, never := Unreadable(file, err); err != nil && !never {
			return fmt.Errorf("%s: %w", file, err)
		}
		s.Record.Files[name] = rollout.File{Hash: f.Hash, Data: string(data)}
	}
	s.LoadFiles = nil
	return nil
}
