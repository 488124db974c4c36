package policy

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAskEvaluatesAnExpression(t *testing.T) {
	d, err := NewDocument(snapshot(t), proposal())
	require.NoError(t, err)
	e := of("package acme\n\nlimit := 3\n\nslow if { some a in numbers.range(1, 3000); some b in numbers.range(1, 3000); a + b == -1 }\n")
	for expression, want := range map[string]string{
		"input.action.kind":                                 `[{"result":"Ramp"}]`,
		"data.acme.limit * 2":                               `[{"result":6}]`,
		"data.rampart.config.rollout.steps.maxPercentage":   `[{"result":100}]`,
		`some v in input.versions; v.drainage == "Drained"`: "",
		`id := input.action.buildID; to := input.action.to`: `[{"id":"v3","to":50}]`,
		"input.rollouts":                                    `null`,
		"count(data.rampart.rollout.deny)":                  `[{"result":0}]`,
		"input.action.to > 10":                              `[{"result":true}]`,
		"time.now_ns() == time.parse_rfc3339_ns(input.now)": `[{"result":true}]`,
	} {
		got, err := e.Ask(t.Context(), d, "Ramp/v3@50%", expression)
		require.NoError(t, err, expression)
		b, err := json.Marshal(got)
		require.NoError(t, err)
		if want != "" {
			require.JSONEq(t, want, string(b), expression)
		} else {
			require.Len(t, got, 1)
			require.Contains(t, string(got[0]["v"]), `"buildID":"v1"`)
		}
	}
	for expression, want := range map[string]string{
		"input.":                           "compile expression",
		`http.send({"url": "x"})`:          "undefined function http.send",
		"data.acme.slow":                   "the expression ", // took too long, or too much memory
		`to_number("x")`:                   "to_number",
		"some x in numbers.range(1, 2000)": "more than 1000 answers",
	} {
		_, err := e.Ask(t.Context(), d, "Ramp/v3@50%", expression)
		require.ErrorContains(t, err, want, expression)
	}
	_, err = e.Ask(t.Context(), d, "Ramp/none", "true")
	require.ErrorContains(t, err, `no action "Ramp/none"`)
	got, err := e.Ask(t.Context(), d, "", "input.action")
	require.NoError(t, err)
	require.Empty(t, got, "the spec's input has no action")
}
