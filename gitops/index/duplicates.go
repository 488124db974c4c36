package index

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Several objects may have one kind, namespace and name: by mistake, or because another team wants to change what this
// one has. The object at the recorded path counts; else the one with the content that was rendered last; else none of
// them does.

// duplicates are several objects of one kind, namespace and name.
type duplicates struct {
	kind string
	name rollout.Name
	at   []place
	// equal reports whether two of them say the same.
	equal func(i, j int) bool
	// kept are the indexes of those that count for a worker deployment.
	kept map[int]bool
}

// recordedAs says which of several objects a record knows.
type recordedAs struct {
	path, rendered func(i int) bool
	// stays says that the file at the recorded path is there still: it may be broken, or be about to have the object
	// again.
	stays bool
}

// keeper gives the index of the object that counts; -1: none does. Of equal copies at the recorded path, or anywhere,
// it is the first.
func (d *duplicates) keeper(was recordedAs) int {
	those := func(of []int, are func(int) bool) []int {
		return slices.DeleteFunc(slices.Clone(of), func(i int) bool { return !are(i) })
	}
	alike := func(some []int) bool {
		return !slices.ContainsFunc(some, func(i int) bool { return !d.equal(some[0], i) })
	}
	all := make([]int, len(d.at))
	for i := range all {
		all[i] = i
	}
	left := those(all, was.path)
	switch {
	case len(left) == 0 && alike(all) && !was.stays:
		left = all
	case len(left) == 0:
		left = those(all, was.rendered)
	case !alike(left):
		left = those(left, was.rendered)
	}
	if len(left) == 0 || !alike(left) {
		return -1
	}
	return left[0]
}

// copied reports whether there is another one that says the same.
func (d *duplicates) copied(i int) bool {
	for j := range d.at {
		if j != i && d.equal(i, j) {
			return true
		}
	}
	return false
}

// alike reports whether all say the same.
func (d *duplicates) alike() bool {
	for i := range d.at {
		if !d.equal(0, i) {
			return false
		}
	}
	return true
}

// keep notes that one of them counts for a worker deployment.
func (d *duplicates) keep(i int) {
	if d.kept == nil {
		d.kept = map[int]bool{}
	}
	d.kept[i] = true
}

// where names the file of an object beside another one; its line, if both are in one file.
func (d *duplicates) where(i, beside int) string {
	if d.at[i].file == d.at[beside].file && d.at[i].line > 0 {
		return fmt.Sprintf("line %d", d.at[i].line)
	}
	return d.at[i].file
}

// says is what is wrong with one of them, "" for nothing.
func (d *duplicates) says(i int) (v1alpha1.Severity, string) {
	same := func(j int) (v1alpha1.Severity, string) {
		return v1alpha1.Warning, fmt.Sprintf("%s is the same as the %s in %s: one is enough, remove the other", d.name,
			d.kind, d.where(j, i))
	}
	for _, k := range slices.Sorted(maps.Keys(d.kept)) {
		switch {
		case k == i && len(d.kept) > 1:
		case k == i:
			return "", ""
		case d.equal(i, k):
			return same(k)
		default:
			return v1alpha1.Error, fmt.Sprintf("%s is already the name of the %s in %s, which is the recorded one: "+
				"this one is not used; give it another name, or remove it",
				d.name, d.kind, d.where(k, i))
		}
	}
	if d.alike() {
		if i == 0 {
			return "", ""
		}
		return same(0)
	}
	j := 0
	for d.equal(i, j) {
		j++
	}
	return v1alpha1.Error, fmt.Sprintf("%s is also the name of the %s in %s, which says something else: neither is "+
		"used; keep one of them", d.name, d.kind, d.where(j, i))
}

// sayStays is what is wrong with an object while the file that had it is there without it.
func (e *environment) sayStays(kind string, name rollout.Name, recorded string) string {
	if _, broken := e.brokenAt(recorded); broken {
		return fmt.Sprintf("%s is the name of the %s in %s, which cannot be read: this one is not used until that "+
			"file is mended", name, kind, recorded)
	}
	return fmt.Sprintf("%s is the name of the %s in %s, which is there and does not have it now: this one is not "+
		"used until that file has it again, or is removed", name, kind, recorded)
}

// report reports what is wrong with each of them.
func (e *environment) report(d *duplicates) {
	for i, at := range d.at {
		if severity, message := d.says(i); message != "" {
			e.world.Problems = append(e.world.Problems, v1alpha1.Problem{Severity: severity, File: at.file,
				Line: at.line, Path: "metadata.name", Message: message})
		}
	}
}

// stays reports whether a file of the environment is there, if only as a link, or in a folder that cannot be built.
func (e *environment) stays(name string) bool {
	if b := e.folderOf(name); b != nil && v1alpha1.HasErrors(e.broken[b.Marker]) {
		return true
	}
	_, found := slices.BinarySearchFunc(e.specFiles.files, name, func(f *found, name string) int {
		return strings.Compare(f.path, name)
	})
	return found || name != "" && slices.ContainsFunc(e.specFiles.at, func(p globAt) bool {
		return slices.Contains(p.all.links, name)
	})
}

