package report

import (
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
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

// What commits and decisions say may hold anything.
func TestHistoryTextIsClean(t *testing.T) {
	const evil = "\x1b[2J\x07\r\u009b\u202e"
	h := History{Events: []Event{
		{Kind: CommitEvent, Who: "sam" + evil, What: "spec" + evil, Why: []string{"why" + evil}, Commit: evil + "9f8e7d6a1", Paths: []string{evil}},
		{Kind: DecisionEvent, Who: "bot" + evil, What: "Ramp: allow" + evil, Why: []string{"rule" + evil + ": m\nn"}, Decision: evil},
	}}
	var b strings.Builder
	require.NoError(t, h.WriteText(&b, Plain))
	require.Empty(t, strings.Trim(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return -1
		}
		return r
	}, b.String()), "\n"), "%q", b.String())
	require.Contains(t, b.String(), `rule\u001b[2J\u0007 \u009b\u202e: m n`)
}

// So may the effect of a recorded verdict.
func TestVerdictTextIsClean(t *testing.T) {
	var b strings.Builder
	v := rollout.Verdict{Effect: "hold\x1b[2J", Findings: []rollout.Finding{{Rule: "a\x1b", Effect: "deny\x07", Message: "m\r", Waived: "w\u009b"}}}
	WriteVerdict(&b, "recorded\x1b", v, Plain)
	require.Equal(t, "  recorded\\u001b: hold\\u001b[2J\n    a\\u001b: deny\\u0007: m [waived by w\\u009b]\n", b.String())
}
