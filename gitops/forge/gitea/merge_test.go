package gitea

import (
	"testing"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/internal/giteatest"
)

// A merge, a squash and a rebase are told with the commit that they made, by whom, and what it was.
func TestMerge(t *testing.T) {
	w := newWorld(t)
	for method, parents := range map[forge.Method]int{forge.MethodMerge: 2, forge.MethodSquash: 1, forge.MethodRebase: 1} {
		t.Run(string(method), func(t *testing.T) {
			pr := w.open(head)
			w.repo.Commit(t, w.person, giteatest.Commit{Branch: "main", Path: "meanwhile/" + string(method), Text: "x"})
			w.await(pr.Number, mergeable)
			_, err := w.forge.Merge(t.Context(), pr.Number, forge.Merge{When: forge.Now, Method: method, Commit: w.repo.Tip(t, "main")})
			var moved *forge.MovedError
			require.ErrorAs(t, err, &moved)
			require.Equal(t, pr.HeadCommit, moved.Actual)
			w.merge(pr.Number, forge.Merge{When: forge.Now, Method: method, Commit: pr.HeadCommit})

			w.deleteBranch(head)
			d := w.get(pr.Number)
			require.Equal(t, forge.StateMerged, d.State)
			require.Equal(t, forge.Person{Login: w.bot.Login, Self: true}, d.ClosedBy)
			require.Equal(t, []string{w.repo.Tip(t, "main"), pr.HeadCommit, head}, []string{d.MergeCommit, d.HeadCommit, d.Head})
			require.False(t, d.Mergeable)
			made, _, err := w.person.Client(t).GetSingleCommit(w.repo.Owner, w.repo.Name, d.MergeCommit)
			require.NoError(t, err)
			require.Len(t, made.Parents, parents)

			var refused *forge.RefusedError
			_, err = w.forge.Merge(t.Context(), pr.Number, forge.Merge{When: forge.Now, Method: method, Commit: pr.HeadCommit})
			require.ErrorAs(t, err, &refused)
			require.Contains(t, []forge.Reason{forge.ReasonConflict, forge.ReasonNotFound}, refused.Reason)
			require.ErrorAs(t, w.forge.Update(t.Context(), pr.Number, forge.Change{Close: true}), &refused, "a merged one cannot be closed")
		})
	}
}

func TestMergedByPerson(t *testing.T) {
	w := newWorld(t)
	pr := w.open(head)
	d := w.await(pr.Number, mergeable)
	require.Empty(t, d.ClosedBy)
	person := w.as(w.person.Token)
	got, err := person.Merge(t.Context(), pr.Number, forge.Merge{When: forge.Now, Method: forge.MethodSquash, Commit: pr.HeadCommit})
	require.NoError(t, err)
	require.Equal(t, forge.Merged, got)
	require.Equal(t, forge.Person{Login: w.person.Login}, w.get(pr.Number).ClosedBy)
}

// A required check holds a merge; an automatic one waits for it.
func TestAutomaticMerge(t *testing.T) {
	w := newWorld(t)
	w.repo.Protect(t, sdk.CreateBranchProtectionOption{RuleName: "main", EnableStatusCheck: true, StatusCheckContexts: []string{"ci"}})
	order := func(pr forge.PullRequest, when forge.When) forge.Merge {
		return forge.Merge{When: when, Method: forge.MethodSquash, Commit: pr.HeadCommit}
	}
	pass := func(commit string) {
		require.NoError(t, w.as(w.person.Token).SetStatus(t.Context(), commit, forge.Status{Context: "ci", State: forge.StatusSuccess}))
	}

	pr := w.open(head)
	w.await(pr.Number, mergeable)
	_, err := w.forge.Merge(t.Context(), pr.Number, order(pr, forge.Now))
	var notReady *forge.NotReadyError
	require.ErrorAs(t, err, &notReady)
	require.Contains(t, notReady.Said, "status checks")

	for range 2 { // once is enough, twice is no error
		got, err := w.forge.Merge(t.Context(), pr.Number, order(pr, forge.WhenReady))
		require.NoError(t, err)
		require.Equal(t, forge.Scheduled, got)
	}
	require.Equal(t, forge.StateOpen, w.get(pr.Number).State)
	pass(pr.HeadCommit)
	d := w.await(pr.Number, func(d forge.Details) bool { return d.State == forge.StateMerged })
	require.Equal(t, forge.Person{Login: w.bot.Login, Self: true}, d.ClosedBy)

	// Taken back: the check does not merge it, and now it may be merged.
	w.deleteBranch(head)
	pr = w.open(head)
	w.await(pr.Number, mergeable)
	_, err = w.forge.Merge(t.Context(), pr.Number, order(pr, forge.WhenReady))
	require.NoError(t, err)
	for range 2 {
		got, err := w.forge.Merge(t.Context(), pr.Number, forge.Merge{When: forge.NotAnymore})
		require.NoError(t, err)
		require.Equal(t, forge.Cancelled, got)
	}
	pass(pr.HeadCommit)
	require.Equal(t, forge.StateOpen, w.get(pr.Number).State)
	w.merge(pr.Number, order(pr, forge.Now))

	// Not if the branch is not what the bot knows. A push in between is seen.
	w.deleteBranch(head)
	pr = w.open(head)
	w.await(pr.Number, mergeable)
	pushed := w.repo.Commit(t, w.person, giteatest.Commit{Branch: head, Path: "pushed.txt", Text: "x"})
	_, err = w.forge.Merge(t.Context(), pr.Number, order(pr, forge.WhenReady))
	var moved *forge.MovedError
	require.ErrorAs(t, err, &moved)
	require.Equal(t, pushed, moved.Actual)
}

