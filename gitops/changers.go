package gitops

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	"github.com/rampart-gitops/rampart/gitops/git"
)

// Bounds of a search for commits that changed something: how long it takes, how many commits it visits and finds.
const (
	changersTime = 2 * time.Second
	changersLook = 256
	changersMost = 20
)

// Changers prepares a search for the newest changersMost commits of the branch of specs that changed a file at one of
// the paths. It is nil before the first read and while the server is away. The search uses only the mirror: it may run
// in any goroutine until Close. It fetches history that the mirror does not have. Errors: those of git.Mirror.History;
// it returns what it found until then all the same.
func (r *Repository) Changers(paths map[string]bool) func(context.Context) ([]string, error) {
	tip := r.lastTips[r.cfg.Branch]
	if tip.Commit.IsZero() || r.away {
		return nil
	}
	from := r.mirror
	return func(ctx context.Context) ([]string, error) { return changers(ctx, from, tip, paths) }
}

func changers(ctx context.Context, from *git.Mirror, tip git.Tip, paths map[string]bool) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, changersTime)
	defer cancel()
	var out []string
	note := func(before git.Hash, c git.CommitInfo) error {
		return from.Diff(before, c.Tree, func(path string, _ git.Entry) error {
			if !paths[path] {
				return nil
			}
			out = append(out, c.Hash.String())
			return fs.SkipAll
		})
	}
	looked, after := 0, map[git.Hash][]git.CommitInfo{} // children by their first parent, which History visits later
	err := from.History(ctx, tip, func(c git.CommitInfo) (bool, error) {
		for _, child := range after[c.Hash] {
			if err := note(c.Tree, child); err != nil {
				return false, err
			}
		}
		delete(after, c.Hash)
		if len(c.Parents) == 0 {
			return true, note(git.Hash{}, c)
		}
		after[c.Parents[0]] = append(after[c.Parents[0]], c)
		looked++
		return looked <= changersLook && len(out) < changersMost, nil
	})
	out = out[:min(len(out), changersMost)]
	if err != nil {
		return out, fmt.Errorf("look back from %s: %w", tip.Commit, err)
	}
	return out, nil
}
