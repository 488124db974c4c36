package gitops

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/git"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/gitops/tree"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// proposalBranches begin the names of all branches of proposals, and outputBranches those of commits that are proposed.
const (
	proposalBranches = rollout.ProposalBranches
	outputBranches   = "rampart-output/"
)

const lockSuffix = ".lock"

// PullRequestBranches begin the names of all branches that the bot has pull requests of.
func PullRequestBranches() []string { return []string{proposalBranches, outputBranches} }

// The trailers by which a proposal's commit is known again. They say nothing of what may be done: who forges them has
// the bot write over what they wrote.
const (
	trailerProposal = "Rampart-Proposal: "
	trailerSeal     = "Rampart-Seal: "
)

// OutputBranch is where an environment's commits are put that the output's branch does not take.
func OutputBranch(environment string) string { return outputBranches + environment }

// Proposal is one commit on a branch of its own: the record as it is on the output's branch, asking for more.
type Proposal struct {
	Environment v1alpha1.Environment
	Deployment  rollout.Name
	// ID stays the same for as long as the same is proposed.
	ID string
	// Dir of the record.
	Dir string
	// Message of the commit, without trailers.
	Message string
	// Edit makes of routing.yaml, as it is, what is proposed.
	Edit func(routing []byte) ([]byte, error)
	// Same reports whether two of routing.yaml that are not the same differ in nothing that is worth another commit.
	Same func(was, is []byte) bool
}

// Proposed is a proposal's branch on the server.
type Proposed struct {
	Branch string
	// Tip is its last commit, as a hash in hexadecimal.
	Tip string
	// Theirs says that the branch has commits that the bot did not make, and that no branch that was read is known to
	// have merged.
	Theirs bool
	// ID of the proposal, where its commit says that it is the bot's. Whether it is, Propose and ProposeCommit find
	// out.
	ID string
	// At is when its last commit was made, as that says.
	At time.Time

	tip, parent git.Hash
}

// Proposals are the branches of an environment's proposals that are on the server, by worker deployment.
// Errors: those of git.Mirror.Fetch.
func (r *Repository) Proposals(ctx context.Context, environment string) (map[rollout.Name]Proposed, error) {
	prefix := proposalBranches + environment + "/"
	tips, err := r.mirror.Branches(ctx, prefix)
	if err != nil {
		return nil, err
	}
	out := map[rollout.Name]Proposed{}
	for branch, hash := range tips {
		namespace, name, ok := strings.Cut(strings.TrimPrefix(branch, prefix), "/")
		if !ok || strings.Contains(name, "/") {
			continue // a person's
		}
		p, err := r.proposedAt(ctx, branch, hash)
		if err != nil {
			return nil, err
		}
		if strings.HasSuffix(name, lockSuffix+"-") {
			name = strings.TrimSuffix(name, "-")
		}
		out[rollout.Name{Namespace: namespace, Name: name}] = p
	}
	return out, nil
}

// proposedAt reads a proposal's branch.
func (r *Repository) proposedAt(ctx context.Context, branch string, hash git.Hash) (Proposed, error) {
	p := Proposed{Branch: branch, Tip: hash.String(), Theirs: true, tip: hash}
	c, err := r.mirror.Commit(hash)
	if _, ok := errors.AsType[*git.MissingObjectError](err); ok {
		var tip git.Tip
		if tip, err = r.mirror.Fetch(ctx, branch); err != nil {
			return p, err
		}
		p.tip, p.Tip = tip.Commit, tip.Commit.String()
		c, err = r.mirror.Commit(tip.Commit)
	}
	if err != nil {
		return p, err
	}
	p.At = c.Committer.When.UTC()
	id := trailer(c.Message, trailerProposal)
	if len(c.Parents) == 1 && id != "" && trailer(c.Message, trailerSeal) == seal(id, c.Tree, c.Parents[0]) {
		p.Theirs, p.ID, p.parent = false, id, c.Parents[0]
		return p, nil
	}
	p.Theirs = !r.merged(p.tip)
	return p, nil
}

