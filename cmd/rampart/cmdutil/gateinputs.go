package cmdutil

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// maxGateInput bounds the input of a gate: Temporal takes no more in one start.
const maxGateInput = 1 << 20

// minGateKey is the least length of a gate key: 32 bytes, as `openssl rand -hex 16` gives them, have 128 bits.
const minGateKey = 32

// GateInputs are the inputs of gates that the bot is given as files, <namespace>/configmaps|secrets/<name>/<key> below
// a folder. That a Secret is there is what allows gates of its namespace to use it; nothing outside the folder is ever
// read.
type GateInputs struct {
	dir string
	// key of the digests of Secrets; nil: there is none, and Secrets are not used.
	key []byte
}

var _ reconcile.Inputs = GateInputs{}

// GateInputs gives the gate inputs of --gate-inputs, with the key of --gate-key-file. A key of less than 32 bytes is an
// error.
func (f TemporalFlags) GateInputs() (GateInputs, error) {
	if f.gateKey == "" {
		return GateInputs{dir: f.gateInputDir}, nil
	}
	data, err := os.ReadFile(f.gateKey)
	if err != nil {
		return GateInputs{}, fmt.Errorf("--gate-key-file: %w", err)
	}
	key := bytes.TrimSpace(data)
	if len(key) < minGateKey {
		return GateInputs{}, fmt.Errorf("--gate-key-file: %s has %d bytes, expected %d or more random ones, such as "+
			"those of: openssl rand -hex 32",
			f.gateKey, len(key), minGateKey)
	}
	return GateInputs{f.gateInputDir, key}, nil
}

// read gives an input's content, which is one JSON value.
func (g GateInputs) read(in rollout.GateInputRef) (data json.RawMessage, err error) {
	// specs that say so are refused, and this is what keeps namespaces apart
	for _, name := range []string{in.Namespace, in.Name, in.Key} {
		if name == "" || name == "." || name == ".." || strings.ContainsAny(name, `/\`) {
			return nil, fmt.Errorf("%s: %q is not a name", in, name)
		}
	}
	root, err := os.OpenRoot(g.dir)
	if err != nil {
		return nil, fmt.Errorf("--gate-inputs: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	file, err := root.Open(in.Path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is not among the files of --gate-inputs: it is expected at %s", in, in.Path())
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	data, err = io.ReadAll(io.LimitReader(file, maxGateInput+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", in, err)
	case len(data) > maxGateInput:
		return nil, fmt.Errorf("%s has more than %d bytes", in, maxGateInput)
	case !json.Valid(data):
		// What is wrong with it is not said: it may be a secret.
		return nil, fmt.Errorf("%s is not one JSON value", in)
	}
	return data, nil
}

// errNoGateKey keeps Secrets from being used without a key. Their plain hash would be in the ID of a workflow, and what
// is short could be guessed from it.
var errNoGateKey = errors.New("an input from a Secret needs --gate-key-file")

// digestOf stands for the content, together with where it comes from. That of a Secret has a key of the bot's own, so
// that who sees it cannot try contents.
func (g GateInputs) digestOf(in rollout.GateInputRef, data []byte) (string, error) {
	h := sha256.New()
	if in.Kind == rollout.InputSecret {
		if g.key == nil {
			return "", fmt.Errorf("%s: %w", in, errNoGateKey)
		}
		h = hmac.New(sha256.New, g.key)
	}
	fmt.Fprintf(h, "%s\n", in)
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Digest stands for an input's content.
func (g GateInputs) Digest(in rollout.GateInputRef) (string, error) {
	data, err := g.read(in)
	if err != nil {
		return "", err
	}
	return g.digestOf(in, data)
}

// StartGate starts a gate, with its input read only now. An input that changed since it was decided on is decided
// again.
func (t TemporalPort) StartGate(ctx context.Context, on rollout.Subject, start rollout.GateStart) error {
	if in := start.Gate.InputFrom; in != nil {
		data, err := t.Inputs.read(*in)
		if err != nil {
			return err
		}
		digest, err := t.Inputs.digestOf(*in, data)
		if err != nil {
			return err
		}
		if digest != start.Gate.InputDigest {
			return fmt.Errorf("%s changed meanwhile: %w", in, rollout.ErrStale)
		}
		if in.Kind == rollout.InputSecret {
			if err := t.TakesSecrets(on.Connection); err != nil {
				return fmt.Errorf("%s: %w", in, err)
			}
		}
		start.Content = data
	}
	return t.Pool.StartGate(ctx, on.Connection, on.TemporalNamespace, start)
}
