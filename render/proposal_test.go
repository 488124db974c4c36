package render

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// What is proposed differs from the record in what is desired, and in no other line.
func TestProposedDiffersInWhatIsDesired(t *testing.T) {
	r := v1alpha1.Routing{APIVersion: v1alpha1.RampartAPIVersion, Kind: v1alpha1.KindRouting, Metadata: v1alpha1.ObjectMeta{Name: "checkout", Namespace: "shop"},
		Spec: v1alpha1.RoutingSpec{WorkerDeployment: "shop/checkout", TemporalNamespace: "shop", SpecPath: "a.yaml", Desired: v1alpha1.DesiredRouting{Current: "v1"}}}
	r.Seal()
	before, err := YAML(r)
	require.NoError(t, err)
	desired := v1alpha1.DesiredRouting{Current: "v1", Ramping: &v1alpha1.DesiredRamp{BuildID: "v2", Percentage: 10}}
	after, err := Proposed(before, rollout.ReviewAsk{Desired: &desired})
	require.NoError(t, err)
	docs, problems := v1alpha1.Decode("routing.yaml", after)
	require.Empty(t, problems)
	require.Equal(t, desired, docs[0].Object.(*v1alpha1.Routing).Spec.Desired)
	var more []string
	had := strings.Split(string(before), "\n")
	for line := range strings.SplitSeq(string(after), "\n") {
		if len(had) > 0 && line == had[0] {
			had = had[1:]
			continue
		}
		more = append(more, strings.TrimSpace(line))
	}
	require.Empty(t, had, "no line went")
	require.ElementsMatch(t, []string{"ramping:", "buildID: v2", "percentage: 10"}, more)
}

func TestProposedWithoutARecord(t *testing.T) {
	for text, want := range map[string]string{
		"": "0 documents", "a: b\n---\nc: d\n": "2 documents", "apiVersion: rampart.dev/v1alpha1\nkind: Routing\nspec: 3\n": "routing.yaml:",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n": "ConfigMap where a record is expected",
	} {
		_, err := Proposed([]byte(text), rollout.ReviewAsk{})
		require.ErrorContains(t, err, want, text)
	}
}

// A stage that waits is approved, and no other line is another.
func TestProposedApprovesAStage(t *testing.T) {
	stage := func(job string, state v1alpha1.EvacuationState) v1alpha1.RecordedEvacuation {
		return v1alpha1.RecordedEvacuation{Stage: v1alpha1.EvacuateByMove, Attempt: 1, Target: "v2", JobID: job, State: state}
	}
	r := v1alpha1.Routing{APIVersion: v1alpha1.RampartAPIVersion, Kind: v1alpha1.KindRouting, Metadata: v1alpha1.ObjectMeta{Name: "checkout", Namespace: "shop"},
		Spec: v1alpha1.RoutingSpec{WorkerDeployment: "shop/checkout", TemporalNamespace: "shop", SpecPath: "a.yaml", Desired: v1alpha1.DesiredRouting{Current: "v2"},
			Versions: []v1alpha1.RecordedVersion{
				{BuildID: "v1", BuildIDFrom: v1alpha1.BuildIDTemplate, Guard: v1alpha1.GuardOn, Evacuations: []v1alpha1.RecordedEvacuation{stage("one", v1alpha1.EvacuationProposed), stage("ran", v1alpha1.EvacuationRunning)}},
				{BuildID: "v0", BuildIDFrom: v1alpha1.BuildIDTemplate, Guard: v1alpha1.GuardOn, Evacuations: []v1alpha1.RecordedEvacuation{stage("two", v1alpha1.EvacuationProposed)}},
			}}}
	r.Seal()
	before, err := YAML(r)
	require.NoError(t, err)
	for _, job := range []string{"one", "two"} {
		after, err := Proposed(before, rollout.ReviewAsk{Proposal: rollout.ReviewedProposal{JobID: job}})
		require.NoError(t, err)
		docs, problems := v1alpha1.Decode("routing.yaml", after)
		require.Empty(t, problems)
		got := docs[0].Object.(*v1alpha1.Routing).Spec
		want := map[string]v1alpha1.EvacuationState{"one": v1alpha1.EvacuationProposed, "ran": v1alpha1.EvacuationRunning, "two": v1alpha1.EvacuationProposed}
		want[job] = v1alpha1.EvacuationApproved
		for _, v := range got.Versions {
			for _, e := range v.Evacuations {
				require.Equal(t, want[e.JobID], e.State, e.JobID)
			}
		}
		was, is := strings.Split(string(before), "\n"), strings.Split(string(after), "\n")
		require.Len(t, is, len(was))
		differ := 0
		for i := range was {
			if was[i] != is[i] {
				differ++
			}
		}
		require.Equal(t, 1, differ)
	}
	for _, job := range []string{"ran", "none", ""} {
		_, err := Proposed(before, rollout.ReviewAsk{Proposal: rollout.ReviewedProposal{JobID: job}})
		require.ErrorContains(t, err, "waits for approval", job)
	}
}
