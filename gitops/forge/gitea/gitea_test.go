package gitea

import (
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/forge"
)

func TestOpen(t *testing.T) {
	w := newWorld(t)
	login, err := w.forge.Login(t.Context())
	require.NoError(t, err)
	require.Equal(t, w.bot.Login, login)

	commit := w.branch(head)
	pr, err := w.forge.Open(t.Context(), forge.Opening{
		Title: "Ramp payments/checkout to 25%", Body: "**why**\n", Head: head, Base: "main", Draft: true,
		Labels: []string{"rampart", "env/prod"}, Reviewers: []string{w.person.Login},
	})
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), pr.Updated, time.Minute)
	want := forge.PullRequest{
		Number: 1, URL: w.repo.URL() + "/pulls/1", Title: "Ramp payments/checkout to 25%", Body: "**why**\n", State: forge.StateOpen, Draft: true,
		Head: head, Base: "main", Labels: []string{"env/prod", "rampart"}, HeadCommit: commit,
		Author: forge.Person{Login: w.bot.Login, Self: true}, Updated: pr.Updated,
	}
	require.Empty(t, cmp.Diff(want, pr))

	list, err := w.forge.List(t.Context(), forge.Filter{Head: head, Open: true})
	require.NoError(t, err)
	require.Empty(t, cmp.Diff([]forge.PullRequest{want}, list))
	seen, err := w.as(w.person.Token).List(t.Context(), forge.Filter{})
	require.NoError(t, err)
	require.Equal(t, forge.Person{Login: w.bot.Login}, seen[0].Author, "the person is not the bot")
	asked, _, err := w.person.Client(t).GetPullRequest(w.repo.Owner, w.repo.Name, 1)
	require.NoError(t, err)
	require.Len(t, asked.RequestedReviewers, 1)
	require.Equal(t, w.person.Login, asked.RequestedReviewers[0].UserName)

	// A draft is mergeable when it is none any more; its title is changed without making it one or none.
	require.NoError(t, w.forge.Update(t.Context(), 1, forge.Change{Title: "Ramp payments/checkout to 50%"}))
	require.Equal(t, "Ramp payments/checkout to 50%", w.get(1).Title)
	require.True(t, w.get(1).Draft)
	_, _, err = w.person.Client(t).EditPullRequest(w.repo.Owner, w.repo.Name, 1, sdk.EditPullRequestOption{Title: "Ramp it"})
	require.NoError(t, err)
	require.NoError(t, w.forge.Update(t.Context(), 1, forge.Change{Title: "Ramp payments/checkout to 75%"}))
	require.False(t, w.await(1, mergeable).Draft)
}

// Nothing but what is asked for changes.
func TestUpdate(t *testing.T) {
	w := newWorld(t)
	pr := w.open(head)
	require.NoError(t, w.forge.Update(t.Context(), pr.Number, forge.Change{Label: []string{"ours", "theirs"}}))
	require.NoError(t, w.forge.Update(t.Context(), pr.Number, forge.Change{Label: []string{"ours", "more"}, Unlabel: []string{"theirs", "not there"}}))
	require.Equal(t, []string{"more", "ours"}, w.get(pr.Number).Labels)

	theirs := "edited by a person"
	_, _, err := w.person.Client(t).EditPullRequest(w.repo.Owner, w.repo.Name, pr.Number, sdk.EditPullRequestOption{Body: &theirs})
	require.NoError(t, err)
	require.Equal(t, theirs, w.get(pr.Number).Body)
	require.NoError(t, w.forge.Update(t.Context(), pr.Number, forge.Change{Title: "Another"}))
	d := w.get(pr.Number)
	require.Equal(t, []string{"Another", theirs}, []string{d.Title, d.Body})
	require.NoError(t, w.forge.Update(t.Context(), pr.Number, forge.Change{Body: "ours again"}))
	d = w.get(pr.Number)
	require.Equal(t, []string{"Another", "ours again"}, []string{d.Title, d.Body})

	require.NoError(t, w.forge.Update(t.Context(), pr.Number, forge.Change{Comment: "superseded by #2", Close: true}))
	require.NoError(t, w.forge.Update(t.Context(), pr.Number, forge.Change{Label: []string{"superseded"}}))
	d = w.get(pr.Number)
	require.Equal(t, forge.StateClosed, d.State)
	require.Equal(t, forge.Person{Login: w.bot.Login, Self: true}, d.ClosedBy)
	comments, _, err := w.person.Client(t).ListIssueComments(w.repo.Owner, w.repo.Name, pr.Number, sdk.ListIssueCommentOptions{})
	require.NoError(t, err)
	require.Len(t, comments, 1)
	require.Equal(t, "superseded by #2", comments[0].Body)
	require.NoError(t, w.forge.Update(t.Context(), pr.Number, forge.Change{Close: true}), "closing twice is closing")

	var long *forge.TextError
	require.ErrorAs(t, w.forge.Update(t.Context(), pr.Number, forge.Change{Title: "two\nlines"}), &long)
	var refused *forge.RefusedError
	require.ErrorAs(t, w.forge.Update(t.Context(), 99, forge.Change{Close: true}), &refused)
	require.Equal(t, forge.ReasonNotFound, refused.Reason)
}

