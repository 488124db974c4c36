package policy

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

var update = flag.Bool("update", false, "write the golden files")

func indented(t *testing.T, v ast.Value) []byte {
	t.Helper()
	plain, err := ast.JSON(v)
	require.NoError(t, err)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	require.NoError(t, enc.Encode(plain))
	return b.Bytes()
}

// The document that policies are written against changes only on purpose.
func TestInputDocumentIsPinned(t *testing.T) {
	full := snapshot(t)
	first := full.Observation
	first.At = ago(4 * time.Second)
	first.Versions = first.Versions[1:]
	first.Unlisted = map[string]rollout.Count{"v1": rollout.Counted(0)}
	full.FirstRead = &first
	full.Observation.Versions = append(full.Observation.Versions, rollout.VersionObservation{BuildID: "stray", QueuesKnown: rollout.No, TurnedBack: "gate Smoke"})
	full.Observation.Gates = []rollout.GateRun{{WorkflowID: "rampart-gate:x", TaskQueue: "checkout", State: rollout.GateRunning, StartedAt: ago(time.Minute)}}
	full.Observation.Routing.Percentage = 0.1
	full.Observation.Versions[0].Queues[0].Pollers.LastAccess = ago(5 * time.Minute)
	r := &full.Record.Routing.Spec
	r.Bars = []v1alpha1.Bar{{BuildID: "v0", TemplateHash: "hash-v0", By: "gate Smoke", Reason: "failed", At: stamp(time.Hour)}}
	r.Hold = &v1alpha1.Hold{Kind: v1alpha1.HoldManual, By: "ada", Reason: "wait", At: stamp(time.Hour)}
	r.SetAside = []v1alpha1.SetAside{{BuildID: "v0", Reason: "open workflows", At: stamp(time.Hour)}}
	full.Waivers = []v1alpha1.Waiver{{APIVersion: v1alpha1.RampartAPIVersion, Kind: v1alpha1.KindWaiver, Metadata: v1alpha1.ObjectMeta{Name: "w"},
		Spec: v1alpha1.WaiverSpec{Rule: "rollout.freeze", Reason: "hotfix", Approver: "ada", ExpiresAt: v1alpha1.NewTime(now.Add(time.Hour))}}}
	full.Rollouts = []rollout.InProgress{
		{Deployment: rollout.Name{Namespace: "payments", Name: "refunds"}, BuildID: "r7", Since: ago(time.Hour)},
		{Deployment: rollout.Name{Namespace: "shop", Name: "cart"}},
	}
	full.Facts["broken"] = rollout.Fact{Error: "no route", Source: "prometheus"}
	gate := rollout.Action{ID: "gate", Kind: rollout.StartGate, BuildID: "v3", Queues: []string{"checkout"},
		Gate: &rollout.GateSpec{Point: "first", Attempt: 1, WorkflowType: "Smoke", Input: json.RawMessage(`{"password":"hunter2"}`), Timeout: time.Hour}}

	unread := snapshot(t)
	unread.Observation = rollout.Observation{At: now, Problem: &rollout.Problem{Reason: rollout.TemporalStateFetchFailed, Message: "no route"}}
	unread.Spec, unread.Record.Routing, unread.Facts = nil, nil, nil
	drift := rollout.Action{ID: "drift", Kind: rollout.DriftAction, Drift: &rollout.Drift{Kind: rollout.DriftRouting, Direction: rollout.DriftHigher, Recorded: "a", Actual: "b"}}

	objects := rollout.Action{ID: "objects", Kind: rollout.UpdateResources, BuildID: "v3", Resources: []rollout.ResourceWrite{
		{Template: "hpa", Object: json.RawMessage(`{"kind":"HorizontalPodAutoscaler"}`), Hash: "aa", Scales: true}, {Template: "pdb"}}}

	got := new(txtar.Archive)
	for _, tc := range []struct {
		name string
		s    rollout.Snapshot
		p    rollout.Proposal
		a    rollout.Action
	}{{"full.json", full, proposal(gate, ramp()), gate}, {"unread.json", unread, rollout.Proposal{Row: "unreadable"}, drift},
		{"objects.json", unread, rollout.Proposal{Row: "unreadable"}, objects}} {
		v, err := inputOf(tc.s, tc.p, tc.a)
		require.NoError(t, err)
		got.Files = append(got.Files, txtar.File{Name: tc.name, Data: indented(t, v)})
	}
	bytesGot := txtar.Format(got)
	require.NotContains(t, string(bytesGot), "hunter2", "a gate's input may be a secret")
	const golden = "testdata/input.txtar"
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(golden, bytesGot, 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(bytesGot), "\n")))
}

