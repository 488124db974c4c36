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

// briefs say that a Reader keeps files and records that were decoded once in brief, with the folders that they are in:
// enough to say which worker deployments there are and whether anything about them moved, without what they say.
// Nothing in a brief depends on any other file, or on how the bot is configured.
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

// noteRecord says in brief what a record says; nil if that cannot be done. It notes no record with a retirement,
// whose spec is in its status. It notes none with a proposal: the code that keeps the proposals needs all of it.
func (b *briefs) noteRecord(r *recordAt) *recordBrief {
	if b == nil || r.Routing == nil || r.RoutingProblem != nil || r.Routing.Spec.Retire != nil ||
		r.Routing.Spec.Proposal != nil || len(rollout.ReviewedProposals(&r.Routing.Spec)) > 0 {
		return nil
	}
	note := &recordBrief{Deployments: r.deployments(), Connection: r.connection(), Temporal: r.temporal(),
		Entries: r.entries, SpecPath: r.Routing.Spec.SpecPath, Address: r.address()}
	note.Released = r.Routing.Spec.Hold != nil && r.Routing.Spec.Hold.Kind == v1alpha1.HoldReleased
	if c := r.Routing.Spec.Connection; c != nil {
		note.ConnectionPath = c.Path
	}
	if p, ok := r.InProgress(r.of); ok {
		note.InProgress = &p
	}
	return note
}

// recordAt is a record, or what is known of it.
type recordAt struct {
	rollout.Record
	of    rollout.Name
	brief *recordBrief
	// entries are its files and folders. noted is what the next survey knows of it; nil: it has to know all.
	entries int
	noted   *recordBrief
}

func (r *recordAt) inProgress() (rollout.InProgress, bool) {
	switch {
	case r.brief == nil:
		return r.InProgress(r.of)
	case r.brief.InProgress == nil:
		return rollout.InProgress{}, false
	}
	return *r.brief.InProgress, true
}

// deployments are the names of its Kubernetes Deployments.
func (r *recordAt) deployments() []string {
	if r.brief != nil {
		return r.brief.Deployments
	}
	if r.Routing == nil {
		return nil
	}
	return rollout.TakenBy(r.Routing.Spec.Versions)
}

// connection is what the last good spec named; without a name if nothing is known of it.
func (r *recordAt) connection() v1alpha1.ConnectionRef {
	switch {
	case r.brief != nil:
		return r.brief.Connection
	case r.Routing == nil:
		return v1alpha1.ConnectionRef{}
	case r.Routing.Spec.Connection != nil:
		return r.Routing.Spec.Connection.Ref()
	case r.Status != nil:
		return r.Status.Spec.WorkerOptions.ConnectionRef
	}
	return v1alpha1.ConnectionRef{}
}

// address is where its versions are; "" if it does not say so.
func (r *recordAt) address() string {
	switch {
	case r.brief != nil:
		return r.brief.Address
	case r.Routing == nil || r.Routing.Spec.Connection == nil:
		return ""
	}
	return r.Routing.Spec.Connection.Spec.HostPort
}

// temporal are the Temporal namespaces that it names.
func (r *recordAt) temporal() []string {
	if r.brief != nil {
		return r.brief.Temporal
	}
	var out []string
	if r.Routing != nil {
		out = append(out, r.Routing.Spec.TemporalNamespace)
	}
	if r.Status != nil && !slices.Contains(out, r.Status.Spec.WorkerOptions.TemporalNamespace) {
		out = append(out, r.Status.Spec.WorkerOptions.TemporalNamespace)
	}
	return out
}

// survey says what is known of worker deployments, and reads all about those where that is not enough.
func (e *environment) survey(all []deploymentAt) error {
	out := make([]*rollout.Known, len(all))
	var full []int
	for i := range all {
		if known, ok := e.inBrief(&all[i]); ok {
			out[i] = &known
		} else {
			full = append(full, i)
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

// inBrief says what is known of a worker deployment, if that is enough. What a template says depends on the record.
func (e *environment) inBrief(d *deploymentAt) (rollout.Known, bool) {
	if len(d.specs) != 1 || d.record == nil || e.resources.concern(d.name) {
		return rollout.Known{}, false
	}
	at, r := d.specs[0], d.record
	if r.brief == nil || at.brief == nil {
		if (r.brief != nil || r.noted != nil) && (at.brief != nil || at.noted) {
			e.briefs.full++ // the next survey knows it in brief
		}
		return rollout.Known{}, false
	}
	if r.brief.SpecPath != at.file.path && e.stays(r.brief.SpecPath) {
		return rollout.Known{}, false
	}
	if _, refused := e.refused[connectionKey(at.brief.Connection, d.name.Namespace)]; refused {
		return rollout.Known{}, false // what is wrong with it has to be said
	}
	known := rollout.Known{Deployment: d.name, SpecPath: at.file.path, SpecBlob: at.file.hash, Dir: r.Dir, Tree: r.Tree,
		Released: r.brief.Released}
	var ok bool
	known.Connection, known.ConnectionPath, ok = e.connectionInBrief(at.brief.Connection, d.name.Namespace, r.brief)
	if last := r.brief.Connection; ok && last != at.brief.Connection {
		known.LastConnection, _, ok = e.connectionInBrief(last, d.name.Namespace, r.brief)
	}
	return known, ok
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
	if d.record != nil && d.record.brief != nil {
		full, err := e.readRecord(d.record.Dir, d.record.Tree, tree.NewBudget())
		if err != nil {
			return err
		}
		full.of, d.record = d.name, &full
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
		record: &recordAt{Record: s.Record, of: s.Deployment, brief: &recordBrief{}}}
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
