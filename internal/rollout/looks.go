package rollout

import "slices"

// Looks is what policies may look at: what they do not need not be read for them.
type Looks struct {
	// Parts of the input, such as git; All says that they may look at any.
	Parts map[string]bool
	All   bool
	// Statuses are the contexts of commit statuses, sorted. They are those whose fact's name is written out in a
	// policy, such as "status:argocd/workers", and those that the parameters of rollout.statuses name. One whose name a
	// policy puts together is not among them.
	Statuses []string
}

// At reports whether policies may look at a part of the input.
func (l Looks) At(part string) bool { return l.All || l.Parts[part] }

// Uncounted are the phases in which policies look at nothing that is counted.
func (l Looks) Uncounted() []CanaryPhase {
	return slices.DeleteFunc(CanaryPhases(), func(p CanaryPhase) bool { return l.At(PartCounts(p)) })
}
