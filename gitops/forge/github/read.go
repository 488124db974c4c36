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

// List implements forge.Forge.
func (f *Forge) List(ctx context.Context, filter forge.Filter) ([]forge.PullRequest, error) {
	options := gh.PullRequestListOptions{State: "all", Base: filter.Base, Sort: "created", Direction: "desc",
		ListOptions: gh.ListOptions{Page: 1, PerPage: pageSize}}
	if filter.Open {
		options.State = "open"
	}
	if filter.Head != "" {
		options.Head = f.repo.Owner + ":" + filter.Head
	}
	if !filter.Since.IsZero() {
		options.Sort = "updated"
	}
	var found []forge.PullRequest
	for range maxPages {
		prs, resp, err := f.api.PullRequests.List(ctx, f.repo.Owner, f.repo.Name, &options)
		if err != nil {
			return nil, f.fail(call{"list pull requests", needRead}, resp, err)
		}
		if again, err := f.moved(ctx, resp, &options); err != nil {
			return nil, err
		} else if again {
			continue
		}
		for _, pr := range prs {
			if is := pullRequest(pr); own(pr) && filter.Takes(is) {
				found = append(found, is)
			}
		}
		if resp.NextPage == 0 || len(prs) == 0 || filter.Passed(prs[len(prs)-1].GetUpdatedAt().Time) {
			return forge.Newest(found), nil
		}
		options.Page = resp.NextPage
	}
	return nil, &forge.TooManyError{Where: f.repo.URL(), Most: maxPages * pageSize}
}

// moved says whether the list came from a repository that has another owner by now. Then it changes the head in the
// options to one of that owner, for which the caller asks again.
func (f *Forge) moved(ctx context.Context, resp *gh.Response, options *gh.PullRequestListOptions) (bool, error) {
	_, branch, byHead := strings.Cut(options.Head, ":")
	if !byHead || strings.HasSuffix(resp.Request.URL.Path, "/"+f.repo.Owner+"/"+f.repo.Name+"/pulls") {
		return false, nil
	}
	repo, resp, err := f.api.Repositories.Get(ctx, f.repo.Owner, f.repo.Name)
	if err != nil {
		return false, f.fail(call{"look who owns the repository by now", needMeta}, resp, err)
	}
	head := repo.GetOwner().GetLogin() + ":" + branch
	if head == options.Head {
		return false, nil
	}
	options.Head = head
	return true, nil
}

// own says that it is not from a fork.
func own(pr *gh.PullRequest) bool {
	from := pr.GetHead().GetRepo().GetID()
	return from != 0 && from == pr.GetBase().GetRepo().GetID()
}

// Get implements forge.Forge.
func (f *Forge) Get(ctx context.Context, number int64) (forge.Details, error) {
	self, err := f.me(ctx)
	if err != nil {
		return forge.Details{}, err
	}
	pr, err := f.pull(ctx, number)
	if err != nil {
		return forge.Details{}, err
	}
	if !own(pr) {
		return forge.Details{}, &forge.RefusedError{
			Op: getting(number), Where: f.repo.URL(), Reason: forge.ReasonNotFound,
			Said: "it is not from a branch of the repository itself",
		}
	}
	d := forge.Details{PullRequest: pullRequest(pr)}
	switch d.State {
	case forge.StateOpen:
		d.Mergeable = pr.GetMergeable()
	case forge.StateMerged:
		d.ClosedBy = person(pr.MergedBy, self)
	case forge.StateClosed:
		issue, resp, err := f.api.Issues.Get(ctx, f.repo.Owner, f.repo.Name, int(number))
		if err != nil {
			return forge.Details{}, f.fail(call{fmt.Sprintf("ask who closed pull request %d", number), needIssues},
				resp, err)
		}
		d.ClosedBy = person(issue.ClosedBy, self)
	}
	d.Approvals, err = f.approvals(ctx, number, self)
	return d, err
}

