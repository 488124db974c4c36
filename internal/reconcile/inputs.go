package reconcile

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// inputs is a hash of all that a decision depends on beside Temporal and the time.
type inputs [sha256.Size]byte

// inputsOfKnown are the inputs of a worker deployment that may be known in brief only.
func inputsOfKnown(k *rollout.Known, shared sharedInputs, hash func(*v1alpha1.Connection) string) inputs {
	if k.Full != nil {
		return inputsOf(k.Full, shared, hash)
	}
	return hashOf(k.Tree, k.SpecPath, k.SpecBlob, hash(k.Connection), hash(k.LastConnection), "", k.Rivals,
		shared.policies, shared.environment, shared.facts)
}

func inputsOf(s *rollout.Snapshot, shared sharedInputs, hash func(*v1alpha1.Connection) string) inputs {
	resources := ""
	if len(s.Resources) > 0 || s.ResourcesProblem != nil {
		if b, err := json.Marshal([]any{s.Resources, s.ResourcesProblem}); err == nil {
			resources = string(b)
		}
	}
	return hashOf(s.Record.Tree, s.SpecPath, s.Git.SpecBlob, hash(s.Connection), hash(s.LastConnection), resources,
		rollout.SayRivals(s.Rivals), shared.policies, shared.environment, shared.facts)
}

// hashOf hashes texts, each by itself.
func hashOf(texts ...string) inputs {
	data := make([]byte, 0, 512)
	for _, t := range texts {
		data = append(binary.AppendUvarint(data, uint64(len(t))), t...)
	}
	return sha256.Sum256(data)
}

// connectionHash gives the hash of connections, which many worker deployments share; "" is that of none.
func connectionHash() func(*v1alpha1.Connection) string {
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

// sharedInputs are those that all worker deployments of an environment share.
type sharedInputs struct{ policies, environment, facts string }

func (p *Planner) sharedOf(env rollout.EnvironmentWorld) sharedInputs {
	shared := sharedInputs{policies: p.JudgeFor(env).Digest(), facts: said(p.withOwn(nil))}
	if b, err := json.Marshal([]any{env.Environment, env.Waivers, env.PolicyProblems, env.Unusable, env.Unrecorded}); err == nil {
		sum := sha256.Sum256(b)
		shared.environment = hex.EncodeToString(sum[:])
	}
	return shared
}

// said is what facts say, whatever their age, which always grows.
func said(facts map[string]rollout.Fact) string {
	if len(facts) == 0 {
		return ""
	}
	all := make(map[string][]string, len(facts))
	for name, f := range facts {
		all[name] = []string{string(f.Value), f.Error}
	}
	b, err := json.Marshal(all)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
