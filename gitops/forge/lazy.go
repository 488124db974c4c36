package forge

import "sync/atomic"

// Lazy is a value that an adapter asks its forge for when it first needs it. The zero value has none yet. It is safe
// for concurrent use.
type Lazy[T any] struct{ value atomic.Pointer[T] }

// Get gives the value. While there is none it calls ask, and gives what that gives; an error is not kept.
func (l *Lazy[T]) Get(ask func() (*T, error)) (*T, error) {
	if known := l.value.Load(); known != nil {
		return known, nil
	}
	asked, err := ask()
	if err != nil {
		return nil, err
	}
	l.value.Store(asked)
	return asked, nil
}
