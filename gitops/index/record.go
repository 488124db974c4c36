package index

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/gitops/tree"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// recordsIn are the records in a folder of an output as they were found, sorted by name.
type recordsIn struct {
	namespace, hash string
	at              []recordIn
	problems        []v1alpha1.Problem
}

// recordIn is a folder that may hold a record. at is what was found there; nil: it has to be read.
type recordIn struct {
	of        rollout.Name
	dir, hash string
	at        *recordAt
}

// findRecords lists the records below the output's path: <namespace>/<name>.
func (e *environment) findRecords() error {
	root := path.Clean(e.world.Environment.Output.Path)
	top := tree.Entry{Kind: tree.IsFolder, Hash: e.out.Root()}
	if root != "." {
		var ok bool
		var err error
		if top, ok, err = tree.Lookup(e.out, root); err != nil || !ok || top.Kind != tree.IsFolder {
			return err
		}
	}
	entries, err := sortedEntries(e.out, root, top.Hash)
	if err != nil {
		return err
	}
	left := tree.NewBudget()
	for _, ns := range e.named(root, entries) {
		dir := path.Join(root, ns.Name)
		if ns.Name == layout.Kustomization && ns.Kind == tree.IsFile {
			e.rootFile = &found{path: dir, hash: ns.Hash}
		}
		if ns.Kind == tree.IsFile {
			err = e.misplaced(dir, ns.Hash)
		}
		if err != nil {
			return err
		}
		if ns.Kind != tree.IsFolder {
			continue
		}
		folder, err := e.folder(ns, dir)
		if err == nil {
			err = left.Take(1+len(folder.at), dir)
		}
		if err != nil {
			return err
		}
		e.found = append(e.found, folder)
	}
	return nil
}

// folder lists what is in one namespace. One that is as it was is not listed again.
func (e *environment) folder(ns tree.Entry, dir string) (*recordsIn, error) {
	key := recordsKey{e.world.Environment.Name, dir}
	e.used.folders[key] = true
	was := e.folders[key]
	if was != nil && ns.Hash != "" && was.hash == ns.Hash {
		e.world.Problems = append(e.world.Problems, was.problems...)
		return was, nil
	}
	entries, err := sortedEntries(e.out, dir, ns.Hash)
	if err != nil {
		return nil, err
	}
	now, said := &recordsIn{namespace: ns.Name, hash: ns.Hash}, len(e.world.Problems)
	entries = e.named(dir, entries)
	for _, n := range entries {
		if n.Kind == tree.IsFile {
			err = errors.Join(err, e.misplaced(tree.Join(dir, n.Name), n.Hash))
		}
	}
	if err != nil {
		return nil, err
	}
	now.problems = slices.Clone(e.world.Problems[said:])
	for _, n := range entries {
		if n.Kind == tree.IsFolder {
			now.at = append(now.at, recordIn{rollout.Name{Namespace: ns.Name, Name: n.Name}, tree.Join(dir, n.Name),
				n.Hash, was.find(n)})
		}
	}
	e.folders[key] = now
	return now, nil
}

// recorded reads the records that were found, sorted by name.
func (e *environment) recorded() error {
	var err error
	if e.rootFile != nil {
		if e.world.RootFile, err = e.readRoot(); err != nil {
			return err
		}
	}
	left, most := tree.NewBudget(), 0
	for _, folder := range e.found {
		most += len(folder.at)
	}
	e.records, e.world.Roots = make([]*recordAt, 0, most), make([]string, 0, most)
	output := path.Clean(e.world.Environment.Output.Path) + "/"
	for _, folder := range e.found {
		for i := range folder.at {
			r, err := e.record(&folder.at[i], left)
			if err != nil {
				return err
			}
			if !r.partial && r.Routing == nil && r.RoutingProblem == nil {
				continue
			}
			e.records, e.world.Roots = append(e.records, r), append(e.world.Roots, strings.TrimPrefix(r.Dir, output))
			if r.says.InProgress != nil {
				e.rollouts = append(e.rollouts, *r.says.InProgress)
			}
		}
	}
	return nil
}

// sortedEntries lists a directory in the order of names, in which a folder comes before what has its name and more.
func sortedEntries(t tree.Tree, dir, hash string) ([]tree.Entry, error) {
	entries, err := t.List(dir, hash)
	if err != nil {
		return nil, err
	}
	return slices.SortedFunc(slices.Values(entries), func(a, b tree.Entry) int {
		return strings.Compare(a.Name, b.Name)
	}), nil
}

// named leaves out entries that no name can be told by, and reports them.
func (e *environment) named(dir string, entries []tree.Entry) []tree.Entry {
	return slices.DeleteFunc(entries, func(x tree.Entry) bool {
		if x.Kind == tree.IsStray {
			e.world.Problems = append(e.world.Problems, tree.StrayProblem(v1alpha1.Error, dir, x.Name))
		}
		return x.Kind == tree.IsStray
	})
}

// readRoot reads the output's kustomization.yaml, which lists all worker deployments: once for each content.
func (e *environment) readRoot() (rollout.File, error) {
	hash := e.rootFile.hash
	if was, ok := e.roots[e.world.Environment.Name]; ok && hash != "" && was.Hash == hash {
		return was, nil
	}
	said := len(e.world.Problems)
	f, err := e.recordFile(e.rootFile.path, hash)
	if err == nil && said == len(e.world.Problems) {
		e.roots[e.world.Environment.Name] = f
	}
	return f, err
}

