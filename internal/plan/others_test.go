package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// otherCase is about version v1, which the spec does not ask for.
type otherCase struct {
	row, name string
	given     change
	actions   []string
	due       time.Time
	but       change
	then      string
}

// inactive is v1 never routed, beside v0, which is current.
func inactive(age time.Duration) change {
	return all(inGit("v0"), up("v0"), wants("v0"), routes("v0", "", 0, 300*time.Hour), desires("v0", "", 0), func(g *given) {
		g.rec.Promotions = []v1alpha1.Promotion{{BuildID: id("v0"), At: stamp(ago(300 * time.Hour))}}
		g.version("v1").RoutedAt, g.version("v1").CreatedAt = v1alpha1.Time{}, stamp(ago(age))
		g.listed("v1").OpenPinned = rollout.Counted(0)
	})
}

func refused(tag string) change {
	return func(g *given) { g.Deletions = []rollout.Deletion{{BuildID: id(tag), Refused: "it has pollers"}} }
}

func aside(tag string, since time.Duration, times int) change {
	return func(g *given) {
		g.rec.SetAside = []v1alpha1.SetAside{{BuildID: id(tag), Reason: "it has pollers", At: stamp(ago(since)), Times: times}}
	}
}

func otherCases() []otherCase {
	old := all(promoted(100*time.Hour), drained("v1", 90*time.Hour))
	down := all(old, scaledDown("v1", 80*time.Hour), noPollers("v1"))
	gone := all(down, unlisted("v1"), counted("v1", 0))
	guardOff := func(g *given) { g.version("v1").Guard = v1alpha1.GuardOff }
	return []otherCase{
		{row: "needed", name: "draining without its guard", given: all(promoted(100*time.Hour), guardOff), actions: []string{"Restore v1 x2"},
			but: func(g *given) { g.version("v1").Guard = v1alpha1.GuardOn }, then: "routed"},
		{row: "needed", name: "current at 0", given: all(candidate(), func(g *given) { g.version("v1").Replicas = replicas(0) }), actions: []string{"Restore v1 x2"},
			but: func(g *given) { g.Spec.Spec.Replicas = replicas(0) }, then: "routed"},
		{row: "needed", name: "draining, and the spec asks for none", given: all(promoted(100*time.Hour), guardOff, func(g *given) { g.Spec.Spec.Replicas = replicas(0) }),
			actions: []string{"Restore v1 x1"}, but: func(g *given) { g.version("v1").Guard = v1alpha1.GuardOn }, then: "routed"},
		{row: "needed", name: "unknown", given: all(down, func(g *given) { g.listed("v1").Drainage = "" }), actions: []string{"Restore v1 x2"},
			but: drained("v1", 90*time.Hour), then: "delete"},
		{row: "needed", name: "traffic goes back to it", given: all(down, barsBuild("v2")), actions: []string{"Restore v1 x2"},
			but: func(g *given) { g.rec.Bars = nil }, then: "delete"},
		{row: "needed", name: "a person wants traffic back on it", given: all(down, edits("v1", "", 0)), actions: []string{"Restore v1 x2"},
			but: desires("v2", "", 0), then: "delete"},
		{row: "connection", given: all(promoted(time.Hour), func(g *given) { g.version("v1").ConnectionHash = "old" }), actions: []string{"UpdateVersion v1 Connection x2"},
			but: func(g *given) { g.version("v1").ConnectionHash = g.Connection.Spec.Hash() }, then: "routed"},
		{row: "connection", name: "not of a retired one", given: all(old, func(g *given) { g.version("v1").ConnectionHash = "old" }), actions: []string{"UpdateVersion v1 Connection x2"},
			but: all(scaledDown("v1", time.Hour), noPollers("v1")), then: "delete"},
		{row: "replicas", given: all(candidate(), func(g *given) { g.Spec.Spec.Replicas = replicas(5) }), actions: []string{"ScaleVersion v1 x5"},
			but: all(routes("v2", "", 0, time.Minute), func(g *given) { drains("v1")(g) }), then: "routed"},
		{row: "replicas", name: "an autoscaler owns them", given: all(candidate(), templates(toAll("hpa")), carries("v1", "hpa"),
			func(g *given) { g.version("v1").Replicas = replicas(2) }), actions: []string{"ScaleVersion v1"},
			but: func(g *given) { g.version("v1").Replicas = nil }, then: "routed"},
		{row: "routed", given: candidate(), but: old, then: "scale-down"},
		{row: "routed", name: "missing after it was routed", given: all(promoted(100*time.Hour), unlisted("v1")), but: all(up("v1"), drained("v1", 90*time.Hour)), then: "scale-down"},
		{row: "window", given: all(promoted(time.Hour), drained("v1", 59*time.Minute), sunset(time.Minute, time.Hour)), due: noon, but: at(noon.Add(1)), then: "scale-down"},
		{row: "set-aside", name: "refused", given: all(down, refused("v1")), actions: []string{"SetAside v1"}, but: func(g *given) { g.Deletions[0].Refused = "" }, then: "delete"},
		{row: "set-aside", name: "rests", given: all(down, aside("v1", time.Hour, 1)), due: noon.Add(23 * time.Hour), but: aside("v1", 24*time.Hour, 1), then: "delete"},
		{row: "set-aside", name: "rests longer", given: all(down, aside("v1", time.Hour, 3)), due: noon.Add(95 * time.Hour), but: aside("v1", 96*time.Hour, 3), then: "delete"},
		{row: "set-aside", name: "until it is gone", given: all(down, aside("v1", time.Hour, 1)), due: noon.Add(23 * time.Hour), but: all(unlisted("v1"), counted("v1", 0)), then: "remove"},
		{row: "scale-down", given: old, actions: []string{"ScaleDown v1 x0"}, but: func(g *given) { g.listed("v1").Scaled = true }, then: ""},
		{row: "scale-down", name: "too early", given: all(promoted(100*time.Hour), drained("v1", time.Hour)), due: noon, but: func(g *given) { g.listed("v1").DrainageChangedAt = time.Time{} }, then: ""},
		{row: "scale-down", name: "pinned", given: all(old, func(g *given) { g.listed("v1").OpenPinned = rollout.Counted(1) }), but: drains("v1"), then: "routed"},
		{row: "scale-down", name: "not counted", given: all(old, func(g *given) { g.listed("v1").OpenPinned = rollout.Count{} }), but: drains("v1"), then: "routed"},
		{row: "scale-down", name: "never routed", given: inactive(25 * time.Hour), actions: []string{"ScaleDown v1 x0"},
			but: func(g *given) { g.listed("v1").FirstActivatedAt = ago(time.Hour) }, then: "routed"},
		{row: "scale-down", name: "never routed, young", given: inactive(24 * time.Hour), due: noon, but: func(g *given) { g.version("v1").RoutedAt = stamp(noon) }, then: "routed"},
		{row: "scale-down", name: "never routed, but promoted by Git", given: inactive(25 * time.Hour), actions: []string{"ScaleDown v1 x0"}, but: func(g *given) {
			g.rec.Promotions = append([]v1alpha1.Promotion{{BuildID: id("v1"), LeftAt: stamp(ago(24 * time.Hour)), LeftBy: v1alpha1.LeftByPromotion}}, g.rec.Promotions...)
		}, then: "routed"},
		{row: "scale-down", name: "promoted in an earlier life", given: all(inactive(25*time.Hour), func(g *given) {
			g.rec.Promotions = append([]v1alpha1.Promotion{{BuildID: id("v1"), LeftAt: stamp(ago(400 * time.Hour)), LeftBy: v1alpha1.LeftByPromotion}}, g.rec.Promotions...)
		}), actions: []string{"ScaleDown v1 x0"}, but: func(g *given) { g.rec.Promotions[0].LeftAt = v1alpha1.Time{} }, then: "routed"},
		{row: "scale-down", name: "superseded before it polled", given: all(inactive(25*time.Hour), unlisted("v1"), counted("v1", 0)), actions: []string{"ScaleDown v1 x0"},
			but: func(g *given) { g.version("v1").RoutedAt = stamp(noon) }, then: "routed"},
		{row: "delete", given: down, actions: []string{"DeleteVersion v1"}, but: func(g *given) { g.version("v1").Guard = v1alpha1.GuardOn }, then: "scale-down"},
		{row: "delete", name: "too early", given: all(down, drained("v1", 24*time.Hour)), due: noon, but: drains("v1"), then: "needed"},
		{row: "delete", name: "pollers", given: all(down, func(g *given) { g.listed("v1").Queues = []rollout.TaskQueue{polled("orders")} }), but: drains("v1"), then: "needed"},
		{row: "delete", name: "pollers unknown", given: all(down, func(g *given) { g.listed("v1").Queues[0].Pollers.Known = false }), but: drains("v1"), then: "needed"},
		{row: "delete", name: "queues unknown", given: all(down, func(g *given) { g.listed("v1").QueuesKnown = "" }), but: drains("v1"), then: "needed"},
		{row: "delete", name: "pinned", given: all(down, func(g *given) { g.listed("v1").OpenPinned = rollout.Counted(1) }), but: drains("v1"), then: "needed"},
		{row: "remove", given: gone, actions: []string{"RemoveFiles v1"}, but: up("v1"), then: "needed"},
		{row: "remove", name: "a workflow names it", given: all(gone, counted("v1", 1)), but: func(g *given) { g.version("v1").Guard = v1alpha1.GuardOn }, then: "needed"},
		{row: "remove", name: "not counted", given: all(gone, func(g *given) { g.Observation.Unlisted = nil }), but: func(g *given) { g.version("v1").Guard = v1alpha1.GuardOn }, then: "needed"},
		{row: "remove", name: "never routed", given: all(inactive(80*time.Hour), scaledDown("v1", 25*time.Hour), unlisted("v1"), counted("v1", 0)), actions: []string{"RemoveFiles v1"},
			but: func(g *given) { g.version("v1").Guard = v1alpha1.GuardOn }, then: "scale-down"},
		{row: "remove", name: "never routed, not applied yet", given: all(inactive(80*time.Hour), scaledDown("v1", 24*time.Hour), unlisted("v1"), counted("v1", 0)), due: noon,
			but: func(g *given) { g.version("v1").Guard = v1alpha1.GuardOn }, then: "scale-down"},
	}
}

