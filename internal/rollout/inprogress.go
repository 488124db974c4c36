package rollout

import "time"

// InProgress is a worker deployment that is rolling a version out: its record desires a ramp.
type InProgress struct {
	Deployment Name `json:"deployment"`
	// BuildID of the version that ramps; "" where the record cannot be read, which may hide a ramp.
	BuildID string `json:"buildID,omitempty"`
	// Since when the version has traffic; zero where that is not recorded.
	Since time.Time `json:"since,omitzero"`
}

// InProgress says what a worker deployment is rolling out by its record; false: nothing. A record that cannot be read
// counts.
func (r Record) InProgress(of Name) (InProgress, bool) {
	out := InProgress{Deployment: of}
	if r.Routing == nil {
		return out, r.RoutingProblem != nil
	}
	spec := &r.Routing.Spec
	if spec.Desired.Ramping == nil {
		return out, false
	}
	out.BuildID = spec.Desired.Ramping.BuildID
	if v := FindVersion(spec.Versions, out.BuildID); v != nil {
		out.Since = v.RoutedAt.Time
	}
	// A build that is tried again had traffic before.
	if t := spec.Target; t != nil && t.BuildID == out.BuildID && !out.Since.IsZero() && t.Since.After(out.Since) {
		out.Since = t.Since.Time
	}
	return out, true
}

// Starts reports whether an action begins a rollout: it gives a version its first traffic beside one that is current.
func (s Snapshot) Starts(a Action) bool {
	r := s.Observation.Routing
	ramps := r.HasRamp && r.Ramping == a.BuildID
	return (a.Kind == Ramp || a.Kind == Promote) && a.Raises() && !ramps && r.Current != "" && r.Current != a.BuildID
}
