package report

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// TestStatusOfAnInvalidSpec says what is wrong with it, and what the bot did since no spec can be used.
func TestStatusOfAnInvalidSpec(t *testing.T) {
	for _, c := range []struct{ said, meanwhile, want string }{
		{"line 3: no. Meanwhile: v2 was turned back", "v2 was turned back", "line 3: no. Meanwhile: v2 was turned back"},
		{"line 9: no. Meanwhile: v2 was turned back", "v2 was turned back", "line 3: no. Meanwhile: v2 was turned back"},
		{"line 3: no", "", "line 3: no"},
		{"line 3: no, and more", "", "line 3: no"},
		{"v2 gets 10% of new workflows", "", "line 3: no"},
	} {
		st := NewStatus(rollout.Snapshot{Problems: []rollout.Problem{{Reason: rollout.InvalidSpec, Message: "line 3: no"}},
			Record: rollout.Record{Status: &v1alpha1.WorkerDeployment{Status: &v1alpha1.WorkerDeploymentStatus{
				Conditions: []v1alpha1.Condition{{Type: v1alpha1.ConditionReady, Reason: "InvalidSpec", Message: c.said}},
				Decision:   &v1alpha1.Decision{Meanwhile: c.meanwhile}}}}})
		require.Equal(t, []string{"InvalidSpec", c.want}, []string{st.Reason, st.Message})
		require.False(t, st.Observed)
	}
}
