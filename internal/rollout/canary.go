package rollout

import "time"

// CanaryPhase says why a version with traffic is judged.
type CanaryPhase string

// The phases in which a version is judged.
const (
	// PhaseRamp: it ramps, and is compared with the current version over the time since traffic was moved last.
	PhaseRamp CanaryPhase = "Ramp"
	// PhaseBake: it was promoted, and is judged by itself: nothing else has workflows of the same age.
	PhaseBake CanaryPhase = "Bake"
	// PhaseWindow: it was promoted and does not bake, but the version before it may still come back.
	PhaseWindow CanaryPhase = "Window"
)

// PhaseNone stands for no phase. Before the target has traffic, only the problems that there are already are counted.
// It has no type, since policies are not shown it among the phases.
const PhaseNone = ""

// CanaryPhases are all phases, PhaseNone among them.
func CanaryPhases() []CanaryPhase { return []CanaryPhase{PhaseNone, PhaseRamp, PhaseBake, PhaseWindow} }

// PartCounts is the part of the input of policies that has what is counted in a phase. Counts that nothing looks at are
// not asked for.
func PartCounts(phase CanaryPhase) string { return "canary." + string(phase) }

// Canary is what the candidate is judged by: counts, and what follows from them.
type Canary struct {
	Phase CanaryPhase `json:"phase"`
	// Candidate and Against are build IDs; Against is "" where there is nothing to compare with, as after a promotion.
	Candidate string `json:"candidate"`
	Against   string `json:"against,omitempty"`
	// Since is when the stage began, by the server's clock.
	Since time.Time `json:"since,omitzero"`
	// Problem says why there is no comparison; "" if there is one.
	Problem string `json:"problem,omitempty"`
	// Counts of closed workflows that started in the stage, and how many of them failed.
	CandidateCounts ArmCounts `json:"candidateCounts"`
	AgainstCounts   ArmCounts `json:"againstCounts"`
	// Enough closed workflows of the candidate for the lack of evidence to mean something.
	Enough bool `json:"enough"`
	// Worse: the sequential test says that the candidate fails more often. AboveCeiling: more often than the spec
	// allows at all.
	Worse        bool `json:"worse"`
	AboveCeiling bool `json:"aboveCeiling"`
	// Evidence for either and the Bound that it has to reach, as logarithms to the base 10 (source: internal/canary).
	Evidence        float64 `json:"evidence"`
	CeilingEvidence float64 `json:"ceilingEvidence,omitempty"`
	Bound           float64 `json:"bound"`
	// Stuck workflows, which no count shows.
	Stuck StuckJudgment `json:"stuck"`
}

// ArmCounts are closed workflows of one side of a comparison.
type ArmCounts struct {
	Closed int64 `json:"closed"`
	Failed int64 `json:"failed"`
}

// StuckJudgment is what the counts and samples of stuck workflows come to.
type StuckJudgment struct {
	// Problem says why they are not known; "" if they are.
	Problem string `json:"problem,omitempty"`
	// Candidate counts those that were seen to be stuck on the candidate; Workflow is one of them.
	Candidate int64  `json:"candidate"`
	Workflow  string `json:"workflow,omitempty"`
	// Unresolved counts those for which it is not known whose they are, without as many as there were before the ramp.
	Unresolved int64 `json:"unresolved"`
	// NoBaseline says that there are reported problems, and that it is not known how many there were before the ramp.
	NoBaseline bool `json:"noBaseline,omitempty"`
}
