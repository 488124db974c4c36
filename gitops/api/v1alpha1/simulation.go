package v1alpha1

import "time"

// Simulation is a scripted world for rampart simulate: what Temporal, workers and people do while a rollout goes on.
// What is left out goes well. The bot never reads it.
type Simulation struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   ObjectMeta     `json:"metadata,omitempty"`
	Spec       SimulationSpec `json:"spec"`
}

// SimulationSpec is the script. Durations that say when something happens count from its beginning.
type SimulationSpec struct {
	// At is when the simulation begins, on its own clock. Left out: now.
	At Time `json:"at,omitzero"`
	// For is how long it lasts at most. Defaults to two weeks.
	For Duration `json:"for,omitempty"`
	// Interval between two cycles of the bot. Defaults to 10s.
	Interval Duration `json:"interval,omitempty"`
	// PollersAfter is how long after the commit of a version's files its workers begin to poll. Defaults to 20s.
	PollersAfter Duration `json:"pollersAfter,omitempty"`
	// Traffic is a steady stream of new workflows.
	Traffic SimulatedTraffic `json:"traffic,omitempty"`
	// Approvals say what people do about actions that wait for approval.
	Approvals SimulatedApprovals `json:"approvals,omitempty"`
	// Gates say how test workflows end. The first one that fits counts; without any they complete.
	Gates []SimulatedGate `json:"gates,omitempty"`
	// Failures are workflows that fail. Where several fit, the last one counts.
	Failures []SimulatedFailures `json:"failures,omitempty"`
	// Metrics are what metrics of the spec's analysis say. Where several fit, the last one counts; without any it is 0.
	Metrics []SimulatedMetric `json:"metrics,omitempty"`
	// Evacuations say what becomes of batch jobs that free a version. The first one that fits counts; without any they
	// free it of all workflows.
	Evacuations []SimulatedEvacuation `json:"evacuations,omitempty"`
	// Outages are times in which the bot cannot read Temporal.
	Outages []SimulatedOutage `json:"outages,omitempty"`
	// Pushes are commits that change the image of the spec's first container.
	Pushes []SimulatedPush `json:"pushes,omitempty"`
}

// SimulatedTraffic is a steady stream of new workflows, all pinned to the version that they start on.
type SimulatedTraffic struct {
	// WorkflowsPerMinute of the worker deployment, shared out as the routing says. Defaults to 60.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	WorkflowsPerMinute float64 `json:"workflowsPerMinute"`
	// Duration of each workflow. Defaults to 30s.
	Duration Duration `json:"duration,omitempty"`
}

// ApprovalAnswer is what people do about an action that waits for their approval.
// +kubebuilder:validation:Enum=Approve;None
type ApprovalAnswer string

// The answers to a request for approval.
const (
	AnswerApprove ApprovalAnswer = "Approve"
	AnswerNone    ApprovalAnswer = "None"
)

// SimulatedApprovals say what people do about actions that wait for approval.
type SimulatedApprovals struct {
	// Answer that people give. Default Approve.
	Answer ApprovalAnswer `json:"answer,omitempty"`
	// After is how long they take. Defaults to 10m.
	After Duration `json:"after,omitempty"`
}

// GateOutcome is how a gate's test workflow ends.
// +kubebuilder:validation:Enum=Completed;Failed;TimedOut;Canceled;Terminated
type GateOutcome string

// The ends of a gate's test workflow.
const (
	GateCompletes GateOutcome = "Completed"
	GateFails     GateOutcome = "Failed"
	GateTimesOut  GateOutcome = "TimedOut"
	GateCancels   GateOutcome = "Canceled"
	GateEnds      GateOutcome = "Terminated"
)

// SimulatedGate says how the test workflows of gates end. The first one that fits counts; without any they complete.
type SimulatedGate struct {
	// Point is first (the gate before any traffic) or step-<n>; "" fits every gate.
	Point string `json:"point,omitempty"`
	// BuildID that is tested; "" fits all.
	BuildID string `json:"buildID,omitempty"`
	// Takes is how long they run. Defaults to 1m.
	Takes Duration `json:"takes,omitempty"`
	// Outcome of the test workflows. Default Completed.
	Outcome GateOutcome `json:"outcome,omitempty"`
}

// SimulatedFailures are workflows that fail. Where several fit, the last one counts.
type SimulatedFailures struct {
	// BuildID whose workflows fail; "" is the candidate, the newest build that was pushed.
	BuildID string `json:"buildID,omitempty"`
	// Percentage of the workflows that close which fail, 0 to 100.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Percentage float64 `json:"percentage"`
	// From is when it begins.
	From Duration `json:"from,omitzero"`
	// To is when it ends. Left out: never.
	To Duration `json:"to,omitzero"`
}

