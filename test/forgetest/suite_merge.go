package forgetest

import (
	"errors"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/forge"
)

// merge merges it as the bot does: what was refused for the moment is asked for again, unless it happened nevertheless.
// A real forge breaks now and then, and may have done it before it broke.
func (s *Site) merge(pr forge.PullRequest, method forge.Method) {
	s.Helper()
	s.Allow(method)
	s.looked(pr.Number)
	var got forge.Merging
	var err error
	s.eventually("merged", func() bool { // a forge that was pushed to may look once more
		got, err = s.Forge.Merge(s.Context(), pr.Number,
			forge.Merge{When: forge.Now, Method: method, Commit: pr.HeadCommit})
		var notReady *forge.NotReadyError
		var unavailable *forge.UnavailableError
		if !s.simulated() && errors.As(err, &unavailable) {
			s.Logf("%v", err)
			d, gone := s.Forge.Get(s.Context(), pr.Number)
			if gone != nil || d.State != forge.StateMerged {
				return false
			}
			got, err = forge.Merged, nil
		}
		return !errors.As(err, &notReady)
	})
	require.NoError(s, err)
	require.Equal(s, forge.Merged, got)
}

// A merge, a squash and a rebase are told with the commit that they made, by whom, and what it was.
func testMerge(s *Site) {
	for _, c := range []struct {
		method  forge.Method
		parents int
	}{{forge.MethodMerge, 2}, {forge.MethodSquash, 1}, {forge.MethodRebase, 1}} {
		s.Allow(c.method)
		pr := s.open(head)
		pr.HeadCommit = s.Push(head, nil)
		if s.simulated() {
			require.False(s, s.get(pr.Number).Mergeable, "it is not known yet")
		}
		s.looked(pr.Number)
		before := s.Git.Tip("main")
		_, err := s.Forge.Merge(s.Context(), pr.Number, forge.Merge{When: forge.Now, Method: c.method, Commit: before})
		var moved *forge.MovedError
		require.ErrorAs(s, err, &moved)
		require.Equal(s, pr.HeadCommit, moved.Actual)
		s.merge(pr, c.method)

		s.DeleteBranch(head)
		d := s.get(pr.Number)
		require.Equal(s, forge.StateMerged, d.State)
		require.Equal(s, s.bot(), d.ClosedBy)
		require.Equal(s, []string{s.Git.Tip("main"), pr.HeadCommit, head},
			[]string{d.MergeCommit, d.HeadCommit, d.Head}, c.method)
		require.False(s, d.Mergeable)
		require.False(s, d.Closed.IsZero())
		parents := strings.Fields(s.Git.Git("rev-list", "--parents", "-1", d.MergeCommit))[1:]
		if s.Kind != forge.KindGitLab || c.method != forge.MethodSquash {
			require.Len(s, parents, c.parents, c.method)
		}
		require.Len(s, s.Git.Files("main"), len(s.Git.Files(before))+2, "both commits arrived")

		_, err = s.Forge.Merge(s.Context(), pr.Number,
			forge.Merge{When: forge.Now, Method: c.method, Commit: pr.HeadCommit})
		_ = refusedFor(s.T, err, forge.ReasonConflict)
		_ = refusedFor(s.T, s.Forge.Update(s.Context(), pr.Number, forge.Change{Close: true}), forge.ReasonConflict)
		require.Equal(s, forge.StateMerged, s.get(pr.Number).State)
	}
}

func testMergedByPerson(s *Site) {
	pr := s.open(head)
	s.looked(pr.Number)
	s.MergePull(pr.Number, s.Person, forge.MethodSquash)
	d := s.get(pr.Number)
	require.Equal(s, s.person(), d.ClosedBy)
	require.Equal(s, s.Git.Tip("main"), d.MergeCommit)
	require.Equal(s, pr.HeadCommit, d.HeadCommit)
}

// What a person pushes to the base branch without the forge is merged to it.
func testPushedToBase(s *Site) {
	pr := s.open(head)
	s.Advance(pr.HeadCommit)
	d := s.until(pr.Number, is(forge.StateMerged))
	require.Equal(s, s.person(), d.ClosedBy)
	require.Equal(s, pr.HeadCommit, d.MergeCommit)
}

func order(pr forge.PullRequest, when forge.When, method forge.Method) forge.Merge {
	return forge.Merge{When: when, Method: method, Commit: pr.HeadCommit}
}

