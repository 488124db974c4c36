package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/cmd/rampart/apptest"
	"github.com/rampart-gitops/rampart/cmd/rampart/cmdtest"
	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/internal/auditlog"
	"github.com/rampart-gitops/rampart/internal/report"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/policy/parse"
)

const backtestConfig = `apiVersion: rampart.dev/v1alpha1
kind: Config
spec:
  environments:
    - {name: prod, specs: ["*.yaml"], policies: [policies/*.rego], data: [policies/*.yaml], output: {path: deploy}}
`

// backtested is a folder with a rollout, and the decision on its first ramp by the policies there.
func backtested(t *testing.T, files map[string]string) (*cmdutil.App, auditlog.Decision) {
	t.Helper()
	a, _ := apptest.New(t)
	writeAt(t, filepath.Join(a.Dir, "spec.yaml"), cmdtest.Spec)
	writeAt(t, filepath.Join(a.Dir, "rampart.yaml"), backtestConfig)
	for name, text := range files {
		writeAt(t, filepath.Join(a.Dir, name), text)
	}
	d := recorded(t, play(t, a, unknownV2, passedV2))
	d.ID = "d1"
	return a, d
}

// ran is the JSON that backtest prints.
func ran(t *testing.T, a *cmdutil.App, code int, args ...string) report.Backtest {
	t.Helper()
	got, out, said := command(t, a, append([]string{"policy", "backtest", "-o", "json"}, args...)...)
	require.Equal(t, code, got, said)
	var b report.Backtest
	require.NoError(t, json.Unmarshal([]byte(out), &b))
	require.Contains(t, said, b.Summary())
	return b
}

// The same policies say the same; a freeze on the day of the decision is stricter, whatever day it is today. Taking it
// away is looser.
func TestBacktestTellsStricterFromLooser(t *testing.T) {
	a, free := backtested(t, nil)
	file := writeDecisions(t, free)
	require.Equal(t, report.Backtest{Since: cmdtest.Now.Add(-30 * 24 * time.Hour), Decisions: 1, Rows: []report.BacktestRow{}}, ran(t, a, cmdutil.ExitFine, "--decisions", file))
	b := *a
	b.Now = func() time.Time { return cmdtest.Now.Add(5*24*time.Hour + time.Hour) } // a Saturday
	writeAt(t, filepath.Join(a.Dir, "policies/data.yaml"), alwaysFrozen)
	want := report.BacktestRow{ID: "d1", At: cmdtest.Now, Deployment: "payments/checkout", Action: "Ramp/v2@5%", Change: report.Stricter,
		Recorded: &report.VerdictSum{Effect: rollout.Allow}, Now: &report.VerdictSum{Effect: rollout.HoldEffect, Rules: []string{"rollout.freeze"}}}
	got := ran(t, &b, cmdutil.ExitPending, "--decisions", file)
	require.Equal(t, report.Backtest{Since: b.Now().Add(-30 * 24 * time.Hour), Decisions: 1, Differ: 1, Stricter: 1, Rows: []report.BacktestRow{want}}, got)
	code, out, said := command(t, a, "policy", "backtest", "--decisions", file)
	require.Equal(t, cmdutil.ExitPending, code)
	require.Equal(t, `TIME                  WORKER DEPLOYMENT  ACTION      RECORDED  NOW                     CHANGE    DECISION
2026-03-02T12:00:00Z  payments/checkout  Ramp/v2@5%  allow     hold by rollout.freeze  Stricter  d1
`, out)
	require.Equal(t, "judging decisions since 2026-01-31T12:00:00Z\ndecisions: 1, differ: 1 (stricter: 1, looser: 0), could not be evaluated: 0, masked: 0\n", said)

	frozen, held := backtested(t, map[string]string{"policies/data.yaml": alwaysFrozen})
	writeAt(t, filepath.Join(frozen.Dir, "policies/data.yaml"), "")
	got = ran(t, frozen, cmdutil.ExitPending, "--decisions", writeDecisions(t, held))
	require.Equal(t, []int{1, 1, 0, 1}, []int{got.Decisions, got.Differ, got.Stricter, got.Looser})
}

