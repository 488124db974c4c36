package rollout

import (
	"encoding/json"
	"time"
)

// Effect is what a finding asks for, from the mildest to the strictest.
type Effect string

// The effects, in the order of their strictness.
const (
	Allow           Effect = "allow"
	Warn            Effect = "warn"
	RequireApproval Effect = "require_approval"
	HoldEffect      Effect = "hold"
	RollbackEffect  Effect = "rollback"
)

// Strictness orders effects: the strictest of several wins. An unknown effect is as strict as a hold.
func (e Effect) Strictness() int {
	switch e {
	case Allow:
		return 0
	case Warn:
		return 1
	case RequireApproval:
		return 2
	case RollbackEffect:
		return 4
	}
	return 3
}

// Finding is one rule that fired, or a failure to evaluate one.
type Finding struct {
	// Package of the policy, such as rampart.rollout.
	Package string `json:"package"`
	// Rule that fired, such as rollout.freeze.
	Rule    string `json:"rule"`
	Effect  Effect `json:"effect"`
	Message string `json:"message"`
	// Until is when the rule says that it will not find it any more; zero: it says nothing.
	Until time.Time `json:"until,omitzero"`
	// Evidence are the rule's further keys.
	Evidence json.RawMessage `json:"evidence,omitempty"`
	// Location of a rule that could not be evaluated, file:line.
	Location string `json:"location,omitempty"`
	// Waived names the waiver that takes away the finding's effect.
	Waived string `json:"waived,omitempty"`
}

// Text is the message as people read it: with the place of a rule that could not be evaluated.
func (f Finding) Text() string {
	if f.Location == "" {
		return f.Message
	}
	return f.Message + " (" + f.Location + ")"
}

// DriftAnswer is what policy wants done about drift.
type DriftAnswer string

// The answers to drift.
const (
	DriftRevert DriftAnswer = "revert"
	DriftAdopt  DriftAnswer = "adopt"
	DriftHold   DriftAnswer = "hold"
)

// Verdict is what policy says of one action. Its zero value stands for a missing verdict, which is a hold.
type Verdict struct {
	Effect Effect `json:"effect"`
	// Drift is the answer to a Drift action.
	Drift DriftAnswer `json:"drift,omitempty"`
	// Findings sorted by strictness, package, rule and message; the waived ones too.
	Findings []Finding `json:"findings,omitempty"`
}

// Verdicts are what policy says of a proposal.
type Verdicts struct {
	// PolicyDigest names the policies and their data.
	PolicyDigest string `json:"policyDigest"`
	// Spec is the verdict on the spec itself: a hold there holds every raise and every new version.
	Spec Verdict `json:"spec"`
	// Actions by the action's ID.
	Actions map[string]Verdict `json:"actions"`
}

// Of gives the verdict of an action. An action that policy was not asked about, or did not answer, is held.
func (v Verdicts) Of(actionID string) Verdict {
	if got, ok := v.Actions[actionID]; ok && got.Effect != "" {
		return got
	}
	return Verdict{Effect: HoldEffect, Findings: []Finding{{
		Package: "rampart", Rule: "verdict.missing", Effect: HoldEffect,
		Message: "policy gave no verdict for " + actionID,
	}}}
}
