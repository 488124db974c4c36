package pullrequest

import (
	"context"
	"errors"
	"time"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/render"
)

// ProposeCommit puts a commit that its branch does not take into a pull request of its own, in place of the one before.
// One that a person closed is left closed for as long as it is the same. What goes wrong at the forge is told, and
// tried again the next time; errors are those of the branch.
func (m *Manager) ProposeCommit(ctx context.Context, commit rollout.Commit) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	e := m.environment(commit.Environment.Name)
	is, err := m.Branches.ProposeCommit(ctx, commit, render.Fingerprint)
	if err != nil {
		return err
	}
	e.output = true
	l := &look{Manager: m, environment: e, world: rollout.EnvironmentWorld{Environment: commit.Environment,
		Base: commit.Base}}
	switch {
	case m.Now().Before(m.until), m.Now().Before(l.file(output).until):
	case is.Theirs:
		l.tell(ctx, output, l.freeOutput(ctx, is))
	default:
		l.tell(ctx, output, l.openOutput(ctx, is, commit))
	}
	return nil
}

// freeOutput removes a branch with commits of others once they were merged: the next cycle has it anew. Until then
// nothing merges it by itself.
func (l *look) freeOutput(ctx context.Context, is gitops.Proposed) error {
	pull, err := l.newest(ctx, l.file(output), is, l.Now().Add(-past))
	if err != nil {
		return err
	}
	if !merged(is, pull) {
		return l.notByItself(ctx, l.file(output))
	}
	is.Theirs = false
	return l.Branches.Withdraw(ctx, is)
}

// output stands for an environment's commits where a worker deployment's name is expected.
var output = rollout.Name{Name: "output"}

func (l *look) openOutput(ctx context.Context, is gitops.Proposed, commit rollout.Commit) error {
	f := l.file(output)
	since := is.At // one of this commit changed since it was made
	if now := l.Now(); now.Before(since) {
		since = now
	}
	pull, err := l.newest(ctx, f, is, since.Add(-back))
	if err != nil {
		return err
	}
	title, body := l.Commit(commit.Environment, l.base(), commit.Message)
	if same := pull.Number != 0 && pull.HeadCommit == is.Tip; same && pull.State == forge.StateMerged {
		return nil // the next cycle reads it
	} else if same && pull.State == forge.StateClosed {
		if by, err := l.closedBy(ctx, pull.Number); err != nil || !by.Self {
			return err
		}
		f.before = pull // the forge closed it, late, with a branch that went: see end
	}
	text := title + "\n" + body
	switch {
	case pull.Number == 0 || pull.State != forge.StateOpen:
		if pull, err = l.openPull(ctx, output, is.Branch, title, body); err != nil {
			return err
		}
		f.written, f.when = text, l.Now()
	case f.written != text && l.Now().Sub(f.when) >= updateEvery:
		if err := l.Forge.Update(ctx, pull.Number, forge.Change{Title: title, Body: body}); err != nil {
			return err
		}
		f.written, f.when = text, l.Now()
	}
	f.see(pull)
	f.title = title
	return errors.Join(l.finish(ctx, output, f), l.link(ctx, f), l.merge(ctx, f, is.Tip))
}

// outputIsDone takes back what was proposed of an environment's commits once there is none that its branch does not
// take.
func (m *Manager) outputIsDone(ctx context.Context, e *environment, world rollout.EnvironmentWorld) {
	mayBe := !e.looked && world.Environment.PullRequests.OnProtectedBranch != "" // an earlier run may have left one
	if !e.output && !mayBe || m.Now().Before(m.until) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	l := &look{Manager: m, environment: e, world: world}
	l.tell(ctx, output, l.endOutput(ctx))
}

// endOutput takes back what was proposed of an environment's commits: it is on the branch, or not wanted any more.
func (l *look) endOutput(ctx context.Context) error {
	is, err := l.Branches.ProposedCommit(ctx, l.world.Environment.Name)
	if err != nil {
		return err
	}
	l.output = false
	switch {
	case is.Tip == "":
		return nil
	case is.Theirs:
		return l.freeOutput(ctx, is)
	}
	l.file(output).at = time.Time{} // it may be merged since
	pull, err := l.newest(ctx, l.file(output), is, l.Now().Add(-past))
	if err == nil {
		err = l.end(ctx, l.file(output), ending{is, pull, "There is nothing left to commit."})
	}
	if err == nil {
		err = l.Branches.Withdraw(ctx, is)
	}
	if l.output = err != nil; !l.output {
		delete(l.files, output)
	}
	return err
}
