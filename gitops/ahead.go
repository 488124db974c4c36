package gitops

import (
	"path"
	"slices"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/cores"
)

// ahead does at once what reading the environment is going to need: it brings what is still on a server, and decodes many files on all
// cores. What cannot be read, whoever needs it reports.
func (e *environment) ahead(specs []*found) error {
	specs = e.undecoded(specs)
	records, err := e.unread()
	if err != nil {
		return err
	}
	if t, ok := e.tree.(lazyTree); ok && t.lazy() {
		files := slices.Concat(specs, records)
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
		if err := t.bring(files); err != nil {
			return err
		}
	}
	for i, d := range decodeAll(e.tree, specs) {
		if d.data != nil {
			e.files[specs[i].key()] = decodedFrom(d.documents, d.problems)
		}
	}
	records = slices.DeleteFunc(records, func(f *found) bool {
		name := path.Base(f.path)
		return name != routingFile && name != statusFile
	})
	e.early = map[fileKey]early{}
	for i, d := range decodeAll(e.out, records) {
		if d.data != nil {
			e.early[records[i].key()] = d
		}
	}
	return nil
}

// early is a file that was read and decoded before it is looked at.
type early struct {
	data      []byte
	documents []v1alpha1.Document
	problems  []v1alpha1.Problem
}

// fewFiles are quicker decoded one by one, as they are looked at.
const fewFiles = 16

// decodeAll decodes files on all cores; none where they are few, or of a tree that is not known by hashes. A file that cannot be read,
// or holds no objects, has no data.
func decodeAll(t tree, files []*found) []early {
	if len(files) <= fewFiles || t.root() == "" {
		return nil
	}
	out := make([]early, len(files))
	cores.Each(len(files), func(i int) {
		data, err := t.read(files[i].path, files[i].hash)
		if err == nil && v1alpha1.MayHoldObjects(data) {
			out[i].data = data
			out[i].documents, out[i].problems = v1alpha1.Decode(files[i].path, data)
		}
	})
	return out
}

// documentsIn gives what a file of a record holds.
func (e *environment) documentsIn(f fileKey, data string) ([]v1alpha1.Document, []v1alpha1.Problem) {
	if d, ok := e.early[f]; ok {
		return d.documents, d.problems
	}
	return v1alpha1.Decode(f.path, []byte(data))
}

// content reads a file of a record.
func (e *environment) content(f fileKey) ([]byte, error) {
	if d, ok := e.early[f]; ok {
		return d.data, nil
	}
	return e.out.read(f.path, f.hash)
}

// undecoded are those of some files that nothing is known of yet.
func (r *Reader) undecoded(files []*found) []*found {
	var out []*found
	for _, f := range files {
		if r.briefs.spec(f) != nil {
			continue
		}
		if _, known := r.files[f.key()]; !known {
			out = append(out, f)
		}
	}
	return out
}

// unread are the files of those records that nothing is known of yet.
func (e *environment) unread() ([]*found, error) {
	var dirs []fileKey
	for _, folder := range e.found {
		for i := range folder.at {
			if in := &folder.at[i]; in.at == nil && e.briefs.record(in) == nil {
				dirs = append(dirs, fileKey{in.dir, in.hash})
			}
		}
	}
	if err := bringFolders(e.out, hashesIn(dirs), true); err != nil {
		return nil, err
	}
	var out []*found
	left := newBudget()
	for _, dir := range dirs {
		out = e.recordBelow(dir, left, out)
	}
	return out, nil
}

func hashesIn(dirs []fileKey) []string {
	out := make([]string, 0, len(dirs))
	for _, d := range dirs {
		out = append(out, d.hash)
	}
	return out
}

// recordBelow adds the files of a record that reading it looks into.
func (e *environment) recordBelow(dir fileKey, left *budget, out []*found) []*found {
	leaveOut := ""
	if e.briefs != nil {
		leaveOut = path.Join(dir.path, versionsFolder)
	}
	return filesBelow(e.out, dir, leaveOut, left, out)
}

// filesBelow adds the files below a folder, but for those below one to leave out. What cannot be listed, or is too much, whoever reads it
// reports.
func filesBelow(t tree, dir fileKey, leaveOut string, left *budget, out []*found) []*found {
	entries, err := t.list(dir.path, dir.hash)
	if err != nil {
		return out
	}
	for _, x := range entries {
		at := fileKey{path.Join(dir.path, x.name), x.hash}
		if left.count(at.path) != nil {
			return out
		}
		switch x.kind {
		case fileEntry:
			out = append(out, &found{path: at.path, hash: at.hash})
		case dirEntry:
			if at.path != leaveOut {
				out = filesBelow(t, at, leaveOut, left, out)
			}
		}
	}
	return out
}
