package gitlab_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/gitops/forge/gitlab"
	"github.com/rampart-gitops/rampart/test/forgetest"
)

const head = "rampart/prod/payments/checkout"

// open starts a GitLab with a merge request.
func open(t *testing.T) (*forgetest.Site, *gitlab.Forge, forge.PullRequest) {
	t.Helper()
	s := site(t)
	f, ok := s.As(s.Bot.Token).(*gitlab.Forge)
	require.True(t, ok)
	s.Branch(head)
	pr, err := f.Open(t.Context(), forge.Opening{Title: "t", Head: head, Base: "main"})
	require.NoError(t, err)
	return s, f, pr
}

// No line of what the bot writes is a command to GitLab.
func TestTextsAreNoCommands(t *testing.T) {
	s, f, pr := open(t)
	require.NoError(t, f.Update(t.Context(), pr.Number, forge.Change{Body: "by /merge\n/merge\n", Comment: "/close"}))
	p := s.Look(pr.Number)
	require.Equal(t, forgetest.Open, p.State)
	require.Nil(t, p.Auto)
	require.Equal(t, `\/close`, p.Comments[0].Body)
}

// A merge request that a person made to be squashed is not, where the bot is to merge it otherwise; and the other way
// round.
func TestSquashAsAsked(t *testing.T) {
	s, f, pr := open(t)
	s.World.Edit(pr.Number, func(p *forgetest.Pull) { p.Squash = true })
	_, err := f.Merge(t.Context(), pr.Number, forge.Merge{When: forge.Now, Method: forge.MethodMerge, Commit: pr.HeadCommit})
	require.NoError(t, err)
	p := s.Look(pr.Number)
	require.Empty(t, p.SquashCommit)
	require.Equal(t, []string{p.MergeCommit, pr.HeadCommit}, []string{s.Git.Tip("main"), s.Git.Git("rev-parse", "main^2")})

	s.Branch("other")
	pr, err = f.Open(t.Context(), forge.Opening{Title: "t", Head: "other", Base: "main"})
	require.NoError(t, err)
	s.Push("other", nil)
	d, err := f.Get(t.Context(), pr.Number)
	require.NoError(t, err)
	_, err = f.Merge(t.Context(), pr.Number, forge.Merge{When: forge.Now, Method: forge.MethodSquash, Commit: d.HeadCommit})
	require.NoError(t, err)
	p = s.Look(pr.Number)
	require.NotEmpty(t, p.SquashCommit)
	require.Equal(t, p.SquashCommit, s.Git.Git("rev-parse", "main^2"))
}

// A fast-forward needs a branch that is ahead: the bot makes it anew, GitLab is not asked to rebase what people looked
// at.
func TestNeedsRebase(t *testing.T) {
	s, f, pr := open(t)
	s.Allow(forge.MethodRebase)
	s.Push("main", nil)
	_, err := f.Get(t.Context(), pr.Number)
	require.NoError(t, err)
	_, err = f.Merge(t.Context(), pr.Number, forge.Merge{When: forge.Now, Method: forge.MethodRebase, Commit: pr.HeadCommit})
	var notReady *forge.NotReadyError
	require.ErrorAs(t, err, &notReady)
	require.Contains(t, notReady.Said, "rebased")
	require.Equal(t, forgetest.Open, s.Look(pr.Number).State)
}

// An automatic merge waits for a pipeline that runs, and does not merge over one that failed, if nothing requires one
// too.
func TestAutomaticMergeWaitsForThePipeline(t *testing.T) {
	s, f, pr := open(t)
	status := func(state forge.StatusState) {
		t.Helper()
		require.NoError(t, f.SetStatus(t.Context(), pr.HeadCommit, forge.Status{Context: "ci", State: state}))
	}
	_, err := f.Get(t.Context(), pr.Number)
	require.NoError(t, err)
	order := forge.Merge{When: forge.WhenReady, Method: forge.MethodMerge, Commit: pr.HeadCommit}
	status(forge.StatusFailure)
	_, err = f.Merge(t.Context(), pr.Number, order)
	var notReady *forge.NotReadyError
	require.ErrorAs(t, err, &notReady)
	status(forge.StatusPending)
	got, err := f.Merge(t.Context(), pr.Number, order)
	require.NoError(t, err)
	require.Equal(t, forge.Scheduled, got)
	require.Equal(t, forgetest.Open, s.Look(pr.Number).State)
	status(forge.StatusSuccess)
	require.Equal(t, forgetest.Merged, s.Look(pr.Number).State)
}

