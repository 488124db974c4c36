package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// Temporal comes back with nothing in it, at the same address. No other version becomes current because nothing else
// has traffic: the rollout stands still until the spec asks for the version that was current.
func TestTemporalLostItsRouting(t *testing.T) {
	w := newWorld(t, onOwnServer())
	w.start()
	w.push("v1", map[string]string{specFile: specText{image: "app:v1"}.String()})
	w.awaitReady("app:v1")
	require.Equal(t, []string{"current v1"}, w.changes())

	require.NoError(t, w.server.Close())
	w.push("v2", map[string]string{specFile: specText{image: "app:v2"}.String()})
	empty := temporalenv.Start(t, temporalenv.Options{Address: w.server.Address()})
	ns, err := empty.Namespace(t.Context(), w.ns.Name())
	require.NoError(t, err)
	w.server, w.ns = empty, ns
	w.eventually("told", func() bool {
		return w.reason() == "RoutingDrift" && strings.Contains(w.message(), "If it was lost, make "+w.build("app:v1")+" current in Temporal, or ask for it in the spec")
	})
	w.settle()
	require.Empty(t, w.changes())

	w.push("v1 again", map[string]string{specFile: specText{image: "app:v1"}.String()})
	w.awaitReady("app:v1")
	require.Equal(t, []string{"current v1"}, w.changes())
	w.repo.Fsck()
}
