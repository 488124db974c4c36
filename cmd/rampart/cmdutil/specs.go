package cmdutil

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/gitops/index"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// EnvironmentNames gives the names of the world's environments, in its order.
func EnvironmentNames(world rollout.World) []string {
	var names []string
	for _, env := range world.Environments {
		names = append(names, env.Environment.Name)
	}
	return names
}

// Specs are the specs that a command without Temporal looks at.
type Specs struct {
	World rollout.World
	// WholeRepository says that the world is a whole repository: what is missing from it does not exist.
	WholeRepository bool
	// Environments are the names of all environments, also where the world is narrowed to one; nil: they are not known.
	Environments []string
	// shown gives the path that a person knows a file by, where it is not the world's.
	shown map[string]string
	// Base is joined to the world's paths to show them and to read them.
	Base string
	// BasePrefix is the beginning of paths in the commit that the specs are judged by, "" if there is none.
	BasePrefix string
	// waivers of the whole folder, where they were asked for.
	waivers []waiverAt
	// text of files that were not read from Base.
	text map[string]string
	// FileText gives the text of any file, where they are not on disk; nil: they are.
	FileText func(string) (string, error)
}

// LoadSpecs reads the specs of paths: files, folders, "-" for standard input; without paths those of -C.
//
// Where -C has a rampart.yaml and the paths are below it, they belong to its environments, and connections, policies
// and records are those of the repository. Else the paths are all there is.
func (a *App) LoadSpecs(paths []string) (Specs, error) {
	if err := CheckFolder(a.Dir); err != nil {
		return Specs{}, err
	}
	if len(paths) == 0 {
		world, err := index.ReadFolder(a.Dir, a.ReadOptions()...)
		return Specs{World: world, WholeRepository: true, Base: a.Dir}, err
	}
	if below, ok := insideRepository(a, paths); ok {
		return partOfRepository(a, below)
	}
	out := Specs{Base: paths[0]}
	var err error
	if len(paths) == 1 && paths[0] != "-" && CheckFolder(paths[0]) == nil {
		out.World, err = index.ReadFolder(paths[0], a.ReadOptions(index.SomeFiles())...)
	} else {
		out, err = gatherSpecs(a, paths)
	}
	if err != nil {
		return Specs{}, err
	}
	return out, out.sayUnbuilt(paths)
}

// LoadRepository reads all specs of the repository that -C is in, else those of -C.
func (a *App) LoadRepository() (Specs, error) {
	if _, err := a.EnterRepository(nil); err != nil {
		return Specs{}, err
	}
	return a.LoadSpecs(nil)
}

// EnterRepository makes -C, where that is inside of a Git checkout, the nearest folder above with a rampart.yaml. It
// gives the paths, or where there are none -C as it was. Where a path is outside of that folder, -C stays.
func (a *App) EnterRepository(paths []string) ([]string, error) {
	if err := CheckFolder(a.Dir); err != nil {
		return nil, err
	}
	full, err := realPath(a.Dir)
	if err != nil {
		return nil, err
	}
	root := ""
	for at := full; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, layout.Config)); err == nil && root == "" {
			root = at
		}
		if _, err := os.Stat(filepath.Join(at, ".git")); err == nil {
			break
		}
		if at == filepath.Dir(at) { // it is in no checkout
			return paths, nil
		}
	}
	if root == "" || root == full {
		return paths, nil
	}
	if _, ok := pathsBelow(root, paths); !ok {
		return paths, nil
	}
	a.Say("%s is in the repository %s, which is read", a.Dir, root)
	if len(paths) == 0 {
		paths = []string{a.Dir}
	}
	if here, err := realPath("."); err == nil {
		if rel, err := filepath.Rel(here, root); err == nil {
			root = rel
		}
	}
	a.Dir = root
	return paths, nil
}

// realPath gives the absolute path of a file or folder, with links followed. Of a file that does not exist it follows
// those of its folder.
func realPath(name string) (string, error) {
	full := name
	if !filepath.IsAbs(name) {
		here, err := os.Getwd()
		if err != nil {
			return "", err
		}
		full = here + string(filepath.Separator) + name // not joined: ".." may be above where a link leads to
	}
	found, err := filepath.EvalSymlinks(full)
	if dir, base := filepath.Split(full); errors.Is(err, fs.ErrNotExist) && base != "" && base != ".." {
		dir, err := realPath(dir)
		return filepath.Join(dir, base), err
	}
	return found, err
}

// insideRepository gives the paths as they are below -C, if all are and -C has a rampart.yaml.
func insideRepository(a *App, paths []string) ([]string, bool) {
	if _, err := os.Stat(filepath.Join(a.Dir, layout.Config)); err != nil {
		return nil, false
	}
	root, err := realPath(a.Dir)
	if err != nil {
		return nil, false
	}
	return pathsBelow(root, paths)
}

