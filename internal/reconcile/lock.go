package reconcile

import (
	"context"
	"sync"
)

// lock lets one goroutine at a time use the repository. Unlike with a mutex, waiting for it ends with a context.
type lock struct {
	made sync.Once
	held chan struct{}
}

// take waits for the lock. release gives it back.
func (l *lock) take(ctx context.Context) (release func(), err error) {
	l.made.Do(func() { l.held = make(chan struct{}, 1) })
	select {
	case l.held <- struct{}{}:
		return func() { <-l.held }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Alone does something with the repository while no group uses it, unless the context ends before that.
func (r *Reconciler) Alone(ctx context.Context, do func()) {
	if release, err := r.repository.take(ctx); err == nil {
		defer release()
		do()
	}
}
