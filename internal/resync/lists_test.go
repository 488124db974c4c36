package resync

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// slowLister is a Lister that does not answer for one namespace.
type slowLister struct{ hung string }

func (l slowLister) List(ctx context.Context, _ v1alpha1.Connection, namespace string) (*rollout.Listing, error) {
	if namespace == l.hung {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &rollout.Listing{}, nil
}

// A list that does not come is waited for once, for a short time.
func TestListThatDoesNotComeHoldsNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := Table{}
		hash := NewConnectionHash()
		ask := func() time.Duration {
			for _, n := range []string{"hung", "well"} {
				table.list(&v1alpha1.Connection{}, hash, n).used = true
			}
			begin := time.Now()
			table.AskLists(t.Context(), slowLister{"hung"}, slog.New(slog.DiscardHandler))
			return time.Since(begin)
		}
		require.Equal(t, listPatience, ask())
		require.Zero(t, ask())
		require.Nil(t, table.lists[0].now)
		require.NotNil(t, table.lists[1].now)
		time.Sleep(listTime)
		synctest.Wait()
		require.Zero(t, ask())
		time.Sleep(listTime)
	})
}

// The list of a namespace whose worker deployments are in a group at work is kept, with that it is late.
func TestListOfABusyNamespaceIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, hash, shared := Table{}, NewConnectionHash(), &Shared{}
		k := &rollout.IndexEntry{Deployment: rollout.Name{Namespace: "shop", Name: "cart"}, Connection: &v1alpha1.Connection{}}
		table.Settle(Key{"prod", k.Deployment}, Row{Inputs: InputsOfEntry(k, *shared, hash), TemporalNamespace: "hung"}, time.Now())
		ask := func(look func(*Walk)) time.Duration {
			walk := table.Walk("prod")
			look(walk)
			walk.End()
			begin := time.Now()
			table.AskLists(t.Context(), slowLister{"hung"}, slog.New(slog.DiscardHandler))
			return time.Since(begin)
		}
		rests := func(w *Walk) { require.True(t, w.Rests(k, shared, hash, time.Now())) }
		require.Equal(t, listPatience, ask(rests))
		require.Zero(t, ask(func(w *Walk) { w.Keep(k) }))
		require.Zero(t, ask(rests), "it is not waited for again")
		time.Sleep(listTime)
	})
}