// pathsBelow gives the paths as they are below a folder, if all are. root has no links.
func pathsBelow(root string, paths []string) ([]string, bool) {
	var out []string
	for _, p := range paths {
		full, err := realPath(p)
		if err != nil || p == "-" {
			return nil, false
		}
		rel, err := filepath.Rel(root, full)
		if err != nil || !filepath.IsLocal(rel) {
			return nil, false
		}
		out = append(out, filepath.ToSlash(rel))
	}
	return out, true
}

// partOfRepository is the part of the world of -C that is below some paths.
func partOfRepository(a *App, below []string) (Specs, error) {
	out := Specs{WholeRepository: true, Base: a.Dir}
	for _, p := range below {
		name := filepath.Join(a.Dir, filepath.FromSlash(p))
		if _, err := os.Stat(name); err != nil {
			return Specs{}, notThere(name, err)
		}
	}
	world, err := index.ReadFolder(a.Dir, a.ReadOptions()...)
	if err != nil {
		return Specs{}, err
	}
	wanted := func(file string) bool {
		return slices.ContainsFunc(below, func(p string) bool {
			return p == "." || file == p || strings.HasPrefix(file, p+"/")
		})
	}
	for i := range world.Environments {
		env := &world.Environments[i]
		env.Deployments = slices.DeleteFunc(env.Deployments, func(s rollout.Snapshot) bool {
			return !wanted(s.SpecPath)
		})
	}
	out.World = world
	connections := out.brokenConnections() // why specs that are wanted cannot be used
	world.Problems = slices.DeleteFunc(world.Problems, func(p v1alpha1.Problem) bool {
		return !wanted(p.File) && !v1alpha1.HasErrors([]v1alpha1.Problem{p})
	})
	for i := range world.Environments {
		env := &world.Environments[i]
		env.Problems = slices.DeleteFunc(env.Problems, func(p v1alpha1.Problem) bool {
			return !wanted(p.File) && !slices.ContainsFunc(connections, func(d v1alpha1.Document) bool {
				return d.File == p.File && slices.Contains(d.Problems, p)
			})
		})
	}
	out.World = world
	for _, p := range below {
		files, err := FilesBelow(filepath.Join(a.Dir, filepath.FromSlash(p)))
		if err != nil {
			return Specs{}, err
		}
		for _, f := range files { // of a file the path is "."
			if err := out.decodeUnclaimed(path.Join(p, f)); err != nil {
				return Specs{}, err
			}
		}
	}
	return out, nil
}

// gatherSpecs makes a world of files from anywhere.
func gatherSpecs(a *App, paths []string) (Specs, error) {
	out := Specs{shown: map[string]string{}, text: map[string]string{}, Base: "."}
	var files []rollout.TextFile
	add := func(shown, text string) {
		name := filepath.ToSlash(filepath.Clean(shown))
		if shown == "-" || git.CheckPath(name) != nil || name == layout.Config {
			name = fmt.Sprintf("given/%d/%s", len(files), path.Base(name))
			if shown == "-" {
				name, shown = "given/stdin.yaml", "<stdin>"
			}
			out.shown[name] = shown
		}
		out.text[name] = text
		files = append(files, rollout.TextFile{Path: name, Text: text})
	}
	for _, p := range paths {
		if p == "-" {
			text, err := readLimited(a.In)
			if err != nil {
				return Specs{}, fmt.Errorf("read standard input: %w", err)
			}
			if strings.TrimSpace(text) == "" { // what was to write it may have failed
				return Specs{}, errors.New("standard input is empty: want specs")
			}
			add(p, text)
			continue
		}
		found, err := WalkFiles(p)
		if err != nil {
			return Specs{}, err
		}
		for _, name := range found {
			text, err := ReadFile(name)
			if err != nil {
				return Specs{}, err
			}
			add(name, text)
		}
	}
	world, err := index.ReadFiles(files, a.ReadOptions(index.SomeFiles())...)
	if err != nil {
		return Specs{}, err
	}
	out.World = world
	for _, f := range files {
		if err := out.decodeUnclaimed(f.Path); err != nil {
			return Specs{}, err
		}
	}
	return out, nil
}

// decodeUnclaimed decodes a file that no environment takes specs from, so that it is not left unchecked in silence.
func (s *Specs) decodeUnclaimed(file string) error {
	if file == layout.Config || s.Claimed(file) {
		return nil
	}
	data, err := s.read(file)
	if err != nil {
		return err
	}
	documents, problems := v1alpha1.Decode(file, []byte(data))
	for _, p := range problems {
		if slices.ContainsFunc(documents, func(d v1alpha1.Document) bool {
			return d.APIVersion == "" && slices.Contains(d.Problems, p)
		}) {
			p.Severity = v1alpha1.Warning // it may be a patch, and a spec here would be warned of only
		}
		s.World.Problems = append(s.World.Problems, p)
	}
	for _, d := range documents {
		if w, ok := d.Object.(*v1alpha1.WorkerDeployment); ok && w.Status == nil {
			s.World.Problems = append(s.World.Problems,
				v1alpha1.Problem{Severity: v1alpha1.Warning, File: file, Line: d.Line,
					Message: "no environment takes specs from this file"})
		}
		if d.Kind == v1alpha1.KindWaiver && d.APIVersion == v1alpha1.RampartAPIVersion {
			s.World.Problems = append(s.World.Problems,
				v1alpha1.Problem{Severity: v1alpha1.Warning, File: file, Line: d.Line, Message: strayWaiver})
		}
	}
	return nil
}

