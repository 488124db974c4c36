package gitops

import (
	"fmt"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/index"
	"github.com/rampart-gitops/rampart/gitops/tree"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// ReadChange reads a folder of a Git checkout as a change on top of a commit. Specs, connections and records are those
// of the folder. What judges them is that of the commit: rampart.yaml with its environments, policies, data and
// waivers. So a change cannot loosen what it is judged by. The revision is a branch, a remote's branch such as
// origin/main, a tag, HEAD, or the whole hash of a commit. Files of the commit are named REVISION:PATH.
func ReadChange(dir, revision string, options ...index.Option) (rollout.World, error) {
	base, err := openCommit(dir, revision)
	if err != nil {
		return rollout.World{}, fmt.Errorf("read %s of the repository at %s: %w", revision, dir, err)
	}
	t := tree.Folder{Dir: dir}
	return index.NewReader(options...).JudgedBy(base, revision+":").Read(t,
		func(v1alpha1.Environment) (tree.Tree, string, error) { return t, "", nil }, rollout.GitContext{})
}
