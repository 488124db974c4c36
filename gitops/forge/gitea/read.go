package gitea

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/rampart-gitops/rampart/gitops/forge"
)

// List implements forge.Forge.
func (f *Forge) List(ctx context.Context, filter forge.Filter) ([]forge.PullRequest, error) {
	options := sdk.ListPullRequestsOptions{ListOptions: sdk.ListOptions{PageSize: pageSize}, State: sdk.StateAll,
		Sort: "recentupdate"}
	if filter.Open {
		options.State = sdk.StateOpen
	}
	var found []forge.PullRequest
	for options.Page = 1; options.Page <= maxPages; options.Page++ {
		prs, resp, err := f.api(ctx).ListRepoPullRequests(f.repo.Owner, f.repo.Name, options)
		if err != nil {
			return nil, f.fail(call{"list pull requests", needRead}, resp, err)
		}
		for _, pr := range prs {
			if !own(pr) {
				continue
			}
			if is := pullRequest(pr); filter.Takes(is) {
				found = append(found, is)
			}
		}
		if resp.NextPage == 0 || len(prs) == 0 || filter.Passed(forge.Moment(prs[len(prs)-1].Updated)) {
			return forge.Newest(found), nil
		}
	}
	return nil, &forge.TooManyError{Where: f.repo.URL(), Most: maxPages * pageSize}
}

