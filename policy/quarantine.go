package policy

import (
	"sync"
	"time"
)

// quarantine remembers which packages of a rulebook went beyond their bounds, so that a policy that loops costs its bounds once
// in a while and not for each worker deployment in each cycle. It is safe for concurrent use.
type quarantine struct {
	mu sync.Mutex
	// out are packages that are not asked for now.
	out map[string]sentence
	// running are evaluations that were given up and could not be stopped.
	running int
}

type sentence struct {
	until time.Time
	why   string
}

// quarantineTime is how long a package is not asked after it went beyond its bounds.
const quarantineTime = 30 * time.Second

func (q *quarantine) exclude(pkg, why string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.out == nil {
		q.out = map[string]sentence{}
	}
	q.out[pkg] = sentence{time.Now().Add(quarantineTime), why}
}

// excluded says why a package is not to be asked now; "": it is.
func (q *quarantine) excluded(pkg string) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	s, ok := q.out[pkg]
	switch {
	case !ok:
		return ""
	case q.running == 0 && time.Now().After(s.until):
		delete(q.out, pkg)
		return ""
	}
	return s.why
}

func (q *quarantine) count(change int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running += change
}

// grace is how long after its time-out an evaluation is given up that does not notice it.
const grace = time.Second

// answer is what an evaluation ended with.
type answer struct {
	readings []reading
	err      error
}

// apart evaluates a query of policies that nobody vouches for. OPA looks whether it has to end before each expression; one
// expression that takes for ever, such as comparing two values that are shared within themselves many times over, is left to
// itself: nothing can stop it.
func (b *rulebook) apart(q query, ask question) ([]reading, error) {
	done := make(chan answer, 1)
	go func() {
		readings, err := b.all.run(q, ask)
		done <- answer{readings, err}
	}()
	timer := time.NewTimer(ask.budget.bounds.Timeout + grace)
	defer timer.Stop()
	select {
	case got := <-done:
		return got.readings, got.err
	case <-timer.C:
	}
	b.quarantine.count(1)
	go func() {
		<-done
		b.quarantine.count(-1)
	}()
	return nil, exhausted("took longer than " + ask.budget.bounds.Timeout.String() + " and could not be stopped")
}
