package reconcile

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// A branch that moves again and again costs no more questions, and what was lowered in between is looked at anew.
func TestTriesAskTemporalOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		r := s.reconciler()
		asked := &asking{Observer: s}
		r.Observer = asked
		s.moved = 5
		require.Len(t, s.once(r).Commits, 1)
		first := asked.times
		s2 := newScene(t)
		r = s2.reconciler()
		once := &asking{Observer: s2}
		r.Observer = once
		s2.once(r)
		require.Equal(t, once.times, first, "as often as without")
	})
}

type asking struct {
	Observer
	times int
}

func (a *asking) Observe(ctx context.Context, conn v1alpha1.Connection, ask rollout.Ask) rollout.Observation {
	a.times++
	return a.Observer.Observe(ctx, conn, ask)
}
