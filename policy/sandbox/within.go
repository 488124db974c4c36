package sandbox

import (
	"errors"
	"fmt"
	"time"
)

// Panicked is a panic of OPA's, which has no place.
type Panicked string

// Error is the panic's text.
func (p Panicked) Error() string { return string(p) }

// Recovered turns a panic into an error.
func Recovered(err *error) {
	if r := recover(); r != nil {
		*err = Panicked(fmt.Sprintf("panic: %v", r))
	}
}

// Within reads or compiles within a time. What takes longer is left to itself; a panic is an error.
func Within[T any](limit time.Duration, compile func() (T, error)) (T, error) {
	type compiled struct {
		value T
		err   error
	}
	done := make(chan compiled, 1)
	go func() {
		var got compiled
		defer func() { done <- got }()
		defer Recovered(&got.err)
		got.value, got.err = compile()
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case got := <-done:
		return got.value, got.err
	case <-timer.C:
		var none T
		return none, fmt.Errorf("%w: more than %s", ErrSlow, limit)
	}
}

// ErrSlow says that compiling takes too long; it names no module.
var ErrSlow = errors.New("compiling takes too long")
