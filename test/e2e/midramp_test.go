package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// In mid-ramp a push breaks the spec, and the candidate begins to fail: it is turned back all the same, and the status
// says both. When the spec is mended, the rollout goes on as ever.
func TestBrokenSpecInMidRamp(t *testing.T) {
	w := newWorld(t)
	w.start()
	good := specText{image: "app:bad", strategy: firstStep}
	w.pushSpec("add checkout", specText{image: "app:v1", strategy: firstStep})
	w.awaitReady("app:v1")
	w.pushSpec("a bad one", good)
	w.eventually("50%", func() bool { return slices.Contains(w.calls(), "ramp bad 50") && w.reason() == "Ramping" })
	bad := w.build("app:bad")

	w.push("oops", map[string]string{specFile: good.String() + "\n  rollout: [\n"})
	w.awaitReason("InvalidSpec")
	require.NotContains(t, w.message(), "Meanwhile")
	w.settle()
	require.Equal(t, []string{"current v1", "ramp bad 50"}, w.calls(), "everything stays as it is")

	w.traffic()
	w.eventually("turned back", func() bool {
		return slices.Contains(w.calls(), "ramp none") && strings.Contains(w.message(), "Meanwhile: ")
	})
	require.Equal(t, []string{"current v1", "ramp bad 50", "ramp none"}, w.calls())
	require.Equal(t, "InvalidSpec", w.reason())
	require.Contains(t, w.message(), specFile)
	require.Contains(t, w.message(), "Meanwhile: "+bad+" was turned back by rollout.canary: ")
	require.Equal(t, []string{"rollout.canary"}, barredBy(w.routing()))
	require.Equal(t, specFile, w.routing().SpecPath)
	w.settle()
	require.Len(t, w.calls(), 3)

	w.pushSpec("mended", good)
	w.awaitReason("RolledBack")
	w.settle()
	require.Len(t, w.calls(), 3, "it stays barred")
	w.pushSpec("v2", specText{image: "app:v2"})
	w.awaitReady("app:v2")
	w.repo.Fsck()
}

// In mid-ramp the file of the connection is deleted: a person takes traffic back, by what was recorded of it.
func TestConnectionGoneInMidRamp(t *testing.T) {
	const connectionFile = "workers/connection.yaml"
	w := newWorld(t)
	w.start()
	w.ramping(slowSteps)
	v2 := w.build("app:v2")
	text := w.file(connectionFile)
	w.commit(gittest.Commit{Delete: []string{connectionFile}, Message: "tidy up"})
	w.awaitReason("TemporalConnectionNotFound")
	w.settle()
	require.Equal(t, []string{"current v1", "ramp v2 10"}, w.calls())

	done := w.say("rollback", "--reason", "timeouts")
	require.Contains(t, done.Did, "take traffic back from "+v2)
	require.Equal(t, []string{"current v1", "ramp v2 10", "ramp none"}, w.changes())
	both := "connection shop/temporal is not in the repository. Meanwhile: " + v2 + " was turned back by " + person + ": timeouts"
	w.eventually("the status says both", func() bool { return strings.Contains(w.message(), both) }) // once the bot has read the person's commit
	require.Equal(t, "TemporalConnectionNotFound", w.reason())
	w.settle()
	require.Len(t, w.changes(), 3)

	w.push("bring it back", map[string]string{connectionFile: text})
	w.awaitReason("RolledBack")
	w.say("retry")
	w.eventually("v2 starts anew", func() bool { return len(w.changes()) == 4 })
	require.Equal(t, "ramp v2 10", w.changes()[3])
	w.repo.Fsck()
}

// A spec that goes in mid-ramp, with its connection: traffic is taken back as long as it is not back.
func TestSpecGoneInMidRamp(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.ramping(slowSteps)
	w.commit(gittest.Commit{Delete: []string{specFile, "workers/connection.yaml"}, Message: "gone"})
	w.awaitReason("InvalidSpec")
	require.Contains(t, w.message(), "is gone from Git")
	head, desired, found := strings.Cut(w.file(recordDir+"/routing.yaml"), "\n  desired:\n")
	require.True(t, found)
	w.commit(gittest.Commit{Write: map[string]string{recordDir + "/routing.yaml": head + "\n  desired:\n" + strings.Replace(desired, "percentage: 10", "percentage: 3", 1)},
		Message: "less of it"})
	w.eventually("lowered", func() bool { return len(w.calls()) == 3 })
	require.Equal(t, "ramp v2 3", w.calls()[2])
	w.eventually("held", func() bool { h := w.routing().Hold; return h != nil && h.Kind == v1alpha1.HoldManual })
	require.Len(t, w.routing().Versions, 2)
	w.repo.Fsck()
}

