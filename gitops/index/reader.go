package index

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/gitops/tree"
	"github.com/rampart-gitops/rampart/internal/cores"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Reader turns trees into worlds and keeps what it decoded by hash. It is used by one goroutine at a time.
type Reader struct {
	files   map[fileKey]decoded
	dirs    map[string]*listing
	folders map[recordsKey]*recordsIn // of records, by environment and folder
	// built are folders of specs.
	built map[builtKey]*built
	// roots are the outputs' own kustomization.yaml, by environment.
	roots   map[string]rollout.File
	options options
	// rules are nil where the specs' tree judges, too.
	rules *rules
	// last is what could be used last; nil: nothing is known to be usable.
	last *LastUsable
	// index is nil where everything is decoded; else surveyed is the last read.
	index    *fileIndex
	surveyed Surveyed
	// large is held while a large file is decoded: meanwhile it takes many times its size.
	large sync.Mutex
	// used are the keys that the last read looked at: the others are forgotten after it.
	used struct {
		files   map[fileKey]bool
		folders map[recordsKey]bool
		dirs    map[string]bool
		built   map[builtKey]bool
	}
}

// largeFile is the size in bytes above which files are decoded one after the other.
const largeFile = 64 << 10

type fileKey struct{ path, hash string }

// recordsKey is a folder of records of an environment.
type recordsKey struct{ environment, dir string }

// decoded is one file of objects.
type decoded struct {
	documents []v1alpha1.Document
	problems  []v1alpha1.Problem
	// resources says what the WorkerResourceTemplates among the documents make, by their index.
	resources map[int]v1alpha1.Resource
	// elsewhere says that the file stands for one that Git does not hold: what that holds is not known.
	elsewhere bool
}

// NewReader gives a Reader of whole worlds.
func NewReader(options ...Option) *Reader {
	r := &Reader{}
	r.Use(options...)
	return r
}

// Use changes how the Reader reads from now on.
func (r *Reader) Use(options ...Option) {
	for _, o := range options {
		o(&r.options)
	}
}

// AsIndex has the Reader survey: it does not decode again what it decoded before, and keeps only index entries of it.
func (r *Reader) AsIndex() *Reader {
	r.index = &fileIndex{}
	return r
}

// With has the Reader go on by what could be used last where something cannot be used, and note what can.
func (r *Reader) With(last *LastUsable) *Reader {
	r.last = last
	return r
}

// JudgedBy has rampart.yaml, policies, data and waivers read from another tree than the specs'. Its paths are shown
// with a prefix.
func (r *Reader) JudgedBy(t tree.Tree, prefix string) *Reader {
	r.rules = &rules{t, prefix}
	return r
}

// Surveyed is the last world that was read as an index. It stays as it is when the Reader reads the next one.
func (r *Reader) Surveyed() Surveyed { return r.surveyed }

// Full is how many worker deployments the Reader keeps in full that need not be.
func (r *Reader) Full() int {
	if r.index == nil {
		return 0
	}
	return r.index.full
}

// ReadFolder reads a plain folder: no Git, no network. Records are read too, if they are there.
func ReadFolder(dir string, options ...Option) (rollout.World, error) {
	r := NewReader(options...)
	t := tree.Folder{Dir: dir}
	return r.Read(t, func(v1alpha1.Environment) (tree.Tree, string, error) { return t, "", nil }, rollout.GitContext{})
}

// Read gives the world of a tree. outputs gives the tree of an environment's output and the commit it is of. A
// *tree.Error of it is about that environment alone, which is read with the tree that comes with the error.
func (r *Reader) Read(t tree.Tree, outputs outputsOf, git rollout.GitContext) (rollout.World, error) {
	r.begin()
	world := rollout.World{Git: git}
	from, prefix := r.ruling(t)
	c, err := r.configuration(from)
	if err != nil {
		return world, err
	}
	environments, problems := r.inForce(c)
	problems = slices.Clone(problems)
	for i := range problems {
		problems[i].File = prefix + problems[i].File
	}
	var owners map[string]string
	if len(environments) > 1 {
		owners = map[string]string{}
	}
	config := v1alpha1.Config{Spec: v1alpha1.ConfigSpec{Environments: environmentsOf(environments)}}
	rivals := rivals{world: &world}
	now := Surveyed{}
	world.Problems = append(problems, r.options.unmet(config.Spec.Environments)...)
	for _, is := range environments {
		blank := r.options.tightened(is.Environment)
		blank.Unusable = unusable(is.problem)
		e, err := r.environment(environment{Reader: r, tree: t, config: config, git: git, world: blank}, outputs,
			owners)
		if err != nil {
			return world, fmt.Errorf("environment %s: %w", is.Name, err)
		}
		if err := r.locate(e.tree, &e.world); err != nil {
			return world, fmt.Errorf("environment %s: %w", is.Name, err)
		}
		world.Environments = append(world.Environments, e.world)
		rivals.envs = append(rivals.envs, e)
		if r.index != nil {
			e.world = rollout.EnvironmentWorld{Environment: blank.Environment, ByOther: blank.ByOther,
				Unusable: e.world.Unusable}
			now[is.Name] = e
		}
	}
	reportAdrift(&world, rivals.envs)
	rivals.find()
	r.surveyed = now
	r.end()
	return world, nil
}

