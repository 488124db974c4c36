package policy

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/testneed"
)

// What was masked is noticed where a policy reads it. That is directly, by a variable, in a helper, in text made of it;
// and not where it does not.
func TestMasks(t *testing.T) {
	testneed.Plain(t)
	d, err := NewDocument(snapshot(t), proposal())
	require.NoError(t, err)
	body, err := json.Marshal(d)
	require.NoError(t, err)
	masked := bytes.ReplaceAll(bytes.ReplaceAll(body, []byte(`"eu-central-1"`), []byte(`"***"`)), []byte(`"gold"`), []byte(`"***"`))
	require.NotEqual(t, body, masked)
	d, err = DecodeDocument(masked)
	require.NoError(t, err)
	pointers := []string{"/input/deployment/metadata/labels/tier", "/input/deployment/spec/template/spec/containers/0/env/1/value", "/result/spec"}
	const warn = "package rampart.rollout\n\nimport data.rampart.library.match\n\nwarn contains {\"rule\": \"acme.x\", \"msg\": \"x\"} if {\n"
	const containers = "some c in input.deployment.spec.template.spec.containers\n"
	for name, c := range map[string]struct {
		policy string
		want   bool
	}{
		"library":           {"package acme", false},
		"direct":            {warn + `input.deployment.spec.template.spec.containers[0].env[1].value == "x"` + "\n}", true},
		"any":               {warn + `input.deployment.spec.template.spec.containers[_].env[_].value == "x"` + "\n}", true},
		"any by hand":       {warn + `input.deployment.spec.template.spec.containers[i].env[j].value == "x"` + "\ni + j > 0\n}", true},
		"any of some":       {warn + `input.deployment.spec.template.spec.containers[_].env[i].value == "info"` + "\ni > 0\n}", true},
		"any of a variable": {warn + containers + "c.env[_].value == \"x\"\n}", true},
		"any name":          {warn + `input.deployment.spec.template.spec.containers[_].env[_].name == "x"` + "\n}", false},
		"every":             {warn + "every c in input.deployment.spec.template.spec.containers {\nc.env[_].value == \"x\"\n}\n}", true},
		"every name":        {warn + "every c in input.deployment.spec.template.spec.containers {\nc.env[_].name == \"x\"\n}\n}", false},
		"any not":           {warn + "not regional\n}\n\nregional if input.deployment.spec.template.spec.containers[_].env[_].value == \"x\"\n", true},
		"any key":           {warn + `input.deployment.metadata.labels[_] == "x"` + "\n}", true},
		"variable":          {warn + containers + "some e in c.env\ne.value == \"x\"\n}", true},
		"name only":         {warn + containers + "some e in c.env\ne.name == \"REGION\"\n}", false},
		"other":             {warn + containers + "some e in c.env\ne.name == \"LOG_LEVEL\"\ne.value == \"info\"\n}", false},
		"counted":           {warn + containers + "count(c.env) > 5\n}", false},
		"helper":            {warn + containers + "region(c) == \"x\"\n}\n\nregion(c) := object.get(c.env[1], \"value\", \"\")\n", true},
		"text":              {warn + containers + "contains(json.marshal(c), \"x\")\n}", true},
		"gathered":          {warn + "xs := [e.value | some e in input.deployment.spec.template.spec.containers[_].env]\n\"x\" in xs\n}", true},
		"label":             {warn + "match.scope({\"labels\": {\"tier\": \"gold\"}})\n}", true},
		"no label":          {warn + "match.scope({\"labels\": {\"team\": \"x\"}})\n}", false},
		"spec":              {"package rampart.spec\n\nwarn contains {\"rule\": \"acme.x\", \"msg\": \"x\"} if input.deployment.metadata.labels.tier == \"x\"\n", true},
	} {
		e := of(c.policy)
		if name != "helper" && name != "any not" { // functions are no rules of the contract
			require.Empty(t, e.Problems(), name)
		}
		got, err := e.Masks("***").Read(t.Context(), d, pointers)
		require.NoError(t, err, name)
		require.Equal(t, c.want, got, name)
		got, err = e.Masks("***").Read(t.Context(), d, pointers[2:])
		require.NoError(t, err)
		require.False(t, got, "what is masked in the result is nothing that policies see")
	}
}