// A spec asks for another Temporal namespace: its versions stay where they are, and are turned back there. Retired,
// they end there, and the same build is made anew in the other namespace: one that was barred in the old one is not
// barred there.
func TestAnotherTemporalNamespace(t *testing.T) {
	testneed.Long(t)
	w := newWorld(t)
	second := temporalenv.Start(t, temporalenv.Options{})
	other, err := second.Namespace(t.Context(), w.ns.Name()+"-2")
	require.NoError(t, err)
	namesake, err := second.Namespace(t.Context(), w.ns.Name())
	require.NoError(t, err)
	w.start()
	w.ramping(slowSteps)
	v2 := w.build("app:v2")
	moved := strings.ReplaceAll(specText{image: "app:v2", strategy: slowSteps}.String(), "temporalNamespace: NAMESPACE", "temporalNamespace: "+other.Name())
	moved = strings.ReplaceAll(moved, "connectionRef: {name: temporal}", "connectionRef: {name: second}")
	w.push("elsewhere", map[string]string{specFile: moved, "workers/second.yaml": strings.NewReplacer(
		w.server.Address(), second.Address(), "name: temporal", "name: second").Replace(w.connection())})
	w.awaitReason("InvalidSpec")
	require.Contains(t, w.message(), "temporalNamespace changed from "+w.ns.Name()+" to "+other.Name())
	require.Contains(t, w.message(), "rampart retire "+deployment+" --unroute")
	w.settle()
	require.Equal(t, []string{"current v1", "ramp v2 10"}, w.calls())
	w.say("rollback", "--reason", "timeouts")
	require.Equal(t, []string{"current v1", "ramp v2 10", "ramp none"}, w.changes())
	w.eventually("told", func() bool { return strings.Contains(w.message(), "Meanwhile: "+v2+" was turned back") })
	for _, v := range w.routing().Versions {
		require.Contains(t, w.manifest(v.BuildID), "value: "+w.ns.Name()+"\n")
		require.NotContains(t, w.manifest(v.BuildID), second.Address())
	}

	open := w.startSlow("pinned")
	said := w.say("retire", "--unroute", "--force", "--reason", "moves")
	require.Contains(t, strings.Join(said.Notes, "\n"), "the bot creates it in "+other.Name())
	w.eventually("one is left", func() bool { return len(w.changes()) == 4 && len(w.routing().Versions) == 1 })
	w.settle()
	require.Len(t, w.routing().Versions, 1, "a workflow is pinned to it")
	require.Empty(t, other.RoutingCalls(deployment))
	require.NotContains(t, w.manifest(w.routing().Versions[0].BuildID), second.Address())
	w.finish(open)
	w.awaitReady("app:v2")
	require.Equal(t, []string{"current v1", "ramp v2 10", "ramp none", "current unversioned"}, w.changes())
	require.Equal(t, []string{"current " + v2}, other.RoutingCalls(deployment), "the same build, and another version")
	r := w.routing()
	require.Equal(t, other.Name(), r.TemporalNamespace)
	require.Empty(t, r.Bars)
	require.Len(t, r.Promotions, 1)
	require.Len(t, r.Versions, 1)
	require.Contains(t, w.manifest(v2), "value: "+other.Name()+"\n")
	require.Contains(t, w.manifest(v2), second.Address())
	require.Zero(t, namesake.Counts()["DescribeWorkerDeployment"], "the old namespace is looked for where it is")
	require.Empty(t, w.listed())
	w.repo.Fsck()
}

// The connection leads to another Temporal in mid-ramp. No worker is taken away from the workflows that are pinned to
// its version, and traffic can still be taken back where the versions are.
func TestAnotherTemporal(t *testing.T) {
	w := newWorld(t)
	second := temporalenv.Start(t, temporalenv.Options{})
	ns, err := second.Namespace(t.Context(), w.ns.Name())
	require.NoError(t, err)
	w.start()
	w.ramping(slowSteps)
	v1, v2 := w.build("app:v1"), w.build("app:v2")
	w.push("another Temporal", map[string]string{"workers/connection.yaml": strings.ReplaceAll(w.connection(), w.server.Address(), second.Address())})
	// The workflows of v1 and v2 are on the first one: their workers stay there, and the rollout stands still.
	w.awaitReason("InvalidSpec")
	require.Contains(t, w.message(), "A version stays on its server")
	w.settle()
	require.Empty(t, ns.RoutingCalls(deployment))
	require.NotContains(t, w.manifest(v1)+w.manifest(v2), second.Address())
	require.Equal(t, []string{"current v1", "ramp v2 10"}, w.calls())

	// Traffic can be taken back, where the versions are.
	require.True(t, w.say("rollback", "--reason", "it leads nowhere").Changed)
	require.Equal(t, []string{"current v1", "ramp v2 10", "ramp none"}, w.calls())
	w.push("back to the first Temporal", map[string]string{"workers/connection.yaml": w.connection()})
	w.awaitReason("RolledBack")
	require.Empty(t, ns.RoutingCalls(deployment))
	w.repo.Fsck()
}
