package e2e

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/logtest"
	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/testneed"
)

// says is what a command by which a person says something printed.
type says struct {
	Environment string   `json:"environment"`
	Changed     bool     `json:"changed"`
	Commit      string   `json:"commit"`
	Did         string   `json:"did"`
	Notes       []string `json:"notes"`
}

// person is who says it.
const person = "Ada Lovelace"

// try says something, while the bot runs beside, and gives what became of it.
func (w *world) try(bin string, args ...string) (says, string, error) {
	w.t.Helper()
	full := slices.Concat(args[:1], []string{w.id()}, args[1:], []string{"--repo", w.url, "--branch", "main", "--cache-dir", w.cache,
		"--author", person, "--email", "ada@example.com", "-o", "json"}, w.access)
	var log logtest.Buffer
	cmd := w.command(bin, full...)
	cmd.Stderr = &log
	out, err := cmd.Output()
	var s says
	if err == nil {
		require.NoError(w.t, json.Unmarshal(out, &s), "%s", out)
	}
	return s, log.String(), err
}

// say says something that has to work.
func (w *world) say(args ...string) says {
	w.t.Helper()
	s, log, err := w.try(binary, args...)
	require.NoError(w.t, err, "rampart %v: %s", args, log)
	return s
}

// refused says something that must not work, and gives why.
func (w *world) refused(args ...string) string {
	w.t.Helper()
	_, log, err := w.try(binary, args...)
	var exit *exec.ExitError
	require.ErrorAs(w.t, err, &exit)
	require.Equal(w.t, 1, exit.ExitCode(), log)
	return log
}

// author of a commit.
func (w *world) author(commit string) string { return w.repo.Git("log", "-1", "--format=%an", commit) }

// ramping brings v2 to 10% beside v1.
func (w *world) ramping(strategy string) {
	w.t.Helper()
	w.pushSpec("add checkout", specText{image: "app:v1", strategy: strategy})
	w.awaitReady("app:v1")
	w.pushSpec("v2", specText{image: "app:v2", strategy: strategy})
	w.eventually("10%", func() bool { return slices.Contains(w.calls(), "ramp v2 10") && w.reason() == "Ramping" })
}

// Traffic is taken back before it is committed; the build stays barred; a retry starts at its first gate and step.
func TestRollbackInMidRamp(t *testing.T) {
	w := newWorld(t)
	w.start()
	gated := specText{image: "app:v2", strategy: slowSteps, gate: "{workflowType: Smoke}"}
	w.pushSpec("add checkout", specText{image: "app:v1", strategy: slowSteps})
	w.awaitReady("app:v1")
	w.pushSpec("v2", gated)
	w.eventually("10%", func() bool { return slices.Contains(w.calls(), "ramp v2 10") && w.reason() == "Ramping" })
	v2 := w.build("app:v2")
	require.Len(t, w.gateStarts(), 1)

	barred := make(chan int, 10)
	w.ns.BeforeForward(func(_ string, request proto.Message) {
		if r, ok := request.(*workflowservice.SetWorkerDeploymentRampingVersionRequest); ok && r.BuildId == "" {
			barred <- len(w.routing().Bars)
		}
	})
	done := w.say("rollback", "--reason", "timeouts")
	require.True(t, done.Changed)
	require.Contains(t, done.Did, "take traffic back from "+v2)
	require.Zero(t, <-barred, "the call comes before the commit")
	require.Equal(t, person, w.author(done.Commit))
	bars := w.routing().Bars
	require.Len(t, bars, 1)
	require.Equal(t, []string{v2, person, "timeouts"}, []string{bars[0].BuildID, bars[0].By, bars[0].Reason})
	w.awaitReason("RolledBack")
	w.settle()
	require.Equal(t, []string{"current v1", "ramp v2 10", "ramp none"}, w.changes())
	require.Nil(t, w.routing().Hold)

	again := w.say("rollback")
	require.False(t, again.Changed, "said twice, it is done once")
	require.Equal(t, []string{v2 + " was turned back already, by " + person + ": timeouts"}, again.Notes)
	require.Equal(t, []string{"current v1", "ramp v2 10", "ramp none"}, w.changes(), "and not v1 as well")

	w.say("retry", "--reason", "fixed")
	w.eventually("v2 starts anew", func() bool { return len(w.changes()) == 4 })
	require.Equal(t, "ramp v2 10", w.changes()[3])
	require.Len(t, w.gateStarts(), 2, "its first gate ran again")
	require.Equal(t, 2, w.routing().Target.Attempt)
	w.repo.Fsck()
}

