package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

func TestGateInputs(t *testing.T) {
	dir := t.TempDir()
	in := rollout.GateInputRef{Kind: rollout.InputSecret, Namespace: "payments", Name: "smoke", Key: "input.json"}
	file := filepath.Join(dir, "payments", "secrets", "smoke", "input.json")
	inputs := gateInputs{dir}
	put := func(text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.RemoveAll(file))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	fails := func(want string) {
		t.Helper()
		_, err := inputs.Digest(in)
		require.ErrorContains(t, err, "key input.json of Secret payments/smoke")
		require.ErrorContains(t, err, want)
	}
	fails("expected at payments/secrets/smoke/input.json")
	put(`{"token": "hunter2"`)
	_, err := inputs.Digest(in)
	require.EqualError(t, err, "key input.json of Secret payments/smoke is not one JSON value")
	put(`"` + strings.Repeat("x", maxGateInput) + `"`)
	fails("more than 1048576 bytes")

	put(`{"token": "hunter2"}`)
	first, err := inputs.Digest(in)
	require.NoError(t, err)
	put(`{"token": "hunter3"}`)
	second, err := inputs.Digest(in)
	require.NoError(t, err)
	require.NotEqual(t, first, second)
	err = temporalPort{inputs: inputs}.StartGate(t.Context(), reconcile.Subject{}, rollout.GateStart{Gate: rollout.GateSpec{InputFrom: &in, InputDigest: first}})
	require.ErrorIs(t, err, rollout.ErrStale, "what was decided on is not what is there")

	// As a mounted volume has it: a link within the folder is followed, one that leads out of it is not.
	outside := filepath.Join(t.TempDir(), "passwords.json")
	require.NoError(t, os.WriteFile(outside, []byte(`"root"`), 0o600))
	require.NoError(t, os.Rename(file, filepath.Join(filepath.Dir(file), "..data")))
	require.NoError(t, os.Symlink("..data", file))
	linked, err := inputs.Digest(in)
	require.NoError(t, err)
	require.Equal(t, second, linked)
	require.NoError(t, os.Remove(file))
	require.NoError(t, os.Symlink(outside, file))
	fails("escapes")
	_, err = gateInputs{filepath.Join(dir, "missing")}.Digest(in)
	require.ErrorContains(t, err, "--gate-inputs")
}
