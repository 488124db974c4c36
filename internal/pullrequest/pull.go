package pullrequest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// back is how long before a proposal its branch's pull requests are looked for. It finds the one that it takes the
// place of, also by another clock. past is how far back something is looked for whose time is unknown.
const (
	back = 24 * time.Hour
	past = 30 * 24 * time.Hour
)

// pull gives the open pull request of a proposal's branch, or the newest one that changed since; its zero value where
// there is none.
func (l *look) pull(ctx context.Context, n rollout.Name, was gitops.Proposed,
	since time.Time) (forge.PullRequest, error) {
	return l.newest(ctx, l.file(n), gitops.Proposed{Branch: rollout.ProposalBranch(l.world.Environment.Name, n),
		Tip: was.Tip}, since)
}

// newest gives the open pull request of a branch, or the newest one that changed since. One that goes to another branch
// than the bot's do is not the bot's, and neither what it says nor what becomes of it means anything.
func (l *look) newest(ctx context.Context, f *file, was gitops.Proposed, since time.Time) (forge.PullRequest, error) {
	if l.LookEvery > 0 && f.seen.Number != 0 && f.seen.State == forge.StateOpen && l.Now().Sub(f.at) < l.LookEvery &&
		f.seen.HeadCommit == was.Tip &&
		f.seen.Base == l.base() {
		return f.seen, nil
	}
	pull, err := l.openOf(ctx, was.Branch)
	if err != nil {
		return pull, err
	}
	if pull.Number == 0 {
		// A forge that cannot look for a branch gives all that there ever were, but for those that did not change
		// since.
		list, err := l.Forge.List(ctx, forge.Filter{Head: was.Branch, Base: l.base(), Since: since})
		if err != nil || len(list) == 0 {
			f.at = l.Now()
			return pull, err
		}
		pull = list[0]
	}
	if pull.HeadCommit == "" && pull.State != forge.StateOpen {
		details, err := l.Forge.Get(ctx, pull.Number)
		if err != nil {
			return pull, err
		}
		pull.HeadCommit = details.HeadCommit
	}
	f.see(pull)
	f.at = l.Now()
	return pull, nil
}

// fewQuestions is how many pull requests are asked for one by one; where there are more, all open ones are.
const fewQuestions = 5

// openOf gives the open pull request of a branch; its zero value where there is none.
func (l *look) openOf(ctx context.Context, branch string) (forge.PullRequest, error) {
	filter := forge.Filter{Base: l.base(), Open: true}
	switch l.questions++; {
	case l.pulls != nil:
		return l.pulls[branch], nil
	case l.questions <= fewQuestions:
		filter.Head = branch
	}
	list, err := l.Forge.List(ctx, filter)
	if err != nil {
		return forge.PullRequest{}, err
	}
	if filter.Head != "" {
		return slices.Concat(list, []forge.PullRequest{{}})[0], nil
	}
	l.pulls = map[string]forge.PullRequest{}
	for _, pull := range slices.Backward(list) { // the newest of a branch counts
		l.pulls[pull.Head] = pull
	}
	return l.pulls[branch], nil
}

// link leads from a pull request that the bot closed itself to the one that took its place.
func (l *look) link(ctx context.Context, f *file) error {
	before, now := f.before, f.seen
	if before.Number == 0 {
		return nil
	}
	ours := before.Number != now.Number && before.State != forge.StateMerged
	if ours && before.State == forge.StateClosed {
		by, err := l.closedBy(ctx, before.Number)
		if err != nil {
			return err
		}
		ours = by.Self
	}
	if ours {
		if err := l.Forge.Update(ctx, before.Number, forge.Change{Comment: "Superseded by " + now.URL}); err != nil {
			return err
		}
	}
	f.before = forge.PullRequest{}
	return nil
}

func (l *look) closedBy(ctx context.Context, number int64) (forge.Person, error) {
	details, err := l.Forge.Get(ctx, number)
	return details.ClosedBy, err
}

// base is the branch that pull requests of an environment go to.
func (l *look) base() string { return cmp.Or(l.world.Environment.Output.Branch, l.Base) }

func (l *look) openPull(ctx context.Context, n rollout.Name, head, title, body string) (forge.PullRequest, error) {
	env := l.world.Environment
	pull, err := l.Forge.Open(ctx, forge.Opening{Title: title, Body: body, Head: head, Base: l.base(),
		Labels: env.PullRequests.Labels, Reviewers: env.PullRequests.Reviewers, Teams: env.PullRequests.Teams})
	var exists *forge.ExistsError
	var partial *forge.PartialError
	switch {
	case errors.As(err, &exists):
		return exists.PullRequest, nil
	case errors.As(err, &partial):
		l.tell(ctx, n, err)
	case err != nil:
		return pull, err
	}
	f := l.file(n)
	f.see(pull)
	f.ordered = nothing
	if !forge.Later(err) {
		f.finished = pull.Number
	}
	l.Log.InfoContext(ctx, "proposed", "deployment", n.String(), "pullRequest", pull.URL, "title", title)
	return pull, nil
}

// finish asks for reviews and sets labels where that was cut off when the pull request was opened. A run ended then, or
// the forge was away. Labels are what is set last, so without any there is nothing to tell it by.
func (l *look) finish(ctx context.Context, n rollout.Name, f *file) error {
	pull, asked := f.seen, l.world.Environment.PullRequests
	if pull.Number == 0 || pull.State != forge.StateOpen || f.finished == pull.Number {
		return nil
	}
	if !labeled(pull, asked.Labels) {
		details, err := l.Forge.Get(ctx, pull.Number)
		if err != nil {
			return err
		}
		approved := func(login string) bool { // who is asked once more may have to approve once more
			return slices.ContainsFunc(details.Approvals, func(a forge.Approval) bool { return a.By.Login == login })
		}
		err = l.Forge.Update(ctx, pull.Number, forge.Change{Reviewers: slices.DeleteFunc(slices.Clone(asked.Reviewers),
			approved), Teams: asked.Teams, Label: asked.Labels})
		if forge.Later(err) {
			return err
		}
		l.tell(ctx, n, err) // what else it is stays so: it is not tried again
	}
	f.finished = pull.Number
	return nil
}

// labeled reports whether a pull request has all of some labels. Some forges know them by names in which case does not
// count.
func labeled(pull forge.PullRequest, labels []string) bool {
	return !slices.ContainsFunc(labels, func(label string) bool {
		return !slices.ContainsFunc(pull.Labels, func(is string) bool { return strings.EqualFold(is, label) })
	})
}

// merged reports whether a branch was merged as it is.
func merged(was gitops.Proposed, pull forge.PullRequest) bool {
	return pull.State == forge.StateMerged && pull.HeadCommit == was.Tip
}

// over is a branch as it is for the next proposal. One with commits of others is the bot's again once they were merged,
// or a person closed the pull request that keeps them.
func (l *look) over(ctx context.Context, was gitops.Proposed, pull forge.PullRequest) (gitops.Proposed, error) {
	switch {
	case !was.Theirs:
	case merged(was, pull):
		was.Theirs = false
	case pull.State == forge.StateClosed && pull.HeadCommit == was.Tip:
		by, err := l.closedBy(ctx, pull.Number)
		if err != nil {
			return was, err
		}
		was.Theirs = by.Self
	}
	return was, nil
}

// because gives the reason of where a worker deployment stands: one of a few words of our own, no text of others.
func because(status *v1alpha1.WorkerDeploymentStatus) string {
	if status == nil || len(status.Conditions) == 0 {
		return ""
	}
	return " The worker deployment is at: " + status.Conditions[0].Reason + "."
}
