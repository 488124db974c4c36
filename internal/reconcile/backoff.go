package reconcile

import (
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// EnvironmentError is why an environment's commit failed. The other environments went on.
type EnvironmentError struct {
	Environment string
	Err         error
}

func (e *EnvironmentError) Error() string {
	return fmt.Sprintf("environment %s: %v", e.Environment, e.Err)
}

// Unwrap gives the cause.
func (e *EnvironmentError) Unwrap() error { return e.Err }

// backoffs are pauses after failures, longer after each one: of an environment's commits by its name, and of reading
// the repository. Others go on meanwhile, and so does lowering.
type backoffs map[string]*pause

// pause is a pause after failures.
type pause struct {
	*backoff.ExponentialBackOff
	until time.Time
	// err is the last failure.
	err error
}

// repositoryPause is the name of the pause before the repository is read again. No environment has it.
const repositoryPause = ""

// Bounds of pauses.
const (
	firstPause = time.Second
	maxPause   = 30 * time.Second
)

// note begins a longer pause after a failure, and ends all pauses after a success.
func (b *backoffs) note(name string, now time.Time, err error) {
	if err == nil {
		delete(*b, name)
		return
	}
	if *b == nil {
		*b = backoffs{}
	}
	p := (*b)[name]
	if p == nil {
		p = &pause{ExponentialBackOff: &backoff.ExponentialBackOff{InitialInterval: firstPause, MaxInterval: maxPause,
			Multiplier: 2, RandomizationFactor: 0.1}}
		p.Reset()
		(*b)[name] = p
	}
	p.until, p.err = now.Add(p.NextBackOff()), err
}

// has reports whether a pause lasts.
func (b backoffs) has(name string, now time.Time) bool {
	p := b[name]
	return p != nil && now.Before(p.until)
}
