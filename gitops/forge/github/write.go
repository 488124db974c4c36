package github

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	gh "github.com/google/go-github/v88/github"

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
	made, resp, err := f.api.PullRequests.Create(ctx, f.repo.Owner, f.repo.Name, &gh.NewPullRequest{
		Title: &o.Title, Body: &o.Body, Head: &o.Head, Base: &o.Base, Draft: &o.Draft,
	})
	if err != nil {
		refused := f.fail(call{"open a pull request from " + o.Head, needWrite}, resp, err)
		if status(resp) != http.StatusUnprocessableEntity {
			return forge.PullRequest{}, refused
		}
		return forge.Refused(ctx, f, o, refused)
	}
	pr, err := forge.Once(ctx, f, pullRequest(made, self))
	if err != nil {
		return pr, err
	}
	failed := f.dress(ctx, pr.Number, o)
	if len(o.Labels)+len(o.Reviewers)+len(o.Teams) > 0 {
		now, err := f.pull(ctx, pr.Number)
		if err != nil {
			return pr, &forge.PartialError{Number: pr.Number, Failed: append(failed, err)}
		}
		pr = pullRequest(now, self)
	}
	if len(failed) > 0 {
		return pr, &forge.PartialError{Number: pr.Number, Failed: failed}
	}
	return pr, nil
}

// dress adds labels, and asks for reviews: all at once, or else each by itself, since one that cannot be asked refuses all.
func (f *Forge) dress(ctx context.Context, number int64, o forge.Opening) (failed []error) {
	failed = appendErr(failed, f.label(ctx, number, o.Labels))
	if len(o.Reviewers)+len(o.Teams) == 0 {
		return failed
	}
	err := f.ask(ctx, number, gh.ReviewersRequest{Reviewers: o.Reviewers, TeamReviewers: o.Teams})
	if err == nil || len(o.Reviewers)+len(o.Teams) == 1 {
		return appendErr(failed, err)
	}
	for _, login := range o.Reviewers {
		failed = appendErr(failed, f.ask(ctx, number, gh.ReviewersRequest{Reviewers: []string{login}}))
	}
	for _, team := range o.Teams {
		failed = appendErr(failed, f.ask(ctx, number, gh.ReviewersRequest{TeamReviewers: []string{team}}))
	}
	return failed
}

func (f *Forge) ask(ctx context.Context, number int64, whom gh.ReviewersRequest) error {
	_, resp, err := f.api.PullRequests.RequestReviewers(ctx, f.repo.Owner, f.repo.Name, int(number), whom)
	if err != nil {
		need := needWrite
		if len(whom.TeamReviewers) > 0 {
			need += "; " + needTeams
		}
		return f.fail(call{fmt.Sprintf("ask %s for a review", slices.Concat(whom.Reviewers, whom.TeamReviewers)), need}, resp, err)
	}
	return nil
}

func appendErr(errs []error, err error) []error {
	if err != nil {
		errs = append(errs, err)
	}
	return errs
}

// label adds labels, and makes those that do not exist.
func (f *Forge) label(ctx context.Context, number int64, names []string) error {
	if len(names) == 0 {
		return nil
	}
	for _, name := range names {
		_, resp, err := f.api.Issues.GetLabel(ctx, f.repo.Owner, f.repo.Name, url.PathEscape(name))
		if status(resp) != http.StatusNotFound {
			if err != nil {
				return f.fail(call{fmt.Sprintf("look for the label %q", name), needIssues}, resp, err)
			}
			continue
		}
		_, resp, err = f.api.Issues.CreateLabel(ctx, f.repo.Owner, f.repo.Name, &gh.Label{Name: &name, Color: gh.Ptr(forge.LabelColor)})
		if err != nil && status(resp) != http.StatusUnprocessableEntity { // somebody did at the same moment; what else it may be, the next answer tells
			return f.fail(call{fmt.Sprintf("create the label %q", name), needIssues}, resp, err)
		}
	}
	label := call{fmt.Sprintf("label pull request %d", number), needIssues}
	// The library sends a bare list, which the document that GitHub publishes does not allow.
	req, err := f.api.NewRequest(ctx, http.MethodPost, fmt.Sprintf("repos/%s/%s/issues/%d/labels", f.repo.Owner, f.repo.Name, number),
		map[string][]string{"labels": names})
	if err != nil {
		return f.fail(label, nil, err)
	}
	if resp, err := f.api.Do(req, nil); err != nil {
		return f.fail(label, resp, err)
	}
	return nil
}

// unlabel removes labels that it has. It has a hundred at most.
func (f *Forge) unlabel(ctx context.Context, number int64, names []string) error {
	if len(names) == 0 {
		return nil
	}
	has, resp, err := f.api.Issues.ListLabelsByIssue(ctx, f.repo.Owner, f.repo.Name, int(number), &gh.ListOptions{PerPage: pageSize})
	if err != nil {
		return f.fail(call{fmt.Sprintf("list the labels of pull request %d", number), needIssues}, resp, err)
	}
	for _, l := range has {
		if !slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, l.GetName()) }) {
			continue
		}
		resp, err := f.api.Issues.RemoveLabelForIssue(ctx, f.repo.Owner, f.repo.Name, int(number), url.PathEscape(l.GetName()))
		if err != nil && status(resp) != http.StatusNotFound { // it is gone
			return f.fail(call{fmt.Sprintf("remove the label %q of pull request %d", l.GetName(), number), needIssues}, resp, err)
		}
	}
	return nil
}

// Update implements forge.Forge.
func (f *Forge) Update(ctx context.Context, number int64, c forge.Change) error {
	if err := c.Check(); err != nil {
		return err
	}
	if c.Title != "" || c.Body != "" {
		edit := &gh.PullRequest{}
		if c.Title != "" {
			edit.Title = &c.Title
		}
		if c.Body != "" {
			edit.Body = &c.Body
		}
		if _, resp, err := f.api.PullRequests.Edit(ctx, f.repo.Owner, f.repo.Name, int(number), edit); err != nil {
			return f.fail(call{fmt.Sprintf("change pull request %d", number), needWrite}, resp, err)
		}
	}
	failed := appendErr(nil, f.label(ctx, number, c.Label))
	failed = appendErr(failed, f.unlabel(ctx, number, c.Unlabel))
	if c.Comment != "" {
		_, resp, err := f.api.Issues.CreateComment(ctx, f.repo.Owner, f.repo.Name, int(number), &gh.IssueComment{Body: &c.Comment})
		if err != nil {
			return f.fail(call{fmt.Sprintf("comment on pull request %d", number), needIssues}, resp, err)
		}
	}
	if c.Close {
		if err := f.close(ctx, number); err != nil {
			return err
		}
	}
	if len(failed) > 0 {
		return &forge.PartialError{Number: number, Failed: failed}
	}
	return nil
}

func (f *Forge) close(ctx context.Context, number int64) error {
	what := fmt.Sprintf("close pull request %d", number)
	pr, resp, err := f.api.PullRequests.Edit(ctx, f.repo.Owner, f.repo.Name, int(number), &gh.PullRequest{State: gh.Ptr("closed")})
	if err != nil {
		return f.fail(call{what, needWrite}, resp, err)
	}
	if !pr.GetMergedAt().IsZero() { // GitHub has nothing to say to that
		return &forge.RefusedError{Op: what, Where: f.repo.URL(), Reason: forge.ReasonConflict, Said: "it is merged"}
	}
	return nil
}