// connectionsAt are the connections with one name, in the order of their files.
type connectionsAt struct {
	duplicates
	all []*v1alpha1.Connection
	// differ says that they do not say the same.
	differ bool
	// stay are the recorded files that are there without it, for which none of these counts.
	stay map[string]bool
}

// connectionKey is the name of a connection as a worker deployment in a namespace names it: without a namespace for a
// ClusterConnection.
func connectionKey(ref v1alpha1.ConnectionRef, namespace string) rollout.Name {
	return rollout.Name{Namespace: ref.Of(namespace), Name: ref.Name}
}

// addConnection adds a connection with its namespace, which it need not name: the same as in the last survey if it says
// the same.
func (e *environment) addConnection(name rollout.Name, at place, says *v1alpha1.Connection) {
	one := *says
	one.Metadata.Namespace = name.Namespace
	kind := "connection"
	if name.Namespace == "" {
		kind = v1alpha1.KindClusterConnection
	}
	is := &one
	if last := e.surveyed[e.world.Environment.Name]; last != nil && last.connections[name] != nil {
		if k := slices.IndexFunc(last.connections[name].all,
			func(c *v1alpha1.Connection) bool { return reflect.DeepEqual(*c, one) }); k >= 0 {
			is = last.connections[name].all[k]
		}
	}
	c := e.connections[name]
	if c == nil {
		c = &connectionsAt{duplicates: duplicates{kind: kind, name: name}}
		c.equal = func(i, j int) bool { return c.all[i] == c.all[j] || reflect.DeepEqual(c.all[i].Spec, c.all[j].Spec) }
		e.connections[name] = c
	}
	c.at, c.all = append(c.at, at), append(c.all, is)
	c.differ = c.differ || !c.equal(0, len(c.all)-1)
}

// entryConnection gives the connection with a name, and its file, where it does not take the whole record to say
// which one counts.
func (e *environment) entryConnection(ref v1alpha1.ConnectionRef, namespace string,
	r *recordEntry) (_ *v1alpha1.Connection, file string, ok bool) {
	c := e.connections[connectionKey(ref, namespace)]
	if c == nil {
		return nil, "", true
	}
	at := ""
	if r.Connection == ref {
		at = r.ConnectionPath
	}
	here := at != "" && slices.ContainsFunc(c.at, func(p place) bool { return p.file == at })
	switch {
	case c.differ, !here && e.stays(at):
		return nil, "", false
	case here:
		return c.all[0], at, true
	case len(c.all) == 1:
		return c.all[0], c.at[0].file, true
	}
	return c.all[0], "", true
}

// chosenConnection is a connection that counts for a worker deployment.
type chosenConnection struct {
	*v1alpha1.Connection
	// path of its file; "" if that is not known.
	path string
	// problem says why none of several counts; "": one does, or there is none.
	problem string
}

// chooseConnection picks the connection that a worker deployment names.
func (e *environment) chooseConnection(s *rollout.Snapshot, ref v1alpha1.ConnectionRef) chosenConnection {
	c := e.connections[connectionKey(ref, s.Deployment.Namespace)]
	if c == nil {
		return chosenConnection{}
	}
	recorded, hash := "", ""
	if r := s.Record.Routing; r != nil && r.Spec.Connection != nil && r.Spec.Connection.Ref() == ref {
		recorded, hash = r.Spec.Connection.Path, r.Spec.Connection.Spec.Hash()
	}
	was := recordedAs{stays: e.stays(recorded), path: func(i int) bool { return c.at[i].file == recorded },
		rendered: func(i int) bool { return c.all[i].Spec.Hash() == hash }}
	k := c.keeper(was)
	if k < 0 {
		return chosenConnection{problem: e.noConnection(c, was, recorded)}
	}
	if c.differ { // else it is the same for all, and others may ask beside this one
		c.keep(k)
	}
	out := chosenConnection{Connection: c.all[k]}
	if was.path(k) || !c.copied(k) {
		out.path = c.at[k].file
	}
	return out
}

// noConnection says why none of several connections counts.
func (e *environment) noConnection(c *connectionsAt, was recordedAs, recorded string) string {
	if was.stays && !slices.ContainsFunc(c.at, func(p place) bool { return p.file == recorded }) {
		if c.stay == nil {
			c.stay = map[string]bool{}
		}
		c.stay[recorded] = true
		return e.sayStays(c.kind, c.name, recorded)
	}
	j := 1
	for j < len(c.at)-1 && c.equal(0, j) {
		j++
	}
	return fmt.Sprintf("%s %s is in %s and %s, which say different things, and neither is recorded: neither is used; "+
		"keep one of them",
		c.kind, c.name, c.at[0].file, c.where(j, 0))
}

