package temporal

import (
	"errors"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
	"google.golang.org/grpc/codes"
)

const (
	// unansweredReads is how many reads without an answer, one after the other, open the circuit breaker.
	unansweredReads = 5
	// breakerPause is how long nothing is read then. After it one read tries.
	breakerPause = 5 * time.Second
)

// breaker stops reads of a Temporal namespace that does not answer. It costs a group of worker deployments a few
// time-outs, and not its whole time. Changes of routing are not stopped by it. A read comes before each of them.
type breaker struct {
	circuit *gobreaker.TwoStepCircuitBreaker[any]

	mu sync.Mutex
	// last is why the last read had no answer.
	last error
}

// errCallerGone ends a read whose caller did not wait for the answer. The breaker ignores it.
var errCallerGone = errors.New("the caller did not wait for the answer")

func newBreaker() *breaker {
	return &breaker{circuit: gobreaker.NewTwoStepCircuitBreaker[any](gobreaker.Settings{
		Timeout:     breakerPause,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= unansweredReads },
		IsExcluded:  func(err error) bool { return errors.Is(err, errCallerGone) },
	})}
}

// allow gives what a read is to end with, or why none may be made: that of the last one without an answer.
func (b *breaker) allow() (done func(error), err error) {
	end, err := b.circuit.Allow()
	if err != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		return nil, b.last
	}
	return func(err error) {
		if unanswered(err) {
			b.mu.Lock()
			b.last = err
			b.mu.Unlock()
		} else if !errors.Is(err, errCallerGone) {
			err = nil // a refusal is an answer
		}
		end(err)
	}, nil
}

// unanswered reports whether a call ended without an answer of the server.
func unanswered(err error) bool {
	code := codeOf(err)
	return code == codes.Unavailable || code == codes.DeadlineExceeded
}
