package metrics

import (
	"errors"
	"fmt"
	"time"

	"github.com/sony/gobreaker/v2"
)

// openTimeouts is how long the circuit breaker stays open, in time-outs of one query.
const openTimeouts = 2

// errCutOff ends a call that got no answer for another reason than that the server is away. The breaker ignores it.
var errCutOff = errors.New("the call ended before any answer")

// newBreaker makes a circuit breaker that one failed call opens. After the time one call tries again: it closes the
// breaker or opens it anew.
func newBreaker(open time.Duration) *gobreaker.CircuitBreaker[[]answer] {
	return gobreaker.NewCircuitBreaker[[]answer](gobreaker.Settings{
		Timeout:     open,
		ReadyToTrip: func(gobreaker.Counts) bool { return true },
		IsExcluded:  func(err error) bool { return errors.Is(err, errCutOff) },
	})
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
