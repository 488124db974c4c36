package plan

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/parity"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

var _ = flag.Bool("update", false, "write the tables of docs/parity.md anew")

// TestParity goes through the in-cluster controller's scenarios about deciding.
func TestParity(t *testing.T) {
	for section, cases := range map[string][]parity.Case{
		"plan": planParity(), "create": createParity(), "scale": scaleParity(), "delete": deleteParity(),
		"gates": gateParity(), "gate-input": gateInputParity(), "routing": routingParity(), "rollback": rollbackParity(),
		"connection": connectionParity(), "template": templateParity(), "mapping": mappingParity(), "conditions": conditionParity(),
	} {
		t.Run(section, func(t *testing.T) { parity.Compare(t, section, cases) })
	}
}

// plans gives the plan for a snapshot that was read twice.
func plans(changes ...change) func(*testing.T) string {
	return func(t *testing.T) string { return told(decide(t, twice(of(changes...)), allowed)) }
}

// told is all of a plan in short.
func told(p rollout.Plan) string {
	state := ""
	for _, c := range p.Status.Conditions {
		switch {
		case c.Type == v1alpha1.ConditionReady:
			state = c.Reason
		case c.Type == v1alpha1.ConditionStalled && c.Status == v1alpha1.True:
			state += " (stalled)"
		}
	}
	out := []string{state}
	for _, a := range p.Actions {
		out = append(out, strings.Join(strings.Fields(said(a)), " "))
	}
	for _, h := range p.Held {
		out = append(out, "held: "+said(h.Action))
	}
	out = append(append(out, toldCall("first", p.Lower)...), toldCall("after the push", p.Raise)...)
	for _, g := range p.Gates {
		out = append(out, fmt.Sprintf("start %s of %s, attempt %d, on %s", g.Gate.WorkflowType, named(g.Gate.BuildID), g.Gate.Attempt, g.TaskQueue))
	}
	for _, id := range p.Deletions {
		out = append(out, "delete "+named(id)+" at the server")
	}
	for _, w := range p.Versions {
		out = append(out, toldWrite(w))
	}
	if !p.NextDue.IsZero() {
		out = append(out, fmt.Sprintf("due in %s", p.NextDue.Sub(noon)))
	}
	return strings.Join(out, "; ")
}

func toldCall(when string, c *rollout.RoutingCall) []string {
	if c == nil {
		return nil
	}
	var steps []string
	if c.Claim != rollout.ClaimHeld {
		steps = append(steps, "claim")
	}
	for _, s := range c.Steps {
		step := strings.TrimSpace(fmt.Sprintf("%s %s", s.Kind, named(s.BuildID)))
		if s.Kind == rollout.SetRamp {
			step += fmt.Sprintf(" %v", s.Percentage)
		}
		steps = append(steps, step)
	}
	return []string{when + " " + strings.Join(steps, ", ")}
}

func toldWrite(w rollout.VersionWrite) string {
	out := fmt.Sprintf("%s files of %s", strings.ToLower(string(w.Op)), named(w.BuildID))
	switch {
	case w.Op == rollout.RemoveVersion:
		return out
	case w.Replicas == nil:
		out += " without replicas"
	default:
		out += fmt.Sprintf(" x%d", *w.Replicas)
	}
	return out + ", guard " + strings.ToLower(string(w.Guard))
}

// empty is before anything was written or polled.
func empty(g *given) {
	g.Record.Routing, g.Record.Files = nil, nil
	g.Observation = rollout.Observation{At: noon, Exists: rollout.No}
}

func scales(n *int32) change { return func(g *given) { g.Spec.Spec.Replicas = n } }

// runs gives a version's recorded replicas.
func runs(tag string, n *int32) change { return func(g *given) { g.version(tag).Replicas = n } }

func staleConnection(tag string) change {
	return func(g *given) { g.version(tag).ConnectionHash = "another" }
}

// others are further versions in Git and in Temporal that nothing is to be done about.
func others(n int) change {
	return func(g *given) {
		for i := range n {
			tag := fmt.Sprintf("=other-%d", i)
			all(inGit(tag), up(tag), drains(tag))(g)
		}
	}
}

func unowned(g *given) { g.Observation.ManagerIdentity = "" }

