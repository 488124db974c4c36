package rollout

import "crypto/sha256"

// Decision is what was decided for one worker deployment, on what, and what became of it.
type Decision struct {
	Snapshot Snapshot `json:"snapshot"`
	Proposal Proposal `json:"proposal"`
	Plan     Plan     `json:"plan"`

	// Inputs are those that it was made on.
	Inputs Inputs `json:"-"`
	// Acted says that something was carried out before the commit: traffic was lowered, or a version deleted.
	Acted bool `json:"-"`
	// Wrote is routing.yaml as it was committed; "": it was not written.
	Wrote string `json:"-"`
}

// Inputs is a hash of all that a decision depends on beside Temporal and the time.
type Inputs [sha256.Size]byte

// Made is a decision that was made.
type Made struct {
	*Decision
	// Done says that something of it was carried out in Temporal: traffic lowered or raised, a gate or a batch job
	// started, a version deleted.
	Done bool
}
