package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/cmd/rampart/apptest"
	"github.com/rampart-gitops/rampart/cmd/rampart/cmdtest"
	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/internal/auditlog"
	"github.com/rampart-gitops/rampart/internal/compose"
	"github.com/rampart-gitops/rampart/internal/mask"
	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/report"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy"
)

// play plans once for each observation, and writes what they render to the folder, as cycles do.
func play(t *testing.T, a *cmdutil.App, seen ...func(rollout.Ask) rollout.Observation) *rollout.Decision {
	t.Helper()
	var last *rollout.Decision
	for _, obs := range seen {
		var reads atomic.Int64
		planner, err := a.NewPlanner(cmdutil.PlannerPorts{Source: apptest.FolderSource(t, a), Observer: cmdtest.Observer{Observation: obs, Reads: &reads}, Judges: &cmdutil.Judges{}, Pods: nil}, cmdutil.TemporalFlags{})
		require.NoError(t, err)
		_, decided, err := planner.Plan(t.Context())
		require.NoError(t, err)
		last = decided[0][0]
		r := compose.Render(last)
		require.Empty(t, r.Refused)
		for _, f := range r.Files {
			writeAt(t, filepath.Join(a.Dir, f.Path), f.Data)
		}
	}
	return last
}

func writeAt(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
}

// recorded is the decision as the bot records it.
func recorded(t *testing.T, d *rollout.Decision) auditlog.Decision {
	t.Helper()
	document, err := policy.NewDocument(plan.Look(d.Snapshot).JudgedBy(), d.Proposal)
	require.NoError(t, err)
	input, err := json.Marshal(document)
	require.NoError(t, err)
	masker, err := mask.New()
	require.NoError(t, err)
	out, err := auditlog.NewDecision(auditlog.Judged{Now: document.Now(), Labels: map[string]string{"id": "rampart"}, Input: input, Verdicts: d.Plan.Verdicts}, masker)
	require.NoError(t, err)
	return out
}

func writeDecisions(t *testing.T, ds ...auditlog.Decision) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, auditlog.WriteLines(&b, ds...))
	name := filepath.Join(t.TempDir(), "decisions.jsonl")
	writeAt(t, name, b.String())
	return name
}

// command runs a command in this process: its exit code, what it printed, and what it said.
func command(t *testing.T, a *cmdutil.App, args ...string) (int, string, string) {
	t.Helper()
	var out, said bytes.Buffer
	b := *a
	b.Out, b.Err = &out, &said
	root := newRoot(&b)
	root.SetArgs(append([]string{"-C", a.Dir}, args...))
	err := root.ExecuteContext(t.Context())
	b.PrintError(t.Context(), err)
	return cmdutil.ExitCode(t.Context(), err), out.String(), said.String()
}

// The observations of a rollout of v2: unknown to Temporal, polled with its gate passed, ramping at 5% for a quarter of
// an hour.
func unknownV2(rollout.Ask) rollout.Observation {
	return rollout.Observation{Exists: rollout.Yes, Routing: rollout.RoutingConfig{Current: "v1", Revision: 7, CurrentChangedAt: cmdtest.Now.Add(-time.Hour)},
		Versions: []rollout.VersionObservation{{BuildID: "v1", CreatedAt: cmdtest.Now.Add(-time.Hour), BecameCurrentAt: cmdtest.Now.Add(-time.Hour), Queues: cmdtest.Queues(), QueuesKnown: rollout.Yes}}}
}

func passedV2(ask rollout.Ask) rollout.Observation {
	o := unknownV2(ask)
	o.Versions = append(o.Versions, rollout.VersionObservation{BuildID: "v2", CreatedAt: cmdtest.Now.Add(-20 * time.Minute), Queues: cmdtest.Queues(), QueuesKnown: rollout.Yes})
	o.Stuck = rollout.Stuck{Unattributed: rollout.Counted(0), Problems: rollout.Counted(0)}
	if ask.Gate != nil {
		o.Gates = []rollout.GateRun{{WorkflowID: ask.Gate.WorkflowID("checkout"), TaskQueue: "checkout", State: rollout.GateCompleted}}
	}
	return o
}

