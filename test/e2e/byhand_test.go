package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// order is the promotion order: the tags of the versions, and how each was left.
func (w *world) order() []string {
	var out []string
	for _, p := range w.routing().Promotions {
		line := buildSuffix.ReplaceAllString(p.BuildID, "$1")
		if p.LeftBy != "" {
			line += " " + string(p.LeftBy)
		}
		out = append(out, line)
	}
	return out
}

// currentInTemporal is the build that is current there.
func (w *world) currentInTemporal() string {
	w.t.Helper()
	var current string
	w.served(func() error {
		d, err := w.ns.Service().DescribeWorkerDeployment(w.t.Context(), &workflowservice.DescribeWorkerDeploymentRequest{
			Namespace: w.ns.Name(), DeploymentName: w.id()})
		current = d.GetWorkerDeploymentInfo().GetRoutingConfig().GetCurrentDeploymentVersion().GetBuildId()
		return err
	})
	return current
}

// promoteByHand pushes a version under Manual, and makes it current in Temporal once it is ready.
func (w *world) promoteByHand(tag string) {
	w.t.Helper()
	w.pushSpec(tag, specText{image: "app:" + tag, strategy: manual})
	w.eventually(tag+" is ready", func() bool { return w.build("app:"+tag) != "" && w.reason() == "WaitingForPromotion" })
	w.setCurrent(w.build("app:" + tag))
	w.awaitReady("app:" + tag)
}

// Under Manual a person promotes v1 and v2. A command, a verdict and a reverted spec each bring v1 back, and it stays.
func TestManualAndBack(t *testing.T) {
	for name, back := range map[string]func(*world){
		"command": func(w *world) { w.say("rollback", "--reason", "timeouts") },
		"verdict": func(w *world) { w.push("turn v2 back", map[string]string{"policies/bad.rego": turnBack}) },
		"revert":  func(w *world) { w.pushSpec("Revert v2", specText{image: "app:v1", strategy: manual}) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.push("configure", map[string]string{"rampart.yaml": crashConfig, "policies/bad.rego": "package rampart.rollout\n"})
			w.start()
			w.promoteByHand("v1")
			w.promoteByHand("v2")
			require.Empty(t, w.changes(), "a person promoted both")
			require.Equal(t, []string{"v1 Promotion", "v2"}, w.order())
			back(w)
			w.eventually("v1 is back", func() bool {
				return len(w.order()) == 3 && (w.reason() == "RolledBack" || w.reason() == "RolloutComplete")
			})
			w.settle()
			require.Equal(t, []string{"v1 Promotion", "v2 Rollback", "v1"}, w.order())
			require.Equal(t, []string{"current v1"}, w.changes())
			require.Equal(t, w.build("app:v1"), w.currentInTemporal())
			require.Nil(t, w.routing().Hold)
		})
	}
}

// Under Manual a person goes back to v1 in Temporal, and later forward to v2 again: the first is held, the second ends
// the hold. The bot moves nothing.
func TestManualMovedBackAndForward(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.promoteByHand("v1")
	w.promoteByHand("v2")
	w.setCurrent(w.build("app:v1"))
	w.awaitReason("ManualHold")
	w.settle()
	require.Equal(t, v1alpha1.HoldDrift, w.routing().Hold.Kind)
	require.Equal(t, []string{"v1 Promotion", "v2 Rollback", "v1"}, w.order())
	w.setCurrent(w.build("app:v2"))
	w.awaitReady("app:v2")
	require.Nil(t, w.routing().Hold)
	require.Equal(t, []string{"v1 Promotion", "v2 Rollback", "v1 Promotion", "v2"}, w.order())
	require.Empty(t, w.changes())
}

// Somebody promotes the first version in Temporal, and pushes the next one before the bot looks again. What they did is
// taken as it is, and the next version gets its files and is rolled out. So under Manual, and where its gate failed.
func TestHandPromotionThenAPush(t *testing.T) {
	for name, c := range map[string]struct{ strategy, gate, waits, then string }{
		"Manual":        {manual, "", "WaitingForPromotion", "WaitingForPromotion"},
		"past its gate": {slowSteps, "{workflowType: SmokeFails}", "GateFailed", "Ramping"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			b := w.start()
			w.pushSpec("add checkout", specText{image: "app:v1", strategy: c.strategy, gate: c.gate})
			w.awaitReason(c.waits)
			b.stop()
			w.setCurrent(w.build("app:v1"))
			w.pushSpec("v2", specText{image: "app:v2", strategy: c.strategy})
			w.start()
			w.eventually("v2 has files, and goes on", func() bool { return w.build("app:v2") != "" && w.reason() == c.then })
			require.Equal(t, "v1", w.order()[0])
			require.NotContains(t, w.changes(), "current v1")
			require.Equal(t, w.build("app:v1"), w.currentInTemporal())
			require.Nil(t, w.routing().Hold)
		})
	}
}

// While the bot is not there, somebody promotes v2 and goes back to v1. Temporal says so, and the record has it.
func TestCameAndWentBetweenTwoCycles(t *testing.T) {
	w := newWorld(t)
	b := w.start()
	w.pushSpec("add checkout", specText{image: "app:v1", strategy: slowSteps})
	w.awaitReady("app:v1")
	w.pushSpec("v2", specText{image: "app:v2", strategy: slowSteps, gate: "{workflowType: SmokeFails}"})
	w.awaitReason("GateFailed")
	b.stop()
	w.setCurrent(w.build("app:v2"))
	w.setCurrent(w.build("app:v1"))
	b = w.start()
	w.awaitReason("ManualHold")
	require.Equal(t, []string{"v1 Promotion", "v2 Rollback", "v1"}, w.order())
	for _, v := range w.routing().Versions {
		require.False(t, v.RoutedAt.IsZero(), v.BuildID)
	}
	require.Equal(t, []string{"current v1"}, w.changes())
	w.eventually("v2 has drained, which is told once", func() bool { return w.status().TargetVersion.Status == "Drained" })
	b.stop()
	commits := w.botCommits()
	w.forgetCache()
	w.once()
	w.once()
	require.Equal(t, commits, w.botCommits(), "and then quiet")
}

// While a person holds it, what people moved in Temporal stays; a rollback takes it back all the same.
func TestHeldAndMovedByHand(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.ramping(slowSteps)
	said := w.say("hold", "--reason", "incident 4711")
	require.Contains(t, said.Did, "nothing that people move is put back")
	w.awaitReason("ManualHold")
	w.setCurrent(w.build("app:v2"))
	w.eventually("seen", func() bool { return len(w.order()) == 2 })
	w.settle()
	require.Equal(t, w.build("app:v2"), w.currentInTemporal())
	require.Equal(t, []string{"current v1", "ramp v2 10"}, w.changes())
	w.say("rollback", "--reason", "timeouts", "--build", w.build("app:v2"))
	w.settle()
	require.Equal(t, []string{"current v1", "ramp v2 10", "current v1"}, w.changes())
	require.Equal(t, w.build("app:v1"), w.currentInTemporal())
	require.Equal(t, v1alpha1.HoldManual, w.routing().Hold.Kind)
}
