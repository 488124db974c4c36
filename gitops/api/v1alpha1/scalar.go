package v1alpha1

import (
	"encoding/json"
	"fmt"
	"time"
)

// Duration is a Go duration written as a string, such as 10m or 1h30m.
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:Pattern=`^-?(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))+$`
type Duration struct{ time.Duration }

// MarshalJSON writes the duration as time.Duration prints it, without trailing zero units (1h, not 1h0m0s).
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// String is the shortest form that ParseDuration reads back.
func (d Duration) String() string {
	s := d.Duration.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if n := len(s) - len(zero) + 1; n > 1 && s[n-1:] == zero {
			s = s[:n]
		}
	}
	return s
}

// UnmarshalJSON reads a duration string.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("duration must be a string such as 10m, got %s", b)
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("duration %q is not of the form 30s, 10m or 1h30m", s)
	}
	d.Duration = v
	return nil
}

// Time is an instant in UTC with a precision of one nanosecond, written as RFC 3339. The zero value is written as null.
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:Format=date-time
type Time struct{ time.Time }

// NewTime returns t in UTC without its monotonic reading.
func NewTime(t time.Time) Time { return Time{t.UTC().Round(0)} }

// MarshalJSON writes RFC 3339 in UTC.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(t.UTC().Format(time.RFC3339Nano))
}

// UnmarshalJSON reads RFC 3339 or null.
func (t *Time) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*t = Time{}
		return nil
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("time must be a string such as 2026-01-31T12:00:00Z, got %s", b)
	}
	v, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return fmt.Errorf("time %q is not of the form 2026-01-31T12:00:00Z", s)
	}
	t.Time = v.UTC()
	return nil
}
