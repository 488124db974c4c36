package index

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/source"
	"github.com/rampart-gitops/rampart/gitops/tree"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// A folder with a kustomization.yaml or a Chart.yaml that a path of specs names is built. What it builds counts as what
// its kustomization.yaml or Chart.yaml holds: that is the spec's file, with a hash of all files that it was made of.
// The files in the folder are not specs themselves.

// Builder builds such folders. It is used by one goroutine at a time.
type Builder interface {
	// Build builds a folder. Errors: *source.Error where that says what is wrong with the folder.
	Build(in source.Input) (source.Output, error)
	// Close gives back what the builds used. There may be more builds.
	Close()
}

var _ Builder = (*source.Process)(nil)

// BuildWith says what builds folders. Without it a folder that would have to be built cannot be read.
func BuildWith(b Builder) Option { return func(o *options) { o.builder = b } }

// builtKey is a folder that an environment names.
type builtKey struct{ environment, marker string }

// built is a folder that was built. Nothing changes it.
type built struct {
	source.Folder
	// stands are the files and folders that it was made of: while these are the same, so is all else.
	stands []source.At
	// file stands for it among the files of specs.
	file *found
	// used are the files that it was made of, sorted by path.
	used  []rollout.FileAt
	parts []source.Part
	// problem is why it could not be built; nil: it was.
	problem *source.Error
}

// manyEnded is how many folders of an environment may take too much in one reading: after them none is built, since
// each costs its time.
const manyEnded = 3

// withFolders replaces files of specs that are in folders to be built by one for each of these.
func (e *environment) withFolders(t tree.Tree, files []*found) ([]*found, error) {
	markers := e.markers(files)
	if len(markers) == 0 {
		return files, nil
	}
	repository := newPathTree(t)
	out, ended := make([]*found, 0, len(files)), 0
	for _, f := range files {
		top, inside := outermost(markers, path.Dir(f.path))
		if !inside {
			out = append(out, f)
		}
		if !inside || markers[top][0] != f {
			continue // it is in a folder that is built
		}
		b, err := e.build(repository, markers[top], ended >= manyEnded)
		if err != nil {
			return nil, err
		}
		if b.problem != nil && b.problem.Bounds {
			ended++
		}
		out = append(out, b.file)
		e.builds = append(e.builds, b)
		for _, at := range b.stands {
			e.world.BuiltFrom = append(e.world.BuiltFrom, at.Path)
		}
	}
	slices.Sort(e.world.BuiltFrom)
	e.world.BuiltFrom = slices.Compact(e.world.BuiltFrom)
	return out, nil
}

// markers are the files that make a folder one to be built, by the folder: of those that a path of specs names.
func (e *environment) markers(files []*found) map[string][]*found {
	var out map[string][]*found
	for _, f := range files {
		if source.KindOf(f.path) == "" {
			continue
		}
		dir := path.Dir(f.path)
		if !slices.ContainsFunc(e.world.Environment.Specs, func(glob string) bool {
			ok, err := doublestar.Match(glob, dir)
			return ok && err == nil
		}) {
			continue
		}
		if out == nil {
			out = map[string][]*found{}
		}
		out[dir] = append(out[dir], f)
	}
	return out
}

// outermost is the outermost folder with a marker that a folder is, or is in.
func outermost(markers map[string][]*found, dir string) (string, bool) {
	out, ok := "", false
	for at := dir; ; at = path.Dir(at) {
		if len(markers[at]) > 0 {
			out, ok = at, true
		}
		if at == "." || at == "/" {
			return out, ok
		}
	}
}

// build builds a folder, once for the same files. With tooMuch it only gives what is known.
func (e *environment) build(t *pathTree, markers []*found, tooMuch bool) (*built, error) {
	folder := source.Folder{Kind: source.KindOf(markers[0].path), Marker: markers[0].path}
	if folder.Kind == source.Helm {
		folder.Values, folder.Namespace = e.world.Environment.Helm.Values, e.world.Environment.Namespace
	}
	key := builtKey{e.world.Environment.Name, folder.Marker}
	if e.used.built != nil {
		e.used.built[key] = true
	}
	was := e.built[key]
	if was != nil && t.in.Root() != "" && sameFolder(was.Folder, folder) && len(markers) == 1 {
		same, err := t.same(was.stands)
		if err != nil || same {
			return was, err
		}
	}
	b, err := e.buildAnew(t, folder, markers, tooMuch)
	if err != nil {
		return nil, err
	}
	b.file = &found{path: folder.Marker, hash: b.hash(), built: b}
	if was != nil && was.file.hash == b.file.hash {
		b.file = was.file // as long as what it stands for is the same it is the same one
	}
	e.built[key] = b
	return b, nil
}

func sameFolder(a, b source.Folder) bool {
	return a.Kind == b.Kind && a.Marker == b.Marker && a.Namespace == b.Namespace && slices.Equal(a.Values, b.Values)
}

