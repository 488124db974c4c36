package render

import (
	"fmt"
	"path"
	"slices"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// UnreadableError says that what would be written could not be read again: nothing of it is.
type UnreadableError struct {
	// Path of the file, from the repository's root.
	Path string
	// Why is what the reader says.
	Why string
}

// Error names the file, and what the reader says of it.
func (e *UnreadableError) Error() string {
	return fmt.Sprintf("%s could not be read again, so it is not written: %s", e.Path, e.Why)
}

// readBack reads the changed routing.yaml and status.yaml as the next cycle will.
func (f *filer) readBack() error {
	for name, check := range map[string]func(any) string{layout.Routing: sealedRecord, layout.Status: wholeStatus} {
		change, changed := f.changes[name]
		if !changed || change.Delete {
			continue
		}
		if why := reread(name, change.Data, check); why != "" {
			return &UnreadableError{Path: path.Join(f.plan.Dir, name), Why: why}
		}
	}
	return nil
}

// reread decodes a file strictly and says why that fails, "" if it does not.
func reread(name, data string, check func(any) string) string {
	documents, problems := v1alpha1.Decode(name, []byte(data))
	if at := slices.IndexFunc(problems, func(p v1alpha1.Problem) bool {
		return p.Severity == v1alpha1.Error
	}); at >= 0 {
		return problems[at].String()
	}
	if len(documents) != 1 {
		return fmt.Sprintf("it holds %d objects, not one", len(documents))
	}
	return check(documents[0].Object)
}

func sealedRecord(object any) string {
	switch r, ok := object.(*v1alpha1.Routing); {
	case !ok:
		return "it holds no Routing"
	case r.Edited():
		return "it reads as another record than the one that was sealed"
	}
	return ""
}

func wholeStatus(object any) string {
	if w, ok := object.(*v1alpha1.WorkerDeployment); !ok || w.Status == nil {
		return "its status is left out"
	}
	return ""
}

// LoweringRecord is what is recorded of a lowering when the plan's own record could not be read again. It is the last
// readable record with the plan's desired routing, promotions, bars and hold. So the bot does not take the lowering for
// drift, and no build that was turned back comes again. Nil: there was no record.
func LoweringRecord(plan rollout.Plan, record rollout.Record) *v1alpha1.RoutingSpec {
	if plan.Record == nil || record.Routing == nil {
		return nil
	}
	next := record.Routing.Spec
	next.Desired, next.Decided, next.Basis = plan.Record.Desired, plan.Record.Decided, plan.Record.Basis
	next.Promotions, next.Bars, next.Hold = plan.Record.Promotions, plan.Record.Bars, plan.Record.Hold
	return &next
}
