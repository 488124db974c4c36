package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// secretInput is what SmokeSecret wants to be started with.
const secretInput = "hunter2-hunter2"

// gateKey is the key of the bots' digests.
const gateKey = "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd6"

// takesInput is an image with a gate that completes only with the secret as its input.
func takesInput() temporalenv.Image {
	image := temporalenv.DefaultImage(queue)
	common := image.Register
	image.Register = func(w worker.Registry) {
		common(w)
		w.RegisterWorkflowWithOptions(func(_ workflow.Context, in struct{ Token string }) error {
			if in.Token != secretInput {
				return fmt.Errorf("a token of %d bytes", len(in.Token))
			}
			return nil
		}, workflow.RegisterOptions{Name: "SmokeSecret", VersioningBehavior: workflow.VersioningBehaviorPinned})
	}
	return image
}

// activitiesOnly is an image without a workflow.
func activitiesOnly() temporalenv.Image {
	return temporalenv.Image{TaskQueues: []string{queue}, ActivitiesOnly: true, Register: func(w worker.Registry) {
		registerCharge(w)
	}}
}

func registerCharge(w worker.Registry) {
	w.RegisterActivityWithOptions(func(context.Context) error { return nil }, activity.RegisterOptions{Name: temporalenv.Charge})
}

func stepGates(first, second string) string {
	return fmt.Sprintf("{strategy: Progressive, steps: [{rampPercentage: 10, pauseDuration: 1s, gate: {workflowType: %s}}, "+
		"{rampPercentage: 50, pauseDuration: 1s, gate: {workflowType: %s}}], rollback: {window: 1s}%%s}", first, second)
}

// pointsOf are the points that gates were started for, in order, with images' tags in place of build IDs.
func (w *world) pointsOf() []string {
	var out []string
	for _, id := range w.gateStarts() {
		parts := strings.Split(buildSuffix.ReplaceAllString(id, "$1"), ":")
		out = append(out, parts[2]+" "+parts[3])
	}
	return out
}

func TestGateOnEachStep(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.pushSpec("add checkout", specText{image: "app:v1"})
	w.awaitReady("app:v1")
	w.pushSpec("v2", specText{image: "app:v2", strategy: stepGates("Smoke", "Smoke"), gate: "{workflowType: Smoke}"})
	w.awaitReady("app:v2")
	require.Equal(t, []string{"current v1", "ramp v2 10", "ramp v2 50", "current v2"}, w.calls())
	require.Equal(t, []string{"v2 first", "v2 step-1", "v2 step-2"}, w.pointsOf())

	w.pushSpec("v3, whose second step fails", specText{image: "app:v3", strategy: stepGates("Smoke", "SmokeFails")})
	w.awaitReason("RolledBack")
	require.Equal(t, []string{"ramp v3 10", "ramp v3 50", "ramp none"}, w.calls()[4:])
	require.Equal(t, []string{"gate SmokeFails"}, barredBy(w.routing()))
	w.settle()
	require.Len(t, w.calls(), 7, "and it stays turned back")
}

func TestGateInputFromSecret(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "shop", "secrets", "smoke", "input.json")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte(`{"Token": "`+"wrong-"+secretInput+`"}`), 0o600))
	named := w.server.Address() // a Secret goes only where the bot's own configuration says
	keyless := w.start("--gate-inputs", dir, "--temporal-address", named)
	const gate = "{workflowType: SmokeSecret, inputFrom: {secretKeyRef: {name: smoke, key: input.json}}}"
	w.pushSpec("add checkout", specText{image: "app:v4", gate: gate})
	w.awaitReason("PlanGenerationFailed")
	require.Contains(t, w.status().Conditions[0].Message, "needs --gate-key-file")
	require.Empty(t, w.gateStarts())
	keyless.stop()

	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, []byte(gateKey), 0o600))
	first := w.start("--gate-inputs", dir, "--gate-key-file", key, "--temporal-address", named)
	w.awaitReason("GateFailed")
	first.stop()
	bot := w.start("--gate-inputs", dir, "--gate-key-file", key, "--temporal-address", named)
	w.settle()
	require.Len(t, w.gateStarts(), 1, "a restarted bot finds its own")
	require.NoError(t, os.WriteFile(file, []byte(`{"Token": "`+secretInput+`"}`), 0o600))
	w.awaitReady("app:v4") // the input changed: it runs anew
	require.Len(t, w.gateStarts(), 2)

	bot.stop()
	out, err := w.command(binary, "observe", "--repo", w.url, "--cache-dir", t.TempDir(), "--gate-inputs", dir, "--gate-key-file", key,
		"--temporal-address", named).CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, secret := range []string{secretInput, gateKey} {
		require.NotContains(t, first.log.String()+bot.log.String(), secret)
		require.NotContains(t, w.repo.Git("log", "-p", "--all"), secret)
		require.NotContains(t, string(out), secret)
	}
}

// A version that serves no workflows cannot pass a gate: that is said, and it is not turned back for it.
func TestGateOfActivitiesOnly(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.pushSpec("add checkout", specText{image: "app:v5", gate: "{workflowType: Smoke, onFailure: Rollback}", extra: "  progressDeadlineSeconds: 3\n"})
	w.awaitReason("GateFailed")
	require.Contains(t, w.status().Conditions[0].Message, "has no workflow task queue")
	require.Empty(t, w.routing().Bars)
	w.pushSpec("no gate", specText{image: "app:v5"})
	w.awaitReady("app:v5")
	require.True(t, slices.Equal([]string{"current v5"}, w.calls()), w.calls())
}
