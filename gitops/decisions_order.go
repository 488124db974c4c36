package gitops

import (
	"context"
	"iter"
	"runtime"
	"slices"
	"sync"

	"github.com/rampart-gitops/rampart/gitops/mirror"
	"github.com/rampart-gitops/rampart/internal/decisions"
)

func (r decisionReader) newest(ctx context.Context, tip mirror.Tip) iter.Seq2[decisions.Decision, error] {
	return func(yield func(decisions.Decision, error) bool) {
		for all, err := range r.decoded(ctx, r.epochs(ctx, tip), 1) {
			if err != nil {
				yield(decisions.Decision{}, err)
				return
			}
			for _, d := range slices.Backward(all) {
				if !yield(d, nil) {
					return
				}
			}
		}
	}
}

func (r decisionReader) oldest(ctx context.Context, tip mirror.Tip) iter.Seq2[decisions.Decision, error] {
	return func(yield func(decisions.Decision, error) bool) {
		var all []epoch
		for e, err := range r.epochs(ctx, tip) {
			if err != nil {
				yield(decisions.Decision{}, err)
				return
			}
			all = append(all, e)
		}
		slices.Reverse(all)
		if r.query.Filter.Deployment != "" {
			r.oldestOfOne(ctx, all)(yield)
			return
		}
		for _, e := range all {
			for d, err := range r.stream(ctx, e) {
				if !yield(d, err) || err != nil {
					return
				}
			}
		}
	}
}

// oldestOfOne gives the decisions of one worker deployment.
func (r decisionReader) oldestOfOne(ctx context.Context, all []epoch) iter.Seq2[decisions.Decision, error] {
	return func(yield func(decisions.Decision, error) bool) {
		sound := func(yield func(epoch, error) bool) {
			for _, e := range all {
				if !yield(e, nil) {
					return
				}
			}
		}
		for ds, err := range r.decoded(ctx, sound, side()) {
			if err != nil {
				yield(decisions.Decision{}, err)
				return
			}
			for _, d := range ds {
				if !yield(d, nil) {
					return
				}
			}
		}
	}
}

// side is how many epochs are decoded side by side where each has work for one processor: that of one worker deployment.
func side() int { return min(runtime.GOMAXPROCS(0), 4) }

// decoded gives what is wanted of epoch after epoch. Of one worker deployment, so many as are said first are decoded side by side, and
// then, where more is asked for, as many as there are processors for.
func (r decisionReader) decoded(ctx context.Context, epochs iter.Seq2[epoch, error], first int) iter.Seq2[[]decisions.Decision, error] {
	return func(yield func([]decisions.Decision, error) bool) {
		next, stop := iter.Pull2(epochs)
		defer stop()
		for n, more := first, true; more; n = side() {
			if r.query.Filter.Deployment == "" {
				n = 1
			}
			var some []epoch
			var failed error
			for len(some) < n && more {
				var e epoch
				e, failed, more = next()
				if more = more && failed == nil; more {
					some = append(some, e)
				}
			}
			for _, g := range r.sideBySide(ctx, some) {
				if !yield(g.all, g.err) || g.err != nil {
					return
				}
			}
			if failed != nil {
				yield(nil, failed)
			}
		}
	}
}

// got is what is wanted of an epoch.
type got struct {
	all []decisions.Decision
	err error
}

func (r decisionReader) sideBySide(ctx context.Context, some []epoch) []got {
	out := make([]got, len(some))
	var all sync.WaitGroup
	for i, e := range some {
		all.Go(func() {
			g := &out[i]
			_, g.err = r.decode(ctx, e, func(d decisions.Decision) bool { g.all = append(g.all, d); return true })
		})
	}
	all.Wait()
	return out
}
