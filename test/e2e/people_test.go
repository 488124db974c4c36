package e2e

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// managerIdentity is the bot's in the default environment.
const managerIdentity = "rampart/default"

// served makes a call of a person's, again while the server says that it is asked too often.
func (w *world) served(call func() error) {
	w.t.Helper()
	w.eventually("the server answers", func() bool {
		err := call()
		if status.Code(err) == codes.ResourceExhausted {
			return false
		}
		require.NoError(w.t, err)
		return true
	})
}

func (w *world) setCurrent(buildID string) {
	w.t.Helper()
	w.served(func() error {
		_, err := w.ns.Service().SetWorkerDeploymentCurrentVersion(w.t.Context(), &workflowservice.SetWorkerDeploymentCurrentVersionRequest{
			Namespace: w.ns.Name(), DeploymentName: w.id(), BuildId: buildID, Identity: managerIdentity})
		return err
	})
}

func (w *world) setRamp(buildID string, percentage float32) {
	w.t.Helper()
	w.served(func() error {
		_, err := w.ns.Service().SetWorkerDeploymentRampingVersion(w.t.Context(), &workflowservice.SetWorkerDeploymentRampingVersionRequest{
			Namespace: w.ns.Name(), DeploymentName: w.id(), BuildId: buildID, Percentage: percentage, Identity: managerIdentity})
		return err
	})
}

func (w *world) setManager(identity string) {
	w.t.Helper()
	w.served(func() error {
		_, err := w.ns.Service().SetWorkerDeploymentManager(w.t.Context(), &workflowservice.SetWorkerDeploymentManagerRequest{
			Namespace: w.ns.Name(), DeploymentName: w.id(), Identity: managerIdentity,
			NewManagerIdentity: &workflowservice.SetWorkerDeploymentManagerRequest_ManagerIdentity{ManagerIdentity: identity}})
		return err
	})
}

// gateStarts are the accepted starts of gates.
func (w *world) gateStarts() []string {
	var out []string
	for _, c := range w.ns.Calls() {
		if r, ok := c.Request.(*workflowservice.StartWorkflowExecutionRequest); ok && c.Accepted && strings.HasPrefix(r.WorkflowId, "rampart-gate:") {
			out = append(out, r.WorkflowId)
		}
	}
	return out
}

// manifest of a version at the tip, "" if there is none.
func (w *world) manifest(buildID string) string {
	return w.file(w.dir() + "/versions/" + buildID + "/deployment.yaml")
}

// settle lets the bot look at the world several times more. It goes on until it has described the worker deployment, or
// listed all of them, a few times.
func (w *world) settle() {
	w.t.Helper()
	looks := func() int { n := w.ns.Counts(); return n["DescribeWorkerDeployment"] + n["ListWorkerDeployments"] }
	from := looks()
	w.eventually("the bot looked again", func() bool { return looks() >= from+6 })
}

func (w *world) startSlow(id string) client.WorkflowRun {
	w.t.Helper()
	run, err := w.client.ExecuteWorkflow(w.t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: queue}, temporalenv.Slow)
	require.NoError(w.t, err)
	// It is pinned once its first task is done.
	w.eventually("pinned", func() bool {
		d, err := w.client.DescribeWorkflowExecution(w.t.Context(), id, "")
		return err == nil && d.GetWorkflowExecutionInfo().GetVersioningInfo().GetDeploymentVersion() != nil
	})
	return run
}

func (w *world) finish(run client.WorkflowRun) {
	w.t.Helper()
	require.NoError(w.t, w.client.SignalWorkflow(w.t.Context(), run.GetID(), "", temporalenv.FinishSignal, nil))
	require.NoError(w.t, run.Get(w.t.Context(), nil))
}

func TestRampLoweredByHand(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.pushSpec("add checkout", specText{image: "app:v1", strategy: slowSteps})
	w.awaitReady("app:v1")
	w.pushSpec("v2", specText{image: "app:v2", strategy: slowSteps})
	w.eventually("10%", func() bool { return slices.Contains(w.calls(), "ramp v2 10") })
	w.setRamp(w.build("app:v2"), 3)
	w.awaitReason("ManualHold")
	w.settle()
	require.Equal(t, []string{"current v1", "ramp v2 10"}, w.calls(), "what a person lowered stays lowered")
	require.InDelta(t, 3, w.routing().Desired.Ramping.Percentage, 0)
	// A new spec says otherwise.
	w.pushSpec("v3", specText{image: "app:v3"})
	w.awaitReady("app:v3")
}

func TestRampRaisedByHand(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.pushSpec("add checkout", specText{image: "app:v1", strategy: slowSteps})
	w.awaitReady("app:v1")
	w.pushSpec("v2", specText{image: "app:v2", strategy: slowSteps})
	w.eventually("10%", func() bool { return slices.Contains(w.calls(), "ramp v2 10") })
	w.setRamp(w.build("app:v2"), 80)
	w.eventually("reverted to what Git says", func() bool { return len(w.calls()) == 3 })
	w.settle()
	require.Equal(t, []string{"current v1", "ramp v2 10", "ramp v2 10"}, w.calls())
}

func TestSpecMoves(t *testing.T) {
	w := newWorld(t)
	w.settledOn(specText{image: "app:v1"})
	before := w.botCommits()
	spec := specText{image: "app:v1"}.String()
	w.commit(gittest.Commit{Write: map[string]string{"workers/team/checkout.yaml": strings.ReplaceAll(spec, "NAMESPACE", w.ns.Name())},
		Delete: []string{specFile}, Message: "move"})
	w.once()
	w.once()
	require.Equal(t, before, w.botCommits(), "a moved spec is no change")
}

