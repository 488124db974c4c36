package forgetest

import (
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/forge"
)

func testOpen(s *Site) {
	login, err := s.Forge.Login(s.Context())
	require.NoError(s, err)
	require.Equal(s, s.Bot.Login, login)
	commit := s.Branch(head)
	pr, err := s.Forge.Open(s.Context(), forge.Opening{
		Title: "Ramp payments/checkout to 25%", Body: "**why**\n/close\n", Head: head, Base: "main",
		Labels: []string{"rampart", "env/prod"}, Reviewers: []string{s.Person.Login},
	})
	require.NoError(s, err)
	require.WithinDuration(s, s.Now(), pr.Updated, time.Hour)
	require.True(s, strings.HasPrefix(pr.URL, s.URL+"/"+s.Owner+"/"+s.Name+"/"), pr.URL)
	want := forge.PullRequest{
		Number: 1, URL: pr.URL, Title: "Ramp payments/checkout to 25%", Body: "**why**\n/close\n",
		State: forge.StateOpen,
		Head:  head, Base: "main", Labels: []string{"env/prod", "rampart"}, HeadCommit: commit, Updated: pr.Updated,
	}
	require.Empty(s, cmp.Diff(want, pr))
	require.Equal(s, []string{s.Person.Login}, logins(s.Look(1).Reviewers))

	list, err := s.Forge.List(s.Context(), forge.Filter{Head: head, Open: true})
	require.NoError(s, err)
	require.Empty(s, cmp.Diff([]forge.PullRequest{want}, list))

	// The title of a draft is changed without making it one or none, and is told without the mark.
	s.SetDraft(1, true)
	require.Equal(s, want.Title, s.get(1).Title)
	require.NoError(s, s.Forge.Update(s.Context(), 1, forge.Change{Title: "Ramp payments/checkout to 50%"}))
	require.Equal(s, "Ramp payments/checkout to 50%", s.get(1).Title)
	require.True(s, s.Look(1).Draft)
	s.SetDraft(1, false)
	require.NoError(s, s.Forge.Update(s.Context(), 1, forge.Change{Title: "Ramp payments/checkout to 75%"}))
	d := s.get(1)
	require.Equal(s, "Ramp payments/checkout to 75%", d.Title)
	require.False(s, s.Look(1).Draft)

	var text *forge.TextError
	_, err = s.Forge.Open(s.Context(), forge.Opening{Head: "x", Base: "main"})
	require.ErrorAs(s, err, &text)
	_, err = s.Forge.Open(s.Context(), forge.Opening{Title: "t", Head: "no/such/branch", Base: "main"})
	var refused *forge.RefusedError
	require.ErrorAs(s, err, &refused)
	_, err = s.Forge.Open(s.Context(), forge.Opening{Title: "t", Head: head, Base: "no/such/branch"})
	require.ErrorAs(s, err, &refused)
}

// Nothing but what is asked for changes.
func testUpdate(s *Site) {
	pr := s.open(head)
	s.Rewrite(pr.Number, "edited by a person")
	require.Equal(s, "edited by a person", s.get(pr.Number).Body)
	require.NoError(s, s.Forge.Update(s.Context(), pr.Number, forge.Change{Title: "Another"}))
	d := s.get(pr.Number)
	require.Equal(s, []string{"Another", "edited by a person"}, []string{d.Title, d.Body})
	ours := "ours again\n/close\n  /merge\n\n```\n/etc/passwd\n```\n"
	require.NoError(s, s.Forge.Update(s.Context(), pr.Number, forge.Change{Body: ours}))
	d = s.get(pr.Number)
	require.Equal(s, []string{"Another", ours}, []string{d.Title, d.Body})
	require.Equal(s, forge.StateOpen, d.State, "what a body says is not done")
	require.NoError(s, s.Forge.Update(s.Context(), pr.Number, forge.Change{Comment: "look:\n/close\n"}))
	require.Equal(s, forge.StateOpen, s.get(pr.Number).State, "what a comment says is not done")

	require.NoError(s, s.Forge.Update(s.Context(), pr.Number, forge.Change{Comment: "superseded by #2", Close: true}))
	require.Equal(s, forge.StateClosed, s.get(pr.Number).State)
	comments := s.Look(pr.Number).Comments
	last := comments[len(comments)-1]
	require.Equal(s, []string{s.Bot.Login, "superseded by #2"}, []string{last.By.Login, last.Body})
	require.NoError(s, s.Forge.Update(s.Context(), pr.Number, forge.Change{Close: true}), "closing twice is closing")

	var text *forge.TextError
	require.ErrorAs(s, s.Forge.Update(s.Context(), pr.Number, forge.Change{Title: "two\nlines"}), &text)
	_ = refusedFor(s.T, s.Forge.Update(s.Context(), 99, forge.Change{Close: true}), forge.ReasonNotFound)
}

