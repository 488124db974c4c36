package gitlab

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/rampart-gitops/rampart/gitops/forge"
)

var _ forge.Checker = (*Forge)(nil)

// Branch implements forge.Checker.
func (f *Forge) Branch(ctx context.Context, name string) (*forge.Branch, error) {
	id, err := f.id(ctx)
	if err != nil {
		return nil, err
	}
	b, resp, err := f.api.Branches.GetBranch(id, name, gl.WithContext(ctx))
	switch {
	case err == nil:
		return &forge.Branch{Protected: b.Protected, MayPush: b.CanPush}, nil
	case status(resp) == http.StatusNotFound:
		return nil, nil
	}
	return nil, f.fail(call{"look at the branch " + name, needRead}, resp, err)
}

// Lacks implements forge.Checker. Everything takes the scope api and the role Developer, commit statuses too. GitLab
// tells the scopes of access tokens, and of others nothing.
func (f *Forge) Lacks(ctx context.Context, _ bool) []error {
	project, err := f.settings(ctx, f.repo.Owner+"/"+f.repo.Name)
	if err != nil {
		return []error{err}
	}
	var lacks []error
	if role, told := roleOf(project); told && role < gl.DeveloperPermissions {
		lacks = append(lacks, fmt.Errorf("the account's role in %s is below Developer: give it that role",
			f.repo.URL()))
	}
	token, resp, err := f.api.PersonalAccessTokens.GetSinglePersonalAccessToken(gl.WithContext(ctx))
	var refused *gl.ErrorResponse
	switch {
	case err == nil && !slices.Contains(token.Scopes, "api"):
		lacks = append(lacks,
			fmt.Errorf("the token has the scopes %q, and needs api to open merge requests and to set statuses",
				token.Scopes))
	case err != nil && !errors.As(err, &refused):
		lacks = append(lacks, f.fail(call{"look at the token", needUser}, resp, err))
	}
	return lacks
}

// roleOf is the higher of the roles that an account has in a project and by its group. GitLab tells neither of an
// administrator, nor of an account whose group the project is shared with.
func roleOf(project *gl.Project) (role gl.AccessLevelValue, told bool) {
	p := project.Permissions
	if p == nil || p.ProjectAccess == nil && p.GroupAccess == nil {
		return gl.NoPermissions, false
	}
	if p.ProjectAccess != nil {
		role = p.ProjectAccess.AccessLevel
	}
	if p.GroupAccess != nil {
		role = max(role, p.GroupAccess.AccessLevel)
	}
	return role, true
}

// Hooks implements forge.Checker. GitLab turns a webhook off, for a time or for good, when deliveries fail.
func (f *Forge) Hooks(ctx context.Context) ([]forge.Hook, error) {
	id, err := f.id(ctx)
	if err != nil {
		return nil, err
	}
	var out []forge.Hook
	options := gl.ListProjectHooksOptions{ListOptions: gl.ListOptions{PerPage: pageSize, Page: 1}}
	for range maxPages {
		list, resp, err := f.api.Projects.ListProjectHooks(id, &options, gl.WithContext(ctx))
		if err != nil {
			return nil, f.fail(call{"list the webhooks", needHooks}, resp, err)
		}
		for _, h := range list {
			hook := forge.Hook{URL: h.URL, Active: true, Pushes: h.PushEvents}
			switch h.AlertStatus {
			case "temporarily_disabled":
				hook.Failed, hook.Last = true, "GitLab has turned it off for a while, since deliveries fail"
			case "disabled":
				hook.Active = false
			}
			out = append(out, hook)
		}
		if resp.NextPage == 0 || len(list) == 0 {
			break
		}
		options.Page = resp.NextPage
	}
	return out, nil
}
