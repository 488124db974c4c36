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

// What is counted in a phase is asked for only where a rule judges by it.
func TestLooksAtCounts(t *testing.T) {
	e := func(text, settings string) *Engine {
		return Compile(Config{Modules: policytest.Modules("package rampart.rollout\n\nimport data.rampart.library.candidate\n\n" +
			"warn contains {\"rule\": \"a\", \"msg\": \"b\"} if {\n\t" + text + "\n}\n"), Data: canaryData(settings)})
	}
	const (
		none, ramp, bake, window = rollout.PhaseNone, rollout.PhaseRamp, rollout.PhaseBake, rollout.PhaseWindow
		elsewhere                = `input.action.kind == "Ramp"`
	)
	phases := func(of ...rollout.CanaryPhase) []rollout.CanaryPhase { return append([]rollout.CanaryPhase{}, of...) }
	require.Equal(t, phases(none, window), Compile(Config{}).Looks().Uncounted(), "the library looks at a ramp and a bake")
	for _, c := range []struct {
		text, settings string
		uncounted      []rollout.CanaryPhase
	}{
		{elsewhere, "phases: [Ramp]", phases(none, bake, window)},
		{elsewhere, "phases: [Ramp, Window]", phases(none, bake)},
		{elsewhere, "phases: [Bake]", phases(none, ramp, window)},
		{elsewhere, "phases: []", phases(none, ramp, bake, window)},
		{elsewhere, "phases: [], minSamples: 0", phases(none, ramp, bake, window)},
		{elsewhere, "phases: [], minSamples: 50", phases(none, window)},
		{`input.canary.phase == "Window"`, "phases: []", phases()},
		{`candidate.judged`, "phases: []", phases()},
		{`count(input) > 3`, "phases: []", phases()},
		{`some v in input.versions; v.closed.known`, "phases: []", phases(window)},
		{`some v in input.firstRead.versions; v.closed.known`, "phases: []", phases(window)},
	} {
		e := e(c.text, c.settings)
		require.Empty(t, e.Problems(), c.text)
		require.Equal(t, c.uncounted, e.Looks().Uncounted(), "%s, %s", c.text, c.settings)
	}
	require.Empty(t, e(elsewhere, "phases: {a: Ramp}").Looks().Uncounted(), "it may have any phase")
	recursive := policytest.Modules("package rampart.rollout\n\nf(x) := f(x)\n")
	for settings, want := range map[string][]rollout.CanaryPhase{"phases: []": {window}, "phases: [Window]": {}} {
		broken := Compile(Config{Library: recursive, Data: canaryData(settings)})
		require.NotEmpty(t, broken.Problems())
		require.Equal(t, want, broken.Looks().Uncounted(), "a library that does not compile may look at what it could")
	}
}

// The bot's own configuration looks at the phases that it names, beside those of the repository.
func TestFloorLooksAtCounts(t *testing.T) {
	modules := policytest.Modules("package rampart.rollout\n\nwarn contains {\"rule\": \"a\", \"msg\": \"b\"} if input.action.raises\n")
	for _, c := range []struct {
		layer     Layer
		uncounted []rollout.CanaryPhase
	}{
		{Layer{Name: "own", Modules: modules}, rollout.CanaryPhases()},
		{Layer{Name: "own", Data: canaryData("phases: [Bake]")}, []rollout.CanaryPhase{rollout.PhaseNone, rollout.PhaseRamp, rollout.PhaseWindow}},
		{Layer{Name: "own", Data: []parse.DataFile{{Path: "data.yaml", Content: "rampart: {config: {rollout: {versions: {max: 3}}}}"}}}, rollout.CanaryPhases()},
	} {
		e := Compile(Config{Data: canaryData("phases: []"), Floor: []Layer{c.layer}})
		require.Empty(t, e.Problems())
		require.Equal(t, c.uncounted, e.Looks().Uncounted())
	}
}

func canaryData(settings string) []parse.DataFile {
	return []parse.DataFile{{Path: "data.yaml", Content: "rampart: {config: {rollout: {canary: {" + settings + "}}}}"}}
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
