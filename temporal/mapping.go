package temporal

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rampart-gitops/rampart/internal/rollout"
	commonpb "go.temporal.io/api/common/v1"
	deploymentpb "go.temporal.io/api/deployment/v1"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// MarkKey is the key in a version's metadata under which a rollback leaves its mark, a JSON string with the reason.
// Anyone who may change the version's metadata can forge or remove it, so it may only ever lower.
const MarkKey = "rampart.dev/turned-back"

// maxMark bounds what is kept of a mark's reason, in bytes.
const maxMark = 512

// errOldServer says that the structured version fields are missing. The string fields of older servers are not read.
var errOldServer = errors.New("the server does not give versions as deployment name and build ID: Temporal 1.29 or " +
	"newer is needed")

// unversioned is how string fields name workers without a version.
const unversioned = "__unversioned__"

// instant is the zero time for a missing timestamp.
func instant(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}

// routingOf maps a routing configuration. The string fields only tell whether the server is too old.
func routingOf(c *deploymentpb.RoutingConfig) (rollout.RoutingConfig, error) {
	current, ramping := c.GetCurrentDeploymentVersion(), c.GetRampingDeploymentVersion()
	//nolint:staticcheck // deprecated: see above.
	for _, v := range []struct {
		structured *deploymentpb.WorkerDeploymentVersion
		text       string
	}{{current, c.GetCurrentVersion()}, {ramping, c.GetRampingVersion()}} {
		if v.structured == nil && v.text != "" && v.text != unversioned {
			return rollout.RoutingConfig{}, errOldServer
		}
	}
	percentage := c.GetRampingVersionPercentage()
	return rollout.RoutingConfig{
		Current: current.GetBuildId(),
		Ramping: ramping.GetBuildId(),
		// A ramp to unversioned workers has no version, a ramp at 0% no percentage.
		HasRamp:             ramping != nil || percentage > 0,
		Percentage:          percentage,
		CurrentChangedAt:    instant(c.GetCurrentVersionChangedTime()),
		RampingChangedAt:    instant(c.GetRampingVersionChangedTime()),
		PercentageChangedAt: instant(c.GetRampingVersionPercentageChangedTime()),
		Revision:            c.GetRevisionNumber(),
	}, nil
}

// versionsOf maps version summaries, sorted by build ID.
func versionsOf(summaries []*deploymentpb.WorkerDeploymentInfo_WorkerDeploymentVersionSummary) (
	[]rollout.VersionObservation, error) {
	var out []rollout.VersionObservation
	for _, s := range summaries {
		build := s.GetDeploymentVersion().GetBuildId()
		if build == "" {
			return nil, errOldServer
		}
		drainage := s.GetDrainageInfo()
		out = append(out, rollout.VersionObservation{
			BuildID:           build,
			CreatedAt:         instant(s.GetCreateTime()),
			Drainage:          drainageOf(drainage.GetStatus()),
			DrainageChangedAt: instant(drainage.GetLastChangedTime()),
			DrainageCheckedAt: instant(drainage.GetLastCheckedTime()),
			FirstActivatedAt:  instant(s.GetFirstActivationTime()),
			BecameCurrentAt:   instant(s.GetLastCurrentTime()),
			DeactivatedAt:     instant(s.GetLastDeactivationTime()),
			Created:           s.GetStatus() == enumspb.WORKER_DEPLOYMENT_VERSION_STATUS_CREATED,
			Scaled:            len(s.GetComputeConfig().GetScalingGroups()) > 0,
		})
	}
	slices.SortFunc(out, func(a, b rollout.VersionObservation) int { return strings.Compare(a.BuildID, b.BuildID) })
	return out, nil
}

func drainageOf(s enumspb.VersionDrainageStatus) rollout.Drainage {
	switch s {
	case enumspb.VERSION_DRAINAGE_STATUS_DRAINING:
		return rollout.Draining
	case enumspb.VERSION_DRAINAGE_STATUS_DRAINED:
		return rollout.Drained
	}
	return ""
}

