package temporal

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	computepb "go.temporal.io/api/compute/v1"
	deploymentpb "go.temporal.io/api/deployment/v1"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/timestamppb"
)

var day = time.Date(2026, 3, 1, 12, 0, 0, 5, time.UTC)

func at(hours int) *timestamppb.Timestamp {
	return timestamppb.New(day.Add(time.Duration(hours) * time.Hour))
}

func hour(hours int) time.Time { return day.Add(time.Duration(hours) * time.Hour) }

func TestRoutingOf(t *testing.T) {
	v := func(build string) *deploymentpb.WorkerDeploymentVersion { return version("ns/app", build) }
	for name, c := range map[string]struct {
		in   *deploymentpb.RoutingConfig
		want rollout.RoutingConfig
		err  error
	}{
		"nothing": {nil, rollout.RoutingConfig{}, nil},
		"every field": {&deploymentpb.RoutingConfig{
			CurrentDeploymentVersion: v("v1"), RampingDeploymentVersion: v("v2"), RampingVersionPercentage: 0.1,
			CurrentVersionChangedTime: at(1), RampingVersionChangedTime: at(2), RampingVersionPercentageChangedTime: at(3),
			RevisionNumber: 7, CurrentVersion: "ns/app.v1", RampingVersion: "ns/app.v2",
		}, rollout.RoutingConfig{
			Current: "v1", Ramping: "v2", HasRamp: true, Percentage: 0.1,
			CurrentChangedAt: hour(1), RampingChangedAt: hour(2), PercentageChangedAt: hour(3), Revision: 7,
		}, nil},
		"no ramp": {
			&deploymentpb.RoutingConfig{CurrentDeploymentVersion: v("v1"), CurrentVersion: "ns/app.v1"},
			rollout.RoutingConfig{Current: "v1"}, nil,
		},
		"ramp to unversioned workers": {
			&deploymentpb.RoutingConfig{CurrentDeploymentVersion: v("v1"), RampingVersion: "__unversioned__", RampingVersionPercentage: 20},
			rollout.RoutingConfig{Current: "v1", HasRamp: true, Percentage: 20}, nil,
		},
		"ramp at 0%": {
			&deploymentpb.RoutingConfig{CurrentVersion: "__unversioned__", RampingDeploymentVersion: v("v2")},
			rollout.RoutingConfig{Ramping: "v2", HasRamp: true}, nil,
		},
		"old server, current": {&deploymentpb.RoutingConfig{CurrentVersion: "ns/app.v1"}, rollout.RoutingConfig{}, errOldServer},
		"old server, ramping": {&deploymentpb.RoutingConfig{
			CurrentDeploymentVersion: v("v1"), RampingVersion: "ns/app.v2",
		}, rollout.RoutingConfig{}, errOldServer},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := routingOf(c.in)
			require.ErrorIs(t, err, c.err)
			require.Empty(t, cmp.Diff(c.want, got))
		})
	}
}

func TestVersionsOf(t *testing.T) {
	type summary = deploymentpb.WorkerDeploymentInfo_WorkerDeploymentVersionSummary
	got, err := versionsOf([]*summary{
		{
			DeploymentVersion: version("ns/app", "v2"), CreateTime: at(1), FirstActivationTime: at(2), LastCurrentTime: at(3),
			LastDeactivationTime: at(4), DrainageInfo: &deploymentpb.VersionDrainageInfo{
				Status: enumspb.VERSION_DRAINAGE_STATUS_DRAINED, LastChangedTime: at(5), LastCheckedTime: at(6),
			},
			ComputeConfig: &computepb.ComputeConfigSummary{
				ScalingGroups: map[string]*computepb.ComputeConfigScalingGroupSummary{"default": {}},
			},
		},
		{DeploymentVersion: version("ns/app", "v1"), DrainageInfo: &deploymentpb.VersionDrainageInfo{
			Status: enumspb.VERSION_DRAINAGE_STATUS_DRAINING,
		}, ComputeConfig: &computepb.ComputeConfigSummary{}},
		{DeploymentVersion: version("ns/app", "v3"), DrainageInfo: &deploymentpb.VersionDrainageInfo{}, Status: enumspb.WORKER_DEPLOYMENT_VERSION_STATUS_INACTIVE},
		{DeploymentVersion: version("ns/app", "v4"), Status: enumspb.WORKER_DEPLOYMENT_VERSION_STATUS_CREATED},
	})
	require.NoError(t, err)
	require.Empty(t, cmp.Diff([]rollout.VersionObservation{
		{BuildID: "v1", Drainage: rollout.Draining},
		{
			BuildID: "v2", CreatedAt: hour(1), FirstActivatedAt: hour(2), BecameCurrentAt: hour(3), DeactivatedAt: hour(4),
			Drainage: rollout.Drained, DrainageChangedAt: hour(5), DrainageCheckedAt: hour(6), Scaled: true,
		},
		{BuildID: "v3"},
		{BuildID: "v4", Created: true},
	}, got))

	_, err = versionsOf([]*summary{{Version: "ns/app.v1"}})
	require.ErrorIs(t, err, errOldServer)
}

