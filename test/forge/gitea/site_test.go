package gitea_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/gitops/forge/gitea"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/test/forgetest"
	"github.com/rampart-gitops/rampart/test/giteatest"
)

// place is a repository of an organization on a real Gitea.
type place struct {
	*testing.T
	server *giteatest.Server
	owner  giteatest.User
	repo   giteatest.Repository
	git    *gittest.Repo
	users  map[string]giteatest.User
	rules  forgetest.Rules
	front  *front
	files  int
}

var _ forgetest.Place = (*place)(nil)

// site is a repository that people use past the front, and the adapter through it.
func site(t *testing.T) *forgetest.Site {
	t.Helper()
	s := giteatest.Start(t)
	p := &place{T: t, server: s, owner: s.User(t, "owner"), users: map[string]giteatest.User{}}
	p.repo = s.Repository(t, s.Organization(t, p.owner))
	team, _, err := p.owner.Client(t).CreateTeam(p.repo.Owner, sdk.CreateTeamOption{
		Name: "platform", Permission: sdk.AccessModeWrite, Units: []sdk.RepoUnitType{sdk.RepoUnitCode, sdk.RepoUnitPulls},
	})
	require.NoError(t, err)
	_, err = p.owner.Client(t).AddTeamRepository(team.ID, p.repo.Owner, p.repo.Name)
	require.NoError(t, err)
	p.front, p.git = new(front), gittest.OpenRepo(t, p.repo.Dir())
	return &forgetest.Site{
		T: t, Place: p, URL: s.URL, Front: p.front, Kind: forge.KindGitea, Teams: true, Commits: true,
		Cast: forgetest.Cast{
			Owner: p.repo.Owner, Name: p.repo.Name, Git: p.git,
			Bot: p.NewUser("bot", forgetest.Writes), Person: p.NewUser("person", forgetest.Writes), Reader: p.NewUser("reader", forgetest.Reads),
		},
		Make: func(c forge.Config) (forge.Forge, error) {
			c.HTTP = &http.Client{Transport: p.front}
			return gitea.New(c)
		},
	}
}

// This is what every adapter has to pass, on a real Gitea.
func TestForgePassesTheSuite(t *testing.T) {
	testneed.Long(t)
	forgetest.Run(t, site)
}

func (p *place) Now() time.Time { return time.Now() }

// Later waits for the next second but one, since Gitea counts in seconds.
func (p *place) Later() {
	from := time.Now().Unix()
	require.Eventually(p, func() bool { return time.Now().Unix() > from+1 }, patience, tick)
}

func (p *place) NewUser(login string, role forgetest.Role) *forgetest.User {
	u := p.server.User(p, login)
	p.users[u.Login] = u
	switch role {
	case forgetest.Writes:
		p.repo.Collaborators(p, u)
	case forgetest.Reads:
		p.repo.Collaborator(p, u, sdk.AccessModeRead)
	}
	return &forgetest.User{Login: u.Login, Token: u.Token, Write: role == forgetest.Writes, Guest: role == forgetest.Stranger}
}

func (p *place) ReadToken(u *forgetest.User) string {
	return p.users[u.Login].NewToken(p, "read:repository", "read:issue", "read:user")
}

func (p *place) Remove(u *forgetest.User) {
	_, err := p.server.Admin(p).DeleteCollaborator(p.repo.Owner, p.repo.Name, u.Login)
	require.NoError(p, err)
	_, err = p.server.Admin(p).AdminDeleteUser(u.Login)
	require.NoError(p, err)
}

// as is what somebody does.
func (p *place) as(u *forgetest.User) *sdk.Client { return p.users[u.Login].Client(p) }

func (p *place) anybody() *sdk.Client { return p.owner.Client(p) }

func (p *place) SetRules(change func(*forgetest.Rules)) {
	was := p.rules
	change(&p.rules)
	is := p.rules
	p.front.limit(is.MaxPage)
	if is.Private != was.Private {
		_, _, err := p.anybody().EditRepo(p.repo.Owner, p.repo.Name, sdk.EditRepoOption{Private: &is.Private})
		require.NoError(p, err)
	}
	if slices.Equal(is.Checks, was.Checks) && slices.Equal(is.Mergers, was.Mergers) && is.Approvals == was.Approvals {
		return
	}
	_, _ = p.server.Admin(p).DeleteBranchProtection(p.repo.Owner, p.repo.Name, "main") // there may be none
	p.repo.Protect(p, sdk.CreateBranchProtectionOption{
		RuleName: "main", EnablePush: true, EnableStatusCheck: len(is.Checks) > 0, StatusCheckContexts: is.Checks, RequiredApprovals: int64(is.Approvals),
		EnableMergeWhitelist: len(is.Mergers) > 0, MergeWhitelistUsernames: is.Mergers,
	})
}

