package gitops

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// remembered is what a Repository remembers of what it surveyed.
type remembered struct {
	Specs, Records []rememberedFile
	Listings       []rememberedListing
	// Namespaces are folders of records, with the folders in them.
	Namespaces []rememberedNamespace
	// Looked are the worker deployments that were looked at last.
	Looked []lookedAt
	// Made are the branches of proposals that hold what the bot put there.
	Made []rememberedProposal
	// Configuration is the last one that could be used, as JSON: there, a list without elements is not the same as
	// none.
	Configuration string
}

type rememberedProposal struct{ Branch, Tip, On string }

// rememberedListing is one of Reader.dirs. Its folders come after those that they are in: the first one has all others
// below it.
type rememberedListing struct {
	Key     string
	Folders []rememberedFolder
}

type rememberedNamespace struct {
	Environment string
	Folder      rememberedFolder
}

// rememberedFile is a brief and what it is of.
type rememberedFile struct {
	Path, Hash string
	Spec       specBrief
	Record     recordBrief
}

// rememberedFolder is a folder as it was listed, and what is in it but for what is below a folder in it. Hashes are the
// bytes that they are.
type rememberedFolder struct {
	Path, Hash    string
	Names, Hashes []string
	Fits          uint64
	Links         []string
}

// Remember gives what surveys found out, and what an earlier run did where there was none yet.
func (r *Repository) Remember() any {
	reader := &r.survey.reader
	specs, records := maps.Clone(reader.briefs.specs), maps.Clone(reader.briefs.records)
	if specs == nil {
		specs, records = map[fileKey]specBrief{}, map[fileKey]recordBrief{}
	}
	out := remembered{Looked: r.looks.few(), Configuration: r.last.rememberConfiguration()}
	for at := range reader.expected { // nothing was read
		out.Looked = append(out.Looked, at)
	}
	for key, dir := range reader.dirs {
		for _, f := range dir.files {
			if f.brief != nil {
				specs[f.key()] = *f.brief
			}
		}
		if dir.sorted && dir.hash != "" && len(dir.strays) == 0 {
			base, _, _ := strings.Cut(key, "\x00")
			out.Listings = append(out.Listings, rememberedListing{key, dir.remembered(base, nil)})
		}
	}
	for key, in := range reader.folders {
		ns := rememberedFolder{Path: key.dir, Hash: bytesOf(in.hash)}
		for i := range in.at {
			at := &in.at[i]
			ns.Names, ns.Hashes = append(ns.Names, at.of.Name), append(ns.Hashes, bytesOf(at.hash))
			if at.at == nil {
				continue
			}
			if b := cmp.Or(at.at.brief, at.at.noted); b != nil {
				records[fileKey{at.dir, at.hash}] = *b
			}
		}
		if in.hash != "" && len(in.problems) == 0 {
			out.Namespaces = append(out.Namespaces, rememberedNamespace{key.environment, ns})
		}
	}
	for k, v := range specs {
		out.Specs = append(out.Specs, rememberedFile{Path: k.path, Hash: k.hash, Spec: v})
	}
	for k, v := range records {
		out.Records = append(out.Records, rememberedFile{Path: k.path, Hash: k.hash, Record: v})
	}
	for branch, is := range r.made {
		out.Made = append(out.Made, rememberedProposal{branch, is.tip.String(), is.on})
	}
	return out
}

// remembered adds a listing to what is remembered.
func (l *listing) remembered(dir string, out []rememberedFolder) []rememberedFolder {
	f := rememberedFolder{Path: dir, Hash: bytesOf(l.hash), Fits: l.fits}
	for _, file := range l.files {
		if path.Dir(file.path) == dir {
			f.Names, f.Hashes = append(f.Names, path.Base(file.path)), append(f.Hashes, bytesOf(file.hash))
		}
	}
	for _, link := range l.links {
		if path.Dir(link) == dir {
			f.Links = append(f.Links, link)
		}
	}
	out = append(out, f)
	for name, sub := range l.below {
		out = sub.remembered(path.Join(dir, name), out)
	}
	return out
}

