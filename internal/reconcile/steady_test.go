package reconcile

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// lister lists nothing, which proves nothing.
type lister struct{}

func (lister) List(context.Context, v1alpha1.Connection, string) (*rollout.Listing, error) {
	return &rollout.Listing{}, nil
}

// window is a policy that holds promotions until a time, and says so.
type window struct {
	*scene
	until time.Time
}

func (w window) Judge(ctx context.Context, s rollout.Snapshot, p rollout.Proposal) rollout.Verdicts {
	v := w.scene.Judge(ctx, s, p)
	for _, a := range p.Actions {
		if a.Kind == rollout.Promote && s.Now.Before(w.until) {
			v.Actions[a.ID] = rollout.Verdict{Effect: rollout.HoldEffect, Findings: []rollout.Finding{{Package: "rampart.rollout", Rule: "rollout.freeze",
				Effect: rollout.HoldEffect, Message: "frozen", Until: w.until}}}
		}
	}
	return v
}

// A worker deployment in a freeze window is left alone until the window's end, but for a look every few minutes.
func TestFrozenIsLeftAlone(t *testing.T) {
	s := newScene(t)
	r := s.reconciler()
	s.once(r)
	s.ready()
	w := window{s, s.now.Add(7 * time.Minute)}
	r.JudgeFor, r.Lister = func(rollout.EnvironmentWorld) Judge { return w }, lister{}
	s.once(r)
	s.once(r) // what was committed is looked at once more
	looked := []time.Duration{}
	for start := s.now; s.now.Before(start.Add(8 * time.Minute)); s.now = s.now.Add(30 * time.Second) {
		s.ready()
		if report := s.once(r); len(report.Decisions) > 0 {
			looked = append(looked, s.now.Sub(start))
			if s.now.Before(w.until) {
				require.Equal(t, w.until, report.NextDue)
			}
		}
	}
	require.Equal(t, []time.Duration{3 * time.Minute, 6 * time.Minute, 7 * time.Minute, 7*time.Minute + 30*time.Second}, looked)
	require.Equal(t, []string{"raise SetCurrent"}, s.calls[:1])
}

// says is a policy that holds promotions with a finding of the moment.
type says struct {
	*scene
	finding func(now time.Time) rollout.Finding
}

func (p says) Judge(ctx context.Context, s rollout.Snapshot, proposal rollout.Proposal) rollout.Verdicts {
	v := p.scene.Judge(ctx, s, proposal)
	for _, a := range proposal.Actions {
		if a.Kind == rollout.Promote {
			f := p.finding(s.Now)
			f.Package, f.Effect = "rampart.rollout", rollout.HoldEffect
			v.Actions[a.ID] = rollout.Verdict{Effect: rollout.HoldEffect, Findings: []rollout.Finding{f}}
		}
	}
	return v
}

// A hold is committed again when another rule holds, or the same with other words; one that only counts makes no
// commit.
func TestWhatHoldsIsSaidAnew(t *testing.T) {
	s := newScene(t)
	r := s.reconciler()
	s.once(r)
	rule, text := "acme.samples", "has %d of 100 samples"
	r.JudgeFor = func(rollout.EnvironmentWorld) Judge {
		return says{s, func(now time.Time) rollout.Finding {
			return rollout.Finding{Rule: rule, Message: fmt.Sprintf(text, now.Unix())}
		}}
	}
	message := func() string {
		return s.world.Environments[0].Deployments[0].Record.Status.Status.Conditions[0].Message
	}
	cycles := func() int {
		before := len(s.commits)
		for range 5 {
			s.now = s.now.Add(10 * time.Second)
			s.ready()
			s.once(r)
		}
		return len(s.commits) - before
	}
	require.Equal(t, 1, cycles(), "that it is held")
	require.Contains(t, message(), "samples")
	require.Equal(t, 0, cycles(), "it counts on")
	rule, text = "acme.freeze", "has %d of 100 samples"
	require.Equal(t, 1, cycles(), "another rule")
	text = "frozen at %d"
	require.Equal(t, 1, cycles(), "other words")
	require.Contains(t, message(), "frozen")
	require.Equal(t, 0, cycles())
}
