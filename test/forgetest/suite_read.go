package forgetest

import (
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/internal/gittest"
)

// Who closed it, and what it was when it was closed, whatever became of the branch.
func testClosed(s *Site) {
	for _, c := range []struct {
		name  string
		close func(number int64)
		want  forge.Person
	}{
		{"by the bot", func(n int64) { require.NoError(s, s.Forge.Update(s.Context(), n, forge.Change{Close: true})) },
			s.bot()},
		{"by a person", func(n int64) { s.ClosePull(n, s.Person) }, s.person()},
		{"by a deletion", func(int64) { s.DeleteBranch(head) }, s.person()},
		{"at last", func(n int64) { s.ClosePull(n, s.Bot); s.Reopen(n); s.ClosePull(n, s.Person) }, s.person()},
	} {
		pr := s.open(head)
		require.Empty(s, s.get(pr.Number).ClosedBy, c.name)
		c.close(pr.Number)
		check := func() {
			s.Helper()
			d := s.until(pr.Number, is(forge.StateClosed))
			require.Equal(s, c.want, d.ClosedBy, c.name)
			require.Equal(s, []string{head, pr.HeadCommit}, []string{d.Head, d.HeadCommit}, c.name)
			require.False(s, d.Closed.IsZero(), c.name)
			require.Empty(s, d.MergeCommit, c.name)
			require.False(s, d.Mergeable, c.name)
		}
		check()
		if c.name != "by a deletion" {
			s.DeleteBranch(head)
			check()
		}
		s.Branch(head) // the next proposal has the same branch
		check()
		s.DeleteBranch(head)
	}
}

// testGhost checks that an account that was removed is an empty person, and not the account that stands for it.
func testGhost(s *Site) {
	gone := s.NewUser("gone", Writes)
	s.Branch(head)
	pr, err := s.As(gone.Token).Open(s.Context(), forge.Opening{Title: "t", Head: head, Base: "main"})
	require.NoError(s, err)
	s.ClosePull(pr.Number, gone)
	require.Equal(s, forge.Person{Login: gone.Login}, s.get(pr.Number).ClosedBy)
	s.Remove(gone)
	d := s.get(pr.Number)
	require.Empty(s, d.ClosedBy)
	require.Equal(s, forge.StateClosed, d.State)
}

// testAuthors checks whose a commit is, by the e-mail addresses of its author and its committer. An address that no
// account has gives an empty person.
func testAuthors(s *Site) {
	by := func(u *User) string { return "Somebody <" + u.Address() + ">" }
	const stranger = "Somebody <somebody@elsewhere.example.com>"
	for i, c := range []struct {
		author, committer string
		want              []forge.Person
	}{
		{by(s.Person), by(s.Bot), []forge.Person{s.person(), s.bot()}},
		{by(s.Bot), by(s.Person), []forge.Person{s.bot(), s.person()}},
		{by(s.Person), by(s.Person), []forge.Person{s.person(), s.person()}},
		{stranger, by(s.Person), []forge.Person{{}, s.person()}},
		{stranger, stranger, []forge.Person{{}, {}}},
	} {
		commit := s.Git.Commit(gittest.Commit{Branch: fmt.Sprintf("by-%d", i), Parent: "refs/heads/main", By: c.author,
			For: c.committer, Write: map[string]string{fmt.Sprintf("by/%d", i): "x\n"}})
		people, err := s.Forge.Authors(s.Context(), commit)
		require.NoError(s, err)
		require.Equal(s, c.want, people, "%s, committed by %s", c.author, c.committer)
	}
	_, err := s.Forge.Authors(s.Context(), strings.Repeat("0123", 10))
	require.ErrorContains(s, err, "ask who wrote commit 0123")
}