func bytesOf(hash string) string {
	h := plumbing.NewHash(hash)
	return string(h[:])
}

func hashOf(raw string) string {
	var h plumbing.Hash
	copy(h[:], raw)
	return h.String()
}

// listing puts the folders of one together; nil where there are none.
func (r *rememberedListing) listing() *listing {
	var top *listing
	at := map[string]*listing{}
	for i := range r.Folders {
		f := &r.Folders[i]
		l := &listing{hash: hashOf(f.Hash), sorted: true, fits: f.Fits, links: f.Links}
		for j := range min(len(f.Names), len(f.Hashes)) {
			l.files = append(l.files, &found{path: path.Join(f.Path, f.Names[j]), hash: hashOf(f.Hashes[j])})
		}
		at[f.Path] = l
		if top == nil {
			top = l
			continue
		}
		in := at[path.Dir(f.Path)]
		if in == nil {
			return nil
		}
		if in.below == nil {
			in.below = map[string]*listing{}
		}
		in.below[path.Base(f.Path)] = l
	}
	if top != nil {
		top.gather()
	}
	return top
}

// namespaces are the folders of records that were remembered. What is in the records is not known by them.
func namespaces(known []rememberedNamespace) map[recordsKey]*recordsIn {
	out := make(map[recordsKey]*recordsIn, len(known))
	for _, ns := range known {
		f := &ns.Folder
		in := &recordsIn{namespace: path.Base(f.Path), hash: hashOf(f.Hash)}
		for i := range min(len(f.Names), len(f.Hashes)) {
			in.at = append(in.at, recordIn{rollout.Name{Namespace: in.namespace, Name: f.Names[i]}, path.Join(f.Path, f.Names[i]), hashOf(f.Hashes[i]), nil})
		}
		out[recordsKey{ns.Environment, f.Path}] = in
	}
	return out
}

// gather adds what is below a folder to what is in it.
func (l *listing) gather() {
	for _, name := range slices.Sorted(maps.Keys(l.below)) {
		sub := l.below[name]
		sub.gather()
		l.files, l.links = append(l.files, sub.files...), append(l.links, sub.links...)
	}
	byPath := func(a, b *found) int { return strings.Compare(a.path, b.path) }
	if !slices.IsSortedFunc(l.files, byPath) {
		slices.SortFunc(l.files, byPath)
	}
	l.files = slices.Clip(l.files)
	slices.Sort(l.links)
}

// Recall takes what surveys of an earlier run found out. A mirror that has nothing yet need not begin with folders that
// are known.
func (r *Repository) Recall(decode func(into any) error) error {
	var known remembered
	if err := decode(&known); err != nil {
		return err
	}
	if err := r.last.recallConfiguration(known.Configuration); err != nil {
		return err
	}
	reader := &r.survey.reader
	b := reader.briefs
	b.specs, b.records = make(map[fileKey]specBrief, len(known.Specs)), make(map[fileKey]recordBrief, len(known.Records))
	for _, f := range known.Specs {
		b.specs[fileKey{f.Path, f.Hash}] = f.Spec
	}
	for _, f := range known.Records {
		b.records[fileKey{f.Path, f.Hash}] = f.Record
	}
	reader.expected = make(map[lookedAt]bool, len(known.Looked))
	for _, at := range known.Looked {
		reader.expected[at] = true
	}
	reader.dirs, reader.folders = map[string]*listing{}, namespaces(known.Namespaces)
	for i := range known.Listings {
		if l := known.Listings[i].listing(); l != nil {
			reader.dirs[known.Listings[i].Key] = l
		}
	}
	for _, p := range known.Made {
		r.made[p.Branch] = made{plumbing.NewHash(p.Tip), p.On}
	}
	if len(known.Listings) > 0 {
		r.mirror.LeaveTrees()
	}
	return nil
}
