package resync

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// InputsOfEntry are the inputs of a worker deployment by its index entry.
func InputsOfEntry(k *rollout.IndexEntry, shared Shared, hash ConnectionHash) rollout.Inputs {
	if k.Full != nil {
		return InputsOf(k.Full, shared, hash)
	}
	return hashOf(k.Tree, k.SpecPath, k.SpecBlob, hash(k.Connection), hash(k.LastConnection), "", k.Rivals,
		shared.Policies, shared.Environment, shared.Facts)
}

// InputsOf are the inputs of a worker deployment whose files were read.
func InputsOf(s *rollout.Snapshot, shared Shared, hash ConnectionHash) rollout.Inputs {
	resources := ""
	if len(s.Resources) > 0 || s.ResourcesProblem != nil {
		if b, err := json.Marshal([]any{s.Resources, s.ResourcesProblem}); err == nil {
			resources = string(b)
		}
	}
	return hashOf(s.Record.Tree, s.SpecPath, s.Git.SpecBlob, hash(s.Connection), hash(s.LastConnection), resources,
		rollout.SayRivals(s.Rivals), shared.Policies, shared.Environment, shared.Facts)
}

// hashOf hashes texts, each by itself.
func hashOf(texts ...string) rollout.Inputs {
	data := make([]byte, 0, 512)
	for _, t := range texts {
		data = append(binary.AppendUvarint(data, uint64(len(t))), t...)
	}
	return sha256.Sum256(data)
}

// ConnectionHash gives the hash of a connection.
type ConnectionHash func(*v1alpha1.Connection) string

// NewConnectionHash remembers the hashes of connections, which many worker deployments share; "" is that of none.
func NewConnectionHash() ConnectionHash {
	known := map[*v1alpha1.Connection]string{nil: ""}
	return func(c *v1alpha1.Connection) string {
		h, ok := known[c]
		if !ok {
			h = c.Spec.Hash()
			known[c] = h
		}
		return h
	}
}

// Shared are the inputs that all worker deployments of an environment share, each as a hash or a text.
type Shared struct{ Policies, Environment, Facts string }
