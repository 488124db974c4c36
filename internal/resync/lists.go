package resync

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Lister finds worker deployments whose routing moved, many at a time. Absence from its answer proves nothing.
type Lister interface {
	// List gives the same list as before where no traffic moved since.
	List(ctx context.Context, conn v1alpha1.Connection, temporalNamespace string) (*rollout.Listing, error)
}

// Bounds of lists.
const (
	// listPatience is how long a cycle waits for the lists of all Temporal namespaces together.
	listPatience = 2 * time.Second
	// listTime bounds one list.
	listTime = 20 * time.Second
)

// list is the list of a Temporal namespace.
type list struct {
	of         v1alpha1.Connection
	connection string // its hash
	namespace  string
	// now is the list that came last; nil: none came, or the last question failed.
	now *rollout.Listing
	// coming gets the answer to a question that was asked; nil: none was.
	coming chan *rollout.Listing
	// late says that the answer did not come in time, so that no cycle waits for it.
	late bool
	// used says that a worker deployment of this cycle is in it, dropped that none was.
	used, dropped bool
}

// list gives the list that a worker deployment is in.
func (t *Table) list(connection *v1alpha1.Connection, hash ConnectionHash, namespace string) *list {
	is := hash(connection)
	for _, l := range t.lists {
		if l.connection == is && l.namespace == namespace {
			return l
		}
	}
	l := &list{of: *connection, connection: is, namespace: namespace}
	t.lists = append(t.lists, l)
	return l
}

// AskLists asks all namespaces that worker deployments at rest are in, beside each other. What does not come in two
// seconds comes in a later cycle: until then the list before counts, and nothing but time makes its worker deployments
// due.
func (t *Table) AskLists(ctx context.Context, from Lister, log *slog.Logger) {
	t.lists = slices.DeleteFunc(t.lists, func(l *list) bool {
		l.dropped = !l.used
		return l.dropped
	})
	for _, l := range t.lists {
		l.used = false
		if l.coming == nil {
			l.coming = make(chan *rollout.Listing, 1)
			go l.ask(context.WithoutCancel(ctx), from, log)
		}
	}
	patience := time.NewTimer(listPatience)
	defer patience.Stop()
	over := false
	for _, l := range t.lists {
		if l.late || over {
			select {
			case now := <-l.coming:
				l.now, l.coming, l.late = now, nil, false
			default:
				l.late = true
			}
			continue
		}
		select {
		case now := <-l.coming:
			l.now, l.coming = now, nil
		case <-patience.C:
			l.late, over = true, true
		case <-ctx.Done():
			return
		}
	}
}

// ask asks for the list, and gives it to coming.
func (l *list) ask(ctx context.Context, from Lister, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	now, err := from.List(ctx, l.of, l.namespace)
	if err != nil {
		log.WarnContext(ctx, "worker deployments could not be listed", "namespace", l.namespace, "error", err)
		now = nil
	}
	l.coming <- now
}
