package policy

import (
	"fmt"
	"time"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// grace is how long after its time-out an evaluation counts as one that cannot be stopped. OPA looks whether it has to
// end before each expression; one expression can take for ever, such as comparing two values that are shared within
// themselves many times over.
const grace = time.Second

// watch tells of an evaluation of a book's package if it is not over in its time: stop says that it is.
func (e *Engine) watch(b *rulebook, pkg string, limit time.Duration) (stop func() bool) {
	if e.overrun == nil || !b.foreign {
		return func() bool { return true }
	}
	return time.AfterFunc(limit+grace, func() {
		f := rollout.Finding{Package: pkg, Rule: "policy.timeout", Effect: rollout.HoldEffect,
			Message: fmt.Sprintf("the policies of %s took longer than %s and could not be stopped", pkg, limit)}
		if p := b.all.packages[pkg]; p != nil {
			f.Location = p.foreign
		}
		e.overrun(f)
	}).Stop
}
