package reconcile

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Facts of the bot's own are in every decision, beside the metrics and without them, and do not make it wait for any.
func TestOwnFacts(t *testing.T) {
	f := newFleet(t, 2)
	f.observed[f.name(1)] = rollout.RoutingConfig{Current: "old", HasRamp: true, Ramping: "other", Percentage: 10, PercentageChangedAt: f.now}
	r := f.reconciler()
	own := rollout.Fact{Value: []byte(`"r1"`), ObservedAt: f.now, MaxAge: time.Hour}
	r.Own = func() map[string]rollout.Fact { return map[string]rollout.Fact{"bundle.org": own} }
	report := f.once(r)
	require.Equal(t, []string{"lower w001", "metrics of 1"}, f.events)
	require.Equal(t, map[string]rollout.Fact{"bundle.org": own, "errors": {Value: []byte("0"), ObservedAt: f.now, MaxAge: time.Minute}},
		report.Decisions[0].Snapshot.Facts)
	require.Equal(t, map[string]rollout.Fact{"bundle.org": own}, report.Decisions[1].Snapshot.Facts)
}

// A worker deployment that is settled is decided again when the bot's own facts say something else, and not because
// they are confirmed once more.
func TestOwnFactsAreInputs(t *testing.T) {
	s := newScene(t)
	r := s.reconciler()
	r.Lister = lister{}
	fact := rollout.Fact{Value: []byte(`"r1"`), ObservedAt: s.now, MaxAge: time.Hour}
	r.Own = func() map[string]rollout.Fact { return map[string]rollout.Fact{"bundle.org": fact} }
	w := window{s, s.now.Add(time.Hour)}
	r.JudgeFor = func(rollout.EnvironmentWorld) Judge { return w }
	s.once(r)
	s.ready()
	s.once(r)
	s.once(r)
	require.Empty(t, s.once(r).Decisions, "it is settled")
	s.now = s.now.Add(time.Second)
	fact.ObservedAt = s.now
	require.Empty(t, s.once(r).Decisions)
	fact.Value = []byte(`"r2"`)
	require.Len(t, s.once(r).Decisions, 1)
	require.Empty(t, s.once(r).Decisions)
	fact.Value, fact.Error = nil, "no answer"
	require.Len(t, s.once(r).Decisions, 1)
	_, err := r.Cycle(context.Background())
	require.NoError(t, err)
}
