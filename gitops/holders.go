package gitops

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Bounds of a look for commits that hold something. A cycle waits for it.
const (
	holdersTime  = 2 * time.Second
	holdersPause = 5 * time.Minute
	// holdersLook is how many commits are looked at, whether they hold anything or not.
	holdersLook = 64
)

// Holders gives commits of an environment's output branch, the newest first and at most so many. The tree of each
// holds, at one of the paths, what the tip that was read last has there. For a path, a commit counts only if every
// commit on some way from it to the tip holds the same. So the oldest one that counts is the commit that wrote it,
// and all others are its descendants. No commit holds a path that is not at the tip. History that the mirror does
// not have is fetched; where that fails, it is not tried again for holdersPause. Errors: those of git.Mirror.History.
func (r *Repository) Holders(ctx context.Context, env v1alpha1.Environment, paths []string,
	most int) ([]rollout.Holder, error) {
	tip := r.lastTips[r.outputBranch(env)]
	switch {
	case tip.Commit.IsZero() || len(paths) == 0:
		return nil, nil
	case r.away:
		return nil, errors.New("the repository is away")
	case r.cfg.Now().Before(r.holdersAgain):
		return nil, fmt.Errorf("the history of branch %s could not be read a short while ago", tip.Branch)
	}
	bounded, cancel := context.WithTimeout(ctx, holdersTime)
	defer cancel()
	out, err := holders(bounded, r.mirror, tip, paths, most)
	if err != nil && ctx.Err() == nil {
		r.holdersAgain = r.cfg.Now().Add(holdersPause)
	}
	return out, err
}

func holders(ctx context.Context, from paths, tip git.Tip, wanted []string, most int) ([]rollout.Holder, error) {
	at := make([]git.Hash, len(wanted))
	first := make([]bool, len(wanted))
	for i, p := range wanted {
		e, ok, err := from.Lookup(tip.Tree, p)
		if err != nil {
			return nil, fmt.Errorf("look for %s: %w", p, err)
		}
		at[i], first[i] = e.Hash, ok
	}
	// reached says of commits whose children were visited which paths these held.
	reached, looked := map[git.Hash][]bool{tip.Commit: first}, 0
	var out []rollout.Holder
	err := from.History(ctx, tip, func(c git.CommitInfo) (bool, error) {
		held, some := reached[c.Hash], false
		delete(reached, c.Hash)
		for i := range held {
			if !held[i] {
				continue
			}
			e, ok, err := from.Lookup(c.Tree, wanted[i])
			if err != nil {
				return false, err
			}
			held[i] = ok && e.Hash == at[i]
			some = some || held[i]
		}
		if some {
			out = append(out, rollout.Holder{Commit: c.Hash.String(), Holds: held})
			for _, p := range c.Parents {
				reached[p] = either(reached[p], held)
			}
		}
		looked++
		return len(reached) > 0 && len(out) < most && looked < holdersLook, nil
	})
	if err != nil {
		return nil, fmt.Errorf("look back from %s: %w", tip.Commit, err)
	}
	return out, nil
}

// either is what one of two holds; a may be nil.
func either(a, b []bool) []bool {
	out := make([]bool, len(b))
	for i := range b {
		out[i] = b[i] || i < len(a) && a[i]
	}
	return out
}