func TestTwoSpecsOfOneName(t *testing.T) {
	w := newWorld(t)
	w.settledOn(specText{image: "app:v1"})
	v1 := w.build("app:v1")
	// It sorts before the recorded one, and is still the newcomer.
	w.push("another checkout", map[string]string{"workers/another.yaml": specText{image: "app:v2"}.String()})
	out := w.once()
	require.Contains(t, out, "workers/another.yaml")
	require.Contains(t, out, specFile)
	require.Equal(t, v1, w.routing().Target.BuildID)
	require.Empty(t, w.build("app:v2"))
	require.Equal(t, "RolloutComplete", w.reason())
}

func TestOutputOnItsOwnBranch(t *testing.T) {
	w := newWorld(t, onBranch("rendered"))
	w.push("configure", map[string]string{"rampart.yaml": `apiVersion: rampart.dev/v1alpha1
kind: Config
spec:
  environments:
    - {name: default, specs: ["workers/**"], output: {path: deploy, branch: rendered}}
`})
	w.start()
	w.pushSpec("add checkout", specText{image: "app:v1"})
	w.awaitReady("app:v1")
	w.pushSpec("v2", specText{image: "app:v2"})
	w.awaitReady("app:v2")
	require.Equal(t, []string{"current v1", "ramp v2 10", "ramp v2 50", "current v2"}, w.calls())
	require.NotContains(t, w.repo.Git("log", "--format=%an", "main"), "rampart", "the specs' branch is left alone")
	for path := range w.repo.Files("rendered") {
		require.True(t, strings.HasPrefix(path, "deploy/"), path)
	}
	w.repo.Fsck()
}

// A connection that changed reaches every version with workers, those with pinned workflows too.
func TestConnectionChanges(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.pushSpec("add checkout", specText{image: "app:v1", strategy: allAtOnce})
	w.awaitReady("app:v1")
	run := w.startSlow("slow")
	w.pushSpec("v2", specText{image: "app:v2", strategy: allAtOnce})
	w.awaitReady("app:v2")
	v1, v2 := w.build("app:v1"), w.build("app:v2")
	address := server.Address()
	elsewhere := strings.Replace(address, "127.0.0.1", "localhost", 1)
	require.NotEqual(t, address, elsewhere)
	w.push("move Temporal", map[string]string{"workers/connection.yaml": strings.Replace(w.connection(), address, elsewhere, 1)})
	w.eventually("both follow", func() bool {
		return strings.Contains(w.manifest(v1), elsewhere) && strings.Contains(w.manifest(v2), elsewhere)
	})
	require.NotContains(t, w.manifest(v1)+w.manifest(v2), address)
	w.finish(run) // on v1, whose workers came back
	require.Equal(t, []string{"current v1", "current v2"}, w.calls())
	require.Equal(t, "RolloutComplete", w.reason())
}

// A manifest that was edited by hand is put back, one that was deleted is brought back from history; nothing is routed.
func TestManifestsEditedByHand(t *testing.T) {
	w := newWorld(t)
	w.settledOn(specText{image: "app:v1"})
	v1 := w.build("app:v1")
	file, written := recordDir+"/versions/"+v1+"/deployment.yaml", w.manifest(v1)
	require.Contains(t, written, "replicas: 1")

	w.commit(gittest.Commit{Write: map[string]string{file: strings.Replace(written, "replicas: 1", "replicas: 0", 1)}, Message: "scale it by hand"})
	w.once()
	require.Equal(t, written, w.manifest(v1), "put back")
	w.commit(gittest.Commit{Delete: []string{file}, Message: "delete it by hand"})
	w.once()
	require.Equal(t, written, w.manifest(v1), "brought back")
	w.forgetCache()
	w.commit(gittest.Commit{Delete: []string{file, recordDir + "/kustomization.yaml"}, Message: "delete it again"})
	w.once()
	require.Equal(t, written, w.manifest(v1), "brought back by a bot that knows nothing of before")

	commits := len(w.botCommits())
	w.once()
	w.once()
	require.Len(t, w.botCommits(), commits, "and then quiet")
	require.Equal(t, []string{"current v1"}, w.calls())
}

// desiredRamp is the ramp in the desired part of a routing.yaml.
var desiredRamp = regexp.MustCompile(`(?m)^    ramping:\n      buildID: .*\n      percentage: .*\n`)

// A hand edit of routing.yaml: downward at once, and then held.
func TestRoutingEditedDown(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.pushSpec("add checkout", specText{image: "app:v1", strategy: slowSteps})
	w.awaitReady("app:v1")
	w.pushSpec("v2", specText{image: "app:v2", strategy: slowSteps})
	w.eventually("10%", func() bool { return slices.Contains(w.calls(), "ramp v2 10") })
	file := recordDir + "/routing.yaml"
	text := w.repo.Files("main")[file]
	head, desired, found := strings.Cut(text, "\n  desired:\n")
	require.True(t, found, text)
	edited := desiredRamp.ReplaceAllString(desired, "")
	require.NotEqual(t, desired, edited)
	w.commit(gittest.Commit{Write: map[string]string{file: head + "\n  desired:\n" + edited}, Message: "take v2 back"})
	w.awaitReason("ManualHold")
	w.settle()
	require.Equal(t, []string{"current v1", "ramp v2 10", "ramp none"}, w.calls())
}
