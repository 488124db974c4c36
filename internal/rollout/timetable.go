package rollout

import (
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// Timetable is what a simulation of one worker deployment led to.
type Timetable struct {
	Deployment  Name   `json:"deployment"`
	Environment string `json:"environment"`
	// Start and End are on the simulation's own clock. End is when nothing was left to happen, or when the time was up.
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	// Interval between two cycles.
	Interval v1alpha1.Duration `json:"interval"`
	Entries  []TimetableEntry  `json:"entries"`
	// Target is the build ID that the spec asks for at the end.
	Target string `json:"target,omitempty"`
	// State at the end, and the outcome that follows from it.
	State   State   `json:"state"`
	Outcome Outcome `json:"outcome"`
}

// TimetableEntry is one cycle that did something, or found something changed.
type TimetableEntry struct {
	At time.Time `json:"at"`
	// After is how long after the start that is.
	After v1alpha1.Duration `json:"after"`
	// Events of the scripted world since the entry before.
	Events []string `json:"events,omitempty"`
	Row    string   `json:"row"`
	// Actions that were carried out.
	Actions []Action `json:"actions,omitempty"`
	// Commit is what the commit says, one line each; none: nothing was committed.
	Commit []string `json:"commit,omitempty"`
	// Held are actions that were not carried out, and by which rules.
	Held []Held `json:"held,omitempty"`
	// Routing after the cycle.
	Routing RoutingConfig `json:"routing"`
	State   State         `json:"state"`
	// NextDue is when the answer changes by itself.
	NextDue time.Time `json:"nextDue,omitzero"`
}

// Outcome is how a simulation ended.
type Outcome string

// The outcomes of a simulation.
const (
	OutcomeComplete   Outcome = "Complete"   // the version that the spec asks for is current
	OutcomeTurnedBack Outcome = "TurnedBack" // it was turned back
	OutcomeHeld       Outcome = "Held"       // nothing goes on by itself
	OutcomeTimeIsUp   Outcome = "TimeIsUp"
)

// CompletedAt is when the rollout was complete for the last time, zero if it was not.
func (t Timetable) CompletedAt() time.Time {
	var at time.Time
	if t.Outcome != OutcomeComplete {
		return at
	}
	for i, e := range t.Entries {
		if done := e.State.Reason == RolloutComplete; done &&
			(i == 0 || t.Entries[i-1].State.Reason != RolloutComplete) {
			at = e.At
		}
	}
	return at
}
