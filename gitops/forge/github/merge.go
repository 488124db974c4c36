package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	gh "github.com/google/go-github/v88/github"

	"github.com/rampart-gitops/rampart/gitops/forge"
)

const (
	orderMerge = `mutation($id: ID!, $method: PullRequestMergeMethod!, $commit: GitObjectID!) {
  enablePullRequestAutoMerge(input: {pullRequestId: $id, mergeMethod: $method, expectedHeadOid: $commit}) {
    pullRequest { number }
  }
}`
	cancelMerge = `mutation($id: ID!) {
  disablePullRequestAutoMerge(input: {pullRequestId: $id}) { pullRequest { number } }
}`
)

// Merge implements forge.Forge. Where nothing is left to wait for, an automatic merge is done at once.
func (f *Forge) Merge(ctx context.Context, number int64, m forge.Merge) (forge.Merging, error) {
	if !slices.Contains([]forge.When{forge.Now, forge.WhenReady, forge.NotAnymore}, m.When) {
		return "", fmt.Errorf("merge pull request %d: no time %q", number, m.When)
	}
	if m.When != forge.NotAnymore {
		if err := f.mayMerge(ctx, m); err != nil {
			return "", err
		}
	}
	pr, err := f.pull(ctx, number)
	if err != nil {
		return "", err
	}
	merge := call{fmt.Sprintf("merge pull request %d", number), needMerge}
	switch {
	case m.When == forge.NotAnymore:
		if _, err := f.cancel(ctx, pr); err != nil {
			return "", err
		}
		return forge.Cancelled, nil
	case pr.GetState() != "open":
		return "", &forge.RefusedError{Op: merge.op, Where: f.repo.URL(), Reason: forge.ReasonConflict,
			Said: "it is merged or closed already"}
	case pr.GetHead().GetSHA() != m.Commit:
		return "", &forge.MovedError{Number: number, Expected: m.Commit, Actual: pr.GetHead().GetSHA()}
	case m.When == forge.WhenReady && !ready(pr):
		return f.schedule(ctx, pr, m)
	}
	return f.merge(ctx, number, m)
}

// ready says that nothing that the rules ask for is missing. GitHub then refuses to wait.
func ready(pr *gh.PullRequest) bool {
	return slices.Contains([]string{"clean", "unstable", "has_hooks"}, pr.GetMergeableState())
}

// mayMerge looks whether the repository allows what is asked for. Who may not write is not told, and refused later.
func (f *Forge) mayMerge(ctx context.Context, m forge.Merge) error {
	repo, resp, err := f.api.Repositories.Get(ctx, f.repo.Owner, f.repo.Name)
	if err != nil {
		return f.fail(call{"look which methods of merging are allowed", needMeta}, resp, err)
	}
	allowed, known := map[forge.Method]*bool{
		forge.MethodMerge: repo.AllowMergeCommit, forge.MethodSquash: repo.AllowSquashMerge,
		forge.MethodRebase: repo.AllowRebaseMerge,
	}[m.Method]
	switch {
	case !known:
		return fmt.Errorf("merge: no method %q", m.Method)
	case allowed != nil && !*allowed:
		return &forge.UnsupportedError{Forge: forge.KindGitHub, What: "merging by " + string(m.Method),
			Need: "allow it in the settings of the repository"}
	case m.When == forge.WhenReady && repo.AllowAutoMerge != nil && !*repo.AllowAutoMerge:
		return noAutoMerge()
	}
	return nil
}

func noAutoMerge() error {
	return &forge.UnsupportedError{
		Forge: forge.KindGitHub, What: "automatic merge",
		Need: `turn on "Allow auto-merge" in the settings of the repository (private ones need a paid plan)`,
	}
}

func (f *Forge) merge(ctx context.Context, number int64, m forge.Merge) (forge.Merging, error) {
	_, resp, err := f.api.PullRequests.Merge(ctx, f.repo.Owner, f.repo.Name, int(number), "", &gh.PullRequestOptions{
		SHA: m.Commit, MergeMethod: string(m.Method),
	})
	if err == nil {
		return forge.Merged, nil
	}
	refused := f.fail(call{fmt.Sprintf("merge pull request %d", number), needMerge}, resp, err)
	switch status(resp) {
	case http.StatusConflict:
		return "", &forge.MovedError{Number: number, Expected: m.Commit}
	case http.StatusMethodNotAllowed, http.StatusUnprocessableEntity:
		return "", notReady(number, refused)
	}
	return "", refused
}

func notReady(number int64, refused error) error {
	var e *forge.RefusedError
	if !errors.As(refused, &e) {
		return refused
	}
	return &forge.NotReadyError{Number: number, Said: e.Said, Err: refused}
}

// schedule orders an automatic merge.
func (f *Forge) schedule(ctx context.Context, pr *gh.PullRequest, m forge.Merge) (forge.Merging, error) {
	number := int64(pr.GetNumber())
	method := strings.ToUpper(string(m.Method))
	if pr.AutoMerge != nil {
		if strings.EqualFold(pr.AutoMerge.GetMergeMethod(), method) {
			return forge.Scheduled, nil
		}
		if ours, err := f.cancel(ctx, pr); err != nil || !ours {
			return forge.Scheduled, err
		}
	}
	var ignored any
	err := f.graphql(ctx, call{fmt.Sprintf("order the merge of pull request %d", number), needMerge}, question{
		Query: orderMerge, Variables: map[string]any{"id": pr.GetNodeID(), "method": method, "commit": m.Commit},
	}, &ignored)
	if err == nil {
		return forge.Scheduled, nil
	}
	return f.unscheduled(ctx, number, m, err)
}

// unscheduled tells why no merge could be ordered. GitHub has one type of error for all that, so it is looked at again;
// what is left is told by its words.
func (f *Forge) unscheduled(ctx context.Context, number int64, m forge.Merge, err error) (forge.Merging, error) {
	var refused *forge.RefusedError
	if !errors.As(err, &refused) || refused.Reason != forge.ReasonConflict {
		return "", err
	}
	pr, getErr := f.pull(ctx, number)
	switch said := strings.ToLower(refused.Said); {
	case getErr != nil:
		return "", getErr
	case pr.GetState() == "open" && pr.GetHead().GetSHA() != m.Commit:
		return "", &forge.MovedError{Number: number, Expected: m.Commit, Actual: pr.GetHead().GetSHA()}
	case strings.Contains(said, "auto merge is not allowed"), strings.Contains(said, "auto-merge is not allowed"):
		return "", noAutoMerge()
	case ready(pr), strings.Contains(said, "clean status"), strings.Contains(said, "unstable status"),
		strings.Contains(said, "branch rules not configured"):
		return f.merge(ctx, number, m)
	}
	return "", notReady(number, err)
}

// cancel takes an automatic merge back, if there is one that this account ordered.
func (f *Forge) cancel(ctx context.Context, pr *gh.PullRequest) (ours bool, err error) {
	if pr.AutoMerge == nil {
		return false, nil
	}
	self, err := f.me(ctx)
	if err != nil || !person(pr.AutoMerge.EnabledBy, self).Self {
		return false, err
	}
	var ignored any
	return true, f.graphql(ctx, call{fmt.Sprintf("take back the automatic merge of pull request %d", pr.GetNumber()),
		needMerge}, question{
		Query: cancelMerge, Variables: map[string]any{"id": pr.GetNodeID()},
	}, &ignored)
}
