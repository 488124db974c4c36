package gitops

import (
	"context"
	"fmt"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/gitops/index"
	"github.com/rampart-gitops/rampart/gitops/tree"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// RecordAlone finds a worker deployment by its record, which says in which environment it is and as whom that owns the
// routing. Nothing else of the repository is read: it is for when rampart.yaml cannot be used, and no spec is known.
// base is the commit that it was read from. With none, or several, it is an error that says so. Errors: those of
// git.Mirror.Fetch.
func (r *Repository) RecordAlone(ctx context.Context,
	q index.RecordQuery) (found rollout.Snapshot, base string, err error) {
	tip, err := r.fetch(ctx, r.cfg.Branch)
	if err != nil {
		return rollout.Snapshot{}, "", err
	}
	all, err := r.whole.reader.Alone(tree.Commit{Ctx: ctx, Mirror: r.mirror, Hash: tip.Tree}, q)
	switch {
	case err != nil:
		return rollout.Snapshot{}, "", fmt.Errorf("look for the record of %s on branch %s: %w", q.Name, tip.Branch, err)
	case len(all) == 0:
		return rollout.Snapshot{}, "", fmt.Errorf("no record on branch %s that names its environment is of %s",
			tip.Branch, q.Name)
	case len(all) > 1:
		var where []string
		for _, s := range all {
			where = append(where, fmt.Sprintf("%s of environment %s (%s)", s.Deployment, s.Environment.Name,
				s.Record.Dir))
		}
		return rollout.Snapshot{}, "", fmt.Errorf("%q names %s: write the namespace, or choose with --env", q.Name,
			strings.Join(where, " and "))
	}
	r.lastTips = map[string]git.Tip{r.cfg.Branch: tip}
	return all[0], tip.Commit.String(), nil
}