func (e *environment) buildAnew(t *pathTree, folder source.Folder, markers []*found, tooMuch bool) (*built, error) {
	b := &built{Folder: folder}
	fail := func(format string, args ...any) (*built, error) {
		b.problem = &source.Error{File: folder.Marker, Message: fmt.Sprintf(format, args...)}
		return b, nil
	}
	if len(markers) > 1 && source.KindOf(markers[1].path) != folder.Kind {
		b.stands = []source.At{{Path: folder.Dir()}}
		return fail("is beside %s: a folder is built by one of them. Give each its own folder",
			path.Base(markers[1].path))
	}
	in, stands, err := source.Collect(t, folder)
	b.stands = stands
	switch {
	case errors.As(err, &b.problem):
		return b, nil
	case err != nil:
		return nil, err
	case e.options.builder == nil:
		return fail("has to be built, and nothing is there that builds folders")
	case tooMuch:
		_, err = fail("not built: %d folders of environment %s take too much already", manyEnded,
			e.world.Environment.Name)
		b.problem.Bounds = true
		return b, err
	}
	out, err := e.options.builder.Build(in)
	switch {
	case err == nil:
	case errors.As(err, &b.problem):
		return b, nil
	default:
		_, err = fail("cannot be built: %v", err)
		b.problem.Bounds = true // another time it may work
		return b, err
	}
	b.parts = out.Parts
	for _, f := range in.Files {
		if _, ok := slices.BinarySearch(out.Used, f.Path); ok {
			b.used = append(b.used, rollout.FileAt{Path: f.Path, Blob: cmp.Or(f.Blob, blobHash(f.Data))})
		}
	}
	return b, nil
}

// hash stands for all that the folder was made of.
func (b *built) hash() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%q %q %q %q\n", b.Kind, b.Marker, b.Values, b.Namespace)
	for _, f := range b.used {
		fmt.Fprintf(&text, "%s %q\n", f.Blob, f.Path)
	}
	if b.problem != nil {
		fmt.Fprintf(&text, "%q %q\n", b.problem.Error(), b.stands)
	}
	return blobHash([]byte(text.String()))
}

// decoded are the objects that it builds. They are in no file as they are, and so on no line.
func (b *built) decoded() decoded {
	if p := b.problem; p != nil {
		return decoded{problems: []v1alpha1.Problem{{Severity: v1alpha1.Error, File: p.File, Line: p.Line,
			Path: p.Field, Message: p.Message}}}
	}
	var out decoded
	for _, part := range b.parts {
		if !v1alpha1.MayHoldObjects(part.Text) {
			continue
		}
		documents, problems := v1alpha1.Decode(part.File, part.Text)
		for i := range documents {
			documents[i].Problems = placeless(documents[i].Problems)
			documents[i].MadeBy(b.Marker)
		}
		out.documents, out.problems = append(out.documents, documents...), append(out.problems, placeless(problems)...)
	}
	out.resources = resourcesIn(out.documents)
	return out
}

// placeless are problems of what was built: their lines are not lines of the file.
func placeless(problems []v1alpha1.Problem) []v1alpha1.Problem {
	out := slices.Clone(problems)
	for i := range out {
		if p := &out[i]; p.Line > 0 {
			p.Message, p.Line, p.Column = fmt.Sprintf("%s (in line %d of what it builds)", p.Message, p.Line), 0, 0
		}
	}
	return out
}

// folderOf is the folder to be built that a path is in, nil for none.
func (e *environment) folderOf(name string) *built {
	for _, b := range e.builds {
		if dir := b.Dir(); name != "" && (dir == "." || tree.IsBelow(name, dir)) {
			return b
		}
	}
	return nil
}

// inputs are the files that a file of specs was made of; none where it is what Git has.
func (e *environment) inputs(name string) []rollout.FileAt {
	if b := e.folderOf(name); b != nil && b.Marker == name {
		return b.used
	}
	return nil
}

// brokenAt is what is wrong with a file: with itself, or with the folder that is built in its place.
func (e *environment) brokenAt(name string) ([]v1alpha1.Problem, bool) {
	if problems, ok := e.broken[name]; ok {
		return problems, true
	}
	if b := e.folderOf(name); b != nil {
		problems, ok := e.broken[b.Marker]
		return problems, ok
	}
	return nil, false
}

// Unbuilt reports whether a folder took too much the last time.
func (r *Reader) Unbuilt() bool {
	for _, b := range r.built {
		if b.problem != nil && b.problem.Bounds {
			return true
		}
	}
	return false
}

// BuildAgain forgets folders that took too much.
func (r *Reader) BuildAgain() {
	for key, b := range r.built {
		if b.problem != nil && b.problem.Bounds {
			delete(r.built, key)
		}
	}
}