func (r *Reader) begin() {
	if r.files == nil {
		r.files, r.roots = map[fileKey]decoded{}, map[string]rollout.File{}
		r.dirs, r.folders = map[string]*listing{}, map[recordsKey]*recordsIn{}
		r.built = map[builtKey]*built{}
	}
	r.used.files, r.used.folders, r.used.dirs, r.used.built = map[fileKey]bool{}, map[recordsKey]bool{},
		map[string]bool{}, map[builtKey]bool{}
	if r.index != nil {
		r.index.full = 0
	}
}

// end forgets what the last read did not need.
func (r *Reader) end() {
	maps.DeleteFunc(r.files, func(k fileKey, _ decoded) bool { return !r.used.files[k] })
	maps.DeleteFunc(r.folders, func(k recordsKey, _ *recordsIn) bool { return !r.used.folders[k] })
	maps.DeleteFunc(r.dirs, func(k string, _ *listing) bool { return !r.used.dirs[k] })
	maps.DeleteFunc(r.built, func(k builtKey, _ *built) bool { return !r.used.built[k] })
	if r.options.builder != nil {
		r.options.builder.Close()
	}
	if r.index != nil {
		r.index.specs, r.index.records = nil, nil // files and records keep those that were found
	}
}

// decode reads and decodes a file once for each content. A file that can never be read is a problem, not an error.
func (r *Reader) decode(t tree.Tree, f *found) (decoded, error) {
	key := f.key()
	if d, ok := r.files[key]; ok && f.hash != "" {
		r.used.files[key] = true
		return d, nil
	}
	d, err := r.decodeAnew(t, f)
	if err == nil && f.hash != "" {
		r.files[key] = d
		r.used.files[key] = true
	}
	return d, err
}

// decodeOnCores decodes the files that nothing is known of yet, on all cores. Several goroutines may read the tree. One
// that cannot be read is left to the code that needs it.
func (r *Reader) decodeOnCores(t tree.Tree, files []*found) {
	files = r.undecoded(files)
	out, errs := make([]decoded, len(files)), make([]error, len(files))
	cores.Each(len(files), func(i int) { out[i], errs[i] = r.decodeAnew(t, files[i]) })
	for i, f := range files {
		if errs[i] == nil && f.hash != "" {
			r.files[f.key()] = out[i]
		}
	}
}

// decodeAnew is decode without a memory.
func (r *Reader) decodeAnew(t tree.Tree, f *found) (decoded, error) {
	if f.built != nil {
		return f.built.decoded(), nil
	}
	data, err := t.Read(f.path, f.hash)
	if p, ok := Unreadable(f.path, err); ok {
		return decoded{problems: []v1alpha1.Problem{p}}, nil
	}
	if err != nil {
		return decoded{}, err
	}
	if !v1alpha1.MayHoldObjects(data) {
		return decoded{}, nil
	}
	if len(data) > largeFile {
		r.large.Lock()
		defer r.large.Unlock()
	}
	return decodedFrom(f.path, data), nil
}

func decodedFrom(file string, data []byte) decoded {
	documents, problems := v1alpha1.Decode(file, data)
	if !v1alpha1.SpellsGroup(data) { // as a whole it is not a file of ours: only documents of our kinds count
		problems = nil
		for _, d := range documents {
			problems = append(problems, d.Problems...)
		}
	}
	return decoded{documents: documents, problems: problems, resources: resourcesIn(documents),
		elsewhere: v1alpha1.IsPointer(data)}
}

// Unreadable says that a file can never be read; false where that is not what an error says.
func Unreadable(file string, err error) (v1alpha1.Problem, bool) {
	p := v1alpha1.Problem{Severity: v1alpha1.Error, File: file}
	var large *git.TooLargeError
	var unusable *git.UnusableObjectError
	switch {
	case errors.As(err, &large):
		p.Message = fmt.Sprintf("is larger than %d bytes, which is too large to be read", tree.MaxFileSize)
	case errors.As(err, &unusable):
		p.Message = fmt.Sprintf("cannot be read as a file (object %s: %v)", unusable.Hash, unusable.Err)
	default:
		return p, false
	}
	return p, true
}

// blobHash is Git's name of a file's content.
func blobHash(data []byte) string { return plumbing.ComputeHash(plumbing.BlobObject, data).String() }
