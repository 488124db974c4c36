package temporal_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/temporal"
	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// handover is a call that hands the routing over as it was read.
func (e *env) handover(from, to string) temporal.ManagerCall {
	e.T.Helper()
	return temporal.ManagerCall{From: from, To: to, Token: e.mustObserve(rollout.Ask{}).ConflictToken}
}

func TestSetManager(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1")
	e.raise(current("v1"))
	is := func(want string) {
		t.Helper()
		require.Equal(t, want, e.mustObserve(rollout.Ask{}).ManagerIdentity)
	}
	made := func() int {
		n := 0
		for _, m := range e.methods() {
			if m == "SetWorkerDeploymentManager" {
				n++
			}
		}
		return n
	}
	is(bot)
	require.NoError(t, e.pool.SetManager(e.Ctx, e.subject(), e.handover(bot, "")))
	is("")
	e.manager("somebody-else")
	require.NoError(t, e.pool.SetManager(e.Ctx, e.subject(), e.handover("somebody-else", bot)), "another one's identity")
	is(bot)
	calls := made()
	require.NoError(t, e.pool.SetManager(e.Ctx, e.subject(), e.handover("somebody-else", bot)), "it is so already")

	e.manager("eve")
	var owner *temporal.OwnerError
	require.ErrorAs(t, e.pool.SetManager(e.Ctx, e.subject(), e.handover("somebody-else", bot)), &owner)
	require.Equal(t, "eve", owner.Manager)
	is("eve")
	old := e.handover("eve", bot)
	e.manager("")
	e.manager("eve")
	require.ErrorIs(t, e.pool.SetManager(e.Ctx, e.subject(), old), rollout.ErrStale)
	is("eve")
	require.Equal(t, calls, made(), "what is refused is not asked for")

	// It changes hands between the read and the call.
	e.hookOnce("SetWorkerDeploymentManager", func() { e.manager("mallory") })
	require.ErrorIs(t, e.pool.SetManager(e.Ctx, e.subject(), e.handover("eve", bot)), rollout.ErrStale)
	is("mallory")
	// The call is made, and its answer is lost.
	e.NS.Inject(temporalenv.Fault{Method: "SetWorkerDeploymentManager", Point: temporalenv.AfterForwarding, Times: 1})
	require.NoError(t, e.pool.SetManager(e.Ctx, e.subject(), e.handover("mallory", bot)))
	is(bot)
}

// A current version can be left without traffic; then it drains, and nothing is current.
func TestUnroutedVersionDrains(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1")
	e.raise(current("v1"))
	e.raise(current(""))
	require.True(t, e.routing().SameTraffic(rollout.RoutingConfig{}), "%+v", e.routing())
	obs := e.mustObserve(rollout.Ask{})
	require.NotEmpty(t, obs.Version("v1").Drainage)
}

func TestInUse(t *testing.T) {
	e := newEnv(t)
	e.Start("app", "v1")
	e.raise(current("v1"))
	since := time.Now()
	use := func(since time.Time) rollout.Count {
		obs := e.mustObserve(rollout.Ask{InUse: []string{"v1", "gone"}, InUseSince: since})
		require.Nil(t, obs.Version("gone"))
		return obs.Version("v1").InUse
	}
	become := func(since time.Time, want int64) {
		t.Helper()
		e.Eventually(func(context.Context) error {
			if got := use(since); got != rollout.Counted(want) {
				return fmt.Errorf("%+v, not %d", got, want)
			}
			return nil
		})
	}
	become(since, 0)
	obs := e.mustObserve(rollout.Ask{})
	require.False(t, obs.Version("v1").InUse.Known, "not asked")
	open := e.workflow(temporalenv.Follow, "") // neither pinned nor closed
	become(time.Now().Add(time.Hour), 1)
	e.workflow(temporalenv.Checkout, "")
	become(since, 2)
	require.NoError(t, e.Client.TerminateWorkflow(e.Ctx, open, "", "test"))
	become(since, 2)
	become(time.Now().Add(time.Hour), 0)
}