func sunset(scaledown, deletion time.Duration) change {
	return func(g *given) {
		g.Spec.Spec.Sunset.ScaledownDelay, g.Spec.Spec.Sunset.DeleteDelay = lasting(scaledown), lasting(deletion)
	}
}

// otherRowOf gives the row that decides about v1.
func otherRowOf(s rollout.Snapshot) (string, outcome) {
	v := Look(s)
	for _, r := range otherRows() {
		if o, fits := r.fits(v, v.recorded(id("v1"))); fits {
			return r.name, o
		}
	}
	return "", outcome{}
}

func TestOtherRows(t *testing.T) {
	tested := map[string]bool{}
	for _, c := range slices.Concat(otherCases(), askedCases(), besideCases()) {
		t.Run(c.row+"/"+c.name, func(t *testing.T) {
			tested[c.row] = true
			s := of(c.given)
			row, o := otherRowOf(s)
			require.Equal(t, c.row, row)
			require.Equal(t, c.due, o.due)
			if diff := cmp.Diff(c.actions, sayAll(o.actions)); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
			got := []string{}
			p := Look(s).Propose()
			require.Equal(t, c.row, p.Others[id("v1")])
			for _, a := range p.Actions {
				if a.BuildID == id("v1") && a.Row == c.row {
					got = append(got, said(a))
				}
			}
			require.Equal(t, append([]string{}, c.actions...), got)
			decide(t, s, allowed)
			decide(t, twice(s), allowed)
			other := of(c.given, c.but)
			row, _ = otherRowOf(other)
			require.Equal(t, c.then, row)
			decide(t, twice(other), allowed)
		})
	}
	for _, r := range otherRows() {
		require.True(t, tested[r.name], "row %s has no test", r.name)
	}
}

