package index

import (
	"cmp"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/gitops/tree"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

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
	files, err := e.match(e.rules.Tree, e.world.Environment.Specs, e.outputs(), true)
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
