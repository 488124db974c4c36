package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// TestVersionsInTheRecord: what an action writes down of a version, and what it does to its files.
func TestVersionsInTheRecord(t *testing.T) {
	old := all(promoted(100*time.Hour), drained("v1", 90*time.Hour))
	elsewhere := func(g *given) { g.Connection.Spec.HostPort = "elsewhere:7233" }
	for _, c := range []struct {
		name, tag string
		given     change
		change    func(*v1alpha1.RecordedVersion)
		op        rollout.WriteOp
	}{
		{"raised", "v2", candidate(), func(r *v1alpha1.RecordedVersion) { r.RoutedAt = stamp(noon) }, ""},
		{"scaled down", "v1", old, func(r *v1alpha1.RecordedVersion) {
			r.Replicas, r.Guard, r.RetiredAt = replicas(0), v1alpha1.GuardOff, stamp(noon)
		}, rollout.EditVersion},
		{"restored", "v1", all(old, scaledDown("v1", time.Hour), drains("v1")), func(r *v1alpha1.RecordedVersion) {
			r.Replicas, r.Guard, r.RetiredAt = replicas(2), v1alpha1.GuardOn, v1alpha1.Time{}
		}, rollout.EditVersion},
		{"scaled", "v1", func(g *given) { g.Spec.Spec.Replicas = replicas(5) }, func(r *v1alpha1.RecordedVersion) { r.Replicas = replicas(5) }, rollout.EditVersion},
		{"scaled, though barred", "v2", all(candidate(), barsBuild("v2"), func(g *given) { g.Spec.Spec.Replicas = replicas(3) }),
			func(r *v1alpha1.RecordedVersion) { r.Replicas = replicas(3) }, rollout.EditVersion},
		{"not scaled: the spec has no number", "v1", func(g *given) { g.Spec.Spec.Replicas = nil }, func(*v1alpha1.RecordedVersion) {}, ""},
		{"not scaled: the spec is refused", "v1", func(g *given) {
			g.Spec.Spec.Replicas, g.Connection = replicas(5), nil
		}, func(*v1alpha1.RecordedVersion) {}, ""},
		{"reconnected", "v1", elsewhere, func(r *v1alpha1.RecordedVersion) { r.ConnectionHash = connected("elsewhere:7233") }, rollout.ReconnectVersion},
		{"rendered again", "v1", all(custom("v1"), asks("v2"), elsewhere), func(r *v1alpha1.RecordedVersion) {
			r.ConnectionHash, r.TemplateHash, r.BuildIDFrom, r.Attempts = connected("elsewhere:7233"), hash("v2"), v1alpha1.BuildIDCustom, 2
		}, rollout.RenderVersion},
		{"asked for again", "v1", all(promoted(2*time.Hour), asks("v1")), func(r *v1alpha1.RecordedVersion) { r.Attempts = 2 }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := twice(of(c.given))
			want := *rollout.FindVersion(cloneRecord(s.Record.Routing.Spec).Versions, id(c.tag))
			c.change(&want)
			p := decide(t, s, allowed)
			if diff := cmp.Diff(want, *rollout.FindVersion(p.Record.Versions, id(c.tag))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			op := rollout.WriteOp("")
			for _, w := range p.Versions {
				if w.BuildID == id(c.tag) {
					op = w.Op
					require.Equal(t, want.Replicas, w.Replicas)
					require.Equal(t, want.Guard, w.Guard)
				}
			}
			require.Equal(t, c.op, op)
		})
	}
	created := decide(t, of(asks("v2")), allowed)
	require.Equal(t, v1alpha1.RecordedVersion{BuildID: id("v2"), BuildIDFrom: v1alpha1.BuildIDTemplate, TemplateHash: hash("v2"), ConnectionHash: connected("temporal:7233"),
		Deployment: "checkout-" + id("v2"), CreatedAt: stamp(noon), Replicas: replicas(2), Guard: v1alpha1.GuardOn, Attempts: 1}, created.Record.Versions[1])
}

