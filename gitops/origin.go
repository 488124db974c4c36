package gitops

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Origins gives, for each snapshot of the world that was read last, the commit that gave its spec the content that
// it has. The answer is in the order of the snapshots. Each commit is looked for once, and then in what is new.
// That can take history that the mirror does not have: it is fetched, for originTime at most. What could not be
// found is looked for again after originPause, and not while the server is away. Errors: those of
// git.Mirror.Introduced; what was found until then is given all the same.
func (r *Repository) Origins(ctx context.Context, snapshots []rollout.Snapshot) ([]rollout.GitContext, error) {
	bounded, cancel := context.WithTimeout(ctx, originTime)
	defer cancel()
	if r.away { // a partial mirror is not to ask for what it lacks
		cancel()
	}
	problem := r.follow(bounded)
	var missing []git.Wanted
	for _, s := range snapshots {
		for _, w := range slices.Concat(specOf(s), r.besideOf(s)) {
			if _, ok := r.origins[w]; !ok && !w.Blob.IsZero() && !slices.Contains(missing, w) {
				missing = append(missing, w)
			}
		}
	}
	err := errors.Join(problem, r.trace(bounded, missing))
	out := make([]rollout.GitContext, len(snapshots))
	for i, s := range snapshots {
		out[i] = s.Git
		if origin, ok := r.lastOrigin(specOf(s)); ok {
			origin.Branch, origin.SpecBlob, origin.Inputs, origin.Beside = s.Git.Branch, s.Git.SpecBlob, s.Git.Inputs,
				s.Git.Beside
			out[i] = r.signedWith(origin, r.besideOf(s))
		}
	}
	return out, err
}

// A cycle waits for history, before it takes traffic back.
const (
	originTime  = 5 * time.Second
	originPause = 5 * time.Minute
)

// specOf are the files of a spec.
func specOf(s rollout.Snapshot) []git.Wanted {
	var out []git.Wanted
	for _, f := range s.SpecFiles() {
		out = append(out, git.Wanted{Path: f.Path, Blob: plumbing.NewHash(f.Blob)})
	}
	return out
}

// lastOrigin is the commit that asked for a spec: of those that gave its files their content the last one. False: it is
// not known of all.
func (r *Repository) lastOrigin(files []git.Wanted) (rollout.GitContext, bool) {
	var last rollout.GitContext
	for i, w := range files {
		o, ok := r.origins[w]
		if !ok {
			return rollout.GitContext{}, false
		}
		if i == 0 || o.Place > last.Place {
			last = o
		}
	}
	return last, len(files) > 0
}

// follow brings the origins that are remembered to the tip that was read last. A spec can have gone and come back
// since, which makes its origin another; one that is not at the tip any more is forgotten. All are, where the way to
// the tip is not known.
func (r *Repository) follow(ctx context.Context) error {
	tip := r.lastTips[r.cfg.Branch]
	if tip.Commit == r.traced || len(r.origins) == 0 {
		r.traced = tip.Commit
		return nil
	}
	was := r.origins
	r.origins = map[git.Wanted]rollout.GitContext{}
	since, back, known, err := r.mirror.IntroducedSince(tip, r.traced, slices.Collect(maps.Keys(was)))
	r.traced = tip.Commit
	if err != nil || !known {
		return err
	}
	r.place += back
	for w, o := range was {
		if _, again := since[w]; again {
			continue
		}
		if e, ok, err := r.mirror.Lookup(tip.Tree, w.Path); err == nil && ok && e.Hash == w.Blob {
			r.origins[w] = o
		}
	}
	return r.noteOrigins(ctx, since)
}

// trace looks for commits and remembers them.
func (r *Repository) trace(ctx context.Context, missing []git.Wanted) error {
	if len(missing) == 0 || r.away || r.cfg.Now().Before(r.retry) {
		return nil
	}
	found, err := r.mirror.Introduced(ctx, r.lastTips[r.cfg.Branch], missing)
	if err != nil {
		r.retry = r.cfg.Now().Add(originPause)
	}
	return errors.Join(err, r.noteOrigins(ctx, found))
}

// noteOrigins makes commits the origins of what they introduced.
func (r *Repository) noteOrigins(ctx context.Context, found map[git.Wanted]git.Introduction) error {
	if r.origins == nil {
		r.origins = map[git.Wanted]rollout.GitContext{}
	}
	var problems error
	known := map[git.Hash]rollout.GitContext{}
	for w, c := range found {
		o, ok := known[c.Hash]
		if !ok {
			var err error
			if o, err = r.originOf(ctx, c.CommitInfo); err != nil {
				problems = errors.Join(problems, err)
				continue
			}
			o.Place = r.place - c.Back
			known[c.Hash] = o
		}
		r.origins[w] = o
	}
	return problems
}

func (r *Repository) originOf(ctx context.Context, c git.CommitInfo) (rollout.GitContext, error) {
	out := rollout.GitContext{Commit: c.Hash.String(), Author: authorOf(c), Committer: signatureText(c.Committer),
		When: c.Author.When.UTC(), Message: c.Message, Reverts: revertedBy(c.Message)}
	var err error
	if out.Signed, out.Signer, err = r.signed(c.Hash); err != nil {
		return out, err
	}
	var before git.Hash
	if len(c.Parents) > 0 {
		parent, err := r.mirror.Commit(c.Parents[0])
		if err != nil {
			return out, err
		}
		before = parent.Tree
	}
	err = r.mirror.Diff(before, c.Tree, func(path string, _ git.Entry) error {
		if len(out.Paths) == rollout.MaxChangedPaths {
			return fs.SkipAll
		}
		out.Paths = append(out.Paths, path)
		return nil
	})
	return out, err
}

// signed says whether a signer that is trusted signed a commit, and who.
func (r *Repository) signed(commit git.Hash) (rollout.Answer, string, error) {
	if r.cfg.Signers == nil {
		return "", "", nil
	}
	raw, err := r.mirror.RawCommit(commit)
	if _, ok := errors.AsType[*git.TooLargeError](err); ok {
		return rollout.No, "", nil
	}
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
