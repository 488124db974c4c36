package reconcile

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each decision is logged with the rows of the rules that had a say.
func TestRowsAreLogged(t *testing.T) {
	s := newScene(t)
	r := s.reconciler()
	var log strings.Builder
	r.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s.once(r)
	require.Contains(t, log.String(), "msg=decided deployment=shop/checkout row=create rows=[create] reason=WaitingForPollers\n")
	s.ready()
	s.obs.Routing.Current = s.obs.Versions[0].BuildID
	log.Reset()
	s.once(r)
	require.Contains(t, log.String(), `msg=decided deployment=shop/checkout row=drift rows="[continue drift]" reason=RoutingDrift`+"\n")
}
