package cmdutil

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/index"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

func TestGateInputs(t *testing.T) {
	dir := t.TempDir()
	in := rollout.GateInputRef{Kind: rollout.InputSecret, Namespace: "payments", Name: "smoke", Key: "input.json"}
	file := filepath.Join(dir, "payments", "secrets", "smoke", "input.json")
	inputs := GateInputs{dir, []byte("0123456789abcdef0123456789abcdef")}
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
	err = TemporalPort{Inputs: inputs}.StartGate(t.Context(), rollout.Subject{}, rollout.GateStart{Gate: rollout.GateSpec{InputFrom: &in, InputDigest: first}})
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
	_, err = GateInputs{dir: filepath.Join(dir, "missing")}.Digest(in)
	require.ErrorContains(t, err, "--gate-inputs")
}

// A gate takes no input of another namespace, however a spec asks for it. The spec is refused, or the file is not among
// its own.
func TestGateInputsOfAnotherNamespace(t *testing.T) {
	dir := t.TempDir()
	for _, namespace := range []string{"payments", "shop"} {
		name := "smoke"
		if namespace == "shop" {
			name = "own"
		}
		folder := filepath.Join(dir, namespace, "secrets", name)
		require.NoError(t, os.MkdirAll(folder, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "input.json"), []byte(`"hunter2"`), 0o600))
	}
	inputs := GateInputs{dir, []byte(strings.Repeat("k", minGateKey))}
	spec := func(ref string) string {
		return `apiVersion: temporal.io/v1alpha1
kind: TemporalWorkerDeployment
metadata: {name: checkout, namespace: shop}
spec:
  workerOptions: {connectionRef: {name: temporal}, temporalNamespace: shop}
  rollout: {strategy: AllAtOnce, gate: {workflowType: Smoke, inputFrom: {secretKeyRef: ` + ref + `}}}
  template: {spec: {containers: [{name: worker, image: "x:1"}]}}
`
	}
	for ref, says := range map[string]string{
		`{name: own, key: input.json}`:                                         "",
		`{name: smoke, key: input.json}`:                                       "key input.json of Secret shop/smoke is not among the files of --gate-inputs: it is expected at shop/secrets/smoke/input.json",
		`{name: smoke, namespace: payments, key: input.json}`:                  "secretKeyRef.namespace: unknown field",
		`{name: payments/smoke, key: input.json}`:                              "secretKeyRef.name: ",
		`{name: ../../payments/secrets/smoke, key: input.json}`:                "secretKeyRef.name: ",
		`{name: .., key: input.json}`:                                          "secretKeyRef.name: ",
		`{name: own, key: ../../../payments/secrets/smoke/input.json}`:         "secretKeyRef.key: ",
		`{name: own, key: ..}`:                                                 "secretKeyRef.key: ",
		`{name: own, key: "..\\..\\..\\payments\\secrets\\smoke\\input.json"}`: "secretKeyRef.key: ",
	} {
		w, err := index.ReadFiles([]rollout.TextFile{{Path: "checkout.yaml", Text: spec(ref)}})
		require.NoError(t, err)
		s := w.Environments[0].Deployments[0]
		if s.Spec == nil {
			require.Contains(t, s.Problems[0].Message, says, ref)
			continue
		}
		for _, in := range rollout.GateInputs(s.Deployment.Namespace, s.Spec.Spec.Rollout) {
			_, err = inputs.Digest(in)
			started := TemporalPort{Inputs: inputs}.StartGate(t.Context(), rollout.Subject{}, rollout.GateStart{Gate: rollout.GateSpec{InputFrom: &in, InputDigest: "x"}})
			if says == "" {
				require.NoError(t, err)
				require.ErrorIs(t, started, rollout.ErrStale, "it was read")
				continue
			}
			require.EqualError(t, err, says)
			require.EqualError(t, started, says)
		}
	}
	// Nor is it where nothing looked at the spec.
	for _, in := range []rollout.GateInputRef{
		{Kind: rollout.InputSecret, Namespace: "shop", Name: "../../payments/secrets/smoke", Key: "input.json"},
		{Kind: rollout.InputSecret, Namespace: "shop", Name: "own", Key: "../../../payments/secrets/smoke/input.json"},
		{Kind: rollout.InputSecret, Namespace: "shop/../payments", Name: "smoke", Key: "input.json"},
		{Kind: rollout.InputSecret, Namespace: "", Name: "smoke", Key: "input.json"},
	} {
		require.False(t, strings.HasPrefix(in.Path(), "shop/"))
		_, err := inputs.Digest(in)
		require.ErrorContains(t, err, "is not a name")
	}
}

// The digest of a Secret depends on the bot's key alone beside the content. It is the same for every bot that has the
// key, and says nothing to who has not. That of a ConfigMap is the plain one.
func TestGateKey(t *testing.T) {
	dir := t.TempDir()
	for _, kind := range []string{"configmaps", "secrets"} {
		folder := filepath.Join(dir, "payments", kind, "smoke")
		require.NoError(t, os.MkdirAll(folder, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "pin"), []byte("1234"), 0o600))
	}
	secret := rollout.GateInputRef{Kind: rollout.InputSecret, Namespace: "payments", Name: "smoke", Key: "pin"}
	public := secret
	public.Kind = rollout.InputConfigMap
	keyFile := func(text string) string {
		file := filepath.Join(t.TempDir(), "key")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	digest := func(keyFile string, in rollout.GateInputRef) string {
		t.Helper()
		inputs, err := TemporalFlags{gateInputDir: dir, gateKey: keyFile}.GateInputs()
		require.NoError(t, err)
		out, err := inputs.Digest(in)
		require.NoError(t, err)
		return out
	}
	plain := func(in rollout.GateInputRef) string {
		return fmt.Sprintf("%x", sha256.Sum256([]byte(in.String()+"\n1234")))
	}
	one, other := keyFile(strings.Repeat("k", 32)), keyFile(strings.Repeat("l", 32))
	require.Equal(t, digest(one, secret), digest(keyFile(strings.Repeat("k", 32)+"\n"), secret), "after a restart, and for another bot")
	require.NotEqual(t, digest(one, secret), digest(other, secret))
	require.NotEqual(t, plain(secret), digest(one, secret))
	require.Equal(t, plain(public), digest(one, public))
	require.Equal(t, plain(public), digest("", public))

	_, err := GateInputs{dir: dir}.Digest(secret)
	require.EqualError(t, err, "key pin of Secret payments/smoke: an input from a Secret needs --gate-key-file")
	err = TemporalPort{Inputs: GateInputs{dir: dir}}.StartGate(t.Context(), rollout.Subject{},
		rollout.GateStart{Gate: rollout.GateSpec{InputFrom: &secret, InputDigest: plain(secret)}})
	require.ErrorIs(t, err, errNoGateKey)
	_, err = TemporalFlags{gateKey: keyFile(strings.Repeat("k", 31) + "\n")}.GateInputs()
	require.ErrorContains(t, err, "has 31 bytes, expected 32 or more")
	require.NotContains(t, err.Error(), "kkk")
	_, err = TemporalFlags{gateKey: filepath.Join(dir, "missing")}.GateInputs()
	require.ErrorContains(t, err, "--gate-key-file: open ")
}