// TestSunset goes through the two steps of a sunset: each wants two reads that agree.
func TestSunset(t *testing.T) {
	old := all(promoted(100*time.Hour), drained("v1", 90*time.Hour))
	down := all(old, scaledDown("v1", 80*time.Hour), noPollers("v1"))
	gone := all(down, unlisted("v1"), counted("v1", 0))
	for _, c := range []struct {
		name  string
		given change
		acted func(rollout.Plan) any
		want  any
	}{
		{"scale down", old, func(p rollout.Plan) any { return p.Versions },
			[]rollout.VersionWrite{{BuildID: id("v1"), Op: rollout.EditVersion, Replicas: replicas(0), Guard: v1alpha1.GuardOff}}},
		{"delete", down, func(p rollout.Plan) any { return p.Deletions }, []string{id("v1")}},
		{"remove", gone, func(p rollout.Plan) any { return p.Versions },
			[]rollout.VersionWrite{{BuildID: id("v1"), Op: rollout.RemoveVersion, Guard: v1alpha1.GuardOn}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			nothing := func(s rollout.Snapshot, judge func(rollout.Proposal) rollout.Verdicts, again bool) {
				p := decide(t, s, judge)
				require.Empty(t, c.acted(p))
				require.Equal(t, again, p.SecondRead)
				require.Equal(t, s.Record.Routing.Spec, *p.Record)
			}
			s := of(c.given)
			nothing(s, allowed, true)
			p := decide(t, twice(s), allowed)
			require.Equal(t, c.want, c.acted(p))
			require.False(t, p.SecondRead)

			for _, e := range []rollout.Effect{rollout.HoldEffect, rollout.RequireApproval, rollout.RollbackEffect, ""} {
				for _, k := range []rollout.ActionKind{rollout.ScaleDown, rollout.DeleteVersion, rollout.RemoveFiles} {
					if proposes(s, k) {
						nothing(twice(s), verdictOn(k, effect(e)), false)
					}
				}
			}
			for name, spoil := range map[string]func(*rollout.Observation){
				"a problem":      func(o *rollout.Observation) { o.Problem = &rollout.Problem{} },
				"not known":      func(o *rollout.Observation) { o.Exists = "" },
				"the same read":  func(o *rollout.Observation) { o.At = noon },
				"current":        func(o *rollout.Observation) { o.Routing.Current = id("v1") },
				"ramping":        func(o *rollout.Observation) { o.Routing.HasRamp, o.Routing.Ramping = true, id("v1") },
				"draining":       func(o *rollout.Observation) { listedOrNew(o).Drainage = rollout.Draining },
				"pinned":         func(o *rollout.Observation) { listedOrNew(o).OpenPinned = rollout.Counted(1); o.Unlisted = nil },
				"count unknown":  func(o *rollout.Observation) { listedOrNew(o).OpenPinned = rollout.Count{}; o.Unlisted = nil },
				"another status": func(o *rollout.Observation) { toggle(o) },
			} {
				first := rollout.Observation{}
				clone(t, s.Observation, &first)
				first.At = ago(time.Second)
				spoil(&first)
				spoiled := s
				spoiled.FirstRead = &first
				t.Log(name)
				nothing(spoiled, allowed, false)
			}
		})
	}
}

