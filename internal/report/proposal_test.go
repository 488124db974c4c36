package report

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

const (
	older = "v2.2.9-77aa01bc"
	newer = "v2.3.0-1f0c9a2e"
)

func lasting(d time.Duration) v1alpha1.Duration { return v1alpha1.Duration{Duration: d} }

func ago(d time.Duration) time.Time { return now.Add(-d) }

// modeFinding is what asks in an environment that wants every raise approved.
func modeFinding() rollout.Finding {
	return rollout.Finding{Package: "rampart", Rule: "approval.mode", Effect: rollout.RequireApproval, Message: "environment prod wants every raise approved"}
}

// asking is a pull request for a ramp of the newer version to 5%, its first step; nothing was counted yet.
func asking() ProposalReport {
	of, env := named("payments/checkout")
	env.Approval = v1alpha1.Approval{Mode: v1alpha1.PullRequest, Scope: v1alpha1.ScopeStep}
	two := int32(2)
	version := func(id string) v1alpha1.RecordedVersion {
		return v1alpha1.RecordedVersion{BuildID: id, Deployment: "checkout-" + id, Replicas: &two, Guard: v1alpha1.GuardOn, CreatedAt: v1alpha1.NewTime(ago(time.Hour))}
	}
	spec := &v1alpha1.WorkerDeployment{Spec: v1alpha1.WorkerDeploymentSpec{
		Rollout: v1alpha1.RolloutStrategy{Strategy: v1alpha1.Progressive, Rollback: v1alpha1.RollbackPolicy{Window: lasting(time.Hour)},
			Steps: []v1alpha1.RolloutStep{{RampPercentage: 5, PauseDuration: lasting(10 * time.Minute)},
				{RampPercentage: 25, PauseDuration: lasting(30 * time.Minute)}, {RampPercentage: 50, PauseDuration: lasting(time.Hour)}}},
		Sunset: v1alpha1.SunsetStrategy{ScaledownDelay: lasting(time.Hour), DeleteDelay: lasting(24 * time.Hour)}}}
	ramp := rollout.Action{ID: "Ramp/" + newer + "@5%", Kind: rollout.Ramp, BuildID: newer, To: 5, Step: 1, Steps: 3, Row: "first-step",
		Reason: "ramp " + newer + " from 0% to 5%"}
	asked := rollout.Held{Action: ramp, Verdict: rollout.Verdict{Effect: rollout.RequireApproval, Findings: []rollout.Finding{modeFinding()}}}
	queue := func(n int64) []rollout.TaskQueue {
		return []rollout.TaskQueue{{Name: "checkout", Type: rollout.QueueWorkflow, Pollers: rollout.Pollers{Known: true, Count: 2, LastAccess: ago(8 * time.Second)},
			Backlog: rollout.Backlog{Known: true, Count: n, Age: 3 * time.Second}}}
	}
	return ProposalReport{
		Snapshot: rollout.Snapshot{Now: now, Deployment: of, Environment: env, Spec: spec, Limits: rollout.DefaultLimits(),
			Record: rollout.Record{Dir: "deploy/prod/payments/checkout", Routing: &v1alpha1.Routing{Spec: v1alpha1.RoutingSpec{
				Versions: []v1alpha1.RecordedVersion{version(older), version(newer)}}}},
			Observation: rollout.Observation{At: ago(4 * time.Second), Exists: rollout.Yes,
				Routing: rollout.RoutingConfig{Current: older, CurrentChangedAt: ago(48 * time.Hour)},
				Versions: []rollout.VersionObservation{{BuildID: older, Queues: queue(12), QueuesKnown: rollout.Yes, OpenPinned: rollout.Counted(1204)},
					{BuildID: newer, Queues: queue(0), QueuesKnown: rollout.Yes}}}},
		Proposal: rollout.Proposal{Target: &rollout.Target{BuildID: newer, Status: rollout.StatusInactive, Attempt: 1}, Actions: []rollout.Action{ramp}},
		Plan: rollout.Plan{Deployment: of, Environment: env, Held: []rollout.Held{asked}, Status: &v1alpha1.WorkerDeploymentStatus{
			CurrentVersion: &v1alpha1.VersionStatus{BuildID: older, Status: "Current"}, TargetVersion: &v1alpha1.VersionStatus{BuildID: newer, Status: "Inactive"}}},
		Asked: asked, Scope: v1alpha1.ScopeStep,
	}
}

