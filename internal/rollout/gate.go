package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// GateSpec is one gate at one point of one attempt to roll out one build.
type GateSpec struct {
	Deployment   Name   `json:"deployment"`
	BuildID      string `json:"buildID"`
	TemplateHash string `json:"templateHash"`
	// Point is "first" for the gate before any traffic. Else it is "step-<n>" for the gate that has to pass while
	// traffic is at step n, from 1.
	Point        string          `json:"point"`
	Attempt      int             `json:"attempt"`
	WorkflowType string          `json:"workflowType"`
	Input        json.RawMessage `json:"input,omitempty"`
	// InputFrom is where the input comes from if it is not in the spec; its content is in no snapshot, plan or record.
	InputFrom *GateInputRef `json:"inputFrom,omitempty"`
	// InputDigest stands for that content: a gate whose input changed runs anew.
	InputDigest string                 `json:"inputDigest,omitempty"`
	Timeout     time.Duration          `json:"timeout"`
	OnFailure   v1alpha1.OnGateFailure `json:"onFailure"`
}

// WorkflowID of the gate's test workflow on a task queue. It holds all that the gate's meaning depends on, so that a
// restarted bot finds its own and a changed gate runs anew.
func (g GateSpec) WorkflowID(queue string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%s", g.TemplateHash, g.WorkflowType, g.Input)
	if g.InputDigest != "" {
		fmt.Fprintf(h, "\n%s\n%s", g.InputFrom, g.InputDigest)
	}
	return fmt.Sprintf("rampart-gate:%s:%s:%s:%s:%d:%s", g.Deployment, g.BuildID, g.Point, queue, g.Attempt,
		hex.EncodeToString(h.Sum(nil))[:12])
}

// InputKind is a kind of object that holds a gate's input.
type InputKind string

// The kinds of objects that hold gates' inputs.
const (
	InputConfigMap InputKind = "ConfigMap"
	InputSecret    InputKind = "Secret"
)

// GateInputRef names one key of a ConfigMap or Secret in the worker deployment's own namespace.
type GateInputRef struct {
	Kind      InputKind `json:"kind"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Key       string    `json:"key"`
}

// folders of the kinds among the files that the bot is given.
func (k InputKind) folder() string {
	if k == InputSecret {
		return "secrets"
	}
	return "configmaps"
}

// Path is where the bot finds the input among the files that it is given: <namespace>/configmaps|secrets/<name>/<key>,
// as a mounted volume has it.
func (r GateInputRef) Path() string { return path.Join(r.Namespace, r.Kind.folder(), r.Name, r.Key) }

// String is kind, namespace, name and key.
func (r GateInputRef) String() string {
	return fmt.Sprintf("key %s of %s %s/%s", r.Key, r.Kind, r.Namespace, r.Name)
}

// InputOf is where a gate's input comes from; nil for one in the spec, and for no gate.
func InputOf(namespace string, g *v1alpha1.Gate) *GateInputRef {
	switch {
	case g == nil || g.InputFrom == nil:
	case g.InputFrom.ConfigMapKeyRef != nil:
		return &GateInputRef{InputConfigMap, namespace, g.InputFrom.ConfigMapKeyRef.Name,
			g.InputFrom.ConfigMapKeyRef.Key}
	case g.InputFrom.SecretKeyRef != nil:
		return &GateInputRef{InputSecret, namespace, g.InputFrom.SecretKeyRef.Name, g.InputFrom.SecretKeyRef.Key}
	}
	return nil
}

// GateInputs are the inputs of a rollout's gates that do not come from the spec itself, in the order of the gates.
func GateInputs(namespace string, r v1alpha1.RolloutStrategy) []GateInputRef {
	gates := []*v1alpha1.Gate{r.Gate}
	for i := range r.Steps {
		gates = append(gates, r.Steps[i].Gate)
	}
	var out []GateInputRef
	for _, g := range gates {
		if in := InputOf(namespace, g); in != nil {
			out = append(out, *in)
		}
	}
	return out
}

// GateInput is what is known of a gate's input from outside: never its content.
type GateInput struct {
	// Digest stands for the content; "" if it could not be read.
	Digest string `json:"digest,omitempty"`
	// Problem says why it could not be read.
	Problem string `json:"problem,omitempty"`
}
