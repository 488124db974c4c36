package reconcile

import (
	"bytes"
	"context"
	"encoding/gob"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// fromCache is a Reconciler of the same scene that begins with what another one knew.
func fromCache(t *testing.T, from *Reconciler) *Reconciler {
	t.Helper()
	var kept bytes.Buffer
	require.NoError(t, gob.NewEncoder(&kept).Encode(from.CacheData()))
	to := &Reconciler{Planner: from.Planner, Committer: from.Committer, Router: from.Router, Versions: from.Versions, Lister: from.Lister}
	require.NoError(t, to.LoadCacheData(gob.NewDecoder(&kept).Decode))
	return to
}

// A bot that starts again leaves alone what was settled, until its time comes or anything about it changes.
func TestCachedRows(t *testing.T) {
	s := newScene(t)
	r := s.reconciler()
	s.once(r)
	s.ready()
	w := window{s, s.now.Add(3 * time.Minute)}
	r.JudgeFor, r.Lister = func(rollout.EnvironmentWorld) Judge { return w }, lister{}
	s.once(r)
	s.once(r)
	require.Empty(t, s.once(r).Decisions, "it is settled")

	require.Empty(t, s.once(fromCache(t, r)).Decisions)

	changed := fromCache(t, r)
	s.world.Environments[0].Deployments[0].Git.SpecBlob = "another"
	require.Len(t, s.once(changed).Decisions, 1, "its spec changed meanwhile")
	s.world.Environments[0].Deployments[0].Git.SpecBlob = ""

	moved := fromCache(t, r)
	name := s.world.Environments[0].Deployments[0].Deployment.String()
	moved.Lister = listed{name: {Current: "somebody's"}}
	require.Len(t, s.once(moved).Decisions, 1, "its routing moved meanwhile")

	due := fromCache(t, r)
	s.now = w.until
	s.ready()
	require.Len(t, s.once(due).Decisions, 1, "what it waited for is over")
}

// listed is a list as it is.
type listed map[string]rollout.RoutingConfig

func (l listed) List(context.Context, v1alpha1.Connection, string) (*rollout.Listing, error) {
	return &rollout.Listing{Routing: l}, nil
}
