package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	deploymentpb "go.temporal.io/api/deployment/v1"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/server/common/dynamicconfig"
	"golang.org/x/sync/errgroup"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// soon is a rollout at once, whose predecessor is kept for a second.
const soon = "{strategy: AllAtOnce, rollback: {window: 1s}%s}"

// stranger is the identity of workers that Git knows nothing of.
const stranger = "stray"

// poll asks once for work as a worker of a version does that Git knows nothing of, on the queue named like its worker
// deployment. That makes Temporal list the version.
func (w *world) poll(ctx context.Context, buildID string) {
	ctx, stop := context.WithTimeout(ctx, 3*time.Second)
	defer stop()
	_, _ = w.ns.Service().PollWorkflowTaskQueue(ctx, &workflowservice.PollWorkflowTaskQueueRequest{
		Namespace: w.ns.Name(), Identity: stranger, TaskQueue: &taskqueuepb.TaskQueue{Name: w.name, Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
		DeploymentOptions: &deploymentpb.WorkerDeploymentOptions{DeploymentName: w.id(), BuildId: buildID,
			WorkerVersioningMode: enumspb.WORKER_VERSIONING_MODE_VERSIONED},
	})
}

// polls reports whether Temporal lists that worker where it looks itself before it deletes a version. That is in the
// enhanced mode, whose cache may still hold what it told the bot.
func (w *world) polls(ctx context.Context, buildID string) bool {
	id := w.id() + ":" + buildID
	//nolint:staticcheck // deprecated: see above.
	resp, err := w.ns.Service().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{Namespace: w.ns.Name(),
		TaskQueue: &taskqueuepb.TaskQueue{Name: w.name, Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
		ApiMode:   enumspb.DESCRIBE_TASK_QUEUE_MODE_ENHANCED, Versions: &taskqueuepb.TaskQueueVersionSelection{BuildIds: []string{id}},
		TaskQueueTypes: []enumspb.TaskQueueType{enumspb.TASK_QUEUE_TYPE_WORKFLOW}, ReportPollers: true, ReportStats: true})
	return err == nil && slices.ContainsFunc( //nolint:staticcheck // deprecated: see above.
		resp.GetVersionsInfo()[id].GetTypesInfo()[int32(enumspb.TASK_QUEUE_TYPE_WORKFLOW)].GetPollers(),
		func(p *taskqueuepb.PollerInfo) bool { return p.GetIdentity() == stranger })
}

func versionOf(name, buildID string) *deploymentpb.WorkerDeploymentVersion {
	return &deploymentpb.WorkerDeploymentVersion{DeploymentName: name, BuildId: buildID}
}

// stray polls for a version until the test ends.
func (w *world) stray(buildID string) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			w.poll(ctx, buildID)
		}
	}()
	w.t.Cleanup(func() { stop(); <-done })
}

// listed are the versions that Temporal knows.
func (w *world) listed() []string {
	w.t.Helper()
	var out []string
	w.served(func() error {
		d, err := w.ns.Service().DescribeWorkerDeployment(w.t.Context(), &workflowservice.DescribeWorkerDeploymentRequest{
			Namespace: w.ns.Name(), DeploymentName: w.id()})
		out = nil
		for _, v := range d.GetWorkerDeploymentInfo().GetVersionSummaries() {
			out = append(out, v.GetDeploymentVersion().GetBuildId())
		}
		return err
	})
	return out
}

// message of the Ready condition.
func (w *world) message() string {
	for _, c := range w.status().Conditions {
		if c.Type == "Ready" {
			return c.Message
		}
	}
	return ""
}

// did counts what the bot's commits say that they do, by worker deployment, with images' tags in place of build IDs.
func (w *world) did() map[string]int {
	out := map[string]int{}
	name := ""
	for _, line := range strings.Split(w.repo.Git("log", "--format=%b", w.branch), "\n") {
		what, indented := strings.CutPrefix(line, "  ")
		switch {
		case indented:
			out[name+": "+buildSuffix.ReplaceAllString(what, "$1")]++
		case line != "":
			name = line
		}
	}
	return out
}

// A version beyond the bot's limit, which leaves the server some room, is not rendered, and the status names what is in
// its way. It comes once a version before it has drained and was deleted.
func TestVersionLimit(t *testing.T) {
	testneed.Long(t)
	w := newWorld(t)
	w.start()
	w.pushSpec("add checkout", specText{image: "app:v1", strategy: soon})
	w.awaitReady("app:v1")
	open := w.startSlow("pinned")
	limit := rollout.DefaultLimits().MaxVersions
	w.eventually("all are known", func() bool {
		known := w.listed()
		var polls errgroup.Group
		polls.SetLimit(10) // what the server registers at once
		for i := range limit - 2 {
			if id := fmt.Sprintf("a-stray-%02d", i); !slices.Contains(known, id) {
				polls.Go(func() error { w.poll(t.Context(), id); return nil })
			}
		}
		return polls.Wait() == nil && len(known) == limit-1
	})

	w.pushSpec("v2", specText{image: "app:v2", strategy: soon})
	w.awaitReady("app:v2")
	w.pushSpec("v3", specText{image: "app:v3", strategy: soon})
	w.awaitReason("VersionLimitReached")
	require.Contains(t, w.message(), fmt.Sprintf("%d versions of at most %d are still needed, so v3-", limit, limit))
	require.Contains(t, w.message(), "is not created: a-stray-00, a-stray-01, ")
	require.Len(t, w.status().UnrecordedVersions, limit-2)
	w.settle()
	require.Empty(t, w.build("app:v3"), "not in Git")
	require.Equal(t, []string{"current v1", "current v2"}, w.calls())

	w.finish(open)
	w.awaitReady("app:v3")
	require.Empty(t, w.build("app:v1"), "it made room")
	require.Equal(t, []string{"current v1", "current v2", "current v3"}, w.calls())
}

