package e2e

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/temporal"
)

// crashConfig lets a policy in the repository be changed.
const crashConfig = `apiVersion: rampart.dev/v1alpha1
kind: Config
spec:
  environments:
    - {name: default, specs: ["workers/**"], output: {path: deploy}, policies: ["policies/*.rego"]}
`

// turnBack takes traffic back from v2.
const turnBack = `package rampart.rollout

rollback contains {"rule": "test.bad", "msg": "v2 is bad"} if {
	input.action.kind == "Continue"
	startswith(input.action.buildID, "v2-")
}
`

// story is a course of events, played in cycles that are processes of their own. cycle runs one of them.
type story struct {
	// sites are where a remote write happens in it, with how often.
	sites map[string]int
	play  func(w *world, cycle func())
	// check looks at the end.
	check func(w *world)
}

// stories reach every site at which something is written.
func stories() map[string]story {
	return map[string]story{
		"Rollout":    {sites: map[string]int{"push": 10, "SetManager": 1, "StartGate": 1, "SetCurrent": 2, "SetRamp": 1, "DeleteVersion": 1}, play: playRollout, check: checkRollout},
		"Retire":     {sites: map[string]int{"push": 5, "SetCurrent": 1}, play: playRetire, check: checkRetire},
		"Evacuation": {sites: map[string]int{"push": 3, "StartBatch": 1}, play: playEvacuation, check: checkEvacuation},
		"Rollback":   {sites: map[string]int{"push": 1, "MarkTurnedBack": 1, "ClearRamp": 1}, play: playRollback, check: checkRollback},
	}
}

// One step is enough to be killed at.
const oneStep = "{strategy: Progressive, steps: [{rampPercentage: 10, pauseDuration: 1s}], rollback: {window: 1s}%s}"

func playRollout(w *world, cycle func()) {
	gate := "{workflowType: Smoke}"
	w.pushSpec("add checkout", specText{image: "app:v1", strategy: oneStep, gate: gate})
	w.eventually("v1 ready", func() bool { cycle(); return w.reason() == "RolloutComplete" })
	w.pushSpec("v2", specText{image: "app:v2", strategy: oneStep})
	w.eventually("v1 removed", func() bool {
		cycle()
		return w.build("app:v2") != "" && w.build("app:v1") == "" && w.reason() == "RolloutComplete"
	})
}

func checkRollout(w *world) {
	require.Equal(w.t, []string{"current v1", "ramp v2 10", "current v2"}, w.calls(), "each step once")
	require.Len(w.t, w.gateStarts(), 1, "its own gate is found again")
	require.Len(w.t, w.routing().Versions, 1)
	require.Empty(w.t, w.routing().Bars)
	require.Nil(w.t, w.routing().Hold)
}

func playRollback(w *world, cycle func()) {
	w.push("configure", map[string]string{"rampart.yaml": crashConfig})
	w.pushSpec("add checkout", specText{image: "app:v1", strategy: slowSteps})
	w.eventually("v1 ready", func() bool { w.once(); return w.reason() == "RolloutComplete" })
	w.pushSpec("v2", specText{image: "app:v2", strategy: slowSteps})
	w.eventually("v2 at 10%", func() bool { w.once(); return slices.Contains(w.calls(), "ramp v2 10") })
	w.push("turn v2 back", map[string]string{"policies/bad.rego": turnBack})
	w.eventually("v2 turned back", func() bool { cycle(); return slices.Contains([]string{"RolledBack", "ManualHold"}, w.reason()) })
	// The policy goes, and the build stays barred: it is not raised again by itself.
	w.push("the policy goes", map[string]string{"policies/bad.rego": "package rampart.rollout\n"})
	for range 3 {
		cycle()
	}
}

func checkRollback(w *world) {
	require.Equal(w.t, []string{"current v1", "ramp v2 10", "ramp none"}, w.calls(), "after a rollback nothing is raised")
	require.Equal(w.t, []string{"test.bad"}, onlyRules(barredBy(w.routing())))
	require.Equal(w.t, "RolledBack", w.reason())
	require.NotEmpty(w.t, w.build("app:v2"), "its files stay")
}

func playRetire(w *world, cycle func()) {
	w.pushSpec("add checkout", specText{image: "app:v1", strategy: oneStep})
	w.eventually("v1 ready", func() bool { w.once(); return w.reason() == "RolloutComplete" })
	w.say("retire", "--unroute", "--force")
	w.commit(gittest.Commit{Delete: []string{specFile}, Message: "no checkout any more"})
	w.eventually("nothing is left", func() bool { cycle(); return w.file(recordDir+"/routing.yaml") == "" })
}

func checkRetire(w *world) {
	require.Equal(w.t, []string{"current v1", "current unversioned"}, w.calls())
	for path := range w.repo.Files("main") {
		require.NotContains(w.t, path, recordDir)
	}
	w.once()
	require.Empty(w.t, w.file(recordDir+"/routing.yaml"), "and it does not come back")
}