func TestPropagatingOf(t *testing.T) {
	require.Equal(t, rollout.Answer(""), propagatingOf(enumspb.ROUTING_CONFIG_UPDATE_STATE_UNSPECIFIED))
	require.Equal(t, rollout.Yes, propagatingOf(enumspb.ROUTING_CONFIG_UPDATE_STATE_IN_PROGRESS))
	require.Equal(t, rollout.No, propagatingOf(enumspb.ROUTING_CONFIG_UPDATE_STATE_COMPLETED))
}

func TestQueuesOf(t *testing.T) {
	type queue = workflowservice.DescribeWorkerDeploymentVersionResponse_VersionTaskQueue
	got, err := queuesOf(&workflowservice.DescribeWorkerDeploymentVersionResponse{VersionTaskQueues: []*queue{
		{Name: "b", Type: enumspb.TASK_QUEUE_TYPE_WORKFLOW},
		{Name: "a", Type: enumspb.TASK_QUEUE_TYPE_NEXUS},
		{Name: "b", Type: enumspb.TASK_QUEUE_TYPE_ACTIVITY},
		{Name: "b", Type: enumspb.TASK_QUEUE_TYPE_ACTIVITY},
	}})
	require.NoError(t, err)
	require.Empty(t, cmp.Diff([]rollout.TaskQueue{
		{Name: "a", Type: rollout.QueueNexus}, {Name: "b", Type: rollout.QueueActivity}, {Name: "b", Type: rollout.QueueWorkflow},
	}, got))

	_, err = queuesOf(&workflowservice.DescribeWorkerDeploymentVersionResponse{VersionTaskQueues: []*queue{{Name: "a", Type: 9}}})
	require.Error(t, err, "a queue of an unknown type must not vanish")
}

func TestPollersOf(t *testing.T) {
	require.Equal(t, rollout.Pollers{Known: true}, pollersOf(nil))
	require.Empty(t, cmp.Diff(rollout.Pollers{Known: true, Count: 2, LastAccess: hour(3)}, pollersOf([]*taskqueuepb.PollerInfo{
		{Identity: "a", LastAccessTime: at(1)}, {Identity: "b", LastAccessTime: at(2)}, {Identity: "a", LastAccessTime: at(3)},
	})))
}

func TestKindOf(t *testing.T) {
	poller := func(mode enumspb.WorkerVersioningMode) *taskqueuepb.PollerInfo {
		return &taskqueuepb.PollerInfo{DeploymentOptions: &deploymentpb.WorkerDeploymentOptions{
			DeploymentName: "ns/app", BuildId: "v1", WorkerVersioningMode: mode,
		}}
	}
	for _, p := range []*taskqueuepb.PollerInfo{
		{}, poller(enumspb.WORKER_VERSIONING_MODE_UNVERSIONED), poller(enumspb.WORKER_VERSIONING_MODE_UNSPECIFIED),
	} {
		deployment, build := versionOf(p)
		require.Empty(t, deployment+build)
	}
	deployment, build := versionOf(poller(enumspb.WORKER_VERSIONING_MODE_VERSIONED))
	require.Equal(t, []string{"ns/app", "v1"}, []string{deployment, build})
}

func TestMarkOf(t *testing.T) {
	mark := func(data string) *deploymentpb.VersionMetadata {
		return &deploymentpb.VersionMetadata{Entries: map[string]*commonpb.Payload{MarkKey: {Data: []byte(data)}}}
	}
	require.Equal(t, "", markOf(nil))
	require.Equal(t, "", markOf(&deploymentpb.VersionMetadata{Entries: map[string]*commonpb.Payload{"other": {}}}))
	require.Equal(t, "canary.failure_rate", markOf(mark(`"canary.failure_rate"`)))
	for _, bad := range []string{"", `""`, "{", `{"a":1}`, "\xff"} {
		require.NotEmpty(t, markOf(mark(bad)), "what is there counts: %q", bad)
	}
	require.Equal(t, strings.Repeat("a", maxMark-1), markOf(mark(`"`+strings.Repeat("a", maxMark-1)+`ü"`)))
}

