package gitops

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/gitops/tree"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// meant is an error that is one of rollout's, too.
type meant struct {
	error
	is error
}

// Is makes it that error.
func (e *meant) Is(target error) bool { return target == e.is }

// Unwrap gives the cause.
func (e *meant) Unwrap() error { return e.error }

// branchMoved says that a branch is not any more what was read: read again, and decide again.
func branchMoved(branch string, err error) error {
	return &meant{fmt.Errorf("branch %s moved: %w", branch, err), rollout.ErrMoved}
}

// Commit pushes one commit on top of Base, or one for each part, and gives the hash of the last. It is "" if the
// changes change nothing. Nothing is forced, merged or rebased. Errors: rollout.ErrMoved when the branch is not at Base
// any more; rollout.ErrProtected; *rollout.UnwritableError; *git.RejectedError, *git.UnknownOutcomeError and
// *git.AccessError as Push has them.
func (r *Repository) Commit(ctx context.Context, req rollout.Commit) (string, error) {
	branch := r.outputBranch(req.Environment)
	tip := r.lastTips[branch]
	parts := req.Parts
	if parts == nil {
		parts = []rollout.CommitPart{{Changes: req.Changes, Message: req.Message}}
	}
	request := git.CommitRequest{Branch: branch, Parent: plumbing.NewHash(req.Base), Author: r.signature(),
		Committer: r.signature()}
	for _, p := range parts {
		changes, err := r.changes(ctx, tip, req.Environment.Output.Path, p.Changes)
		if err != nil {
			return "", unwritable(err)
		}
		request.Then = append(request.Then, git.Step{Changes: changes, Message: r.message(p.Message)})
	}
	if r.cfg.SigningKey != nil {
		request.Sign = r.cfg.SigningKey.Sign
	}
	staged, err := r.mirror.Stage(request)
	if err != nil {
		return "", unwritable(fmt.Errorf("stage commit for %s: %w", branch, err))
	}
	if staged.Tree == tip.Tree && !tip.Commit.IsZero() {
		return "", nil
	}
	hash, err := r.push(ctx, staged)
	if _, ok := errors.AsType[*git.ProtectedError](err); ok {
		err = &meant{err, rollout.ErrProtected}
	}
	return hash, err
}

// push pushes a staged commit, and gives its hash. Errors: rollout.ErrMoved; those of git.Mirror.Push.
func (r *Repository) push(ctx context.Context, staged *git.Staged) (string, error) {
	r.write(Before)
	hash, err := r.mirror.Push(ctx, staged)
	r.write(After)
	if _, ok := errors.AsType[*git.MovedError](err); ok {
		return "", branchMoved(staged.Branch, err)
	}
	if err != nil {
		return "", fmt.Errorf("push to %s: %w", staged.Branch, err)
	}
	return hash.String(), nil
}

// unwritable adds to an error the path that it is about, if it is about one.
func unwritable(err error) error {
	if of, ok := errors.AsType[*git.PathError](err); ok {
		return &rollout.UnwritableError{Path: of.Path, Err: err}
	}
	return err
}

// signature is the bot's, now.
func (r *Repository) signature() git.Signature {
	return git.Signature{Name: r.cfg.Author, Email: r.cfg.Email, When: r.cfg.Now().UTC().Truncate(time.Second)}
}

// skipCI is what GitHub, GitLab, Gitea and others look for in a commit's message.
const skipCI = "[skip ci]"

// message is what a commit says.
func (r *Repository) message(text string) string {
	if !r.cfg.SkipCI {
		return text
	}
	subject, body, more := strings.Cut(text, "\n")
	if !more {
		return subject + " " + skipCI
	}
	return subject + " " + skipCI + "\n" + body
}

func (r *Repository) write(m Moment) {
	if r.cfg.OnWrite != nil {
		r.cfg.OnWrite(m)
	}
}

// changes turns file changes into the mirror's. Content that Git had earlier is looked for in history. Errors: a
// *rollout.UnwritableError for each file that can't be written, joined; those of FindInHistory.
func (r *Repository) changes(ctx context.Context, tip git.Tip, output string,
	files []rollout.FileChange) ([]git.Change, error) {
	root := path.Clean(output)
	var out []git.Change
	var unwritable []error
	for _, c := range files {
		if err := git.CheckPath(c.Path); err != nil {
			return nil, err
		}
		if root != "." && !tree.IsBelow(c.Path, root) {
			unwritable = append(unwritable, &rollout.UnwritableError{Path: c.Path,
				Err: fmt.Errorf("change of %q is outside of the output %q", c.Path, root)})
			continue
		}
		change := git.Change{Path: c.Path, Delete: c.Delete}
		switch {
		case c.Delete:
		case c.Blob != "":
			data, err := r.bringBack(ctx, tip, git.Wanted{Path: c.Path, Blob: plumbing.NewHash(c.Blob)})
			if lost := rollout.Unwritable(err); len(lost) > 0 {
				unwritable = append(unwritable, err)
				continue
			} else if err != nil {
				return nil, err
			}
			change.Data = data // the server may not have it any more
		default:
			change.Data = []byte(c.Data)
		}
		out = append(out, change)
	}
	return out, errors.Join(unwritable...)
}

// lookAgain is after how long what was nowhere in history is looked for again: a branch may have been pushed back to
// what it was.
const lookAgain = time.Hour

// bringBack gives what a path had earlier. Errors: *rollout.UnwritableError when that is nowhere in history;
// rollout.ErrMoved; those of FindInHistory.
func (r *Repository) bringBack(ctx context.Context, tip git.Tip, want git.Wanted) ([]byte, error) {
	if data, err := r.mirror.Blob(want.Blob, tree.MaxFileSize); err == nil {
		return data, nil
	}
	gone := &rollout.UnwritableError{Path: want.Path,
		Err: fmt.Errorf("%q has to be put back as it was written (blob %s), which is nowhere in the history of %s: "+
			"put it there by hand, or have a drift policy adopt what is there", want.Path, want.Blob, tip.Branch)}
	if r.cfg.Now().Before(r.nowhere[want]) {
		return nil, gone
	}
	_, ok, err := r.mirror.FindInHistory(ctx, tip, want)
	var moved *git.MovedError
	switch {
	case errors.As(err, &moved):
		return nil, branchMoved(tip.Branch, err)
	case err != nil:
		return nil, fmt.Errorf("bring back %q: %w", want.Path, err)
	case !ok:
		if r.nowhere == nil {
			r.nowhere = map[git.Wanted]time.Time{}
		}
		r.nowhere[want] = r.cfg.Now().Add(lookAgain)
		return nil, gone
	}
	return r.mirror.Blob(want.Blob, tree.MaxFileSize)
}