func proposes(s rollout.Snapshot, k rollout.ActionKind) bool {
	for _, a := range Look(s).Propose().Actions {
		if a.Kind == k {
			return true
		}
	}
	return false
}

// listedOrNew is v1 in a read.
func listedOrNew(o *rollout.Observation) *rollout.VersionObservation {
	if o.Version(id("v1")) == nil {
		o.Versions = append(o.Versions, rollout.VersionObservation{BuildID: id("v1")})
	}
	return o.Version(id("v1"))
}

// toggle lists v1 if it is not, and the other way round.
func toggle(o *rollout.Observation) {
	if o.Version(id("v1")) == nil {
		listedOrNew(o)
		return
	}
	for i := range o.Versions {
		if o.Versions[i].BuildID == id("v1") {
			o.Versions = append(o.Versions[:i:i], o.Versions[i+1:]...)
			return
		}
	}
}

// TestDeletionRefused: the version is set aside, and counts against the budget by name.
func TestDeletionRefused(t *testing.T) {
	down := all(promoted(100*time.Hour), drained("v1", 90*time.Hour), scaledDown("v1", 80*time.Hour), noPollers("v1"))
	p := decide(t, of(down, refused("v1"), aside("v1", 48*time.Hour, 1)), allowed)
	require.Equal(t, []v1alpha1.SetAside{{BuildID: id("v1"), Reason: p.Actions[len(p.Actions)-1].Reason, At: stamp(noon), Times: 2}}, p.Record.SetAside)
	require.Empty(t, p.Deletions)

	full := Look(of(down, aside("v1", time.Hour, 1), asks("v3"), func(g *given) { g.Limits.MaxVersions = 2 })).Propose()
	require.Equal(t, rollout.VersionLimitReached, full.State.Reason)
	require.Contains(t, full.State.Message, id("v1"))
	require.Equal(t, "create", Look(of(down, asks("v3"), func(g *given) { g.Limits.MaxVersions = 3 })).Propose().Row)
}

