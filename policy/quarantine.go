package policy

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/rampart-gitops/rampart/policy/sandbox"
)

// quarantine remembers which packages of a rulebook went beyond their bounds. So a policy that loops costs its bounds
// once in a while and not for each worker deployment in each cycle. It is safe for concurrent use.
type quarantine struct {
	mu sync.Mutex
	// out are packages that are not asked for now.
	out map[string]sentence
	// running are evaluations that were given up and could not be stopped.
	running int
	// used is what each package used since a time: many policies just within their bounds delay a cycle as one beyond
	// them does.
	used  map[string]int
	since time.Time
}

type sentence struct {
	until time.Time
	why   string
}

// quarantineTime is how long a package is not asked after it went beyond its bounds. What a package uses is added up
// over the same time.
const quarantineTime = 30 * time.Second

// maxCharge is how many steps the policies of a package may take in that time, over all worker deployments: ten seconds
// or so. freeSteps of each evaluation do not count; they are more than ten times what the default library takes.
const (
	maxCharge = 10_000_000
	freeSteps = 5_000
)

func (q *quarantine) exclude(pkg, why string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.out == nil {
		q.out = map[string]sentence{}
	}
	q.out[pkg] = sentence{time.Now().Add(quarantineTime), why}
}

// charge notes what an evaluation of a package used beyond what anybody's needs, and excludes the package when it is
// too much for the time.
func (q *quarantine) charge(pkg string, steps int) {
	if steps -= freeSteps; steps <= 0 {
		return
	}
	q.mu.Lock()
	now := time.Now()
	if q.used == nil || now.Sub(q.since) > quarantineTime {
		q.used, q.since = map[string]int{}, now
	}
	q.used[pkg] += steps
	tooMuch := q.used[pkg] > maxCharge
	if tooMuch {
		delete(q.used, pkg)
	}
	q.mu.Unlock()
	if tooMuch {
		q.exclude(pkg, fmt.Sprintf("the policies of %s took more than %d steps in %s, over all worker deployments", pkg, maxCharge, quarantineTime))
	}
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

// grace is how long after its time-out an evaluation is given up that does not notice it.
const grace = time.Second

// watched evaluates untrusted policies. OPA looks whether it has to end before each expression; one expression that
// takes for ever, such as comparing two values that are shared within themselves many times over, can't be stopped: it
// is left to itself, its package is not asked again while it runs, and the work is done anew without.
func watched[T any](e *Engine, d judging, work func(*judgement) T) T {
	if !e.foreign {
		return work(e.judgement(d))
	}
	for {
		j := e.judgement(d)
		done := make(chan T, 1)
		inBackground(func() { done <- work(j) })
		if got, ok := wait(j, done); ok {
			return got
		}
	}
}

// runners are goroutines that wait for work. Evaluating takes a stack that has to grow, which a new goroutine would do
// each time.
var runners = make(chan chan func(), runtime.GOMAXPROCS(0))

// inBackground does work in a goroutine of its own, for as long as that takes.
func inBackground(work func()) {
	var jobs chan func()
	select {
	case jobs = <-runners:
	default:
		jobs = make(chan func(), 1)
		go func() {
			for idle := true; idle; {
				(<-jobs)()
				select {
				case runners <- jobs:
				default:
					idle = false
				}
			}
		}()
	}
	jobs <- work
}

// wait waits for an answer, and gives up when one query takes too long; its package is excluded then.
func wait[T any](j *judgement, done chan T) (got T, ok bool) {
	timer := time.NewTimer(j.engine.bounds.Timeout + grace)
	defer timer.Stop()
	for before := int64(0); ; {
		select {
		case got := <-done:
			return got, true
		case <-timer.C:
		}
		asked := j.asked.Load()
		if at := j.at.Load(); asked == before && at != nil {
			ended := j.engine.giveUp(guard{at.book, at.pkg, j.environment, j.engine.bounds.Timeout})
			go func() {
				<-done
				ended()
			}()
			return got, false
		}
		before = asked
		timer.Reset(j.engine.bounds.Timeout + grace)
	}
}

// unstoppable says that an evaluation was given up: it still runs, and what it was to fill in is not to be looked at.
type unstoppable string

func (u unstoppable) Error() string { return string(u) }

// guard is whose evaluation is watched, and for how long.
type guard struct {
	book             *rulebook
	pkg, environment string
	limit            time.Duration
}

// guarded is one query of a book that a person waits for, given up as those of Judge are. Queries of a package that was
// given up are not begun while they run.
func (e *Engine) guarded(of guard, work func() error) error {
	if of.book.quarantine.stuck() {
		return unstoppable("could not be stopped before, and still runs")
	}
	if why := e.refused(of.book, of.environment); why != "" {
		return unstoppable("was not begun: " + why)
	}
	done := make(chan error, 1)
	go func() {
		var err error
		defer func() { done <- err }()
		defer sandbox.Recovered(&err)
		err = work()
	}()
	timer := time.NewTimer(of.limit + grace)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
	}
	ended := e.giveUp(of)
	go func() {
		for range done { // its result is dropped
			break
		}
		ended()
	}()
	return unstoppable("took longer than " + of.limit.String() + " and could not be stopped")
}

// giveUp notes that an evaluation could not be stopped; the result is called when it ends.
func (e *Engine) giveUp(of guard) (ended func()) {
	q, p := &of.book.quarantine, e.party(of.book, of.environment)
	q.exclude(of.pkg, "the policies of "+of.pkg+" took longer than "+of.limit.String()+" and could not be stopped")
	q.run(1)
	e.stuck.run(p, 1)
	return func() {
		q.run(-1)
		e.stuck.run(p, -1)
	}
}

// run notes so many more evaluations that were given up and run on.
func (q *quarantine) run(more int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running += more
}
