package sandbox

import (
	"context"
	"fmt"
	"runtime/metrics"
	"time"

	"github.com/open-policy-agent/opa/v1/topdown"
)

// Budget is what one query may use. It is the query's Cancel: OPA asks it before each expression, which counts them,
// and at work inside builtins that can take long. The clock and the context are looked at once in a while. It is not
// safe for concurrent use, as a query is not.
type Budget struct {
	ctx    context.Context
	bounds Bounds
	steps  int
	memory int64
	// parts that values may have which are made.
	parts int
	// compared are the parts that more values may have which are compared before what follows them is evaluated.
	compared int
	deadline time.Time
	scales   weigher
	// heap in use when the query had taken long, to tell how much it takes; 0: it has not.
	heap uint64
	// spent says what was used up; "" is nothing.
	spent string
}

var _ topdown.Cancel = (*Budget)(nil)

// lookEvery is how many steps go between two looks at the clock.
const lookEvery = 64

// NewBudget gives one query all that bounds allow.
func NewBudget(ctx context.Context, bounds Bounds) *Budget {
	return &Budget{ctx: ctx, bounds: bounds, steps: bounds.Steps, memory: bounds.Memory, parts: maxMade, compared: maxCompared}
}

// Cancel ends the query.
func (b *Budget) Cancel() { b.end("was cancelled") }

// Cancelled counts a step, and reports whether the query has to end.
func (b *Budget) Cancelled() bool {
	b.steps--
	switch {
	case b.spent != "":
		return true
	case b.steps < 0:
		b.end(fmt.Sprintf("took more than %d steps", b.bounds.Steps))
	case b.steps%lookEvery == 0:
		b.look()
	}
	return b.spent != ""
}

// look looks at the clock, which is set at the first look: a query of a few steps never does.
func (b *Budget) look() {
	now := time.Now()
	switch {
	case b.deadline.IsZero():
		b.deadline = now.Add(b.bounds.Timeout)
	case now.After(b.deadline):
		b.end(fmt.Sprintf("took longer than %s", b.bounds.Timeout))
	case b.deadline.Sub(now) < b.bounds.Timeout-b.bounds.Timeout/longAfter:
		b.weigh()
	}
	if b.ctx.Err() != nil {
		b.Cancel()
	}
}

// longAfter is which part of its time a query may take before the heap is looked at.
const longAfter = 16

// weigh looks at what the whole process keeps, as of the last collection. It is of no query: but one that takes long
// while what is kept grows by twice what it may take is at fault, or runs where there is no memory to spare.
func (b *Budget) weigh() {
	sample := [1]metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample[:])
	live := sample[0].Value.Uint64()
	switch {
	case b.heap == 0 || live < b.heap:
		b.heap = live
	case live-b.heap > uint64(2*b.bounds.Memory):
		b.short()
	}
}

// Context is the context of the query.
func (b *Budget) Context() context.Context { return b.ctx }

// Spent says in a sentence what was used up; "" is nothing.
func (b *Budget) Spent() string { return b.spent }

// take takes memory for the result of a builtin, and reports whether there was enough.
func (b *Budget) take(bytes int64) bool {
	if b.memory -= bytes; b.memory < 0 {
		b.overworked()
	}
	return b.spent == ""
}

// Used is how many steps were taken, with the work of builtins and each part that was made as steps.
func (b *Budget) Used() int {
	return b.bounds.Steps - max(b.steps, 0) + int(b.bounds.Memory-max(b.memory, 0))/bytesOfStep + maxMade - max(b.parts, 0)
}

// bytesOfStep is how much a builtin makes in about the time of a step.
const bytesOfStep = 1 << 10

func (b *Budget) short() {
	b.end(fmt.Sprintf("needed more than %d MiB of memory", b.bounds.Memory>>20))
}

// overworked says that builtins were given too much: what they take is never given back.
func (b *Budget) overworked() {
	b.end(fmt.Sprintf("had builtins work on more than %d MiB", b.bounds.Memory>>20))
}

func (b *Budget) end(why string) {
	if b.spent == "" {
		b.spent = why
	}
}
