package index

import (
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/sync/errgroup"

	"github.com/rampart-gitops/rampart/gitops/source"
	"github.com/rampart-gitops/rampart/gitops/tree"
)

// found is a file that fits a glob. As long as its folder's listing knows it, it is the same one in each read.
type found struct {
	path, hash string
	// entry is its index entry; nil: there is none yet.
	entry *specEntry
	// built is the folder that it stands for; nil: it is a file as Git has it.
	built *built
}

func (f *found) key() fileKey { return fileKey{f.path, f.hash} }

// listing is a directory as it was listed: what is at and below it. What fits no glob leaves nothing behind.
type listing struct {
	hash string
	// files that fit one of the globs; sorted says that they are in the order of their paths.
	files  []*found
	sorted bool
	// fits has a bit for each glob that one of the files fits.
	fits uint64
	// links are the paths of symbolic links and submodules.
	links []string
	// strays are what is left out, by folder and name.
	strays []entryIn
	below  map[string]*listing
}

// entryIn is an entry and the folder that it is in.
type entryIn struct{ dir, name string }

// maxTogether is how many globs are looked for together.
const maxTogether = 64

// add adds files that come behind those that are there.
func (l *listing) add(files []*found, sorted bool) {
	if len(files) == 0 {
		return
	}
	n := len(l.files)
	l.sorted = l.sorted && sorted && (n == 0 || l.files[n-1].path < files[0].path)
	l.files = append(l.files, files...)
}

// file gives a file that was listed, nil if that or its content is another.
func (l *listing) file(name, hash string) *found {
	if l == nil || !l.sorted || hash == "" {
		return nil
	}
	i, ok := slices.BinarySearchFunc(l.files, name, func(f *found, name string) int {
		return strings.Compare(f.path, name)
	})
	if !ok || l.files[i].hash != hash {
		return nil
	}
	return l.files[i]
}

// walk is what a listing goes by: what was there before, what is looked for, and what is left out.
type walk struct {
	was      *listing
	globs    []string
	leaveOut []string
	// folders says that a glob which fits a folder fits the file that makes it one to be built.
	folders bool
	budget  *tree.Budget
	// together says that the folders of the next directory which has many are listed beside each other. The tree is
	// one that several goroutines may list.
	together bool
}

const (
	// manyFolders is how many folders a directory has whose folders are worth listing beside each other.
	manyFolders = 16
	// maxBeside is how many folders are listed beside each other, at most: each may be a large one.
	maxBeside = 4
)

func (w walk) into(name string) walk {
	if w.was != nil {
		w.was = w.was.below[name]
	}
	return w
}

// enters says whether the walk goes into an entry.
func (w walk) enters(e tree.Entry, name string) bool {
	return e.Kind == tree.IsFolder && !slices.Contains(w.leaveOut, name)
}

// foldersIn is how many of a directory's entries the walk enters.
func (w walk) foldersIn(dir string, entries []tree.Entry) int {
	n := 0
	for _, e := range entries {
		if w.enters(e, tree.Join(dir, e.Name)) {
			n++
		}
	}
	return n
}

// fits has a bit for each glob that a path fits. The globs are valid: they are constants, or were read from a
// configuration that was checked.
func (w walk) fits(name string) uint64 {
	var out uint64
	for i, glob := range w.globs {
		if doublestar.MatchUnvalidated(glob, name) {
			out |= 1 << i
		}
	}
	return out
}

// Below are the files below a folder, by their paths: the hash of each. Errors: *tree.Error for too many, those of the
// tree.
func Below(t tree.Tree, dir, hash string) (map[string]string, error) {
	all, err := below(t, dir, hash, walk{globs: []string{"**"}, budget: tree.NewBudget()})
	if err != nil {
		return nil, err
	}
	out := make(map[string]string, len(all.files))
	for _, f := range all.files {
		out[f.path] = f.hash
	}
	return out, nil
}

// below lists a directory, except the paths to leave out. A subtree that is as it was is not listed again.
func below(t tree.Tree, dir, hash string, walk walk) (*listing, error) {
	if err := walk.budget.Enter(dir); err != nil {
		return nil, err
	}
	if walk.was != nil && hash != "" && walk.was.hash == hash {
		return walk.was, nil
	}
	entries, err := t.List(dir, hash)
	if err != nil {
		return nil, err
	}
	if err := walk.budget.Folder(dir, entries); err != nil {
		return nil, err
	}
	if walk.together && walk.foldersIn(dir, entries) >= manyFolders {
		walk.together = false
		walk.was = listTogether(t, dir, entries, walk)
	}
	now := &listing{hash: hash, sorted: true}
	if walk.was != nil {
		now.files = make([]*found, 0, len(walk.was.files)+1)
	}
	for _, e := range entries {
		name := tree.Join(dir, e.Name)
		switch {
		case e.Kind == tree.IsFile:
			now.addFile(name, e.Hash, walk)
		case e.Kind == tree.IsOther:
			now.links = append(now.links, name)
		case e.Kind == tree.IsStray:
			now.strays = append(now.strays, entryIn{dir, e.Name})
		case walk.enters(e, name):
			err = now.addBelow(t, name, e, walk)
		}
		if err != nil {
			return nil, err
		}
	}
	now.files = slices.Clip(now.files)
	return now, nil
}