// goingOn is one for a step after others, with evidence.
func goingOn() ProposalReport {
	r := asking()
	a := &r.Asked.Action
	a.ID, a.From, a.To, a.Step, a.Reason = "Ramp/"+newer+"@25%", 5, 25, 2, "ramp "+newer+" from 5% to 25%"
	since := ago(31 * time.Minute)
	obs := &r.Snapshot.Observation
	obs.Routing = rollout.RoutingConfig{Current: older, HasRamp: true, Ramping: newer, Percentage: 5, PercentageChangedAt: since}
	obs.Versions[0].Closed = rollout.ClosedCounts{Known: true, Since: since, Completed: 56_310, Failed: 250, TimedOut: 33, Canceled: 4}
	obs.Versions[1].Closed = rollout.ClosedCounts{Known: true, Since: since, Completed: 2969, Failed: 10, TimedOut: 2, ContinuedAsNew: 7}
	r.Proposal.Canary = &rollout.Canary{Phase: rollout.PhaseRamp, Candidate: newer, Against: older, Since: since, Enough: true,
		CandidateCounts: rollout.ArmCounts{Closed: 2988, Failed: 12}, AgainstCounts: rollout.ArmCounts{Closed: 56_593, Failed: 283},
		Evidence: -0.31, CeilingEvidence: -2.2, Bound: 2.6}
	r.Snapshot.Spec.Spec.Rollout.Analysis = &v1alpha1.Analysis{MinSamples: 50, MaxFailureRate: 0.02, MaxWait: lasting(2 * time.Hour)}
	r.Snapshot.Facts = map[string]rollout.Fact{
		"p95-seconds": {Value: json.RawMessage("0.82"), ObservedAt: ago(12 * time.Second), MaxAge: 2 * time.Minute, Source: `prometheus: histogram_quantile(0.95, sum(rate(x{build="v2"}[5m])))`},
		"errors":      {Value: json.RawMessage("3"), ObservedAt: ago(11 * time.Minute), MaxAge: 2 * time.Minute, Source: "prometheus: errors"},
		"saturation":  {MaxAge: 2 * time.Minute, Source: "prometheus: saturation", Error: "query saturation: no data"},
	}
	r.Plan.Status.TargetVersion.Status = "Ramping"
	passed := rollout.ClauseExplanation{Outcome: rollout.RulePassed, False: &rollout.Expression{Text: "input.canary.worse",
		Values: []rollout.NamedValue{{Name: "input.canary.worse", Value: "false"}}}}
	r.Explanation = &rollout.Explanation{Action: a.ID, Rules: []rollout.RuleExplanation{
		{Rule: "rollout.canary", Outcome: rollout.RulePassed, Clauses: []rollout.ClauseExplanation{passed}},
		{Rule: "rollout.freeze", Outcome: rollout.RulePassed, Clauses: []rollout.ClauseExplanation{{Outcome: rollout.RulePassed,
			False: &rollout.Expression{Text: "windows.open(window, freeze.timezone)", Values: []rollout.NamedValue{{Name: "window", Value: `{"name": "weekend"}`}}}}}},
		{Rule: "rollout.restart", Outcome: rollout.RuleIdle}, {Rule: "acme.own", Outcome: rollout.RuleIdle}}}
	return r
}

func promoting() ProposalReport {
	r := goingOn()
	r.Asked.Action = rollout.Action{ID: "Promote/" + newer, Kind: rollout.Promote, BuildID: newer, From: 50, To: 100, Steps: 3, Reason: "the last step is done"}
	r.Snapshot.Observation.Routing.Percentage = 50
	r.Snapshot.Spec.Spec.Rollout.Analysis.Bake = lasting(2 * time.Hour)
	return r
}

func wholeRollout() ProposalReport {
	r := asking()
	r.Scope = v1alpha1.ScopeRollout
	plan := moved(table(), 17*time.Second)
	r.Timetable = &plan
	return r
}

func lowTraffic() ProposalReport {
	r := goingOn()
	c := r.Proposal.Canary
	c.Enough, c.CandidateCounts, c.AgainstCounts = false, rollout.ArmCounts{Closed: 1}, rollout.ArmCounts{Closed: 19, Failed: 1}
	c.Stuck = rollout.StuckJudgment{Candidate: 1, Workflow: "order-4711", Unresolved: 2}
	r.Snapshot.Observation.Versions[0].Closed = rollout.ClosedCounts{Known: true, Since: c.Since, Completed: 18, Failed: 1}
	r.Snapshot.Observation.Versions[1].Closed = rollout.ClosedCounts{Known: true, Since: c.Since, Completed: 1}
	r.Snapshot.Facts, r.Snapshot.Spec.Spec.Rollout.Analysis.OnTooFewSamples = nil, v1alpha1.SamplesAdvance
	return r
}

