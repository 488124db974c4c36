package decisions

import (
	"errors"
	"time"
)

// Version of the coding of segments that Encoder writes: a segment's first byte. A reader keeps reading all versions that
// there ever were.
const Version = 1

// ErrVersion is what a segment of an unknown version is refused with: it is from a newer Rampart, or it is no segment.
var ErrVersion = errors.New("unknown version")

// ErrOrder is what a segment is refused with that does not follow the last one that the state has seen.
var ErrOrder = errors.New("the segment does not follow the one before it")

// Header of a segment, which can be read without the segments before it.
type Header struct {
	// Version of the coding.
	Version int
	// Sequence of the segment in its epoch: the first is 0, and needs no other segment.
	Sequence int
	// Decisions in the segment.
	Decisions int
	// First and Last are the times of the earliest and the latest decision: whole seconds, UTC.
	First, Last time.Time
}

// Filter says which decisions are wanted. Its zero value wants all.
type Filter struct {
	// Deployment as namespace/name; "" is any.
	Deployment string
	// Since and Until bound the time: Since is included, Until is not. Zero: no bound.
	Since, Until time.Time
}
