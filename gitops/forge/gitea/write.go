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
	made, resp, err := f.api(ctx).CreatePullRequest(f.repo.Owner, f.repo.Name, sdk.CreatePullRequestOption{
		Head: o.Head, Base: o.Base, Title: o.Title, Body: o.Body,
	})
	if err != nil {
		exists = resp != nil && resp.StatusCode == http.StatusConflict
		return pr, exists, f.fail(call{"open a pull request from " + o.Head, needWrite}, resp, err)
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

// ask asks for reviews, of those who did not review yet.
func (f *Forge) ask(ctx context.Context, number int64, whom forge.Reviewers) []error {
	if whom.Again {
		var err error
		if whom.Logins, err = f.unheard(ctx, number, whom.Logins); err != nil {
			return []error{err}
		}
		if len(whom.Logins)+len(whom.Teams) == 0 {
			return nil
		}
	}
	failed := forge.OneByOne(whom, func(whom forge.Reviewers) error {
		resp, err := f.api(ctx).CreateReviewRequests(f.repo.Owner, f.repo.Name, number,
			sdk.PullReviewRequestOptions{Reviewers: whom.Logins, TeamReviewers: whom.Teams})
		if err != nil {
			return f.fail(call{fmt.Sprintf("ask %s for a review", slices.Concat(whom.Logins, whom.Teams)), needWrite},
				resp, err)
		}
		return nil
	})
	if len(failed) == 0 {
		failed = f.unasked(ctx, number, whom.Teams)
	}
	return failed
}

// unheard are those who did not review a pull request yet. Of who is asked once more, Gitea does not count what they
// said before.
func (f *Forge) unheard(ctx context.Context, number int64, reviewers []string) ([]string, error) {
	said := map[string]bool{}
	err := f.reviews(ctx, number, func(r *sdk.PullReview) {
		if r.Reviewer != nil && r.State != sdk.ReviewStateRequestReview {
			said[r.Reviewer.UserName] = true
		}
	})
	return slices.DeleteFunc(slices.Clone(reviewers), func(login string) bool { return said[login] }), err
}

// unasked are the teams that Gitea left out without a word.
func (f *Forge) unasked(ctx context.Context, number int64, teams []string) (failed []error) {
	if len(teams) == 0 {
		return nil
	}
	pr, err := f.pull(ctx, number)
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

func (f *Forge) comment(ctx context.Context, number int64, text string) error {
	_, resp, err := f.api(ctx).CreateIssueComment(f.repo.Owner, f.repo.Name, number,
		sdk.CreateIssueCommentOption{Body: text})
	if err != nil {
		return f.fail(call{fmt.Sprintf("comment on pull request %d", number), needIssue}, resp, err)
	}
	return nil
}

func (f *Forge) close(ctx context.Context, number int64) error {
	closed := sdk.StateClosed
	what := call{fmt.Sprintf("close pull request %d", number), needWrite}
	_, resp, err := f.api(ctx).EditPullRequest(f.repo.Owner, f.repo.Name, number,
		sdk.EditPullRequestOption{State: &closed})
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
func (f *Forge) rewrite(ctx context.Context, number int64, title, body string) error {
	edit := sdk.EditPullRequestOption{Title: title}
	if body != "" {
		edit.Body = &body
	}
	if title != "" {
		pr, err := f.pull(ctx, number)
		if err != nil {
			return err
		}
		if pr.Draft {
			edit.Title = draftMark + " " + title
		}
	}
	if _, resp, err := f.api(ctx).EditPullRequest(f.repo.Owner, f.repo.Name, number, edit); err != nil {
		return f.fail(call{fmt.Sprintf("change pull request %d", number), needWrite}, resp, err)
	}
	return nil
}
