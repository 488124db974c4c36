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
		Look(s).Ask()
		p := Look(s).Propose()
		Never(s, Look(s).Resolve(p, allowed(p)))
	}
}