func FuzzMark(f *testing.F) {
	for _, seed := range []string{"", `"x"`, "{", "null", `"` + strings.Repeat("ü", maxMark) + `"`, "\"\xff\""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got := markOf(&deploymentpb.VersionMetadata{Entries: map[string]*commonpb.Payload{MarkKey: {Data: data}}})
		require.NotEmpty(t, got)
		require.LessOrEqual(t, len(got), maxMark+2)
		require.True(t, strings.ToValidUTF8(got, "") == got)
	})
}

func TestClosedOf(t *testing.T) {
	type group = workflowservice.CountWorkflowExecutionsResponse_AggregationGroup
	of := func(state string, n int64) *group {
		return &group{GroupValues: []*commonpb.Payload{jsonPayload([]byte(`"` + state + `"`))}, Count: n}
	}
	got, err := closedOf(&workflowservice.CountWorkflowExecutionsResponse{Groups: []*group{
		of("Completed", 1), of("Failed", 2), of("TimedOut", 3), of("Terminated", 4), of("Canceled", 5), of("ContinuedAsNew", 6),
		of("Running", 7), of("Paused", 8),
	}})
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(rollout.ClosedCounts{
		Known: true, Completed: 1, Failed: 2, TimedOut: 3, Terminated: 4, Canceled: 5, ContinuedAsNew: 6,
	}, got))

	for name, bad := range map[string]*group{
		"no value": {Count: 1}, "no text": {GroupValues: []*commonpb.Payload{jsonPayload([]byte("1"))}}, "unknown state": of("Vanished", 1),
	} {
		_, err := closedOf(&workflowservice.CountWorkflowExecutionsResponse{Groups: []*group{bad}})
		require.Error(t, err, name)
	}
}

func TestGateStateOf(t *testing.T) {
	for state, want := range map[enumspb.WorkflowExecutionStatus]rollout.GateState{
		enumspb.WORKFLOW_EXECUTION_STATUS_UNSPECIFIED:      rollout.GateUnread,
		enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:          rollout.GateRunning,
		enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:        rollout.GateCompleted,
		enumspb.WORKFLOW_EXECUTION_STATUS_FAILED:           rollout.GateFailed,
		enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:         rollout.GateCanceled,
		enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:       rollout.GateTerm,
		enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW: rollout.GateRunning,
		enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:        rollout.GateTimedOut,
		enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED:           rollout.GateRunning,
		99:                                                 rollout.GateUnread,
	} {
		require.Equal(t, want, gateStateOf(state), state)
	}
}

func TestQueriesOfOpenAndClosedWorkflows(t *testing.T) {
	open, err := openQuery("ns/app", "v1", rollout.Yes)
	require.NoError(t, err)
	require.Equal(t, "TemporalWorkerDeploymentVersion = 'ns/app:v1' AND TemporalWorkflowVersioningBehavior = 'Pinned' AND "+notClosed, open)
	unlisted, err := openQuery("ns/app", "v1", rollout.No)
	require.NoError(t, err)
	require.Equal(t, "TemporalWorkerDeploymentVersion = 'ns/app:v1' AND "+notClosed, unlisted)
	closed, err := closedQuery("ns/app", rollout.ClosedAsk{BuildID: "v1", Since: day})
	require.NoError(t, err)
	require.Equal(t, "TemporalWorkerDeploymentVersion = 'ns/app:v1' AND StartTime >= '2026-03-01T12:00:00.000000005Z' GROUP BY ExecutionStatus", closed)
	on, err := onQueues([]string{"a", `it's % b`})
	require.NoError(t, err)
	require.Equal(t, `TaskQueue IN ('a', 'it''s % b') AND ExecutionStatus = 'Running'`, on)

	for _, bad := range []string{"'a", "a'", "a\nb", "\xff", `a\b`, `a"b`} {
		_, err := quote(bad)
		require.Error(t, err, "%q", bad)
		_, err = onQueues([]string{"a", bad})
		require.Error(t, err, "%q", bad)
		_, err = openQuery("ns/app", "v"+bad+"'", rollout.Yes)
		require.Error(t, err, "%q", bad)
	}
}

func TestPodOf(t *testing.T) {
	names := []string{"app-v1-gpu", "app-v1-gpu-big"}
	for host, want := range map[string]string{
		"app-v1-gpu-7d9fb-abcde": "app-v1-gpu", "app-v1-gpu-big-7d9fb-abcde": "app-v1-gpu-big", "app-v1-gpu-0": "app-v1-gpu",
		"app-v1-gpu-small-7d9fb-abcde": "", "app-v1-7d9fb-abcde": "", "app-v1-gpu": "", "": "",
	} {
		require.Equal(t, want, podOf(host, names), host)
	}
	for identity, want := range map[string]string{"1@pod": "pod", "1@pod@queue@x": "pod", "worker": "", "": ""} {
		require.Equal(t, want, hostOf(identity), identity)
	}
}
