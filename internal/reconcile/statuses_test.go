package reconcile

import (
	"context"
	"encoding/json"
	"log/slog"
	"path"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// asker is a scene whose policies look at commit statuses.
type asker struct {
	*scene
	contexts  []string
	questions []rollout.StatusQuestion
}

func (a *asker) Looks() rollout.Looks { return rollout.Looks{Statuses: a.contexts} }

// setsAll gives the same fact for each context.
type setsAll struct{ *asker }

func (s setsAll) Read(_ context.Context, q rollout.StatusQuestion) []map[string]rollout.Fact {
	s.questions = append(s.questions, q)
	out := make([]map[string]rollout.Fact, len(q.Versions))
	for i := range out {
		out[i] = map[string]rollout.Fact{rollout.StatusFacts + "cd": {Value: json.RawMessage(`"success"`)}}
	}
	return out
}

// Commit statuses are read where policies look at some, for the version that is asked for, beside facts that there are.
func TestStatusesAreFacts(t *testing.T) {
	own := rollout.Fact{Value: json.RawMessage(`"v7"`)}
	for name, tc := range map[string]struct {
		contexts []string
		nobody   bool
		want     map[string]rollout.Fact
		asked    int
	}{
		"nobody looks":  {want: map[string]rollout.Fact{"bundle.org": own}},
		"policies look": {contexts: []string{"cd"}, want: map[string]rollout.Fact{"bundle.org": own, "status:cd": {Value: json.RawMessage(`"success"`)}}, asked: 1},
		"nobody to ask": {contexts: []string{"cd"}, nobody: true, want: map[string]rollout.Fact{"bundle.org": own, "status:cd": {Source: "status cd", Error: nobodyAsks}}},
	} {
		t.Run(name, func(t *testing.T) {
			a := &asker{scene: newScene(t), contexts: tc.contexts}
			p := &Planner{Source: a, Observer: a, JudgeFor: func(rollout.EnvironmentWorld) Judge { return a }, Own: func() map[string]rollout.Fact { return map[string]rollout.Fact{"bundle.org": own} },
				Limits: rollout.DefaultLimits(), Now: func() time.Time { return a.now }, Log: slog.New(slog.DiscardHandler)}
			if !tc.nobody {
				p.Statuses = setsAll{a}
			}
			_, decisions, err := p.Plan(t.Context())
			require.NoError(t, err)
			d := decisions[0][0]
			require.Equal(t, tc.want, d.Snapshot.Facts)
			require.Len(t, a.questions, tc.asked)
			if tc.asked > 0 {
				require.Equal(t, []string{path.Join("deploy/shop/checkout/versions", d.Proposal.Target.BuildID)}, a.questions[0].Versions)
			}
		})
	}
}

// What takes traffic back by policy is decided on statuses too where some are looked at; the library's canary waits for
// none.
func TestUrgentBesideStatuses(t *testing.T) {
	a := &asker{scene: newScene(t)}
	p := &Planner{}
	lowers := func(bar string) *rollout.Decision {
		return &rollout.Decision{Plan: rollout.Plan{Lower: &rollout.RoutingCall{}, Actions: []rollout.Action{{ID: "x", Kind: rollout.Rollback, Bar: bar}}}}
	}
	require.True(t, p.urgent(a, lowers("shop.cd")))
	a.contexts = []string{"cd"}
	require.False(t, p.urgent(a, lowers("shop.cd")))
	require.True(t, p.urgent(a, lowers(canaryRule)))
}
