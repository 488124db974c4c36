package gitops

import (
	"context"
	"path"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/gitops/index"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/gitops/tree"
)

// searchTime bounds, with RecentCommits, how far one search looks through the history of a branch.
const searchTime = 30 * time.Second

// recent calls visit with a tip's commit and those before it, newest first, until it says false: git.Mirror.Recent
// within these bounds, and with its errors. Here says that the mirror alone is looked at.
func (r *Repository) recent(ctx context.Context, tip git.Tip, here bool,
	visit func(git.CommitInfo) (more bool, err error)) error {
	ctx, done := context.WithTimeout(ctx, searchTime)
	defer done()
	return r.mirror.Recent(ctx, tip, git.Recency{Most: index.RecentCommits, Here: here}, visit)
}

// recordAt are the records in the routing.yaml of a folder as a commit has it. There are none where that is the one
// whose hash is in seen, which is that of the last one after. whole says that it holds one document, without errors.
func (r *Repository) recordAt(ctx context.Context, c git.CommitInfo, dir string,
	seen *string) (all []*v1alpha1.Routing, whole bool, err error) {
	file := path.Join(dir, layout.Routing)
	e, ok, err := r.mirror.Lookup(c.Tree, file)
	if err != nil || !ok || !e.IsFile() || *seen == e.Hash.String() {
		return nil, false, err
	}
	*seen = e.Hash.String()
	data, err := tree.Commit{Ctx: ctx, Mirror: r.mirror, Hash: c.Tree}.Read(file, *seen)
	if _, never := index.Unreadable(file, err); never {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	documents, problems := v1alpha1.Decode(file, data)
	for _, d := range documents {
		if routing, ok := d.Object.(*v1alpha1.Routing); ok {
			all = append(all, routing)
		}
	}
	return all, len(documents) == 1 && !v1alpha1.HasErrors(problems), nil
}
