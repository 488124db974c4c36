package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/oracle"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

var adasWish = TakeBack{By: "ada", Reason: "timeouts"}

func byAda(tag string) v1alpha1.Bar {
	return v1alpha1.Bar{BuildID: id(tag), TemplateHash: hash(tag), By: "ada", Reason: "timeouts", At: stamp(noon)}
}

func marked(tag, text string) change { return func(g *given) { g.listed(tag).TurnedBack = text } }

// othersRun says that the workers of a version are somebody else's, as at a takeover: Temporal knows it, and Git has no
// files of it.
func othersRun(tag string) change {
	return func(g *given) {
		g.rec.Versions = slices.DeleteFunc(g.rec.Versions, func(v v1alpha1.RecordedVersion) bool { return v.BuildID == id(tag) })
	}
}

// TestBackToWorkersOfOthers: after a takeover traffic goes back to the version that was there before, while its workers
// poll.
func TestBackToWorkersOfOthers(t *testing.T) {
	byHand := func(g *given) { // v2 was made current in Temporal, and Git wants v1
		routes("v2", "", 0, time.Minute)(g)
		g.Spec.Spec.Rollout.Gate = nil
	}
	for name, c := range map[string]struct {
		given change
		judge func(rollout.Proposal) rollout.Verdicts
	}{
		"a verdict":              {promoted(time.Minute), turnsBack},
		"a bar":                  {all(promoted(5*time.Hour), barsBuild("v2")), allowed},
		"a rollback in Temporal": {all(promoted(5*time.Hour), marked("v2", "1 timeouts")), allowed},
		"a promotion by hand":    {all(candidate(), byHand), allowed},
		"an edit of the routing": {all(promoted(5*time.Hour), edits("v1", "", 0)), allowed},
	} {
		t.Run(name, func(t *testing.T) {
			s := of(c.given, othersRun("v1"))
			require.Contains(t, Look(s).Ask().Queues, id("v1"))
			plan := decide(t, s, c.judge)
			require.Equal(t, []string{"SetCurrent v1 0"}, sayCall(plan.Lower))
			require.Empty(t, Never(s, plan))
			gone := decide(t, of(c.given, othersRun("v1"), noPollers("v1")), c.judge)
			require.Nil(t, gone.Lower, "nobody would take it")
		})
	}
}

// barsAt bars a build some time ago.
func barsAt(tag string, since time.Duration) change {
	return all(barsBuild(tag), func(g *given) { g.rec.Bars[len(g.rec.Bars)-1].At = stamp(ago(since)) })
}

// TestBarredUnderAnother: the status of a barred target says whose traffic stays where another build was promoted
// since.
func TestBarredUnderAnother(t *testing.T) {
	for name, c := range map[string]struct {
		bar  time.Duration
		says bool
	}{"promoted since": {time.Hour, true}, "promoted before": {time.Second, false}} {
		plan := decide(t, of(promoted(time.Minute), asks("v3"), inGit("v3"), up("v3"), barsAt("v3", c.bar)), allowed)
		require.Equal(t, string(rollout.RolledBack), plan.Status.Conditions[0].Reason, name)
		const keeps = "v2 keeps its traffic: to take it back, rampart rollback payments/checkout --build v2"
		if message := named(plan.Status.Conditions[0].Message); c.says {
			require.Contains(t, message, keeps, name)
		} else {
			require.NotContains(t, message, "keeps", name)
		}
	}
}