func connected(hostPort string) string { return v1alpha1.ConnectionSpec{HostPort: hostPort}.Hash() }

// TestPredecessor is the version that traffic goes back to.
func TestPredecessor(t *testing.T) {
	left := func(tag string, by v1alpha1.LeftBy) v1alpha1.Promotion {
		return v1alpha1.Promotion{BuildID: id(tag), At: stamp(ago(9 * time.Hour)), LeftAt: stamp(ago(8 * time.Hour)), LeftBy: by}
	}
	is := v1alpha1.Promotion{BuildID: id("v3"), At: stamp(ago(time.Hour))}
	const promotion, rollback, outside = v1alpha1.LeftByPromotion, v1alpha1.LeftByRollback, v1alpha1.LeftByOutside
	for _, c := range []struct {
		name  string
		order []v1alpha1.Promotion
		given change
		want  string
	}{
		{"the one before", []v1alpha1.Promotion{left("v1", promotion), left("v2", promotion), is}, none, "v2"},
		{"not one that was rolled back", []v1alpha1.Promotion{left("v1", promotion), left("v2", rollback), is}, none, "v1"},
		{"not one that somebody else left", []v1alpha1.Promotion{left("v1", promotion), left("v2", outside), is}, none, "v1"},
		{"not itself", []v1alpha1.Promotion{left("v1", promotion), left("v3", promotion), left("v2", rollback), is}, none, "v1"},
		{"not one without files", []v1alpha1.Promotion{left("v1", promotion), left("v4", promotion), is}, none, "v1"},
		{"not a barred one", []v1alpha1.Promotion{left("v1", promotion), left("v2", promotion), is}, barsBuild("v2"), "v1"},
		{"none", []v1alpha1.Promotion{is}, none, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := of(inGit("v2"), inGit("v3"), up("v2"), up("v3"), wants("v3"), routes("v3", "", 0, time.Hour), desires("v3", "", 0),
				func(g *given) { g.rec.Promotions = c.order }, c.given)
			require.Equal(t, id(c.want), Look(s).predecessor())
		})
	}
}

// TestNextDue is the earliest time at which something changes by itself.
func TestNextDue(t *testing.T) {
	require.Equal(t, noon.Add(9*time.Minute), decide(t, of(rampsAt(10, time.Minute)), allowed).NextDue)
	require.Equal(t, noon.Add(5*time.Minute), decide(t, of(candidate(), unlisted("v2")), allowed).NextDue)
	require.True(t, decide(t, of(), allowed).NextDue.IsZero())
	both := all(rampsAt(10, time.Minute), inGit("v0"), up("v0"), func(g *given) {
		g.rec.Promotions = append([]v1alpha1.Promotion{{BuildID: id("v0"), LeftAt: stamp(ago(100 * time.Hour)), LeftBy: v1alpha1.LeftByPromotion}}, g.rec.Promotions...)
	})
	require.Equal(t, noon.Add(5*time.Minute), decide(t, of(both, drained("v0", 55*time.Minute)), allowed).NextDue)
	require.Equal(t, noon.Add(9*time.Minute), decide(t, of(both, drained("v0", time.Minute)), allowed).NextDue)
}

// TestDeadlineOfWorkers is the spec's, or ten minutes.
func TestDeadlineOfWorkers(t *testing.T) {
	late := all(candidate(), unlisted("v2"), func(g *given) {
		g.rec.Target.Since, g.version("v2").CreatedAt = stamp(ago(9*time.Minute)), stamp(ago(9*time.Minute))
	})
	limit := func(n *int32) change { return func(g *given) { g.Spec.Spec.ProgressDeadlineSeconds = n } }
	require.False(t, Look(of(late)).Propose().State.Stalled)
	require.True(t, Look(of(late, limit(replicas(300)))).Propose().State.Stalled)
	require.False(t, Look(of(late, limit(nil))).Propose().State.Stalled)
	require.True(t, Look(of(late, limit(nil), at(noon.Add(2*time.Minute)))).Propose().State.Stalled)
}
