package git

import (
	"container/heap"
	"context"
	"fmt"
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
// mirror afterwards. Errors: *MovedError when history cannot be had because the branch does not lead to tip any more,
// those of Fetch.
func (m *Mirror) FindInHistory(ctx context.Context, tip Tip, want Wanted) (found Found, ok bool, err error) {
	err = m.stepwise(ctx, tip, func(ctx context.Context) (cut bool, err error) {
		if found, ok, cut, err = m.searchLocal(tip, want); err == nil && ok {
			return false, m.bringFile(ctx, found.Entry)
		}
		return cut, err
	})
	return found, ok, err
}

// stepwise looks into a tip's history with more and more of it there, until nothing that is looked for may be cut off.
// Errors: those of look, of take and of deepen; *MovedError when the branch does not lead to tip any more.
func (m *Mirror) stepwise(ctx context.Context, tip Tip, look func(context.Context) (cut bool, err error)) error {
	ctx, give, err := m.take(ctx)
	if err != nil {
		return err
	}
	defer give()
	var now Hash
	for i := 0; ; i++ {
		switch cut, err := look(ctx); {
		case err != nil || !cut:
			return err
		case i == len(deepening):
			return m.endOf(tip, now)
		}
		if now, err = m.deepen(ctx, tip.Branch, deepening[i]); err != nil {
			return err
		}
	}
}

// searchLocal looks in the history that is there; cut says that there is more elsewhere.
func (m *Mirror) searchLocal(tip Tip, want Wanted) (found Found, ok, cut bool, err error) {
	cut, err = m.walk(walking{from: tip.Commit}, func(c CommitInfo) (bool, error) {
		e, here, err := m.Lookup(c.Tree, want.Path)
		err = m.store.needed(err)
		if here && (want.Blob.IsZero() || e.Hash == want.Blob) {
			found, ok = Found{Commit: c.Hash, Entry: e}, true
		}
		return !ok, err
	})
	return found, ok, cut, err
}

// Introduction is a commit that gave a file its content, and how many first parents before the tip it is.
type Introduction struct {
	CommitInfo
	Back int
}

// Introduced finds, for each file as it is at tip, the commit that gave it its content: along first parents, the
// last one before which the path had another content or none. So a merge counts as one commit, whatever it brought
// together. History that the mirror does not have yet is fetched step by step, until all are found. A file that is
// not at tip as wanted is left out of the answer. Errors: those of FindInHistory.
func (m *Mirror) Introduced(ctx context.Context, tip Tip, files []Wanted) (map[Wanted]Introduction, error) {
	t, err := m.newTracing(tip, files)
	if err != nil {
		return nil, err
	}
	at := tip.Commit
	err = m.stepwise(ctx, tip, func(context.Context) (cut bool, err error) {
		at, cut, err = t.back(at)
		return cut, err
	})
	return t.found, err
}

// IntroducedSince is Introduced for the commits after an earlier one, in the history that the mirror has: of the files
// that are at tip as wanted and not in the answer, the earlier commit had the same content, and nothing has been
// between. back is how many first parents before tip the earlier commit is; less, if it was not needed to go there.
// False: the earlier commit is not among tip's first parents, as far as the mirror knows them, so nothing can be said.
func (m *Mirror) IntroducedSince(tip Tip, earlier Hash,
	files []Wanted) (found map[Wanted]Introduction, back int, known bool, err error) {
	t, err := m.newTracing(tip, files)
	if err != nil {
		return nil, 0, false, err
	}
	t.until = earlier
	at, _, err := t.back(tip.Commit)
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

// back goes back from a commit along first parents until nothing is missing. It stops at a commit whose parent the
// mirror does not have, which is cut.
func (t *tracing) back(at Hash) (stopped Hash, cut bool, err error) {
	for len(t.missing) > 0 && at != t.until {
		c, err := t.Commit(at)
		if err != nil {
			return at, false, err
		}
		parent := Hash{}
		if len(c.Parents) > 0 {
			if !t.store.has(c.Parents[0]) {
				return at, true, nil
			}
			before, err := t.Commit(c.Parents[0])
			if err != nil {
				return at, false, err
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
			return at, false, t.store.needed(err)
		}
		at = c.Parents[0]
		t.steps++
	}
	return at, false, nil
}

// deepen fetches history of the branch down to depth commits, and gives the branch's tip at the server.
func (m *Mirror) deepen(ctx context.Context, branch string, depth int) (now Hash, err error) {
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

// endOf says why a tip's history ends before its beginning, after all that the server has came with its tip now: nil
// where the server's repository is shallow, a *MovedError where the branch does not lead to tip any more.
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
	steps := deepening
	have := func(h Hash) (bool, error) {
		for !m.store.has(h) && len(steps) > 0 {
			now, err := m.deeper(ctx, tip.Branch, steps[0])
			if steps = steps[1:]; err == nil && len(steps) == 0 && !m.store.has(h) {
				err = m.endOf(tip, now)
			}
			if err != nil {
				return false, err
			}
		}
		return m.store.has(h), nil
	}
	_, err := m.walk(walking{from: tip.Commit, have: have}, func(c CommitInfo) (bool, error) {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		return visit(c)
	})
	return err
}

// deeper is deepen on its own turn.
func (m *Mirror) deeper(ctx context.Context, branch string, depth int) (now Hash, err error) {
	ctx, give, err := m.take(ctx)
	if err != nil {
		return now, err
	}
	defer give()
	return m.deepen(ctx, branch, depth)
}

// ancestry is whether one commit is in the history of another.
type ancestry int

const (
	ancestryUnknown ancestry = iota // the mirror does not have enough history to tell
	isAncestor
	noAncestor
)

func (m *Mirror) ancestry(ancestor, commit Hash) ancestry {
	found := false
	cut, err := m.walk(walking{from: commit}, func(c CommitInfo) (bool, error) {
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

// walking is where a walk begins, and what it does about a commit that may not be in the mirror.
type walking struct {
	from Hash
	// have brings a parent of a visited commit if it can; nil: it brings none. Parents that are not there are left out.
	have func(Hash) (bool, error)
}

// walk visits a commit and its ancestors, newest first, until visit says false. cut says that parents of
// visited commits are not in the mirror.
func (m *Mirror) walk(w walking, visit func(CommitInfo) (bool, error)) (cut bool, err error) {
	first, err := m.Commit(w.from)
	if err != nil {
		return false, err
	}
	err = Ancestors(first, func(_ CommitInfo, h Hash) (parent CommitInfo, here bool, err error) {
		here = m.store.has(h)
		if w.have != nil {
			here, err = w.have(h)
		}
		if err != nil || !here {
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
	queue, seen := &NewestCommit{first}, map[Hash]bool{first.Hash: true}
	for queue.Len() > 0 {
		c := heap.Pop(queue).(CommitInfo)
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
				heap.Push(queue, p)
			}
		}
	}
	return nil
}

// NewestCommit is a heap of commits, the newest one first.
type NewestCommit []CommitInfo

// Len implements heap.Interface.
func (q NewestCommit) Len() int { return len(q) }

// Less implements heap.Interface.
func (q NewestCommit) Less(i, j int) bool { return q[i].Committer.When.After(q[j].Committer.When) }

// Swap implements heap.Interface.
func (q NewestCommit) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push implements heap.Interface.
func (q *NewestCommit) Push(c any) { *q = append(*q, c.(CommitInfo)) }

// Pop implements heap.Interface.
func (q *NewestCommit) Pop() any {
	last := len(*q) - 1
	c := (*q)[last]
	*q = (*q)[:last]
	return c
}