func TestTakeBack(t *testing.T) {
	v0 := all(inGit("v0"), up("v0"), func(g *given) {
		g.rec.Promotions = append([]v1alpha1.Promotion{{BuildID: id("v0"), At: stamp(ago(90 * time.Hour)), LeftAt: stamp(ago(48 * time.Hour)),
			LeftBy: v1alpha1.LeftByPromotion}}, g.rec.Promotions...)
	})
	for _, c := range []struct {
		name  string
		given change
		wish  func(*TakeBack)
		calls []string
		marks map[string]string
		bar   string
		done  bool
	}{
		{name: "a ramp", given: rampsAt(10, time.Minute), calls: []string{"ClearRamp  0"}, marks: map[string]string{id("v2"): "1 timeouts"}, bar: "v2"},
		{name: "a held ramp", given: all(rampsAt(10, time.Minute), holds(v1alpha1.HoldManual, "v2")), calls: []string{"ClearRamp  0"},
			marks: map[string]string{id("v2"): "1 timeouts"}, bar: "v2"},
		{name: "a ramp of a version that nobody asks for", given: all(rampsAt(10, time.Minute), wants("v1")), calls: []string{"ClearRamp  0"},
			marks: map[string]string{id("v2"): "1 timeouts"}, bar: "v2"},
		{name: "a ramp to unversioned workers", given: func(g *given) {
			g.Observation.Routing.HasRamp, g.Observation.Routing.Percentage = true, 5
		}, calls: []string{"ClearRamp  0"}},
		{name: "a promotion", given: promoted(time.Minute), calls: []string{"SetCurrent v1 0"}, marks: map[string]string{id("v2"): "1 timeouts"}, bar: "v2"},
		{name: "a promotion, named", given: promoted(2 * time.Hour), wish: func(w *TakeBack) { w.BuildID = id("v2") }, calls: []string{"SetCurrent v1 0"},
			marks: map[string]string{id("v2"): "1 timeouts"}, bar: "v2"},
		{name: "further back", given: all(v0, promoted(time.Minute), func(g *given) {
			g.rec.Promotions[0].LeftAt, g.rec.Promotions[0].LeftBy = stamp(ago(48*time.Hour)), v1alpha1.LeftByPromotion
		}), wish: func(w *TakeBack) { w.To = id("v0") }, calls: []string{"SetCurrent v0 0"}, marks: map[string]string{id("v2"): "1 timeouts"}, bar: "v2"},
		{name: "the current one under a target that waits", given: all(promoted(time.Minute), asks("v3")), wish: func(w *TakeBack) { w.BuildID = id("v2") },
			calls: []string{"SetCurrent v1 0"}, marks: map[string]string{id("v2"): "1 timeouts"}, bar: "v2"},
		{name: "a promotion after a takeover", given: all(promoted(time.Minute), othersRun("v1")), calls: []string{"SetCurrent v1 0"},
			marks: map[string]string{id("v2"): "1 timeouts"}, bar: "v2"},
		{name: "a promotion after a takeover, back to what is named", given: all(promoted(2*time.Hour), othersRun("v1")), wish: func(w *TakeBack) { w.To = id("v1") },
			calls: []string{"SetCurrent v1 0"}, marks: map[string]string{id("v2"): "1 timeouts"}, bar: "v2"},
		{name: "past a version that has neither files nor workers", given: all(v0, promoted(time.Minute), othersRun("v1"), noPollers("v1")),
			wish:  func(w *TakeBack) { w.BuildID = id("v2") },
			calls: []string{"SetCurrent v0 0"}, marks: map[string]string{id("v2"): "1 timeouts"}, bar: "v2"},
		{name: "said twice", given: all(candidate(), barsBuild("v2")), done: true, bar: "v2"},
		{name: "said twice, with the version before it within reach", given: all(v0, candidate(), barsBuild("v2")), done: true, bar: "v2"},
		{name: "said of a named build, with another promoted since", given: all(promoted(time.Minute), asks("v3"), inGit("v3"), up("v3"), barsAt("v3", time.Hour)),
			wish: func(w *TakeBack) { w.BuildID = id("v3") }, done: true, bar: "v3"},
		{name: "said twice, with another promoted before", given: all(promoted(time.Hour), asks("v3"), inGit("v3"), up("v3"), barsAt("v3", time.Minute)), done: true, bar: "v3"},
		{name: "a mark that nobody recorded", given: all(candidate(), marked("v2", "1 timeouts")), bar: "v2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, w := of(c.given), adasWish
			if c.wish != nil {
				c.wish(&w)
			}
			got, err := Look(s).DecideTakeBack(w)
			require.NoError(t, err)
			require.Equal(t, c.done, got.Done)
			require.NotEmpty(t, got.Said)
			require.Equal(t, c.calls, sayCall(got.Plan.Lower))
			require.Nil(t, got.Plan.Raise)
			require.Empty(t, got.Plan.Gates)
			require.Equal(t, id(c.bar), got.Bar.BuildID)
			if got.Plan.Lower != nil {
				require.Equal(t, c.marks, got.Plan.Lower.TurnedBack)
				require.Empty(t, Never(s, got.Plan))
				require.Empty(t, oracle.Forbidden(s, got.Plan))
			}
		})
	}
}

func TestTakeBackIsRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		given change
		wish  TakeBack
		want  string
	}{
		{"no record", func(g *given) { g.Record.Routing = nil }, TakeBack{}, "has no record"},
		{"a broken record", func(g *given) { g.Record.RoutingProblem = &rollout.Problem{Message: "line 3"} }, TakeBack{}, "line 3"},
		{"not read", func(g *given) { g.Observation.Problem = &rollout.Problem{Message: "no key"} }, TakeBack{}, "read Temporal: no key"},
		{"not asked", func(g *given) { g.Observation = rollout.Observation{} }, TakeBack{}, "cannot be asked"},
		{"another's", all(rampsAt(10, time.Minute), foreign()), TakeBack{}, `belongs to "someone/else"`},
		{"released", all(rampsAt(10, time.Minute), holds(v1alpha1.HoldReleased, "v2")), TakeBack{}, "was released by ada"},
		{"no spec", func(g *given) { g.Spec = nil }, TakeBack{}, "with --build"},
		{"the first version", none, TakeBack{}, "no version before v1 can take its traffic"},
		{"before it turned back", all(promoted(time.Minute), barsBuild("v1")), TakeBack{}, "no version before v2"},
		{"workers gone", all(promoted(time.Minute), noPollers("v1")), TakeBack{}, "no worker of v1 polled"},
		{"somebody else's workers, gone", all(promoted(time.Minute), othersRun("v1"), noPollers("v1")), TakeBack{}, "no version before v2"},
		{"somebody else's workers, gone, named", all(promoted(time.Minute), othersRun("v1"), noPollers("v1")), TakeBack{To: id("v1")}, "no worker of v1 polled"},
		{"neither in Git nor in Temporal", all(promoted(time.Minute), othersRun("v1"), unlisted("v1")), TakeBack{}, "no version before v2"},
		{"somebody else's, turned back", all(promoted(time.Minute), othersRun("v1"), marked("v1", "1 timeouts")), TakeBack{}, "no version before v2"},
		{"scaled down", all(promoted(time.Minute), scaledDown("v1", time.Minute)), TakeBack{}, "version v1 is scaled down"},
		{"workers not known", all(promoted(time.Minute), func(g *given) { g.listed("v1").QueuesKnown = "" }), TakeBack{}, "could not be read"},
		{"the window is over", promoted(2 * time.Hour), TakeBack{}, "rampart rollback payments/checkout --build v2"},
		{"no traffic", candidate(), TakeBack{}, "v2 has no traffic (current v1). To take v1 back: rampart rollback payments/checkout --build v1"},
		{"another was promoted since", all(promoted(time.Minute), asks("v3"), inGit("v3"), up("v3"), barsAt("v3", time.Hour)), TakeBack{},
			"v3 has no traffic (current v2). To take v2 back: rampart rollback payments/checkout --build v2"},
		{"to itself", promoted(time.Minute), TakeBack{To: id("v2")}, "v2 is the current version already"},
		{"to nowhere", promoted(time.Minute), TakeBack{To: "v7"}, `no version "v7", neither in Git nor in Temporal`},
		{"to one that never was current", all(promoted(time.Minute), inGit("v3"), up("v3")), TakeBack{To: id("v3")}, "v3 was never current"},
		{"to one that was turned back", all(promoted(time.Minute), barsBuild("v1")), TakeBack{To: id("v1")}, "v1 was turned back itself, by canary"},
		{"from a ramp to a version", rampsAt(10, time.Minute), TakeBack{To: id("v1")}, "--to is for a current version"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Look(of(c.given)).DecideTakeBack(c.wish)
			require.Error(t, err)
			require.Contains(t, named(err.Error()), c.want)
		})
	}
}

// TestTakeBackRecord: the record that it was decided on, or one that a bot wrote meanwhile, says the same in the end.
func TestTakeBackRecord(t *testing.T) {
	for name, given := range map[string]change{"ramp": rampsAt(10, time.Minute), "promotion": promoted(time.Minute)} {
		t.Run(name, func(t *testing.T) {
			s := of(given)
			taken, err := Look(s).DecideTakeBack(adasWish)
			require.NoError(t, err)
			want := taken.Record(s.Record.Routing.Spec)
			require.Equal(t, []v1alpha1.Bar{byAda("v2")}, want.Bars)
			require.Equal(t, 1, rollout.FindVersion(want.Versions, id("v2")).TurnedBack)
			require.Equal(t, v1alpha1.DesiredRouting{Current: id("v1")}, want.Desired)
			require.Equal(t, want.Desired, *want.Decided)
			last := want.Promotions[len(want.Promotions)-1]
			require.Equal(t, id("v1"), last.BuildID)
			require.True(t, last.LeftAt.IsZero())
			require.Empty(t, s.Record.Routing.Spec.Bars, "what it was given stays as it was")

			for _, meanwhile := range []change{barsBuild("v2"), holds(v1alpha1.HoldDrift, "v2"), desires("v1", "", 0)} {
				other := of(given, meanwhile)
				got := taken.Record(other.Record.Routing.Spec)
				got.Basis, want.Basis = nil, nil
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			}
		})
	}
}

