package rollout

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
