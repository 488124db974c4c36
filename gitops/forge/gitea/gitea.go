package gitea

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/rampart-gitops/rampart/gitops/forge"
)

const (
	pageSize = 50 // the most that Gitea gives, unless it is configured otherwise
	maxPages = 200
)

// What a token needs for what.
const (
	needRead = "the token needs the scope read:repository, and its account the right to read code and " +
		"pull requests"
	needWrite     = "the token needs the scope write:repository, and its account the right to write to the repository"
	needIssue     = "the token needs the scope write:issue, and its account the right to write pull requests"
	needIssueRead = "the token needs the scope read:issue"
	needUser      = "the token needs the scope read:user"
	needAdmin     = "the token needs the scope read:repository, and its account to administer the repository"
	needMerge     = needWrite +
		", and it has to be allowed to merge into the base branch (branch protection: whitelist for merging)"
)

// Forge is a repository on a Gitea.
type Forge struct {
	client *forge.Client
	repo   forge.Repository

	self forge.Lazy[sdk.User]
}

var _ forge.Forge = (*Forge)(nil)

// New gives the forge of a repository. It sends no request. Errors: those of forge.NewClient.
func New(config forge.Config) (*Forge, error) {
	client, err := forge.NewClient(config, func(token string) (string, string) {
		return "Authorization", "token " + token
	})
	if err != nil {
		return nil, err
	}
	return &Forge{client: client, repo: config.Repository}, nil
}

// api is the library for one call: it keeps the context in the client. It asks no version, since all that is used here
// is older than any Gitea that is still kept; so nothing can fail.
func (f *Forge) api(ctx context.Context) *sdk.Client {
	client, err := sdk.NewClient(f.repo.Base, sdk.SetGiteaVersion(""), sdk.SetHTTPClient(f.client.HTTP),
		sdk.SetContext(ctx))
	if err != nil {
		panic(err)
	}
	return client
}

// call is a question, for the error that it may end with.
type call struct{ op, need string }

func (f *Forge) fail(c call, resp *sdk.Response, err error) error {
	failure := forge.Failure{Op: c.op, Need: c.need, Err: err}
	if resp != nil {
		failure.Status = resp.StatusCode
	}
	if err != nil && strings.HasPrefix(err.Error(), "unknown API error") { // the library's, which repeats the request
		failure.Said = http.StatusText(resp.StatusCode)
	}
	return f.client.Fail(failure)
}

// Login implements forge.Forge.
func (f *Forge) Login(ctx context.Context) (string, error) {
	self, err := f.me(ctx)
	if err != nil {
		return "", err
	}
	return self.UserName, nil
}

// me is the account of the token, asked for once.
func (f *Forge) me(ctx context.Context) (*sdk.User, error) {
	return f.self.Get(func() (*sdk.User, error) {
		self, resp, err := f.api(ctx).GetMyUserInfo()
		if err != nil {
			return nil, f.fail(call{"ask whose token it is", needUser}, resp, err)
		}
		return self, nil
	})
}

// SetStatus implements forge.Forge.
func (f *Forge) SetStatus(ctx context.Context, commit string, s forge.Status) error {
	_, resp, err := f.api(ctx).CreateStatus(f.repo.Owner, f.repo.Name, commit, sdk.CreateStatusOption{
		State: sdk.StatusState(s.State), Context: s.Context, Description: forge.Description(s.Description),
		TargetURL: s.URL,
	})
	if err == nil {
		return nil
	}
	if resp != nil && resp.StatusCode == http.StatusInternalServerError {
		// It has no better word for a commit that is not there.
		if _, again, missing := f.api(ctx).GetSingleCommit(f.repo.Owner, f.repo.Name, commit); missing != nil &&
			again != nil && again.StatusCode == http.StatusNotFound {
			resp, err = again, missing
		}
	}
	return f.fail(call{fmt.Sprintf("set the status %s of commit %s", s.Context, commit), needWrite}, resp, err)
}

// states are those of Gitea's statuses. A forge.Status has no state for a warning. A warning counts as a failure,
// not as pending: nothing waits for it.
var states = map[sdk.StatusState]forge.StatusState{
	sdk.StatusPending: forge.StatusPending, sdk.StatusSuccess: forge.StatusSuccess,
	sdk.StatusFailure: forge.StatusFailure,
	sdk.StatusError:   forge.StatusError, sdk.StatusWarning: forge.StatusFailure,
}

// Statuses implements forge.Forge. The library gives the first page alone, and nothing in place of an answer that it
// cannot read. Gitea does not say how many there are, and may be set to give fewer than it is asked for: the end is an
// empty page.
func (f *Forge) Statuses(ctx context.Context, commit string) ([]forge.Status, error) {
	op := "read the statuses of commit " + commit
	var found []forge.Status
	for page := 1; page <= forge.MaxStatusPages; page++ {
		status, answer, err := f.request(ctx, http.MethodGet,
			fmt.Sprintf("commits/%s/status?page=%d&limit=%d", url.PathEscape(commit), page, pageSize), nil)
		failure := forge.Failure{Op: op, Status: status, Need: needRead, Err: err}
		if err != nil || status != http.StatusOK {
			failure.Said = message(answer)
			return nil, f.client.Fail(failure)
		}
		var combined struct {
			Statuses []*sdk.Status `json:"statuses"`
		}
		if len(answer) > 0 { // a commit that has none has an empty answer in older versions
			if failure.Err = json.Unmarshal(answer, &combined); failure.Err != nil {
				return nil, f.client.Fail(failure)
			}
		}
		for _, s := range combined.Statuses {
			if s != nil {
				found = append(found, forge.Status{Context: s.Context, State: states[s.State],
					Description: s.Description, URL: s.TargetURL})
			}
		}
		if len(combined.Statuses) == 0 {
			return forge.SortedStatuses(found), nil
		}
	}
	return nil, forge.TooManyStatuses(op, f.repo.URL(), len(found))
}
