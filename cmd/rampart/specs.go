package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// specs are the specs that a command without Git and network looks at.
type specs struct {
	world rollout.World
	// whole says that the world is a whole repository: what is missing from it does not exist.
	whole bool
	// environments are the names of all environments, also where the world is narrowed to one; nil: they are not known.
	environments []string
	// shown gives the path that a person knows a file by, where it is not the world's.
	shown map[string]string
	// base is joined to the world's paths to show them and to read them.
	base string
	// ruling is the beginning of paths in the commit that the specs are judged by, "" if there is none.
	ruling string
	// waivers of the whole folder, where they were asked for.
	waivers []waiverAt
	// text of files that were not read from base.
	text map[string]string
	// file gives any file, where they are not on disk; nil: they are.
	file func(string) (string, error)
}

// loadSpecs reads the specs of paths: files, folders, "-" for standard input; without paths those of -C.
//
// Where -C has a rampart.yaml and the paths are below it, they belong to its environments, and connections, policies
// and records are those of the repository. Else the paths are all there is.
func (a *app) loadSpecs(paths []string) (specs, error) {
	if err := isFolder(a.dir); err != nil {
		return specs{}, err
	}
	if len(paths) == 0 {
		world, err := gitops.ReadFolder(a.dir, a.reading()...)
		return specs{world: world, whole: true, base: a.dir}, err
	}
	if below, ok := a.insideRepository(paths); ok {
		return a.partOfRepository(below)
	}
	out := specs{base: paths[0]}
	var err error
	if len(paths) == 1 && paths[0] != "-" && isFolder(paths[0]) == nil {
		out.world, err = gitops.ReadFolder(paths[0], a.reading(gitops.SomeFiles())...)
	} else {
		out, err = a.gatherSpecs(paths)
	}
	if err != nil {
		return specs{}, err
	}
	return out, out.sayUnbuilt(paths)
}

func isFolder(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", dir)
	}
	return nil
}

// insideRepository gives the paths as they are below -C, if all are and -C has a rampart.yaml.
func (a *app) insideRepository(paths []string) ([]string, bool) {
	if _, err := os.Stat(filepath.Join(a.dir, layout.Config)); err != nil {
		return nil, false
	}
	root, err := filepath.Abs(a.dir)
	if err != nil {
		return nil, false
	}
	var out []string
	for _, p := range paths {
		full, err := filepath.Abs(p)
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
func (a *app) partOfRepository(below []string) (specs, error) {
	out := specs{whole: true, base: a.dir}
	for _, p := range below {
		if _, err := os.Stat(filepath.Join(a.dir, filepath.FromSlash(p))); err != nil {
			return specs{}, err
		}
	}
	world, err := gitops.ReadFolder(a.dir, a.reading()...)
	if err != nil {
		return specs{}, err
	}
	wanted := func(file string) bool {
		return slices.ContainsFunc(below, func(p string) bool { return p == "." || file == p || strings.HasPrefix(file, p+"/") })
	}
	world.Problems = slices.DeleteFunc(world.Problems, func(p v1alpha1.Problem) bool { return !wanted(p.File) && !v1alpha1.HasErrors([]v1alpha1.Problem{p}) })
	for i := range world.Environments {
		env := &world.Environments[i]
		env.Problems = slices.DeleteFunc(env.Problems, func(p v1alpha1.Problem) bool { return !wanted(p.File) })
		env.Deployments = slices.DeleteFunc(env.Deployments, func(s rollout.Snapshot) bool { return !wanted(s.SpecPath) })
	}
	out.world = world
	for _, p := range below {
		files, err := walkFiles(filepath.Join(a.dir, filepath.FromSlash(p)))
		if err != nil {
			return specs{}, err
		}
		for _, f := range files {
			rel, err := filepath.Rel(a.dir, f)
			if err != nil {
				return specs{}, err
			}
			if err := out.decodeUnclaimed(filepath.ToSlash(rel)); err != nil {
				return specs{}, err
			}
		}
	}
	return out, nil
}

// gatherSpecs makes a world of files from anywhere.
func (a *app) gatherSpecs(paths []string) (specs, error) {
	out := specs{shown: map[string]string{}, text: map[string]string{}, base: "."}
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
			text, err := readLimited(a.in)
			if err != nil {
				return specs{}, fmt.Errorf("read standard input: %w", err)
			}
			add(p, text)
			continue
		}
		found, err := walkFiles(p)
		if err != nil {
			return specs{}, err
		}
		for _, name := range found {
			text, err := readFile(name)
			if err != nil {
				return specs{}, err
			}
			add(name, text)
		}
	}
	world, err := gitops.ReadFiles(files, a.reading(gitops.SomeFiles())...)
	if err != nil {
		return specs{}, err
	}
	out.world = world
	for _, f := range files {
		if err := out.decodeUnclaimed(f.Path); err != nil {
			return specs{}, err
		}
	}
	return out, nil
}

