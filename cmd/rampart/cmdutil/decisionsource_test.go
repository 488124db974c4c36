package cmdutil

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdtest"
	"github.com/rampart-gitops/rampart/internal/auditlog"
)

const twoLines = `{"decision_id": "a", "timestamp": "2026-03-01T00:00:00Z", "input": {"deployment": {"namespace": "n", "name": "x"}}}

{"decision_id": "b", "timestamp": "2026-03-02T00:00:00Z", "input": {"deployment": {"namespace": "n", "name": "y"}}}
`

// Lines are read one by one: who wants no more is not told of what is wrong further on, and an ended context ends it.
func TestDecisionLines(t *testing.T) {
	lines := func(text string) decisionLines { return decisionLines{name: "-", in: strings.NewReader(text)} }
	var ids []string
	for d, err := range lines(twoLines+"nonsense").Decisions(t.Context(), auditlog.Filter{}) {
		require.NoError(t, err)
		if ids = append(ids, d.ID); len(ids) == 2 {
			break
		}
	}
	require.Equal(t, []string{"a", "b"}, ids)
	last, err := lines(twoLines).Last(t.Context(), "n/x")
	require.NoError(t, err)
	require.Equal(t, "a", last.ID)
	_, err = lines(twoLines+"nonsense").Last(t.Context(), "n/x")
	require.ErrorContains(t, err, "read decisions -: line 4: it is not a decision: it is not JSON")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = lines(twoLines).Last(ended, "n/x")
	require.ErrorIs(t, err, context.Canceled)
	ok, err := wanted(auditlog.Decision{ID: "a", Timestamp: cmdtest.Now, Input: []byte(`{"deployment": {"namespace": "n", "name": "x"}}`)}, auditlog.Filter{Since: cmdtest.Now.AddDate(0, 0, 1)})
	require.NoError(t, err)
	require.False(t, ok)
}

// Whatever is in the file, it is read to its end or to one error, and what is given has an input.
func FuzzDecisionLines(f *testing.F) {
	f.Add(twoLines)
	f.Add(`{"input": null}`)
	f.Add("{\"input\": {\"deployment\": {}}}\n{}")
	f.Fuzz(func(t *testing.T, text string) {
		var failed error
		for d, err := range (decisionLines{name: "-", in: strings.NewReader(text)}).Decisions(t.Context(), auditlog.Filter{}) {
			if failed != nil {
				t.Fatal("something was given after an error")
			}
			failed = err
			if err == nil && len(d.Input) == 0 {
				t.Fatal(errors.New("a decision without an input"))
			}
			if err == nil {
				_, _ = RecordedInputOf(d)
			}
		}
	})
}
