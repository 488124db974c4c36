package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/gittest"
)

// editDesired changes the desired routing as a person does.
func (w *world) editDesired(message, from, to string) {
	w.t.Helper()
	file := w.dir() + "/routing.yaml"
	text := w.file(file)
	head, desired, found := strings.Cut(text, "\n  desired:\n")
	require.True(w.t, found, text)
	edited := strings.Replace(desired, from, to, 1)
	require.NotEqual(w.t, desired, edited)
	w.commit(gittest.Commit{Write: map[string]string{file: head + "\n  desired:\n" + edited}, Message: message})
}

// desiredShare is the desired percentage of the ramp, 0 for none.
func (w *world) desiredShare() float64 {
	if r := w.routing().Desired.Ramping; r != nil {
		return r.Percentage
	}
	return 0
}

// A hand edit of routing.yaml upward is a raise, without the pause. One to a build that the spec does not ask for is
// put back; one that says what somebody made in Temporal is taken as it is.
func TestRoutingEdited(t *testing.T) {
	w := newWorld(t)
	b := w.start()
	w.ramping(slowSteps)
	v2 := w.build("app:v2")
	w.editDesired("raise v2", "percentage: 10", "percentage: 50")
	w.awaitReason("ManualHold")
	require.Equal(t, []string{"current v1", "ramp v2 10", "ramp v2 50"}, w.calls())

	w.editDesired("ramp another one", "buildID: "+v2, "buildID: v9-00000000")
	w.eventually("put back", func() bool { return w.routing().Desired.Ramping.BuildID == v2 })
	require.Contains(t, w.routing().Hold.Reason, "so routing.yaml is put back")
	require.InDelta(t, 50, w.desiredShare(), 0)

	b.stop()
	w.setRamp(v2, 20)
	w.editDesired("as it is", "percentage: 50", "percentage: 20")
	w.start()
	w.eventually("seen", func() bool {
		d := w.routing().Decided
		return d != nil && d.Ramping != nil && d.Ramping.Percentage == 20
	})
	w.settle()
	require.Equal(t, "ManualHold", w.reason())
	require.NotContains(t, w.routing().Hold.Reason, "put back")
	require.InDelta(t, 20, w.desiredShare(), 0)
	require.Len(t, w.calls(), 3)
}

// driftPolicy says what becomes of traffic that somebody else raised.
func driftPolicy(answer string) map[string]string {
	return map[string]string{
		"rampart.yaml": `apiVersion: rampart.dev/v1alpha1
kind: Config
spec:
  environments:
    - {name: default, specs: ["workers/**"], output: {path: deploy}, data: [limits.yaml]}
`,
		"limits.yaml": "rampart: {config: {drift: {routing: {higher: " + answer + "}}}}\n"}
}

// Traffic that somebody raised in Temporal is left alone, adopted or reverted, as policy says.
func TestDriftPolicy(t *testing.T) {
	w := newWorld(t)
	w.push("hold", driftPolicy("hold"))
	w.start()
	w.ramping(slowSteps)
	w.setRamp(w.build("app:v2"), 50)
	w.awaitReason("RoutingDrift")
	w.settle()
	require.Equal(t, "RoutingDrift", w.reason())
	require.InDelta(t, 10, w.desiredShare(), 0)

	w.push("adopt", driftPolicy("adopt"))
	w.eventually("adopted", func() bool { return w.desiredShare() == 50 })
	w.settle()
	require.Equal(t, []string{"current v1", "ramp v2 10"}, w.calls())

	w.push("revert", driftPolicy("revert"))
	w.setRamp(w.build("app:v2"), 80)
	w.eventually("reverted", func() bool { return len(w.calls()) == 3 })
	require.Equal(t, "ramp v2 50", w.calls()[2])
}
