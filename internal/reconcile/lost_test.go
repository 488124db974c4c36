package reconcile

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// archive is a scene whose repository had versions once.
type archive struct {
	*scene
	has  map[rollout.Name][]v1alpha1.RecordedVersion
	err  error
	asks [][]rollout.LostVersions
}

func (a *archive) Recorded(_ context.Context, _ v1alpha1.Environment, lost []rollout.LostVersions) (map[rollout.Name][]v1alpha1.RecordedVersion, error) {
	a.asks = append(a.asks, lost)
	return a.has, a.err
}

// TestLostVersionsComeBack: versions that Temporal has a use for and Git lost are put back in the cycle that finds
// them. The history is not asked about others, and a history that cannot be read holds nothing up.
func TestLostVersionsComeBack(t *testing.T) {
	blob := strings.Repeat("ab", 20)
	v0 := v1alpha1.RecordedVersion{BuildID: "v0", BuildIDFrom: v1alpha1.BuildIDTemplate, TemplateHash: "aa", ConnectionHash: "bb", Deployment: "checkout-v0",
		Guard: v1alpha1.GuardOn, Files: map[string]string{"deployment.yaml": blob}}
	name := rollout.Name{Namespace: "shop", Name: "checkout"}
	for what, c := range map[string]struct {
		drainage rollout.Drainage
		archive  archive
		asked    int
		back     bool
	}{
		"it is found":             {rollout.Draining, archive{has: map[rollout.Name][]v1alpha1.RecordedVersion{name: {v0}}}, 1, true},
		"it is nowhere":           {rollout.Draining, archive{}, 1, false},
		"nobody can look":         {rollout.Draining, archive{err: errors.New("cut")}, 1, false},
		"it is found until a cut": {rollout.Draining, archive{has: map[rollout.Name][]v1alpha1.RecordedVersion{name: {v0}}, err: errors.New("cut")}, 1, true},
		"nothing needs it":        {rollout.Drained, archive{has: map[rollout.Name][]v1alpha1.RecordedVersion{name: {v0}}}, 0, false},
	} {
		t.Run(what, func(t *testing.T) {
			s := newScene(t)
			s.obs = rollout.Observation{Exists: rollout.Yes, Versions: []rollout.VersionObservation{{BuildID: "v0", Drainage: c.drainage}}}
			c.archive.scene = s
			r := s.reconciler()
			r.Source, r.Records = &c.archive, &c.archive
			var changes []rollout.FileChange
			r.Committer = commits(func(_ context.Context, c rollout.Commit) (string, error) {
				changes = append(changes, c.Changes...)
				return "abc", nil
			})
			report, err := r.Cycle(t.Context())
			require.NoError(t, err)
			require.Empty(t, report.Failures)
			require.Len(t, c.archive.asks, c.asked)
			if c.asked > 0 {
				require.Equal(t, []rollout.LostVersions{{Deployment: name, Dir: "deploy/shop/checkout", TemporalNamespace: "shop", BuildIDs: []string{"v0"}}}, c.archive.asks[0])
			}
			require.Equal(t, c.back, slices.Contains(changes, rollout.FileChange{Path: "deploy/shop/checkout/versions/v0/deployment.yaml", Blob: blob}))
		})
	}
}

// Where there is no time for the second look, what the first one showed counts. They come back in the next cycle.
func TestLostVersionsWaitForALookThatIsNotCutShort(t *testing.T) {
	name := rollout.Name{Namespace: "shop", Name: "checkout"}
	for _, cut := range []bool{false, true} {
		a := &archive{scene: newScene(t), has: map[rollout.Name][]v1alpha1.RecordedVersion{name: {{BuildID: "v0", BuildIDFrom: v1alpha1.BuildIDTemplate,
			TemplateHash: "aa", ConnectionHash: "bb", Deployment: "checkout-v0", Guard: v1alpha1.GuardOn}}}}
		a.obs = rollout.Observation{Exists: rollout.Yes, Versions: []rollout.VersionObservation{{BuildID: "v0", Drainage: rollout.Draining}}}
		r := a.reconciler()
		r.Records = a
		r.Observer = observing(func(ctx context.Context, conn v1alpha1.Connection, ask rollout.Ask) rollout.Observation {
			o := a.Observe(ctx, conn, ask)
			o.CutShort = cut && len(a.asks) > 0
			return o
		})
		env := a.world.Environments[0]
		g := &group{env: env}
		seen := r.withLost(t.Context(), g, r.observe(t.Context(), g, env.Deployments))
		require.Len(t, a.asks, 1)
		require.False(t, seen[0].Observation.CutShort)
		require.Equal(t, cut, len(seen[0].Lost) == 0)
		require.Equal(t, cut, g.waiting[name])
	}
}
