package reconcile

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/render"
)

// refusedFor is how long a commit that a protected branch refused is not pushed to it again. The bot is not told when a
// protection ends.
const refusedFor = 10 * time.Minute

// refusal is a commit that a protected branch refused. One that says something else, the same on top of another base,
// and the same after a change of the environment's settings are tried: a protection may be of some files only.
type refusal struct {
	commit [sha256.Size]byte
	until  time.Time
}

// push pushes a commit, unless a protected branch refused the same a short while ago.
func (r *Reconciler) push(ctx context.Context, commit rollout.Commit, report *Report) (hash string, err error) {
	env := commit.Environment.Name
	push := func() { hash, err = r.Committer.Commit(ctx, commit) }
	if !r.proposes(commit.Environment) {
		delete(r.refused, env)
		r.patiently(ctx, report, push)
		return hash, err
	}
	id, err := identityOf(commit)
	if err != nil {
		return "", err
	}
	if was, ok := r.refused[env]; ok && was.commit == id && r.Now().Before(was.until) {
		return "", fmt.Errorf("refused a short while ago: %w", rollout.ErrProtected)
	}
	r.patiently(ctx, report, push)
	switch {
	case err == nil:
		delete(r.refused, env)
	case errors.Is(err, rollout.ErrProtected):
		if r.refused == nil {
			r.refused = map[string]refusal{}
		}
		r.refused[env] = refusal{id, r.Now().Add(refusedFor)}
	} // any other error says nothing of the branch: what it refused stays refused
	return hash, err
}

// proposes reports whether a commit that its branch does not take is proposed.
func (r *Reconciler) proposes(env v1alpha1.Environment) bool {
	return r.Proposer != nil && env.PullRequests.OnProtectedBranch != ""
}

// identityOf stands for a commit but for its message and for when it was made.
func identityOf(commit rollout.Commit) ([sha256.Size]byte, error) {
	commit.Message, commit.Parts, commit.Changes = "", nil, slices.Clone(commit.Changes)
	for i, c := range commit.Changes {
		commit.Changes[i].Data = render.Fingerprint(c.Path, c.Data)
	}
	b, err := json.Marshal(commit)
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("identify the commit for %s: %w", commit.Environment.Name, err)
	}
	return sha256.Sum256(b), nil
}

// errProposed is what a commit ends with that was proposed in place of pushed: what is in it waits until it is merged.
var errProposed = errors.New("the commit was proposed")

// proposeInstead proposes a commit that its protected branch refused, where the environment asks for that. It gives
// errProposed then, else what the branch said.
func (r *Reconciler) proposeInstead(ctx context.Context, commit rollout.Commit, refused error) error {
	if !r.proposes(commit.Environment) || !errors.Is(refused, rollout.ErrProtected) {
		return refused
	}
	if err := r.Proposer.ProposeCommit(ctx, commit); err != nil {
		return errors.Join(refused, err)
	}
	return errProposed
}
