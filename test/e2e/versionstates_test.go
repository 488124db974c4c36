package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// stateOf is what the status says of a version beside the current one and the target.
func (w *world) stateOf(buildID string) string {
	for _, v := range w.status().DeprecatedVersions {
		if v.BuildID == buildID {
			return v.Status
		}
	}
	return ""
}

// What status.yaml says of a version follows what becomes of it, with one commit for each stage at most.
func TestStatusFollowsAVersion(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.pushSpec("add checkout", specText{image: "app:v1"})
	w.awaitReady("app:v1")
	v1 := w.build("app:v1")
	slow := w.startSlow("slow-1")
	w.pushSpec("v2", specText{image: "app:v2", sunset: "scaledownDelay: 1h, deleteDelay: 2h"})
	w.awaitReady("app:v2")
	state := func() string { return w.stateOf(v1) }
	w.eventually("v1 drains", func() bool { return state() == "Draining" })
	require.Equal(t, "Current", w.status().CurrentVersion.Status)
	require.Equal(t, w.build("app:v2"), w.status().CurrentVersion.BuildID)
	w.finish(slow)
	w.eventually("v1 has drained", func() bool { return state() == "Drained" })
	w.settle()
	told := map[string]int{}
	for _, s := range w.botCommits() {
		if s, states := strings.CutPrefix(s, subject+"status: "); states {
			for _, one := range strings.Split(s, ", ") {
				told[one]++
			}
		}
	}
	require.NotEmpty(t, told)
	for what, n := range told {
		require.Equal(t, 1, n, what)
	}
}
