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
	steps, err := f.steps(ctx)
	if err != nil {
		return forge.PullRequest{}, err
	}
	return steps.Open(ctx, f, o)
}

// Update implements forge.Forge.
func (f *Forge) Update(ctx context.Context, number int64, c forge.Change) error {
	steps, err := f.steps(ctx)
	if err != nil {
		return err
	}
	return steps.Update(number, c)
}

func (f *Forge) steps(ctx context.Context) (forge.Steps, error) {
	client, err := f.sdk(ctx)
	if err != nil {
		return forge.Steps{}, err
	}
	return forge.Steps{
		Create: func(o forge.Opening) (forge.PullRequest, bool, error) { return f.create(client, o) },
		Ask: func(number int64, reviewers, teams []string, again bool) []error {
			if again {
				var err error
				if reviewers, err = f.unheard(client, number, reviewers); err != nil || len(reviewers)+len(teams) == 0 {
					if err != nil {
						return []error{err}
					}
					return nil
				}
			}
			failed := forge.OneByOne(reviewers, teams, func(reviewers, teams []string) error {
				return f.askFor(client, number, reviewers, teams)
			})
			if len(failed) == 0 {
				failed = f.unasked(client, number, teams)
			}
			return failed
		},
		Look:    func(number int64) (forge.PullRequest, error) { return f.look(client, number) },
		Rewrite: func(number int64, title, body string) error { return f.rewrite(client, number, title, body) },
		Label:   func(number int64, names []string) error { return f.label(client, number, names) },
		Comment: func(number int64, text string) error { return f.comment(client, number, text) },
		Close:   func(number int64) error { return f.close(client, number) },
	}, nil
}

func (f *Forge) create(client *sdk.Client, o forge.Opening) (pr forge.PullRequest, exists bool, err error) {
	made, resp, err := client.CreatePullRequest(f.repo.Owner, f.repo.Name, sdk.CreatePullRequestOption{
		Head: o.Head, Base: o.Base, Title: o.Title, Body: o.Body,
	})
	if err != nil {
		exists = resp != nil && resp.StatusCode == http.StatusConflict
		return pr, exists, f.fail(call{"open a pull request from " + o.Head, needWrite}, resp, err)
	}
	return pullRequest(made), false, nil
}

func (f *Forge) look(client *sdk.Client, number int64) (forge.PullRequest, error) {
	pr, err := f.pull(client, number)
	if err != nil {
		return forge.PullRequest{}, err
	}
	return pullRequest(pr), nil
}

// unheard are those who did not review a pull request yet. Of who is asked once more, Gitea does not count what they
// said before.
func (f *Forge) unheard(client *sdk.Client, number int64, reviewers []string) ([]string, error) {
	said := map[string]bool{}
	err := f.reviews(client, number, func(r *sdk.PullReview) {
		if r.Reviewer != nil && r.State != sdk.ReviewStateRequestReview {
			said[r.Reviewer.UserName] = true
		}
	})
	return slices.DeleteFunc(slices.Clone(reviewers), func(login string) bool { return said[login] }), err
}

func (f *Forge) askFor(client *sdk.Client, number int64, reviewers, teams []string) error {
	resp, err := client.CreateReviewRequests(f.repo.Owner, f.repo.Name, number,
		sdk.PullReviewRequestOptions{Reviewers: reviewers, TeamReviewers: teams})
	if err != nil {
		return f.fail(call{fmt.Sprintf("ask %s for a review", slices.Concat(reviewers, teams)), needWrite}, resp, err)
	}
	return nil
}

// unasked are the teams that Gitea left out without a word.
func (f *Forge) unasked(client *sdk.Client, number int64, teams []string) (failed []error) {
	if len(teams) == 0 {
		return nil
	}
	pr, err := f.pull(client, number)
	if err != nil {
		return []error{err}
	}
	for _, team := range teams {
		if !slices.ContainsFunc(pr.RequestedReviewersTeams, func(t *sdk.Team) bool { return t.Name == team }) {
			failed = append(failed, &forge.RefusedError{
				Op: fmt.Sprintf("ask [%s] for a review", team), Where: f.repo.URL(), Reason: forge.ReasonInvalid,
				Need: "only teams of the organization that owns the repository can be asked",
			})
		}
	}
	return failed
}

func (f *Forge) comment(client *sdk.Client, number int64, text string) error {
	_, resp, err := client.CreateIssueComment(f.repo.Owner, f.repo.Name, number,
		sdk.CreateIssueCommentOption{Body: text})
	if err != nil {
		return f.fail(call{fmt.Sprintf("comment on pull request %d", number), needIssue}, resp, err)
	}
	return nil
}

func (f *Forge) close(client *sdk.Client, number int64) error {
	closed := sdk.StateClosed
	what := call{fmt.Sprintf("close pull request %d", number), needWrite}
	_, resp, err := client.EditPullRequest(f.repo.Owner, f.repo.Name, number, sdk.EditPullRequestOption{State: &closed})
	if err == nil {
		return nil
	}
	refused := f.fail(what, resp, err)
	var e *forge.RefusedError
	if resp != nil && resp.StatusCode == http.StatusPreconditionFailed && errors.As(refused, &e) {
		e.Reason = forge.ReasonConflict // it is merged
	}
	return refused
}

// rewrite changes title and body. The mark of a draft stays.
func (f *Forge) rewrite(client *sdk.Client, number int64, title, body string) error {
	edit := sdk.EditPullRequestOption{Title: title}
	if body != "" {
		edit.Body = &body
	}
	if title != "" {
		pr, err := f.pull(client, number)
		if err != nil {
			return err
		}
		if pr.Draft {
			edit.Title = draftMark + " " + title
		}
	}
	if _, resp, err := client.EditPullRequest(f.repo.Owner, f.repo.Name, number, edit); err != nil {
		return f.fail(call{fmt.Sprintf("change pull request %d", number), needWrite}, resp, err)
	}
	return nil
}