// TestTakeBackBesideAnEdit: a merge or an edit for the build that loses its traffic may not be answered yet. It ends
// with that, and does not count as drift when it is seen.
func TestTakeBackBesideAnEdit(t *testing.T) {
	next := all(promoted(time.Minute), wants("v3"), inGit("v3"), up("v3"), edits("v2", "v3", 10))
	waits := func(g *given) {
		g.rec.Proposal = &v1alpha1.RecordedProposal{BuildID: id("v3"), TemplateHash: hash("v3"), To: 10, Since: stamp(ago(time.Hour))}
	}
	for name, given := range map[string]change{
		"edited by a person": next, "merged": all(next, waits), "merged late": all(next, func(g *given) { g.rec.Desired.TemplateHash = hash("v0") }),
	} {
		t.Run(name, func(t *testing.T) {
			s := of(given)
			wish := adasWish
			wish.BuildID = id("v2")
			taken, err := Look(s).DecideTakeBack(wish)
			require.NoError(t, err)
			got := taken.Record(s.Record.Routing.Spec)
			require.Equal(t, v1alpha1.DesiredRouting{Current: id("v1")}, got.Desired)
			require.Equal(t, got.Desired, *got.Decided)
			routing := *s.Record.Routing
			routing.Spec = got
			s.Record.Routing = &routing
			s.Observation.Routing = taken.Now()
			s.Observation.Routing.CurrentChangedAt, s.Observation.Routing.Revision = noon, 99
			require.Nil(t, decide(t, s, allowed).Record.Hold)
		})
	}
}

// TestTakeBackKeepsWhatOthersDecided: a hold of before, and a desired routing that moved on, are not written over.
func TestTakeBackKeepsWhatOthersDecided(t *testing.T) {
	s := of(rampsAt(10, time.Minute), holds(v1alpha1.HoldDrift, "v2"))
	taken, err := Look(s).DecideTakeBack(adasWish)
	require.NoError(t, err)
	later := of(rampsAt(10, time.Minute), holds(v1alpha1.HoldDrift, "v2"), desires("v1", "v3", 10)).Record.Routing.Spec
	got := taken.Record(later)
	require.NotNil(t, got.Hold)
	require.Equal(t, later.Desired, got.Desired)
}

func TestAskTakeBack(t *testing.T) {
	a := Look(of(promoted(2 * time.Hour))).AskTakeBack(TakeBack{BuildID: id("v2")})
	require.Equal(t, []string{id("v1"), id("v2")}, a.Queues)
	require.Equal(t, []string{id("v1"), id("v2")}, Look(of(promoted(2*time.Hour))).AskTakeBack(TakeBack{To: id("v1")}).Queues)
	require.Empty(t, Look(of(promoted(2*time.Hour), foreign())).AskTakeBack(TakeBack{}).Queues)
}

// TestTakeBackBesideTheBot: a person takes traffic back at any place of a bot's cycle, and dies with or without having
// said so.
func TestTakeBackBesideTheBot(t *testing.T) {
	for name, start := range map[string]func(require.TestingT) *world{"ramping": rampingV2, "current": currentV2} {
		for _, said := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				w := start(t)
				s := w.look()
				s.Observation = w.server.observe(Look(s).AskTakeBack(adasWish))
				taken, err := Look(s).DecideTakeBack(adasWish)
				require.NoError(t, err)
				require.NoError(t, w.server.call(*taken.Plan.Lower, true, false))
				back := len(w.server.calls)
				w.cycle()
				w.cycle()
				if said {
					w.edit(func(r *v1alpha1.RoutingSpec) { *r = taken.Record(*r) })
				}
				w.run(2 * time.Hour)
				require.Len(t, w.server.calls, back, "nothing is raised after it")
				require.Equal(t, "RolledBack", w.reason())
				require.Len(t, w.routing().Bars, 1)
				require.Equal(t, said, w.routing().Bars[0].By == "ada")
				require.Nil(t, w.routing().Hold)
				require.Equal(t, id("v1"), w.server.routing.Current)
				w.quiet(5, time.Minute)
			})
		}
	}
}

// TestMarkIsLifted: a mark that Git never heard of is void once it is written down that its attempt is over, with a bar
// or without.
func TestMarkIsLifted(t *testing.T) {
	over := func(g *given) { g.version("v2").TurnedBack = 1 }
	require.Equal(t, "barred", Look(of(all(candidate(), marked("v2", "1 timeouts")))).Propose().Row)
	p := decide(t, of(all(candidate(), marked("v2", "1 timeouts"), over)), allowed)
	require.Equal(t, "first-step", p.Row)
	require.Equal(t, 2, p.Record.Target.Attempt)
	require.Empty(t, p.Record.Bars)
	require.Equal(t, "barred", Look(of(all(candidate(), marked("v2", "2 timeouts"), over))).Propose().Row, "a mark of the next attempt counts")
}
