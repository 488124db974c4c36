package policy

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/policy/parse"
)

// Which statuses are asked for follows from the policies: names that are written out, and parameters; of the repository
// and of the bot's own.
func TestStatusesThatPoliciesAskForAreFound(t *testing.T) {
	require.Empty(t, Compile(Config{}).Looks().Statuses, "the library alone asks for none")
	repository := parse.Module{Path: "policies/cd.rego", Source: `package rampart.rollout
import data.rampart.facts
hold contains {"rule": "shop.cd", "msg": "status: not healthy"} if {
	input.action.raises
	facts.require("status:argocd/workers") != "success"
}
hold contains {"rule": "shop.ci", "msg": "no"} if not input.facts["status:ci"].fresh
hold contains {"rule": "shop.other", "msg": "no"} if input.facts[sprintf("status:%s", ["made up"])].value != "success"
`}
	test := parse.Module{Path: "policies/cd_test.rego", Source: "package rampart.rollout_test\ntest_x if \"status:only/a/test\" == \"\"\n"}
	data := parse.DataFile{Path: "data.yaml", Content: "rampart: {config: {rollout: {statuses: {required: [{context: flux/workers}]}}}}\n"}
	floor := Layer{Name: "own", Modules: []parse.Module{{Path: "own.rego", Source: `package rampart.rollout
hold contains {"rule": "org.scan", "msg": "no"} if input.facts["status:scan"].value != "success"
`}}, Data: []parse.DataFile{{Path: "own.yaml", Content: "rampart: {config: {rollout: {statuses: {required: [{context: org/gate}]}}}}\n"}}}
	e := Compile(Config{Modules: []parse.Module{repository, test}, Data: []parse.DataFile{data}, Floor: []Layer{floor}})
	require.Empty(t, e.Problems())
	require.Equal(t, []string{"argocd/workers", "ci", "flux/workers", "org/gate", "scan"}, e.Looks().Statuses)
}
