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