func rampingV2(ask rollout.Ask) rollout.Observation {
	o := passedV2(ask)
	at := cmdtest.Now.Add(-15 * time.Minute)
	o.Routing.HasRamp, o.Routing.Ramping, o.Routing.Percentage, o.Routing.RampingChangedAt, o.Routing.PercentageChangedAt = true, "v2", 5, at, at
	o.Versions[0].Closed = rollout.ClosedCounts{Known: true, Since: at, Completed: 210, Failed: 2}
	o.Versions[1].Closed = rollout.ClosedCounts{Known: true, Since: at, Completed: 12}
	o.Versions[1].FirstActivatedAt = at
	o.Stuck = rollout.Stuck{Since: at, Unattributed: rollout.Counted(0), Problems: rollout.Counted(0)}
	return o
}

const alwaysFrozen = `rampart:
  config:
    rollout:
      freeze:
        timezone: Europe/Berlin
        windows: [{name: weekdays, days: [Mon, Tue, Wed, Thu, Fri]}]
`

// Held rollouts, each explained on one screen.
func TestExplainHeld(t *testing.T) {
	analysis := strings.Replace(cmdtest.Spec, "    gate: {", "    analysis: {minSamples: 50}\n    gate: {", 1)
	for name, c := range map[string]struct {
		spec  string
		files map[string]string
		seen  []func(rollout.Ask) rollout.Observation
		want  []string
	}{
		"samples": {analysis, nil, []func(rollout.Ask) rollout.Observation{unknownV2, passedV2, rampingV2},
			[]string{"[ ] rollout.canary: ", "input.canary.candidate.counted.closed = 12"}},
		"freeze": {cmdtest.Spec, map[string]string{"policies/data.yaml": alwaysFrozen}, []func(rollout.Ask) rollout.Observation{unknownV2, passedV2},
			[]string{"[x] rollout.freeze: deny at rampart/rollout/freeze.rego:", "frozen: weekdays", `data.rampart.config.rollout.freeze.timezone = "Europe/Berlin"`}},
		"broken": {cmdtest.Spec, map[string]string{"policies/x.rego": "package rampart.rollout\n\nhold contains {\"rule\": \"shop.x\", \"msg\": y} if true\n"},
			[]func(rollout.Ask) rollout.Observation{unknownV2, passedV2}, []string{"[!] policy.broken: var y is unsafe (policies/x.rego:3)"}},
		"fact": {cmdtest.Spec, map[string]string{"policies/x.rego": "package rampart.rollout\n\nimport data.rampart.facts\n\nhold contains {\"rule\": \"shop.errors\", \"msg\": \"too many\"} if {\n\tinput.action.kind == \"Ramp\"\n\tfacts.require(\"error_rate\") > 0.1\n}\n"},
			[]func(rollout.Ask) rollout.Observation{unknownV2, passedV2},
			[]string{"[!] shop.errors: hold at policies/x.rego:5: could not be evaluated", `fact "error_rate" is not known`, `policies/x.rego:7: facts.require("error_rate") > 0.1`}},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := apptest.New(t)
			writeAt(t, filepath.Join(a.Dir, "spec.yaml"), c.spec)
			writeAt(t, filepath.Join(a.Dir, "rampart.yaml"), `apiVersion: rampart.dev/v1alpha1
kind: Config
spec:
  environments:
    - {name: prod, specs: ["*.yaml"], policies: [policies/*.rego], data: [policies/*.yaml], output: {path: deploy}}
`)
			for f, text := range c.files {
				writeAt(t, filepath.Join(a.Dir, f), text)
			}
			d := play(t, a, c.seen...)
			file := writeDecisions(t, recorded(t, d))
			code, out, said := command(t, a, "explain", "checkout", "--decisions", file)
			require.Equal(t, cmdutil.ExitFine, code, said)
			require.Empty(t, said)
			for _, w := range c.want {
				require.Contains(t, out, w)
			}
			lines := strings.Split(strings.TrimRight(out, "\n"), "\n")
			require.LessOrEqual(t, len(lines), 50, "one screen:\n%s", out)
			policy := false
			for _, l := range lines {
				policy = (policy || strings.HasPrefix(l, "Policy on ")) && l != ""
				if policy {
					require.LessOrEqual(t, utf8.RuneCountInString(l), 100, l)
				}
			}
			goldenText(t, "explain-"+name+".txt", out)
		})
	}
}