// Claimed reports whether an environment takes specs from a file, or builds them with it.
func (s *Specs) Claimed(file string) bool {
	for _, env := range s.World.Environments {
		if out := path.Clean(env.Environment.Output.Path); file == out || strings.HasPrefix(file, out+"/") {
			return false
		}
		for _, from := range env.BuiltFrom {
			if from == "." || file == from || strings.HasPrefix(file, from+"/") {
				return true
			}
		}
		if matchesAny(env.Environment.Specs, file) {
			return true
		}
	}
	return false
}

// matchesAny reports whether a path fits one of the patterns.
func matchesAny(globs []string, file string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool { return doublestar.MatchUnvalidated(glob, file) })
}

// read gives the text of a file of the world.
func (s *Specs) read(file string) (string, error) {
	if text, ok := s.text[file]; ok {
		return text, nil
	}
	if s.FileText != nil {
		return s.FileText(file)
	}
	return ReadFile(filepath.Join(s.Base, filepath.FromSlash(file)))
}

// DisplayPath gives the path that a person knows a file by.
func (s *Specs) DisplayPath(file string) string {
	if name, ok := s.shown[file]; ok {
		return name
	}
	if s.BasePrefix != "" && strings.HasPrefix(file, s.BasePrefix) {
		return file
	}
	return filepath.Join(s.Base, filepath.FromSlash(file))
}

// Position finds the line and column of a field of a worker deployment's spec, from 1; 0 where they are not known.
func (s *Specs) Position(at rollout.Snapshot, field string) (line, column int) {
	text, err := s.read(at.SpecPath)
	if err != nil {
		return 0, 0
	}
	documents, _ := v1alpha1.Decode(at.SpecPath, []byte(text))
	for _, d := range documents {
		if _, ok := d.Object.(*v1alpha1.WorkerDeployment); ok && d.Name == at.Deployment.Name &&
			(d.Namespace == "" || d.Namespace == at.Deployment.Namespace) {
			return d.Position(field)
		}
	}
	return 0, 0
}

// Broken are the documents that have errors.
func (s *Specs) Broken() []v1alpha1.Document {
	files := map[string]bool{}
	for _, p := range s.World.Problems {
		files[p.File] = true
	}
	for _, env := range s.World.Environments {
		for _, p := range env.Problems {
			files[p.File] = true
		}
	}
	var out []v1alpha1.Document
	for _, file := range SortedKeys(files) {
		text, err := s.read(file)
		if err != nil { // it is said of the file
			continue
		}
		documents, _ := v1alpha1.Decode(file, []byte(text))
		out = append(out, slices.DeleteFunc(documents, func(d v1alpha1.Document) bool {
			return !v1alpha1.HasErrors(d.Problems)
		})...)
	}
	return out
}

// brokenConnections are the connections with errors that the world's specs name.
func (s *Specs) brokenConnections() []v1alpha1.Document {
	var named []rollout.Snapshot
	for _, env := range s.World.Environments {
		for _, d := range env.Deployments {
			if d.Spec != nil && d.Connection == nil {
				named = append(named, d)
			}
		}
	}
	if len(named) == 0 {
		return nil
	}
	return slices.DeleteFunc(s.Broken(), func(doc v1alpha1.Document) bool {
		return !slices.ContainsFunc(named, func(d rollout.Snapshot) bool { return isConnectionOf(doc, d) })
	})
}

// HasBrokenConnection reports whether the connection of a spec is in a file, and has errors, which are said of that
// file.
func (s *Specs) HasBrokenConnection(d rollout.Snapshot) bool {
	return slices.ContainsFunc(s.Broken(), func(doc v1alpha1.Document) bool { return isConnectionOf(doc, d) })
}

// isConnectionOf says whether a document is the connection that a spec names.
func isConnectionOf(doc v1alpha1.Document, d rollout.Snapshot) bool {
	ref := d.Spec.Spec.WorkerOptions.ConnectionRef
	if doc.Name != ref.Name {
		return false
	}
	if ref.Kind == v1alpha1.KindClusterConnection {
		return doc.Kind == v1alpha1.KindClusterConnection
	}
	return (doc.Kind == v1alpha1.KindConnection || doc.Kind == v1alpha1.KindTemporalConnection) &&
		cmp.Or(doc.Namespace, d.Environment.Namespace) == d.Deployment.Namespace
}

// Problems gives those of all files, with the paths that people know, sorted and each once.
func (s *Specs) Problems() []v1alpha1.Problem {
	var out []v1alpha1.Problem
	add := func(problems []v1alpha1.Problem) {
		for _, p := range problems {
			p.File = s.DisplayPath(p.File)
			out = append(out, p)
		}
	}
	add(s.World.Problems)
	for _, env := range s.World.Environments {
		add(env.Problems)
	}
	SortProblems(out)
	return slices.Compact(out)
}
