package github

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	gh "github.com/google/go-github/v88/github"

	"github.com/rampart-gitops/rampart/gitops/forge"
)

var _ forge.Checker = (*Forge)(nil)

const askBranch = `query($owner: String!, $name: String!, $ref: String!) {
	repository(owner: $owner, name: $name) {
		viewerPermission
		ref(qualifiedName: $ref) { refUpdateRule { viewerCanPush } }
	}
}`

// Branch implements forge.Checker. It asks GraphQL whether the branch protection lets the account push, and each
// ruleset whether the account may bypass it.
func (f *Forge) Branch(ctx context.Context, name string) (*forge.Branch, error) {
	c := call{"look at the branch " + name, needRepo}
	var answer struct {
		Repository struct {
			ViewerPermission string `json:"viewerPermission"`
			Ref              *struct {
				RefUpdateRule *struct {
					ViewerCanPush bool `json:"viewerCanPush"`
				} `json:"refUpdateRule"`
			} `json:"ref"`
		} `json:"repository"`
	}
	variables := map[string]any{"owner": f.repo.Owner, "name": f.repo.Name, "ref": "refs/heads/" + name}
	if err := f.graphql(ctx, c, question{Query: askBranch, Variables: variables}, &answer); err != nil {
		return nil, err
	}
	repo := answer.Repository
	if repo.Ref == nil {
		return nil, nil
	}
	app, err := f.isApp(ctx)
	if err != nil {
		return nil, err
	}
	b := &forge.Branch{MayPush: app || slices.Contains([]string{"ADMIN", "MAINTAIN", "WRITE"}, repo.ViewerPermission)}
	if rule := repo.Ref.RefUpdateRule; rule != nil {
		b.Protected, b.MayPush = true, b.MayPush && rule.ViewerCanPush
	}
	rulesets, err := f.blocking(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, id := range rulesets {
		set, resp, err := f.api.Repositories.GetRuleset(ctx, f.repo.Owner, f.repo.Name, id, true)
		if err != nil {
			return nil, f.fail(call{fmt.Sprintf("look at ruleset %d of the branch %s", id, name), needMeta}, resp, err)
		}
		bypass := set.GetCurrentUserCanBypass()
		b.Protected = true
		b.MayPush = b.MayPush && bypass != nil && (*bypass == gh.BypassModeAlways || *bypass == gh.BypassModeExempt)
	}
	return b, nil
}

// isApp says that the token is an App's, whose role in a repository GitHub does not tell. What it may do are the
// permissions of its installation.
func (f *Forge) isApp(ctx context.Context) (bool, error) {
	login, err := f.Login(ctx)
	return strings.HasSuffix(login, "[bot]"), err
}

// blocking are the rulesets with a rule by which a branch takes no plain push.
func (f *Forge) blocking(ctx context.Context, branch string) ([]int64, error) {
	rules, resp, err := f.api.Repositories.ListRulesForBranch(ctx, f.repo.Owner, f.repo.Name, branch,
		&gh.ListOptions{PerPage: pageSize})
	if err != nil {
		return nil, f.fail(call{"read the rules of the branch " + branch, needMeta}, resp, err)
	}
	var ids []int64
	for _, r := range rules.Update {
		ids = append(ids, r.RulesetID)
	}
	for _, r := range rules.PullRequest {
		ids = append(ids, r.RulesetID)
	}
	for _, r := range rules.RequiredStatusChecks {
		ids = append(ids, r.RulesetID)
	}
	for _, r := range rules.MergeQueue {
		ids = append(ids, r.RulesetID)
	}
	for _, r := range rules.Workflows {
		ids = append(ids, r.RulesetID)
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// Lacks implements forge.Checker. GitHub tells the scopes of classic tokens. With another token it tries to change pull
// request 0 and a commit that does not exist, so that nothing changes: 401 and 403 count, 404 does not.
func (f *Forge) Lacks(ctx context.Context, statuses bool) []error {
	repo, resp, err := f.api.Repositories.Get(ctx, f.repo.Owner, f.repo.Name)
	if err != nil {
		return []error{f.fail(call{"look at the repository", needRepo}, resp, err)}
	}
	app, err := f.isApp(ctx)
	if err != nil {
		return []error{err}
	}
	var lacks []error
	if !app && !repo.GetPermissions().GetPush() {
		lacks = append(lacks, fmt.Errorf("the account may read %s, and not write to it: give it the role Write",
			f.repo.URL()))
	}
	if told, classic := resp.Header["X-Oauth-Scopes"]; classic {
		scopes := strings.Split(strings.ReplaceAll(strings.Join(told, ","), " ", ""), ",")
		if !slices.Contains(scopes, "repo") && (repo.GetPrivate() || !slices.Contains(scopes, "public_repo")) {
			lacks = append(lacks, fmt.Errorf("the token has the scopes %q, and needs repo", scopes))
		}
		return lacks
	}
	try := func(op, need string, ask func() (*gh.Response, error)) {
		resp, err := ask()
		refused := resp == nil || slices.Contains([]int{http.StatusForbidden, http.StatusUnauthorized}, status(resp))
		if err != nil && refused {
			lacks = append(lacks, f.fail(call{op, need}, resp, err))
		}
	}
	try("change pull requests", needWrite, func() (*gh.Response, error) {
		_, resp, err := f.api.PullRequests.Edit(ctx, f.repo.Owner, f.repo.Name, 0, &gh.PullRequest{})
		return resp, err
	})
	try("comment on pull requests, and label them", needIssues, func() (*gh.Response, error) {
		_, resp, err := f.api.Issues.CreateComment(ctx, f.repo.Owner, f.repo.Name, 0,
			&gh.IssueComment{Body: gh.Ptr("-")})
		return resp, err
	})
	if statuses {
		try("set commit statuses", needStatus, func() (*gh.Response, error) {
			_, resp, err := f.api.Repositories.CreateStatus(ctx, f.repo.Owner, f.repo.Name, strings.Repeat("0", 40),
				gh.RepoStatus{State: gh.Ptr("pending")})
			return resp, err
		})
	}
	return lacks
}

// Hooks implements forge.Checker.
func (f *Forge) Hooks(ctx context.Context) ([]forge.Hook, error) {
	var out []forge.Hook
	options := gh.ListOptions{PerPage: pageSize}
	for range maxPages {
		list, resp, err := f.api.Repositories.ListHooks(ctx, f.repo.Owner, f.repo.Name, &options)
		if err != nil {
			return nil, f.fail(call{"list the webhooks", needHooks}, resp, err)
		}
		for _, h := range list {
			hook := forge.Hook{URL: h.GetConfig().GetURL(), Active: h.GetActive(),
				Pushes: slices.Contains(h.Events, "push") || slices.Contains(h.Events, "*")}
			if code, answered := h.LastResponse["code"].(float64); answered {
				hook.Last = fmt.Sprintf("HTTP %.0f %v", code, h.LastResponse["message"])
				hook.Failed = code < 200 || code > 299
			}
			out = append(out, hook)
		}
		if resp.NextPage == 0 {
			break
		}
		options.Page = resp.NextPage
	}
	return out, nil
}