// A promotion is undone at once within the window; outside of it the build has to be named.
func TestRollbackOfAPromotion(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.pushSpec("add checkout", specText{image: "app:v1", strategy: allAtOnce})
	w.awaitReady("app:v1")
	require.Contains(t, w.refused("rollback"), "no version before "+w.build("app:v1")+" can take its traffic")
	w.pushSpec("v2", specText{image: "app:v2", strategy: allAtOnce})
	w.awaitReady("app:v2")
	v1, v2 := w.build("app:v1"), w.build("app:v2")
	require.Contains(t, w.refused("rollback", "--to", "v7"), `has no version "v7", neither in Git nor in Temporal`)
	done := w.say("rollback", "--reason", "timeouts")
	require.Contains(t, done.Did, "roll back to "+v1)
	w.awaitReason("RolledBack")
	w.settle()
	require.Equal(t, []string{"current v1", "current v2", "current v1"}, w.changes())
	r := w.routing()
	require.Contains(t, barredBy(r), person)
	require.Equal(t, v1, r.Desired.Current)
	var order []string
	for _, p := range r.Promotions {
		order = append(order, p.BuildID+" "+string(p.LeftBy))
	}
	require.Equal(t, []string{v1 + " Promotion", v2 + " Rollback", v1 + " "}, order)
	require.False(t, w.say("rollback").Changed)
	require.Contains(t, w.refused("rollback", "--build", v1), "no version before "+v1)
}

// A rollback by a command, while no bot runs, commits the manifests that its record goes by: the bot finds no drift.
func TestRollbackCommitsManifests(t *testing.T) {
	w := newWorld(t)
	b := w.start()
	for _, tag := range []string{"v1", "v2"} {
		w.pushSpec(tag, specText{image: "app:" + tag, strategy: allAtOnce})
		w.awaitReady("app:" + tag)
	}
	b.stop()
	commit := w.say("rollback", "--reason", "timeouts").Commit
	for _, v := range w.routing().Versions {
		require.NotEmpty(t, v.Files)
		for name, hash := range v.Files {
			require.Equal(t, hash, w.repo.Git("rev-parse", commit+":"+w.dir()+"/versions/"+v.BuildID+"/"+name))
		}
	}
	w.start()
	w.awaitReason("RolledBack")
	w.settle()
	require.NotContains(t, strings.Join(w.botCommits(), "\n"), "drift")
}

// The process dies between the mark and the call: the bot that runs beside it finds the mark, and takes traffic back.
func TestRollbackThatDiedBeforeItsCall(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.pushSpec("add checkout", specText{image: "app:v1", strategy: allAtOnce})
	w.awaitReady("app:v1")
	w.pushSpec("v2", specText{image: "app:v2", strategy: allAtOnce})
	w.awaitReady("app:v2")
	w.diesAt("SetCurrent:before", "rollback", deployment, "--repo", w.url, "--cache-dir", w.cache, "--author", person)
	// The mark wakes no worker deployment that is at rest, up to five minutes: its next look finds it.
	w.pushSpec("a look", specText{image: "app:v2", strategy: allAtOnce, extra: "# looked at once more"})
	w.awaitReason("RolledBack")
	w.settle()
	require.Equal(t, []string{"current v1", "current v2", "current v1"}, w.calls())
	require.Equal(t, []string{plan.ByMark}, barredBy(w.routing()))
}

