package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// batchStarts are the accepted starts of batch jobs, by their IDs.
func (w *world) batchStarts() []string {
	var out []string
	for _, c := range w.ns.Calls() {
		if r, ok := c.Request.(*workflowservice.StartBatchOperationRequest); ok && c.Accepted {
			out = append(out, r.JobId)
		}
	}
	return out
}

// evacuation is what the status says of a version's stages.
func (w *world) evacuation(buildID string) []v1alpha1.EvacuationStatus {
	for _, v := range w.status().DeprecatedVersions {
		if v.BuildID == buildID {
			return v.Evacuation
		}
	}
	return nil
}

func (w *world) ended(id string) enumspb.WorkflowExecutionStatus {
	w.t.Helper()
	d, err := w.client.DescribeWorkflowExecution(w.t.Context(), id, "")
	require.NoError(w.t, err)
	return d.GetWorkflowExecutionInfo().GetStatus()
}

// aboutV1 is what the bot's commits say that they do about v1 when it is old, oldest first. One commit can do two
// things.
func (w *world) aboutV1() []string {
	var out []string
	for _, line := range strings.Split(w.repo.Git("log", "--reverse", "--format=%b", w.branch), "\n") {
		what, indented := strings.CutPrefix(buildSuffix.ReplaceAllString(line, "$1"), "  ")
		if indented && (strings.HasPrefix(what, "signal workflows on ") || what == "scale down v1" || what == "remove v1") {
			out = append(out, what)
		}
	}
	return out
}

// Workflows that would keep v1 for good are asked to go on elsewhere: then it drains, and goes.
func TestEvacuateBySignal(t *testing.T) {
	w := newWorld(t)
	w.settledOn(specText{image: "app:v1", strategy: oneStep})
	first, second := w.startSlow("slow-1"), w.startSlow("slow-2")
	v1 := w.build("app:v1")
	w.pushSpec("v2", specText{image: "app:v2", strategy: oneStep,
		evacuate: fmt.Sprintf("{continueAsNewSignal: {name: %s, after: 1s}, terminateAfter: 240h}", temporalenv.FinishSignal)})
	w.start()
	w.awaitReady("app:v2")
	w.eventually("v1 removed", func() bool { return w.build("app:v1") == "" })
	require.NoError(t, first.Get(t.Context(), nil))
	require.NoError(t, second.Get(t.Context(), nil))
	require.Len(t, w.batchStarts(), 1)
	require.Contains(t, w.batchStarts()[0], v1)
	about := w.aboutV1()
	require.ElementsMatch(t, []string{"signal workflows on v1 (finish)", "signal workflows on v1 (finish): Completed, 2 of 2 workflows", "scale down v1", "remove v1"}, about)
	require.Equal(t, "signal workflows on v1 (finish)", about[0])
	require.Equal(t, "remove v1", about[3])
	require.Equal(t, "RolloutComplete", w.reason())
	w.repo.Fsck()
}

// Terminating waits for a person, and nothing else waits with it.
func TestEvacuateByTermination(t *testing.T) {
	testneed.Long(t)
	w := newWorld(t)
	w.settledOn(specText{image: "app:v1", strategy: oneStep})
	w.startSlow("slow-1")
	v1 := w.build("app:v1")
	evacuate := "{terminateAfter: 1s}"
	w.pushSpec("v2", specText{image: "app:v2", strategy: oneStep, evacuate: evacuate})
	w.start()
	w.awaitReady("app:v2")
	w.eventually("the termination is proposed", func() bool {
		e := w.evacuation(v1)
		return len(e) == 1 && e[0].Stage == v1alpha1.EvacuateByTermination && e[0].State == string(v1alpha1.EvacuationProposed)
	})
	require.Contains(t, w.evacuation(v1)[0].Message, "waits for approval")
	w.settle()
	require.Empty(t, w.batchStarts())
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, w.ended("slow-1"))
	explained, err := w.command(binary, append([]string{"explain", deployment, "--repo", w.url, "--branch", "main", "--cache-dir", w.cache}, w.access...)...).CombinedOutput()
	require.NoError(t, err, "%s", explained)
	require.Contains(t, string(explained), "Terminate Proposed")

	// The target goes on meanwhile.
	w.pushSpec("v3", specText{image: "app:v3", strategy: oneStep, evacuate: evacuate})
	w.awaitReady("app:v3")
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, w.ended("slow-1"))

	file := recordDir + "/routing.yaml"
	text := w.repo.Files("main")[file]
	approved := strings.Replace(text, "state: Proposed", "state: Approved", 1)
	require.NotEqual(t, text, approved)
	w.commit(gittest.Commit{Write: map[string]string{file: approved}, Message: "terminate what is left on v1"})
	w.eventually("v1 removed", func() bool { return w.build("app:v1") == "" })
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, w.ended("slow-1"))
	require.Len(t, w.batchStarts(), 1)
	said := buildSuffix.ReplaceAllString(w.repo.Git("log", "--format=%b"), "$1")
	for _, line := range []string{"propose to terminate workflows on v1", "terminate workflows on v1", "terminate workflows on v1: Completed, 1 of 1 workflows"} {
		require.Equal(t, 1, strings.Count(said, "  "+line+"\n"), line)
	}
	w.repo.Fsck()
}