// Labels of the organization are used, not made anew.
func TestLabelsOfOrganization(t *testing.T) {
	w := newWorld(t)
	pr := w.open(head)
	_, _, err := w.owner.Client(t).CreateOrgLabel(w.repo.Owner, sdk.CreateOrgLabelOption{Name: "rampart", Color: "#ff0000"})
	require.NoError(t, err)
	require.NoError(t, w.forge.Update(t.Context(), pr.Number, forge.Change{Label: []string{"rampart"}}))
	require.Equal(t, []string{"rampart"}, w.get(pr.Number).Labels)
	own, _, err := w.person.Client(t).ListRepoLabels(w.repo.Owner, w.repo.Name, sdk.ListLabelsOptions{})
	require.NoError(t, err)
	require.Empty(t, own)

	// Without read:organization they are not seen.
	require.NoError(t, w.as(w.minimal()).Update(t.Context(), w.open("another").Number, forge.Change{Label: []string{"rampart"}}))
	own, _, err = w.person.Client(t).ListRepoLabels(w.repo.Owner, w.repo.Name, sdk.ListLabelsOptions{})
	require.NoError(t, err)
	require.Len(t, own, 1)
}

// Reviewers that cannot be asked are told; the others are asked, and the pull request stands.
func TestReviewers(t *testing.T) {
	w := newWorld(t)
	team, _, err := w.owner.Client(t).CreateTeam(w.repo.Owner, sdk.CreateTeamOption{
		Name: "platform", Permission: sdk.AccessModeWrite, Units: []sdk.RepoUnitType{sdk.RepoUnitCode, sdk.RepoUnitPulls},
	})
	require.NoError(t, err)
	_, err = w.owner.Client(t).AddTeamRepository(team.ID, w.repo.Owner, w.repo.Name)
	require.NoError(t, err)
	w.branch(head)
	pr, err := w.forge.Open(t.Context(), forge.Opening{
		Title: "t", Head: head, Base: "main", Labels: []string{"kept"},
		Reviewers: []string{"nobody-at-all", w.person.Login, w.bot.Login}, Teams: []string{"no-team", "platform"},
	})
	var partial *forge.PartialError
	require.ErrorAs(t, err, &partial)
	require.Equal(t, pr.Number, partial.Number)
	require.Len(t, partial.Failed, 3)
	require.ErrorContains(t, partial.Failed[0], "ask [nobody-at-all] for a review")
	require.ErrorContains(t, partial.Failed[1], "ask ["+w.bot.Login+"] for a review")
	require.ErrorContains(t, partial.Failed[2], "ask [no-team] for a review")
	require.Equal(t, []string{"kept"}, pr.Labels)
	asked, _, err := w.person.Client(t).GetPullRequest(w.repo.Owner, w.repo.Name, pr.Number)
	require.NoError(t, err)
	require.Len(t, asked.RequestedReviewers, 1)
	require.Len(t, asked.RequestedReviewersTeams, 1)
	require.Equal(t, "platform", asked.RequestedReviewersTeams[0].Name)
}

// Gitea says nothing of a team where there cannot be one.
func TestTeamOfNobody(t *testing.T) {
	w := newWorld(t)
	w.repo = w.server.Repository(t, w.owner.Login)
	w.repo.Collaborators(t, w.bot, w.person)
	w.forge = w.as(w.bot.Token)
	w.branch(head)
	_, err := w.forge.Open(t.Context(), forge.Opening{Title: "t", Head: head, Base: "main", Teams: []string{"platform"}})
	var partial *forge.PartialError
	require.ErrorAs(t, err, &partial)
	require.ErrorContains(t, partial, "only teams of the organization")
}

