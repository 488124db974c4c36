package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// commitHistory is a scene whose specs come from somewhere.
type commitHistory struct {
	*scene
	looks bool
	err   error
	asked int
}

func (h *commitHistory) Looks() rollout.Looks {
	return rollout.Looks{Parts: map[string]bool{"git": h.looks}}
}

func (h *commitHistory) Origins(_ context.Context, snapshots []rollout.Snapshot) ([]rollout.GitContext, error) {
	h.asked++
	out := make([]rollout.GitContext, len(snapshots))
	for i := range out {
		if out[i].Branch = "main"; h.err == nil {
			out[i].Commit = "c0ffee"
		}
	}
	return out, h.err
}

// Where specs come from is read only for policies that look at it, and what can't be read is not known.
func TestOrigins(t *testing.T) {
	for name, tc := range map[string]struct {
		looks bool
		err   error
		want  rollout.GitContext
		asked int
	}{
		"nobody looks":    {want: rollout.GitContext{}},
		"policies look":   {looks: true, want: rollout.GitContext{Branch: "main", Commit: "c0ffee"}, asked: 1},
		"it can't be had": {looks: true, err: errors.New("cut"), want: rollout.GitContext{Branch: "main"}, asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := &commitHistory{scene: newScene(t), looks: tc.looks, err: tc.err}
			p := &Planner{Source: h, History: h, Observer: h, JudgeFor: func(rollout.EnvironmentWorld) Judge { return h },
				Limits: rollout.DefaultLimits(), Now: func() time.Time { return h.now }, Log: slog.New(slog.DiscardHandler)}
			_, decisions, err := p.Plan(t.Context())
			require.NoError(t, err)
			require.Equal(t, tc.want, decisions[0][0].Snapshot.Git)
			require.Equal(t, tc.asked, h.asked)
		})
	}
}
