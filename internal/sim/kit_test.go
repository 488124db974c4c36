package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// nine is when simulations of these tests begin: a Monday.
var nine = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

func minutes(n float64) v1alpha1.Duration {
	return v1alpha1.Duration{Duration: time.Duration(n * float64(time.Minute))}
}

const objects = `
apiVersion: temporal.io/v1alpha1
kind: WorkerDeployment
metadata: {name: checkout, namespace: payments}
spec:
  replicas: 2
  workerOptions: {connectionRef: {name: temporal}, temporalNamespace: payments}
  rollout: %s
  template: {spec: {containers: [{name: worker, image: "app:v1"}]}}
---
apiVersion: temporal.io/v1alpha1
kind: Connection
metadata: {name: temporal, namespace: payments}
spec: {hostPort: "temporal:7233"}
`

const (
	twoSteps = `{strategy: Progressive, steps: [{rampPercentage: 10, pauseDuration: 10m}, {rampPercentage: 50, pauseDuration: 20m}]}`
	gated    = `{strategy: Progressive, gate: {workflowType: Smoke, onFailure: Rollback}, steps: [{rampPercentage: 10, pauseDuration: 10m}]}`
)

// given is a worker deployment with a rollout strategy, in a world in which all goes well. Nothing is recorded of it.
func given(t require.TestingT, strategy string) Input {
	documents, problems := v1alpha1.Decode("objects.yaml", fmt.Appendf(nil, objects, strategy))
	require.Empty(t, problems)
	world := v1alpha1.DefaultSimulation()
	world.At = v1alpha1.NewTime(nine)
	return Input{World: world, Judge: rules{}, Next: NextMadeUp, Snapshot: rollout.Snapshot{
		Deployment: rollout.Name{Namespace: "payments", Name: "checkout"}, SpecPath: "objects.yaml",
		Environment: v1alpha1.Environment{Name: "prod", Output: v1alpha1.Output{Path: "deploy"}, ManagerIdentity: "rampart/prod",
			Approval: v1alpha1.Approval{Mode: v1alpha1.Direct}, Status: v1alpha1.StatusOn},
		Spec: documents[0].Object.(*v1alpha1.WorkerDeployment), Connection: documents[1].Object.(*v1alpha1.Connection),
		Record: rollout.Record{Dir: "deploy/payments/checkout"},
	}}
}

// rules are policies in Go: what each field says, and else all is allowed.
type rules struct {
	// frozen says when nothing is raised.
	frozen func(time.Time) bool
	// failed closed workflows of a version, and a tenth of all, turn it back; 0: never.
	failed int64
	// samples are wanted at a step before the next.
	samples int64
	// approval is asked for, for actions of a kind.
	approval rollout.ActionKind
}

func (r rules) Judge(_ context.Context, s rollout.Snapshot, p rollout.Proposal) rollout.Verdicts {
	out := rollout.Verdicts{PolicyDigest: "rules", Spec: verdict(rollout.Allow, ""), Actions: map[string]rollout.Verdict{}}
	for _, a := range p.Actions {
		out.Actions[a.ID] = r.verdict(s, a)
	}
	return out
}

func (r rules) verdict(s rollout.Snapshot, a rollout.Action) rollout.Verdict {
	var closed rollout.ClosedCounts
	if v := s.Observation.Version(a.BuildID); v != nil {
		closed = v.Closed
	}
	all := closed.Completed + closed.Failed
	switch {
	case a.Kind == rollout.Continue && r.failed > 0 && closed.Failed >= r.failed && closed.Failed*10 >= all:
		return verdict(rollout.RollbackEffect, "failures")
	case a.Raises() && r.frozen != nil && r.frozen(s.Now):
		return verdict(rollout.HoldEffect, "freeze")
	case a.Raises() && a.From > 0 && all < r.samples:
		return verdict(rollout.HoldEffect, "samples")
	case a.Kind == r.approval:
		return verdict(rollout.RequireApproval, "approval")
	}
	return verdict(rollout.Allow, "")
}

func verdict(e rollout.Effect, rule string) rollout.Verdict {
	v := rollout.Verdict{Effect: e}
	if rule != "" {
		v.Findings = []rollout.Finding{{Package: "rules", Rule: rule, Effect: e, Message: rule + " says so"}}
	}
	return v
}

func run(t require.TestingT, in Input) rollout.Timetable {
	out, err := Run(context.Background(), in)
	require.NoError(t, err)
	return out
}

// told is a timetable in short, with build IDs as their image's tag.
func told(in rollout.Timetable) []string {
	out := make([]string, 0, len(in.Entries))
	for _, e := range in.Entries {
		var what []string
		what = append(what, e.Events...)
		what = append(what, e.Commit...)
		for _, a := range e.Actions {
			if a.Kind == rollout.DeleteVersion {
				what = append(what, "delete "+a.BuildID)
			}
		}
		line := fmt.Sprintf("%s %s [%s]", e.After, strings.Join(what, "; "), e.State.Reason)
		for _, h := range e.Held {
			line += " held by " + h.Verdict.Findings[0].Rule
		}
		out = append(out, tags(line))
	}
	return out
}

var suffix = regexp.MustCompile(`-[0-9a-f]{8}\b`)

// tags shortens build IDs to their image's tag.
func tags(s string) string { return suffix.ReplaceAllString(s, "") }

// ended is how a simulation ended: when, how, and with which routing.
func ended(in rollout.Timetable) string {
	last := in.Entries[len(in.Entries)-1].Routing
	return tags(fmt.Sprintf("%s %s, current %s, ramp %v at %v", in.Outcome, in.State.Reason, last.Current, last.HasRamp, last.Percentage))
}

func asJSON(t require.TestingT, v any) string {
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return string(data)
}