// The last word of each who may write.
func testApprovals(s *Site) {
	pr := s.open(head)
	second, changed, dismissed := s.NewUser("second", Writes), s.NewUser("changed", Writes),
		s.NewUser("dismissed", Writes)
	for _, say := range []struct {
		by    *User
		state string
	}{
		{s.Person, "CHANGES_REQUESTED"}, {s.Person, "APPROVED"}, {s.Person, "COMMENTED"}, {changed, "APPROVED"},
		{changed, "CHANGES_REQUESTED"},
		{second, "APPROVED"}, {dismissed, "APPROVED"}, {dismissed, "DISMISSED"}, {s.Reader, "APPROVED"},
	} {
		s.Say(pr.Number, say.by, say.state)
	}
	s.SetRules(func(r *Rules) { r.MaxPage = 2 })
	d := s.get(pr.Number)
	require.Len(s, d.Approvals, 2)
	for i, by := range []*User{s.Person, second} {
		a := d.Approvals[i]
		require.Equal(s, forge.Person{Login: by.Login}, a.By)
		if s.Commits {
			require.Equal(s, pr.HeadCommit, a.Commit)
		}
	}
	s.Say(pr.Number, s.Person, "DISMISSED")
	require.Len(s, s.get(pr.Number).Approvals, 1)
}

// More than a page of the same head, among those of others and those of forks, the newest first.
func testList(s *Site) {
	s.Branch(head)
	var want []int64
	for range 7 {
		pr, err := s.Forge.Open(s.Context(), forge.Opening{Title: "t", Head: head, Base: "main"})
		require.NoError(s, err)
		want = append([]int64{pr.Number}, want...)
		require.NoError(s, s.Forge.Update(s.Context(), pr.Number, forge.Change{Close: true}))
	}
	other := s.open("rampart/prod/payments/refunds")
	fork := s.OpenFork(head)
	s.SetRules(func(r *Rules) { r.MaxPage = 3 })

	list := func(f forge.Filter) []int64 {
		s.Helper()
		all, err := s.Forge.List(s.Context(), f)
		require.NoError(s, err)
		return numbers(all)
	}
	require.Equal(s, want, list(forge.Filter{Head: head}))
	require.Equal(s, append([]int64{other.Number}, want...), list(forge.Filter{}))
	require.Equal(s, []int64{other.Number}, list(forge.Filter{Open: true}))
	require.Empty(s, list(forge.Filter{Head: head, Open: true}))
	_, err := s.Forge.Get(s.Context(), fork)
	_ = refusedFor(s.T, err, forge.ReasonNotFound)
	_, err = s.Forge.Get(s.Context(), 99)
	_ = refusedFor(s.T, err, forge.ReasonNotFound)
}

// What did not change since is left out, what changed in the same second is not.
func testSince(s *Site) {
	var prs []forge.PullRequest
	for i := range 5 {
		prs = append(prs, s.open(fmt.Sprintf("branch-%d", i)))
		s.Later()
	}
	s.SetRules(func(r *Rules) { r.MaxPage = 2 })
	s.ClosePull(prs[0].Number, s.Person)
	closed := s.get(prs[0].Number).Updated
	for _, c := range []struct {
		filter forge.Filter
		want   []int64
	}{
		{forge.Filter{Since: closed}, []int64{1}},
		{forge.Filter{Since: closed, Head: "branch-1"}, nil},
		{forge.Filter{Since: closed, Open: true}, nil},
		{forge.Filter{Since: prs[4].Updated}, []int64{5, 1}},
		{forge.Filter{Since: prs[0].Updated}, []int64{5, 4, 3, 2, 1}},
	} {
		list, err := s.Forge.List(s.Context(), c.filter)
		require.NoError(s, err)
		require.Equal(s, c.want, numbers(list), "%v", c.filter)
	}
}

// The old name of a repository that was renamed or given to another owner leads to it.
func testRenamed(s *Site) {
	pr := s.open(head)
	older := s.Forge
	fresh := s.As(s.Bot.Token)
	at := s.Rename("acme-two", "workers-two")
	for _, f := range []forge.Forge{older, fresh} {
		s.Forge = f
		require.NoError(s, f.Update(s.Context(), pr.Number,
			forge.Change{Title: "Still here", Comment: "c", Label: []string{"l"}}))
		d := s.get(pr.Number)
		require.Equal(s, "Still here", d.Title)
		require.Contains(s, d.URL, at)
		list, err := f.List(s.Context(), forge.Filter{Head: head})
		require.NoError(s, err)
		require.Equal(s, []int64{pr.Number}, numbers(list))
	}
	s.looked(pr.Number)
	s.merge(pr, forge.MethodMerge)
}