// find gives what is known of a folder, if its content is still the same.
func (r *recordsIn) find(n tree.Entry) *recordAt {
	if r == nil || n.Hash == "" {
		return nil
	}
	i, ok := slices.BinarySearchFunc(r.at, n.Name, func(in recordIn, name string) int {
		return strings.Compare(in.of.Name, name)
	})
	if !ok || r.at[i].hash != n.Hash {
		return nil
	}
	return r.at[i].at
}

// record reads one record, once for each content; not at all where its entry is enough.
func (e *environment) record(in *recordIn, left *tree.Budget) (*recordAt, error) {
	entry := e.index.record(in)
	if in.at != nil && in.at.noted {
		entry = &in.at.says
	}
	if entry != nil {
		in.at = &recordAt{Record: rollout.Record{Dir: in.dir, Tree: in.hash}, of: in.of, says: *entry,
			partial: true}
	}
	if in.at != nil {
		return in.at, left.Take(in.at.says.Entries, in.dir)
	}
	said := len(e.world.Problems)
	r, err := e.readRecord(*in, left)
	if err != nil {
		return nil, err
	}
	if in.hash != "" && said == len(e.world.Problems) {
		r.noted = e.index.notes(&r.Record)
		in.at = &r
	}
	return &r, nil
}

// readRecord is record without a memory.
func (e *environment) readRecord(in recordIn, left *tree.Budget) (recordAt, error) {
	r := recordAt{Record: rollout.Record{Dir: in.dir, Tree: in.hash, Files: map[string]rollout.File{}}, of: in.of}
	before := left.Left()
	if err := e.recordFiles(&r.Record, tree.Entry{Name: ".", Hash: in.hash}, left); err != nil {
		return r, err
	}
	e.decodeRecord(&r.Record)
	r.says = recordEntryOf(&r.Record, in.of)
	r.says.Entries = before - left.Left()
	return r, nil
}

func (e *environment) recordFiles(r *rollout.Record, below tree.Entry, left *tree.Budget) error {
	dir := path.Join(r.Dir, below.Name)
	entries, err := e.out.List(dir, below.Hash)
	if err != nil {
		return err
	}
	if err := left.Folder(dir, entries); err != nil {
		return err
	}
	for _, x := range entries {
		name := tree.Join(below.Name, x.Name)
		switch x.Kind {
		case tree.IsFolder:
			if err := e.recordFiles(r, tree.Entry{Name: name, Hash: x.Hash}, left); err != nil {
				return err
			}
		case tree.IsFile:
			if below.Name == "." {
				if err := e.misplaced(tree.Join(dir, x.Name), x.Hash); err != nil {
					return err
				}
			}
			if !e.looksInto(name, x.Hash) {
				r.Files[name] = rollout.File{Hash: x.Hash}
				continue
			}
			f, err := e.recordFile(tree.Join(dir, x.Name), x.Hash)
			if err != nil {
				return err
			}
			r.Files[name] = f
		}
	}
	return nil
}

func (e *environment) recordFile(file, hash string) (rollout.File, error) {
	data, err := e.out.Read(file, hash)
	if p, ok := Unreadable(file, err); ok { // no file of ours is: it is taken for one that is not what it should be
		e.world.Problems = append(e.world.Problems, p)
		return rollout.File{Hash: hash}, nil
	}
	if err != nil {
		return rollout.File{}, err
	}
	if hash == "" {
		hash = blobHash(data)
	}
	return rollout.File{Hash: hash, Data: string(data)}, nil
}

// decodeRecord decodes what the bot wrote. A routing.yaml that cannot be read is a problem of this record alone: it
// holds the deployment and nothing else.
func (e *environment) decodeRecord(r *rollout.Record) {
	file, ok := r.Files[layout.Routing]
	if !ok {
		if len(r.Files) > 0 {
			r.RoutingProblem = &rollout.Problem{Reason: rollout.PlanGenerationFailed, Message: fmt.Sprintf(
				"%s is missing beside other files of the record: bring it back from Git's history",
				path.Join(r.Dir, layout.Routing))}
		}
		return
	}
	documents, problems := v1alpha1.Decode(path.Join(r.Dir, layout.Routing), []byte(file.Data))
	for _, d := range documents {
		if routing, ok := d.Object.(*v1alpha1.Routing); ok {
			r.Routing = routing
		}
	}
	if r.Routing == nil || v1alpha1.HasErrors(problems) {
		r.Routing = nil
		message := fmt.Sprintf("%s holds no Routing", path.Join(r.Dir, layout.Routing))
		if len(problems) > 0 {
			message = problems[0].String()
		}
		r.RoutingProblem = &rollout.Problem{Reason: rollout.PlanGenerationFailed,
			Message: message + ": mend it, or bring it back from Git's history"}
	}
	status, _ := v1alpha1.Decode(path.Join(r.Dir, layout.Status), []byte(r.Files[layout.Status].Data))
	for _, d := range status {
		if w, ok := d.Object.(*v1alpha1.WorkerDeployment); ok {
			r.Status = w
		}
	}
}
