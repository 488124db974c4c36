package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// countsCase is what is asked for in one phase: where policies look at its counts, and where only rows do.
type countsCase struct {
	name              string
	phase             rollout.CanaryPhase
	given             change
	looked, unwatched string
}

const (
	problemsOf2 = "problems v2"
	rampOf2     = "closed v2 v1, stuck v2"
	currentOf2  = "closed v2, stuck v2"
)

func countsCases() []countsCase {
	bakes := all(promoted(time.Minute), analysed(baked))
	pauses := rampsAt(10, time.Minute)
	manual := strategy(v1alpha1.Manual)
	held := holds(v1alpha1.HoldManual, "v2")
	return []countsCase{
		{"before traffic", rollout.PhaseNone, candidate(), problemsOf2, problemsOf2},
		{"before traffic, not registered", rollout.PhaseNone, all(wants("v2"), inGit("v2")), "", ""},
		{"before traffic, counted already", rollout.PhaseNone, all(candidate(), stuckBefore(3)), problemsOf2, problemsOf2},
		{"before traffic, held", rollout.PhaseNone, all(candidate(), held), problemsOf2, ""},
		{"before traffic, edited in a hold", rollout.PhaseNone, all(candidate(), held, edits("v1", "v2", 10)), problemsOf2, problemsOf2},
		{"before traffic, barred", rollout.PhaseNone, all(candidate(), barsBuild("v2")), problemsOf2, ""},
		{"before traffic, by hand", rollout.PhaseNone, all(candidate(), manual), problemsOf2, ""},
		{"before traffic, by hand, edited", rollout.PhaseNone, all(candidate(), manual, edits("v1", "v2", 10)), problemsOf2, problemsOf2},
		{"before traffic, the spec cannot be used", rollout.PhaseNone, all(candidate(), contestedByStage), problemsOf2, ""},
		{"in a pause", rollout.PhaseRamp, pauses, rampOf2, ""},
		{"in a pause that is over soon", rollout.PhaseRamp, rampsAt(10, 9*time.Minute+30*time.Second), rampOf2, rampOf2},
		{"after a pause", rollout.PhaseRamp, rampsAt(10, 11*time.Minute), rampOf2, rampOf2},
		{"in a pause, with an analysis", rollout.PhaseRamp, all(pauses, analysed()), rampOf2, ""},
		{"in a pause, edited", rollout.PhaseRamp, all(pauses, edits("v1", "v2", 50)), rampOf2, rampOf2},
		{"in a pause, barred", rollout.PhaseRamp, all(pauses, barsBuild("v2")), rampOf2, rampOf2},
		{"in a pause, another is asked for", rollout.PhaseRamp, all(pauses, wants("v1")), rampOf2, rampOf2},
		{"in a pause, raised outside of Git", rollout.PhaseRamp, all(rampsAt(10, time.Hour), routes("v1", "v2", 50, time.Minute)), rampOf2, rampOf2},
		{"not at a step", rollout.PhaseRamp, all(rampsAt(30, time.Minute), desires("v1", "v2", 30)), rampOf2, rampOf2},
		{"below all steps", rollout.PhaseRamp, all(rampsAt(5, time.Minute), desires("v1", "v2", 5)), rampOf2, rampOf2},
		{"in a pause, changed in place", rollout.PhaseRamp, all(pauses, custom("v2"), func(g *given) { g.version("v2").TemplateHash = "old" }), rampOf2, rampOf2},
		{"ramped by hand", rollout.PhaseRamp, all(rampsAt(10, time.Hour), manual), rampOf2, ""},
		{"ramped by hand, edited", rollout.PhaseRamp, all(rampsAt(10, time.Hour), manual, edits("v1", "v2", 50)), rampOf2, rampOf2},
		{"baking", rollout.PhaseBake, bakes, currentOf2, ""},
		{"baking, changed in place", rollout.PhaseBake, all(bakes, custom("v2"), func(g *given) { g.version("v2").TemplateHash = "old" }), currentOf2, currentOf2},
		{"baking, another is asked for", rollout.PhaseBake, all(bakes, wants("v3"), inGit("v3"), up("v3")), currentOf2, "problems v3"},
		{"in the rollback window", rollout.PhaseWindow, promoted(time.Minute), currentOf2, ""},
		{"after the rollback window", rollout.PhaseWindow, promoted(5 * time.Hour), "", ""},
	}
}

func contestedByStage(g *given) {
	g.Rivals = []rollout.Rival{{Environment: "stage", ManagerIdentity: g.Environment.ManagerIdentity}}
}

// sayCounts says which counts are asked for.
func sayCounts(a rollout.Ask) string {
	var out []string
	if len(a.Closed) > 0 {
		var ids []string
		for _, c := range a.Closed {
			ids = append(ids, c.BuildID)
		}
		out = append(out, "closed "+strings.Join(ids, " "))
	}
	if s := a.Stuck; s != nil && s.Since.IsZero() {
		out = append(out, "problems "+s.Candidate)
	} else if s != nil {
		out = append(out, "stuck "+s.Candidate)
	}
	return named(strings.Join(out, ", "))
}

// uncounting says in which phases no policy looks at counts.
func uncounting(phases ...rollout.CanaryPhase) change {
	return func(g *given) { g.Uncounted = phases }
}

// TestAskCounts: counts are asked for where a row, or a policy, looks at those of the phase.
func TestAskCounts(t *testing.T) {
	for _, c := range countsCases() {
		t.Run(c.name, func(t *testing.T) {
			others := slices.DeleteFunc(rollout.CanaryPhases(), func(p rollout.CanaryPhase) bool { return p == c.phase })
			asked := func(phases ...rollout.CanaryPhase) string {
				return sayCounts(Look(of(all(c.given, uncounting(phases...)))).Ask())
			}
			require.Equal(t, c.looked, asked(), "policies look at all phases")
			require.Equal(t, c.unwatched, asked(rollout.CanaryPhases()...), "at none")
			require.Equal(t, c.unwatched, asked(c.phase), "at the others")
			if c.unwatched != "problems v3" {
				require.Equal(t, c.looked, asked(others...), "at this one")
			}
		})
	}
}

// TestUncountedChangesNothing: a plan is the same without the counts that are not asked for.
func TestUncountedChangesNothing(t *testing.T) {
	for _, c := range countsCases() {
		if c.unwatched != "" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			counted := all(c.given, uncounting(rollout.CanaryPhases()...))
			missing := all(counted, func(g *given) {
				g.Observation.Stuck = rollout.Stuck{}
				for i := range g.Observation.Versions {
					g.Observation.Versions[i].Closed = rollout.ClosedCounts{}
				}
			})
			for _, judge := range []func(rollout.Proposal) rollout.Verdicts{allowed,
				verdictOn(rollout.Continue, effect(rollout.RollbackEffect))} {
				require.Equal(t, decide(t, of(counted), judge), decide(t, of(missing), judge))
			}
		})
	}
}
