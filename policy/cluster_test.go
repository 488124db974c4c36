package policy

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// podsPolicy is the policy of docs/policies.md that goes by pods.
func podsPolicy(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../docs/policies.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(page), "```rego\npackage rampart.rollout\n\nimport data.rampart.facts\n")
	require.True(t, found)
	text, _, _ := strings.Cut(rest, "```")
	require.Contains(t, text, "facts.pods(")
	return "package rampart.rollout\n\nimport data.rampart.facts\n" + text
}

// A rule about pods holds while they are not ready, and while they are not known, whatever the reason. It is asked
// about what is known only.
func TestPodsOfTheCluster(t *testing.T) {
	e := of(podsPolicy(t))
	require.Empty(t, e.Problems())
	require.True(t, e.Looks().At("cluster"))
	pods := func(ready int, problems ...rollout.PodProblem) *rollout.Cluster {
		return &rollout.Cluster{At: now, Versions: []rollout.VersionPods{{BuildID: "v3", Desired: 2, Ready: ready, Available: ready, Pods: 2, Problems: problems}}}
	}
	crash := rollout.PodProblem{Reason: rollout.CrashLoopBackOff, Pods: 1, Message: "exit code 3"}
	for name, c := range map[string]struct {
		cluster *rollout.Cluster
		effect  rollout.Effect
		says    string
	}{
		"all are ready":       {pods(2), rollout.Allow, ""},
		"one is not":          {pods(1, crash), rollout.HoldEffect, "1 of 2 pods of v3 are ready"},
		"no cluster":          {nil, rollout.HoldEffect, `the pods of "v3" are not known: the bot reads no cluster`},
		"it is away":          {&rollout.Cluster{Problem: "no answer from the cluster"}, rollout.HoldEffect, "no answer from the cluster"},
		"it was not read":     {&rollout.Cluster{}, rollout.HoldEffect, "it was not read"},
		"of another version":  {&rollout.Cluster{At: now, Versions: []rollout.VersionPods{{BuildID: "v2", Desired: 2, Ready: 2}}}, rollout.HoldEffect, "it has no files in Git"},
		"no version at all":   {&rollout.Cluster{At: now}, rollout.HoldEffect, "it has no files in Git"},
		"known with problems": {&rollout.Cluster{At: now, Problem: "no answer", Versions: pods(2).Versions}, rollout.HoldEffect, "no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			s := snapshot(t)
			s.Cluster = c.cluster
			verdict := e.Judge(t.Context(), s, proposal(ramp())).Actions["Ramp/v3@50%"]
			require.Equal(t, c.effect, verdict.Effect, verdict.Findings)
			if c.says != "" {
				require.Contains(t, verdict.Findings[0].Text(), c.says)
			}
		})
	}
}

// The library has a function about pods, and asks for none itself: clusters are waited for only where a policy asks.
func TestLooksAtTheCluster(t *testing.T) {
	require.False(t, Compile(Config{}).Looks().At("cluster"))
	for text, want := range map[string]bool{
		`facts.pods("v2").ready < 2`:         true,
		`input.cluster.known`:                true,
		`facts.require("error_rate") > 3`:    false,
		`some_pods(input.action.buildID)`:    true,
		`object.get(input, "x", null) == {}`: true,
	} {
		helper := ""
		if strings.HasPrefix(text, "some_pods") {
			helper = "some_pods(b) if facts.pods(b).pods > 0\n\n"
		}
		e := of("package rampart.rollout\n\nimport data.rampart.facts\n\n" + helper + "warn contains {\"rule\": \"a\", \"msg\": \"b\"} if {\n\t" + text + "\n}\n")
		require.Empty(t, e.Problems(), text)
		require.Equal(t, want, e.Looks().At("cluster"), text)
	}
}
