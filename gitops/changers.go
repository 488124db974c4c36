package gitops

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rampart-gitops/rampart/gitops/mirror"
)

// Bounds of a look for commits that changed something.
const (
	changersTime = 2 * time.Second
	changersLook = 256
)

// Changers gives the commits of the branch of specs that changed a file at one of the paths, the newest first, among
// the last changersLook. History that the mirror does not have is fetched. Errors: those of mirror.History; what was
// found until then is given all the same.
func (r *Repository) Changers(ctx context.Context, paths map[string]bool) ([]string, error) {
	tip := r.lastTips[r.cfg.Branch]
	if tip.Commit.IsZero() || len(paths) == 0 {
		return nil, nil
	}
	if r.away {
		return nil, errors.New("the repository is away")
	}
	ctx, cancel := context.WithTimeout(ctx, changersTime)
	defer cancel()
	var out []string
	enough := errors.New("enough")
	note := func(before mirror.Hash, c mirror.CommitInfo) error {
		err := r.mirror.Diff(ctx, before, c.Tree, func(path string, _ mirror.Entry) error {
			if !paths[path] {
				return nil
			}
			out = append(out, c.Hash.String())
			return enough
		})
		if errors.Is(err, enough) {
			return nil
		}
		return err
	}
	looked, after := 0, map[mirror.Hash][]mirror.CommitInfo{} // children by their first parent, which History visits later
	err := r.mirror.History(ctx, tip, func(c mirror.CommitInfo) (bool, error) {
		for _, child := range after[c.Hash] {
			if err := note(c.Tree, child); err != nil {
				return false, err
			}
		}
		delete(after, c.Hash)
		if len(c.Parents) == 0 {
			return true, note(mirror.Hash{}, c)
		}
		after[c.Parents[0]] = append(after[c.Parents[0]], c)
		looked++
		return looked <= changersLook, nil
	})
	if err != nil {
		return out, fmt.Errorf("look back from %s: %w", tip.Commit, err)
	}
	return out, nil
}
