package policy

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/policy/parse"
	"github.com/rampart-gitops/rampart/policy/policytest"
)

func TestLooksAt(t *testing.T) {
	testneed.Plain(t)
	e := Compile(Config{})
	require.True(t, e.Looks().At("routing"))
	require.False(t, e.Looks().At("git"), "the library asks for no history")
	for text, want := range map[string]bool{
		`input.git.author == "Ada"`:                                   true,
		`some i; input.versions[i].buildID == input.git.commit`:       true,
		`some part; input[part].author == "Ada"`:                      true,
		`contains(json.marshal(input), "Ada")`:                        true,
		`f(input)`:                                                    true,
		`x := input.plan; x.git == "Ada"`:                             false,
		`input.plan["git"] == "Ada"`:                                  false,
		`every v in input.versions { v.buildID != input.git.commit }`: true,
	} {
		e := of("package rampart.rollout\n\nf(x) if x.git\n\nwarn contains {\"rule\": \"a\", \"msg\": \"b\"} if {\n\t" + text + "\n}\n")
		require.Empty(t, e.Problems(), text)
		require.Equal(t, want, e.Looks().At("git"), text)
	}
	require.True(t, Compile(Config{Floor: []Layer{{Name: "own", Modules: policytest.Modules("package rampart.spec\n\nwarn contains {\"rule\": \"a\", \"msg\": input.git.author}\n")}}}).Looks().At("git"))
}

// What would be counted in the rollback window is asked for only where a rule judges by it.
func TestLooksAtTheRollbackWindow(t *testing.T) {
	e := func(text, phases string) *Engine {
		return Compile(Config{Floor: []Layer{{Name: "own", Modules: policytest.Modules("package rampart.rollout\n\nimport data.rampart.library.candidate\n\n" +
			"warn contains {\"rule\": \"a\", \"msg\": \"b\"} if {\n\t" + text + "\n}\n"),
			Data: []parse.DataFile{{Path: "data.yaml", Content: "rampart: {config: {rollout: {canary: {phases: [" + phases + "]}}}}"}}}}})
	}
	require.False(t, Compile(Config{}).Looks().At(rollout.PartWindow))
	require.False(t, e(`input.action.kind == "Ramp"`, "Ramp").Looks().At(rollout.PartWindow))
	require.True(t, e(`input.action.kind == "Ramp"`, "Ramp, Window").Looks().At(rollout.PartWindow))
	require.True(t, e(`input.canary.phase == "Window"`, "Ramp").Looks().At(rollout.PartWindow))
	require.True(t, e(`candidate.judged`, "Ramp").Looks().At(rollout.PartWindow), "by the library")
	require.True(t, e(`count(input) > 3`, "Ramp").Looks().At(rollout.PartWindow))
}

// A clause looks at what the rules that it leans on look at, and at nothing of others.
func TestClauseLooksAt(t *testing.T) {
	e := of(`package rampart.rollout

warn contains {"rule": "a", "msg": "b"} if not signed

warn contains {"rule": "c", "msg": "d"} if input.action.kind == "Ramp"

warn contains {"rule": "e", "msg": "f"} if count(input) > 0

signed if helper(input.versions)

helper(_) if input.git.signed == "Yes"
`)
	require.Empty(t, e.Problems())
	for line, want := range map[int][]string{3: {"git", "versions"}, 5: {"action"}, 7: {"git", "versions", "action"}} {
		for _, part := range []string{"git", "versions", "action"} {
			at := fmt.Sprintf("policies/p1.rego:%d", line)
			require.Equal(t, slices.Contains(want, part), e.ClauseLooksAt("rampart.rollout", at, part), "%s %s", at, part)
		}
	}
	require.True(t, e.ClauseLooksAt("rampart.rollout", "nowhere.rego:1", "git"), "what is not known is not said to be fine")
}
