package report

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Of one second, what led to something is older: a person's commit, the decision on it, the bot's commit.
func TestSortEvents(t *testing.T) {
	at := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	events := []Event{
		{What: "before", Kind: DecisionEvent, At: at.Add(-time.Second)},
		{What: "spec", Kind: CommitEvent, At: at},
		{What: "carried out", Kind: CommitEvent, ByBot: true, At: at},
		{What: "decided", Kind: DecisionEvent, At: at.Add(300 * time.Millisecond)},
		{What: "decided again", Kind: DecisionEvent, At: at.Add(600 * time.Millisecond)},
		{What: "after", Kind: CommitEvent, At: at.Add(time.Second)},
	}
	SortEvents(events)
	var got []string
	for _, e := range events {
		got = append(got, e.What)
	}
	require.Equal(t, []string{"after", "carried out", "decided again", "decided", "spec", "before"}, got)
}
