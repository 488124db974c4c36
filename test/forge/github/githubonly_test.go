package github_test

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/gitops/forge/github"
	"github.com/rampart-gitops/rampart/test/forgetest"
)

const head = "rampart/prod/payments/checkout"

// open starts a GitHub with a pull request.
func open(t *testing.T) (*forgetest.Site, *github.Forge, forge.PullRequest) {
	t.Helper()
	s := site(t)
	f, ok := s.As(s.Bot.Token).(*github.Forge)
	require.True(t, ok)
	s.Branch(head)
	pr, err := f.Open(t.Context(), forge.Opening{Title: "t", Head: head, Base: "main"})
	require.NoError(t, err)
	return s, f, pr
}

// GitHub's limits: the primary one, the secondary one with and without a time, the one of GraphQL beside HTTP 200.
func TestLimitsOfGitHubAreKept(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	const secondary = "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"
	for name, c := range map[string]struct {
		status int
		header map[string]string
		body   string
		wait   time.Duration
	}{
		"primary": {http.StatusForbidden, map[string]string{
			"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": strconv.FormatInt(now.Unix()+1800, 10),
		}, `{"message": "API rate limit exceeded for installation ID 1."}`, 30 * time.Minute},
		"primary as 429": {http.StatusTooManyRequests, map[string]string{
			"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": strconv.FormatInt(now.Unix()+60, 10),
		}, `{"message": "API rate limit exceeded"}`, time.Minute},
		"secondary with a time": {http.StatusForbidden, map[string]string{"Retry-After": "45"},
			`{"message": "You have exceeded a secondary rate limit.", "documentation_url": "` + secondary + `"}`, 45 * time.Second},
		"secondary without": {http.StatusForbidden, map[string]string{"X-RateLimit-Remaining": "4711"},
			`{"message": "You have exceeded a secondary rate limit.", "documentation_url": "` + secondary + `"}`, time.Minute},
		"GraphQL": {http.StatusOK, map[string]string{
			"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": strconv.FormatInt(now.Unix()+600, 10),
		}, `{"data": null, "errors": [{"type": "RATE_LIMITED", "message": "API rate limit exceeded"}]}`, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, pr := open(t)
			clock := now
			f, err := github.New(forge.Config{
				Repository: s.Located(), Token: func(context.Context) (string, error) { return s.Bot.Token, nil }, Now: func() time.Time { return clock },
			})
			require.NoError(t, err)
			s.Server.SetBefore(func(rw http.ResponseWriter, _ *http.Request) bool {
				for key, value := range c.header {
					rw.Header().Set(key, value)
				}
				rw.WriteHeader(c.status)
				_, _ = rw.Write([]byte(c.body))
				return true
			})
			_, err = f.Login(t.Context()) // by GraphQL
			var limited *forge.RateLimitError
			require.ErrorAs(t, err, &limited)
			require.Equal(t, now.Add(c.wait).Unix(), limited.Until.Unix())
			s.Server.SetBefore(nil)
			asked := s.Server.Asked()
			_, err = f.Get(t.Context(), pr.Number)
			require.ErrorAs(t, err, &limited)
			require.Equal(t, asked, s.Server.Asked())
			clock = limited.Until
			_, err = f.Get(t.Context(), pr.Number)
			require.NoError(t, err)
		})
	}
}

// Automatic merge has to be turned on in the repository. Who may not write is not told the setting, but refused.
func TestAutomaticMergeOff(t *testing.T) {
	s, f, pr := open(t)
	s.SetRules(func(r *forgetest.Rules) { r.NoAuto, r.Checks = true, []string{"ci"} })
	order := forge.Merge{When: forge.WhenReady, Method: forge.MethodSquash, Commit: pr.HeadCommit}
	_, err := f.Merge(t.Context(), pr.Number, order)
	var unsupported *forge.UnsupportedError
	require.ErrorAs(t, err, &unsupported)
	require.Equal(t, "automatic merge", unsupported.What)
	require.Contains(t, unsupported.Need, "Allow auto-merge")
	s.SetRules(func(r *forgetest.Rules) { r.Checks = nil })
	_, err = f.Merge(t.Context(), pr.Number, order)
	require.ErrorAs(t, err, &unsupported, "also where there is nothing to wait for")
	s.SetRules(func(r *forgetest.Rules) { r.Checks = []string{"ci"} })
	// It was turned off in between: GitHub's words tell it.
	s.Server.Mangle = func(operation string, body any) any {
		if operation == "GET /repos/{owner}/{repo}" {
			body.(map[string]any)["allow_auto_merge"] = true
		}
		return body
	}
	_, err = f.Merge(t.Context(), pr.Number, order)
	require.ErrorAs(t, err, &unsupported)
	require.Equal(t, forgetest.Open, s.Look(pr.Number).State)
}

