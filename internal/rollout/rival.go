package rollout

import (
	"slices"
	"strings"
)

// Rival is another environment that claims the same worker deployment: its name, in the same Temporal namespace of the
// same server.
type Rival struct {
	Environment     string `json:"environment"`
	ManagerIdentity string `json:"managerIdentity,omitempty"`
}

// Contested reports whether several environments claim the worker deployment, and Temporal does not say that it is this
// one's alone. Then the worker deployment has no manager, or another one, or an identity that another environment has,
// too. What was not read is not contested. That asks for more than BelongsToOther, by which a worker deployment without
// a manager may be claimed: of two environments only one may claim it.
func (s *Snapshot) Contested() bool {
	o := &s.Observation
	if len(s.Rivals) == 0 || o.Problem != nil || o.At.IsZero() || o.Exists == "" {
		return false
	}
	own := s.Environment.ManagerIdentity
	alike := slices.ContainsFunc(s.Rivals, func(r Rival) bool { return r.ManagerIdentity == own })
	return alike || own == "" || o.ManagerIdentity != own
}

// SayRivals is what rivals are compared by.
func SayRivals(all []Rival) string {
	var b strings.Builder
	for _, r := range all {
		b.WriteString(r.Environment + "\x00" + r.ManagerIdentity + "\x00")
	}
	return b.String()
}
