package gitops

import (
	"context"
	"path"
	"time"

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

// recordText is the file of a record as a commit has it; nil: it has none, or the one whose hash is in seen, which is
// that of the last one after.
func (r *Repository) recordText(ctx context.Context, c git.CommitInfo, dir string, seen *string) ([]byte, error) {
	file := path.Join(dir, layout.Routing)
	e, ok, err := r.mirror.Lookup(c.Tree, file)
	if err != nil || !ok || !e.IsFile() || *seen == e.Hash.String() {
		return nil, err
	}
	*seen = e.Hash.String()
	data, err := tree.Commit{Ctx: ctx, Mirror: r.mirror, Hash: c.Tree}.Read(file, *seen)
	if _, never := index.Unreadable(file, err); never {
		return nil, nil
	}
	return data, err
}
