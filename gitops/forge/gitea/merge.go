package gitea

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/rampart-gitops/rampart/gitops/forge"
)

// Merge implements forge.Forge. Gitea's automatic merge waits for required checks and approvals; where the base branch
// requires none, it merges at once.
func (f *Forge) Merge(ctx context.Context, number int64, m forge.Merge) (forge.Merging, error) {
	if m.When == forge.NotAnymore {
		if _, err := f.cancel(ctx, number); err != nil {
			return "", err
		}
		return forge.Cancelled, nil
	}
	if m.When != forge.Now && m.When != forge.WhenReady {
		return "", fmt.Errorf("merge pull request %d: no time %q", number, m.When)
	}
	if err := f.mayMerge(ctx, m.Method); err != nil {
		return "", err
	}
	pr, err := f.pull(ctx, number)
	switch {
	case err != nil:
		return "", err
	case pr.State != sdk.StateOpen:
		return "", &forge.RefusedError{
			Op: fmt.Sprintf("merge pull request %d", number), Where: f.repo.URL(), Reason: forge.ReasonConflict,
			Said: "it is merged or closed already",
		}
	case pr.Head.Sha != m.Commit:
		return "", &forge.MovedError{Number: number, Expected: m.Commit, Actual: pr.Head.Sha}
	}
	merging, err := f.merge(ctx, number, m)
	if err != nil || merging != already {
		return merging, err
	}
	// By whom, and by which method? What is ours is ordered anew, what is a person's stays.
	if ours, err := f.cancel(ctx, number); err != nil || !ours {
		return forge.Scheduled, err
	}
	if merging, err = f.merge(ctx, number, m); merging == already {
		merging = forge.Scheduled
	}
	return merging, err
}

// cancel takes an automatic merge back, if there is one that this account ordered.
func (f *Forge) cancel(ctx context.Context, number int64) (ours bool, err error) {
	if ours, err = f.ordered(ctx, number); err != nil || !ours {
		return false, err
	}
	resp, err := f.api(ctx).CancelScheduledAutoMerge(f.repo.Owner, f.repo.Name, number)
	if err != nil && (resp == nil || resp.StatusCode != http.StatusNotFound) {
		return true, f.fail(call{fmt.Sprintf("take back the automatic merge of pull request %d", number), needMerge},
			resp, err)
	}
	return true, nil
}

// mayMerge looks whether the repository allows the method, which an automatic merge does not tell.
func (f *Forge) mayMerge(ctx context.Context, method forge.Method) error {
	repo, resp, err := f.api(ctx).GetRepo(f.repo.Owner, f.repo.Name)
	if err != nil {
		return f.fail(call{"look which methods of merging are allowed", needRead}, resp, err)
	}
	allowed, known := map[forge.Method]bool{
		forge.MethodMerge: repo.AllowMerge, forge.MethodSquash: repo.AllowSquash, forge.MethodRebase: repo.AllowRebase,
	}[method]
	if !known {
		return fmt.Errorf("merge: no method %q", method)
	}
	if !allowed {
		return &forge.UnsupportedError{Forge: forge.KindGitea, What: "merging by " + string(method),
			Need: "allow it in the settings of the repository"}
	}
	return nil
}

// already is what becomes of an order while one waits. Gitea does not tell by which method.
const already forge.Merging = "already"

// merge asks for it without the library, which does not give what Gitea says when it refuses.
func (f *Forge) merge(ctx context.Context, number int64, m forge.Merge) (forge.Merging, error) {
	what := call{fmt.Sprintf("merge pull request %d", number), needMerge}
	status, answer, err := f.request(ctx, http.MethodPost, fmt.Sprintf("pulls/%d/merge", number),
		sdk.MergePullRequestOption{
			Style: sdk.MergeStyle(m.Method), HeadCommitId: m.Commit, MergeWhenChecksSucceed: m.When == forge.WhenReady,
		})
	if err != nil {
		return "", f.fail(what, nil, err)
	}
	said := message(answer)
	refused := f.client.Fail(forge.Failure{Op: what.op, Need: what.need, Status: status, Said: said})
	switch status {
	case http.StatusOK:
		return forge.Merged, nil
	case http.StatusCreated:
		return forge.Scheduled, nil
	case http.StatusMethodNotAllowed:
		return "", f.notReady(number, said, refused)
	case http.StatusConflict:
		if m.When == forge.WhenReady {
			return already, nil
		}
		if said == "head out of date" {
			return "", &forge.MovedError{Number: number, Expected: m.Commit}
		}
		return "", &forge.NotReadyError{Number: number, Said: f.client.Said(said), Err: refused}
	}
	return "", refused
}

// notReady tells what cannot be merged yet from what never will be.
func (f *Forge) notReady(number int64, said string, refused error) error {
	var e *forge.RefusedError
	if errors.As(refused, &e) {
		switch said {
		case "User not allowed to merge PR":
			e.Reason, e.Need = forge.ReasonForbidden, needMerge
			return e
		case "The PR is already merged":
			e.Reason = forge.ReasonConflict
			return e
		}
	}
	return &forge.NotReadyError{Number: number, Said: f.client.Said(said), Err: refused}
}
