package github

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	gh "github.com/google/go-github/v88/github"

	"github.com/rampart-gitops/rampart/gitops/forge"
)

// Open implements forge.Forge.
func (f *Forge) Open(ctx context.Context, o forge.Opening) (forge.PullRequest, error) {
	return f.steps().Open(ctx, f, o)
}

// Update implements forge.Forge.
func (f *Forge) Update(ctx context.Context, number int64, c forge.Change) error {
	return f.steps().Update(ctx, number, c)
}

func (f *Forge) steps() forge.Steps {
	return forge.Steps{Create: f.create, Ask: f.ask, Look: f.look, Rewrite: f.rewrite, Label: f.label,
		Comment: f.comment, Close: f.close}
}

func (f *Forge) create(ctx context.Context, o forge.Opening) (pr forge.PullRequest, exists bool, err error) {
	made, resp, err := f.api.PullRequests.Create(ctx, f.repo.Owner, f.repo.Name, &gh.NewPullRequest{
		Title: &o.Title, Body: &o.Body, Head: &o.Head, Base: &o.Base,
	})
	if err != nil {
		return pr, status(resp) == http.StatusUnprocessableEntity,
			f.fail(call{"open a pull request from " + o.Head, needWrite}, resp, err)
	}
	return pullRequest(made), false, nil
}

func (f *Forge) look(ctx context.Context, number int64) (forge.PullRequest, error) {
	pr, err := f.pull(ctx, number)
	if err != nil {
		return forge.PullRequest{}, err
	}
	return pullRequest(pr), nil
}

// ask asks for reviews, beside those that were asked for before.
func (f *Forge) ask(ctx context.Context, number int64, whom forge.Reviewers) []error {
	return forge.OneByOne(whom, func(whom forge.Reviewers) error {
		_, resp, err := f.api.PullRequests.RequestReviewers(ctx, f.repo.Owner, f.repo.Name, int(number),
			gh.ReviewersRequest{Reviewers: whom.Logins, TeamReviewers: whom.Teams})
		if err == nil {
			return nil
		}
		need := needWrite
		if len(whom.Teams) > 0 {
			need += "; " + needTeams
		}
		return f.fail(call{fmt.Sprintf("ask %s for a review", slices.Concat(whom.Logins, whom.Teams)), need}, resp, err)
	})
}

// label adds labels, and makes those that do not exist.
func (f *Forge) label(ctx context.Context, number int64, names []string) error {
	for _, name := range names {
		_, resp, err := f.api.Issues.GetLabel(ctx, f.repo.Owner, f.repo.Name, url.PathEscape(name))
		if status(resp) != http.StatusNotFound {
			if err != nil {
				return f.fail(call{fmt.Sprintf("look for the label %q", name), needIssues}, resp, err)
			}
			continue
		}
		_, resp, err = f.api.Issues.CreateLabel(ctx, f.repo.Owner, f.repo.Name,
			&gh.Label{Name: &name, Color: gh.Ptr(forge.LabelColor)})
		// somebody did at the same moment; what else it may be, the next answer tells
		if err != nil && status(resp) != http.StatusUnprocessableEntity {
			return f.fail(call{fmt.Sprintf("create the label %q", name), needIssues}, resp, err)
		}
	}
	label := call{fmt.Sprintf("label pull request %d", number), needIssues}
	// The library sends a bare list, which the document that GitHub publishes does not allow.
	req, err := f.api.NewRequest(ctx, http.MethodPost,
		fmt.Sprintf("repos/%s/%s/issues/%d/labels", f.repo.Owner, f.repo.Name, number),
		map[string][]string{"labels": names})
	if err != nil {
		return f.fail(label, nil, err)
	}
	if resp, err := f.api.Do(req, nil); err != nil {
		return f.fail(label, resp, err)
	}
	return nil
}

func (f *Forge) rewrite(ctx context.Context, number int64, title, body string) error {
	edit := &gh.PullRequest{}
	if title != "" {
		edit.Title = &title
	}
	if body != "" {
		edit.Body = &body
	}
	if _, resp, err := f.api.PullRequests.Edit(ctx, f.repo.Owner, f.repo.Name, int(number), edit); err != nil {
		return f.fail(call{fmt.Sprintf("change pull request %d", number), needWrite}, resp, err)
	}
	return nil
}

func (f *Forge) comment(ctx context.Context, number int64, text string) error {
	_, resp, err := f.api.Issues.CreateComment(ctx, f.repo.Owner, f.repo.Name, int(number),
		&gh.IssueComment{Body: &text})
	if err != nil {
		return f.fail(call{fmt.Sprintf("comment on pull request %d", number), needIssues}, resp, err)
	}
	return nil
}

func (f *Forge) close(ctx context.Context, number int64) error {
	what := fmt.Sprintf("close pull request %d", number)
	pr, resp, err := f.api.PullRequests.Edit(ctx, f.repo.Owner, f.repo.Name, int(number),
		&gh.PullRequest{State: gh.Ptr("closed")})
	if err != nil {
		return f.fail(call{what, needWrite}, resp, err)
	}
	if !pr.GetMergedAt().IsZero() { // GitHub has nothing to say to that
		return &forge.RefusedError{Op: what, Where: f.repo.URL(), Reason: forge.ReasonConflict, Said: "it is merged"}
	}
	return nil
}
