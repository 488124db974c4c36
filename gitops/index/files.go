package index

import (
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/gitops/tree"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// ReadFiles reads files that were gathered from anywhere as if they were all there is of a repository: no Git, no disk,
// no network. Paths are as in a repository (slashes, no leading one, no ".."); the last of two files with the same path
// counts.
func ReadFiles(files []rollout.TextFile, options ...Option) (rollout.World, error) {
	t := tree.NewGathered()
	for _, f := range files {
		if err := git.CheckPath(f.Path); err != nil {
			return rollout.World{}, err
		}
		t.Add(f)
	}
	r := NewReader(options...)
	return r.Read(t, func(v1alpha1.Environment) (tree.Tree, string, error) { return t, "", nil }, rollout.GitContext{})
}