// TestDeletionAccepted: it is not asked for twice in a cycle.
func TestDeletionAccepted(t *testing.T) {
	s := twice(of(promoted(100*time.Hour), drained("v1", 90*time.Hour), scaledDown("v1", 80*time.Hour), noPollers("v1")))
	s.Deletions = []rollout.Deletion{{BuildID: id("v1")}}
	p := decide(t, s, allowed)
	require.Empty(t, p.Deletions)
	require.Empty(t, p.Versions)
}

// TestManifests: what somebody did to the files of a version.
func TestManifests(t *testing.T) {
	path := layout.VersionFile(id("v1"), "deployment.yaml")
	edited := func(g *given) { g.Record.Files[path] = rollout.File{Hash: "theirs"} }
	missing := func(g *given) { delete(g.Record.Files, path) }
	restored := []rollout.VersionWrite{{BuildID: id("v1"), Op: rollout.RestoreFiles, Replicas: replicas(2), Guard: v1alpha1.GuardOn,
		Blobs: map[string]string{"deployment.yaml": "hash-of-v1"}}}
	answer := func(a rollout.DriftAnswer) func(rollout.Proposal) rollout.Verdicts {
		return verdictOn(rollout.DriftAction, rollout.Verdict{Effect: rollout.Allow, Drift: a})
	}
	for _, c := range []struct {
		name   string
		given  change
		judge  func(rollout.Proposal) rollout.Verdicts
		writes []rollout.VersionWrite
		hash   string
	}{
		{"reverted", edited, answer(rollout.DriftRevert), restored, "hash-of-v1"},
		{"adopted", edited, answer(rollout.DriftAdopt), nil, "theirs"},
		{"held", edited, answer(rollout.DriftHold), nil, "hash-of-v1"},
		{"no answer", edited, answer(""), nil, "hash-of-v1"},
		{"denied", edited, verdictOn(rollout.DriftAction, effect(rollout.HoldEffect)), nil, "hash-of-v1"},
		{"missing", missing, answer(rollout.DriftAdopt), restored, "hash-of-v1"},
		{"missing and held", missing, answer(rollout.DriftHold), restored, "hash-of-v1"},
		{"missing of a draining one", all(promoted(time.Hour), missing), answer(rollout.DriftRevert), restored, "hash-of-v1"},
		{"missing where somebody else is the owner", all(foreign(), missing), answer(rollout.DriftRevert), restored, "hash-of-v1"},
		{"before an edit of it", all(missing, func(g *given) { g.version("v1").Guard = v1alpha1.GuardOff }), answer(rollout.DriftRevert),
			[]rollout.VersionWrite{{BuildID: id("v1"), Op: rollout.RestoreFiles, Replicas: replicas(2), Guard: v1alpha1.GuardOff, Blobs: restored[0].Blobs}}, "hash-of-v1"},
		{"before new replicas", all(missing, func(g *given) { g.Spec.Spec.Replicas = replicas(5) }), answer(rollout.DriftRevert), restored, "hash-of-v1"},
		{"a new rendering goes first", all(missing, custom("v1"), func(g *given) { g.version("v1").TemplateHash = "old" }), allowed,
			[]rollout.VersionWrite{{BuildID: id("v1"), Op: rollout.RenderVersion, Replicas: replicas(2), Guard: v1alpha1.GuardOn}}, "hash-of-v1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := decide(t, of(c.given), c.judge)
			require.Equal(t, c.writes, p.Versions)
			require.Equal(t, c.hash, rollout.FindVersion(p.Record.Versions, id("v1")).Files["deployment.yaml"])
		})
	}
}