// own says that it is not from a fork.
func own(pr *sdk.PullRequest) bool {
	return pr.Head != nil && pr.Base != nil && pr.Head.RepoID == pr.Base.RepoID && pr.Head.Name != ""
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
	d := forge.Details{PullRequest: pullRequest(pr), Mergeable: pr.State == sdk.StateOpen && pr.Mergeable}
	if d.State != forge.StateOpen {
		ref, resp, err := f.api(ctx).GetRepoRef(f.repo.Owner, f.repo.Name, fmt.Sprintf("pull/%d/head", number))
		if err != nil {
			return forge.Details{}, f.fail(call{getting(number) + ": its last commit", needRead}, resp, err)
		}
		d.HeadCommit = ref.Object.SHA
	}
	switch d.State {
	case forge.StateMerged:
		d.ClosedBy = person(pr.MergedBy, self)
	case forge.StateClosed:
		if d.ClosedBy, err = f.closer(ctx, d.PullRequest, self); err != nil {
			return forge.Details{}, err
		}
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
	c, resp, err := f.api(ctx).GetSingleCommit(f.repo.Owner, f.repo.Name, commit)
	if err != nil {
		return nil, f.fail(call{"ask who wrote commit " + commit, needRead}, resp, err)
	}
	return []forge.Person{person(c.Author, self), person(c.Committer, self)}, nil
}

func getting(number int64) string { return fmt.Sprintf("get pull request %d", number) }

func (f *Forge) pull(ctx context.Context, number int64) (*sdk.PullRequest, error) {
	pr, resp, err := f.api(ctx).GetPullRequest(f.repo.Owner, f.repo.Name, number)
	if err != nil {
		return nil, f.fail(call{getting(number), needRead}, resp, err)
	}
	return pr, nil
}

// event is an entry of a timeline. The library's type cannot hold one that is about a label.
type event struct {
	Type string    `json:"type"`
	By   *sdk.User `json:"user"`
}

// closer is who closed it last.
func (f *Forge) closer(ctx context.Context, pr forge.PullRequest, self *sdk.User) (by forge.Person, err error) {
	what := fmt.Sprintf("ask who closed pull request %d", pr.Number)
	err = f.events(ctx, what, timeline{pr.Number, pr.Closed}, func(e event) {
		if e.Type == "close" {
			by = person(e.By, self)
		}
	})
	return by, err
}

// ordered says whether it was this account that ordered the automatic merge that waits, if one does.
func (f *Forge) ordered(ctx context.Context, number int64) (ours bool, err error) {
	self, err := f.me(ctx)
	if err != nil {
		return false, err
	}
	err = f.events(ctx, fmt.Sprintf("ask who ordered the merge of pull request %d", number), timeline{number: number},
		func(e event) {
			switch e.Type {
			case "pull_scheduled_merge":
				ours = person(e.By, self).Self
			case "pull_cancel_scheduled_merge":
				ours = false
			}
		})
	return ours, err
}

// timeline is what happened to a pull request, from a time on.
type timeline struct {
	number int64
	since  time.Time
}

// events visits what happened, the oldest first.
func (f *Forge) events(ctx context.Context, op string, of timeline, visit func(event)) error {
	what := call{op, needIssueRead}
	for page := 1; page <= maxPages; page++ {
		query := url.Values{"page": {strconv.Itoa(page)}, "limit": {strconv.Itoa(pageSize)}}
		if !of.since.IsZero() {
			query.Set("since", of.since.Format(time.RFC3339))
		}
		status, answer, err := f.request(ctx, http.MethodGet,
			fmt.Sprintf("issues/%d/timeline?%s", of.number, query.Encode()), nil)
		if err != nil {
			return f.fail(what, nil, err)
		}
		var events []event
		if err := json.Unmarshal(answer, &events); err != nil || status != http.StatusOK {
			return f.client.Fail(forge.Failure{Op: what.op, Need: what.need, Status: status, Said: message(answer),
				Err: err})
		}
		for _, e := range events {
			visit(e)
		}
		if len(events) == 0 { // a page may be shorter for what we may not see
			break
		}
	}
	return nil
}

// approvals are the reviews that Gitea counts. One that asks for changes takes that from the reviewer's earlier ones.
func (f *Forge) approvals(ctx context.Context, number int64, self *sdk.User) ([]forge.Approval, error) {
	last := map[int64]*sdk.PullReview{}
	if err := f.reviews(ctx, number, func(r *sdk.PullReview) {
		if r.Reviewer != nil && r.State == sdk.ReviewStateApproved && r.Official && !r.Dismissed {
			last[r.Reviewer.ID] = r
		}
	}); err != nil {
		return nil, err
	}
	var given []forge.Approval
	for _, r := range last {
		given = append(given, forge.Approval{By: person(r.Reviewer, self), Commit: r.CommitID})
	}
	return forge.ByLogin(given), nil
}

// reviews gives all of a pull request's, in turn.
func (f *Forge) reviews(ctx context.Context, number int64, each func(*sdk.PullReview)) error {
	options := sdk.ListPullReviewsOptions{ListOptions: sdk.ListOptions{PageSize: pageSize}}
	for options.Page = 1; options.Page <= maxPages; options.Page++ {
		reviews, resp, err := f.api(ctx).ListPullReviews(f.repo.Owner, f.repo.Name, number, options)
		if err != nil {
			return f.fail(call{fmt.Sprintf("list the reviews of pull request %d", number), needRead}, resp, err)
		}
		for _, r := range reviews {
			each(r)
		}
		if len(reviews) == 0 {
			break
		}
	}
	return nil
}

func pullRequest(pr *sdk.PullRequest) forge.PullRequest {
	out := forge.PullRequest{
		Number: pr.Index, URL: pr.HTMLURL, Title: pr.Title, Body: pr.Body, State: forge.StateOpen,
		Head: pr.Head.Name, Base: pr.Base.Name, Updated: forge.Moment(pr.Updated), Closed: forge.Moment(pr.Closed),
	}
	if pr.Draft {
		out.Title = forge.WithoutMark(pr.Title, draftMark, "[WIP]")
	}
	for _, l := range pr.Labels {
		out.Labels = append(out.Labels, l.Name)
	}
	slices.Sort(out.Labels)
	switch {
	case pr.HasMerged:
		out.State = forge.StateMerged
		if pr.MergedCommitID != nil {
			out.MergeCommit = *pr.MergedCommitID
		}
	case pr.State == sdk.StateClosed:
		out.State = forge.StateClosed
	default:
		out.HeadCommit = pr.Head.Sha
	}
	return out
}

func person(u, self *sdk.User) forge.Person {
	if u == nil || u.ID <= 0 { // a deleted account is a ghost with a negative number
		return forge.Person{}
	}
	return forge.Person{Login: u.UserName, Self: u.ID == self.ID}
}

// draftMark begins the title of a draft. Others may be configured; they stay a part of the title here.
const draftMark = "WIP:"
