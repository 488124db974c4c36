package gitlab

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/rampart-gitops/rampart/gitops/forge"
)

// List implements forge.Forge.
func (f *Forge) List(ctx context.Context, filter forge.Filter) ([]forge.PullRequest, error) {
	id, err := f.id(ctx)
	if err != nil {
		return nil, err
	}
	options := gl.ListProjectMergeRequestsOptions{
		State: gl.Ptr("all"), OrderBy: gl.Ptr("created_at"), Sort: gl.Ptr("desc"),
		ListOptions: gl.ListOptions{Page: 1, PerPage: pageSize},
	}
	if filter.Open {
		options.State = gl.Ptr("opened")
	}
	if filter.Head != "" {
		options.SourceBranch = &filter.Head
	}
	if filter.Base != "" {
		options.TargetBranch = &filter.Base
	}
	if !filter.Since.IsZero() {
		options.UpdatedAfter = gl.Ptr(filter.Since.Truncate(time.Second).UTC())
	}
	var found []forge.PullRequest
	for range maxPages {
		mrs, resp, err := f.api.MergeRequests.ListProjectMergeRequests(id, &options, gl.WithContext(ctx))
		if err != nil {
			return nil, f.fail(call{"list merge requests", needRead}, resp, err)
		}
		for _, mr := range mrs {
			if own(mr) {
				found = append(found, pullRequest(mr))
			}
		}
		if resp.NextPage == 0 {
			return forge.Newest(found), nil
		}
		options.Page = resp.NextPage
	}
	return nil, &forge.TooManyError{Where: f.repo.URL(), Most: maxPages * pageSize}
}

// own says that it is not from a fork.
func own(mr *gl.BasicMergeRequest) bool {
	return mr.SourceProjectID != 0 && mr.SourceProjectID == mr.TargetProjectID
}

// Get implements forge.Forge.
func (f *Forge) Get(ctx context.Context, number int64) (forge.Details, error) {
	self, err := f.me(ctx)
	if err != nil {
		return forge.Details{}, err
	}
	mr, err := f.mergeRequest(ctx, number)
	if err != nil {
		return forge.Details{}, err
	}
	if !own(&mr.BasicMergeRequest) {
		return forge.Details{}, &forge.RefusedError{
			Op: getting(number), Where: f.repo.URL(), Reason: forge.ReasonNotFound,
			Said: "it is not from a branch of the project itself",
		}
	}
	d := forge.Details{PullRequest: pullRequest(&mr.BasicMergeRequest)}
	switch d.State {
	case forge.StateOpen:
		d.Mergeable = !mr.HasConflicts && !slices.Contains(undecided, mr.DetailedMergeStatus)
	case forge.StateMerged:
		d.ClosedBy = merger(mr, self)
	case forge.StateClosed:
		d.ClosedBy = person(mr.ClosedBy, self)
	}
	d.Approvals, err = f.approvals(ctx, mr, self)
	return d, err
}

// merger is who merged it, or ordered that.
func merger(mr *gl.MergeRequest, self *gl.User) forge.Person {
	return person(cmp.Or(mr.MergeUser, mr.MergedBy), self) //nolint:staticcheck // before 14.7 it was called so
}

// undecided are the states of a merge request that was not looked at to the end, or has conflicts.
var undecided = []string{"", "unchecked", "checking", "preparing", "conflict", "broken_status", "commits_status"}

func getting(number int64) string { return fmt.Sprintf("get merge request %d", number) }

func (f *Forge) mergeRequest(ctx context.Context, number int64) (*gl.MergeRequest, error) {
	id, err := f.id(ctx)
	if err != nil {
		return nil, err
	}
	mr, resp, err := f.api.MergeRequests.GetMergeRequest(id, number, nil, gl.WithContext(ctx))
	if err != nil {
		return nil, f.fail(call{getting(number), needRead}, resp, err)
	}
	return mr, nil
}

// approvals are those that GitLab holds at this time: it takes some back by itself, as the project says.
func (f *Forge) approvals(ctx context.Context, mr *gl.MergeRequest, self *gl.User) ([]forge.Approval, error) {
	now, resp, err := f.api.MergeRequestApprovals.GetConfiguration(mr.ProjectID, mr.IID, gl.WithContext(ctx))
	if err != nil {
		return nil, f.fail(call{fmt.Sprintf("list the approvals of merge request %d", mr.IID), needRead}, resp, err)
	}
	var given []forge.Approval
	for _, a := range now.ApprovedBy {
		if by := person(a.User, self); by.Login != "" {
			given = append(given, forge.Approval{By: by})
		}
	}
	return forge.ByLogin(given), nil
}

func pullRequest(mr *gl.BasicMergeRequest) forge.PullRequest {
	out := forge.PullRequest{
		Number: mr.IID, URL: mr.WebURL, Title: mr.Title, Body: plain(mr.Description), State: forge.StateOpen,
		Head: mr.SourceBranch, Base: mr.TargetBranch, HeadCommit: mr.SHA, Updated: forge.Moment(mr.UpdatedAt),
	}
	if mr.Draft {
		out.Title = forge.WithoutMark(mr.Title, draftMarks...)
	}
	out.Labels = slices.Sorted(slices.Values(mr.Labels))
	switch mr.State { // "locked" is while it is being merged
	case "merged":
		out.State, out.Closed = forge.StateMerged, forge.Moment(mr.MergedAt)
		// A fast-forward makes no commit: it is its last one.
		out.MergeCommit = cmp.Or(mr.MergeCommitSHA, mr.SquashCommitSHA, mr.SHA)
	case "closed":
		out.State, out.Closed = forge.StateClosed, forge.Moment(mr.ClosedAt)
	}
	return out
}

// ghost is the account that stands for those that were deleted.
const ghost = "ghost"

func person(u *gl.BasicUser, self *gl.User) forge.Person {
	if u == nil || u.Username == ghost {
		return forge.Person{}
	}
	return forge.Person{Login: u.Username, Self: u.ID == self.ID}
}
