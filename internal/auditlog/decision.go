package auditlog

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/internal/mask"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Path of every decision: the root of the packages that were asked.
const Path = "rampart"

// Decision as the log has it; the names of its JSON fields are those of OPA's decision log.
type Decision struct {
	// ID is a digest of the content: the same decision has the same ID wherever it is made.
	ID string `json:"decision_id"`
	// Timestamp is the input's now: whole seconds, UTC.
	Timestamp time.Time `json:"timestamp"`
	Path      string    `json:"path"`
	// Labels of the bot: id, version.
	Labels map[string]string `json:"labels"`
	// Bundles by name, with the digest of policies and data as revision.
	Bundles map[string]Bundle `json:"bundles,omitempty"`
	// Input of the policies, with "actions" in place of "action"; canonical JSON, masked.
	Input json.RawMessage `json:"input"`
	// Result is rollout.Verdicts; canonical JSON, masked.
	Result json.RawMessage `json:"result"`
	// Masked are JSON pointers of what was masked, sorted: /input/..., /result/....
	Masked []string `json:"masked,omitempty"`
}

// Bundle names policies and data by what they mean.
type Bundle struct {
	Revision string `json:"revision"`
}

// Judged is what a decision is made of.
type Judged struct {
	Now    time.Time
	Labels map[string]string
	// Bundles as in Decision. Where it is empty there is one, "rampart", with the verdicts' digest as revision.
	Bundles map[string]Bundle
	// Input is the document that the policies were asked about, with all its actions.
	Input    json.RawMessage
	Verdicts rollout.Verdicts
}

// NewDecision makes a decision, masked. Errors: an input that is not JSON or does not name its deployment.
func NewDecision(j Judged, m *mask.Masker) (Decision, error) {
	result, err := json.Marshal(j.Verdicts)
	if err != nil {
		return Decision{}, fmt.Errorf("encode verdicts: %w", err)
	}
	d := Decision{Timestamp: j.Now.UTC().Truncate(time.Second), Path: Path,
		Labels: maps.Clone(j.Labels), Bundles: maps.Clone(j.Bundles)}
	if len(d.Bundles) == 0 {
		d.Bundles = map[string]Bundle{Path: {Revision: j.Verdicts.PolicyDigest}}
	}
	if d.Input, d.Result, d.Masked, err = m.Mask(j.Input, result); err != nil {
		return Decision{}, err
	}
	if _, err := d.Deployment(); err != nil {
		return Decision{}, err
	}
	d.ID = d.digest()
	return d, nil
}

// Deployment that was decided about.
func (d Decision) Deployment() (rollout.Name, error) {
	s, err := d.subject()
	return s.deployment, err
}

// subject is what a decision is about. Two environments may have worker deployments of one name.
type subject struct {
	environment string
	deployment  rollout.Name
}

// String is what the lines of segments have as "about".
func (s subject) String() string { return s.environment + "/" + s.deployment.String() }

func (d Decision) subject() (subject, error) {
	var in struct {
		Environment struct {
			Name string `json:"name"`
		} `json:"environment"`
		Deployment rollout.Name `json:"deployment"`
	}
	if err := json.Unmarshal(d.Input, &in); err != nil {
		return subject{}, fmt.Errorf("decode the decision's input: %w", err)
	}
	if in.Deployment.Namespace == "" || in.Deployment.Name == "" {
		return subject{}, fmt.Errorf("the decision's input does not say which worker deployment it is about: "+
			"input.deployment has namespace %q and name %q", in.Deployment.Namespace, in.Deployment.Name)
	}
	return subject{in.Environment.Name, in.Deployment}, nil
}

// digest is 128 bits of SHA-256 over the other fields, written as a UUID of version 8 (RFC 9562).
func (d Decision) digest() string {
	h := sha256.New()
	part := func(b []byte) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
		h.Write(b)
	}
	part([]byte(d.Path))
	part([]byte(d.Timestamp.UTC().Format(time.RFC3339)))
	for _, k := range slices.Sorted(maps.Keys(d.Labels)) {
		part([]byte(k))
		part([]byte(d.Labels[k]))
	}
	for _, k := range slices.Sorted(maps.Keys(d.Bundles)) {
		part([]byte(k))
		part([]byte(d.Bundles[k].Revision))
	}
	part(d.Input)
	part(d.Result)
	for _, e := range d.Masked {
		part([]byte(e))
	}
	sum := h.Sum(nil)[:16]
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	x := hex.EncodeToString(sum)
	return x[:8] + "-" + x[8:12] + "-" + x[12:16] + "-" + x[16:20] + "-" + x[20:]
}