// A required check holds a merge; an automatic one waits for it.
func testAutomaticMerge(s *Site) {
	s.SetRules(func(r *Rules) { r.Checks = []string{"ci"} })
	for _, method := range []forge.Method{forge.MethodMerge, forge.MethodSquash, forge.MethodRebase} {
		s.Allow(method)
		pr := s.open(head)
		require.NoError(s, s.Forge.SetStatus(s.Context(), pr.HeadCommit,
			forge.Status{Context: "ci", State: forge.StatusPending}))
		s.looked(pr.Number)
		var notReady *forge.NotReadyError
		_, err := s.Forge.Merge(s.Context(), pr.Number, order(pr, forge.Now, method))
		require.ErrorAs(s, err, &notReady)
		require.NotEmpty(s, notReady.Said)
		for range 2 { // once is enough, twice does not fail
			got, err := s.Forge.Merge(s.Context(), pr.Number, order(pr, forge.WhenReady, method))
			require.NoError(s, err)
			require.Equal(s, forge.Scheduled, got)
		}
		require.Equal(s, forge.StateOpen, s.get(pr.Number).State)
		s.Check(pr.HeadCommit, "ci", "success")
		d := s.until(pr.Number, is(forge.StateMerged))
		require.Equal(s, s.bot(), d.ClosedBy)
		require.Equal(s, s.Git.Tip("main"), d.MergeCommit)
		s.DeleteBranch(head)
	}
}

// Taken back: the check does not merge it. And not ordered if the branch is not what the bot knows.
func testTakenBack(s *Site) {
	s.SetRules(func(r *Rules) { r.Checks = []string{"ci"} })
	s.Allow(forge.MethodMerge)
	pr := s.open(head)
	s.looked(pr.Number)
	require.NoError(s, s.Forge.SetStatus(s.Context(), pr.HeadCommit,
		forge.Status{Context: "ci", State: forge.StatusPending}))
	_, err := s.Forge.Merge(s.Context(), pr.Number, order(pr, forge.WhenReady, forge.MethodMerge))
	require.NoError(s, err)
	for range 2 {
		got, err := s.Forge.Merge(s.Context(), pr.Number, forge.Merge{When: forge.NotAnymore})
		require.NoError(s, err)
		require.Equal(s, forge.Cancelled, got)
	}
	s.Check(pr.HeadCommit, "ci", "success")
	require.Equal(s, forge.StateOpen, s.get(pr.Number).State)
	s.merge(pr, forge.MethodMerge)
	got, err := s.Forge.Merge(s.Context(), pr.Number, forge.Merge{When: forge.NotAnymore})
	require.NoError(s, err)
	require.Equal(s, forge.Cancelled, got)

	s.DeleteBranch(head)
	pr = s.open(head)
	pushed := s.Push(head, nil)
	_, err = s.Forge.Merge(s.Context(), pr.Number, order(pr, forge.WhenReady, forge.MethodMerge))
	var moved *forge.MovedError
	require.ErrorAs(s, err, &moved)
	require.Equal(s, pushed, moved.Actual)
}

// waiting opens a pull request whose merge has a check to wait for.
func (s *Site) waiting() forge.PullRequest {
	s.Helper()
	s.SetRules(func(r *Rules) { r.Checks = []string{"ci"} })
	pr := s.open(head)
	s.looked(pr.Number)
	require.NoError(s, s.Forge.SetStatus(s.Context(), pr.HeadCommit,
		forge.Status{Context: "ci", State: forge.StatusPending}))
	return pr
}

func (s *Site) orders(by forge.Forge, m forge.Merge, number int64) {
	s.Helper()
	got, err := by.Merge(s.Context(), number, m)
	require.NoError(s, err)
	require.Equal(s, forge.Scheduled, got)
}

// Ordered by another method, also by a bot that knows nothing of the first order, it is merged by that.
func testOrderedAnew(s *Site) {
	s.Allow(forge.MethodMerge)
	pr := s.waiting()
	s.orders(s.Forge, order(pr, forge.WhenReady, forge.MethodMerge), pr.Number)
	s.Allow(forge.MethodSquash)
	s.orders(s.As(s.Bot.Token), order(pr, forge.WhenReady, forge.MethodSquash), pr.Number)
	s.Check(pr.HeadCommit, "ci", "success")
	d := s.until(pr.Number, is(forge.StateMerged))
	require.Equal(s, s.bot(), d.ClosedBy)
	require.NotContains(s, s.Git.Git("rev-list", d.MergeCommit), pr.HeadCommit, "no merge, which has it")
}