func waiving() ProposalReport {
	r := goingOn()
	r.Asked.Verdict.Findings = append(r.Asked.Verdict.Findings,
		rollout.Finding{Package: "rampart.rollout", Rule: "rollout.approval", Effect: rollout.RequireApproval, Message: "from 25% on the payments team has to agree"},
		rollout.Finding{Package: "acme", Rule: "acme.oncall", Effect: rollout.RequireApproval, Message: "nobody is on call", Until: now.Add(9 * time.Hour)},
		rollout.Finding{Package: "rampart.rollout", Rule: "canary.rate", Effect: rollout.Warn, Message: "0.4% fail"},
		rollout.Finding{Package: "rampart.rollout", Rule: "rollout.freeze", Effect: rollout.HoldEffect, Message: "frozen: weekend", Until: now.Add(40 * time.Hour),
			Waived: "black-friday-fix (ada, until 2026-03-03T00:00:00Z: checkout is down)"})
	return r
}

func gated() ProposalReport {
	r := asking()
	s := &r.Snapshot.Spec.Spec.Rollout
	s.Gate, s.Steps[0].Gate = &v1alpha1.Gate{WorkflowType: "SmokeTest"}, &v1alpha1.Gate{WorkflowType: "DeepTest"}
	r.Snapshot.Observation.Gates = []rollout.GateRun{{WorkflowID: "rampart-gate:payments/checkout:" + newer + ":first:checkout:1:0123456789ab", TaskQueue: "checkout",
		State: rollout.GateCompleted, StartedAt: ago(9 * time.Minute), ClosedAt: ago(7 * time.Minute)}}
	return r
}

func evacuating() ProposalReport {
	r := asking()
	r.Snapshot.Observation.Routing.Current = newer
	e := &rollout.Evacuation{Stage: v1alpha1.EvacuateByMove, Attempt: 1, Since: ago(72 * time.Hour), After: 48 * time.Hour, Target: newer, Open: 1204, JobID: "job"}
	r.Asked.Action = rollout.Action{ID: "MoveWorkflows/" + older, Kind: rollout.MoveWorkflows, BuildID: older, Evacuation: e,
		Reason: "the workflows that stay on " + older + ", which has had no traffic since 2026-02-27T12:00:00Z, are moved to " + newer}
	r.Asked.Verdict.Findings[0] = rollout.Finding{Package: "rampart", Rule: "evacuation.approval", Effect: rollout.RequireApproval, Message: "a person has to approve moving workflows"}
	r.Snapshot.Spec.Spec.Sunset.Evacuate = &v1alpha1.Evacuation{ContinueAsNewSignal: &v1alpha1.EvacuationSignal{Name: "wrap-up", After: lasting(24 * time.Hour)},
		MoveTo: &v1alpha1.EvacuationMove{Target: "Current", After: lasting(48 * time.Hour)}, TerminateAfter: lasting(720 * time.Hour)}
	r.Snapshot.Record.Routing.Spec.Versions[0].Evacuations = []v1alpha1.RecordedEvacuation{{Stage: v1alpha1.EvacuateBySignal, Attempt: 1, State: v1alpha1.EvacuationCompleted}}
	old := &r.Snapshot.Observation.Versions[0]
	old.Drainage, old.DrainageChangedAt = rollout.Draining, ago(72*time.Hour)
	r.Plan.Status.CurrentVersion, r.Plan.Status.TargetVersion = &v1alpha1.VersionStatus{BuildID: newer, Status: "Current"}, nil
	r.Plan.Status.DeprecatedVersions = []v1alpha1.VersionStatus{{BuildID: older, Status: "Draining"}}
	return r
}

func leaving() ProposalReport {
	r := asking()
	r.Asked.Action = rollout.Action{ID: "Unroute/" + older, Kind: rollout.Unroute, BuildID: older, From: 100, Reason: "the worker deployment is retired by ada"}
	return r
}

func firstVersion() ProposalReport {
	r := asking()
	r.Asked.Action = rollout.Action{ID: "Promote/" + newer, Kind: rollout.Promote, BuildID: newer, To: 100, Steps: 3,
		Reason: "there is no current version, and no unversioned worker on its task queues"}
	r.Snapshot.Observation.Routing = rollout.RoutingConfig{}
	r.Snapshot.Observation.Versions, r.Snapshot.Record.Routing.Spec.Versions = r.Snapshot.Observation.Versions[1:], r.Snapshot.Record.Routing.Spec.Versions[1:]
	r.Plan.Status.CurrentVersion = nil
	r.Snapshot.Environment.Approval.Mode = v1alpha1.Direct
	return r
}