// Who closed it, and what it was when it was closed, whatever became of the branch.
func TestClosed(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		close func(number int64)
		want  forge.Person
	}{
		"by the bot":    {func(n int64) { require.NoError(t, w.forge.Update(t.Context(), n, forge.Change{Close: true})) }, forge.Person{Login: w.bot.Login, Self: true}},
		"by a person":   {func(n int64) { w.close(w.person, n) }, forge.Person{Login: w.person.Login}},
		"by a deletion": {func(int64) { w.deleteBranch(head) }, forge.Person{Login: w.person.Login}},
		"at last": {func(n int64) {
			w.close(w.bot, n)
			open := sdk.StateOpen
			_, _, err := w.bot.Client(t).EditPullRequest(w.repo.Owner, w.repo.Name, n, sdk.EditPullRequestOption{State: &open})
			require.NoError(t, err)
			w.close(w.person, n)
		}, forge.Person{Login: w.person.Login}},
	} {
		t.Run(name, func(t *testing.T) {
			pr := w.open(head)
			c.close(pr.Number)
			d := w.await(pr.Number, func(d forge.Details) bool { return d.State == forge.StateClosed }) // a deletion closes it a little later
			require.Equal(t, c.want, d.ClosedBy)
			require.Equal(t, pr.HeadCommit, d.HeadCommit)
			require.False(t, d.Closed.IsZero())
			require.Empty(t, d.MergeCommit)
			if name != "by a deletion" {
				w.deleteBranch(head)
			}
			w.branch(head) // the next proposal has the same branch
			d = w.get(pr.Number)
			require.Equal(t, []string{head, pr.HeadCommit}, []string{d.Head, d.HeadCommit})
			w.deleteBranch(head)
			require.Equal(t, []string{head, pr.HeadCommit}, []string{w.get(pr.Number).Head, w.get(pr.Number).HeadCommit})
		})
	}
}

func (w *world) deleteBranch(name string) {
	w.Helper()
	ok, _, err := w.person.Client(w).DeleteRepoBranch(w.repo.Owner, w.repo.Name, name)
	require.NoError(w, err)
	require.True(w, ok)
}

func TestApprovals(t *testing.T) {
	w := newWorld(t)
	pr := w.open(head)
	other, outsider := w.server.User(t, "other"), w.server.User(t, "outsider")
	w.repo.Collaborators(t, other)
	review := func(client *sdk.Client, state sdk.ReviewStateType) *sdk.PullReview {
		r, _, err := client.CreatePullReview(w.repo.Owner, w.repo.Name, pr.Number, sdk.CreatePullReviewOptions{State: state, Body: "b"})
		require.NoError(t, err)
		return r
	}
	review(outsider.Client(t), sdk.ReviewStateApproved) // may read, and does not count
	review(other.Client(t), sdk.ReviewStateRequestChanges)
	review(w.person.Client(t), sdk.ReviewStateApproved)
	review(w.person.Client(t), sdk.ReviewStateComment) // takes nothing back
	require.Equal(t, []string{w.person.Login}, w.approvers(pr.Number))
	last := review(other.Client(t), sdk.ReviewStateApproved)
	require.Equal(t, []string{other.Login, w.person.Login}, w.approvers(pr.Number))
	require.Equal(t, pr.HeadCommit, w.get(pr.Number).Approvals[0].Commit)
	_, err := w.owner.Client(t).DismissPullReview(w.repo.Owner, w.repo.Name, pr.Number, last.ID, sdk.DismissPullReviewOptions{Message: "no"})
	require.NoError(t, err)
	require.Equal(t, []string{w.person.Login}, w.approvers(pr.Number))
	review(w.person.Client(t), sdk.ReviewStateRequestChanges)
	require.Empty(t, w.approvers(pr.Number))
}

func (w *world) approvers(number int64) (logins []string) {
	w.Helper()
	for _, a := range w.get(number).Approvals {
		require.False(w, a.At.IsZero())
		logins = append(logins, a.By.Login)
	}
	return logins
}

func TestStatus(t *testing.T) {
	w := newWorld(t)
	commit := w.branch(head)
	for _, state := range []forge.StatusState{forge.StatusPending, forge.StatusSuccess, forge.StatusError, forge.StatusFailure} {
		s := forge.Status{Context: "rampart/prod", State: state, Description: "waiting\nfor it", URL: "https://example.com/" + string(state)}
		require.NoError(t, w.forge.SetStatus(t.Context(), commit, s))
		all, _, err := w.person.Client(t).GetCombinedStatus(w.repo.Owner, w.repo.Name, commit)
		require.NoError(t, err)
		require.Len(t, all.Statuses, 1, "the same context is replaced")
		got := all.Statuses[0]
		require.Equal(t, []string{"rampart/prod", string(state), "waiting for it", s.URL},
			[]string{got.Context, string(got.State), got.Description, got.TargetURL})
	}
	var refused *forge.RefusedError
	err := w.forge.SetStatus(t.Context(), "0123456789012345678901234567890123456789", forge.Status{Context: "c", State: forge.StatusSuccess})
	require.ErrorAs(t, err, &refused)
	require.Equal(t, forge.ReasonNotFound, refused.Reason)
}