// What GitHub knows to be ready is merged without an order, which it would refuse; what it does not know yet is, when
// it refused.
func TestReadyPullRequestIsMergedWithoutAnOrder(t *testing.T) {
	s, f, pr := open(t)
	_, err := f.Login(t.Context()) // by GraphQL, once
	require.NoError(t, err)
	ordered := 0
	s.Server.SetBefore(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/api/graphql" {
			ordered++
		}
		return false
	})
	for range 2 {
		_, err := f.Get(t.Context(), pr.Number)
		require.NoError(t, err)
	}
	got, err := f.Merge(t.Context(), pr.Number, forge.Merge{When: forge.WhenReady, Method: forge.MethodMerge, Commit: pr.HeadCommit})
	require.NoError(t, err)
	require.Equal(t, forge.Merged, got)
	require.Zero(t, ordered)

	s.Branch("other")
	pr, err = f.Open(t.Context(), forge.Opening{Title: "t", Head: "other", Base: "main"})
	require.NoError(t, err)
	got, err = f.Merge(t.Context(), pr.Number, forge.Merge{When: forge.WhenReady, Method: forge.MethodMerge, Commit: pr.HeadCommit})
	require.NoError(t, err)
	require.Equal(t, forge.Merged, got)
	require.Equal(t, 1, ordered)
}

// An order to merge in another way replaces the one before.
func TestAutomaticMergeMethod(t *testing.T) {
	s, f, pr := open(t)
	s.SetRules(func(r *forgetest.Rules) { r.Checks = []string{"ci"} })
	for _, method := range []forge.Method{forge.MethodSquash, forge.MethodMerge, forge.MethodRebase} {
		got, err := f.Merge(t.Context(), pr.Number, forge.Merge{When: forge.WhenReady, Method: method, Commit: pr.HeadCommit})
		require.NoError(t, err)
		require.Equal(t, forge.Scheduled, got)
		require.Equal(t, string(method), s.Look(pr.Number).Auto.Method)
	}
}

// What changes after the adapter looked is refused by GitHub too: the methods that the repository allows, and the
// branch.
func TestMergeRefused(t *testing.T) {
	s, f, pr := open(t)
	change := func() { s.SetRules(func(r *forgetest.Rules) { r.Methods = []string{"merge"} }) }
	before := func(method, path string) { // has something change before GitHub answers a request
		s.Server.SetBefore(func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method == method && strings.HasSuffix(r.URL.Path, path) {
				change()
			}
			return false
		})
	}
	before(http.MethodPut, "/merge")
	_, err := f.Merge(t.Context(), pr.Number, forge.Merge{When: forge.Now, Method: forge.MethodSquash, Commit: pr.HeadCommit})
	var notReady *forge.NotReadyError
	require.ErrorAs(t, err, &notReady)
	require.Equal(t, "Squash merges are not allowed on this repository.", notReady.Said)
	pushed := ""
	change = func() { pushed = s.Push(head, nil) }
	_, err = f.Merge(t.Context(), pr.Number, forge.Merge{When: forge.Now, Method: forge.MethodMerge, Commit: pr.HeadCommit})
	var moved *forge.MovedError
	require.ErrorAs(t, err, &moved)

	s.SetRules(func(r *forgetest.Rules) { r.Checks = []string{"ci"} })
	before(http.MethodPost, "/graphql")
	last := pushed
	_, err = f.Merge(t.Context(), pr.Number, forge.Merge{When: forge.WhenReady, Method: forge.MethodMerge, Commit: last})
	require.ErrorAs(t, err, &moved)
	require.NotEqual(t, last, pushed)
	require.Equal(t, pushed, moved.Actual)
	require.Nil(t, s.Look(pr.Number).Auto)
}

// TestGraphQLRefused checks GraphQL's own words for a missing permission and for a missing object.
func TestGraphQLRefused(t *testing.T) {
	s, f, pr := open(t)
	s.SetRules(func(r *forgetest.Rules) { r.Checks = []string{"ci"} })
	order := forge.Merge{When: forge.WhenReady, Method: forge.MethodMerge, Commit: pr.HeadCommit}
	var refused *forge.RefusedError
	for _, token := range []string{s.ReadToken(s.Bot), s.Reader.Token} {
		_, err := s.As(token).Merge(t.Context(), pr.Number, order)
		require.ErrorAs(t, err, &refused)
		require.Equal(t, forge.ReasonForbidden, refused.Reason)
		require.Contains(t, refused.Need, "Contents, write")
	}
	s.Server.Mangle = func(operation string, body any) any {
		if operation == "GET /repos/{owner}/{repo}/pulls/{pull_number}" {
			body.(map[string]any)["node_id"] = "PR_99"
		}
		return body
	}
	_, err := f.Merge(t.Context(), pr.Number, order)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, forge.ReasonNotFound, refused.Reason)
}

// Of reviewers that can be asked, all are, at once.
func TestReviewersAtOnce(t *testing.T) {
	s, f, _ := open(t)
	s.Branch("other")
	asked := s.Server.Asked()
	pr, err := f.Open(t.Context(), forge.Opening{
		Title: "t", Head: "other", Base: "main", Reviewers: []string{s.Person.Login, s.Reader.Login}, Teams: []string{"platform"},
	})
	require.NoError(t, err)
	require.Equal(t, 4, s.Server.Asked()-asked, "open, look for another, ask, look again")
	require.Len(t, s.Look(pr.Number).Reviewers, 2)
	require.Equal(t, []string{"platform"}, s.Look(pr.Number).Teams)
	s.Branch("own")
	_, err = f.Open(t.Context(), forge.Opening{Title: "t", Head: "own", Base: "main", Reviewers: []string{s.Bot.Login}})
	require.ErrorContains(t, err, "Review cannot be requested from pull request author")
}
