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

// A proposal is not made anew because of where it, or a stage, is reviewed. It is for any other change.
func TestSameProposal(t *testing.T) {
	file := func(change func(*v1alpha1.RoutingSpec)) []byte {
		r := v1alpha1.Routing{APIVersion: v1alpha1.RampartAPIVersion, Kind: v1alpha1.KindRouting, Metadata: v1alpha1.ObjectMeta{Name: "checkout", Namespace: "shop"},
			Spec: v1alpha1.RoutingSpec{WorkerDeployment: "shop/checkout", TemporalNamespace: "shop", SpecPath: "a.yaml", Desired: v1alpha1.DesiredRouting{Current: "v1"},
				Proposal: &v1alpha1.RecordedProposal{BuildID: "v2", TemplateHash: "h", To: 10},
				Versions: []v1alpha1.RecordedVersion{{BuildID: "v1", BuildIDFrom: v1alpha1.BuildIDTemplate, Guard: v1alpha1.GuardOn,
					Evacuations: []v1alpha1.RecordedEvacuation{{Stage: v1alpha1.EvacuateByMove, Attempt: 1, Target: "v2", JobID: "job", State: v1alpha1.EvacuationProposed}}}}}}
		change(&r.Spec)
		r.Seal()
		out, err := YAML(r)
		require.NoError(t, err)
		return out
	}
	was := file(func(*v1alpha1.RoutingSpec) {})
	for name, c := range map[string]struct {
		change func(*v1alpha1.RoutingSpec)
		same   bool
	}{
		"nothing":                   {func(*v1alpha1.RoutingSpec) {}, true},
		"where a raise is reviewed": {func(r *v1alpha1.RoutingSpec) { r.Proposal.PullRequest = "https://git.example/pulls/7" }, true},
		"where a stage is reviewed": {func(r *v1alpha1.RoutingSpec) {
			r.Versions[0].Evacuations[0].PullRequest = "https://git.example/pulls/7"
		}, true},
		"that it is proposed":           {func(r *v1alpha1.RoutingSpec) { r.Proposal = nil }, false},
		"that it was withdrawn":         {func(r *v1alpha1.RoutingSpec) { r.Proposal.Withdrawn = true }, false},
		"what is desired":               {func(r *v1alpha1.RoutingSpec) { r.Desired.Current = "v2" }, false},
		"what becomes of another stage": {func(r *v1alpha1.RoutingSpec) { r.Versions[0].Evacuations[0].State = v1alpha1.EvacuationRunning }, false},
	} {
		require.Equal(t, c.same, SameProposal(was, file(c.change)), name)
		require.Equal(t, c.same, SameProposal(file(c.change), was), name)
	}
	addressed := file(func(r *v1alpha1.RoutingSpec) { r.Proposal.PullRequest = "https://git.example/pulls/7" })
	require.False(t, SameProposal(was, append(addressed, "# a person's\n"...)), "what people wrote into it is in no proposal yet")
	for _, broken := range []string{"", "a: [", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"} {
		require.False(t, SameProposal(was, []byte(broken)))
		require.True(t, SameProposal([]byte(broken), []byte(broken)))
	}
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