func planParity() []parity.Case {
	const reconnects = "updates it in place"
	return []parity.Case{
		{Scenario: "empty state creates", Controller: "creates the target's Deployment", Got: plans(empty), Want: "WaitingForPollers; CreateVersion v1 x2; render files of v1 x2, guard on"},
		{Scenario: "a drained version is deleted", Controller: "deletes its Deployment", Want: "RolloutComplete; DeleteVersion v1; delete v1 at the server",
			Got: plans(promoted(100*time.Hour), drained("v1", 90*time.Hour), scaledDown("v1", 80*time.Hour), noPollers("v1")),
			Why: "Temporal has to let the version go before its files do: they are removed in the commit after"},
		{Scenario: "replicas of the current version differ", Controller: "scales it", Got: plans(scales(replicas(5))), Want: "RolloutComplete; ScaleVersion v1 x5; edit files of v1 x5, guard on"},
		{Scenario: "target is current, and another version ramps", Controller: "clears the ramp", Got: plans(rampsAt(10, time.Minute), wants("v1")), Want: "RolloutComplete; ResetRamp v2 10->0 Spec; first ClearRamp"},
		{Scenario: "limit of versions reached", Controller: "creates nothing, and says nothing", Want: "VersionLimitReached (stalled)",
			Got: plans(asks("v2"), others(75)), Why: "it is said, as stalled, and the versions that block are named"},
		{Scenario: "limit of versions not reached", Controller: "creates", Got: plans(asks("v2"), others(73)), Want: "WaitingForPollers; CreateVersion v2 x2; render files of v2 x2, guard on"},
		{Scenario: "the connection changed, target", Controller: reconnects, Got: plans(candidate(), staleConnection("v2")), Want: "WaitingForPollers; UpdateVersion v2 Connection x2; reconnect files of v2 x2, guard on"},
		{Scenario: "the connection changed, current", Controller: reconnects, Got: plans(staleConnection("v1")), Want: "RolloutComplete; UpdateVersion v1 Connection x2; reconnect files of v1 x2, guard on"},
		{Scenario: "the connection changed, a draining version", Controller: reconnects, Got: plans(promoted(2*time.Hour), staleConnection("v1")), Want: "RolloutComplete; UpdateVersion v1 Connection x2; reconnect files of v1 x2, guard on"},
		{Scenario: "there is no manager: claimed", Controller: "claims before the change of routing", Got: plans(candidate(), unowned), Want: "Ramping; Ramp v2 0->10 step 1/2; after the push claim, SetRamp v2 10"},
		{Scenario: "there is no manager, and nothing is to be routed", Controller: "does not claim", Got: plans(unowned), Want: "RolloutComplete"},
		{Scenario: "it is the manager already", Controller: "does not claim", Got: plans(candidate()), Want: "Ramping; Ramp v2 0->10 step 1/2; after the push SetRamp v2 10"},
		{Scenario: "somebody else is the manager", Controller: "calls all the same, is refused, and tries again for ever", Got: plans(candidate(), foreign()),
			Want: "OwnedByAnother (stalled)", Why: "no call is made that the server would refuse; files still render"},
	}
}

func createParity() []parity.Case {
	custom := func(g *given) { g.Limits.MaxVersions = 5 }
	return []parity.Case{
		{Scenario: "the target's Deployment exists", Controller: "creates nothing", Got: plans(), Want: "RolloutComplete"},
		{Scenario: "the target's Deployment is missing", Controller: "creates it", Got: plans(asks("v2")), Want: "WaitingForPollers; CreateVersion v2 x2; render files of v2 x2, guard on"},
		{Scenario: "without spec.replicas", Controller: "creates it without replicas", Got: plans(asks("v2"), scales(nil), runs("v1", nil)), Want: "WaitingForPollers; CreateVersion v2; render files of v2 without replicas, guard on"},
		{Scenario: "gone after its sunset, and asked for again", Controller: "creates it again, under the same build ID", Want: "WaitingForPollers; CreateVersion v1 x2; render files of v1 x2, guard on",
			Got: plans(promoted(100*time.Hour), wants("v1"), unlisted("v1"), func(g *given) { g.rec.Versions = g.rec.Versions[1:] })},
		{Scenario: "default limit, 75", Controller: "creates nothing from 75 on, of deprecated versions that may not go yet", Want: "VersionLimitReached (stalled)",
			Got: plans(asks("v2"), others(75)), Why: "every version counts that Git or Temporal knows, since all of them count at the server, which allows 100"},
		{Scenario: "one version below the limit, and a current one", Controller: "creates it: the current version does not count", Want: "VersionLimitReached (stalled)",
			Got: plans(asks("v2"), others(74)), Why: "as above"},
		{Scenario: "another limit, reached", Controller: "creates nothing", Got: plans(asks("v2"), custom, others(5)), Want: "VersionLimitReached (stalled)",
			Why: "it is said, as stalled"},
		{Scenario: "below the limit", Controller: "creates it", Got: plans(asks("v2"), custom, others(3)), Want: "WaitingForPollers; CreateVersion v2 x2; render files of v2 x2, guard on"},
	}
}

