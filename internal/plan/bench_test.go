package plan

import (
	"testing"
	"time"
)

// BenchmarkDecide is the planner's own part of a cycle for one worker deployment in mid-ramp: Ask, Propose, Resolve,
// Never.
func BenchmarkDecide(b *testing.B) {
	s := of(rampsAt(10, time.Hour))
	b.ReportAllocs()
	for b.Loop() {
		Ask(s)
		p := Propose(s)
		Never(s, Resolve(s, p, allowed(p)))
	}
}
