package operator

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// A command that retires says so where nothing can go: without its connection, or a spec that can be used.
func TestRetireWhatCannotGo(t *testing.T) {
	sound := func(s *rollout.Snapshot, r *v1alpha1.RoutingSpec) {
		r.TemporalNamespace = "prod"
		s.Spec.Spec.Rollout.Strategy = v1alpha1.AllAtOnce
		s.Spec.Spec.WorkerOptions = v1alpha1.WorkerOptions{ConnectionRef: v1alpha1.ConnectionRef{Name: "temporal"}, TemporalNamespace: "prod"}
		s.Connection = &v1alpha1.Connection{Metadata: v1alpha1.ObjectMeta{Name: "temporal"}}
		last := *s.Spec
		s.Record.Status = &last
	}
	const lost = "connection payments/temporal is not in the repository: payments/checkout is retired by ada, and nothing of it is scaled down or removed until the connection is back"
	for name, c := range map[string]struct {
		given change
		notes []string
	}{
		"all is there":           {func(*rollout.Snapshot, *v1alpha1.RoutingSpec) {}, nil},
		"the connection is gone": {func(s *rollout.Snapshot, _ *v1alpha1.RoutingSpec) { s.Connection = nil }, []string{"nothing goes yet: " + lost}},
		"the spec is gone":       {func(s *rollout.Snapshot, _ *v1alpha1.RoutingSpec) { s.Spec, s.SpecPath = nil, "" }, nil},
		"both are gone":          {func(s *rollout.Snapshot, _ *v1alpha1.RoutingSpec) { s.Spec, s.SpecPath, s.Connection = nil, "", nil }, []string{"nothing goes yet: " + lost}},
		"the spec cannot be used": {func(s *rollout.Snapshot, _ *v1alpha1.RoutingSpec) {
			s.Problems = []rollout.Problem{{Message: "line 3"}}
		}, []string{"nothing goes yet: line 3"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := of(sound, c.given)
			got, err := Retire(s, ada, v1alpha1.UnrouteProven)
			require.NoError(t, err)
			var notes []string
			for _, n := range got.Notes {
				if strings.HasPrefix(n, "nothing goes yet") {
					notes = append(notes, n)
				}
			}
			require.Equal(t, c.notes, notes)
			require.Nil(t, s.Record.Routing.Spec.Retire, "what it was given stays as it was")
			one, err := RetireVersion(s, ada, "v0")
			require.NoError(t, err)
			if s.Spec != nil {
				require.Equal(t, c.notes != nil, strings.Contains(strings.Join(one.Notes, "\n"), "it does not go yet: "))
			}
		})
	}
}
