package gitops

import (
	"context"
	"errors"
	"regexp"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/rampart-gitops/rampart/gitops/mirror"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Origins gives, for snapshots of the world that was read last, the commits that gave their specs the content that they have, in
// the order of the snapshots. Each is looked for once; that can take history which the mirror does not have, which is fetched, for
// originTime at most. What could not be found is looked for again after originPause, and not while the server is away.
// Errors: those of mirror.Introduced; what was found until then is given all the same.
func (r *Repository) Origins(ctx context.Context, snapshots []rollout.Snapshot) ([]rollout.GitContext, error) {
	var missing []mirror.Wanted
	for _, s := range snapshots {
		if w := specOf(s); !w.Blob.IsZero() {
			if _, ok := r.origins[w]; !ok {
				missing = append(missing, w)
			}
		}
	}
	err := r.trace(ctx, missing)
	out := make([]rollout.GitContext, len(snapshots))
	for i, s := range snapshots {
		out[i] = s.Git
		if origin, ok := r.origins[specOf(s)]; ok {
			origin.Branch, origin.SpecBlob = s.Git.Branch, s.Git.SpecBlob
			out[i] = origin
		}
	}
	return out, err
}

// A cycle waits for history, before it takes traffic back.
const (
	originTime  = 5 * time.Second
	originPause = 5 * time.Minute
)

func specOf(s rollout.Snapshot) mirror.Wanted {
	return mirror.Wanted{Path: s.SpecPath, Blob: plumbing.NewHash(s.Git.SpecBlob)}
}

// trace looks for commits and remembers them. Specs that are not at the tip any more are forgotten.
func (r *Repository) trace(ctx context.Context, missing []mirror.Wanted) error {
	if len(missing) == 0 || r.away || r.cfg.Now().Before(r.retry) {
		return nil
	}
	tip := r.lastTips[r.cfg.Branch]
	bounded, cancel := context.WithTimeout(ctx, originTime)
	defer cancel()
	found, err := r.mirror.Introduced(bounded, tip, missing)
	if err != nil {
		r.retry = r.cfg.Now().Add(originPause)
	}
	kept := map[mirror.Wanted]rollout.GitContext{}
	for w, origin := range r.origins {
		if e, ok, err := r.mirror.Lookup(tip.Tree, w.Path); err == nil && ok && e.Hash == w.Blob {
			kept[w] = origin
		}
	}
	contexts := map[mirror.Hash]rollout.GitContext{}
	for w, c := range found {
		origin, ok := contexts[c.Hash]
		if !ok {
			var problem error
			if origin, problem = r.origin(c); problem != nil {
				err = errors.Join(err, problem)
				continue
			}
			contexts[c.Hash] = origin
		}
		kept[w] = origin
	}
	r.origins = kept
	return err
}

func (r *Repository) origin(c mirror.CommitInfo) (rollout.GitContext, error) {
	out := rollout.GitContext{Commit: c.Hash.String(), Author: authorOf(c), When: c.Author.When.UTC(), Message: c.Message, Reverts: revertedBy(c.Message)}
	var err error
	if out.Signed, out.Signer, err = r.signed(c.Hash); err != nil {
		return out, err
	}
	var before mirror.Hash
	if len(c.Parents) > 0 {
		parent, err := r.mirror.Commit(c.Parents[0])
		if err != nil {
			return out, err
		}
		before = parent.Tree
	}
	enough := errors.New("enough")
	err = r.mirror.Diff(before, c.Tree, func(path string, _ mirror.Entry) error {
		if len(out.Paths) == rollout.MaxChangedPaths {
			return enough
		}
		out.Paths = append(out.Paths, path)
		return nil
	})
	if errors.Is(err, enough) {
		err = nil
	}
	return out, err
}

// signed says whether a signer that is trusted signed a commit, and who.
func (r *Repository) signed(commit mirror.Hash) (rollout.Answer, string, error) {
	if r.cfg.Signers == nil {
		return "", "", nil
	}
	raw, err := r.mirror.RawCommit(commit)
	if err != nil {
		return "", "", err
	}
	signer, err := r.cfg.Signers.Verify(raw)
	if err != nil {
		r.cfg.Log.Debug("commit is not signed by a trusted signer", "commit", commit.String(), "reason", err)
		return rollout.No, "", nil
	}
	return rollout.Yes, signer, nil
}

// revertedBy is the commit that a message of git revert names.
func revertedBy(message string) string {
	m := regexp.MustCompile(`(?m)^This reverts commit ([0-9a-f]{40})\b`).FindStringSubmatch(message)
	if m == nil {
		return ""
	}
	return m[1]
}