// The process dies between Temporal and Git: the mark in Temporal bars the build, and a retry lifts that too.
func TestRollbackThatGitNeverHeardOf(t *testing.T) {
	w := newWorld(t)
	b := w.start()
	w.ramping(slowSteps)
	b.stop()
	w.diesAt("push:before", "rollback", deployment, "--repo", w.url, "--cache-dir", w.cache, "--author", person)
	require.Equal(t, []string{"current v1", "ramp v2 10", "ramp none"}, w.calls())
	require.Empty(t, w.routing().Bars, "Git does not know")
	w.start()
	w.awaitReason("RolledBack")
	require.Equal(t, []string{plan.ByMark}, barredBy(w.routing()), "the bot writes down what it finds in Temporal")
	require.Len(t, w.calls(), 3)
	w.say("retry")
	w.eventually("v2 starts anew", func() bool { return len(w.calls()) == 4 })
	require.Equal(t, "ramp v2 10", w.calls()[3])
	require.Empty(t, w.routing().Bars)
}

func TestHoldAndResume(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.ramping(slowSteps)
	require.True(t, w.say("hold", "--reason", "lunch").Changed)
	w.awaitReason("ManualHold")
	require.False(t, w.say("hold").Changed)
	w.pushSpec("quickly", specText{image: "app:v2", strategy: "{strategy: Progressive, steps: [{rampPercentage: 10, pauseDuration: 1s}, {rampPercentage: 50, pauseDuration: 1s}]%s}"})
	at := len(w.calls())
	w.settle()
	require.Len(t, w.calls(), at, "nothing is raised")
	require.True(t, w.say("resume").Changed)
	w.awaitReady("app:v2")
	require.Equal(t, []string{"current v1", "ramp v2 10", "ramp v2 50", "current v2"}, w.calls())
	require.False(t, w.say("resume").Changed)
}

func TestAdoptAndRelease(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.ramping(slowSteps)
	v1, v2 := w.build("app:v1"), w.build("app:v2")
	w.say("release", "--reason", "migration")
	require.Empty(t, w.manager())
	w.awaitReason("OwnedByAnother")
	// The spec is reverted: the bot would clear the ramp, and does not.
	w.pushSpec("back to v1", specText{image: "app:v1", strategy: slowSteps})
	w.settle()
	require.Equal(t, []string{"current v1", "ramp v2 10"}, w.calls())
	require.Contains(t, w.refused("resume"), "rampart adopt")
	w.pushSpec("v2 again", specText{image: "app:v2", strategy: slowSteps})

	w.setManager("somebody-else")
	w.setRampAs("somebody-else", v2, 33)
	require.Contains(t, w.refused("adopt"), `belongs to "somebody-else". To take it from there: rampart adopt shop/checkout --from "somebody-else"`)
	require.Contains(t, w.refused("adopt", "--from", "nobody-i-know"), `belongs to "somebody-else", not to "nobody-i-know": nothing was taken over`)
	require.Equal(t, "somebody-else", w.manager())
	w.say("hold")
	done := w.say("adopt", "--from", "somebody-else")
	require.Contains(t, done.Did, "was \"somebody-else\"'s; it is kept as it is: current "+v1+", "+v2+" ramping at 33%")
	require.Equal(t, managerIdentity, w.manager())
	w.awaitReason("Ramping")
	w.eventually("back at a step", func() bool { return len(w.calls()) == 3 })
	require.Equal(t, "ramp v2 10", w.calls()[2])
	require.False(t, w.say("adopt").Changed)

	w.say("release", "--to", "somebody-else")
	require.Equal(t, "somebody-else", w.manager())
}

func (w *world) manager() string {
	w.t.Helper()
	var d *workflowservice.DescribeWorkerDeploymentResponse
	w.served(func() (err error) {
		d, err = w.ns.Service().DescribeWorkerDeployment(w.t.Context(), &workflowservice.DescribeWorkerDeploymentRequest{
			Namespace: w.ns.Name(), DeploymentName: w.id()})
		return err
	})
	return d.GetWorkerDeploymentInfo().GetManagerIdentity()
}

