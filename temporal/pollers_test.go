package temporal

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// A poll that is more than ten seconds ahead of our clock is of no known age, on a task queue and by a pod.
func TestPollersAheadOfOurClock(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var log strings.Builder
	pool := New(Config{Clock: func() time.Time { return now }, Log: slog.New(slog.NewTextHandler(&log, nil))})
	see := func(at time.Time) (queue, pod rollout.Pollers) {
		o := observer{session: &session{pool: pool, conn: &connection{address: Address{HostPort: "temporal:7233"}}, namespace: "prod"}, log: pool.cfg.Log,
			ask: rollout.Ask{Workers: []string{"checkout-v1"}}}
		o.obs.Versions = []rollout.VersionObservation{{BuildID: "v1", QueuesKnown: rollout.Yes,
			Queues: []rollout.TaskQueue{{Name: "orders", Type: rollout.QueueWorkflow}}}}
		infos := []*taskqueuepb.PollerInfo{{Identity: "1@checkout-v1-abc-def", LastAccessTime: timestamppb.New(at)}}
		seen := map[rollout.QueueType]queuePollers{rollout.QueueWorkflow: {versions: map[string][]*taskqueuepb.PollerInfo{"v1": infos}}}
		o.fillPollers("orders", seen, nil)
		all := polls{versions: map[string][]*taskqueuepb.PollerInfo{}}
		all.add(seen, nil)
		o.fillWorkers(all)
		o.warnOfClock(t.Context())
		return o.obs.Versions[0].Queues[0].Pollers, o.obs.Versions[0].Workers["checkout-v1"]
	}
	known := rollout.Pollers{Known: true, Count: 1, LastAccess: now.Add(10 * time.Second)}
	queue, pod := see(known.LastAccess)
	require.Equal(t, []rollout.Pollers{known, known}, []rollout.Pollers{queue, pod})
	require.Empty(t, log.String())

	queue, pod = see(now.Add(42 * time.Second))
	require.Equal(t, queue, pod)
	require.False(t, queue.Known)
	require.Contains(t, queue.Reason, "Temporal's clock is 42s ahead of ours")
	require.Contains(t, log.String(), "ahead=42s")
	said := log.Len()
	see(now.Add(42 * time.Second))
	require.Equal(t, said, log.Len(), "it is said once in a while")
	now = now.Add(10 * time.Minute)
	see(now.Add(42 * time.Second))
	require.Greater(t, log.Len(), said)
}