// What a person ordered is not the bot's to take back, nor to order otherwise.
func testOrderOfAPerson(s *Site) {
	s.Allow(forge.MethodMerge)
	pr := s.waiting()
	s.orders(s.As(s.Person.Token), order(pr, forge.WhenReady, forge.MethodMerge), pr.Number)
	s.orders(s.Forge, order(pr, forge.WhenReady, forge.MethodMerge), pr.Number)
	got, err := s.Forge.Merge(s.Context(), pr.Number, forge.Merge{When: forge.NotAnymore})
	require.NoError(s, err)
	require.Equal(s, forge.Cancelled, got)
	s.Check(pr.HeadCommit, "ci", "success")
	require.Equal(s, s.person(), s.until(pr.Number, is(forge.StateMerged)).ClosedBy)
}

// Where nothing is left to wait for, it is merged: also while the forge still looks, and by one that has other
// statuses.
func testNothingToWaitFor(s *Site) {
	s.Allow(forge.MethodMerge)
	for _, looks := range []int{0, 1, 2} {
		pr := s.open(head)
		for range looks {
			s.get(pr.Number)
		}
		var notReady *forge.NotReadyError
		s.eventually("merged, or to be", func() bool {
			got, err := s.Forge.Merge(s.Context(), pr.Number, order(pr, forge.WhenReady, forge.MethodMerge))
			if !s.simulated() && errors.As(err, &notReady) { // it looks, and takes no order meanwhile
				return false
			}
			require.NoError(s, err)
			if s.simulated() {
				require.Equal(s, forge.Merged, got)
			}
			return true
		})
		s.until(pr.Number, is(forge.StateMerged))
		s.DeleteBranch(head)
	}
}

func testMergeNotAllowed(s *Site) {
	for _, allowed := range []forge.Method{forge.MethodMerge, forge.MethodRebase} {
		s.Allow(allowed)
		pr := s.open("branch-" + string(allowed))
		s.looked(pr.Number)
		for _, method := range []forge.Method{forge.MethodMerge, forge.MethodSquash, forge.MethodRebase} {
			if method == allowed {
				continue
			}
			for _, when := range []forge.When{forge.Now, forge.WhenReady} {
				_, err := s.Forge.Merge(s.Context(), pr.Number, order(pr, when, method))
				var unsupported *forge.UnsupportedError
				require.ErrorAs(s, err, &unsupported)
				require.Equal(s, "merging by "+string(method), unsupported.What)
				require.NotEmpty(s, unsupported.Need)
			}
		}
	}
	s.Allow(forge.MethodMerge)
	s.SetRules(func(r *Rules) { r.Mergers = []string{s.Person.Login} })
	pr := s.open(head)
	s.looked(pr.Number)
	for _, when := range []forge.When{forge.Now, forge.WhenReady} {
		_, err := s.Forge.Merge(s.Context(), pr.Number, order(pr, when, forge.MethodMerge))
		require.Contains(s, refusedFor(s.T, err, forge.ReasonForbidden).Need, "allowed to merge")
	}
	require.Equal(s, forge.StateOpen, s.get(pr.Number).State)
	_, err := s.Forge.Merge(s.Context(), pr.Number, forge.Merge{When: forge.Now, Method: "octopus"})
	require.ErrorContains(s, err, "no method")
	_, err = s.Forge.Merge(s.Context(), pr.Number, forge.Merge{Method: forge.MethodMerge})
	require.ErrorContains(s, err, "no time")
}

// testNotReady checks that a draft, a pull request with a conflict and one without an approval are not merged.
func testNotReady(s *Site) {
	s.Allow(forge.MethodMerge)
	var notReady *forge.NotReadyError
	try := func(pr forge.PullRequest) {
		s.Helper()
		for range 2 { // it looks for conflicts once it is asked
			s.get(pr.Number)
		}
		_, err := s.Forge.Merge(s.Context(), pr.Number, order(pr, forge.Now, forge.MethodMerge))
		require.ErrorAs(s, err, &notReady)
		require.NotEmpty(s, notReady.Said)
		require.Equal(s, forge.StateOpen, s.get(pr.Number).State)
	}
	draft := s.open("draft")
	s.SetDraft(draft.Number, true)
	try(draft)

	conflict := s.open("conflict")
	conflict.HeadCommit = s.Push("conflict", map[string]string{"same": "ours\n"})
	s.Push("main", map[string]string{"same": "theirs\n"})
	try(conflict)
	require.False(s, s.get(conflict.Number).Mergeable)
	_, err := s.Forge.Merge(s.Context(), conflict.Number, order(conflict, forge.WhenReady, forge.MethodMerge))
	require.ErrorAs(s, err, &notReady)

	s.SetRules(func(r *Rules) { r.Approvals = 1 })
	unapproved := s.open(head)
	try(unapproved)
	s.Say(unapproved.Number, s.Person, "APPROVED")
	s.merge(unapproved, forge.MethodMerge)
}