// hostile has text of others that wants to be something else, wherever there is text of others.
func hostile() ProposalReport { return spoiltBy(evil) }

const evil = "`x` | y\n\n# Heading\n@team [a](http://e.example) ![i](http://e.example/i.png) <img src=x> fixes #12 GH-13 closes ABC-7 !5 - [ ] task\n```\n/merge\n</details>" +
	"\x1b[31m\u202e\u200b\"]; click n1 \"http://e.example\" \n%%{init: {}}%% end [skip ci] www.e.example $1 &2"

// spoiltBy puts a text in every place where others write.
func spoiltBy(text string) ProposalReport {
	r := waiving()
	r.Plan.Deployment = rollout.Name{Namespace: text, Name: text}
	r.Plan.Environment.Name = text
	r.Asked.Action.BuildID, r.Asked.Action.Reason = text, text
	r.Proposal.Canary.Candidate, r.Proposal.Canary.Against, r.Proposal.Canary.Stuck = text, text+"2", rollout.StuckJudgment{Candidate: 1, Workflow: text}
	obs := &r.Snapshot.Observation
	obs.Routing.Current, obs.Routing.Ramping = text+"2", text
	obs.Gates = []rollout.GateRun{{WorkflowID: text, TaskQueue: text, State: rollout.GateState(text), Reason: text}}
	for i := range obs.Versions {
		v := &obs.Versions[i]
		v.BuildID, v.Closed.Known, v.Closed.Reason, v.OpenPinned = text+strings.Repeat("2", i), i == 0, text, rollout.Count{Reason: text}
		v.Drainage, v.Queues[0].Name, v.Queues[0].Type = rollout.Drainage(text), text, rollout.QueueType(text)
	}
	r.Snapshot.Facts = map[string]rollout.Fact{text: {Value: json.RawMessage(text), Source: text, ObservedAt: now, MaxAge: time.Minute}, text + "2": {Error: text}}
	for i := range r.Asked.Verdict.Findings {
		f := &r.Asked.Verdict.Findings[i]
		f.Rule, f.Message, f.Location = text, text, text
		if f.Waived != "" {
			f.Waived = text
		}
	}
	s := &r.Snapshot.Spec.Spec.Rollout
	s.Gate, s.Steps[1].Gate = &v1alpha1.Gate{WorkflowType: text}, &v1alpha1.Gate{WorkflowType: text}
	for i := range r.Snapshot.Record.Routing.Spec.Versions {
		r.Snapshot.Record.Routing.Spec.Versions[i].BuildID = text + strings.Repeat("2", i)
	}
	r.Snapshot.Record.Routing.Spec.SetAside = []v1alpha1.SetAside{{BuildID: text, Reason: text}}
	r.Plan.Status.TargetVersion.BuildID, r.Plan.Status.TargetVersion.Status = text, text
	for i := range r.Explanation.Rules {
		r.Explanation.Rules[i].Rule = text
	}
	r.Explanation.Rules[0].Clauses[0].False.Text, r.Explanation.Rules[0].Clauses[0].False.Values[0] = text, rollout.NamedValue{Name: text, Value: text}
	r.Explanation.Incomplete = text
	plan := table()
	plan.Deployment, plan.Environment, plan.State.Message, plan.Outcome = r.Plan.Deployment, text, text, rollout.OutcomeHeld
	plan.Entries[1].Routing.Ramping = text
	r.Timetable = &plan
	return r
}

// pullRequests are the pull requests of the goldens, by their names.
func pullRequests() map[string]ProposalReport {
	return map[string]ProposalReport{"first-step": asking(), "next-step": goingOn(), "promotion": promoting(), "rollout-scope": wholeRollout(),
		"low-traffic": lowTraffic(), "waived": waiving(), "gated": gated(), "evacuation": evacuating(), "unroute": leaving(), "first-version": firstVersion(), "hostile": hostile()}
}

func TestPullRequest(t *testing.T) {
	for name, r := range pullRequests() {
		t.Run(name, func(t *testing.T) {
			title, body := r.Title(), r.Body()
			for range 10 {
				againTitle, againBody := r.Title(), r.Body()
				require.Equal(t, title+body, againTitle+againBody)
			}
			require.NoError(t, forge.Opening{Title: title, Body: body}.Check(), "every forge takes it")
			golden(t, "pullrequest-"+name, txtar.File{Name: "title", Data: []byte(title + "\n")}, txtar.File{Name: "body.md", Data: []byte(body)})
		})
	}
}

