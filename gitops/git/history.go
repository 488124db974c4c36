package git

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// deepening is how far history is fetched, step by step; the last means all of it (git's INFINITE_DEPTH).
var deepening = []int{64, 512, 4096, 0x7fffffff}

// Found is where FindInHistory found a path.
type Found struct {
	Commit Hash // the newest commit that has it
	Entry  Entry
}

// Wanted is what to look for in history.
type Wanted struct {
	Path string
	// Blob that Path had; zero: anything that was there.
	Blob Hash
}

// FindInHistory finds the newest commit, from tip on, in which there was what is wanted. History that the mirror does
// not have yet is fetched step by step, until it is found or history ends (false). A file that is found is in the
// mirror afterwards. Errors: those of History and of Bring.
func (m *Mirror) FindInHistory(ctx context.Context, tip Tip, want Wanted) (found Found, ok bool, err error) {
	err = m.History(ctx, tip, func(c CommitInfo) (bool, error) {
		e, here, err := m.Lookup(c.Tree, want.Path)
		if here && (want.Blob.IsZero() || e.Hash == want.Blob) {
			found, ok = Found{Commit: c.Hash, Entry: e}, true
		}
		return !ok, m.store.needed(err)
	})
	if err == nil && ok && found.Entry.IsFile() {
		err = m.Bring(ctx, []Hash{found.Entry.Hash})
	}
	return found, ok, err
}

// Introduction is a commit that gave a file its content, and how many first parents before the tip it is.
type Introduction struct {
	CommitInfo
	Back int
}

// Introduced finds, for each file as it is at tip, the commit that gave it its content. Along first parents, that is
// the last one before which the path had another content or none. So a merge counts as one commit, whatever it brought
// together. History that the mirror does not have yet is fetched step by step, until all are found. A file that is not
// at tip as wanted is left out of the answer. Errors: those of History.
func (m *Mirror) Introduced(ctx context.Context, tip Tip, files []Wanted) (map[Wanted]Introduction, error) {
	t, err := m.newTracing(tip, files)
	if err != nil {
		return nil, err
	}
	_, err = t.back(m.bringing(ctx, tip))
	return t.found, err
}

// IntroducedSince is Introduced for the commits after an earlier one, in the history that the mirror has. A file that
// is at tip as wanted and not in the answer had the same content at the earlier commit, and at all commits between.
// back is how many first parents before tip the earlier commit is; less, if it was not needed to go there. False: the
// earlier commit is not among tip's first parents, as far as the mirror knows them, so nothing can be said.
func (m *Mirror) IntroducedSince(tip Tip, earlier Hash,
	files []Wanted) (found map[Wanted]Introduction, back int, known bool, err error) {
	t, err := m.newTracing(tip, files)
	if err != nil {
		return nil, 0, false, err
	}
	t.until = earlier
	at, err := t.back(m.here)
	if err != nil || len(t.missing) > 0 && at != earlier {
		return nil, 0, false, err
	}
	return t.found, t.steps, true, nil
}

// tracing looks for the commits that gave files their content.
type tracing struct {
	*Mirror
	tip     Tip
	missing map[string]Hash
	found   map[Wanted]Introduction
	// steps are how many first parents it went back.
	steps int
	// until is a commit that is not looked at any more; zero: none.
	until Hash
}

// newTracing looks for those of the files that are at tip as wanted.
func (m *Mirror) newTracing(tip Tip, files []Wanted) (*tracing, error) {
	t := &tracing{Mirror: m, tip: tip, missing: map[string]Hash{}, found: map[Wanted]Introduction{}}
	for _, w := range files {
		e, ok, err := m.Lookup(tip.Tree, w.Path)
		if err != nil {
			return nil, m.store.needed(err)
		}
		if ok && e.Hash == w.Blob {
			t.missing[w.Path] = w.Blob
		}
	}
	return t, nil
}

// back goes back from the tip along first parents until nothing is missing, or until have does not have a parent. It
// gives the commit that it stopped at.
func (t *tracing) back(have func(Hash) (bool, error)) (at Hash, err error) {
	at = t.tip.Commit
	for len(t.missing) > 0 && at != t.until {
		c, err := t.Commit(at)
		if err != nil {
			return at, err
		}
		parent := Hash{}
		if len(c.Parents) > 0 {
			if here, err := have(c.Parents[0]); err != nil || !here {
				return at, err
			}
			before, err := t.Commit(c.Parents[0])
			if err != nil {
				return at, err
			}
			parent = before.Tree
		}
		err = t.diff("", parent, c.Tree, func(path string, e Entry) error {
			if blob, ok := t.missing[path]; ok && e.Hash == blob {
				t.found[Wanted{path, blob}] = Introduction{c, t.steps}
				delete(t.missing, path)
			}
			return nil
		})
		if err != nil || len(c.Parents) == 0 {
			return at, t.store.needed(err)
		}
		at = c.Parents[0]
		t.steps++
	}
	return at, nil
}