// walkFiles gives a file, or the files below a folder with one of the extensions, of those that may hold objects if
// none is named. Links are not followed, as in a repository.
func walkFiles(name string, extensions ...string) ([]string, error) {
	if len(extensions) == 0 {
		extensions = []string{".yaml", ".yml", ".json"}
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	var out []string
	err = filepath.WalkDir(name, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.EqualFold(d.Name(), ".git"):
			return filepath.SkipDir
		case d.Type().IsRegular() && slices.Contains(extensions, filepath.Ext(p)):
			out = append(out, p)
		}
		return nil
	})
	return out, err
}

func readFile(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	text, err := readLimited(f)
	return text, errors.Join(err, f.Close())
}

// readLimited reads one byte more than is allowed at most: who decodes it says that it is too large.
func readLimited(r io.Reader) (string, error) {
	data, err := io.ReadAll(io.LimitReader(r, gitops.MaxFileSize+1))
	return string(data), err
}

// decodeUnclaimed decodes a file that no environment takes specs from, so that it is not left unchecked in silence.
func (s *specs) decodeUnclaimed(file string) error {
	if file == layout.Config || s.claimed(file) {
		return nil
	}
	data, err := s.read(file)
	if err != nil {
		return err
	}
	documents, problems := v1alpha1.Decode(file, []byte(data))
	s.world.Problems = append(s.world.Problems, problems...)
	for _, d := range documents {
		if w, ok := d.Object.(*v1alpha1.WorkerDeployment); ok && w.Status == nil {
			s.world.Problems = append(s.world.Problems, v1alpha1.Problem{Severity: v1alpha1.Warning, File: file, Line: d.Line,
				Message: "no environment takes specs from this file"})
		}
		if d.Kind == v1alpha1.KindWaiver && d.APIVersion == v1alpha1.RampartAPIVersion {
			s.world.Problems = append(s.world.Problems, v1alpha1.Problem{Severity: v1alpha1.Warning, File: file, Line: d.Line, Message: strayWaiver})
		}
	}
	return nil
}

func (s *specs) claimed(file string) bool {
	for _, env := range s.world.Environments {
		if out := path.Clean(env.Environment.Output.Path); file == out || strings.HasPrefix(file, out+"/") {
			return false
		}
		for _, from := range env.BuiltFrom {
			if from == "." || file == from || strings.HasPrefix(file, from+"/") {
				return true
			}
		}
		for _, glob := range env.Environment.Specs {
			if ok, err := doublestar.Match(glob, file); ok && err == nil {
				return true
			}
		}
	}
	return false
}

// read gives the text of a file of the world.
func (s *specs) read(file string) (string, error) {
	if text, ok := s.text[file]; ok {
		return text, nil
	}
	if s.file != nil {
		return s.file(file)
	}
	return readFile(filepath.Join(s.base, filepath.FromSlash(file)))
}

// show gives the path that a person knows a file by.
func (s *specs) show(file string) string {
	if name, ok := s.shown[file]; ok {
		return name
	}
	if s.ruling != "" && strings.HasPrefix(file, s.ruling) {
		return file
	}
	return filepath.Join(s.base, filepath.FromSlash(file))
}

// place finds the line and column of a field of a deployment's spec, 0 where that is not known.
func (s *specs) place(at rollout.Snapshot, field string) (line, column int) {
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

// problems of all files, as a person knows them, sorted and each once.
func (s *specs) problems() []v1alpha1.Problem {
	var out []v1alpha1.Problem
	add := func(problems []v1alpha1.Problem) {
		for _, p := range problems {
			p.File = s.show(p.File)
			out = append(out, p)
		}
	}
	add(s.world.Problems)
	for _, env := range s.world.Environments {
		add(env.Problems)
	}
	sortProblems(out)
	return slices.Compact(out)
}

func sortProblems(list []v1alpha1.Problem) {
	slices.SortStableFunc(list, func(a, b v1alpha1.Problem) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, a.Column-b.Column, strings.Compare(a.Path, b.Path),
			strings.Compare(a.Message, b.Message))
	})
}

// worldProblems are the problems of a world's files, sorted and each once.
func worldProblems(world rollout.World) []v1alpha1.Problem {
	s := specs{world: world}
	return s.problems()
}
