package policy

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/policy/policytest"
)

const looping = "package rampart.rollout\n\ndeny contains {\"rule\": \"x\", \"msg\": \"m\"} if {\n	some i in numbers.range(1, 100000)\n	some j in numbers.range(1, 100000)\n	i * j == -1\n}\n"

// A cycle over many worker deployments pays for a policy that loops once, not for each of them.
func TestLoopingPolicyCostsACycleLittle(t *testing.T) {
	const timeout = 5 * time.Second // far more than the steps take
	e, other := Compile(Config{Modules: policytest.Modules(looping), Bounds: Bounds{Timeout: timeout}}), of()
	s := snapshot(t)
	var all time.Duration
	for i := range 200 {
		s.Deployment.Name = fmt.Sprintf("worker-%d", i)
		start := time.Now()
		v := e.Judge(t.Context(), s, proposal(ramp(), reset()))
		all += time.Since(start)
		f := v.Of(ramp().ID).Findings[0]
		require.Equal(t, rollout.HoldEffect, v.Of(ramp().ID).Effect)
		require.Equal(t, "policy.timeout", f.Rule)
		require.Equal(t, "the policies of rampart.rollout took more than 200000 steps", f.Message)
		require.Equal(t, "policies/p1.rego:3", f.Location)
		require.Equal(t, rollout.Allow, v.Of(reset().ID).Effect)
		require.Equal(t, rollout.Allow, other.Judge(t.Context(), s, proposal(ramp())).Of(ramp().ID).Effect)
	}
	require.Less(t, all, 4*timeout, "asked for each, it would take 200 times all steps")
}

// What policies do with the whole of what they see is within bounds.
func TestEverydayUseIsNotRefused(t *testing.T) {
	testneed.Plain(t)
	for name, expression := range map[string]string{
		"marshal":    `count(json.unmarshal(json.marshal(input))) == count(input)`,
		"yaml":       `count(yaml.unmarshal(yaml.marshal(input.deployment))) > 0`,
		"filter":     `json.filter(input, ["deployment/spec/replicas", "action"]).action.kind`,
		"remove":     `json.remove(input, ["deployment"]).action.kind`,
		"patch":      `json.patch(input, [{"op": "replace", "path": "/action/to", "value": 3}]).action.to == 3`,
		"union":      `object.union(input, {"extra": input}).extra.action.kind`,
		"union of n": `object.union_n([input, input, input]).action.kind`,
		"walk":       `count([v | walk(input, [_, v]); is_string(v)]) > 10`,
		"paths":      `count([p | walk(input.deployment, [p, "checkout"])]) > 0`,
		"print":      `contains(sprintf("%v: %s %d", [input, input.action.kind, input.action.to]), "Ramp")`,
		"templates":  `contains($"{input.action.kind} of {input.deployment}", "Ramp")`,
		"patterns":   `every c in input.deployment.spec.template.spec.containers { regex.match("^[a-z0-9.-]{1,60}(:[0-9]{2,5})?/[a-z0-9/._-]{1,200}:[0-9]+([.][0-9]+){0,2}$", c.image) }`,
		"globs":      `glob.match("registry.example/*:*", null, input.deployment.spec.template.spec.containers[0].image)`,
		"split":      `count(split(input.git.commit, "")) > 3`,
		"sets":       `count({v.buildID | some v in input.versions} | {"v9"} - {"v1"}) == 4`,
		"fractions":  `sum([y | some x in numbers.range(1, 300); y := x / 7]) > 0; count({y | some x in numbers.range(1, 100); y := x / 7} & {1, 2}) == 2`,
		"text":       `count(replace(upper(json.marshal(input)), "A", "bb")) > 100`,
		"times":      `time.format(time.parse_rfc3339_ns(input.now)) != ""`,
		"hashes":     `crypto.sha256(json.marshal(input)) != ""`,
		"subset":     `object.subset(input, {"action": {"kind": "Ramp"}})`,
		"sorted":     `sort([v.buildID | some v in input.versions])[0] == "v1"`,
	} {
		t.Run(name, func(t *testing.T) {
			e := of(policytest.Rules("warn contains {\"rule\": \"acme.seen\", \"msg\": \"m\"} if {\n\t" + expression + "\n}\n"))
			require.Empty(t, e.Problems())
			v := judge(t, e, ramp())
			require.Equal(t, map[string]rollout.Effect{"acme.seen": rollout.Warn}, rulesOf(v), "%+v", v.Findings)
		})
	}
}
