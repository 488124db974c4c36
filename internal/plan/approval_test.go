package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// TestRemovalApproved: a policy that wants approval for taking a version away gets it from the person who retires the
// version, or all of them. A policy that holds, holds all the same. Approved or not, it takes two reads.
func TestRemovalApproved(t *testing.T) {
	old := promoted(100 * time.Hour)
	for _, c := range []struct {
		kind  rollout.ActionKind
		given change
		done  func(rollout.Plan) bool
	}{
		{rollout.ScaleDown, all(old, drained("v1", 99*time.Hour)), func(p rollout.Plan) bool { return len(p.Versions) == 1 && p.Versions[0].Guard == v1alpha1.GuardOff }},
		{rollout.DeleteVersion, all(old, drained("v1", 99*time.Hour), scaledDown("v1", 98*time.Hour), noPollers("v1")),
			func(p rollout.Plan) bool { return len(p.Deletions) == 1 }},
		{rollout.RemoveFiles, all(old, unlisted("v1"), counted("v1", 0), scaledDown("v1", 98*time.Hour)),
			func(p rollout.Plan) bool { return len(p.Versions) == 1 && p.Versions[0].Op == rollout.RemoveVersion }},
	} {
		for _, asked := range []struct {
			name     string
			change   change
			approved bool
		}{
			{"nobody asked", none, false},
			{"the version is retired", func(g *given) { g.version("v1").Retire = &v1alpha1.Asked{By: "ada", At: stamp(ago(time.Minute))} }, true},
			{"another version is retired", func(g *given) { g.version("v2").Retire = &v1alpha1.Asked{By: "ada", At: stamp(ago(time.Minute))} }, false},
			{"all of it is retired", retires(v1alpha1.KeepCurrent, time.Minute), true},
			{"retired by annotation", annotated("true"), true},
		} {
			for effect, verdict := range map[string]rollout.Verdict{"approval": effect(rollout.RequireApproval), "hold": effect(rollout.HoldEffect), "none": {}} {
				t.Run(string(c.kind)+"/"+asked.name+"/"+effect, func(t *testing.T) {
					s := of(c.given, asked.change)
					judge := verdictOn(c.kind, verdict)
					want := effect == "approval" && asked.approved
					once := decide(t, s, judge)
					require.Equal(t, want, once.SecondRead)
					require.False(t, c.done(once), "on one read")
					require.Equal(t, want, len(once.Held) == 0)
					require.Equal(t, want, c.done(decide(t, twice(s), judge)))
				})
			}
		}
	}
}

// TestCommittedAndWhatRoutingSays: a raise that is decided and not carried out counts as such beside what the bot
// wrote, and beside an outdated proposal. It does not where somebody wrote, or merged, something else there.
func TestCommittedAndWhatRoutingSays(t *testing.T) {
	decided := func(g *given) {
		g.rec.Decided = &v1alpha1.DesiredRouting{Current: id("v1"), Ramping: &v1alpha1.DesiredRamp{BuildID: id("v2"), Percentage: 50}}
		g.rec.Desired, g.rec.Basis = *g.rec.Decided, basisOf(g.Observation.Routing)
	}
	says := func(percentage float64, template string) change {
		return func(g *given) {
			g.rec.Desired = v1alpha1.DesiredRouting{Current: id("v1"), Ramping: &v1alpha1.DesiredRamp{BuildID: id("v2"), Percentage: percentage}, TemplateHash: template}
		}
	}
	gone := func(p *v1alpha1.RecordedProposal) { p.Withdrawn = true }
	for edit, c := range map[edit]struct {
		given     change
		committed bool
	}{
		editNone:      {none, true},
		editOutdated:  {says(60, "older"), true},
		editOpen:      {says(60, ""), false},
		editMerged:    {all(suggests(10, 60), says(60, "")), false},
		editWithdrawn: {all(suggests(10, 60, gone), says(60, "")), false},
	} {
		v := Look(of(pastPause(), decided, c.given))
		require.Equal(t, edit, v.edit)
		require.Equal(t, c.committed, v.committed(v.ramp(50)), edit)
	}
}
