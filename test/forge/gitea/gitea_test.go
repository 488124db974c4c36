package gitea_test

import (
	"testing"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/forge"
)

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