// The input of one action is not changed by making that of another.
func TestActionsShareTheInput(t *testing.T) {
	s, p := snapshot(t), proposal()
	d, err := NewDocument(s, p)
	require.NoError(t, err)
	var inputs []ast.Value
	for _, id := range d.Actions() {
		input, ok := d.Input(id)
		require.True(t, ok)
		inputs = append(inputs, input)
	}
	for i := range p.Actions {
		alone, err := inputOf(s, p, p.Actions[i])
		require.NoError(t, err)
		require.Zero(t, alone.Compare(inputs[i]))
		require.Equal(t, alone.Hash(), inputs[i].Hash())
	}
	require.NotZero(t, inputs[0].Compare(inputs[1]))
	_, ok := d.Input("nosuch")
	require.False(t, ok)
}

// What is measured has as many digits as say something: more of them would only be noise in every decision that is
// recorded.
func TestMeasuredNumbersAreRounded(t *testing.T) {
	s := snapshot(t)
	s.Observation.Versions[2].Queues[0].Backlog = rollout.Backlog{Known: true, Count: 7, Age: 1234567 * time.Microsecond, AddRate: 18.11291360269284, DispatchRate: 0.0123456}
	s.Facts["error_rate"] = rollout.Fact{Value: []byte("0.12345678901234"), ObservedAt: ago(time.Second), MaxAge: time.Minute, Source: "prometheus"}
	s.Facts["errors"] = rollout.Fact{Value: []byte("12345678"), ObservedAt: ago(time.Second), MaxAge: time.Minute, Source: "prometheus"}
	s.Observation.Versions[1].Queues[0].Backlog = rollout.Backlog{Known: true, AddRate: 18.1, DispatchRate: 18.1}
	s.Observation.Versions[0].Queues[0].Pollers.LastAccess = ago(4*time.Minute + 31*time.Second)
	p := proposal()
	p.Canary = &rollout.Canary{Phase: rollout.PhaseRamp, Candidate: "v3", Against: "v2", CandidateCounts: rollout.ArmCounts{Closed: 97, Failed: 3},
		Evidence: 0.123456, CeilingEvidence: -2.34567, Bound: 2}
	document, err := NewDocument(s, p)
	require.NoError(t, err)
	b, err := document.MarshalJSON()
	require.NoError(t, err)
	for _, want := range []string{`"ageSeconds":1,`, `"addRate":18,`, `"dispatchRate":0.012`, `"addRate":20,`, `"value":0.123457`, `"value":12345678`,
		`"evidence":0.12,`, `"ceilingEvidence":-2.35,`, `"rate":0.03093`, `"lastAccess":"2026-03-03T11:55:00Z"`} {
		require.Contains(t, string(b), want)
	}
	require.Equal(t, 1, strings.Count(string(b), "lastAccess"), "who polled within the last minute polls")
}

// What cannot be judged is told by its place and what was expected there.
func TestUndecodedInput(t *testing.T) {
	for input, want := range map[string]string{
		`{"now": "2026-03-03T12:00:00Z", "environment": "prod", "action": {"kind": "Ramp"}}`: "decode input: input.environment is a string where object is expected with approval, cd, managerIdentity, name, ",
		`{"now": "2026-03-03T12:00:00Z", "action": {"kind": 5}}`:                             "decode input: input.action.kind is a number where string is expected",
		`{"now": "2026-03-03T12:00:00Z", "actions": {"kind": "Ramp"}}`:                       "decode input: input.actions is an object where a list is expected",
		`{"now": "yesterday", "action": {"kind": "Ramp"}}`:                                   "decode input: now or another time is not in RFC 3339, such as 2026-03-03T12:00:00Z: ",
	} {
		_, err := DecodeDocument([]byte(input))
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "decoded")
	}
}
