package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	gh "github.com/google/go-github/v88/github"

	"github.com/rampart-gitops/rampart/gitops/forge"
)

const (
	pageSize = 100 // the most that GitHub gives
	maxPages = 100
)

// What a token needs for what.
const (
	needRead  = "the token needs to read pull requests (App or fine-grained: Pull requests, read; classic: repo)"
	needWrite = "the token needs to write pull requests (App or fine-grained: Pull requests, write; classic: repo), " +
		"and its account to write to the repository"
	needIssues = "the token needs Issues, read and write (App or fine-grained; classic: repo)"
	needTeams  = "the account has to be able to see its teams (App: organization permission Members, read; " +
		"classic: read:org)"
	needMerge = "the token needs Contents, write (App or fine-grained; classic: repo), and its account has to be " +
		"allowed to merge into the base branch"
	needStatus = "the token needs Commit statuses, write (App or fine-grained; classic: repo:status)"
	needRepo   = "the token needs to read the repository (App or fine-grained: Contents, read; classic: repo)"
	needHooks  = "the token needs Webhooks, read (App or fine-grained; classic: admin:repo_hook), and its account to " +
		"administer the repository"
	needMeta = "the token needs Metadata, read"
)

// Forge is a repository on GitHub.
type Forge struct {
	client *forge.Client
	api    *gh.Client
	repo   forge.Repository

	self forge.Lazy[account]
}

var _ forge.Forge = (*Forge)(nil)

// New gives the forge of a repository. It sends no request. Errors: those of forge.NewClient.
func New(config forge.Config) (*Forge, error) {
	client, err := forge.NewClient(config, func(token string) (string, string) {
		return "Authorization", "Bearer " + token
	})
	if err != nil {
		return nil, err
	}
	base := config.Repository.API() + "/"
	// Limits are kept by the guarded client, by its own clock.
	api, err := gh.NewClient(gh.WithHTTPClient(client.HTTP), gh.WithURLs(&base, &base), gh.WithDisableRateLimitCheck())
	if err != nil {
		return nil, fmt.Errorf("address of the forge: %w", err)
	}
	return &Forge{client: client, api: api, repo: config.Repository}, nil
}

// call is a question, for the error that it may end with.
type call struct{ op, need string }

func (f *Forge) fail(c call, resp *gh.Response, err error) error {
	failure := forge.Failure{Op: c.op, Status: status(resp), Need: c.need, Err: err}
	var (
		second  *gh.AbuseRateLimitError
		refused *gh.ErrorResponse
	)
	switch {
	case errors.As(err, &second):
		return f.client.Pause(second.Response)
	case errors.As(err, &refused):
		failure.Said = said(refused)
	}
	return f.client.Fail(failure)
}

// said is what GitHub said, without the address that it was asked at.
func said(refused *gh.ErrorResponse) string {
	parts := []string{cmp.Or(refused.Message, http.StatusText(refused.Response.StatusCode))}
	for _, e := range refused.Errors {
		parts = append(parts, cmp.Or(e.Message, strings.TrimSpace(e.Field+" "+strings.ReplaceAll(e.Code, "_", " "))))
	}
	return strings.Join(parts, ": ")
}

func status(resp *gh.Response) int {
	if resp == nil {
		return 0
	}
	return resp.StatusCode
}

// Login implements forge.Forge.
func (f *Forge) Login(ctx context.Context) (string, error) {
	self, err := f.me(ctx)
	if err != nil {
		return "", err
	}
	return self.Login, nil
}

// account is who a token belongs to.
type account struct {
	Login      string `json:"login"`
	DatabaseID int64  `json:"databaseId"`
}

const askViewer = `query { viewer { login databaseId } }`

// me is the account of the token, asked for once.
func (f *Forge) me(ctx context.Context) (*account, error) {
	return f.self.Get(func() (*account, error) {
		var answer struct {
			Viewer account `json:"viewer"`
		}
		err := f.graphql(ctx, call{"ask whose token it is", needMeta}, question{Query: askViewer}, &answer)
		return &answer.Viewer, err
	})
}

// SetStatus implements forge.Forge.
func (f *Forge) SetStatus(ctx context.Context, commit string, s forge.Status) error {
	status := gh.RepoStatus{State: gh.Ptr(string(s.State)), Context: &s.Context,
		Description: gh.Ptr(forge.Description(s.Description))}
	if s.URL != "" {
		status.TargetURL = &s.URL
	}
	_, resp, err := f.api.Repositories.CreateStatus(ctx, f.repo.Owner, f.repo.Name, commit, status)
	if err != nil {
		return f.fail(call{fmt.Sprintf("set the status %s of commit %s", s.Context, commit), needStatus}, resp, err)
	}
	return nil
}

// states are those of GitHub's statuses.
var states = map[string]forge.StatusState{
	"pending": forge.StatusPending, "success": forge.StatusSuccess, "failure": forge.StatusFailure,
	"error": forge.StatusError,
}

// Statuses implements forge.Forge. Check runs are not among them.
func (f *Forge) Statuses(ctx context.Context, commit string) ([]forge.Status, error) {
	op := "read the statuses of commit " + commit
	var found []forge.Status
	options := gh.ListOptions{PerPage: pageSize}
	for range forge.MaxStatusPages {
		combined, resp, err := f.api.Repositories.GetCombinedStatus(ctx, f.repo.Owner, f.repo.Name, commit, &options)
		if err != nil {
			return nil, f.fail(call{op, needStatus}, resp, err)
		}
		for _, s := range combined.Statuses {
			found = append(found, forge.Status{Context: s.GetContext(), State: states[s.GetState()],
				Description: s.GetDescription(), URL: s.GetTargetURL()})
		}
		if resp.NextPage == 0 || len(combined.Statuses) == 0 {
			return forge.SortedStatuses(found), nil
		}
		options.Page = resp.NextPage
	}
	return nil, forge.TooManyStatuses(op, f.repo.URL(), len(found))
}
