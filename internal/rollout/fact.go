package rollout

import (
	"encoding/json"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// Fact is something observed that policies may judge by. It has a value or an error, never both; its name is its key in
// Snapshot.Facts.
type Fact struct {
	// Value as JSON; a metric's is a number.
	Value json.RawMessage `json:"value,omitempty"`
	// ObservedAt is when the value was true, as far as its source can tell; zero if there is none.
	ObservedAt time.Time     `json:"observedAt"`
	MaxAge     time.Duration `json:"maxAge"`
	// Source says where it is from, for a person: which store, which query.
	Source string `json:"source"`
	// Error says in words why there is no value.
	Error string `json:"error,omitempty"`
}

// StatusFacts begin the names of the facts about commit statuses: "status:" and the status's context.
const StatusFacts = "status:"

// Holder is a commit whose tree holds something.
type Holder struct {
	Commit string
	// Holds says for each path that was asked for, in this order, whether it does.
	Holds []bool
}

// Fresh reports whether the fact may be relied on at now: it has a value that is not older than its limit. What cannot
// be relied on holds a rollout and never advances it.
func (f Fact) Fresh(now time.Time) bool {
	return f.Error == "" && len(f.Value) > 0 && !f.ObservedAt.IsZero() && now.Sub(f.ObservedAt) <= f.MaxAge
}

// MetricsQuestion asks for metrics of a snapshot's worker deployment.
type MetricsQuestion struct {
	Snapshot Snapshot
	Ask      MetricsAsk
}

// StatusQuestion asks for commit statuses.
type StatusQuestion struct {
	Environment v1alpha1.Environment
	// Contexts of statuses, sorted.
	Contexts []string
	// Versions are folders of versions as they were rendered, from the repository's root; "" where none was.
	Versions []string
}