// listTogether lists the folders of a directory beside each other, as if they had been listed before. Where one cannot
// be listed it gives nil: listing them one after the other then says which, and of the same one each time.
func listTogether(t tree.Tree, dir string, entries []tree.Entry, walk walk) *listing {
	before, subs := walk.budget.Left(), make([]*listing, len(entries))
	var group errgroup.Group
	group.SetLimit(maxBeside)
	for i, e := range entries {
		if name := tree.Join(dir, e.Name); walk.enters(e, name) {
			group.Go(func() (err error) {
				subs[i], err = below(t, name, e.Hash, walk.into(e.Name))
				return err
			})
		}
	}
	if group.Wait() != nil {
		walk.budget.SetLeft(before)
		return nil
	}
	out := &listing{below: make(map[string]*listing, len(entries))}
	for i, e := range entries {
		if subs[i] != nil {
			out.below[e.Name] = subs[i]
		}
	}
	return out
}

func (l *listing) addFile(name, hash string, walk walk) {
	fits := walk.fits(name)
	if walk.folders && source.KindOf(name) != "" {
		fits |= walk.fits(path.Dir(name))
	}
	if fits == 0 {
		return
	}
	f := walk.was.file(name, hash)
	if f == nil {
		f = &found{path: name, hash: hash}
	}
	l.add([]*found{f}, true)
	l.fits |= fits
}

func (l *listing) addBelow(t tree.Tree, name string, e tree.Entry, walk walk) error {
	sub, err := below(t, name, e.Hash, walk.into(e.Name))
	if err != nil {
		return err
	}
	l.add(sub.files, sub.sorted)
	l.fits |= sub.fits
	l.links, l.strays = append(l.links, sub.links...), append(l.strays, sub.strays...)
	if l.below == nil {
		l.below = map[string]*listing{}
	}
	l.below[e.Name] = sub
	return nil
}

// matching is what fits globs.
type matching struct {
	// files sorted by path, each once.
	files []*found
	// at are the listings in which the globs were looked for, in their order.
	at []globAt
}

// globAt is a glob's listing, and its bit there.
type globAt struct {
	all *listing
	bit uint
}

// fits says whether a file fits the glob.
func (g globAt) fits() bool { return g.all.fits&(1<<g.bit) != 0 }

// globsIn are some globs that begin with the same folder, and their places among all.
type globsIn struct {
	base  string
	globs []string
	of    []int
	// folders says that a glob may name a folder to be built.
	folders bool
}

// byFolder puts globs together by the folder that they begin with.
func byFolder(globs []string, folders bool) []globsIn {
	var out []globsIn
	for i, glob := range globs {
		base, _ := doublestar.SplitPattern(glob)
		at := slices.IndexFunc(out, func(g globsIn) bool { return g.base == base && len(g.globs) < maxTogether })
		if at < 0 {
			at, out = len(out), append(out, globsIn{base: base, folders: folders})
		}
		out[at].globs, out[at].of = append(out[at].globs, glob), append(out[at].of, i)
	}
	return out
}

// key of the listing that the globs are looked for in.
func (g globsIn) key(leaveOut []string) string {
	if g.folders {
		leaveOut = append([]string{"."}, leaveOut...) // no folder that is left out
	}
	return strings.Join(slices.Concat([]string{g.base}, g.globs, []string{""}, leaveOut), "\x00")
}

// match lists the files that fit any of the globs. Only the globs' own folders are entered. folders says that globs may
// name folders to be built, as those of specs may.
func (r *Reader) match(t tree.Tree, globs, leaveOut []string, folders bool) (matching, error) {
	parts := byFolder(globs, folders)
	m := matching{at: make([]globAt, len(globs))}
	sorted := true
	for i, part := range parts {
		all, err := r.listed(t, part, leaveOut)
		if err != nil {
			return matching{}, err
		}
		for bit, j := range part.of {
			m.at[j] = globAt{all, uint(bit)}
		}
		if sorted = sorted && all.sorted; i == 0 {
			m.files = all.files // not to be changed
		} else {
			m.files = slices.Concat(m.files, all.files)
		}
	}
	if !sorted || len(parts) > 1 {
		m.files = slices.SortedFunc(slices.Values(m.files), func(a, b *found) int {
			return strings.Compare(a.path, b.path)
		})
		m.files = slices.CompactFunc(m.files, func(a, b *found) bool { return a.path == b.path })
	}
	return m, nil
}

// listed lists what is below the folder that globs have in common: nothing where there is no such folder.
func (r *Reader) listed(t tree.Tree, g globsIn, leaveOut []string) (*listing, error) {
	dir := tree.Entry{Kind: tree.IsFolder, Hash: t.Root()}
	if g.base != "." {
		var ok bool
		var err error
		if dir, ok, err = tree.Lookup(t, g.base); err != nil {
			return nil, err
		} else if !ok || dir.Kind != tree.IsFolder {
			return &listing{sorted: true}, nil
		}
	}
	key := g.key(leaveOut)
	all, err := below(t, g.base, dir.Hash, walk{was: r.dirs[key], globs: g.globs, leaveOut: leaveOut,
		folders: g.folders, budget: tree.NewBudget(), together: r.index != nil && r.dirs[key] == nil})
	if err != nil {
		return nil, err
	}
	r.dirs[key], r.used.dirs[key] = all, true
	return all, nil
}