func (p *place) Allow(method forge.Method) {
	yes, merge, squash, rebase := true, method == forge.MethodMerge, method == forge.MethodSquash, method == forge.MethodRebase
	_, _, err := p.anybody().EditRepo(p.repo.Owner, p.repo.Name, sdk.EditRepoOption{
		HasPullRequests: &yes, AllowMerge: &merge, AllowSquash: &squash, AllowRebase: &rebase, AllowManualMerge: &yes, AutodetectManualMerge: &yes,
	})
	require.NoError(p, err)
}

func (p *place) Rename(owner, name string) string {
	to := p.server.Organization(p, p.owner)
	name += "-" + to
	_, _, err := p.anybody().TransferRepo(p.repo.Owner, p.repo.Name, sdk.TransferRepoOption{NewOwner: to})
	require.NoError(p, err)
	_, _, err = p.anybody().EditRepo(to, p.repo.Name, sdk.EditRepoOption{Name: &name})
	require.NoError(p, err)
	p.repo.Owner, p.repo.Name = to, name
	p.git.Dir = p.repo.Dir()
	return to + "/" + name
}

func (p *place) anyPath() string {
	p.files++
	return fmt.Sprintf("files/%d", p.files)
}

func (p *place) writer() giteatest.User {
	for _, u := range p.users {
		if strings.HasPrefix(u.Login, "person") {
			return u
		}
	}
	panic("there is a person in every cast")
}

func (p *place) Branch(name string) string {
	return p.repo.Commit(p, p.writer(), giteatest.Commit{Branch: name, From: "main", Path: p.anyPath(), Text: "x\n"})
}

func (p *place) Push(branch string, files map[string]string) (commit string) {
	if files == nil {
		files = map[string]string{p.anyPath(): "x\n"}
	}
	for path, text := range files {
		commit = p.repo.Commit(p, p.writer(), giteatest.Commit{Branch: branch, Path: path, Text: text})
	}
	return commit
}

// Advance pushes, as Git does, where Gitea looks for what that merged.
func (p *place) Advance(commit string) {
	p.Allow(forge.MethodMerge)
	dir := filepath.Join(p.TempDir(), "clone")
	for _, args := range [][]string{
		{"clone", "-q", "--bare", p.repo.CloneURL(p.writer()), dir}, {"-C", dir, "push", "-q", "origin", commit + ":refs/heads/main"},
	} {
		cmd := exec.Command("git", args...)
		cmd.Env = gittest.Env()
		out, err := cmd.CombinedOutput()
		require.NoError(p, err, "git %v: %s", args, out)
	}
}

func (p *place) DeleteBranch(name string) {
	ok, _, err := p.writer().Client(p).DeleteRepoBranch(p.repo.Owner, p.repo.Name, name)
	require.NoError(p, err)
	require.True(p, ok)
}

func (p *place) edit(by *sdk.Client, number int64, option sdk.EditPullRequestOption) {
	_, _, err := by.EditPullRequest(p.repo.Owner, p.repo.Name, number, option)
	require.NoError(p, err)
}

func (p *place) ClosePull(number int64, by *forgetest.User) {
	closed := sdk.StateClosed
	p.edit(p.as(by), number, sdk.EditPullRequestOption{State: &closed})
}

func (p *place) Reopen(number int64) {
	open := sdk.StateOpen
	p.edit(p.anybody(), number, sdk.EditPullRequestOption{State: &open})
}

func (p *place) MergePull(number int64, by *forgetest.User, method forge.Method) {
	ok, _, err := p.as(by).MergePullRequest(p.repo.Owner, p.repo.Name, number, sdk.MergePullRequestOption{Style: sdk.MergeStyle(method)})
	require.NoError(p, err)
	require.True(p, ok)
}

func (p *place) Rewrite(number int64, body string) {
	p.edit(p.anybody(), number, sdk.EditPullRequestOption{Body: &body})
}

func (p *place) SetDraft(number int64, draft bool) {
	pr, _, err := p.anybody().GetPullRequest(p.repo.Owner, p.repo.Name, number)
	require.NoError(p, err)
	title := strings.TrimPrefix(pr.Title, "WIP: ")
	if draft {
		title = "WIP: " + title
	}
	p.edit(p.anybody(), number, sdk.EditPullRequestOption{Title: title})
}

func (p *place) AddLabel(number int64, name string) {
	l, _, err := p.anybody().CreateLabel(p.repo.Owner, p.repo.Name, sdk.CreateLabelOption{Name: name, Color: "#ff0000"})
	require.NoError(p, err)
	_, _, err = p.anybody().AddIssueLabels(p.repo.Owner, p.repo.Name, number, sdk.IssueLabelsOption{Labels: []int64{l.ID}})
	require.NoError(p, err)
}

