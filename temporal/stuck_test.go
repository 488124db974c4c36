package temporal

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Where no version runs workflows none is stuck. That says nothing of versions which are not there, or whose queues are
// not known.
func TestStuckWithoutWorkflowQueues(t *testing.T) {
	observes := func(listed, described bool) rollout.Stuck {
		o := observer{ask: rollout.Ask{Queues: []string{"v1"}, Stuck: &rollout.StuckAsk{Candidate: "v1"}},
			queues: map[string][]rollout.TaskQueue{}, log: slog.New(slog.DiscardHandler)}
		o.obs.Exists = rollout.Yes
		if listed {
			o.obs.Versions = []rollout.VersionObservation{{BuildID: "v1"}}
		}
		if described {
			o.queues["v1"] = []rollout.TaskQueue{{Name: "charges", Type: rollout.QueueActivity}}
		}
		o.countStuck(t.Context())
		return o.obs.Stuck
	}
	require.Equal(t, rollout.Counted(0), observes(true, true).Problems)
	require.Contains(t, observes(true, false).Problems.Reason, "the task queues of version v1 are not known")
	require.Contains(t, observes(false, false).Problems.Reason, "the server lists none of the versions")
}

// A server that does not have a search attribute says so by name. Whatever else is wrong may be better the next time.
func TestServerLacksASearchAttribute(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"1.32":              {fmt.Errorf("count workflows: %w", serviceerror.NewInvalidArgument("invalid search attribute: TemporalReportedProblems")), true},
		"1.29":              {serviceerror.NewInvalidArgument("invalid query: unable to convert filter expression: column name 'TemporalReportedProblems' is not defined"), true},
		"another attribute": {serviceerror.NewInvalidArgument("invalid search attribute: TaskQueue"), false},
		"away":              {serviceerror.NewUnavailable("TemporalReportedProblems"), false},
		"not of the server": {errors.New("TemporalReportedProblems"), false},
		"nothing":           {nil, false},
	} {
		require.Equal(t, c.want, lacks(c.err, problemsAttribute), name)
	}
}
