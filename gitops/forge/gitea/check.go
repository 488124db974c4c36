package gitea

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/rampart-gitops/rampart/gitops/forge"
)

var _ forge.Checker = (*Forge)(nil)

// Branch implements forge.Checker.
func (f *Forge) Branch(ctx context.Context, name string) (*forge.Branch, error) {
	b, resp, err := f.api(ctx).GetRepoBranch(f.repo.Owner, f.repo.Name, name)
	switch {
	case err == nil:
		return &forge.Branch{Protected: b.Protected, MayPush: b.UserCanPush}, nil
	case resp != nil && resp.StatusCode == http.StatusNotFound:
		return nil, nil
	}
	return nil, f.fail(call{"look at the branch " + name, needRead}, resp, err)
}

// Lacks implements forge.Checker. It asks for changes of number 0, which no pull request and no label has, so that
// nothing changes. The scope that changes pull requests sets commit statuses, too.
func (f *Forge) Lacks(ctx context.Context, _ bool) []error {
	var lacks []error
	repo, resp, err := f.api(ctx).GetRepo(f.repo.Owner, f.repo.Name)
	switch {
	case err != nil:
		return []error{f.fail(call{"look at the repository", needRead}, resp, err)}
	case repo.Permissions == nil || !repo.Permissions.Push:
		lacks = append(lacks, fmt.Errorf("the account may read %s/%s, and not write to it: make it a collaborator "+
			"with the right to write", f.repo.Owner, f.repo.Name))
	}
	try := func(op, need string, ask func() (*sdk.Response, error)) {
		resp, err := ask()
		if err != nil && (resp == nil || resp.StatusCode != http.StatusNotFound) {
			lacks = append(lacks, f.fail(call{op, need}, resp, err))
		}
	}
	try("change pull requests", needWrite, func() (*sdk.Response, error) {
		_, resp, err := f.api(ctx).EditPullRequest(f.repo.Owner, f.repo.Name, 0, sdk.EditPullRequestOption{})
		return resp, err
	})
	try("comment on pull requests, and label them", needIssue, func() (*sdk.Response, error) {
		_, resp, err := f.api(ctx).EditLabel(f.repo.Owner, f.repo.Name, 0, sdk.EditLabelOption{})
		return resp, err
	})
	return lacks
}

// Hooks implements forge.Checker. Gitea does not tell how deliveries went.
func (f *Forge) Hooks(ctx context.Context) ([]forge.Hook, error) {
	var out []forge.Hook
	for page := 1; page <= maxPages; page++ {
		list, resp, err := f.api(ctx).ListRepoHooks(f.repo.Owner, f.repo.Name,
			sdk.ListHooksOptions{ListOptions: sdk.ListOptions{Page: page, PageSize: pageSize}})
		if err != nil {
			return nil, f.fail(call{"list the webhooks", needAdmin}, resp, err)
		}
		for _, h := range list {
			out = append(out, forge.Hook{URL: h.Config["url"], Active: h.Active,
				Pushes: slices.Contains(h.Events, "push")})
		}
		if len(list) == 0 || resp.NextPage == 0 {
			break
		}
	}
	return out, nil
}