func propagatingOf(s enumspb.RoutingConfigUpdateState) rollout.Answer {
	switch s {
	case enumspb.ROUTING_CONFIG_UPDATE_STATE_IN_PROGRESS:
		return rollout.Yes
	case enumspb.ROUTING_CONFIG_UPDATE_STATE_COMPLETED:
		return rollout.No
	}
	return ""
}

// queueTypes are the types of task queues, in the order of their numbers.
var queueTypes = []struct {
	pb   enumspb.TaskQueueType
	name rollout.QueueType
}{
	{enumspb.TASK_QUEUE_TYPE_WORKFLOW, rollout.QueueWorkflow},
	{enumspb.TASK_QUEUE_TYPE_ACTIVITY, rollout.QueueActivity},
	{enumspb.TASK_QUEUE_TYPE_NEXUS, rollout.QueueNexus},
}

// queuesOf maps a version's task queues, sorted by name and type. An unknown type of queue is an error: nothing could
// be said of its pollers.
func queuesOf(resp *workflowservice.DescribeWorkerDeploymentVersionResponse) ([]rollout.TaskQueue, error) {
	var out []rollout.TaskQueue
	for _, q := range resp.GetVersionTaskQueues() {
		kind := rollout.QueueType("")
		for _, t := range queueTypes {
			if t.pb == q.GetType() {
				kind = t.name
			}
		}
		if kind == "" {
			return nil, fmt.Errorf("task queue %q has the unknown type %v", q.GetName(), q.GetType())
		}
		out = append(out, rollout.TaskQueue{Name: q.GetName(), Type: kind})
	}
	slices.SortFunc(out, compareQueues)
	return slices.CompactFunc(out, func(a, b rollout.TaskQueue) bool { return compareQueues(a, b) == 0 }), nil
}

func compareQueues(a, b rollout.TaskQueue) int {
	if c := strings.Compare(a.Name, b.Name); c != 0 {
		return c
	}
	return strings.Compare(string(a.Type), string(b.Type))
}

// markOf reads the mark "turned back". What is there and cannot be read counts as a mark.
func markOf(metadata *deploymentpb.VersionMetadata) string {
	payload, ok := metadata.GetEntries()[MarkKey]
	if !ok {
		return ""
	}
	var reason string
	if err := json.Unmarshal(payload.GetData(), &reason); err != nil {
		return "a mark that cannot be read"
	}
	if reason == "" {
		return "no reason given"
	}
	return shortened(reason)
}

func shortened(reason string) string {
	if len(reason) <= maxMark {
		return strings.ToValidUTF8(reason, "\uFFFD")
	}
	end := maxMark
	for end > 0 && !utf8.RuneStart(reason[end]) {
		end--
	}
	return strings.ToValidUTF8(reason[:end], "\uFFFD")
}

// jsonPayload is data as the default data converter of every SDK writes JSON.
func jsonPayload(data []byte) *commonpb.Payload {
	return &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: data}
}

// versionOf is the version of a poller, as it said itself when it polled; both are empty for an unversioned one.
func versionOf(p *taskqueuepb.PollerInfo) (deployment, build string) {
	o := p.GetDeploymentOptions()
	if o.GetWorkerVersioningMode() != enumspb.WORKER_VERSIONING_MODE_VERSIONED {
		return "", ""
	}
	return o.GetDeploymentName(), o.GetBuildId()
}

// pollersOf sums up pollers, each identity once.
func pollersOf(infos []*taskqueuepb.PollerInfo) rollout.Pollers {
	out := rollout.Pollers{Known: true}
	seen := map[string]bool{}
	for _, p := range infos {
		if !seen[p.GetIdentity()] {
			seen[p.GetIdentity()] = true
			out.Count++
		}
		if at := instant(p.GetLastAccessTime()); at.After(out.LastAccess) {
			out.LastAccess = at
		}
	}
	return out
}
