package gitea

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/rampart-gitops/rampart/gitops/forge"
)

// Open implements forge.Forge.
func (f *Forge) Open(ctx context.Context, o forge.Opening) (forge.PullRequest, error) {
	if err := o.Check(); err != nil {
		return forge.PullRequest{}, err
	}
	self, err := f.me(ctx)
	if err != nil {
		return forge.PullRequest{}, err
	}
	client, err := f.sdk(ctx)
	if err != nil {
		return forge.PullRequest{}, err
	}
	title := o.Title
	if o.Draft {
		title = draftMark + " " + title
	}
	made, resp, err := client.CreatePullRequest(f.repo.Owner, f.repo.Name, sdk.CreatePullRequestOption{
		Head: o.Head, Base: o.Base, Title: title, Body: o.Body,
	})
	if err != nil {
		refused := f.fail(call{"open a pull request from " + o.Head, needWrite}, resp, err)
		if resp == nil || resp.StatusCode != http.StatusConflict {
			return forge.PullRequest{}, refused
		}
		return f.standing(ctx, o, refused)
	}
	pr := pullRequest(made, self)
	if first, err := f.earlier(ctx, pr); err != nil || first.Number != 0 {
		return f.withdraw(ctx, pr, first, err)
	}
	failed := f.dress(client, pr.Number, o)
	if len(o.Labels)+len(o.Reviewers)+len(o.Teams) > 0 {
		now, resp, err := client.GetPullRequest(f.repo.Owner, f.repo.Name, pr.Number)
		if err != nil {
			return pr, &forge.PartialError{Number: pr.Number, Failed: append(failed, f.fail(call{"look at it again", needRead}, resp, err))}
		}
		pr = pullRequest(now, self)
		failed = append(failed, f.unasked(now, o, failed)...)
	}
	if len(failed) > 0 {
		return pr, &forge.PartialError{Number: pr.Number, Failed: failed}
	}
	return pr, nil
}

// standing gives the pull request that was there before, as an error too.
func (f *Forge) standing(ctx context.Context, o forge.Opening, refused error) (forge.PullRequest, error) {
	open, err := f.List(ctx, forge.Filter{Head: o.Head, Open: true})
	if err != nil {
		return forge.PullRequest{}, err
	}
	for _, pr := range open {
		if pr.Base == o.Base {
			return pr, &forge.ExistsError{PullRequest: pr}
		}
	}
	return forge.PullRequest{}, refused // it is gone by now
}

// earlier is one that somebody opened at the same moment, a little before this one. Number zero: there is none.
func (f *Forge) earlier(ctx context.Context, pr forge.PullRequest) (forge.PullRequest, error) {
	open, err := f.List(ctx, forge.Filter{Head: pr.Head, Open: true})
	if err != nil {
		return forge.PullRequest{}, err
	}
	for _, other := range slices.Backward(open) { // the oldest first
		if other.Base == pr.Base && other.Number < pr.Number {
			return other, nil
		}
	}
	return forge.PullRequest{}, nil
}

// withdraw closes a pull request that should not have been opened. What could not be looked for is told with the one that stands.
func (f *Forge) withdraw(ctx context.Context, pr, first forge.PullRequest, err error) (forge.PullRequest, error) {
	if err != nil {
		return pr, &forge.PartialError{Number: pr.Number, Failed: []error{fmt.Errorf("look for another one: %w", err)}}
	}
	if err := f.Update(ctx, pr.Number, forge.Change{Close: true}); err != nil {
		return first, errors.Join(&forge.ExistsError{PullRequest: first}, err)
	}
	return first, &forge.ExistsError{PullRequest: first}
}

