package gitops

import (
	"context"
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// lostKey is a version that a record does not have.
type lostKey struct{ dir, buildID string }

// Recorded gives the versions that records of an environment had and lost, sorted by when they were made. Each is
// as the newest commit with it has it. Versions that the bot, or a person by it, was taking out of service then are
// left out. A version that is not found is looked for again after an hour. While the repository is away, only the
// mirror is looked at. With an error it gives what it found until then; errors are those of git.Mirror.Recent.
func (r *Repository) Recorded(ctx context.Context, env v1alpha1.Environment,
	lost []rollout.LostVersions) (map[rollout.Name][]v1alpha1.RecordedVersion, error) {
	tip := r.lastTips[r.outputBranch(env)]
	s := historySearch{Repository: r, found: map[rollout.Name][]v1alpha1.RecordedVersion{}}
	for _, l := range lost {
		l.BuildIDs = slices.DeleteFunc(slices.Clone(l.BuildIDs), func(id string) bool {
			return r.cfg.Now().Before(r.unknown[lostKey{l.Dir, id}])
		})
		s.left = append(s.left, searched{LostVersions: l})
	}
	s.drop()
	if len(s.left) == 0 || tip.Commit.IsZero() {
		return s.found, nil
	}
	err := r.recent(ctx, tip, r.away, func(c git.CommitInfo) (bool, error) { return s.visit(ctx, c) })
	if err == nil && !r.away {
		if r.unknown == nil {
			r.unknown = map[lostKey]time.Time{}
		}
		for _, l := range s.left {
			for _, id := range l.BuildIDs {
				r.unknown[lostKey{l.Dir, id}] = r.cfg.Now().Add(lookAgain)
			}
		}
	}
	for _, versions := range s.found {
		slices.SortStableFunc(versions, func(a, b v1alpha1.RecordedVersion) int {
			return a.CreatedAt.Compare(b.CreatedAt.Time)
		})
	}
	return s.found, err
}

// historySearch is one Recorded.
type historySearch struct {
	*Repository
	left  []searched
	found map[rollout.Name][]v1alpha1.RecordedVersion
}

// searched is what is looked for still, and the record that was looked at last.
type searched struct {
	rollout.LostVersions
	seen string
}

// drop leaves out those of whom nothing is looked for any more.
func (s *historySearch) drop() {
	s.left = slices.DeleteFunc(s.left, func(l searched) bool { return len(l.BuildIDs) == 0 })
}

// visit looks at the records of a commit, and says whether there is more to look for.
func (s *historySearch) visit(ctx context.Context, c git.CommitInfo) (more bool, err error) {
	for i := range s.left {
		l := &s.left[i]
		all, _, err := s.recordAt(ctx, c, l.Dir, &l.seen)
		if err != nil {
			return false, err
		}
		for _, routing := range all {
			s.look(l, routing)
		}
	}
	s.drop()
	return len(s.left) > 0, nil
}

// look takes over what a record has of what is looked for.
func (s *historySearch) look(l *searched, routing *v1alpha1.Routing) {
	if routing.Spec.TemporalNamespace != l.TemporalNamespace {
		return
	}
	for _, v := range routing.Spec.Versions {
		at := slices.Index(l.BuildIDs, v.BuildID)
		if at < 0 {
			continue
		}
		l.BuildIDs = slices.Delete(l.BuildIDs, at, at+1)
		if ending := routing.Spec.Retire != nil || v.Retire != nil || v.Guard == v1alpha1.GuardOff; !ending {
			s.found[l.Deployment] = append(s.found[l.Deployment], v)
		}
	}
}
