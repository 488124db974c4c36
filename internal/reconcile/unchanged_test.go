package reconcile

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// kept gives a list that a test changes by putting another in its place, as a Lister does.
type kept struct {
	list *rollout.Listing
	err  error
}

func (k *kept) List(context.Context, v1alpha1.Connection, string) (*rollout.Listing, error) {
	return k.list, k.err
}

// frozenScene is one in which a worker deployment is settled, since its promotion is held.
func frozenScene(t *testing.T, lists *kept) (*scene, *Reconciler, string) {
	t.Helper()
	s := newScene(t)
	r := s.reconciler()
	s.once(r)
	s.ready()
	w := window{s, s.now.Add(2 * time.Minute)}
	r.JudgeFor, r.Lister = func(rollout.EnvironmentWorld) Judge { return w }, lists
	s.once(r)
	s.once(r)
	require.Empty(t, s.once(r).Decisions, "it is settled")
	return s, r, s.world.Environments[0].Deployments[0].Deployment.String()
}

// A routing that moved is seen in each list that is another one, whatever was seen before, and however often it could
// not be had.
func TestMovedIsSeenInEachList(t *testing.T) {
	lists := &kept{list: &rollout.Listing{}}
	s, r, name := frozenScene(t, lists)
	same := func() *rollout.Listing {
		return &rollout.Listing{Routing: map[string]rollout.RoutingConfig{name: s.obs.Routing}}
	}
	lists.list = same()
	require.Empty(t, s.once(r).Decisions)
	lists.list = same()
	require.Empty(t, s.once(r).Decisions)
	lists.list, lists.err = nil, errors.New("away")
	require.Empty(t, s.once(r).Decisions)
	moved := &rollout.Listing{Routing: map[string]rollout.RoutingConfig{name: {Current: "somebody's"}}}
	lists.list, lists.err = moved, nil
	require.Len(t, s.once(r).Decisions, 1)
	require.Len(t, s.once(r).Decisions, 1, "the list still says so")
	lists.list = same()
	require.Empty(t, s.once(r).Decisions)
	lists.list = moved
	require.Len(t, s.once(r).Decisions, 1, "the same list as some time ago")
	lists.list = same()
	require.Empty(t, s.once(r).Decisions)
	back := same()
	routing := back.Routing[name]
	routing.RampingChangedAt = s.now
	back.Routing[name], lists.list = routing, back
	require.Len(t, s.once(r).Decisions, 1, "a ramp was there, and went: whoever set it may be the owner")
}

// Of another reading only those are taken over that are the same in it.
func TestOnlyTheSameIsTakenOver(t *testing.T) {
	for what, change := range map[string]func(*rollout.Snapshot){
		"":     func(*rollout.Snapshot) {},
		"spec": func(d *rollout.Snapshot) { d.Git.SpecBlob = "another" },
		"path": func(d *rollout.Snapshot) { d.SpecPath = "elsewhere.yaml" },
		"connection": func(d *rollout.Snapshot) {
			d.Connection = &v1alpha1.Connection{Spec: v1alpha1.ConnectionSpec{HostPort: "other:7233"}}
		},
		"waiver": func(d *rollout.Snapshot) { d.Waivers = []v1alpha1.Waiver{{}} },
	} {
		s, r, _ := frozenScene(t, &kept{list: &rollout.Listing{}})
		env := &s.world.Environments[0]
		env.Deployments = slices.Clone(env.Deployments)
		change(&env.Deployments[0])
		require.Equal(t, what != "", len(s.once(r).Decisions) > 0, what)
	}
}
