package policy

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// maxStuck is how many evaluations that could not be stopped may run on. At that many, a party that left one is asked
// for nothing that might leave another.
const maxStuck = 3

// Stuck counts the evaluations that were given up and still run, in all Engines that are compiled with it: each change
// of a policy makes another Engine, which knows nothing of those before. It is safe for concurrent use, and ready as it
// is.
type Stuck struct {
	all     atomic.Int64
	mu      sync.Mutex
	running map[party]int
}

// party is whose policies are evaluated: those of an environment, or the bot's own, which are the same for all.
type party struct {
	environment string
	floor       bool
}

func (e *Engine) party(b *rulebook, environment string) party {
	if b != e.books[0] {
		return party{floor: true}
	}
	return party{environment: environment}
}

// refused says why the policies of a book are not evaluated for an environment; "": they are.
func (e *Engine) refused(b *rulebook, environment string) string {
	if e.stuck.all.Load() < maxStuck {
		return ""
	}
	return e.stuck.refused(e.party(b, environment))
}

func (s *Stuck) refused(p party) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[p] == 0 {
		return ""
	}
	whose := fmt.Sprintf("the policies of environment %q", p.environment)
	if p.floor {
		whose = "the bot's own policies"
	}
	return fmt.Sprintf("%s are not evaluated: %d evaluations of theirs and %d in all could not be stopped, and still run; "+
		"they are evaluated again when these end, or when the bot is started again", whose, s.running[p], s.all.Load())
}

// run notes so many more evaluations that were given up and run on.
func (s *Stuck) run(p party, more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.Add(int64(more))
	if s.running == nil {
		s.running = map[party]int{}
	}
	if s.running[p] += more; s.running[p] == 0 {
		delete(s.running, p)
	}
}