func scaleParity() []parity.Case {
	old := all(promoted(100*time.Hour), drained("v1", 90*time.Hour))
	custom := all(custom("v1"), asks("v2"), scales(nil), runs("v1", nil))
	return []parity.Case{
		{Scenario: "current", Controller: "follows spec.replicas", Got: plans(scales(replicas(5))), Want: "RolloutComplete; ScaleVersion v1 x5; edit files of v1 x5, guard on"},
		{Scenario: "ramping", Controller: "follows spec.replicas", Got: plans(rampsAt(10, time.Minute), scales(replicas(5))), Want: "Ramping; ScaleVersion v1 x5; ScaleVersion v2 x5; edit files of v1 x5, guard on; edit files of v2 x5, guard on; due in 9m0s"},
		{Scenario: "an inactive target at 0", Controller: "scales it up", Got: plans(candidate(), scaledDown("v2", time.Hour)), Want: "WaitingForPollers; Restore v2 x2; edit files of v2 x2, guard on"},
		{Scenario: "an inactive version that is not the target", Controller: "scales it to 0 at once", Got: plans(inactive(time.Hour)), Want: "RolloutComplete; due in 23h0m0s",
			Why: "it may be asked for again in a minute, and its gates may still run: it goes once it is older than deleteDelay"},
		{Scenario: "the same, older than deleteDelay", Controller: "it is at 0 since long", Got: plans(inactive(25 * time.Hour)), Want: "RolloutComplete; ScaleDown v1 x0; edit files of v1 x0, guard off",
			Why: "only now is it abandoned, and two reads say that no open workflow is pinned to it"},
		{Scenario: "draining", Controller: "keeps its replicas", Got: plans(promoted(2*time.Hour), scales(replicas(5))), Want: "RolloutComplete; ScaleVersion v2 x5; edit files of v2 x5, guard on"},
		{Scenario: "drained, before scaledownDelay", Controller: "leaves it", Got: plans(promoted(100*time.Hour), drained("v1", 59*time.Minute)), Want: "RolloutComplete; due in 1m0s"},
		{Scenario: "drained, exactly at scaledownDelay", Controller: "leaves it", Got: plans(promoted(100*time.Hour), drained("v1", time.Hour)), Want: "RolloutComplete; due in 0s"},
		{Scenario: "drained, after scaledownDelay", Controller: "scales it to 0", Got: plans(old), Want: "RolloutComplete; ScaleDown v1 x0; edit files of v1 x0, guard off"},
		{Scenario: "drained, after scaledownDelay, with an open pinned workflow", Controller: "scales it to 0, whatever is open", Want: "RolloutComplete",
			Got: plans(old, func(g *given) { g.listed("v1").OpenPinned = rollout.Counted(1) }),
			Why: "drainage is what the server last saw; a workflow that is open is counted before its workers go"},
		{Scenario: "autoscaler, target at 0", Controller: "sets 1", Got: plans(candidate(), scales(nil), runs("v1", nil), scaledDown("v2", time.Hour)), Want: "WaitingForPollers; Restore v2; edit files of v2 without replicas, guard on",
			Why: "the field is left out of the file, for which Kubernetes puts 1"},
		{Scenario: "autoscaler, a new version", Controller: "creates it without replicas", Got: plans(asks("v2"), scales(nil), runs("v1", nil)), Want: "WaitingForPollers; CreateVersion v2; render files of v2 without replicas, guard on"},
		{Scenario: "autoscaler, a positive number is left alone", Controller: "leaves it", Want: "Ramping; Ramp v2 0->10 step 1/2; after the push SetRamp v2 10",
			Got: plans(candidate(), scales(nil), runs("v1", nil), runs("v2", nil))},
		{Scenario: "autoscaler, drained", Controller: "scales it to 0", Got: plans(old, scales(nil), runs("v2", nil), runs("v1", nil)), Want: "RolloutComplete; ScaleDown v1 x0; edit files of v1 x0, guard off"},
		{Scenario: "spec.replicas is taken away", Controller: "leaves the number that is there", Got: plans(scales(nil)), Want: "RolloutComplete"},
		{Scenario: "autoscaler, template updated in place", Controller: "keeps replicas unset", Got: plans(custom), Want: "RolloutComplete; UpdateVersion v1 Template; render files of v1 without replicas, guard on"},
	}
}

