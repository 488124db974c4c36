package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// What comes from a repository or a file brings no number of many digits: OPA would calculate digit by digit.
func TestNumbersOfDocuments(t *testing.T) {
	many := "1" + strings.Repeat("0", 2000)
	for number, c := range map[string]struct{ fact, input string }{
		"1e999999999": {"the input of the policies could not be made", "number too big"},
		many:          {},
	} {
		s := snapshot(t)
		s.Facts["rate"] = rollout.Fact{Value: json.RawMessage(number), ObservedAt: s.Now}
		said := func(e *Engine) (out string) {
			for _, f := range e.Judge(t.Context(), s, proposal(ramp())).Of(ramp().ID).Findings {
				out += f.Message
			}
			return out
		}
		require.Contains(t, said(of()), c.fact, "%.20s", number)
		_, err := DecodeDocument([]byte(`{"now": "2026-03-03T12:00:00Z", "action": {"id": "a", "kind": "Ramp", "to": ` + number + `}}`))
		if c.input != "" {
			require.ErrorContains(t, err, c.input)
		}
		s = snapshot(t)
		e := Compile(Config{Data: []parse.DataFile{{Path: "policies/d.yaml", Content: "rampart: {config: {rollout: {budget: {maxRamping: " + number + "}}}}\n"}}})
		require.NotEmpty(t, e.Problems(), "%.20s", number)
		for _, field := range []string{number, "-1e-999999999"} {
			s.Spec.Spec.Strategy = json.RawMessage(field)
			require.Contains(t, said(of()), "a number with more than 1000 digits", "a field that is passed on as it is written")
		}
	}
	s := snapshot(t)
	s.Spec.Spec.Strategy = json.RawMessage("-0.0e5")
	require.Equal(t, rollout.Allow, Compile(Config{}).Judge(t.Context(), s, proposal(ramp())).Of(ramp().ID).Effect)
}