// deepen fetches history of the branch down to depth commits, and gives the branch's tip at the server.
func (m *Mirror) deepen(ctx context.Context, branch string, depth int) (now Hash, err error) {
	ctx, give, err := m.take(ctx)
	if err != nil {
		return now, err
	}
	defer give()
	sess, adv, err := m.remote.open(ctx, uploadPack)
	if err != nil {
		return now, err
	}
	defer sess.close()
	if now, err = m.findTip(adv, branch); err != nil {
		return now, err
	}
	f := &fetcher{Mirror: m, branch: branch}
	have := m.state.tips[branch]
	r := request{wants: []Hash{now}, have: have, depth: depth, filter: m.filterFor(branch, adv.Capabilities)}
	if err := f.download(ctx, sess, adv.Capabilities, r); err != nil {
		if ctx.Err() != nil {
			return now, interrupted(ctx, uploadPack, address{display: m.url})
		}
		if f.lost {
			return now, &MovedError{Branch: branch, Expected: have, Actual: now}
		}
		return now, fmt.Errorf("fetch history of branch %q: %w", branch, err)
	}
	if !f.onDisk {
		return now, nil
	}
	return now, m.persist()
}

// endOf says why a tip's history ends before its beginning. All that the server has was fetched by then, and now is
// its tip. Nil: the server's repository is shallow. A *MovedError: the branch does not lead to tip any more.
func (m *Mirror) endOf(tip Tip, now Hash) error {
	if m.ancestry(tip.Commit, now) == isAncestor {
		return nil
	}
	return &MovedError{Branch: tip.Branch, Expected: tip.Commit, Actual: now}
}

// History calls visit with a tip's commit and its ancestors, newest first, until visit says false or history ends.
// A shallow repository of the server ends it where it was cut. History that the mirror does not have yet is fetched
// step by step, with all that is in it. An error of visit ends it and is returned as it is. Errors: *MovedError
// when history cannot be had because the branch does not lead to tip any more, those of Fetch.
func (m *Mirror) History(ctx context.Context, tip Tip, visit func(CommitInfo) (bool, error)) error {
	_, err := m.walk(tip.Commit, m.bringing(ctx, tip), func(c CommitInfo) (bool, error) {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		return visit(c)
	})
	return err
}

// bringing makes sure that a commit of a tip's history is in the mirror, and fetches more and more of that history for
// it. False: history ends before it.
func (m *Mirror) bringing(ctx context.Context, tip Tip) (have func(Hash) (bool, error)) {
	var now Hash
	steps := deepening
	return func(h Hash) (_ bool, err error) {
		for !m.store.has(h) {
			if len(steps) == 0 {
				return false, m.endOf(tip, now)
			}
			if now, err = m.deepen(ctx, tip.Branch, steps[0]); err != nil {
				return false, err
			}
			steps = steps[1:]
		}
		return true, nil
	}
}

// here says whether a commit is in the mirror, and brings none.
func (m *Mirror) here(h Hash) (bool, error) { return m.store.has(h), nil }

// ancestry is whether one commit is in the history of another.
type ancestry int

const (
	ancestryUnknown ancestry = iota // the mirror does not have enough history to tell
	isAncestor
	noAncestor
)

func (m *Mirror) ancestry(ancestor, commit Hash) ancestry {
	found := false
	cut, err := m.walk(commit, m.here, func(c CommitInfo) (bool, error) {
		found = c.Hash == ancestor
		return !found, nil
	})
	switch {
	case err == nil && found:
		return isAncestor
	case err == nil && !cut:
		return noAncestor
	}
	return ancestryUnknown
}

// walk visits a commit and its ancestors, newest first, until visit says false. cut says that have does not have some
// parents of visited commits: they are left out.
func (m *Mirror) walk(from Hash, have func(Hash) (bool, error),
	visit func(CommitInfo) (bool, error)) (cut bool, err error) {
	first, err := m.Commit(from)
	if err != nil {
		return false, err
	}
	err = Ancestors(first, func(_ CommitInfo, h Hash) (parent CommitInfo, here bool, err error) {
		if here, err = have(h); err != nil || !here {
			cut = cut || err == nil
			return parent, false, err
		}
		parent, err = m.Commit(h)
		return parent, true, err
	}, visit)
	return cut, err
}

// Ancestors visits a commit and its ancestors, newest first, until visit says false. parent reads one of the parents of
// a visited commit; those that it says are not here are left out.
func Ancestors(first CommitInfo, parent func(of CommitInfo, h Hash) (c CommitInfo, here bool, err error),
	visit func(CommitInfo) (bool, error),
) error {
	queue, seen := Newest{&first}, map[Hash]bool{first.Hash: true}
	for len(queue) > 0 {
		c := queue.Next()
		if more, err := visit(c); err != nil || !more {
			return err
		}
		for _, h := range c.Parents {
			if seen[h] {
				continue
			}
			p, here, err := parent(c, h)
			if err != nil {
				return err
			}
			if here {
				seen[h] = true
				queue.Add(p)
			}
		}
	}
	return nil
}

// Newest are commits that wait, the newest one first; of those of one time the one that was added first.
type Newest []*CommitInfo

// Add puts a commit in its place.
func (q *Newest) Add(c CommitInfo) {
	at, _ := slices.BinarySearchFunc(*q, c.Committer.When, func(other *CommitInfo, when time.Time) int {
		return cmp.Or(when.Compare(other.Committer.When), -1)
	})
	*q = slices.Insert(*q, at, &c)
}

// Next takes the first one.
func (q *Newest) Next() CommitInfo {
	first := *(*q)[0]
	*q = (*q)[1:]
	return first
}
