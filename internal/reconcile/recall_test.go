package reconcile

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// counting numbers its answers.
type counting struct {
	now     time.Time
	asked   int
	problem *rollout.Problem
}

func (c *counting) Observe(context.Context, v1alpha1.Connection, rollout.Ask) rollout.Observation {
	c.asked++
	return rollout.Observation{At: c.now.Add(time.Duration(c.asked)), Problem: c.problem}
}

func TestRecall(t *testing.T) {
	a, b := rollout.Name{Namespace: "shop", Name: "a"}, rollout.Name{Namespace: "shop", Name: "b"}
	var conn v1alpha1.Connection
	c := &counting{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	now := c.now.Add(time.Second)
	r := newRecall(func() time.Time { return now }, 10*time.Second)
	var first *rollout.Observation
	record := "tree"
	nth := func(n rollout.Name, queues ...string) int {
		t.Helper()
		a := r.observe(t.Context(), c, rollout.Snapshot{Deployment: n, FirstRead: first},
			question{conn, rollout.Ask{Deployment: n, TemporalNamespace: "x", OpenPinned: queues}, record})
		require.False(t, a.at.Before(a.said.At))
		return int(a.said.At.Sub(c.now))
	}
	require.Equal(t, []int{1, 2, 3}, []int{nth(a), nth(a), nth(b)}, "within a try everything is asked")
	r.again()
	require.Equal(t, []int{1, 2, 3}, []int{nth(a), nth(a), nth(b)}, "two reads stay two")
	require.Equal(t, 4, nth(a), "a third is a third")
	r.again()
	require.Equal(t, []int{1, 5, 3}, []int{nth(a), nth(a, "v1"), nth(b)}, "another question is another one")
	r.forget(b)
	r.again()
	require.Equal(t, []int{6, 1}, []int{nth(b), nth(a)}, "b was changed")
	conn.Metadata.Name = "other"
	require.Equal(t, 7, nth(a), "another server")
	conn.Metadata.Name = ""
	r.again()
	now = now.Add(time.Minute)
	require.Equal(t, 6, nth(b), "it is old, and what was decided on")
	r.again()
	first = &rollout.Observation{}
	require.Equal(t, 8, nth(b), "it is too old for a second read")
	first = nil
	r.again()
	record = "another"
	require.Equal(t, 9, nth(b), "it is no answer to what somebody else has recorded since")
	record = "tree"
	c.problem = &rollout.Problem{Message: "busy"}
	require.Equal(t, 10, nth(a))
	c.problem = nil
	r.again()
	require.Equal(t, 10, nth(a), "a problem is an answer, until the next cycle")
}

// A branch that moves again and again costs no more questions, and what was lowered in between is looked at anew.
func TestTriesAskTemporalOnce(t *testing.T) {
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
}

type asking struct {
	Observer
	times int
}

func (a *asking) Observe(ctx context.Context, conn v1alpha1.Connection, ask rollout.Ask) rollout.Observation {
	a.times++
	return a.Observer.Observe(ctx, conn, ask)
}
