package git

import (
	"context"
	"strings"
)

// beforePrefix is where the tip of a branch is kept that it had before it was rewritten. What only that leads to is
// nowhere else, maybe.
const beforePrefix = "refs/rampart/before/"

// noteBefore keeps the tip that a branch had before it was rewritten, and says whether it is another one than was kept.
func (m *Mirror) noteBefore(tip *Tip, onto ancestry) (noted bool) {
	if strings.HasPrefix(tip.Branch, refsPrefix) {
		return false
	}
	if onto != isAncestor {
		noted = m.state.tips[beforePrefix+tip.Branch] != tip.Previous
		m.state.tips[beforePrefix+tip.Branch] = tip.Previous
	}
	tip.Before = m.state.tips[beforePrefix+tip.Branch]
	return noted
}

// forgetBranch forgets a branch that is gone.
func (m *Mirror) forgetBranch(branch string) {
	delete(m.state.tips, branch)
	delete(m.state.tips, beforePrefix+branch)
}

// Recency is how much of a branch's history Recent looks at.
type Recency struct {
	// Most is how many commits are visited, at least 1; as many again of those before the branch was rewritten.
	Most int
	// Here says that the server is not asked for commits that the mirror has not got.
	Here bool
}

// Recent calls visit with a tip's commit and its ancestors, newest first, until visit says false. It also visits
// those that the branch had before it was rewritten, as far as the mirror has them. A commit may come twice. An
// error of visit ends it and is returned as it is. Errors: those of Fetch.
func (m *Mirror) Recent(ctx context.Context, tip Tip, how Recency, visit func(CommitInfo) (bool, error)) error {
	done := false
	from := func(commit Hash) (cut bool, err error) {
		left := how.Most
		return m.walk(commit, m.here, func(c CommitInfo) (bool, error) {
			if err := ctx.Err(); err != nil {
				return false, err
			}
			more, err := visit(c)
			left--
			done = err == nil && !more
			return more && left > 0, err
		})
	}
	if !tip.Before.IsZero() && m.store.has(tip.Before) { // it is here, and what was lost is there
		if _, err := from(tip.Before); err != nil || done {
			return err
		}
	}
	cut, err := from(tip.Commit)
	if err != nil || done || !cut || how.Here {
		return err
	}
	if _, err := m.deepen(ctx, tip.Branch, how.Most); err != nil {
		return err
	}
	_, err = from(tip.Commit)
	return err
}
