package gitops

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/rampart-gitops/rampart/gitops/git"
)

// Touch is a commit that touched a path.
type Touch struct {
	Commit  string
	Author  string
	When    time.Time // of the committer, UTC
	Message string
	// Paths of those that were asked for, sorted.
	Paths []string
}

// Touched is what Touches finds, and the commit where history ends although it has parents, because the repository is
// shallow. nil: it does not end before what was asked for.
type Touched struct {
	Touches []Touch
	Cut     *Tip
}

// HistoryQuery says what to look for in the history of a branch.
type HistoryQuery struct {
	// Branch; "": the one that specs are on, which in a clone is HEAD.
	Branch string
	// Commit of a clone to look back from, in place of the tip of Branch; "": that tip.
	Commit string
	// Paths of files and folders.
	Paths []string
	// Since is how far back to look; zero: to the beginning. Most is how many commits to find; zero: all.
	Since time.Time
	Most  int
}

// Touches gives commits that touched one of the paths, the newest first. A merge is one where it has something that
// none of its parents has. History that the mirror does not have is fetched. A branch that is not there has none.
// Errors: those of git.Mirror.History.
func (r *Repository) Touches(ctx context.Context, q HistoryQuery) (Touched, error) {
	if q.Branch == "" {
		q.Branch = r.cfg.Branch
	}
	tip, err := r.mirror.Fetch(ctx, q.Branch)
	if _, ok := errors.AsType[*git.NoBranchError](err); ok && q.Branch != r.cfg.Branch {
		return Touched{}, nil
	}
	if err != nil {
		return Touched{}, err
	}
	return touches(ctx, r.mirror, tip, q)
}

// Touches is Repository.Touches on what the clone has, with paths below its Prefix. A branch is looked for as the clone
// knows it of its remote, then as its own. Errors: *NoRefError.
func (c *Clone) Touches(ctx context.Context, q HistoryQuery) (Touched, error) {
	tip, err := c.beginning(q)
	if err != nil {
		return Touched{}, err
	}
	asked := q.Paths
	q.Paths = nil
	for _, p := range asked {
		q.Paths = append(q.Paths, path.Join(c.prefix, p))
	}
	found, err := touches(ctx, c, tip, q)
	for _, t := range found.Touches {
		for i, p := range t.Paths {
			t.Paths[i] = asked[slices.Index(q.Paths, p)]
		}
	}
	return found, err
}

// beginning is where a query looks back from.
func (c *Clone) beginning(q HistoryQuery) (git.Tip, error) {
	switch {
	case q.Commit != "":
		info, err := c.Commit(plumbing.NewHash(q.Commit))
		return git.Tip{Branch: q.Branch, Commit: info.Hash, Tree: info.Tree}, err
	case q.Branch != "":
		return c.branchTip(q.Branch)
	}
	return c.tip("HEAD")
}

// paths finds entries in commits. History calls visit with a tip's commit and its ancestors, newest first, until it
// says false.
type paths interface {
	History(ctx context.Context, tip git.Tip, visit func(git.CommitInfo) (bool, error)) error
	Lookup(tree git.Hash, path string) (git.Entry, bool, error)
}

func touches(ctx context.Context, from paths, tip git.Tip, q HistoryQuery) (Touched, error) {
	s := search{paths: from, query: q, children: map[git.Hash][]*visited{}}
	if err := from.History(ctx, tip, s.visit); err != nil {
		return Touched{}, fmt.Errorf("read history: %w", err)
	}
	var out Touched
	// What is left has parents that are not there: a shallow repository begins with it.
	for _, v := range s.open {
		if when := v.commit.Committer.When.UTC(); v.left > 0 && (out.Cut == nil || when.After(out.Cut.When)) {
			out.Cut = &Tip{Commit: v.commit.Hash.String(), When: when}
		}
		if v.left > 0 {
			s.conclude(v)
		}
	}
	slices.SortStableFunc(s.found, func(a, b Touch) int { return b.When.Compare(a.When) })
	if q.Most > 0 && len(s.found) >= q.Most {
		s.found, out.Cut = s.found[:q.Most], nil
	}
	out.Touches = s.found
	return out, nil
}

// search is one look through history. A commit is compared with its parents when the last of them is visited.
type search struct {
	paths
	query    HistoryQuery
	children map[git.Hash][]*visited
	// open are visited commits, in order. Some of them wait for parents.
	open  []*visited
	found []Touch
}

// visited is a commit whose parents are not all visited.
type visited struct {
	commit git.CommitInfo
	at     []git.Entry // by the query's path; zero: nothing there
	left   int
	// differs says by path that all parents so far have something else there.
	differs []bool
}

// visit compares a commit's children with it, and remembers it for its own parents.
func (s *search) visit(c git.CommitInfo) (bool, error) {
	at := make([]git.Entry, len(s.query.Paths))
	for i, p := range s.query.Paths {
		e, ok, err := s.Lookup(c.Tree, p)
		if err != nil {
			return false, err
		}
		if ok {
			at[i] = git.Entry{Mode: e.Mode, Hash: e.Hash}
		}
	}
	for _, child := range s.children[c.Hash] {
		for i := range at {
			child.differs[i] = child.differs[i] && at[i] != child.at[i]
		}
		if child.left--; child.left == 0 {
			s.conclude(child)
		}
	}
	delete(s.children, c.Hash)
	s.open = slices.DeleteFunc(s.open, func(v *visited) bool { return v.left == 0 })
	enough := s.query.Most > 0 && len(s.found) >= s.query.Most
	if old := !s.query.Since.IsZero() && c.Committer.When.Before(s.query.Since); old || enough {
		return len(s.open) > 0, nil
	}
	v := &visited{commit: c, at: at, left: len(c.Parents), differs: make([]bool, len(at))}
	for i := range at {
		v.differs[i] = len(c.Parents) > 0 || at[i] != git.Entry{}
	}
	for _, p := range c.Parents {
		s.children[p] = append(s.children[p], v)
	}
	if v.left == 0 {
		s.conclude(v)
	} else {
		s.open = append(s.open, v)
	}
	return true, nil
}

// conclude adds a commit if it touched something.
func (s *search) conclude(v *visited) {
	var touched []string
	for i, p := range s.query.Paths {
		if v.differs[i] && (v.left == 0 || v.at[i] != git.Entry{}) {
			touched = append(touched, p)
		}
	}
	if len(touched) == 0 {
		return
	}
	slices.Sort(touched)
	s.found = append(s.found, Touch{Commit: v.commit.Hash.String(), Author: v.commit.Author.Name,
		When: v.commit.Committer.When.UTC(), Message: v.commit.Message, Paths: touched})
}
