package gitops

import (
	"path"
	"slices"
	"strings"
)

// prepare brings folders that a partial mirror lacks, and in which files of the environment are going to be looked for:
// all of one level together, as far as they are not known as they are.
func (e *environment) prepare() error {
	l, ok := e.tree.(lazyTree)
	if !ok || !l.lazy() {
		return nil
	}
	leaveOut := e.outputs()
	var specs, output levels
	for _, g := range ofSpecs(e.world.Environment.Specs) {
		specs.add(g.base, changedSince(e.dirs[g.key(leaveOut)], leaveOut))
	}
	for _, g := range slices.Concat(byFolder(e.world.Environment.Policies), byFolder(e.world.Environment.Data)) {
		specs.add(g.base, changedSince(e.dirs[g.key(nil)], nil))
	}
	output.add(e.world.Environment.Output.Path, e.knownRecords)
	if e.out.root() == e.tree.root() {
		specs, output = append(specs, output...), nil
	}
	if err := specs.bring(e.tree); err != nil {
		return err
	}
	return output.bring(e.out)
}

// levels are folders to be brought, with what to do when they are there.
type levels []level

// level is a folder on the way to others.
type level struct {
	dir, hash string
	// next says what to bring below the folder by its entries: folders that are looked into, and others with all below
	// them.
	next next
}

type next func(dir, hash string, entries []entry) (into []level, whole []string)

// add adds a folder by its path, and what to do there.
func (l *levels) add(base string, then next) {
	names := strings.Split(path.Clean(base), "/")
	for _, name := range slices.Backward(names) {
		if name != "." {
			then = step(name, then)
		}
	}
	*l = append(*l, level{dir: ".", next: then})
}

// step goes into one folder.
func step(name string, then next) next {
	return func(dir, _ string, entries []entry) ([]level, []string) {
		at := slices.IndexFunc(entries, func(x entry) bool { return x.name == name && x.kind == dirEntry })
		if at < 0 {
			return nil, nil
		}
		return []level{{path.Join(dir, name), entries[at].hash, then}}, nil
	}
}

// changedSince goes into the folders of a listing that are other ones than they were, and brings those that are new.
func changedSince(was *listing, leaveOut []string) next {
	return func(dir, hash string, entries []entry) (into []level, whole []string) {
		if was != nil && was.hash == hash {
			return nil, nil
		}
		for _, x := range entries {
			name := path.Join(dir, x.name)
			if x.kind != dirEntry || slices.Contains(leaveOut, name) {
				continue
			}
			var before *listing
			if was != nil {
				before = was.below[x.name]
			}
			switch {
			case before == nil:
				whole = append(whole, x.hash)
			case before.hash != x.hash:
				into = append(into, level{name, x.hash, changedSince(before, leaveOut)})
			}
		}
		return into, whole
	}
}

// knownRecords goes into the namespaces of the output that are other ones than they were.
func (e *environment) knownRecords(dir, _ string, entries []entry) (into []level, whole []string) {
	for _, x := range entries {
		was := e.folders[recordsKey{e.world.Environment.Name, path.Join(dir, x.name)}]
		if x.kind == dirEntry && (was == nil || was.hash != x.hash) {
			into = append(into, level{dir: path.Join(dir, x.name), hash: x.hash})
		}
	}
	return into, nil
}

// bring brings folders, and what is next, until there is nothing next.
func (l levels) bring(t tree) error {
	for i := range l {
		l[i].hash = t.root()
	}
	var whole []string
	for now := l; len(now) > 0; {
		hashes := make([]string, 0, len(now))
		for _, at := range now {
			hashes = append(hashes, at.hash)
		}
		if err := bringFolders(t, hashes, false); err != nil {
			return err
		}
		var then levels
		for _, at := range now {
			if at.next == nil {
				continue
			}
			entries, err := t.list(at.dir, at.hash)
			if err != nil {
				return err
			}
			into, all := at.next(at.dir, at.hash, entries)
			then, whole = append(then, into...), append(whole, all...)
		}
		now = then
	}
	return bringFolders(t, whole, true)
}
