package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

// sloPolicy holds the second step of v2 as long as no waiver covers it.
const sloPolicy = `package rampart.rollout

hold contains {"rule": "test.slo", "msg": "the error budget is spent"} if {
	input.action.kind == "Ramp"
	input.action.to == 50
}
`

const sloWaiver = `apiVersion: rampart.dev/v1alpha1
kind: Waiver
metadata: {name: launch}
spec:
  rule: test.slo
  reason: the launch cannot wait
  approver: sam@example.com
  expiresAt: 2099-01-01T00:00:00Z
`

// secretValue is a variable's value in a spec, and is to be nowhere in what is recorded.
const secretValue = "hunter2-0123456789"

// event is what the test looks at of rampart history -o json.
type event struct {
	Kind, Who, What, State string
	Why                    []string
	Verdicts               []struct {
		Action, Effect string
		Rules          []string
		Waived         map[string]string
	}
}

func (w *world) history(args ...string) []event {
	w.t.Helper()
	cmd := w.command(binary, append([]string{"history", w.id(), "-n", "0", "-o", "json"}, args...)...)
	out, err := cmd.Output()
	if exit, ok := err.(*exec.ExitError); ok {
		w.t.Logf("%s", exit.Stderr)
	}
	require.NoError(w.t, err)
	var h struct{ Events []event }
	require.NoError(w.t, json.Unmarshal(out, &h))
	return h.Events
}

func (w *world) withSecret(image string) string {
	s := specText{name: w.name, image: image}.String()
	return strings.Replace(s, `image: "`+image+`"`, `image: "`+image+`", env: [{name: TOKEN, value: `+secretValue+`}]`, 1)
}

// A rollout with a step that is held, and goes on by a waiver: decisions on the ref tell it, and so does rampart
// history. The bot is killed on its way, and started anew without its cache. No value of a variable is in what is
// recorded.
func TestDecisionsTellTheStory(t *testing.T) {
	w := newWorld(t)
	lines := filepath.Join(t.TempDir(), "decisions.jsonl")
	record := []string{"--record-decisions", "--decision-log", lines, "--waivable-rule", "test.slo"}
	w.push("add checkout", map[string]string{"workers/checkout.yaml": w.withSecret("app:v1"), "rampart.yaml": crashConfig, "policies/slo.rego": sloPolicy})
	cycle := func() { w.once(record...) }
	w.eventually("v1 is current", func() bool { cycle(); return w.reason() == "RolloutComplete" })
	w.push("v2", map[string]string{"workers/checkout.yaml": w.withSecret("app:v2")})
	killed := false
	w.eventually("v2 ramps", func() bool {
		killed = killed || w.dieWhileRecording(record)
		cycle()
		return w.routing().Desired.Ramping != nil
	})
	require.True(t, killed, "it died between the spool and the push")
	w.eventually("v2 is held", func() bool { cycle(); return strings.Contains(w.file(w.dir()+"/status.yaml"), "test.slo") })
	held := len(w.decisions())
	w.forgetCache()
	for range 3 {
		cycle()
	}
	require.Len(t, w.decisions(), held, "a hold that goes on is recorded once, with an empty cache too")

	bot := w.start(record...)
	w.push("waive", map[string]string{"workers/waiver.yaml": sloWaiver})
	w.awaitReady("app:v2")
	bot.stop()
	w.repo.Fsck()

	recorded := w.decisions()
	for what, ok := range map[string]func(event) bool{
		"the hold":   func(e event) bool { return e.has("hold", "test.slo", "") },
		"the waiver": func(e event) bool { return e.has("allow", "test.slo", "launch") || e.has("warn", "test.slo", "launch") },
		"the end":    func(e event) bool { return e.State == "RolloutComplete" },
		"the hold, why": func(e event) bool {
			return strings.Contains(strings.Join(e.Why, "\n"), "test.slo: the error budget is spent")
		},
	} {
		found := false
		for _, e := range recorded {
			found = found || ok(e)
		}
		require.True(t, found, "%s is recorded: %+v", what, recorded)
	}
	var said []string
	for _, e := range w.history("--repo", w.url, "--cache-dir", w.cache) {
		if e.Kind == "Commit" {
			said = append(said, e.Who+": "+e.What)
		}
	}
	require.Contains(t, said, "person: v2")
	require.Contains(t, said, "person: add checkout")
	require.Equal(t, "rampart", strings.SplitN(said[0], ":", 2)[0])

	// The same from a clone, once it has the ref.
	clone := filepath.Join(t.TempDir(), "clone")
	w.repo.Git("clone", "--quiet", w.repo.URL(), clone)
	w.repo.Git("-C", clone, "--git-dir", filepath.Join(clone, ".git"), "fetch", "--quiet", "origin", "+refs/rampart/decisions/*:refs/rampart/decisions/*")
	require.Equal(t, w.history("--repo", w.url, "--cache-dir", w.cache), w.history("-C", clone))

	w.requireNoSecret(lines)
}

// dieWhileRecording runs a cycle that kills itself before it pushes decisions, and reports whether it did.
func (w *world) dieWhileRecording(record []string) bool {
	w.t.Helper()
	out, died, _ := w.faulty("decisions:before", w.runArgs(append([]string{"--once"}, record...)...)...)
	rows.note(w.t, out)
	return died
}

// decisions are what is recorded, the newest first.
func (w *world) decisions() []event {
	w.t.Helper()
	var out []event
	for _, e := range w.history("--repo", w.url, "--cache-dir", w.cache) {
		if e.Kind == "Decision" {
			out = append(out, e)
		}
	}
	return out
}

// has reports whether a verdict has that effect with a rule, and a waiver of it unless that is "".
func (e event) has(effect, rule, waiver string) bool {
	for _, v := range e.Verdicts {
		for _, r := range v.Rules {
			if v.Effect == effect && r == rule && strings.HasPrefix(v.Waived[rule], waiver) && (waiver != "" || v.Waived[rule] == "") {
				return true
			}
		}
	}
	return false
}

// requireNoSecret looks through every line, and every object that the refs lead to.
func (w *world) requireNoSecret(lines string) {
	w.t.Helper()
	text, err := os.ReadFile(lines)
	require.NoError(w.t, err)
	require.Contains(w.t, string(text), `"name":"TOKEN","value":"***"`, "the variable is there")
	require.NotContains(w.t, string(text), secretValue)
	segments := 0
	unpack, err := zstd.NewReader(nil)
	require.NoError(w.t, err)
	defer unpack.Close()
	for _, line := range strings.Split(w.repo.Git("rev-list", "--objects", "--glob=refs/rampart/decisions"), "\n") {
		hash, name, _ := strings.Cut(line, " ")
		content := w.repo.Git("cat-file", w.repo.Git("cat-file", "-t", hash), hash)
		if strings.HasSuffix(name, ".zst") {
			lines, err := unpack.DecodeAll([]byte(w.repo.Blobs(hash)[0]), nil)
			require.NoError(w.t, err)
			require.Contains(w.t, string(lines), `{"about":"`)
			content, segments = string(lines), segments+1
		}
		require.NotContains(w.t, content, secretValue)
		require.NotContains(w.t, content, "hunter2")
	}
	require.Positive(w.t, segments)
}