// mostBack is how many commits of a branch are looked through for one that was merged. farBack is how many are
// looked through for one that a proposal was made from.
const (
	mostBack = 200
	farBack  = 10_000
)

// merged reports whether a commit is in a branch that was read, as far back as the mirror has it. What a squash made of
// it is another one.
func (r *Repository) merged(commit git.Hash) bool {
	for _, tip := range r.lastTips {
		if r.ancestors(tip.Commit, mostBack)[commit] {
			return true
		}
	}
	return false
}

// ancestors are a commit and those before it, as far back as the mirror has them, up to a number of them.
func (r *Repository) ancestors(of git.Hash, most int) map[git.Hash]bool {
	seen := map[git.Hash]bool{}
	for next := []git.Hash{of}; len(next) > 0 && len(seen) < most; next = next[1:] {
		if c, err := r.mirror.Commit(next[0]); err == nil && !seen[next[0]] {
			seen[next[0]] = true
			next = append(next, c.Parents...)
		}
	}
	return seen
}

// history is what a branch's tip was made of. It is asked for many proposals in a row, after a start.
type history struct {
	of      git.Hash
	commits map[git.Hash]bool
}

func (r *Repository) inHistory(commit, tip git.Hash) bool {
	if r.history.of != tip {
		r.history = history{tip, r.ancestors(tip, farBack)}
	}
	return r.history.commits[commit]
}

// seal ties a proposal to what its commit holds: another commit on top of it, or in its place, is somebody else's.
// Anybody can make one, so it only tells what the bot may write over.
func seal(id string, tree, parent git.Hash) string {
	sum := sha256.Sum256([]byte(id + "\n" + tree.String() + "\n" + parent.String()))
	return hex.EncodeToString(sum[:16])
}

func trailer(message, key string) string {
	for line := range strings.Lines(message) {
		if value, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), key); ok {
			return value
		}
	}
	return ""
}

// Propose brings a proposal's branch up to date, and gives its tip. was is the branch as it is, its zero value where
// there is none. It writes only where something is another: what is proposed, the record that it was made from, or what
// the branch holds, whatever its commit says of itself. Errors: rollout.ErrMoved when the branch is not what it was;
// those of Commit.
func (r *Repository) Propose(ctx context.Context, p Proposal, was Proposed) (tip string, err error) {
	if was.Theirs {
		return "", fmt.Errorf("%s has commits of others, and is left alone", was.Branch)
	}
	base, err := r.mirror.Fetch(ctx, r.outputBranch(p.Environment))
	if err != nil {
		return "", err
	}
	file := path.Join(p.Dir, layout.Routing)
	record, there, err := r.mirror.Lookup(base.Tree, file)
	if err != nil {
		return "", err
	}
	if !there {
		return "", branchMoved(base.Branch, fmt.Errorf("%s is gone", file))
	}
	request := git.CommitRequest{Branch: rollout.ProposalBranch(p.Environment.Name, p.Deployment), Parent: base.Commit,
		Expected: &was.tip, Message: p.Message}
	if was.ID == p.ID {
		switch before, err := r.sameRecord(ctx, p, was, file, record.Hash); {
		case err != nil:
			return "", err
		case before.IsZero():
		case r.own(was, base.Branch):
			return was.Tip, nil
		case r.inHistory(was.parent, base.Commit):
			if request.Changes, err = r.proposalChanges(ctx, p, file, before); err != nil {
				return "", err
			}
			holds, err := r.holds(ctx, was, request)
			if err != nil {
				return "", err
			}
			if holds {
				r.made[was.Branch] = made{was.tip, base.Branch}
				return was.Tip, nil
			}
			r.cfg.Log.WarnContext(ctx, "proposal is written over", "branch", was.Branch, "commit", was.Tip, "why",
				"it says that it is the bot's, and holds something else")
		}
	}
	if request.Changes, err = r.proposalChanges(ctx, p, file, record.Hash); err != nil {
		return "", err
	}
	return r.pushProposal(ctx, request, p.ID, base.Branch)
}