func (w *world) setRampAs(identity, buildID string, percentage float32) {
	w.t.Helper()
	w.served(func() error {
		_, err := w.ns.Service().SetWorkerDeploymentRampingVersion(w.t.Context(), &workflowservice.SetWorkerDeploymentRampingVersionRequest{
			Namespace: w.ns.Name(), DeploymentName: w.id(), BuildId: buildID, Percentage: percentage, Identity: identity})
		return err
	})
}

// TestRetireAWorkerDeployment ends a whole worker deployment. Its ramp goes, its current version goes once nothing uses
// it, a pinned workflow keeps its version, and at the end nothing is left.
func TestRetireAWorkerDeployment(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.ramping(slowSteps)
	open := w.startSlow("pinned")
	w.say("retire", "--reason", "moved to billing")
	w.eventually("the ramp is gone", func() bool { return slices.Contains(w.calls(), "ramp none") })
	w.awaitReason("Retiring")
	w.settle()
	require.Equal(t, []string{"current v1", "ramp v2 10", "ramp none"}, w.calls(), "current stays where it is")

	w.say("retire", "--unroute")
	w.settle()
	require.Len(t, w.calls(), 3, "a workflow is open: new ones may come")
	w.say("retire", "--unroute", "--force")
	w.eventually("unrouted", func() bool { return slices.Contains(w.calls(), "current none") || len(w.calls()) == 4 })
	w.commit(gittest.Commit{Delete: []string{specFile}, Message: "no checkout any more"})
	w.eventually("the other one is removed", func() bool { return len(w.routing().Versions) == 1 })
	w.settle()
	require.Len(t, w.routing().Versions, 1, "a workflow is pinned to it")
	require.Contains(t, w.manifest(w.routing().Versions[0].BuildID), "replicas: 1")
	w.finish(open)
	w.eventually("the folder is gone", func() bool { return w.file(recordDir+"/routing.yaml") == "" })
	for path := range w.repo.Files("main") {
		require.False(t, strings.HasPrefix(path, recordDir), path)
	}
	require.NotContains(t, w.file(output+"/kustomization.yaml"), deployName)
	w.repo.Fsck()
}

// TestRetireUnusedVersion checks that a current version that nothing uses loses its traffic on that proof.
func TestRetireUnusedVersion(t *testing.T) {
	testneed.Long(t)
	w := newWorld(t)
	w.start()
	w.pushSpec("add checkout", specText{image: "app:v1"})
	w.awaitReady("app:v1")
	w.say("retire", "--unroute")
	w.settle()
	require.Len(t, w.calls(), 1, "not at once")
	w.eventually("unrouted", func() bool { return len(w.calls()) == 2 })
	w.eventually("nothing is left", func() bool { return len(w.routing().Versions) == 0 })
	w.awaitReason("Retiring")
	require.NotEmpty(t, w.file(recordDir+"/routing.yaml"), "as long as its spec is there")
	require.NotNil(t, w.routing().Retire)
	require.Equal(t, v1alpha1.UnrouteProven, w.routing().Retire.Current)
}

// One version goes without the delays, but not while a workflow is pinned to it.
func TestRetireOneVersion(t *testing.T) {
	w := newWorld(t)
	w.start()
	long := func(image string) specText {
		return specText{image: image, strategy: allAtOnce, sunset: "scaledownDelay: 24h, deleteDelay: 48h"}
	}
	w.pushSpec("add checkout", long("app:v1"))
	w.awaitReady("app:v1")
	open := w.startSlow("pinned")
	w.pushSpec("v2", long("app:v2"))
	w.awaitReady("app:v2")
	v1, v2 := w.build("app:v1"), w.build("app:v2")
	require.Contains(t, w.refused("retire", "--version", v2), "asks for "+v2)
	w.say("retire", "--version", v1)
	w.settle()
	require.Contains(t, w.manifest(v1), "replicas: 1")
	w.finish(open)
	w.eventually("v1 is removed", func() bool { return w.build("app:v1") == "" })
	require.Equal(t, []string{"current v1", "current v2"}, w.calls())
}
