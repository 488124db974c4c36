package report

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// An approval that did not count shows in status and explain, as long as what it was about is proposed.
func TestRefusedApprovalShows(t *testing.T) {
	p := &v1alpha1.RecordedProposal{BuildID: "v2", Refused: &v1alpha1.Asked{By: "ada", Reason: "ada asked for it, in commit a1"}}
	s := rollout.Snapshot{Record: rollout.Record{Routing: &v1alpha1.Routing{Spec: v1alpha1.RoutingSpec{Proposal: p}}}}
	const want = "the approval by ada does not count, somebody else has to approve: ada asked for it, in commit a1"
	st := NewStatus(s)
	var table, explained strings.Builder
	require.NoError(t, WriteStatuses(&table, []Status{st}, time.Time{}))
	require.Contains(t, table.String(), want)
	Explanation{Status: st}.writeFacts(&explained, time.Time{})
	require.Contains(t, explained.String(), "Refused   "+want)
	p.Withdrawn = true
	require.Nil(t, NewStatus(s).Refused)
}