// The last decision is explained, by the policies as they are; that they are others than those that decided is said.
// Other actions and all rules are there for the asking.
func TestExplainRecorded(t *testing.T) {
	a, _ := apptest.New(t)
	writeAt(t, filepath.Join(a.Dir, "spec.yaml"), cmdtest.Spec)
	d := play(t, a, unknownV2, passedV2)
	first := recorded(t, d)
	later := first
	later.ID, later.Timestamp = "later", first.Timestamp.Add(time.Minute)
	other := first
	other.ID, other.Timestamp = "other", first.Timestamp.Add(time.Hour)
	other.Input = bytes.ReplaceAll(other.Input, []byte(`"checkout"`), []byte(`"elsewhere"`))
	file := writeDecisions(t, first, later, other)
	writeAt(t, filepath.Join(a.Dir, "rampart.yaml"), `apiVersion: rampart.dev/v1alpha1
kind: Config
spec: {environments: [{name: default, specs: ["*.yaml"], data: [policies/*.yaml], output: {path: deploy}}]}
`)
	writeAt(t, filepath.Join(a.Dir, "policies/data.yaml"), alwaysFrozen)

	code, out, said := command(t, a, "explain", "checkout", "--decisions", file)
	require.Equal(t, cmdutil.ExitFine, code, said)
	require.Contains(t, out, "recorded as later\n")
	require.Contains(t, out, "by other policies (")
	require.Contains(t, out, "decided then: allow\n  Ramp/v2@5%: hold\n")

	code, out, said = command(t, a, "explain", "checkout", "--decisions", file, "--action", "Continue/v1", "-o", "json")
	require.Equal(t, cmdutil.ExitFine, code, said)
	var e struct{ Policy report.PolicyTree }
	require.NoError(t, json.Unmarshal([]byte(out), &e))
	require.Len(t, e.Policy.Explanations, 1)
	require.Equal(t, rollout.Continue, e.Policy.Explanations[0].Kind)

	_, out, _ = command(t, a, "explain", "checkout", "--decisions", file, "--all")
	require.Contains(t, out, "[ ] rollout.approval: require_approval at rampart/rollout/approval.rego:")
	require.Contains(t, out, " not true: some rule in approval.rules\n        data.rampart.config.rollout.approval.rules = []\n")

	code, _, said = command(t, a, "explain", "checkout", "--decisions", file, "--action", "Promote/x")
	require.Equal(t, cmdutil.ExitFailure, code)
	require.Contains(t, said, `the input has no action "Promote/x"; it has: `)
	code, _, said = command(t, a, "explain", "checkout", "--action", "x")
	require.Equal(t, cmdutil.ExitFailure, code)
	require.Contains(t, said, "name a clone with -C, or the repository with --repo")

	writeAt(t, file, "{\"input\": {}}\n")
	code, _, said = command(t, a, "explain", "checkout", "--decisions", file)
	require.Equal(t, cmdutil.ExitFailure, code)
	require.Contains(t, said, "decisions.jsonl: decision 1: the decision's input does not say which worker deployment it is about")
	writeAt(t, file, "\nnonsense\n")
	_, _, said = command(t, a, "explain", "checkout", "--decisions", file)
	require.Contains(t, said, "line 2: it is not a decision: it is not JSON")
	writeAt(t, file, "")
	code, out, said = command(t, a, "explain", "checkout", "--decisions", file)
	require.Equal(t, cmdutil.ExitFine, code)
	require.Contains(t, said, "no decision about payments/checkout is recorded there")
	require.NotContains(t, out, "Policy on")
}

// ofLibrary are the parts of a text that change with the library: digests, lines, and the rules that are not asked.
var ofLibrary = []struct {
	find *regexp.Regexp
	put  string
}{
	{regexp.MustCompile(`recorded as [0-9a-f-]{36}`), "recorded as ID"},
	{regexp.MustCompile(`\([0-9a-f]{12}\)`), "(DIGEST)"},
	{regexp.MustCompile(`(rampart/[a-z/]+\.rego):\d+`), "$1:LINE"},
	{regexp.MustCompile(`(?m)^    \d+ not about this or not configured: .*\n(?:        .*\n)*`), "    N not about this or not configured: …\n"},
}

// goldenText compares a text with testdata/<name>, whatever the library's lines are.
func goldenText(t *testing.T, name, got string) {
	t.Helper()
	for _, o := range ofLibrary {
		got = o.find.ReplaceAllString(got, o.put)
	}
	file := filepath.Join("testdata", name)
	if *update {
		writeAt(t, file, got)
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}
