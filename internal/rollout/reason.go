package rollout

import "github.com/rampart-gitops/rampart/gitops/api/v1alpha1"

// Reason is a condition reason. Those of the first group are the in-cluster controller's.
type Reason string

// The reasons of conditions.
const (
	RolloutComplete              Reason = "RolloutComplete"
	WaitingForPollers            Reason = "WaitingForPollers"
	WaitingForPromotion          Reason = "WaitingForPromotion"
	Ramping                      Reason = "Ramping"
	TemporalConnectionNotFound   Reason = "TemporalConnectionNotFound"
	ConnectionNotFound           Reason = "ConnectionNotFound"
	AuthSecretInvalid            Reason = "AuthSecretInvalid"
	TemporalClientCreationFailed Reason = "TemporalClientCreationFailed"
	TemporalStateFetchFailed     Reason = "TemporalStateFetchFailed"
	PlanGenerationFailed         Reason = "PlanGenerationFailed"
	PlanExecutionFailed          Reason = "PlanExecutionFailed"

	InvalidSpec          Reason = "InvalidSpec"
	InvalidConfiguration Reason = "InvalidConfiguration"
	GateIsRunning        Reason = "GateRunning"
	GateHasFailed        Reason = "GateFailed"
	PolicyHold           Reason = "PolicyHold"
	AwaitingApproval     Reason = "AwaitingApproval"
	RolledBack           Reason = "RolledBack"
	OwnedByAnother       Reason = "OwnedByAnother"
	RoutingDrift         Reason = "RoutingDrift"
	StaleFacts           Reason = "StaleFacts"
	VersionLimitReached  Reason = "VersionLimitReached"
	ManualHold           Reason = "ManualHold"
	Retiring             Reason = "Retiring"
)

// StateOf is the state that the conditions of a status tell; false without a Ready condition.
func StateOf(conditions []v1alpha1.Condition) (state State, ok bool) {
	for _, c := range conditions {
		switch c.Type {
		case v1alpha1.ConditionReady:
			state.Reason, state.Message, ok = Reason(c.Reason), c.Message, true
		case v1alpha1.ConditionStalled:
			state.Stalled = c.Status == v1alpha1.True
		}
	}
	return state, ok
}