// What was recorded may hold anything. None of it reaches a terminal as a control character.
func TestBacktestTextIsClean(t *testing.T) {
	const evil = "\x1b[2J\x07\r\u009b"
	a, d := backtested(t, nil)
	var v rollout.Verdicts
	require.NoError(t, json.Unmarshal(d.Result, &v))
	for id := range v.Actions {
		v.Actions[id] = rollout.Verdict{Effect: "hold" + evil, Drift: "x" + evil, Findings: []rollout.Finding{
			{Package: "rampart.rollout", Rule: "r" + evil, Effect: "hold" + evil, Message: "m" + evil, Waived: "w" + evil}}}
	}
	v.Actions["a"+evil] = rollout.Verdict{Effect: rollout.HoldEffect}
	v.PolicyDigest = "sha256:" + evil
	result, err := json.Marshal(v)
	require.NoError(t, err)
	d.ID, d.Result = "d1"+evil, result
	for name, c := range map[string]struct {
		d    auditlog.Decision
		args []string
	}{
		"table":     {d, []string{"policy", "backtest"}},
		"one":       {d, []string{"policy", "backtest", "--show", "d1"}},
		"two":       {d, []string{"policy", "backtest", "--show", "d"}},
		"explained": {d, []string{"explain", "payments/checkout", "--all"}},
		"no input":  {auditlog.Decision{ID: d.ID, Timestamp: d.Timestamp, Input: []byte(`{"deployment": {"namespace": "payments", "name": "checkout"}, "now": []}`)}, []string{"explain", "payments/checkout"}},
	} {
		other := d
		other.ID = "d2" + evil
		_, out, said := command(t, a, append(c.args, "--decisions", writeDecisions(t, other, c.d))...)
		require.NotEmpty(t, said+out, name)
		for _, text := range []string{out, said} {
			for _, bad := range []string{"\x1b", "\x07", "\r", "\u009b"} {
				require.NotContains(t, text, bad, name)
			}
		}
	}
}

// What cannot be compared is counted apart: errors, invalid inputs, other environments, what was masked and is read.
func TestBacktestApart(t *testing.T) {
	a, d := backtested(t, nil)
	nothing, elsewhere, masked, bare := d, d, d, d
	nothing.ID, nothing.Input = "nothing", []byte(`{"deployment": {"namespace": "payments", "name": "checkout"}}`)
	elsewhere.ID, elsewhere.Input = "elsewhere", bytes.ReplaceAll(d.Input, []byte(`"name":"prod"`), []byte(`"name":"moon"`))
	masked.ID, masked.Input = "masked", bytes.ReplaceAll(d.Input, []byte(`"a < b & c > d"`), []byte(`"***"`))
	masked.Masked = []string{"/input/deployment/metadata/annotations/note"}
	bare.ID, bare.Result = "bare", nil
	require.NotEqual(t, string(d.Input), string(masked.Input))
	file := writeDecisions(t, d, nothing, elsewhere, masked, bare)
	got := ran(t, a, cmdutil.ExitFine, "--decisions", file)
	require.Equal(t, []int{5, 0, 3, 0}, []int{got.Decisions, got.Differ, got.Failed, got.Masked}, "the library reads no annotation")
	notes := map[string]string{}
	for _, r := range got.Rows {
		notes[r.ID] = r.Note
	}
	require.Equal(t, map[string]string{"nothing": "could not be evaluated: decision nothing: decode input: neither actions nor action",
		"elsewhere": `could not be evaluated: there is no environment "moon"`, "bare": "could not be evaluated: it has no result"}, notes)

	writeAt(t, filepath.Join(a.Dir, "policies/x.rego"), "package rampart.rollout\n\nhold contains {\"rule\": \"shop.x\", \"msg\": \"x\"} if input.deployment.metadata.annotations.note != \"a < b & c > d\"\n")
	got = ran(t, a, cmdutil.ExitFine, "--decisions", file)
	require.Equal(t, []int{5, 0, 3, 1}, []int{got.Decisions, got.Differ, got.Failed, got.Masked})

	writeAt(t, filepath.Join(a.Dir, "policies/x.rego"), "package rampart.rollout\n\nhold contains {\"rule\": \"shop.x\", \"msg\": \"x\"} if to_number(input.deployment.name) > 1\n")
	got = ran(t, a, cmdutil.ExitFine, "--decisions", file)
	require.Equal(t, []int{5, 0, 5}, []int{got.Decisions, got.Differ, got.Failed})

	writeAt(t, filepath.Join(a.Dir, "policies/x.rego"), "package rampart.rollout\n\nhold contains x if y\n")
	code, _, said := command(t, a, "policy", "backtest", "--decisions", file)
	require.Equal(t, cmdutil.ExitFailure, code)
	require.Contains(t, said, "policies/x.rego:3: ")
	require.Contains(t, said, "the policies cannot be used")
}

