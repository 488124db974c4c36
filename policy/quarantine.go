package policy

import (
	"fmt"
	"sync"
	"time"
)

// quarantine remembers which packages of a rulebook went beyond their bounds. So a policy that loops costs its bounds
// once in a while and not for each worker deployment in each cycle. It is safe for concurrent use.
type quarantine struct {
	mu sync.Mutex
	// out are packages that are not asked for now.
	out map[string]sentence
	// used is what each package took since a time: many policies just within their bounds delay a cycle as one beyond
	// them does.
	used  map[string]time.Duration
	since time.Time
}

type sentence struct {
	until time.Time
	why   string
}

// quarantineTime is how long a package is not asked after it went beyond its bounds. What a package takes is added up
// over the same time.
const quarantineTime = 30 * time.Second

// maxCharge is how long the policies of a package may take in that time, over all worker deployments. Evaluations of
// less than freeTime do not count; that is ten times what the default library takes.
const (
	maxCharge = 10 * time.Second
	freeTime  = 5 * time.Millisecond
)

func (q *quarantine) exclude(pkg, why string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.out[pkg] = sentence{time.Now().Add(quarantineTime), why}
}

// charge notes how long an evaluation of a package took, and excludes the package when it is too much for the time.
func (q *quarantine) charge(pkg string, took time.Duration) {
	if took < freeTime {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	if now.Sub(q.since) > quarantineTime {
		q.used, q.since = map[string]time.Duration{}, now
	}
	if q.used[pkg] += took; q.used[pkg] > maxCharge {
		delete(q.used, pkg)
		q.out[pkg] = sentence{now.Add(quarantineTime), fmt.Sprintf(
			"the policies of %s took more than %s in %s, over all worker deployments", pkg, maxCharge, quarantineTime)}
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
	case time.Now().After(s.until):
		delete(q.out, pkg)
		return ""
	}
	return s.why
}
