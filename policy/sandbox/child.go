package sandbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/rampart-gitops/rampart/internal/confined"
	"github.com/rampart-gitops/rampart/internal/retry"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// Limits of a process that evaluates policies.
const (
	// compileTime is how long reading and compiling policies may take.
	compileTime = 10 * time.Second
	// answerTime is how long an answer may take. Policies have less, and are ended by themselves: this is for a process
	// that does nothing any more, and for explanations of many rules.
	answerTime = 20 * time.Second
	// suspension is how long policies are not asked after they took their process with them.
	suspension = 30 * time.Second
	// recompile is after how long at most policies are compiled again that could not be. The first time it is
	// suspension, which doubles: it may have been the machine that had no time, or no memory.
	recompile = 5 * time.Minute
	// idleTime is how long a process is kept that is asked nothing.
	idleTime = time.Minute
)

// child is policies in a process of their own. It is safe for concurrent use; it answers one question after the other.
type child struct {
	cfg     policy.Config
	compile time.Duration
	// loaded is told what they say of themselves each time that they were compiled; nil: nothing is.
	loaded func(*Facts)

	mu      sync.Mutex
	process *confined.Process
	idle    *time.Timer
	// failed is why the policies are not asked until a time.
	failed *rollout.Finding
	until  time.Time
	// broken has the pauses between tries while they cannot be compiled; then failed says why. nil: they can.
	broken *backoff.ExponentialBackOff
}

// failure says what cannot be done with policies as a whole.
func failure(cfg policy.Config, err error, doing string, limit time.Duration) *rollout.Finding {
	f := &rollout.Finding{Package: "rampart", Rule: "policy.timeout", Effect: rollout.HoldEffect,
		Location: placesOf(cfg)}
	var ended *confined.EndedError
	switch {
	case !errors.As(err, &ended):
		f.Rule, f.Message = "policy.error", parse.Cut(fmt.Sprintf("%s the policies: %v", doing, err), parse.MaxMessage)
	case ended.Slow:
		f.Message = fmt.Sprintf("%s the policies takes longer than %s", doing, limit)
	default:
		f.Message = fmt.Sprintf("%s the policies needed more than %d MiB of memory, most likely: their process ended",
			doing, Memory>>20)
		if ended.Said != "" {
			f.Message += " (" + parse.Cut(ended.Said, parse.MaxRule) + ")"
		}
	}
	return f
}

// load has a process that knows the policies. What keeps it from that is a finding. Errors: that of ctx.
func (c *child) load(ctx context.Context) (*rollout.Finding, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.failed != nil && time.Now().Before(c.until) {
		return c.failed, nil
	}
	if c.process.Running() {
		c.failed = nil
		return nil, nil
	}
	facts := &Facts{}
	err := c.process.Call(ctx, c.compile, "Load", c.cfg, facts)
	switch {
	case err == nil:
		c.failed, c.broken = nil, nil
		if c.loaded != nil {
			c.loaded(facts)
		}
		return nil, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	c.failed = failure(c.cfg, err, "reading and compiling", c.compile)
	c.failed.Rule = "policy.broken"
	if c.broken == nil {
		c.broken = retry.Pauses(suspension, recompile)
	}
	c.until = time.Now().Add(c.broken.NextBackOff())
	return c.failed, nil
}

// ask asks the policies. What keeps them from answering is a finding, which stands for some time. Errors: that of ctx,
// and what the answer is instead.
func ask[T any](ctx context.Context, c *child, method string, q Question) (T, *rollout.Finding, error) {
	var out Answer[T]
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.endWhenIdle()
	was, recovers := c.failed, c.broken != nil
	failed, err := c.load(ctx)
	switch {
	case failed != nil || err != nil:
		return out.Value, failed, err
	case recovers: // what they look at was not known when the question was made
		return out.Value, was, nil
	}
	err = c.process.Call(ctx, answerTime, method, q, &out)
	var ended *confined.EndedError
	switch {
	case errors.As(err, &ended):
		c.failed = failure(c.cfg, err, "evaluating", answerTime)
	case out.Overrun != nil:
		c.process.Close()
		c.failed = out.Overrun
	default:
		return out.Value, nil, err
	}
	c.until = time.Now().Add(suspension)
	return out.Value, c.failed, nil
}

// endWhenIdle ends the process when it was asked nothing for a while.
func (c *child) endWhenIdle() {
	if c.idle != nil {
		c.idle.Reset(idleTime)
		return
	}
	c.idle = time.AfterFunc(idleTime, c.close)
}

// close ends the process. The next question begins another one.
func (c *child) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.process.Close()
}

// placesOf names files of policies that others wrote.
func placesOf(cfg policy.Config) string {
	modules := cfg.Foreign()
	switch len(modules) {
	case 0:
		return ""
	case 1:
		return modules[0].Path
	}
	return fmt.Sprintf("%s and %d more", modules[0].Path, len(modules)-1)
}