// proposalChanges are what a proposal makes of a record.
func (r *Repository) proposalChanges(ctx context.Context, p Proposal, file string,
	record git.Hash) ([]git.Change, error) {
	data, err := r.readBlob(ctx, file, record)
	if err != nil {
		return nil, err
	}
	if data, err = p.Edit(data); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return []git.Change{{Path: file, Data: data}}, nil
}

func (r *Repository) readBlob(ctx context.Context, file string, blob git.Hash) ([]byte, error) {
	return tree.Commit{Ctx: ctx, Mirror: r.mirror}.Read(file, blob.String())
}

// made is what a proposal's branch is known to hold: what the bot put there, on top of another branch, and nothing
// else.
type made struct {
	tip git.Hash
	on  string
}

func (r *Repository) own(was Proposed, on string) bool {
	return r.made[was.Branch] == made{was.tip, on}
}

// holds reports whether a proposal's commit holds what is to be committed, on its own parent. If so it counts as
// the bot's, no matter who made it.
func (r *Repository) holds(ctx context.Context, was Proposed, request git.CommitRequest) (bool, error) {
	c, err := r.mirror.Commit(was.tip)
	if err != nil {
		return false, err
	}
	request.Parent, request.Author, request.Committer = was.parent, r.signature(), r.signature()
	staged, err := r.mirror.Stage(request)
	if err != nil {
		return false, fmt.Errorf("stage commit for %s: %w", request.Branch, err)
	}
	return staged.Tree == c.Tree, nil
}

// outputID is the ID of all that is put on an OutputBranch.
const outputID = "output"

// Fingerprint is what a file says that is worth another commit while one waits.
type Fingerprint func(file, data string) string

// ProposeCommit puts a commit on a branch of its own that the output's branch does not take, in place of what was
// there. It writes only where the fingerprint of its content or what it goes on top of is another: who reviews it, or
// tests it, is not sent back to the start by a clock. One with commits of others is left alone: Theirs. Errors: those
// of Commit.
func (r *Repository) ProposeCommit(ctx context.Context, req rollout.Commit, fingerprint Fingerprint) (Proposed, error) {
	was, err := r.ProposedCommit(ctx, req.Environment.Name)
	if err != nil || was.Theirs {
		return was, err
	}
	on := r.outputBranch(req.Environment)
	changes, err := r.changes(ctx, r.lastTips[on], req.Environment.Output.Path, req.Changes)
	if err != nil {
		return was, err
	}
	byPeople := req.Environment.PullRequests.AutoMerge == "" // who look at what they merge
	if r.own(was, on) || byPeople && !was.tip.IsZero() {
		if err := r.keepProposed(ctx, changes, was, fingerprint); err != nil {
			return was, err
		}
	}
	request := git.CommitRequest{Branch: OutputBranch(req.Environment.Name), Parent: plumbing.NewHash(req.Base),
		Expected: &was.tip, Changes: changes, Message: req.Message}
	if was.ID == outputID && was.parent == request.Parent {
		if same, err := r.holds(ctx, was, request); err != nil || same {
			return was, err
		}
	}
	tip, err := r.pushProposal(ctx, request, outputID, on)
	if err != nil {
		return was, err
	}
	return r.proposedAt(ctx, request.Branch, plumbing.NewHash(tip))
}