func logins(users []*User) (all []string) {
	for _, u := range users {
		all = append(all, u.Login)
	}
	return all
}

func testLabels(s *Site) {
	pr := s.open(head)
	odd := `to be "seen" 100%/ä?`
	for _, labels := range [][]string{{"ours", odd}, {"ours", "more"}} {
		require.NoError(s, s.Forge.Update(s.Context(), pr.Number, forge.Change{Label: labels}))
	}
	require.Equal(s, []string{"more", "ours", odd}, s.get(pr.Number).Labels)
	s.AddLabel(pr.Number, "a person's")
	require.NoError(s, s.Forge.Update(s.Context(), pr.Number, forge.Change{Label: []string{"ours"}}))
	require.Equal(s, []string{"a person's", "more", "ours", odd}, s.get(pr.Number).Labels)
}

// Reviewers that cannot be asked are told; the others are asked, and the pull request stands.
func testReviewers(s *Site) {
	s.Branch(head)
	pr, err := s.Forge.Open(s.Context(), forge.Opening{
		Title: "t", Head: head, Base: "main", Labels: []string{"kept"},
		Reviewers: []string{"nobody-at-all", s.Person.Login}, Teams: []string{"no-team", "platform"},
	})
	var partial *forge.PartialError
	require.ErrorAs(s, err, &partial)
	require.Equal(s, pr.Number, partial.Number)
	require.ErrorContains(s, partial.Failed[0], "ask [nobody-at-all] for a review")
	require.ErrorContains(s, partial.Failed[1], "ask [no-team] for a review")
	require.Equal(s, []string{"kept"}, pr.Labels)
	for range 2 { // to ask again for what was asked does not fail, and asks for nothing else
		p := s.Look(pr.Number)
		require.Equal(s, []string{s.Person.Login}, logins(p.Reviewers))
		require.NoError(s, s.Forge.Update(s.Context(), pr.Number,
			forge.Change{Reviewers: []string{s.Person.Login}, Label: []string{"kept"}}))
	}
	s.Say(pr.Number, s.Person, "APPROVED")
	require.NoError(s, s.Forge.Update(s.Context(), pr.Number, forge.Change{Reviewers: []string{s.Person.Login}}))
	require.Len(s, s.get(pr.Number).Approvals, 1, "who approved did so")
	err = s.Forge.Update(s.Context(), pr.Number, forge.Change{Title: "u", Reviewers: []string{"nobody-at-all"},
		Label: []string{"more"}})
	var again *forge.PartialError
	require.ErrorAs(s, err, &again)
	require.ErrorContains(s, again.Failed[0], "ask [nobody-at-all] for a review")
	require.Equal(s, []string{"kept", "more"}, s.get(pr.Number).Labels)
	p := s.Look(pr.Number)
	if s.Teams {
		require.Len(s, partial.Failed, 2)
		require.Equal(s, []string{"platform"}, p.Teams)
		return
	}
	require.Len(s, partial.Failed, 3)
	var unsupported *forge.UnsupportedError
	require.ErrorAs(s, partial.Failed[2], &unsupported)
	require.Empty(s, p.Teams)
}

