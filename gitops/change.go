package gitops

import (
	"cmp"
	"fmt"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/gitops/tree"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// ReadChange reads a folder of a Git checkout as a change on top of a commit: specs, connections and records as they
// are in the folder; what judges them, which is rampart.yaml with its environments, policies, data and waivers, as it
// is in the commit. A change can so not loosen what it is judged by. The revision is a branch, a remote's branch such
// as origin/main, a tag, HEAD, or the whole hash of a commit. Files of the commit are named REVISION:PATH.
func ReadChange(dir, revision string, options ...Option) (rollout.World, error) {
	base, err := openCommit(dir, revision)
	if err != nil {
		return rollout.World{}, fmt.Errorf("read %s of the repository at %s: %w", revision, dir, err)
	}
	r := newReader(options)
	r.rules = &rules{base, revision + ":"}
	t := tree.Folder{Dir: dir}
	return r.read(t, func(v1alpha1.Environment) (tree.Tree, string, error) { return t, "", nil }, rollout.GitContext{})
}

// rules are the tree that judges, where that is another one than the specs'.
type rules struct {
	tree.Tree
	// prefix of paths in messages.
	prefix string
}

// ruling is the tree that rampart.yaml, policies, data and waivers are read from, and what its paths are shown with.
func (r *Reader) ruling(t tree.Tree) (from tree.Tree, prefix string) {
	if r.rules == nil {
		return t, ""
	}
	return r.rules.Tree, r.rules.prefix
}

// rulingWaivers replaces the waivers of the specs' tree by those of the tree that judges. What is wrong with its files
// is not this change's to mend.
func (e *environment) rulingWaivers() error {
	if e.rules == nil {
		return nil
	}
	var all []waiverAt
	files, err := e.matchSpecs(e.rules.Tree, e.world.Environment.Specs, e.outputs())
	if err != nil {
		return err
	}
	base := *e
	base.builds, base.world.BuiltFrom = nil, nil // those of what is judged stay as they are
	if files.files, err = base.withFolders(e.rules.Tree, files.files); err != nil {
		return err
	}
	for _, f := range files.files {
		d, err := e.decode(e.rules.Tree, f)
		if err != nil {
			return err
		}
		for i, doc := range d.documents {
			if w, ok := doc.Object.(*v1alpha1.Waiver); ok && f.path != layout.Config {
				name := rollout.Name{Namespace: cmp.Or(doc.Namespace, e.world.Environment.Namespace), Name: doc.Name}
				all = append(all, waiverAt{place{f.path, doc.Line, i}, name, w})
			}
		}
	}
	e.waivers, _ = distinct(all)
	return nil
}
