package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/policy/parse"
	"github.com/rampart-gitops/rampart/policy/policytest"
)

// TestNumbersOfManyDigits checks that a number with too many digits is refused where it is read, in whatever notation.
// There is neither memory nor time for OPA to write it out.
func TestNumbersOfManyDigits(t *testing.T) {
	testneed.Plain(t)
	const refused = "a number with more than 1000 digits"
	for name, c := range map[string]struct{ condition, want string }{
		"hexadecimal":       {`to_number("0x1p-999999999") * 3 > 1`, refused},
		"capitals":          {`to_number("0X1P-999999999") * 3 > 1`, refused},
		"signed":            {`to_number("-0x1p-999999999") * 3 > 1`, refused},
		"underscores":       {`to_number("0x_1p-9_9999_9999") * 3 > 1`, refused},
		"compared":          {`to_number("0x1p-999999999") > 1`, refused},
		"in a set":          {`count({to_number(x) | some x in ["0x1p-9999999999", "0x1p-9999999998"]}) == 2`, refused},
		"sorted":            {`sort([to_number(x) | some x in ["0x1p-9999999999", "0x1p-9999999998"]])[0] < 1`, refused},
		"decimal":           {`to_number("1e999999999") > 1`, refused},
		"negative exponent": {`to_number("1e-999999999") > 1`, refused},
		"digits":            {`to_number(concat("", [x | some _ in numbers.range(1, 1001); x := "1"])) > 1`, refused},
		"quoted unit":       {`units.parse("1\"e\"999999") > 1`, refused},
		"quoted bytes":      {`units.parse_bytes("1\"e\"999999") > 1`, refused},
		"from JSON":         {`json.unmarshal("[1e9999]")[0] > 1`, refused},
		"no number":         {`to_number("0b11") > 1`, `invalid syntax`},
		"octal":             {`to_number("0o17") > 1`, `invalid syntax`},
		"grouped":           {`to_number("1_000") > 1`, refused},
		"words":             {`to_number("3 apples") > 1`, `invalid syntax`},
	} {
		t.Run(name, func(t *testing.T) {
			v := judge(t, of(policytest.Deny("\t"+c.condition)), ramp())
			require.Equal(t, rollout.HoldEffect, v.Effect)
			require.Equal(t, "policy.error", v.Findings[0].Rule, v.Findings[0].Message)
			require.Contains(t, v.Findings[0].Message, c.want)
			require.Equal(t, "policies/p1.rego:4", v.Findings[0].Location)
		})
	}
}

// Numbers as people write them are read.
func TestNumbersOfFewDigits(t *testing.T) {
	testneed.Plain(t)
	for _, condition := range []string{
		`to_number("10") == 10`, `to_number("-1.5") == -1.5`, `to_number("+2") + 1 == 3`, `to_number(".5") * 2 == 1`, `to_number("5.") == 5`,
		`to_number("1e3") == 1000`, `to_number("1.25E-2") == 0.0125`, `to_number("1e0003") == 1000`, `to_number("9007199254740993") == 9007199254740993`,
		`units.parse("1.5Gi") == 1610612736`, `units.parse("100m") == 0.1`, `units.parse("\"2\"") == 2`, `units.parse("1e3") == 1000`, `units.parse("1Ei") > 1`,
		`units.parse_bytes("10MiB") == 10485760`, `units.parse_bytes("1e3kb") == 1000000`, `1e300 * 10 > 1`,
	} {
		v := judge(t, of(policytest.Deny("\t"+condition)), ramp())
		require.Equal(t, map[string]rollout.Effect{"acme.x": rollout.HoldEffect}, rulesOf(v), "%s: %+v", condition, v.Findings)
	}
}

// What comes from a repository or a file brings no such number either.
func TestNumbersOfDocuments(t *testing.T) {
	testneed.Plain(t)
	many := "1" + strings.Repeat("0", 2000)
	for number, c := range map[string]struct{ fact, input, data string }{
		"1e999999999":   {"the input of the policies could not be made", "number too big", "must be number but got string"},
		"-1e-999999999": {"", "", ""}, // which is nothing
		many:            {"a number with more than 1000 digits", "", "must be number but got string"},
	} {
		s := snapshot(t)
		s.Facts["rate"] = rollout.Fact{Value: json.RawMessage(number), ObservedAt: s.Now}
		said := func(e *Engine) (out string) {
			for _, f := range e.Judge(t.Context(), s, proposal(ramp())).Of(ramp().ID).Findings {
				out += f.Message
			}
			return out
		}
		require.Contains(t, said(of(policytest.Deny("\tinput.facts.rate.value * 3 > 1"))), c.fact, "%.20s", number)
		d, err := DecodeDocument([]byte(`{"now": "2026-03-03T12:00:00Z", "action": {"id": "a", "kind": "Ramp", "to": ` + number + `}}`))
		if c.input != "" {
			require.ErrorContains(t, err, c.input)
		} else {
			v := of(policytest.Deny("\tinput.action.to < 1000\n\tinput.action.to * 3 > 1")).JudgeDocument(t.Context(), d).Of("a")
			require.Condition(t, func() bool { return number == many || strings.Contains(v.Findings[0].Message, "more than 1000 digits") }, "%.20s: %+v", number, v)
		}
		s = snapshot(t)
		data := Compile(Config{Modules: policytest.Modules(policytest.Deny("\tdata.x * 3 > 1")), Data: []parse.DataFile{{Path: "policies/d.yaml", Content: "x: " + number + "\n"}}})
		require.Contains(t, said(data), c.data, "%.20s", number)

		s.Spec.Spec.Strategy = json.RawMessage(number)
		require.Contains(t, said(of()), "a number with more than 1000 digits", "a field that is passed on as it is written")
	}
}

// A panic has a place too: that of the rules of the package.
func TestPanicsHaveAPlace(t *testing.T) {
	e := of(policytest.Deny("\tupper(input.action.kind) == \"RAMP\""))
	builtinIs(e, "upper", func(topdown.BuiltinContext, []*ast.Term, func(*ast.Term) error) error { panic("illegal value") })
	v := judge(t, e, ramp())
	require.Equal(t, rollout.HoldEffect, v.Effect)
	require.Equal(t, "panic: illegal value", v.Findings[0].Message)
	require.Equal(t, "policies/p1.rego:3", v.Findings[0].Location)
}
