package reconcile

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// A settled worker deployment is looked at again when anything changed that its templates say.
func TestTemplatesAreInputs(t *testing.T) {
	with := func(change func(*rollout.Snapshot)) rollout.Snapshot {
		s := rollout.Snapshot{Resources: []rollout.ResourceTemplate{{Name: "hpa", Object: []byte(`{}`), Hash: "aa"}}}
		change(&s)
		return s
	}
	same := inputsOf(with(func(*rollout.Snapshot) {}), sharedInputs{})
	require.Equal(t, same, inputsOf(with(func(*rollout.Snapshot) {}), sharedInputs{}))
	for name, change := range map[string]func(*rollout.Snapshot){
		"gone":     func(s *rollout.Snapshot) { s.Resources = nil },
		"changed":  func(s *rollout.Snapshot) { s.Resources[0].Hash = "bb" },
		"selected": func(s *rollout.Snapshot) { s.Resources[0].Versions = []v1alpha1.VersionState{v1alpha1.StateCurrent} },
		"unusable": func(s *rollout.Snapshot) { s.Resources[0].Problem = &rollout.Problem{Message: "no"} },
		"missed":   func(s *rollout.Snapshot) { s.ResourcesProblem = &rollout.Problem{Message: "no"} },
	} {
		require.NotEqual(t, same, inputsOf(with(change), sharedInputs{}), name)
	}
}

// lister lists nothing, which proves nothing.
type lister struct{}

func (lister) List(context.Context, v1alpha1.Connection, string) (map[string]rollout.RoutingConfig, error) {
	return nil, nil
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
	require.Equal(t, []time.Duration{5 * time.Minute, 7 * time.Minute, 7*time.Minute + 30*time.Second}, looked)
	require.Equal(t, []string{"raise SetCurrent"}, s.calls[:1])
}
