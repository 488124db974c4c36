package gitops

import (
	"context"
	"time"

	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/gitops/index"
	"github.com/rampart-gitops/rampart/gitops/tree"
)

// searchPause is after how long a search for what could be used last is made again that was cut short. A bot that runs
// remembers it.
const searchPause = 10 * time.Minute

// earlier visits the trees of the commits before a tip, the newest first, until visit says false. They are those of its
// history, then those that the branch had before it was rewritten, as far as the mirror has them. A tree may come
// twice. False: the search was cut short, and is made again after searchPause.
func (r *Repository) earlier(ctx context.Context, tip git.Tip, visit func(tree.Tree) (more bool)) (whole bool) {
	bounded, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	done := false
	look := func(from git.Hash, here bool) error {
		return r.recent(bounded, git.Tip{Branch: tip.Branch, Commit: from}, here, func(c git.CommitInfo) (bool, error) {
			done = c.Hash != tip.Commit && !visit(tree.Commit{Ctx: ctx, Mirror: r.mirror, Hash: c.Tree})
			return !done, nil
		})
	}
	err := look(tip.Commit, false)
	if !done && err == nil && !tip.Before.IsZero() {
		err = look(tip.Before, true)
	}
	if err != nil && ctx.Err() == nil {
		r.cfg.Log.WarnContext(ctx, "the search of the history for what could be used last was cut short", "branch",
			tip.Branch, "commits", index.RecentCommits, "time", searchTime.String(), "error", err)
		r.searchAgain = r.cfg.Now().Add(searchPause)
	}
	return err == nil
}

// searchesAgain reports whether it is time for a search that was cut short.
func (r *Repository) searchesAgain() bool {
	due := !r.searchAgain.IsZero() && !r.cfg.Now().Before(r.searchAgain)
	if due {
		r.searchAgain = time.Time{}
	}
	return due
}