// A rule that was waived is waived again, by the waiver that was recorded; what is wanted is told by time, name and
// environment.
func TestBacktestWaivedAndWanted(t *testing.T) {
	a, d := backtested(t, map[string]string{"policies/data.yaml": alwaysFrozen, "waiver.yaml": `apiVersion: rampart.dev/v1alpha1
kind: Waiver
metadata: {name: hotfix}
spec: {rule: rollout.freeze, reason: the shop is down, approver: sam, expiresAt: "2026-03-03T00:00:00Z"}
`})
	document, err := policy.DecodeDocument(d.Input)
	require.NoError(t, err)
	cfg := policy.Config{Data: []parse.DataFile{{Path: "data.yaml", Content: alwaysFrozen}}, Waivable: []string{"rollout.freeze"}}
	waived := d
	waived.ID = "waived"
	waived.Result, err = json.Marshal(policy.Compile(cfg).JudgeDocument(t.Context(), document))
	require.NoError(t, err)
	require.Contains(t, string(waived.Result), "hotfix (sam")
	later := waived
	later.ID, later.Timestamp = "later", d.Timestamp.Add(time.Hour)
	other := later
	other.ID, other.Input = "other", bytes.ReplaceAll(d.Input, []byte(`"checkout"`), []byte(`"invoice"`))
	file := writeDecisions(t, d, waived, later, other)
	got := ran(t, a, cmdutil.ExitFine, "--decisions", file)
	require.Equal(t, []int{4, 0}, []int{got.Decisions, got.Differ})
	require.Equal(t, 2, ran(t, a, cmdutil.ExitFine, "--decisions", file, "--since", "2026-03-02T12:30:00Z").Decisions)
	require.Equal(t, 4, ran(t, a, cmdutil.ExitFine, "--decisions", file, "--since", "2026-03-02T12:00:00Z").Decisions, "the time itself is included")
	require.Equal(t, 1, ran(t, a, cmdutil.ExitFine, "--decisions", file, "payments/invoice").Decisions)
	require.Equal(t, 3, ran(t, a, cmdutil.ExitFine, "--decisions", file, "checkout").Decisions)
}

func TestBacktestErrors(t *testing.T) {
	a, d := backtested(t, nil)
	file := writeDecisions(t, d)
	for _, c := range []struct {
		want string
		args []string
	}{
		{"name a clone with -C, or the repository with --repo", nil},
		{"there is no decision about checkot", []string{"--decisions", file, "checkot"}},
		{`"soon": want a duration such as 30d or 12h`, []string{"--decisions", file, "--since", "soon"}},
		{"no such file", []string{"--decisions", file + "x"}},
		{`there is no decision whose ID begins with "x"`, []string{"--decisions", file, "--show", "x"}},
		{`there is no environment "dev"`, []string{"--decisions", file, "--env", "dev"}},
	} {
		code, out, said := command(t, a, append([]string{"policy", "backtest"}, c.args...)...)
		require.Equal(t, cmdutil.ExitFailure, code, said)
		require.Empty(t, out)
		require.Contains(t, said, c.want)
	}
}