func (p *place) Say(number int64, by *forgetest.User, state string) {
	if state == "DISMISSED" {
		reviews, _, err := p.anybody().ListPullReviews(p.repo.Owner, p.repo.Name, number, sdk.ListPullReviewsOptions{})
		require.NoError(p, err)
		for _, r := range slices.Backward(reviews) {
			if r.Reviewer.UserName == by.Login && r.State != sdk.ReviewStateComment {
				_, err = p.anybody().DismissPullReview(p.repo.Owner, p.repo.Name, number, r.ID, sdk.DismissPullReviewOptions{Message: "no"})
				require.NoError(p, err)
				return
			}
		}
		require.Fail(p, "there is no review to be dismissed")
	}
	kind := map[string]sdk.ReviewStateType{
		"APPROVED": sdk.ReviewStateApproved, "CHANGES_REQUESTED": sdk.ReviewStateRequestChanges, "COMMENTED": sdk.ReviewStateComment,
	}[state]
	_, _, err := p.as(by).CreatePullReview(p.repo.Owner, p.repo.Name, number, sdk.CreatePullReviewOptions{State: kind, Body: "b"})
	require.NoError(p, err)
}

func (p *place) Check(commit, context, state string) {
	_, _, err := p.writer().Client(p).CreateStatus(p.repo.Owner, p.repo.Name, commit, sdk.CreateStatusOption{State: sdk.StatusState(state), Context: context})
	require.NoError(p, err)
}

func (p *place) OpenFork(branch string) int64 {
	stranger := p.server.User(p, "stranger")
	_, _, err := stranger.Client(p).CreateFork(p.repo.Owner, p.repo.Name, sdk.CreateForkOption{})
	require.NoError(p, err)
	theirs := p.repo
	theirs.Owner = stranger.Login
	theirs.Commit(p, stranger, giteatest.Commit{Branch: branch, Path: "evil", Text: "x"}) // a fork has all branches
	made, _, err := stranger.Client(p).CreatePullRequest(p.repo.Owner, p.repo.Name, sdk.CreatePullRequestOption{
		Head: stranger.Login + ":" + branch, Base: "main", Title: "not yours",
	})
	require.NoError(p, err)
	require.Equal(p, branch, made.Head.Name)
	return made.Index
}

func (p *place) Look(number int64) forgetest.Pull {
	pr, _, err := p.anybody().GetPullRequest(p.repo.Owner, p.repo.Name, number)
	require.NoError(p, err)
	out := forgetest.Pull{Number: int(number), State: forgetest.Open, Draft: pr.Draft}
	switch {
	case pr.HasMerged:
		out.State = forgetest.Merged
	case pr.State == sdk.StateClosed:
		out.State = forgetest.Closed
	}
	for _, l := range pr.Labels {
		out.Labels = append(out.Labels, l.Name)
	}
	for _, u := range pr.RequestedReviewers {
		out.Reviewers = append(out.Reviewers, &forgetest.User{Login: u.UserName})
	}
	for _, team := range pr.RequestedReviewersTeams {
		out.Teams = append(out.Teams, team.Name)
	}
	comments, _, err := p.anybody().ListIssueComments(p.repo.Owner, p.repo.Name, number, sdk.ListIssueCommentOptions{})
	require.NoError(p, err)
	for _, c := range comments {
		out.Comments = append(out.Comments, forgetest.Comment{By: &forgetest.User{Login: c.Poster.UserName}, Body: c.Body})
	}
	return out
}

func (p *place) Status(commit, context string) forgetest.Status {
	all, _, err := p.anybody().GetCombinedStatus(p.repo.Owner, p.repo.Name, commit)
	require.NoError(p, err)
	for _, s := range all.Statuses {
		if s.Context == context {
			return forgetest.Status{Commit: commit, Context: context, State: string(s.State), Description: s.Description, URL: s.TargetURL}
		}
	}
	return forgetest.Status{}
}

// front is between the adapter and Gitea. It counts, may answer instead, and asks for no more of a list than Gitea is
// set to give.
type front struct {
	mu     sync.Mutex
	before func(http.ResponseWriter, *http.Request) bool
	asked  int
	most   int
}

var _ forgetest.Front = (*front)(nil)

func (f *front) SetBefore(before func(http.ResponseWriter, *http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before = before
}

func (f *front) Asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

func (f *front) limit(most int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.most = most
}

// RoundTrip implements http.RoundTripper.
func (f *front) RoundTrip(req *http.Request) (*http.Response, error) {
	f.mu.Lock()
	f.asked++
	before, most := f.before, f.most
	f.mu.Unlock()
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	if before != nil {
		answer := httptest.NewRecorder()
		if before(answer, req) {
			if req.Body != nil {
				_ = req.Body.Close()
			}
			resp := answer.Result()
			resp.Request = req
			return resp, nil
		}
	}
	query := req.URL.Query()
	if n, err := strconv.Atoi(query.Get("limit")); err == nil && most > 0 && n > most {
		req = req.Clone(req.Context())
		query.Set("limit", strconv.Itoa(most))
		req.URL.RawQuery = query.Encode()
	}
	return http.DefaultTransport.RoundTrip(req)
}
