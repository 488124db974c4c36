package gitlab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	gl "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/rampart-gitops/rampart/gitops/forge"
)

const (
	pageSize = 100 // the most that GitLab gives
	maxPages = 100
)

// What a token needs for what.
const (
	needRead  = "the token needs the scope api, and its account at least the role Reporter"
	needWrite = "the token needs the scope api, and its account at least the role Developer"
	needMerge = "the token needs the scope api, and its account has to be allowed to merge into the target branch " +
		"(protected branches)"
	needHooks = "the token needs the scope api or read_api, and its account the role Maintainer"
	needUser  = "the token needs the scope api or read_user"
)

// Forge is a project on GitLab.
type Forge struct {
	client *forge.Client
	api    *gl.Client
	repo   forge.Repository

	self    forge.Lazy[gl.User]
	project forge.Lazy[gl.Project]
}

var _ forge.Forge = (*Forge)(nil)

// New gives the forge of a repository. It sends no request. Errors: those of forge.NewClient.
func New(config forge.Config) (*Forge, error) {
	// So travel personal, project and group access tokens, and those of OAuth.
	client, err := forge.NewClient(config, func(token string) (string, string) {
		return "Authorization", "Bearer " + token
	})
	if err != nil {
		return nil, err
	}
	// Limits, time and tries are kept by the guarded client and by who asks.
	api, err := gl.NewAuthSourceClient(gl.Unauthenticated{}, gl.WithBaseURL(config.Repository.API()),
		gl.WithHTTPClient(client.HTTP), gl.WithoutRetries(), gl.WithCustomLimiter(unlimited{}))
	if err != nil {
		return nil, fmt.Errorf("address of the forge: %w", err)
	}
	return &Forge{client: client, api: api, repo: config.Repository}, nil
}

type unlimited struct{}

func (unlimited) Wait(context.Context) error { return nil }

// call is a question, for the error that it may end with.
type call struct{ op, need string }

func (f *Forge) fail(c call, resp *gl.Response, err error) error {
	failure := forge.Failure{Op: c.op, Status: status(resp), Need: c.need, Err: err}
	var refused *gl.ErrorResponse
	if errors.As(err, &refused) {
		failure.Said = said(refused.Body)
	}
	return f.client.Fail(failure)
}

// said is what GitLab said: a word, a list, or a list for each field.
func said(body []byte) string {
	var answer struct {
		Message     any    `json:"message"`
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return string(body)
	}
	parts := words(answer.Message)
	for _, s := range []string{answer.Error, answer.Description} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ": ")
}

func words(message any) (all []string) {
	switch m := message.(type) {
	case string:
		all = append(all, m)
	case []any:
		for _, one := range m {
			all = append(all, words(one)...)
		}
	case map[string]any:
		for _, field := range slices.Sorted(maps.Keys(m)) {
			all = append(all, field+" "+strings.Join(words(m[field]), ", "))
		}
	}
	return all
}

