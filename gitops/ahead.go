package gitops

import (
	"path"
	"slices"
	"sync/atomic"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/cores"
)

// ahead does at once what reading the environment is going to need: it brings what is still on a server, and
// decodes many files on all cores. It does not report what cannot be read: the code that needs it does.
func (e *environment) ahead(all []*found) error {
	specs := e.undecoded(all)
	dirs := e.unread()
	expected, records := e.expect(all, specs)
	if err := e.bringAhead(slices.Concat(specs, expected), slices.Concat(dirs, records)); err != nil {
		return err
	}
	for i, d := range decodeAll(e.tree, specs) {
		if d != nil {
			e.files[specs[i].key()] = *d
		}
	}
	e.early = e.readRecords(dirs)
	return nil
}

// bringAhead brings specs, records and what else is read of the environment, where they are still on a server.
func (e *environment) bringAhead(specs []*found, records []fileKey) error {
	if err := bringFolders(e.out, hashesIn(records), true); err != nil {
		return err
	}
	t, ok := e.tree.(lazyTree)
	if !ok || !t.lazy() {
		return nil
	}
	files := slices.Clone(specs)
	left := newBudget()
	for _, dir := range records {
		files = e.recordBelow(dir, left, files)
	}
	if e.rootFile != nil {
		files = append(files, e.rootFile)
	}
	for _, globs := range [][]string{e.world.Environment.Policies, e.world.Environment.Data} {
		fit, err := e.match(e.tree, globs, nil)
		if err != nil {
			return err
		}
		files = append(files, fit.files...)
	}
	return t.bring(files)
}

// early is a record that was read before it is looked at.
type early struct {
	record   recordAt
	problems []v1alpha1.Problem
}

// manyInRecord is how many files and folders are many for one record.
const manyInRecord = 10_000

// readRecords reads records on all cores; none where they are few, or not known by hashes. One that cannot be read, or
// has much in it, is left out.
func (e *environment) readRecords(dirs []fileKey) map[fileKey]*early {
	if len(dirs) <= fewFiles || e.out.root() == "" {
		return nil
	}
	read := make([]*early, len(dirs))
	var entries atomic.Int64
	cores.Each(len(dirs), func(i int) {
		if entries.Load() > maxEntries { // the reading that counts them one after the other reports it
			return
		}
		own := *e
		own.world.Problems = nil
		r, err := own.readRecord(dirs[i].path, dirs[i].hash, &budget{manyInRecord})
		entries.Add(int64(r.entries))
		if err == nil {
			read[i] = &early{r, own.world.Problems}
		}
	})
	out := make(map[fileKey]*early, len(dirs))
	for i, dir := range dirs {
		out[dir] = read[i]
	}
	return out
}

// fewFiles are quicker decoded one by one, as they are looked at.
const fewFiles = 16

// decodeAll decodes files on all cores; none where they are few, or of a tree that is not known by hashes. A file that
// cannot be read, or holds no objects, is nil.
func decodeAll(t tree, files []*found) []*decoded {
	if len(files) <= fewFiles || t.root() == "" {
		return nil
	}
	out := make([]*decoded, len(files))
	cores.Each(len(files), func(i int) {
		data, err := t.read(files[i].path, files[i].hash)
		if err == nil && v1alpha1.MayHoldObjects(data) {
			d := decodedFrom(files[i].path, data)
			out[i] = &d
		}
	})
	return out
}

// undecoded are those of some files that nothing is known of yet.
func (r *Reader) undecoded(files []*found) []*found {
	var out []*found
	for _, f := range files {
		if r.briefs.spec(f) != nil {
			continue
		}
		if _, known := r.files[f.key()]; !known && f.built == nil {
			out = append(out, f)
		}
	}
	return out
}

// unread are the folders of those records that nothing is known of yet.
func (e *environment) unread() []fileKey {
	var dirs []fileKey
	for _, folder := range e.found {
		if folder.known != nil {
			continue
		}
		for i := range folder.at {
			if in := &folder.at[i]; in.at == nil && e.briefs.record(in) == nil {
				dirs = append(dirs, fileKey{in.dir, in.hash})
			}
		}
	}
	return dirs
}

func hashesIn(dirs []fileKey) []string {
	out := make([]string, 0, len(dirs))
	for _, d := range dirs {
		out = append(out, d.hash)
	}
	return out
}

// recordBelow adds the files of a record that reading it looks into. It leaves out what cannot be listed, or is too
// much: the reading of the record reports that.
func (e *environment) recordBelow(dir fileKey, left *budget, out []*found) []*found {
	return e.filesBelow(dir, ".", left, out)
}

func (e *environment) filesBelow(dir fileKey, below string, left *budget, out []*found) []*found {
	entries, err := e.out.list(path.Join(dir.path, below), dir.hash)
	if err != nil {
		return out
	}
	for _, x := range entries {
		name := join(below, x.name)
		if left.count(dir.path, name) != nil {
			return out
		}
		switch x.kind {
		case fileEntry:
			if e.looksInto(name, x.hash) {
				out = append(out, &found{path: join(dir.path, name), hash: x.hash})
			}
		case dirEntry:
			if e.briefs == nil {
				out = e.filesBelow(fileKey{dir.path, x.hash}, name, left, out)
			}
		}
	}
	return out
}

// looksInto says whether a file of a record is read: of what the bot wrote for the cluster a survey has to know no more
// than whether it is what it was.
func (e *environment) looksInto(name, hash string) bool {
	return e.briefs == nil || hash == "" || name == layout.Routing || name == layout.Status
}
