package gitops

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/mirror"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// ConfigFile is where a repository is configured.
const ConfigFile = "rampart.yaml"

// Reader turns trees into worlds and keeps what it decoded by hash. Its zero value is ready.
type Reader struct {
	files   map[fileKey]decoded
	dirs    map[string]*listing
	records map[string]rollout.Record
	options options
	// rules are nil where the specs' tree judges, too.
	rules *rules
	// used are the keys that the last read looked at: the others are forgotten after it.
	used struct {
		files   map[fileKey]bool
		records map[string]bool
	}
}

type fileKey struct{ path, hash string }

// decoded is one file of objects.
type decoded struct {
	documents []v1alpha1.Document
	problems  []v1alpha1.Problem
	// resources says what the WorkerResourceTemplates among the documents make, by their index.
	resources map[int]v1alpha1.Resource
}

// listing is a directory as it was listed: all files below it, by paths from the root.
type listing struct {
	hash  string
	files []found
	below map[string]*listing
}

type found struct{ path, hash string }

// ReadFolder reads a plain folder: no Git, no network. Records are read too, if they are there.
func ReadFolder(dir string, options ...Option) (rollout.World, error) {
	r := newReader(options)
	t := folder{dir}
	return r.read(t, func(v1alpha1.Environment) (tree, string, error) { return t, "", nil }, rollout.GitContext{})
}

// read gives the world of a tree. outputs gives the tree of an environment's output and the commit it is of.
func (r *Reader) read(t tree, outputs func(v1alpha1.Environment) (tree, string, error), git rollout.GitContext) (rollout.World, error) {
	r.begin()
	world := rollout.World{Git: git}
	from, prefix := r.ruling(t)
	config, problems, err := r.config(from)
	problems = slices.Clone(problems)
	for i := range problems {
		problems[i].File = prefix + problems[i].File
	}
	world.Problems = problems
	if err != nil || v1alpha1.HasErrors(problems) {
		return world, err
	}
	owners := map[string]string{}
	var adrift adrift
	world.Problems = append(slices.Clip(problems), r.options.unmet(config.Spec.Environments)...)
	for _, env := range config.Spec.Environments {
		env, tightened := r.options.tightened(env)
		out, base, err := outputs(env)
		if err != nil {
			return world, err
		}
		e := environment{Reader: r, tree: t, out: out, config: config, git: git,
			world: rollout.EnvironmentWorld{Environment: env, Base: base, Problems: tightened}}
		err = e.read(owners)
		var bomb *TooManyError
		if errors.As(err, &bomb) { // nothing of it is decided; the others go on
			e.world = rollout.EnvironmentWorld{Environment: env, Base: base, Problems: append(tightened,
				v1alpha1.Problem{Severity: v1alpha1.Error, File: bomb.Path, Message: bomb.Error()})}
			err = nil
		}
		if err != nil {
			return world, fmt.Errorf("environment %s: %w", env.Name, err)
		}
		world.Environments = append(world.Environments, e.world)
		adrift.add(&e)
	}
	adrift.report(&world)
	r.end()
	return world, nil
}

func (r *Reader) begin() {
	if r.files == nil {
		r.files, r.dirs, r.records = map[fileKey]decoded{}, map[string]*listing{}, map[string]rollout.Record{}
	}
	r.used.files, r.used.records = map[fileKey]bool{}, map[string]bool{}
}

// end forgets what the last read did not need.
func (r *Reader) end() {
	maps.DeleteFunc(r.files, func(k fileKey, _ decoded) bool { return !r.used.files[k] })
	maps.DeleteFunc(r.records, func(k string, _ rollout.Record) bool { return !r.used.records[k] })
}

// config reads rampart.yaml; without one there is one environment, "default".
func (r *Reader) config(t tree) (v1alpha1.Config, []v1alpha1.Problem, error) {
	e, ok, err := lookup(t, ConfigFile)
	if err != nil {
		return v1alpha1.Config{}, nil, err
	}
	if !ok {
		return v1alpha1.DefaultConfig(), nil, nil
	}
	if e.kind != fileEntry {
		return v1alpha1.Config{}, []v1alpha1.Problem{{Severity: v1alpha1.Error, File: ConfigFile, Message: "is not a file"}}, nil
	}
	d, err := r.decode(t, found{ConfigFile, e.hash})
	if err != nil {
		return v1alpha1.Config{}, nil, err
	}
	problems := d.problems
	var config *v1alpha1.Config
	for _, doc := range d.documents {
		c, ok := doc.Object.(*v1alpha1.Config)
		switch {
		case !ok && !v1alpha1.HasErrors(doc.Problems):
			problems = append(problems, v1alpha1.Problem{Severity: v1alpha1.Error, File: ConfigFile, Line: doc.Line,
				Message: fmt.Sprintf("holds a %s; only a %s of %s belongs here", doc.Kind, v1alpha1.KindConfig, v1alpha1.RampartAPIVersion)})
		case ok && config != nil:
			problems = append(problems, v1alpha1.Problem{Severity: v1alpha1.Error, File: ConfigFile, Line: doc.Line, Message: "holds a second Config"})
		case ok:
			config = c
		}
	}
	if config == nil {
		if !v1alpha1.HasErrors(problems) {
			problems = append(problems, v1alpha1.Problem{Severity: v1alpha1.Error, File: ConfigFile, Message: "holds no Config"})
		}
		return v1alpha1.Config{}, problems, nil
	}
	return *config, problems, nil
}

