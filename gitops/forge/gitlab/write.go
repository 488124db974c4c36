package gitlab

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

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
	id, err := f.id(ctx)
	if err != nil {
		return pr, false, err
	}
	made, resp, err := f.api.MergeRequests.CreateMergeRequest(id, &gl.CreateMergeRequestOptions{
		Title: &o.Title, Description: gl.Ptr(inert(o.Body)), SourceBranch: &o.Head, TargetBranch: &o.Base,
	}, gl.WithContext(ctx))
	if err != nil {
		return pr, status(resp) == http.StatusConflict, f.fail(call{"open a merge request from " + o.Head, needWrite},
			resp, err)
	}
	return pullRequest(&made.BasicMergeRequest), false, nil
}

func (f *Forge) look(ctx context.Context, number int64) (forge.PullRequest, error) {
	mr, err := f.mergeRequest(ctx, number)
	if err != nil {
		return forge.PullRequest{}, err
	}
	return pullRequest(&mr.BasicMergeRequest), nil
}

// ask asks people for a review. A group cannot be asked.
func (f *Forge) ask(ctx context.Context, number int64, whom forge.Reviewers) (failed []error) {
	failed = f.review(ctx, number, whom)
	for _, team := range whom.Teams {
		failed = append(failed, fmt.Errorf("ask [%s] for a review: %w", team, &forge.UnsupportedError{
			Forge: forge.KindGitLab, What: "review by a group",
			Need: "name its people, or let an approval rule or CODEOWNERS name it",
		}))
	}
	return failed
}

// review asks people for a review, beside those who were asked before, and looks who was.
func (f *Forge) review(ctx context.Context, number int64, whom forge.Reviewers) (failed []error) {
	var ids []int64
	var known []string
	for _, login := range whom.Logins {
		users, resp, err := f.api.Users.ListUsers(&gl.ListUsersOptions{Username: &login}, gl.WithContext(ctx))
		if err == nil && len(users) == 0 {
			failed = append(failed, &forge.RefusedError{
				Op: asking(login), Where: f.repo.URL(), Reason: forge.ReasonInvalid, Said: "there is no such user",
			})
			continue
		}
		if err != nil {
			failed = append(failed, f.fail(call{asking(login), needRead}, resp, err))
			continue
		}
		ids, known = append(ids, users[0].ID), append(known, login)
	}
	if len(ids) == 0 {
		return failed
	}
	var all []int64
	if whom.Again {
		mr, err := f.mergeRequest(ctx, number)
		if err != nil {
			return append(failed, err)
		}
		for _, asked := range mr.Reviewers {
			all = append(all, asked.ID)
		}
	}
	for _, id := range ids {
		if !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	id, err := f.id(ctx)
	if err != nil {
		return append(failed, err)
	}
	mr, resp, err := f.api.MergeRequests.UpdateMergeRequest(id, number,
		&gl.UpdateMergeRequestOptions{ReviewerIDs: &all}, gl.WithContext(ctx))
	if err != nil {
		return append(failed, f.fail(call{asking(strings.Join(known, " ")), needWrite}, resp, err))
	}
	for i, id := range ids {
		if !slices.ContainsFunc(mr.Reviewers, func(u *gl.BasicUser) bool { return u.ID == id }) {
			failed = append(failed, &forge.RefusedError{
				Op: asking(known[i]), Where: f.repo.URL(), Reason: forge.ReasonInvalid,
				Need: "a reviewer has to be a member of the project, and free editions take only one",
			})
		}
	}
	return failed
}

func asking(login string) string { return fmt.Sprintf("ask [%s] for a review", login) }

// label adds labels, and makes those that do not exist.
func (f *Forge) label(ctx context.Context, number int64, names []string) error {
	for _, name := range names {
		if strings.Contains(name, ",") {
			return &forge.RefusedError{
				Op: fmt.Sprintf("label merge request %d", number), Where: f.repo.URL(), Reason: forge.ReasonInvalid,
				Said: fmt.Sprintf("%q: a label has no comma on GitLab", name),
			}
		}
	}
	id, err := f.id(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := f.createLabel(ctx, id, name); err != nil {
			return err
		}
	}
	options := &gl.UpdateMergeRequestOptions{AddLabels: (*gl.LabelOptions)(&names)}
	if _, resp, err := f.api.MergeRequests.UpdateMergeRequest(id, number, options, gl.WithContext(ctx)); err != nil {
		return f.fail(call{fmt.Sprintf("label merge request %d", number), needWrite}, resp, err)
	}
	return nil
}

// createLabel makes a label if neither the project nor its groups have one.
func (f *Forge) createLabel(ctx context.Context, id int64, name string) error {
	_, resp, err := f.api.Labels.GetLabel(id, name, gl.WithContext(ctx))
	if err == nil {
		return nil
	}
	if status(resp) != http.StatusNotFound {
		return f.fail(call{fmt.Sprintf("look for the label %q", name), needRead}, resp, err)
	}
	_, resp, err = f.api.Labels.CreateLabel(id,
		&gl.CreateLabelOptions{Name: &name, Color: gl.Ptr("#" + forge.LabelColor)}, gl.WithContext(ctx))
	if err != nil && status(resp) != http.StatusConflict { // somebody did at the same moment
		return f.fail(call{fmt.Sprintf("create the label %q", name), needRead}, resp, err)
	}
	return nil
}

func (f *Forge) comment(ctx context.Context, number int64, text string) error {
	id, err := f.id(ctx)
	if err != nil {
		return err
	}
	_, resp, err := f.api.Notes.CreateMergeRequestNote(id, number,
		&gl.CreateMergeRequestNoteOptions{Body: gl.Ptr(inert(text))}, gl.WithContext(ctx))
	if err != nil {
		return f.fail(call{fmt.Sprintf("comment on merge request %d", number), needRead}, resp, err)
	}
	return nil
}

func (f *Forge) close(ctx context.Context, number int64) error {
	what := fmt.Sprintf("close merge request %d", number)
	id, err := f.id(ctx)
	if err != nil {
		return err
	}
	mr, resp, err := f.api.MergeRequests.UpdateMergeRequest(id, number,
		&gl.UpdateMergeRequestOptions{StateEvent: gl.Ptr("close")}, gl.WithContext(ctx))
	if err != nil {
		return f.fail(call{what, needWrite}, resp, err)
	}
	if mr.State == "merged" { // GitLab has nothing to say to that
		return &forge.RefusedError{Op: what, Where: f.repo.URL(), Reason: forge.ReasonConflict, Said: "it is merged"}
	}
	return nil
}

// rewrite changes title and body. The mark of a draft stays.
func (f *Forge) rewrite(ctx context.Context, number int64, words, body string) error {
	id, err := f.id(ctx)
	if err != nil {
		return err
	}
	edit := &gl.UpdateMergeRequestOptions{}
	if body != "" {
		edit.Description = gl.Ptr(inert(body))
	}
	if words != "" {
		mr, err := f.mergeRequest(ctx, number)
		if err != nil {
			return err
		}
		if mr.Draft {
			words = draftMark + " " + words
		}
		edit.Title = &words
	}
	if _, resp, err := f.api.MergeRequests.UpdateMergeRequest(id, number, edit, gl.WithContext(ctx)); err != nil {
		return f.fail(call{fmt.Sprintf("change merge request %d", number), needWrite}, resp, err)
	}
	return nil
}