// Authors implements forge.Forge.
func (f *Forge) Authors(ctx context.Context, commit string) ([]forge.Person, error) {
	self, err := f.me(ctx)
	if err != nil {
		return nil, err
	}
	c, resp, err := f.api.Repositories.GetCommit(ctx, f.repo.Owner, f.repo.Name, commit, nil)
	if err != nil {
		return nil, f.fail(call{"ask who wrote commit " + commit, needRepo}, resp, err)
	}
	return []forge.Person{person(c.Author, self), person(c.Committer, self)}, nil
}

func getting(number int64) string { return fmt.Sprintf("get pull request %d", number) }

func (f *Forge) pull(ctx context.Context, number int64) (*gh.PullRequest, error) {
	pr, resp, err := f.api.PullRequests.Get(ctx, f.repo.Owner, f.repo.Name, int(number))
	if err != nil {
		return nil, f.fail(call{getting(number), needRead}, resp, err)
	}
	return pr, nil
}

// approvals are the last words of reviewers, where they are a consent and their author may write.
func (f *Forge) approvals(ctx context.Context, number int64, self *account) ([]forge.Approval, error) {
	last := map[int64]*gh.PullRequestReview{}
	options := gh.ListOptions{Page: 1, PerPage: pageSize}
	for range maxPages {
		reviews, resp, err := f.api.PullRequests.ListReviews(ctx, f.repo.Owner, f.repo.Name, int(number), &options)
		if err != nil {
			return nil, f.fail(call{fmt.Sprintf("list the reviews of pull request %d", number), needRead}, resp, err)
		}
		for _, r := range reviews { // the oldest first
			if state := r.GetState(); r.User != nil &&
				(state == "APPROVED" || state == "CHANGES_REQUESTED" || state == "DISMISSED") {
				last[r.User.GetID()] = r
			}
		}
		if resp.NextPage == 0 {
			break
		}
		options.Page = resp.NextPage
	}
	var given []forge.Approval
	for _, r := range last {
		if r.GetState() != "APPROVED" {
			continue
		}
		writes, err := f.mayWrite(ctx, r.User.GetLogin())
		if err != nil {
			return nil, err
		}
		if writes {
			given = append(given, forge.Approval{By: person(r.User, self), Commit: r.GetCommitID()})
		}
	}
	return forge.ByLogin(given), nil
}

func (f *Forge) mayWrite(ctx context.Context, login string) (bool, error) {
	level, resp, err := f.api.Repositories.GetPermissionLevel(ctx, f.repo.Owner, f.repo.Name, url.PathEscape(login))
	switch {
	case status(resp) == http.StatusNotFound: // an App, or somebody who left
		return false, nil
	case err != nil:
		return false, f.fail(call{"ask what " + login + " may do", needMeta}, resp, err)
	}
	return level.GetPermission() == "write" || level.GetPermission() == "admin", nil
}

func pullRequest(pr *gh.PullRequest) forge.PullRequest {
	out := forge.PullRequest{
		Number: int64(pr.GetNumber()), URL: pr.GetHTMLURL(), Title: pr.GetTitle(), Body: pr.GetBody(),
		State: forge.StateOpen,
		Head:  pr.GetHead().GetRef(), Base: pr.GetBase().GetRef(), HeadCommit: pr.GetHead().GetSHA(),
		Updated: pr.GetUpdatedAt().UTC(), Closed: pr.GetClosedAt().UTC(),
	}
	for _, l := range pr.Labels {
		out.Labels = append(out.Labels, l.GetName())
	}
	slices.Sort(out.Labels)
	switch {
	case !pr.GetMergedAt().IsZero():
		out.State = forge.StateMerged
		out.MergeCommit = pr.GetMergeCommitSHA() // else it is what GitHub tried
	case pr.GetState() == "closed":
		out.State = forge.StateClosed
	}
	return out
}

// ghost is the account that stands for those that were deleted.
const ghost = "ghost"

func person(u *gh.User, self *account) forge.Person {
	if u == nil || u.GetLogin() == ghost {
		return forge.Person{}
	}
	same := u.GetLogin() == self.Login
	if self.DatabaseID != 0 { // names change
		same = u.GetID() == self.DatabaseID
	}
	return forge.Person{Login: u.GetLogin(), Self: same}
}
