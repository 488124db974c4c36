package metrics

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// breaker leaves a server alone that is away, longer each time, until it answers.
type breaker struct {
	// pause is the first one; it doubles with each trip in a row, up to longestPause of them.
	pause time.Duration

	mu    sync.Mutex
	trips int
	until time.Time
	why   *awayError
}

// longestPause in first pauses: a minute and 20 s by default.
const longestPause = 16

// open says why nothing is asked now; nil: it may be.
func (b *breaker) open(now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.why == nil || !now.Before(b.until) {
		return nil
	}
	return b.why
}

// trip notes that the server is away.
func (b *breaker) trip(why *awayError, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.why, b.until = why, now.Add(b.pause*time.Duration(min(1<<b.trips, longestPause)))
	b.trips = min(b.trips+1, 30) // no shift overflows
}

// reset notes that the server answers.
func (b *breaker) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trips, b.why = 0, nil
}

// awayError is a server that does not answer, or is not there.
type awayError struct{ problem string }

func (e *awayError) Error() string { return "not asked again: " + e.problem }

// noTimeError is a server that answers too slowly for all that is asked.
type noTimeError struct{ limit time.Duration }

func (e *noTimeError) Error() string {
	return fmt.Sprintf("no time was left for it: all queries together may take %s", e.limit)
}

// unasked says why a call ended before a question had its answer.
func unasked(cause error) string {
	var away *awayError
	var late *noTimeError
	switch {
	case errors.As(cause, &away):
		return away.Error()
	case errors.As(cause, &late):
		return late.Error()
	}
	return "the cycle ended before the answer"
}