// SimulatedMetric is what a metric of the spec's analysis says. Where several fit, the last one counts; without any it
// is 0.
type SimulatedMetric struct {
	// Name of the metric.
	Name string `json:"name"`
	// Value that is read; left out: it cannot be read.
	Value *float64 `json:"value,omitempty"`
	// From is when it begins.
	From Duration `json:"from,omitzero"`
	// To is when it ends. Left out: never.
	To Duration `json:"to,omitzero"`
}

// EvacuationOutcome is how a batch job ends.
// +kubebuilder:validation:Enum=Completed;Failed
type EvacuationOutcome string

// The ends of a batch job.
const (
	BatchCompletes EvacuationOutcome = "Completed"
	BatchFails     EvacuationOutcome = "Failed"
)

// SimulatedEvacuation says what becomes of the batch jobs that free a version of workflows that stay. The first one
// that fits counts; without any they free it of all.
type SimulatedEvacuation struct {
	// Stage that is carried out; "" fits every one.
	Stage EvacuationStage `json:"stage,omitempty"`
	// BuildID of the version that is freed; "" fits all.
	BuildID string `json:"buildID,omitempty"`
	// Takes is how long it runs, reaching one workflow after the other. Defaults to 5m.
	Takes Duration `json:"takes,omitempty"`
	// Frees is the percentage of the workflows that leave the version for it, 0 to 100. Defaults to 100; a job that
	// fails frees none.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Frees float64 `json:"frees"`
	// Outcome of the job. Default Completed.
	Outcome EvacuationOutcome `json:"outcome,omitempty"`
}

// SimulatedOutage is a time in which the bot cannot read Temporal. The workers go on.
type SimulatedOutage struct {
	// From is when it begins.
	From Duration `json:"from,omitzero"`
	// To is when it ends. Left out: never.
	To Duration `json:"to,omitzero"`
}

// SimulatedPush is a commit that changes the image of the spec's first container.
type SimulatedPush struct {
	// After is when it is pushed.
	After Duration `json:"after,omitempty"`
	// Image of the spec's first container from then on.
	Image string `json:"image"`
}

// The defaults and the bounds of a simulation.
const (
	DefaultSimulationFor      = 14 * 24 * time.Hour
	DefaultSimulationInterval = 10 * time.Second
	DefaultPollersAfter       = 20 * time.Second
	DefaultWorkflowsPerMinute = 60
	DefaultWorkflowDuration   = 30 * time.Second
	DefaultApprovalAfter      = 10 * time.Minute
	DefaultGateTakes          = time.Minute
	DefaultEvacuationTakes    = 5 * time.Minute
	DefaultEvacuationFrees    = 100

	// MaxSimulationFor is how long a simulation may last.
	MaxSimulationFor = 366 * 24 * time.Hour
	// MinSimulationInterval and MaxSimulationInterval bound the time between two cycles.
	MinSimulationInterval = time.Second
	MaxSimulationInterval = time.Hour

	maxWorkflowsPerMinute = 1e6
	maxSimulatedItems     = 100
)

// DefaultSimulation is a world in which all goes well.
func DefaultSimulation() SimulationSpec {
	var s SimulationSpec
	presetSimulation(&s)
	return s
}

func presetSimulation(s *SimulationSpec) {
	s.For, s.Interval = Duration{DefaultSimulationFor}, Duration{DefaultSimulationInterval}
	s.PollersAfter = Duration{DefaultPollersAfter}
	presetTraffic(&s.Traffic)
	presetApprovals(&s.Approvals)
}

func presetTraffic(t *SimulatedTraffic) {
	t.WorkflowsPerMinute, t.Duration = DefaultWorkflowsPerMinute, Duration{DefaultWorkflowDuration}
}

func presetApprovals(a *SimulatedApprovals) {
	a.Answer, a.After = AnswerApprove, Duration{DefaultApprovalAfter}
}

func presetSimulatedGate(g *SimulatedGate) {
	g.Takes, g.Outcome = Duration{DefaultGateTakes}, GateCompletes
}

// DefaultSimulatedEvacuation is what becomes of a batch job if a script says nothing about it.
func DefaultSimulatedEvacuation() SimulatedEvacuation {
	return SimulatedEvacuation{Takes: Duration{DefaultEvacuationTakes}, Frees: DefaultEvacuationFrees,
		Outcome: BatchCompletes}
}

func presetSimulatedEvacuation(e *SimulatedEvacuation) { *e = DefaultSimulatedEvacuation() }