func testStatus(s *Site) {
	commit := s.Branch(head)
	long := strings.Repeat("ä", 200)
	for _, st := range []forge.Status{
		{Context: "rampart/prod", State: forge.StatusPending, Description: "looking",
			URL: "https://rampart.example.com/1"},
		{Context: "rampart/prod", State: forge.StatusPending, Description: "looking"},
		{Context: "rampart/prod", State: forge.StatusFailure, Description: "bad"},
		{Context: "rampart/prod", State: forge.StatusError},
		{Context: "rampart/stage", State: forge.StatusSuccess, Description: long, URL: "https://rampart.example.com/2"},
	} {
		require.NoError(s, s.Forge.SetStatus(s.Context(), commit, st), "%v", st)
	}
	require.Contains(s, []string{"error", "failed"}, s.Status(commit, "rampart/prod").State)
	stage := s.Status(commit, "rampart/stage")
	require.Equal(s, "success", stage.State)
	require.Equal(s, "https://rampart.example.com/2", stage.URL)
	require.LessOrEqual(s, len(stage.Description), forge.MaxDescription)
	var refused *forge.RefusedError
	require.ErrorAs(s, s.Forge.SetStatus(s.Context(), strings.Repeat("0", 40),
		forge.Status{Context: "c", State: forge.StatusSuccess}), &refused)
}

// One that was there is found, whatever was asked for it, and closed ones do not count; to another base it is another
// one.
func testExists(s *Site) {
	first := s.open(head)
	s.ClosePull(first.Number, s.Person)
	second, err := s.Forge.Open(s.Context(), forge.Opening{Title: "t", Head: head, Base: "main"})
	require.NoError(s, err)
	s.Branch("release")
	release, err := s.Forge.Open(s.Context(), forge.Opening{Title: "t", Head: head, Base: "release"})
	require.NoError(s, err)
	require.NotEqual(s, second.Number, release.Number)
	for _, c := range []struct {
		filter forge.Filter
		want   []int64
	}{
		{forge.Filter{Head: head, Base: "main"}, []int64{second.Number, first.Number}},
		{forge.Filter{Head: head, Base: "main", Open: true}, []int64{second.Number}},
		{forge.Filter{Base: "release"}, []int64{release.Number}},
		{forge.Filter{Head: head, Base: "no such branch"}, nil},
		{forge.Filter{Head: head, Open: true}, []int64{release.Number, second.Number}},
	} {
		list, err := s.Forge.List(s.Context(), c.filter)
		require.NoError(s, err)
		require.Equal(s, c.want, numbers(list), "%v", c.filter)
	}
	got, err := s.Forge.Open(s.Context(), forge.Opening{Title: "another", Head: head, Base: "main",
		Labels: []string{"l"}})
	var exists *forge.ExistsError
	require.ErrorAs(s, err, &exists)
	require.Equal(s, second.Number, got.Number)
	require.Equal(s, exists.PullRequest, got)
	require.Equal(s, "t", s.get(second.Number).Title)
	require.Empty(s, s.get(second.Number).Labels)
}

// Of those who open the same at once, one does, and the others find it.
func testAtOnce(s *Site) {
	s.Branch(head)
	const bots = 4
	var (
		wg     sync.WaitGroup
		got    [bots]forge.PullRequest
		errs   [bots]error
		exists *forge.ExistsError
	)
	for i := range bots {
		f := s.As(s.Bot.Token)
		wg.Go(func() { got[i], errs[i] = f.Open(s.Context(), forge.Opening{Title: "t", Head: head, Base: "main"}) })
	}
	wg.Wait()
	opened := 0
	for i, err := range errs {
		require.Equal(s, int64(1), got[i].Number)
		if err == nil {
			opened++
		} else {
			require.ErrorAs(s, err, &exists)
		}
	}
	require.Equal(s, 1, opened, errors.Join(errs[:]...))
}

// A forge that looks before it opens can open two at the same moment: the later one is closed again.
func testSameMoment(s *Site) {
	first := s.open(head)
	s.SetRules(func(r *Rules) { r.Racy = true })
	got, err := s.Forge.Open(s.Context(), forge.Opening{Title: "later", Head: head, Base: "main",
		Labels: []string{"l"}})
	var exists *forge.ExistsError
	require.ErrorAs(s, err, &exists)
	require.Equal(s, first.Number, got.Number)
	later := s.get(first.Number + 1)
	require.Equal(s, forge.StateClosed, later.State)
	require.Equal(s, s.bot(), later.ClosedBy)
	require.Contains(s, s.Look(later.Number).Comments[0].Body, first.URL, "it says why")
	require.Empty(s, later.Labels)
	require.Equal(s, forge.StateOpen, s.get(first.Number).State)
}
