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

// briefs say that a Reader keeps files and records that were decoded once in brief, with the folders that they are in.
// That is enough to say which worker deployments there are and whether anything about them moved, without what they
// say. Nothing in a brief depends on any other file, or on how the bot is configured.
type briefs struct {
	// specs and records are what an earlier run knew, by path and hash, until it is come by in the first read.
	specs   map[fileKey]specBrief
	records map[fileKey]recordBrief
	// full is how many worker deployments the last read decoded that the next one need not.
	full int
}

// specBrief is a file that holds one worker deployment and nothing that is to be said about it, or no objects at all.
type specBrief struct {
	Name, Namespace   string // "" and "": no objects
	TemporalNamespace string
	Connection        v1alpha1.ConnectionRef
	Line              int
}

// noObjects is the brief of all files that hold none: there may be many.
var noObjects = new(specBrief)

// recordBrief is a record that can be read and has neither a retirement nor a proposal.
type recordBrief struct {
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

// spec is what is known of a file; nil: nothing.
func (b *briefs) spec(f *found) *specBrief {
	if b == nil || f.brief != nil || f.hash == "" || b.specs == nil {
		return f.brief
	}
	if known, ok := b.specs[f.key()]; ok {
		f.brief = &known
	}
	return f.brief
}

// nameOf is the name of the worker deployment that a brief is of.
func (e *environment) nameOf(b *specBrief) rollout.Name {
	return rollout.Name{Namespace: cmp.Or(b.Namespace, e.world.Environment.Namespace), Name: b.Name}
}

// noteSpec notes what a file holds, if that can be said in brief, and says so.
func (b *briefs) noteSpec(f *found, d decoded) (noted bool) {
	if b == nil || f.hash == "" || len(d.problems) > 0 || len(d.documents) > 1 {
		return false
	}
	if len(d.documents) == 0 {
		f.brief = noObjects
		return true
	}
	doc := &d.documents[0]
	spec, ok := doc.Object.(*v1alpha1.WorkerDeployment)
	if !ok || doc.Name == "" {
		return false
	}
	options := spec.Spec.WorkerOptions
	f.brief = &specBrief{Name: strings.Clone(doc.Name), Namespace: strings.Clone(doc.Namespace),
		TemporalNamespace: options.TemporalNamespace, Connection: options.ConnectionRef,
		Line: doc.Line} // the header is a part of the file
	return true
}

// record is what an earlier run knew of a record that was not looked at yet; nil: nothing.
func (b *briefs) record(in *recordIn) *recordBrief {
	if b == nil || in.at != nil || in.hash == "" || b.records == nil {
		return nil
	}
	if known, ok := b.records[fileKey{in.dir, in.hash}]; ok {
		return &known
	}
	return nil
}

// notes says whether a record can be known in brief. One with a retirement cannot: its spec is in its status. Nor can
// one with a proposal: the code that keeps the proposals needs all of it.
func (b *briefs) notes(r *rollout.Record) bool {
	return b != nil && r.Routing != nil && r.RoutingProblem == nil && r.Routing.Spec.Retire == nil &&
		r.Routing.Spec.Proposal == nil && len(rollout.ReviewedProposals(&r.Routing.Spec)) == 0
}

// recordAt is a record, or what is known of it.
type recordAt struct {
	rollout.Record
	of   rollout.Name
	says recordBrief
	// brief: nothing else is known of it. noted: the next survey knows it in brief.
	brief, noted bool
}

// briefOf is what a record says in brief, but for its entries.
func briefOf(r *rollout.Record, of rollout.Name) recordBrief {
	var out recordBrief
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

// survey says what is known of worker deployments, and reads all about those where that is not enough.
func (e *environment) survey(all []deploymentAt) error {
	out := make([]*rollout.Known, len(all))
	cores.Each(len(all), func(i int) { out[i] = e.inBrief(&all[i]) })
	var full []int
	for i, known := range out {
		if known != nil {
			continue
		}
		full = append(full, i)
		if e.soonInBrief(&all[i]) {
			e.briefs.full++
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
		out[i] = &rollout.Known{Deployment: all[i].name, Full: &s}
	}
	e.world.Known = out
	return nil
}

// inBrief says what is known of a worker deployment; nil: that is not enough. What a template says depends on the
// record.
func (e *environment) inBrief(d *deploymentAt) *rollout.Known {
	if !e.plain(d) || !d.record.brief || d.specs[0].brief == nil {
		return nil
	}
	at, r := d.specs[0], d.record
	if r.says.SpecPath != at.file.path && e.stays(r.says.SpecPath) {
		return nil
	}
	if _, refused := e.refused[connectionKey(at.brief.Connection, d.name.Namespace)]; refused {
		return nil // what is wrong with it has to be said
	}
	known := &rollout.Known{Deployment: d.name, SpecPath: at.file.path, SpecBlob: at.file.hash, Dir: r.Dir,
		Tree: r.Tree, Released: r.says.Released}
	var ok bool
	known.Connection, known.ConnectionPath, ok = e.connectionInBrief(at.brief.Connection, d.name.Namespace, &r.says)
	if last := r.says.Connection; ok && last != at.brief.Connection {
		known.LastConnection, _, ok = e.connectionInBrief(last, d.name.Namespace, &r.says)
	}
	if !ok {
		return nil
	}
	return known
}

// plain reports whether a worker deployment has one spec, a record and no templates, as can be said in brief.
func (e *environment) plain(d *deploymentAt) bool {
	return len(d.specs) == 1 && d.record != nil && !e.resources.concern(d.name)
}

// soonInBrief reports whether the next survey knows in brief a worker deployment that this one does not.
func (e *environment) soonInBrief(d *deploymentAt) bool {
	if !e.plain(d) {
		return false
	}
	at, r := d.specs[0], d.record
	return (r.noted || at.noted) && (r.brief || r.noted) && (at.brief != nil || at.noted)
}

// brief gives the snapshot of what is known.
func (e *environment) brief(known *rollout.Known) rollout.Snapshot {
	if known.Full != nil {
		return *known.Full
	}
	s := e.snapshot(known.Deployment)
	s.Brief, s.SpecPath, s.Git.SpecBlob, s.Connection, s.LastConnection = true, known.SpecPath, known.SpecBlob,
		known.Connection, known.LastConnection
	s.ConnectionPath = known.ConnectionPath
	s.Record.Dir, s.Record.Tree = known.Dir, known.Tree
	e.standsOn(&s)
	return s
}

// concern reports whether a worker deployment has templates, or may have.
func (r *resourceTemplates) concern(n rollout.Name) bool {
	return r.missed != nil || len(r.of[n]) > 0 || len(r.broken[n.Namespace]) > 0 || len(r.broken[""]) > 0
}

// complete fills in a snapshot by all that its files say.
func (e *environment) complete(s *rollout.Snapshot, d deploymentAt) error {
	if err := e.open(&d); err != nil {
		return err
	}
	s.Brief, s.Record = false, d.record.Record
	e.chooseSpec(s, d.specs)
	e.lastSpec(s)
	e.lastConnection(s, d.record)
	e.chooseResources(s)
	e.standsOn(s)
	return nil
}

// open reads what of a worker deployment is known in brief only.
func (e *environment) open(d *deploymentAt) error {
	if d.record != nil && d.record.brief {
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

// expanded is a spec with what its file says, where only a brief of it is known.
func (e *environment) expanded(s *specAt) (*specAt, error) {
	if s.brief == nil || s.spec != nil {
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

// Brief gives the snapshots of worker deployments of an environment.
func (v Surveyed) Brief(environment string, known []*rollout.Known) []rollout.Snapshot {
	out := make([]rollout.Snapshot, 0, len(known))
	if e := v[environment]; e != nil {
		for _, k := range known {
			out = append(out, e.brief(k))
		}
	}
	return out
}

// Fill gives snapshots of the survey with what their files say, in their order; those that are complete get what is
// Wanted of them. With an error those that could not be filled in are left out.
func (v Surveyed) Fill(ctx context.Context, snapshots []rollout.Snapshot) ([]rollout.Snapshot, error) {
	errs := make([]error, len(snapshots))
	unbrought := v.bring(ctx, snapshots)
	if unbrought != nil {
		// what is here is filled in; the server is not asked again for each of the others
		given, giveUp := context.WithCancel(ctx)
		giveUp()
		ctx = given
	}
	filled := make([]*rollout.Snapshot, len(snapshots))
	cores.Each(len(snapshots), func(i int) {
		filled[i] = &snapshots[i]
		if e := v[snapshots[i].Environment.Name]; (snapshots[i].Brief || len(snapshots[i].Wanted) > 0) && e != nil {
			filled[i], errs[i] = e.filled(ctx, snapshots[i])
		}
	})
	out := make([]rollout.Snapshot, 0, len(snapshots))
	for i, s := range filled {
		if errs[i] == nil {
			out = append(out, *s)
		}
	}
	if left := len(snapshots) - len(out); unbrought != nil && left > 0 { // all for the same reason
		return out, fmt.Errorf("%d worker deployments could not be read: %w", left, unbrought)
	}
	return out, errors.Join(errs...)
}

// filled gives a snapshot with all that its files say. What there is to be said of it the survey said, and what is
// decoded is the caller's alone.
func (e *environment) filled(ctx context.Context, s rollout.Snapshot) (*rollout.Snapshot, error) {
	own := e.within(ctx)
	if !s.Brief {
		return &s, own.wanted(&s)
	}
	d := deploymentAt{name: s.Deployment, specs: e.specsOf(s.Deployment),
		record: &recordAt{Record: s.Record, of: s.Deployment, brief: true}}
	err := own.complete(&s, d)
	return &s, err
}

// wanted fills in the contents that are wanted. One that can never be read is not.
func (e *environment) wanted(s *rollout.Snapshot) error {
	s.Record.Files = maps.Clone(s.Record.Files) // others have them, too
	for _, name := range s.Wanted {
		f, file := s.Record.Files[name], path.Join(s.Record.Dir, name)
		data, err := e.out.Read(file, f.Hash)
		if _, never := Unreadable(file, err); err != nil && !never {
			return fmt.Errorf("%s: %w", file, err)
		}
		s.Record.Files[name] = rollout.File{Hash: f.Hash, Data: string(data)}
	}
	s.Wanted = nil
	return nil
}
