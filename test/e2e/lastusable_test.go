package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// prodEnvironment is a rampart.yaml with one environment.
const prodEnvironment = `apiVersion: rampart.dev/v1alpha1
kind: Config
spec:
  environments:
    - {name: prod, specs: ["workers/**"], output: {path: deploy}}
`

// In mid-ramp a push breaks rampart.yaml, and the candidate begins to fail. It is turned back all the same, by the bot
// that runs and by one that starts with nothing. Whatever else the push asks for waits until the file is mended.
func TestBrokenConfigurationInMidRamp(t *testing.T) {
	for name, c := range map[string]struct {
		broken  string
		restart bool
	}{
		"all of it, for a bot that runs":              {broken: prodEnvironment + "    - [\n"},
		"one environment, for a bot that starts anew": {broken: strings.Replace(prodEnvironment, "path: deploy", "path: ../deploy", 1), restart: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			b := w.start()
			w.push("add checkout", map[string]string{"rampart.yaml": prodEnvironment, specFile: specText{image: "app:v1", strategy: firstStep}.String()})
			w.awaitReady("app:v1")
			w.pushSpec("a bad one", specText{image: "app:bad", strategy: firstStep})
			w.eventually("50%", func() bool { return slices.Contains(w.calls(), "ramp bad 50") && w.reason() == "Ramping" })
			bad := w.build("app:bad")

			if c.restart {
				b.stop()
				w.forgetCache()
			}
			w.push("oops", map[string]string{"rampart.yaml": c.broken})
			if c.restart {
				w.start()
			}
			w.awaitReason("InvalidConfiguration")
			require.Contains(t, w.message(), "rampart.yaml")
			w.settle()
			require.Equal(t, []string{"current v1", "ramp bad 50"}, w.calls(), "everything stays as it is")

			w.traffic()
			w.eventually("turned back", func() bool {
				return slices.Contains(w.calls(), "ramp none") && strings.Contains(w.message(), "Meanwhile: ")
			})
			require.Equal(t, "InvalidConfiguration", w.reason())
			require.Contains(t, w.message(), "Meanwhile: "+bad+" was turned back by rollout.canary: ")
			require.Equal(t, []string{"rollout.canary"}, barredBy(w.routing()))
			w.pushSpec("v2", specText{image: "app:v2"})
			w.settle()
			require.Equal(t, []string{"current v1", "ramp bad 50", "ramp none"}, w.calls(), "what is asked for meanwhile waits")
			require.Empty(t, w.build("app:v2"))

			w.push("mended", map[string]string{"rampart.yaml": prodEnvironment})
			w.eventually("v2 begins", func() bool { return w.build("app:v2") != "" })
			w.repo.Fsck()
		})
	}
}

// A person takes a build back while rampart.yaml is broken, and how it was is not known: by what the record says of
// itself.
func TestRollbackByTheRecordAlone(t *testing.T) {
	w := newWorld(t)
	b := w.start()
	w.push("add checkout", map[string]string{"rampart.yaml": prodEnvironment, specFile: specText{image: "app:v1", strategy: slowSteps}.String()})
	w.awaitReady("app:v1")
	w.pushSpec("v2", specText{image: "app:v2", strategy: slowSteps})
	w.eventually("10%", func() bool { return slices.Contains(w.calls(), "ramp v2 10") && w.reason() == "Ramping" })
	v2 := w.build("app:v2")
	b.stop()
	w.push("oops", map[string]string{"rampart.yaml": "apiVersion: rampart.dev/v1alpha1\nkind: Config\nspec: {environments: [\n"})
	w.repo.Git("update-ref", "refs/heads/main", w.repo.Git("commit-tree", "refs/heads/main^{tree}", "-m", "without what was before"))
	w.forgetCache()

	out, err := w.command(binary, w.runArgs("--once")...).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "nothing moves but by command")
	require.Equal(t, []string{"current v1", "ramp v2 10"}, w.calls(), "nothing moves but by command")
	done := w.say("rollback", "--reason", "timeouts")
	require.Contains(t, done.Did, "take traffic back from "+v2)
	require.Equal(t, "prod", done.Environment)
	require.Equal(t, []string{"current v1", "ramp v2 10", "ramp none"}, w.changes())
	require.Equal(t, []string{person}, barredBy(w.routing()))
	w.repo.Fsck()
}