func TestMergeNotAllowed(t *testing.T) {
	w := newWorld(t)
	no, yes := false, true
	_, _, err := w.owner.Client(t).EditRepo(w.repo.Owner, w.repo.Name, sdk.EditRepoOption{HasPullRequests: &yes, AllowSquash: &no})
	require.NoError(t, err)
	w.repo.Protect(t, sdk.CreateBranchProtectionOption{RuleName: "main", EnableMergeWhitelist: true, MergeWhitelistUsernames: []string{w.person.Login}})
	pr := w.open(head)
	w.await(pr.Number, mergeable)
	for _, when := range []forge.When{forge.Now, forge.WhenReady} {
		_, err := w.forge.Merge(t.Context(), pr.Number, forge.Merge{When: when, Method: forge.MethodSquash, Commit: pr.HeadCommit})
		var unsupported *forge.UnsupportedError
		require.ErrorAs(t, err, &unsupported)
		require.EqualError(t, err, "gitea: no merging by squash: allow it in the settings of the repository")

		_, err = w.forge.Merge(t.Context(), pr.Number, forge.Merge{When: when, Method: forge.MethodMerge, Commit: pr.HeadCommit})
		var refused *forge.RefusedError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, forge.ReasonForbidden, refused.Reason)
		require.Contains(t, refused.Need, "whitelist for merging")
	}
	_, err = w.forge.Merge(t.Context(), pr.Number, forge.Merge{When: forge.Now, Method: "octopus"})
	require.ErrorContains(t, err, "no method")
	_, err = w.forge.Merge(t.Context(), pr.Number, forge.Merge{Method: forge.MethodMerge})
	require.ErrorContains(t, err, "no time")
}

// A draft and one with a conflict are not merged.
func TestMergeNotReady(t *testing.T) {
	w := newWorld(t)
	pr := w.open(head)
	w.await(pr.Number, mergeable)
	require.NoError(t, w.forge.Update(t.Context(), pr.Number, forge.Change{Title: "WIP: by hand"}))
	var notReady *forge.NotReadyError
	_, err := w.forge.Merge(t.Context(), pr.Number, forge.Merge{When: forge.Now, Method: forge.MethodMerge, Commit: pr.HeadCommit})
	require.ErrorAs(t, err, &notReady)
	require.Contains(t, notReady.Said, "Work in progress")

	theirs := w.repo.Commit(t, w.bot, giteatest.Commit{Branch: "conflict", From: "main", Path: "same", Text: "ours"})
	conflict, err := w.forge.Open(t.Context(), forge.Opening{Title: "c", Head: "conflict", Base: "main"})
	require.NoError(t, err)
	w.repo.Commit(t, w.person, giteatest.Commit{Branch: "main", Path: "same", Text: "theirs"})
	require.Eventually(t, func() bool {
		_, err = w.forge.Merge(t.Context(), conflict.Number, forge.Merge{When: forge.Now, Method: forge.MethodMerge, Commit: theirs})
		return err != nil
	}, patience, tick)
	require.ErrorAs(t, err, &notReady)
	w.await(conflict.Number, func(d forge.Details) bool { return !d.Mergeable })
}
