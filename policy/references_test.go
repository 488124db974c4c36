package policy

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy/input"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// referencesOn is a data file that switches the library's rule on.
var referencesOn = parse.DataFile{Path: "data.yaml",
	Content: "rampart: {config: {spec: {references: {warnEnvironments: [\"*\"]}}}}\n"}

// What versions name is looked for where the library's rule is configured, or where another rule looks at it.
func TestLooksAtReferences(t *testing.T) {
	require.False(t, Compile(Config{}).Looks().At(input.References))
	require.True(t, Compile(Config{Data: []parse.DataFile{referencesOn}}).Looks().At(input.References))
	floor := Compile(Config{Floor: []Layer{{Data: []parse.DataFile{referencesOn}}}})
	require.True(t, floor.Looks().At(input.References), "by the bot's own configuration")
	for text, want := range map[string]bool{
		`some v in input.references; v.state == "Current"`: true,
		`some lost in referring.removed; lost.name == "a"`: true,
		`input.environment.name == "prod"`:                 false,
		`object.get(input, "x", null) == {}`:               true,
	} {
		e := of("package rampart.spec\n\nimport data.rampart.library.referring\n\n" +
			"warn contains {\"rule\": \"a\", \"msg\": \"b\"} if {\n\t" + text + "\n}\n")
		require.Empty(t, e.Problems(), text)
		require.Equal(t, want, e.Looks().At(input.References), text)
	}
}

// The spec's verdict has the warning, and only where a change was compared with its base.
func TestReferencesWarn(t *testing.T) {
	e := Compile(Config{Data: []parse.DataFile{referencesOn}})
	s := snapshot(t)
	require.Empty(t, e.Judge(t.Context(), s, rollout.Proposal{}).Spec.Findings)
	s.References = []rollout.VersionReferences{{BuildID: "v1", State: rollout.StatusDraining,
		Objects: []rollout.Reference{{Kind: "ConfigMap", Name: "settings", Removed: []string{"config/a.yaml"}}}}}
	verdict := e.Judge(t.Context(), s, rollout.Proposal{}).Spec
	require.Equal(t, rollout.Allow, verdict.Effect)
	require.Len(t, verdict.Findings, 1)
	require.Equal(t, "spec.references", verdict.Findings[0].Rule)
	require.Contains(t, verdict.Findings[0].Message,
		"/settings is removed (it was in config/a.yaml), and still needed by v1 (draining): keep it")
	require.Empty(t, Compile(Config{}).Judge(t.Context(), s, rollout.Proposal{}).Spec.Findings, "off by default")
}