// keepProposed gives files their content as it is proposed already, where that has the same fingerprint. That leaves
// out times, which decide when the next step is: of a commit that anybody may have made, it is not for what is merged
// by itself.
func (r *Repository) keepProposed(ctx context.Context, changes []git.Change, was Proposed,
	fingerprint Fingerprint) error {
	c, err := r.mirror.Commit(was.tip)
	if err != nil {
		return err
	}
	proposed := map[int]git.Hash{}
	for i, change := range changes {
		if change.Data == nil {
			continue
		}
		is, ok, err := r.mirror.Lookup(c.Tree, change.Path)
		if err != nil {
			return err
		}
		if ok && is.Mode.IsFile() {
			proposed[i] = is.Hash
		}
	}
	if err := r.mirror.Bring(ctx, slices.Collect(maps.Values(proposed))); err != nil {
		return err
	}
	for i, hash := range proposed {
		if data, err := r.mirror.Blob(hash, tree.MaxFileSize); err == nil &&
			fingerprint(changes[i].Path, string(data)) == fingerprint(changes[i].Path, string(changes[i].Data)) {
			changes[i].Data = data
		}
	}
	return nil
}

// ProposedCommit is the branch that ProposeCommit writes to, as it is on the server; its zero value, with Branch, where
// there is none. Errors: those of git.Mirror.Fetch.
func (r *Repository) ProposedCommit(ctx context.Context, environment string) (Proposed, error) {
	branch := OutputBranch(environment)
	tips, err := r.mirror.Branches(ctx, branch)
	if err != nil {
		return Proposed{}, err
	}
	if hash, ok := tips[branch]; ok {
		return r.proposedAt(ctx, branch, hash)
	}
	return Proposed{Branch: branch}, nil
}

// pushProposal seals, signs and pushes a proposal's commit, on top of another branch.
func (r *Repository) pushProposal(ctx context.Context, request git.CommitRequest, id, on string) (string, error) {
	request.Author, request.Committer = r.signature(), r.signature()
	staged, err := r.mirror.Stage(request) // its tree goes into the seal
	if err != nil {
		return "", fmt.Errorf("stage commit for %s: %w", request.Branch, err)
	}
	// Not marked to start no CI: what it is reviewed for, and merged by itself after, would wait for checks that never
	// come.
	request.Message = fmt.Sprintf("%s\n\n%s%s\n%s%s\n", strings.TrimRight(request.Message, "\n"), trailerProposal, id,
		trailerSeal, seal(id, staged.Tree, request.Parent))
	if r.cfg.SigningKey != nil {
		request.Sign = r.cfg.SigningKey.Sign
	}
	if staged, err = r.mirror.Stage(request); err != nil {
		return "", fmt.Errorf("stage commit for %s: %w", request.Branch, err)
	}
	hash, err := r.push(ctx, staged)
	if err == nil {
		r.made[request.Branch] = made{staged.Commit, on}
	}
	return hash, err
}

// sameRecord gives the record that a proposal was made from, if that is still the same as far as it matters; else the
// zero hash.
func (r *Repository) sameRecord(ctx context.Context, p Proposal, was Proposed, file string,
	record git.Hash) (before git.Hash, err error) {
	c, err := r.mirror.Commit(was.parent)
	if err != nil {
		return before, nil //nolint:nilerr // a mirror that was made anew does not have it
	}
	e, ok, err := r.mirror.Lookup(c.Tree, file)
	if err != nil || !ok || e.Hash == record {
		return e.Hash, err
	}
	old, err := r.readBlob(ctx, file, e.Hash)
	if err != nil {
		return before, nil //nolint:nilerr // nor does a server have what was rewritten
	}
	is, err := r.readBlob(ctx, file, record)
	if err != nil || !p.Same(old, is) {
		return before, err
	}
	return e.Hash, nil
}

// Withdraw deletes a proposal's branch that is still as it was. One with commits of others is left alone.
// Errors: rollout.ErrMoved when it is not what it was; those of git.Mirror.Delete.
func (r *Repository) Withdraw(ctx context.Context, was Proposed) error {
	if was.Theirs || was.Branch == "" {
		return nil
	}
	r.write(Before)
	err := r.mirror.Delete(ctx, was.Branch, was.tip)
	r.write(After)
	if _, ok := errors.AsType[*git.MovedError](err); ok {
		return branchMoved(was.Branch, err)
	}
	if err == nil {
		delete(r.made, was.Branch)
	}
	return err
}
