package auditlog

import (
	"encoding/json"
	"fmt"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// key stands for what makes a decision another than the last one.
type key uint64

// FNV-1a, which takes strings as they are.
const (
	fnvOffset key = 14695981039346656037
	fnvPrime  key = 1099511628211
)

// with adds a text and its end.
func (k key) with(s string) key {
	for i := range len(s) {
		k = (k ^ key(s[i])) * fnvPrime
	}
	return (k ^ 0xff) * fnvPrime // no byte of UTF-8
}

// verdict adds an effect and the rules that found something, each once however often it did.
func (k key) verdict(v rollout.Verdict) key {
	k = k.with(string(v.Effect)).with(string(v.Drift))
	for i, f := range v.Findings {
		if i > 0 {
			last := v.Findings[i-1]
			if last.Rule == f.Rule && last.Package == f.Package && last.Effect == f.Effect && last.Waived == f.Waived {
				continue
			}
		}
		k = k.with(f.Package).with(f.Rule).with(string(f.Effect)).with(f.Waived)
	}
	return k.with("")
}

func subjectOf(d *rollout.Decision) subject {
	return subject{d.Snapshot.Environment.Name, d.Snapshot.Deployment}
}

func keyOf(d *rollout.Decision) key {
	build := ""
	if d.Proposal.Target != nil {
		build = d.Proposal.Target.BuildID
	}
	v := &d.Plan.Verdicts
	k := fnvOffset.with(build).with(string(d.Proposal.State.Reason)).with(v.PolicyDigest).verdict(v.Spec)
	for i := range d.Proposal.Actions {
		id := d.Proposal.Actions[i].ID
		k = k.with(id).verdict(v.Actions[id])
	}
	return k
}

// input is what the key takes from a recorded decision.
type input struct {
	Plan struct {
		Reason string `json:"reason"`
		Target struct {
			BuildID string `json:"buildID"`
		} `json:"target"`
		Actions []struct {
			ID string `json:"id"`
		} `json:"actions"`
	} `json:"plan"`
}

// recorded gives a recorded decision's subject and key: those that it had before it was recorded.
func recorded(d Decision) (subject, key, error) {
	s, err := d.subject()
	if err != nil {
		return s, 0, err
	}
	var in input
	if err := json.Unmarshal(d.Input, &in); err != nil {
		return s, 0, fmt.Errorf("decode the input of decision %s: %w", d.ID, err)
	}
	var v rollout.Verdicts
	if err := json.Unmarshal(d.Result, &v); err != nil {
		return s, 0, fmt.Errorf("decode the result of decision %s: %w", d.ID, err)
	}
	k := fnvOffset.with(in.Plan.Target.BuildID).with(in.Plan.Reason).with(v.PolicyDigest).verdict(v.Spec)
	for _, a := range in.Plan.Actions {
		k = k.with(a.ID).verdict(v.Actions[a.ID])
	}
	return s, k, nil
}
