package forgetest

import (
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/forge"
)

// What is read is the last word of each context, over pages; what the bot set and what others did.
func testStatuses(s *Site) {
	commit := s.Branch(head)
	all, err := s.Forge.Statuses(s.Context(), commit)
	require.NoError(s, err)
	require.Empty(s, all)
	require.NoError(s, s.Forge.SetStatus(s.Context(), commit, forge.Status{Context: "rampart/prod",
		State: forge.StatusPending, Description: "ramps", URL: "https://rampart.example.com/1"}))
	s.Check(commit, "argocd/workers", "pending")
	s.Check(commit, "argocd/workers", "success")
	failure := "failure"
	if s.Kind == forge.KindGitLab {
		failure = "failed"
	}
	s.Check(commit, "ci", failure)
	all, err = s.Forge.Statuses(s.Context(), commit)
	require.NoError(s, err)
	require.Len(s, all, 3)
	require.Equal(s, forge.Status{Context: "argocd/workers", State: forge.StatusSuccess}, all[0])
	require.Equal(s, forge.StatusFailure, all[1].State)
	require.Equal(s, forge.Status{Context: "rampart/prod", State: forge.StatusPending, Description: "ramps",
		URL: "https://rampart.example.com/1"}, all[2])

	s.SetRules(func(r *Rules) { r.MaxPage = 2 })
	for i := range 4 {
		s.Check(commit, fmt.Sprintf("more/%d", i), "success")
	}
	all, err = s.Forge.Statuses(s.Context(), commit)
	require.NoError(s, err)
	require.Len(s, all, 7, "over four pages")

	other, err := s.Forge.Statuses(s.Context(), s.Branch("other"))
	require.NoError(s, err)
	require.Empty(s, other, "of another commit")
	var refused *forge.RefusedError
	_, err = s.Forge.Statuses(s.Context(), strings.Repeat("0", 40))
	require.ErrorAs(s, err, &refused, "none is not the same as not known")
	for i := range 20 {
		s.Check(commit, fmt.Sprintf("many/%d", i), "success")
	}
	_, err = s.Forge.Statuses(s.Context(), commit)
	require.ErrorAs(s, err, &refused, "cut off, one that is missing would pass for one that nobody set")
}