// What moved after it was looked at is refused by GitLab too.
func TestMovedMeanwhile(t *testing.T) {
	s, f, pr := open(t)
	s.Server.SetBefore(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/merge") {
			s.Push(head, nil)
		}
		return false
	})
	_, err := f.Merge(t.Context(), pr.Number, forge.Merge{When: forge.Now, Method: forge.MethodMerge, Commit: pr.HeadCommit})
	var moved *forge.MovedError
	require.ErrorAs(t, err, &moved)
	require.Equal(t, forgetest.Open, s.Look(pr.Number).State)
}

// Reviewers that GitLab left out without a word are told.
func TestReviewersLeftOut(t *testing.T) {
	s, f, _ := open(t)
	s.SetRules(func(r *forgetest.Rules) { r.Reviewers = 1 })
	s.Branch("other")
	pr, err := f.Open(t.Context(), forge.Opening{Title: "t", Head: "other", Base: "main", Reviewers: []string{s.Person.Login, s.Reader.Login}})
	var partial *forge.PartialError
	require.ErrorAs(t, err, &partial)
	require.Len(t, partial.Failed, 1)
	require.ErrorContains(t, partial.Failed[0], "ask [reader] for a review")
	require.ErrorContains(t, partial.Failed[0], "free editions take only one")
	require.Equal(t, []*forgetest.User{s.Person}, s.Look(pr.Number).Reviewers)

	s.SetRules(func(r *forgetest.Rules) { r.Reviewers = 0 })
	require.NoError(t, f.Update(t.Context(), pr.Number, forge.Change{Reviewers: []string{s.Reader.Login}}))
	require.NoError(t, f.Update(t.Context(), pr.Number, forge.Change{Reviewers: []string{s.Reader.Login}}))
	require.ElementsMatch(t, []*forgetest.User{s.Person, s.Reader}, s.Look(pr.Number).Reviewers, "beside those who were asked")
}

func TestLabelWithComma(t *testing.T) {
	s, f, pr := open(t)
	err := f.Update(t.Context(), pr.Number, forge.Change{Label: []string{"a,b"}})
	require.ErrorContains(t, err, "no comma")
	require.Empty(t, s.Look(pr.Number).Labels)
}

// While GitLab merges, it is neither open nor merged to the world. It is open here.
func TestLockedMergeRequestIsOpen(t *testing.T) {
	s, f, pr := open(t)
	s.Server.Mangle = func(_ string, body any) any {
		if fields, is := body.(map[string]any); is && fields["iid"] != nil && fields["sha"] != nil {
			fields["state"] = "locked"
		}
		return body
	}
	d, err := f.Get(t.Context(), pr.Number)
	require.NoError(t, err)
	require.Equal(t, forge.StateOpen, d.State)
	_, err = f.Merge(t.Context(), pr.Number, forge.Merge{When: forge.Now, Method: forge.MethodMerge, Commit: pr.HeadCommit})
	require.ErrorContains(t, err, "it is locked")
}

// A merge that GitLab takes and does not do is not one.
func TestMergeNotDone(t *testing.T) {
	s, f, pr := open(t)
	s.Server.Mangle = func(operation string, body any) any {
		if fields, is := body.(map[string]any); is && operation == http.MethodPut+" /projects/{id}/merge_requests/{merge_request_iid}/merge" {
			fields["state"], fields["merge_error"] = "opened", "a hook refused it"
		}
		return body
	}
	_, err := f.Merge(t.Context(), pr.Number, forge.Merge{When: forge.Now, Method: forge.MethodMerge, Commit: pr.HeadCommit})
	var notReady *forge.NotReadyError
	require.ErrorAs(t, err, &notReady)
	require.Equal(t, "a hook refused it", notReady.Said)
}
