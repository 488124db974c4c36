package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// maxGateInput bounds the input of a gate: Temporal takes no more in one start.
const maxGateInput = 1 << 20

// gateInputs are the inputs of gates that the bot is given as files, <namespace>/configmaps|secrets/<name>/<key> below a
// folder. That a Secret is there is what allows gates of its namespace to use it; nothing outside the folder is ever read.
type gateInputs struct{ dir string }

var _ reconcile.Inputs = gateInputs{}

// read gives an input's content, which is one JSON value.
func (g gateInputs) read(in rollout.GateInputRef) (data json.RawMessage, err error) {
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

// digestOf stands for the content, together with where it comes from.
func digestOf(in rollout.GateInputRef, data []byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n", in)
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil))
}

// Digest stands for an input's content.
func (g gateInputs) Digest(in rollout.GateInputRef) (string, error) {
	data, err := g.read(in)
	if err != nil {
		return "", err
	}
	return digestOf(in, data), nil
}

// StartGate starts a gate, with its input read only now. An input that changed since it was decided on is decided again.
func (t temporalPort) StartGate(ctx context.Context, on reconcile.Subject, start rollout.GateStart) error {
	if in := start.Gate.InputFrom; in != nil {
		data, err := t.inputs.read(*in)
		if err != nil {
			return err
		}
		if digestOf(*in, data) != start.Gate.InputDigest {
			return fmt.Errorf("%s changed meanwhile: %w", in, rollout.ErrStale)
		}
		start.Content = data
	}
	return t.pool.StartGate(ctx, on.Connection, on.TemporalNamespace, start)
}