// reportConnections reports connections that have one name.
func (e *environment) reportConnections() {
	for _, name := range slices.SortedFunc(maps.Keys(e.connections), rollout.Name.Compare) {
		c := e.connections[name]
		if len(c.stay) > 0 && !c.differ {
			recorded := slices.Sorted(maps.Keys(c.stay))[0]
			for _, at := range c.at {
				e.world.Problems = append(e.world.Problems,
					v1alpha1.Problem{Severity: v1alpha1.Error, File: at.file, Line: at.line, Path: "metadata.name",
						Message: e.sayStays(c.kind, name, recorded)})
			}
			continue
		}
		if len(c.all) > 1 {
			e.report(&c.duplicates)
		}
	}
}

// waiverAt is a waiver and where it is.
type waiverAt struct {
	place
	name   rollout.Name
	waiver *v1alpha1.Waiver
}

// distinct gives the waivers without duplicates: of equal ones it gives the first, of others none.
func distinct(all []waiverAt) (kept []v1alpha1.Waiver, several []*duplicates) {
	of := map[rollout.Name][]waiverAt{}
	for _, w := range all {
		of[w.name] = append(of[w.name], w)
	}
	for _, w := range all {
		same := of[w.name]
		if same[0].place != w.place { // it was looked at with the first one
			continue
		}
		d := &duplicates{kind: "waiver", name: w.name, equal: func(i, j int) bool {
			return reflect.DeepEqual(same[i].waiver.Spec, same[j].waiver.Spec)
		}}
		for _, s := range same {
			d.at = append(d.at, s.place)
		}
		if d.alike() {
			kept = append(kept, *w.waiver)
		}
		if len(same) > 1 {
			several = append(several, d)
		}
	}
	return kept, several
}

// settleWaivers reports waivers that have one name, and leaves out those that have no effect.
func (e *environment) settleWaivers(all []waiverAt) {
	kept, several := distinct(all)
	e.waivers = kept
	for _, d := range several {
		e.report(d)
	}
}

// chooseSpec picks the spec of a worker deployment.
func (e *environment) chooseSpec(s *rollout.Snapshot, candidates []*specAt) {
	recorded := ""
	if s.Record.Routing != nil {
		recorded = s.Record.Routing.Spec.SpecPath
	}
	if len(candidates) == 0 {
		if problems, ok := e.brokenAt(recorded); ok {
			s.Problems = asProblems(problems)
		}
		return
	}
	d := &duplicates{kind: "spec", name: s.Deployment, equal: func(i, j int) bool {
		return i == j || sameSpec(candidates[i].spec, candidates[j].spec)
	}}
	for _, c := range candidates {
		d.at = append(d.at, place{file: c.file.path, line: c.line})
	}
	digest := ""
	if last := s.Record.Status; last != nil {
		digest = last.Digest()
	}
	was := recordedAs{stays: e.stays(recorded), path: func(i int) bool { return d.at[i].file == recorded },
		rendered: func(i int) bool {
			return candidates[i].spec != nil && digest != "" && candidates[i].spec.Digest() == digest
		}}
	k := d.keeper(was)
	switch {
	case k >= 0:
		d.keep(k)
		s.SpecCopied = d.copied(k) && !was.path(k)
		e.takeSpec(s, candidates[k])
	case was.stays && !slices.ContainsFunc(candidates, func(c *specAt) bool { return c.file.path == recorded }):
		problems, _ := e.brokenAt(recorded)
		if s.Problems = asProblems(problems); len(s.Problems) == 0 {
			s.Problems = []rollout.Problem{{Reason: rollout.InvalidSpec,
				Message: recorded + ": " + e.sayStays("spec", s.Deployment, recorded)}}
		}
		for _, c := range candidates {
			e.fault(c, "metadata.name", "%s", e.sayStays("spec", s.Deployment, recorded))
		}
		return
	default:
		_, message := d.says(0)
		s.SpecPath, s.Git.SpecBlob = candidates[0].file.path, candidates[0].file.hash
		s.Problems = []rollout.Problem{{Reason: rollout.InvalidSpec, Message: v1alpha1.Problem{File: d.at[0].file,
			Line: d.at[0].line, Path: "metadata.name", Message: message}.String()}}
	}
	e.report(d)
}

// takeSpec makes a spec, with the connection that it names, that of a snapshot.
func (e *environment) takeSpec(s *rollout.Snapshot, c *specAt) {
	s.Spec, s.SpecPath, s.Problems, s.Git.SpecBlob = c.spec, c.file.path, asProblems(c.problems), c.file.hash
	if c.spec == nil {
		return
	}
	connection := e.chooseConnection(s, c.spec.Spec.WorkerOptions.ConnectionRef)
	s.Connection, s.ConnectionPath = connection.Connection, connection.path
	e.checkConnection(s)
	if connection.problem != "" {
		s.Problems = append(s.Problems, rollout.Problem{Reason: rollout.InvalidSpec, Message: connection.problem})
	}
}

// sameSpec reports whether two specs ask for the same, under the kind's old or new name.
func sameSpec(a, b *v1alpha1.WorkerDeployment) bool {
	return a != nil && b != nil && reflect.DeepEqual(a.Metadata, b.Metadata) && a.Digest() == b.Digest()
}