func deleteParity() []parity.Case {
	down := func(since time.Duration) change {
		return all(promoted(100*time.Hour), drained("v1", since), scaledDown("v1", since-time.Hour), noPollers("v1"))
	}
	missing := func(g *given) {
		basisIsActual()(g)
		g.Observation.Exists, g.Observation.Versions, g.Observation.Routing = rollout.No, nil, rollout.RoutingConfig{}
	}
	gone := all(down(90*time.Hour), unlisted("v1"), counted("v1", 0))
	const atOnce = "deletes it at once, whatever its replicas"
	return []parity.Case{
		{Scenario: "drained long enough", Controller: "deletes the Deployment", Got: plans(down(26 * time.Hour)), Want: "RolloutComplete; DeleteVersion v1; delete v1 at the server",
			Why: "first the version at the server, which refuses while it is needed, then its files"},
		{Scenario: "drained not long enough", Controller: "keeps it", Got: plans(down(23 * time.Hour)), Want: "RolloutComplete; due in 1h0m0s"},
		{Scenario: "drained for more than deleteDelay, less than both delays", Controller: "keeps it: the delays are added up", Want: "RolloutComplete; DeleteVersion v1; delete v1 at the server",
			Got: plans(down(24*time.Hour + 30*time.Minute)), Why: "both delays count from when it was drained, as the controller's documentation has it"},
		{Scenario: "drained long enough, with pollers", Controller: "deletes the Deployment", Want: "RolloutComplete",
			Got: plans(down(26*time.Hour), func(g *given) { g.listed("v1").Queues = []rollout.TaskQueue{polled("orders")} }),
			Why: "pollers show that the commit that scaled it down was not applied yet"},
		{Scenario: "drained long enough, not scaled down", Controller: "scales it to 0 first", Want: "RolloutComplete; ScaleDown v1 x0; edit files of v1 x0, guard off",
			Got: plans(promoted(100*time.Hour), drained("v1", 90*time.Hour))},
		{Scenario: "not registered, never routed", Controller: atOnce, Got: plans(inactive(time.Hour), unlisted("v1"), counted("v1", 0)), Want: "RolloutComplete; due in 23h0m0s",
			Why: "its pods may just be starting: it has to be older than deleteDelay, twice"},
		{Scenario: "not registered, after it was routed and scaled down", Controller: atOnce, Got: plans(gone), Want: "RolloutComplete; RemoveFiles v1; remove files of v1"},
		{Scenario: "not registered, after it was routed, with its workers up", Controller: atOnce, Got: plans(promoted(100*time.Hour), unlisted("v1")), Want: "RolloutComplete",
			Why: "what Temporal should know and does not list is unknown, and what is unknown is kept"},
		{Scenario: "not registered, and the worker deployment is missing in Temporal", Controller: "keeps it", Want: "RoutingDrift (stalled)",
			Got: plans(promoted(100*time.Hour), missing),
			Why: "kept as well; a routing that is gone was not lowered by a person, so Git keeps what was current, and it becomes so again once its workers poll"},
		{Scenario: "inactive, abandoned", Controller: "stays for ever, at 0, and counts against the limit", Want: "RolloutComplete; DeleteVersion v1; delete v1 at the server",
			Got: plans(inactive(80*time.Hour), scaledDown("v1", 25*time.Hour), noPollers("v1")), Why: "it goes like a drained one"},
		{Scenario: "draining", Controller: "keeps it", Got: plans(promoted(100 * time.Hour)), Want: "RolloutComplete"},
	}
}