// decode reads and decodes a file once for each content. A file that is too large is a problem, not an error.
func (r *Reader) decode(t tree, f found) (decoded, error) {
	key := fileKey(f)
	if d, ok := r.files[key]; ok && f.hash != "" {
		r.used.files[key] = true
		return d, nil
	}
	data, err := t.read(f.path, f.hash)
	var large *mirror.TooLargeError
	if errors.As(err, &large) {
		return decoded{problems: []v1alpha1.Problem{tooLarge(f.path)}}, nil
	}
	if err != nil {
		return decoded{}, err
	}
	var d decoded
	if v1alpha1.MayHoldObjects(data) {
		d.documents, d.problems = v1alpha1.Decode(f.path, data)
		d.resources = resourcesIn(d.documents)
	}
	if f.hash != "" {
		r.files[key] = d
		r.used.files[key] = true
	}
	return d, nil
}

func tooLarge(file string) v1alpha1.Problem {
	return v1alpha1.Problem{Severity: v1alpha1.Error, File: file, Message: fmt.Sprintf("is larger than %d bytes, which is too large to be read", MaxFileSize)}
}

// below lists all files under a directory, except under the paths to leave out. A subtree that is as it was is not
// listed again.
func below(t tree, dir, hash string, walk walk) (*listing, error) {
	if err := walk.budget.enter(dir); err != nil {
		return nil, err
	}
	if walk.was != nil && hash != "" && walk.was.hash == hash {
		return walk.was, nil
	}
	entries, err := t.list(dir, hash)
	if err != nil {
		return nil, err
	}
	now := &listing{hash: hash}
	for _, e := range entries {
		name := path.Join(dir, e.name)
		if err := walk.budget.count(name); err != nil {
			return nil, err
		}
		switch {
		case e.kind == fileEntry:
			now.files = append(now.files, found{name, e.hash})
		case e.kind == dirEntry && !slices.Contains(walk.leaveOut, name):
			sub, err := below(t, name, e.hash, walk.into(e.name))
			if err != nil {
				return nil, err
			}
			now.files = append(now.files, sub.files...)
			if now.below == nil {
				now.below = map[string]*listing{}
			}
			now.below[e.name] = sub
		}
	}
	return now, nil
}

// walk is what a listing goes by: what was there before, and what to leave out.
type walk struct {
	was      *listing
	leaveOut []string
	budget   *budget
}

func (w walk) into(name string) walk {
	if w.was != nil {
		w.was = w.was.below[name]
	}
	return w
}

// match lists the files that fit any of the globs, sorted by path. Only the globs' own folders are entered.
func (r *Reader) match(t tree, globs, leaveOut []string) ([]found, error) {
	seen := map[string]bool{}
	var out []found
	for _, glob := range globs {
		base, _ := doublestar.SplitPattern(glob)
		dir := entry{kind: dirEntry, hash: t.root()}
		if base != "." {
			var ok bool
			var err error
			if dir, ok, err = lookup(t, base); err != nil {
				return nil, err
			} else if !ok || dir.kind != dirEntry {
				continue
			}
		}
		key := strings.Join(append([]string{base}, leaveOut...), "\x00")
		all, err := below(t, base, dir.hash, walk{r.dirs[key], leaveOut, newBudget()})
		if err != nil {
			return nil, err
		}
		r.dirs[key] = all
		for _, f := range all.files {
			if ok, err := doublestar.Match(glob, f.path); err != nil {
				return nil, fmt.Errorf("glob %q: %w", glob, err)
			} else if ok && !seen[f.path] {
				seen[f.path] = true
				out = append(out, f)
			}
		}
	}
	slices.SortFunc(out, func(a, b found) int { return strings.Compare(a.path, b.path) })
	return out, nil
}

// blobHash is Git's name of a file's content.
func blobHash(data []byte) string { return plumbing.ComputeHash(plumbing.BlobObject, data).String() }