func status(resp *gl.Response) int {
	if resp == nil || resp.Response == nil {
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
	return self.Username, nil
}

// me is the account of the token, asked for once.
func (f *Forge) me(ctx context.Context) (*gl.User, error) {
	return f.self.Get(func() (*gl.User, error) {
		self, resp, err := f.api.Users.CurrentUser(gl.WithContext(ctx))
		if err != nil {
			return nil, f.fail(call{"ask whose token it is", needUser}, resp, err)
		}
		return self, nil
	})
}

// id is the number of the project, asked for once.
func (f *Forge) id(ctx context.Context) (int64, error) {
	project, err := f.project.Get(func() (*gl.Project, error) {
		return f.settings(ctx, f.repo.Owner+"/"+f.repo.Name)
	})
	if err != nil {
		return 0, err
	}
	return project.ID, nil
}

func (f *Forge) settings(ctx context.Context, id any) (*gl.Project, error) {
	project, resp, err := f.api.Projects.GetProject(id, nil, gl.WithContext(ctx))
	if err != nil {
		return nil, f.fail(call{"look at the project", needRead}, resp, err)
	}
	return project, nil
}

var states = map[forge.StatusState]gl.BuildStateValue{
	forge.StatusPending: gl.Pending, forge.StatusSuccess: gl.Success, forge.StatusFailure: gl.Failed,
	forge.StatusError: gl.Failed,
}

// SetStatus implements forge.Forge.
func (f *Forge) SetStatus(ctx context.Context, commit string, s forge.Status) error {
	id, err := f.id(ctx)
	if err != nil {
		return err
	}
	state := states[s.State]
	if state == "" {
		return fmt.Errorf("set the status %s of commit %s: no state %q", s.Context, commit, s.State)
	}
	options := &gl.SetCommitStatusOptions{State: state, Name: &s.Context,
		Description: gl.Ptr(forge.Description(s.Description))}
	if s.URL != "" {
		options.TargetURL = &s.URL
	}
	_, resp, err := f.api.Commits.SetCommitStatus(id, commit, options, gl.WithContext(ctx))
	if err == nil {
		return nil
	}
	refused := f.fail(call{fmt.Sprintf("set the status %s of commit %s", s.Context, commit), needWrite}, resp, err)
	if status(resp) != http.StatusBadRequest {
		return refused
	}
	// It was so before, which GitLab refuses.
	now, resp, err := f.api.Commits.GetCommitStatuses(id, commit, &gl.GetCommitStatusesOptions{Name: &s.Context},
		gl.WithContext(ctx))
	switch {
	case err != nil:
		return f.fail(call{fmt.Sprintf("look at the status %s of commit %s", s.Context, commit), needRead}, resp, err)
	case slices.ContainsFunc(now, func(c *gl.CommitStatus) bool {
		return c.Name == s.Context && c.Status == string(state)
	}):
		return nil
	}
	return refused
}

// says is what a status of GitLab says. One that was skipped, or waits for a person, says nothing yet.
var says = map[string]forge.StatusState{
	"created": forge.StatusPending, "waiting_for_resource": forge.StatusPending, "preparing": forge.StatusPending,
	"pending": forge.StatusPending,
	"running": forge.StatusPending, "scheduled": forge.StatusPending, "manual": forge.StatusPending,
	"skipped": forge.StatusPending,
	"success": forge.StatusSuccess, "failed": forge.StatusFailure, "canceled": forge.StatusError,
	"canceling": forge.StatusError,
}

// Statuses implements forge.Forge. Jobs of pipelines are among them. Where a name has several, of several pipelines,
// the newest counts.
func (f *Forge) Statuses(ctx context.Context, commit string) ([]forge.Status, error) {
	id, err := f.id(ctx)
	if err != nil {
		return nil, err
	}
	op := "read the statuses of commit " + commit
	newest := map[string]*gl.CommitStatus{}
	options := gl.GetCommitStatusesOptions{ListOptions: gl.ListOptions{PerPage: pageSize, Page: 1}}
	for range forge.MaxStatusPages {
		all, resp, err := f.api.Commits.GetCommitStatuses(id, commit, &options, gl.WithContext(ctx))
		if err != nil {
			return nil, f.fail(call{op, needRead}, resp, err)
		}
		for _, s := range all {
			if was := newest[s.Name]; was == nil || s.ID > was.ID {
				newest[s.Name] = s
			}
		}
		if resp.NextPage != 0 && len(all) > 0 {
			options.Page = resp.NextPage
			continue
		}
		var found []forge.Status
		for name, s := range newest {
			found = append(found, forge.Status{Context: name, State: says[s.Status], Description: s.Description,
				URL: s.TargetURL})
		}
		return forge.SortedStatuses(found), nil
	}
	return nil, forge.TooManyStatuses(op, f.repo.URL(), len(newest))
}