func playEvacuation(w *world, cycle func()) {
	w.pushSpec("add checkout", specText{image: "app:v1", strategy: oneStep})
	w.eventually("v1 ready", func() bool { w.once(); return w.reason() == "RolloutComplete" })
	w.startSlow("slow")
	w.pushSpec("v2", specText{image: "app:v2", strategy: oneStep})
	w.eventually("v2 ready", func() bool {
		w.once()
		return w.reason() == "RolloutComplete" && w.status().CurrentVersion.BuildID == w.build("app:v2")
	})
	w.pushSpec("evacuate", specText{image: "app:v2", strategy: oneStep, evacuate: "{continueAsNewSignal: {name: finish, after: 1s}}"})
	w.eventually("v1 removed", func() bool { cycle(); return w.build("app:v1") == "" })
}

func checkEvacuation(w *world) {
	require.Equal(w.t, []string{"current v1", "ramp v2 10", "current v2"}, w.calls())
	require.Len(w.t, w.batchStarts(), 1, "its own job is found again")
	require.Equal(w.t, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, w.ended("slow"))
	require.Len(w.t, w.routing().Versions, 1)
}

// onlyRules leaves out who recorded the bar: the rule, or the mark that the rule left in Temporal.
func onlyRules(by []string) []string {
	for i := range by {
		if by[i] == plan.ByMark {
			by[i] = "test.bad"
		}
	}
	return by
}

// The bot is killed before and after every remote write. The next runs, with and without what it cached, end in the
// right state and raise nothing that they have not decided again.
func TestKilledAtEveryWrite(t *testing.T) {
	all := stories()
	covered := map[string]bool{}
	for _, s := range all {
		for site := range s.sites {
			covered[site] = true
		}
	}
	// Decisions write nothing that a rollout depends on: TestDecisionsTellTheStory.
	for _, site := range append(temporal.Sites(), "push") {
		require.True(t, covered[string(site)], "no story reaches the site %s", site)
	}
	for name, s := range all {
		for site, times := range s.sites {
			for n := 1; n <= testneed.Repeats(times); n++ {
				for _, moment := range []string{"before", "after"} {
					if testing.Short() && moment == "before" {
						continue
					}
					// With and without the cache, in turn: what a mirror holds never decides.
					for _, cache := range caches(site, n) {
						t.Run(fmt.Sprintf("%s/%s-%d-%s-%s", name, site, n, moment, cache), func(t *testing.T) {
							w := newWorld(t)
							killed, before := false, 0
							cycle := func() {
								// A cycle makes one write of a kind at most: those before the n-th are let through.
								if killed || before < n-1 {
									from := w.writes(site)
									w.once()
									before += w.writes(site) - from
									return
								}
								if killed = w.dieAt(site + ":" + moment); killed && cache == "cold" {
									w.forgetCache()
								}
							}
							s.play(w, cycle)
							require.True(t, killed, "the story did not reach the site")
							s.check(w)
							w.repo.Fsck()
						})
					}
				}
			}
		}
	}
}

// caches are what a run after the kill begins with.
func caches(site string, n int) []string {
	if site != "push" && !testing.Short() {
		return []string{"warm", "cold"}
	}
	return []string{[]string{"warm", "cold"}[n%2]}
}

// writes counts what was written at a site so far.
func (w *world) writes(site string) int {
	if site == "push" {
		return len(w.botCommits())
	}
	n := 0
	for _, c := range w.calls() {
		switch {
		case site == "SetCurrent" && strings.HasPrefix(c, "current "), site == "SetRamp" && strings.HasPrefix(c, "ramp v"):
			n++
		}
	}
	return n
}

// dieAt runs one cycle that kills itself when it comes to a site, and reports whether it did.
func (w *world) dieAt(fault string) bool {
	w.t.Helper()
	out, died, err := w.faulty(fault, w.runArgs("--once")...)
	rows.note(w.t, out)
	if !died && !slowly(out) {
		require.NoError(w.t, err, out)
	}
	return died
}

// diesAt runs a command that kills itself when it comes to a site. What refuses it for a moment, as a busy Temporal
// does, is said, and it is run again, as a person would.
func (w *world) diesAt(fault string, args ...string) {
	w.t.Helper()
	w.eventually("it dies at "+fault, func() bool {
		out, died, err := w.faulty(fault, args...)
		if !died {
			require.Error(w.t, err, "it was done without coming to %s: %s", fault, out)
			w.t.Logf("%v: %v: %s", args, err, out)
		}
		return died
	})
}

// faulty runs a command with a fault, and reports whether it died of it.
func (w *world) faulty(fault string, args ...string) (out string, died bool, err error) {
	cmd := w.command(faultBinary, args...)
	cmd.Env = append(cmd.Env, "RAMPART_FAULT="+fault)
	said, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		status, ok := exit.Sys().(syscall.WaitStatus)
		died = ok && status.Signaled() && status.Signal() == syscall.SIGKILL
	}
	return string(said), died, err
}
