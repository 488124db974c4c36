package render

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// What is proposed differs from the record in what is desired, and in no other line.
func TestProposedDiffersInWhatIsDesired(t *testing.T) {
	r := v1alpha1.Routing{APIVersion: v1alpha1.RampartAPIVersion, Kind: v1alpha1.KindRouting, Metadata: v1alpha1.ObjectMeta{Name: "checkout", Namespace: "shop"},
		Spec: v1alpha1.RoutingSpec{WorkerDeployment: "shop/checkout", TemporalNamespace: "shop", SpecPath: "a.yaml", Desired: v1alpha1.DesiredRouting{Current: "v1"}}}
	r.Seal()
	before, err := YAML(r)
	require.NoError(t, err)
	desired := v1alpha1.DesiredRouting{Current: "v1", Ramping: &v1alpha1.DesiredRamp{BuildID: "v2", Percentage: 10}}
	after, err := Proposed(before, desired)
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
		_, err := Proposed([]byte(text), v1alpha1.DesiredRouting{})
		require.ErrorContains(t, err, want, text)
	}
}