// The server's own limit is lower than the bot's: it refuses the polls of a new version until one before it is gone.
// Nothing that is needed goes to make room, and each rollout arrives.
func TestServersVersionLimit(t *testing.T) {
	testneed.Long(t)
	w := newWorld(t, withSetting(dynamicconfig.MatchingMaxVersionsInDeployment, 3))
	w.start()
	w.pushSpec("add checkout", specText{image: "app:v1", strategy: soon})
	w.awaitReady("app:v1")
	w.stray("stray")
	w.eventually("the stray one has its place", func() bool { return slices.Contains(w.listed(), "stray") })
	open := w.startSlow("pinned")
	w.pushSpec("v2", specText{image: "app:v2", strategy: soon})
	w.awaitReady("app:v2")
	w.pushSpec("v3", specText{image: "app:v3", strategy: soon})
	w.eventually("v3 is there", func() bool { return w.build("app:v3") != "" })
	w.settle()
	w.eventually("it is planned for", func() bool {
		said := w.plan()
		return strings.Contains(said, "version v3-") && strings.Contains(said, "has not registered with Temporal yet")
	})
	v1, v2 := w.build("app:v1"), w.build("app:v2")
	require.Subset(t, w.listed(), []string{v1, v2, "stray"})
	require.Contains(t, w.manifest(v1), "replicas: 1", "a workflow is pinned to it")
	require.Equal(t, []string{"current v1", "current v2"}, w.calls())

	w.finish(open)
	w.awaitReady("app:v3")
	w.eventually("v2 goes too", func() bool { return w.build("app:v2") == "" })
	require.Equal(t, []string{"current v1", "current v2", "current v3"}, w.calls())
}

// Versions that were scaled down and wait to be deleted fill the server's limit. With the next rollouts the server
// deletes the oldest of them itself, and their files go.
func TestSeventhRollout(t *testing.T) {
	testneed.Long(t)
	images := map[string]temporalenv.Image{}
	for i := 1; i <= 7; i++ {
		images[fmt.Sprintf("app:v1%d", i)] = temporalenv.DefaultImage(queue)
	}
	w := newWorld(t, withImages(images), withSetting(dynamicconfig.MatchingMaxVersionsInDeployment, 5))
	b := w.start()
	var calls []string
	for i := 1; i <= 7; i++ {
		image := fmt.Sprintf("app:v1%d", i)
		w.pushSpec(image, specText{image: image, strategy: soon, sunset: "scaledownDelay: 1s, deleteDelay: 1h"})
		w.awaitReady(image)
		calls = append(calls, "current "+tag(image))
	}
	require.Equal(t, calls, w.calls())
	require.LessOrEqual(t, len(w.listed()), 5)
	b.stop() // another one looks at once, and not when its time has come
	// The server deletes the oldest that it knows to be drained, and can have missed one (docs/compatibility.md).
	w.eventually("the files of what the server deleted are gone", func() bool {
		w.once()
		listed, files := w.listed(), 0
		for image := range images {
			id := w.build(image)
			if id != "" && !slices.Contains(listed, id) {
				return false
			}
			if id != "" {
				files++
			}
		}
		return files <= 5
	})
	for _, c := range w.ns.Calls() {
		require.NotEqual(t, "DeleteWorkerDeploymentVersion", c.Method, "the bot waits for an hour")
	}
}

// Ten worker deployments share a namespace whose limit is below what they ask for at once. All of them arrive, and
// every change is made once.
func TestManyUnderRateLimit(t *testing.T) {
	testneed.Long(t)
	tenUnderRateLimit(t, 15)
}

// With one read a second, which is less than one of them asks for in a cycle, they arrive too: each is read in turn.
func TestManyWithOneReadASecond(t *testing.T) {
	testneed.Long(t)
	tenUnderRateLimit(t, 1)
}

func tenUnderRateLimit(t *testing.T, perSecond int) {
	t.Helper()
	images, specs := map[string]temporalenv.Image{}, map[string]specText{}
	for i := range 10 {
		name := fmt.Sprintf("w%d", i)
		images[name+":v1"] = temporalenv.DefaultImage(name)
		specs[name] = specText{image: name + ":v1"}
	}
	w := newWorld(t, withImages(images), withSetting(dynamicconfig.FrontendGlobalWorkerDeploymentReadRPS, perSecond),
		withSetting(dynamicconfig.FrontendGlobalWorkerDeploymentReadBurstRatio, 1.0))
	b := w.start()
	w.pushSpecs("ten", specs)
	for name := range specs {
		w.named(name).awaitReady(name + ":v1")
	}
	did := w.did()
	for name := range specs {
		require.Equal(t, []string{"current v1"}, w.named(name).calls(), name)
		for _, what := range []string{"create v1", "promote v1", "RolloutComplete: v1 is the current version"} {
			require.Equal(t, 1, did[kubeNamespace+"/"+name+": "+what], "%s: %s: %v", name, what, did)
		}
	}
	b.stop()
	if perSecond == 1 { // a slow machine may never ask for more
		require.Contains(t, b.log.String(), "rate limit exceeded", "it was asked too much")
	}
}