// A change in place moves no traffic.
func TestUpdateMovesNoTraffic(t *testing.T) {
	r := goingOn()
	routing := r.Snapshot.Observation.Routing
	r.Asked.Action = rollout.Action{Kind: rollout.UpdateVersion, Update: rollout.UpdateTemplate, InTraffic: true, BuildID: routing.Ramping}
	for _, id := range []string{routing.Current, routing.Ramping} {
		require.Contains(t, r.routing(), fmt.Sprintf("| %s | %s | %[2]s |", quotedBuild(id), share(routing, id)))
	}
}

// TestScreen: the part without a fold is short, and what is decisive comes first.
func TestScreen(t *testing.T) {
	for name, r := range pullRequests() {
		body := r.Body()
		shown, _, _ := strings.Cut(body, "<details>")
		require.LessOrEqual(t, strings.Count(shown, "\n"), 40, name)
		require.Less(t, strings.Index(shown, "**"), 1, name)
	}
}

// TestPullRequestIsStable: a body does not change because the clock went on a little, nor because everything was read
// again.
func TestPullRequestIsStable(t *testing.T) {
	for name, r := range pullRequests() {
		title, want := r.Title(), r.Body()
		for _, later := range []time.Duration{time.Second, 20 * time.Second, time.Minute, 3 * time.Minute} {
			again := r
			again.Snapshot.Now = now.Add(later)
			again.Snapshot.Observation.At = now.Add(later - 2*time.Second)
			again.Snapshot.Facts = map[string]rollout.Fact{}
			for key, f := range r.Snapshot.Facts {
				if !f.ObservedAt.IsZero() {
					f.ObservedAt = f.ObservedAt.Add(later).Add(time.Second)
				}
				again.Snapshot.Facts[key] = f
			}
			if r.Timetable != nil {
				table := moved(*r.Timetable, later)
				again.Timetable = &table
			}
			againTitle, got := again.Title(), again.Body()
			require.Equal(t, title+want, againTitle+got, "%s, %s later", name, later)
		}
		r.Snapshot.Now = now.Add(factsEvery)
		got := r.Body()
		require.NotEqual(t, want, got, name)
	}
}

// TestPullRequestIsBounded: whatever there is, forges take it, and it says what is missing.
func TestPullRequestIsBounded(t *testing.T) {
	long := strings.Repeat("日本語 ", 500)
	r := spoiltBy(long)
	for i := range 500 {
		text := fmt.Sprint(i, long)
		v := rollout.VersionObservation{BuildID: text, Drainage: rollout.Draining, Queues: []rollout.TaskQueue{{Name: text}, {Name: text + "2"}}}
		r.Snapshot.Observation.Versions = append(r.Snapshot.Observation.Versions, v)
		r.Snapshot.Observation.Gates = append(r.Snapshot.Observation.Gates, rollout.GateRun{WorkflowID: text, Reason: text})
		r.Asked.Verdict.Findings = append(r.Asked.Verdict.Findings, rollout.Finding{Rule: text, Effect: rollout.Warn, Message: text, Waived: text})
		r.Explanation.Rules = append(r.Explanation.Rules, rollout.RuleExplanation{Rule: text, Outcome: rollout.RulePassed})
		r.Snapshot.Facts[text] = rollout.Fact{Error: text}
		r.Snapshot.Spec.Spec.Rollout.Steps = append(r.Snapshot.Spec.Spec.Rollout.Steps, v1alpha1.RolloutStep{RampPercentage: 50 + float64(i)/20, Gate: &v1alpha1.Gate{WorkflowType: text}})
	}
	title, body := r.Title(), r.Body()
	requireHarmless(t, title, body)
	require.NoError(t, forge.Opening{Title: title, Body: body}.Check(), "every forge takes it")
	t.Logf("%d bytes of title, %d of body", len(title), len(body))
	require.Equal(t, 3, strings.Count(body, "The rest is left out, since forges bound the size of this text."), "of the evidence, the rules and the versions")
	require.Equal(t, 3, strings.Count(body, "</details>"))
	require.Greater(t, strings.Index(body, "**Timetable, when all goes well**"), strings.LastIndex(body, "</details>"))
	for _, part := range []string{"**To reject**", "Evidence: ", "| comparison |", "Rules: ", "approval", "Versions: 502", "Nothing in this text is read back"} {
		require.Contains(t, body, part)
	}
	require.Len(t, diagrams(body), 1, "the steps; that of the timetable is too long")
	require.Contains(t, body, `["997 more steps"]`)
	require.Contains(t, body, `["promotion"]`)
	for _, d := range diagrams(body) {
		require.Less(t, len(d), 5000, "older Giteas draw no longer ones")
	}
}