// An ID that is the beginning of several is an error that names them, unless one is called just so.
func TestBacktestShowSeveral(t *testing.T) {
	a, d := backtested(t, nil)
	longer, other := d, d
	longer.ID, other.ID = "d10", "d20"
	file := writeDecisions(t, d, longer, d, other)
	code, out, said := command(t, a, "policy", "backtest", "--decisions", file, "--show", "d")
	require.Equal(t, cmdutil.ExitFailure, code)
	require.Empty(t, out)
	require.Contains(t, said, `the IDs of 3 decisions begin with "d": give more of one`+"\n  d1 2026-03-02T12:00:00Z payments/checkout\n  d10 2026")
	require.Contains(t, said, "\n  d20 ")
	code, out, _ = command(t, a, "policy", "backtest", "--decisions", file, "--show", "d1")
	require.Equal(t, cmdutil.ExitFine, code)
	require.Contains(t, out, "no difference")
	code, _, _ = command(t, a, "policy", "backtest", "--decisions", file, "--show", "d2")
	require.Equal(t, cmdutil.ExitFine, code)
}

// One decision in full: what was said then, what is said now, and why.
func TestBacktestShow(t *testing.T) {
	a, d := backtested(t, nil)
	file := writeDecisions(t, d)
	code, out, _ := command(t, a, "policy", "backtest", "--decisions", file, "--show", "d1")
	require.Equal(t, cmdutil.ExitFine, code)
	require.Contains(t, out, "no difference")
	writeAt(t, filepath.Join(a.Dir, "policies/data.yaml"), alwaysFrozen)
	code, out, said := command(t, a, "policy", "backtest", "--decisions", file, "--show", "d")
	require.Equal(t, cmdutil.ExitPending, code, said)
	goldenText(t, "backtest-show.txt", out)
	code, out, _ = command(t, a, "policy", "backtest", "--decisions", file, "--show", "d1", "-o", "json")
	require.Equal(t, cmdutil.ExitPending, code)
	var s struct {
		Recorded, Now rollout.Verdicts
		Differs       []string
		Policy        []rollout.Explanation
	}
	require.NoError(t, json.Unmarshal([]byte(out), &s))
	require.Equal(t, []string{"Ramp/v2@5%"}, s.Differs)
	require.Equal(t, rollout.HoldEffect, s.Now.Actions["Ramp/v2@5%"].Effect)
	require.Equal(t, rollout.Allow, s.Recorded.Actions["Ramp/v2@5%"].Effect)
	require.Len(t, s.Policy, 1)
}

// Many decisions, judged at the same time, are reported in one order.
func TestBacktestManyDecisions(t *testing.T) {
	a, d := backtested(t, nil)
	var many []auditlog.Decision
	for i := range 300 {
		one := d
		one.ID, one.Timestamp = fmt.Sprintf("d%03d", i), cmdtest.Now.Add(-time.Duration(i%7)*time.Hour)
		many = append(many, one)
	}
	writeAt(t, filepath.Join(a.Dir, "policies/data.yaml"), alwaysFrozen)
	file := writeDecisions(t, many...)
	first, second := ran(t, a, cmdutil.ExitPending, "--decisions", file), ran(t, a, cmdutil.ExitPending, "--decisions", file)
	require.Equal(t, first, second)
	require.Equal(t, []int{300, 300, 300}, []int{first.Decisions, first.Differ, first.Stricter})
	require.Len(t, first.Rows, 300)
	require.Equal(t, "d006", first.Rows[0].ID)
}
