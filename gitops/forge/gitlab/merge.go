package gitlab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/rampart-gitops/rampart/gitops/forge"
)

// Merge implements forge.Forge. An automatic merge waits for the pipeline and for what else the project asks for; where
// GitLab has nothing to wait for it is done at once.
func (f *Forge) Merge(ctx context.Context, number int64, m forge.Merge) (forge.Merging, error) {
	if !slices.Contains([]forge.When{forge.Now, forge.WhenReady, forge.NotAnymore}, m.When) {
		return "", fmt.Errorf("merge merge request %d: no time %q", number, m.When)
	}
	id, err := f.id(ctx)
	if err != nil {
		return "", err
	}
	if m.When == forge.NotAnymore {
		return f.cancel(ctx, number)
	}
	project, err := f.settings(ctx, id)
	if err != nil {
		return "", err
	}
	if err := mayMerge(project, m.Method); err != nil {
		return "", err
	}
	mr, err := f.mergeRequest(ctx, number)
	if err != nil {
		return "", err
	}
	switch {
	case mr.State != "opened":
		return "", &forge.RefusedError{
			Op: merging(number), Where: f.repo.URL(), Reason: forge.ReasonConflict, Said: "it is " + mr.State,
		}
	case mr.SHA != m.Commit:
		return "", &forge.MovedError{Number: number, Expected: m.Commit, Actual: mr.SHA}
	case mr.DetailedMergeStatus == "need_rebase":
		return "", &forge.NotReadyError{Number: number, Said: "its branch has to be rebased first"}
	}
	if err := f.squash(ctx, mr, m); err != nil {
		return "", err
	}
	return f.accept(ctx, mr, m)
}

func merging(number int64) string { return fmt.Sprintf("merge merge request %d", number) }

// mayMerge looks whether the project merges so. It does not tell who may not write: it is refused later.
func mayMerge(project *gl.Project, method forge.Method) error {
	bad := func(need string) error {
		return &forge.UnsupportedError{Forge: forge.KindGitLab, What: "merging by " + string(method), Need: need}
	}
	forward := project.MergeMethod == gl.FastForwardMerge
	switch {
	case !slices.Contains([]forge.Method{forge.MethodMerge, forge.MethodSquash, forge.MethodRebase}, method):
		return fmt.Errorf("merge: no method %q", method)
	case method == forge.MethodSquash && project.SquashOption == gl.SquashOptionNever:
		return bad("allow squashing in the settings of the project")
	case method != forge.MethodSquash && project.SquashOption == gl.SquashOptionAlways:
		return bad("the project always squashes: use squash, or change its settings")
	case method == forge.MethodMerge && forward:
		return bad("the project merges by fast-forward: use rebase, or change its merge method")
	case method == forge.MethodRebase && !forward:
		return bad("the project makes merge commits: use merge, or change its merge method to fast-forward")
	}
	return nil
}

// squash makes the merge request squash or not, which an order to merge can only add.
func (f *Forge) squash(ctx context.Context, mr *gl.MergeRequest, m forge.Merge) error {
	squash := m.Method == forge.MethodSquash
	if mr.Squash == squash {
		return nil
	}
	_, resp, err := f.api.MergeRequests.UpdateMergeRequest(mr.ProjectID, mr.IID,
		&gl.UpdateMergeRequestOptions{Squash: &squash}, gl.WithContext(ctx))
	if err != nil {
		return f.fail(call{merging(mr.IID), needMerge}, resp, err)
	}
	return nil
}

func (f *Forge) accept(ctx context.Context, mr *gl.MergeRequest, m forge.Merge) (forge.Merging, error) {
	if m.When == forge.WhenReady && mr.MergeWhenPipelineSucceeds {
		return forge.Scheduled, nil // with the method that it was given above
	}
	options := gl.AcceptMergeRequestOptions{SHA: &m.Commit, Squash: gl.Ptr(m.Method == forge.MethodSquash)}
	if m.When == forge.WhenReady {
		options.AutoMerge = gl.Ptr(true)
		options.MergeWhenPipelineSucceeds = gl.Ptr(true) //nolint:staticcheck // before 17.11 it was called so
	}
	done, resp, err := f.api.MergeRequests.AcceptMergeRequest(mr.ProjectID, mr.IID, &options, gl.WithContext(ctx))
	if err != nil && status(resp) == http.StatusMethodNotAllowed && m.When == forge.WhenReady &&
		mr.HeadPipeline == nil && mr.DetailedMergeStatus == "mergeable" {
		// Older ones refuse to wait for a pipeline that there is none of.
		options = gl.AcceptMergeRequestOptions{SHA: options.SHA, Squash: options.Squash}
		done, resp, err = f.api.MergeRequests.AcceptMergeRequest(mr.ProjectID, mr.IID, &options, gl.WithContext(ctx))
	}
	switch {
	case err != nil:
		return "", f.refused(mr, m, resp, err)
	case done.State == "merged":
		return forge.Merged, nil
	case done.MergeWhenPipelineSucceeds:
		return forge.Scheduled, nil
	}
	return "", &forge.NotReadyError{Number: mr.IID, Said: f.client.Said(cmp.Or(done.MergeError, why(mr)))}
}

// why is what is missing, in words.
func why(mr *gl.MergeRequest) string { return strings.ReplaceAll(mr.DetailedMergeStatus, "_", " ") }

// refused tells what an answer means here, which is otherwise than elsewhere.
func (f *Forge) refused(mr *gl.MergeRequest, m forge.Merge, resp *gl.Response, err error) error {
	refused := f.fail(call{merging(mr.IID), needMerge}, resp, err)
	var e *forge.RefusedError
	if !errors.As(refused, &e) {
		return refused
	}
	switch status(resp) {
	case http.StatusUnauthorized: // the token was good enough to look at it
		e.Reason, e.Need = forge.ReasonForbidden, needMerge
	case http.StatusConflict:
		return &forge.MovedError{Number: mr.IID, Expected: m.Commit}
	case http.StatusMethodNotAllowed, http.StatusUnprocessableEntity, http.StatusNotAcceptable:
		said := e.Said
		if mr.DetailedMergeStatus != "" {
			said += ": " + why(mr)
		}
		return &forge.NotReadyError{Number: mr.IID, Said: said, Err: refused}
	}
	return refused
}

// cancel takes an automatic merge back, if there is one that this account ordered.
func (f *Forge) cancel(ctx context.Context, number int64) (forge.Merging, error) {
	self, err := f.me(ctx)
	if err != nil {
		return "", err
	}
	mr, err := f.mergeRequest(ctx, number)
	if err != nil {
		return "", err
	}
	if !mr.MergeWhenPipelineSucceeds || !merger(mr, self).Self {
		return forge.Cancelled, nil
	}
	_, resp, err := f.api.MergeRequests.CancelMergeWhenPipelineSucceeds(mr.ProjectID, number, gl.WithContext(ctx))
	// none was ordered; it is merged or closed
	if err == nil || status(resp) == http.StatusNotAcceptable || status(resp) == http.StatusMethodNotAllowed {
		return forge.Cancelled, nil
	}
	refused := f.fail(call{fmt.Sprintf("take back the automatic merge of merge request %d", number), needMerge}, resp,
		err)
	var e *forge.RefusedError
	if errors.As(refused, &e) && status(resp) == http.StatusUnauthorized {
		e.Reason, e.Need = forge.ReasonForbidden, needMerge
	}
	return "", refused
}
