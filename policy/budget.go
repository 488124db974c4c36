package policy

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/open-policy-agent/opa/v1/topdown"
)

// Bounds of one query, each 0 for its default. What goes beyond is ended, and held.
type Bounds struct {
	// Timeout of real time.
	Timeout time.Duration
	// Steps of evaluation: expressions that are looked at. The default library takes some hundred.
	Steps int
}

// The default bounds.
const (
	DefaultTimeout = time.Second
	DefaultSteps   = 200_000
)

// OrDefault gives the bounds with the defaults of those that are 0.
func (b Bounds) OrDefault() Bounds {
	return Bounds{Timeout: cmp.Or(b.Timeout, DefaultTimeout), Steps: cmp.Or(b.Steps, DefaultSteps)}
}

// budget is what one query may use. It is the query's Cancel: OPA asks it before each expression, which counts them.
// The clock and the context are looked at once in a while. It is not safe for concurrent use, as a query is not.
type budget struct {
	ctx      context.Context
	bounds   Bounds
	steps    int
	deadline time.Time
	// spent says what was used up; "" is nothing.
	spent string
}

var _ topdown.Cancel = (*budget)(nil)

// lookEvery is how many steps go between two looks at the clock.
const lookEvery = 64

// newBudget gives one query all that bounds allow.
func newBudget(ctx context.Context, bounds Bounds) *budget {
	return &budget{ctx: ctx, bounds: bounds, steps: bounds.Steps}
}

// Cancel ends the query.
func (b *budget) Cancel() { b.end("was canceled") }

// Cancelled counts a step, and reports whether the query has to end.
func (b *budget) Cancelled() bool {
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
func (b *budget) look() {
	now := time.Now()
	switch {
	case b.deadline.IsZero():
		b.deadline = now.Add(b.bounds.Timeout)
	case now.After(b.deadline):
		b.end(fmt.Sprintf("took longer than %s", b.bounds.Timeout))
	}
	if b.ctx.Err() != nil {
		b.Cancel()
	}
}

func (b *budget) end(why string) {
	if b.spent == "" {
		b.spent = why
	}
}