// dress adds labels, and asks for reviews: all at once, or else each by itself, since one that cannot be asked refuses all.
func (f *Forge) dress(client *sdk.Client, number int64, o forge.Opening) (failed []error) {
	if err := f.label(client, number, o.Labels); err != nil {
		failed = append(failed, err)
	}
	if len(o.Reviewers)+len(o.Teams) == 0 {
		return failed
	}
	ask := func(reviewers, teams []string) error {
		resp, err := client.CreateReviewRequests(f.repo.Owner, f.repo.Name, number, sdk.PullReviewRequestOptions{Reviewers: reviewers, TeamReviewers: teams})
		if err != nil {
			return f.fail(call{fmt.Sprintf("ask %s for a review", slices.Concat(reviewers, teams)), needWrite}, resp, err)
		}
		return nil
	}
	err := ask(o.Reviewers, o.Teams)
	if err == nil || len(o.Reviewers)+len(o.Teams) == 1 {
		return appendErr(failed, err)
	}
	for _, login := range o.Reviewers {
		failed = appendErr(failed, ask([]string{login}, nil))
	}
	for _, team := range o.Teams {
		failed = appendErr(failed, ask(nil, []string{team}))
	}
	return failed
}

func appendErr(errs []error, err error) []error {
	if err != nil {
		errs = append(errs, err)
	}
	return errs
}

// unasked are the teams that Gitea left out without a word. What failed before is not told twice.
func (f *Forge) unasked(pr *sdk.PullRequest, o forge.Opening, before []error) (failed []error) {
	if len(before) > 0 {
		return nil
	}
	for _, team := range o.Teams {
		if !slices.ContainsFunc(pr.RequestedReviewersTeams, func(t *sdk.Team) bool { return t.Name == team }) {
			failed = append(failed, &forge.RefusedError{
				Op: fmt.Sprintf("ask [%s] for a review", team), Where: f.repo.URL(), Reason: forge.ReasonInvalid,
				Need: "only teams of the organization that owns the repository can be asked",
			})
		}
	}
	return failed
}

// Update implements forge.Forge.
func (f *Forge) Update(ctx context.Context, number int64, c forge.Change) error {
	if err := c.Check(); err != nil {
		return err
	}
	client, err := f.sdk(ctx)
	if err != nil {
		return err
	}
	if c.Title != "" || c.Body != "" {
		if err := f.rewrite(client, number, c); err != nil {
			return err
		}
	}
	failed := appendErr(nil, f.label(client, number, c.Label))
	failed = appendErr(failed, f.unlabel(client, number, c.Unlabel))
	if c.Comment != "" {
		_, resp, err := client.CreateIssueComment(f.repo.Owner, f.repo.Name, number, sdk.CreateIssueCommentOption{Body: c.Comment})
		if err != nil {
			return f.fail(call{fmt.Sprintf("comment on pull request %d", number), needIssue}, resp, err)
		}
	}
	if c.Close {
		closed := sdk.StateClosed
		_, resp, err := client.EditPullRequest(f.repo.Owner, f.repo.Name, number, sdk.EditPullRequestOption{State: &closed})
		if err != nil {
			return f.fail(call{fmt.Sprintf("close pull request %d", number), needWrite}, resp, err)
		}
	}
	if len(failed) > 0 {
		return &forge.PartialError{Number: number, Failed: failed}
	}
	return nil
}

// rewrite changes title and body. The mark of a draft stays.
func (f *Forge) rewrite(client *sdk.Client, number int64, c forge.Change) error {
	edit := sdk.EditPullRequestOption{Title: c.Title}
	if c.Body != "" {
		edit.Body = &c.Body
	}
	if c.Title != "" {
		pr, resp, err := client.GetPullRequest(f.repo.Owner, f.repo.Name, number)
		if err != nil {
			return f.fail(call{fmt.Sprintf("get pull request %d", number), needRead}, resp, err)
		}
		if pr.Draft {
			edit.Title = draftMark + " " + c.Title
		}
	}
	if _, resp, err := client.EditPullRequest(f.repo.Owner, f.repo.Name, number, edit); err != nil {
		return f.fail(call{fmt.Sprintf("change pull request %d", number), needWrite}, resp, err)
	}
	return nil
}
