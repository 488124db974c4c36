package temporal

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

func TestBudgetDefaults(t *testing.T) {
	rates := func(b Budget) map[bucket]Rate {
		out := map[bucket]Rate{}
		for kind, l := range newLimiter("ns", b).buckets {
			out[kind] = Rate{float64(l.Limit()), l.Burst()}
		}
		return out
	}
	require.Equal(t, map[bucket]Rate{describing: {40, 40}, queues: {200, 100}, visibility: {4, 8}, changing: {5, 10}}, rates(Budget{}))
	require.Equal(t, Rate{2, 1}, rates(Budget{Visibility: Rate{PerSecond: 2}})[visibility])
}

func limits(l *limiter) map[bucket]rate.Limit {
	out := map[bucket]rate.Limit{}
	for kind, b := range l.buckets {
		out[kind] = b.Limit()
	}
	return out
}

func all(describe, queue, visible, change float64) map[bucket]rate.Limit {
	return map[bucket]rate.Limit{
		describing: rate.Limit(describe), queues: rate.Limit(queue), visibility: rate.Limit(visible), changing: rate.Limit(change),
	}
}

func TestExhaustedSlowsTheWholeNamespaceDown(t *testing.T) {
	l := newLimiter("ns", Budget{})
	now := time.Now()
	require.Equal(t, all(40, 200, 4, 5), limits(l))

	require.True(t, l.exhausted(now), "the log says so")
	require.Equal(t, all(20, 100, 2, 2.5), limits(l))
	require.Equal(t, exhaustedPause, l.remaining(now))
	require.False(t, l.exhausted(now.Add(exhaustedPause/2)))
	require.Equal(t, all(20, 100, 2, 2.5), limits(l), "answers to calls made before the pause count once")

	for range 10 {
		now = now.Add(exhaustedPause)
		require.False(t, l.exhausted(now), "once in a while")
	}
	require.Equal(t, all(2.5, 12.5, 0.25, 0.3125), limits(l), "never slower than a sixteenth")

	require.LessOrEqual(t, l.remaining(now.Add(recovery)), time.Duration(0))
	require.Equal(t, all(5, 25, 0.5, 0.625), limits(l), "twice as fast after a while without complaint")
	l.remaining(now.Add(5 * recovery))
	require.Equal(t, all(40, 200, 4, 5), limits(l))
	require.True(t, l.exhausted(now.Add(exhaustedWarning)))
}

func TestAcquireFailsBeyondTheBudget(t *testing.T) {
	l := newLimiter("ns", Budget{Visibility: Rate{PerSecond: 0.001, Burst: 2}})
	ctx := t.Context()
	require.NoError(t, l.acquire(ctx, visibility))
	require.NoError(t, l.acquire(ctx, visibility))
	var used *BudgetError
	require.ErrorAs(t, l.acquire(ctx, visibility), &used, "at once, since no waiting would help")
	require.Equal(t, BudgetError{Kind: "visibility", Namespace: "ns"}, *used)
	require.NoError(t, l.acquire(ctx, describing), "other buckets are not concerned")

	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, l.acquire(cancelled, describing), context.Canceled)

	l.exhausted(time.Now())
	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, l.acquire(short, describing), context.DeadlineExceeded, "the pause holds every bucket")
}

// There are as many slots as describes may be made in a second. Who waits longest has the next one.
func TestSlotsGoToTheLongestWait(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for perSecond, slots := range map[float64]int{0.1: 1, 1: 1, 2.5: 2, 40: 40} {
		l := newLimiter("ns", Budget{Describe: Rate{PerSecond: perSecond}})
		for range slots {
			_, err := l.slot(ended, describing)
			require.NoError(t, err, "one that is free is there for those that come late, too")
		}
		_, err := l.slot(ended, describing)
		require.Equal(t, &BudgetError{Kind: "describe", Namespace: "ns"}, err)
	}

	l := newLimiter("ns", Budget{Visibility: Rate{PerSecond: 2.5}})
	for range 5 {
		_, err := l.slot(ended, visibility)
		require.NoError(t, err, "twice as many as counts in a second")
	}
	_, err := l.slot(ended, visibility)
	require.Equal(t, &BudgetError{Kind: "visibility", Namespace: "ns"}, err)

	l = newLimiter("ns", Budget{Describe: Rate{PerSecond: 1}})
	free, err := l.slot(t.Context(), describing)
	require.NoError(t, err)
	got := make(chan func())
	go func() {
		free, err := l.slot(t.Context(), describing)
		if err != nil {
			t.Error(err)
		}
		got <- free
	}()
	free()
	(<-got)()
	_, err = l.slot(ended, describing)
	require.NoError(t, err)
}

func TestRateLimited(t *testing.T) {
	for cause := range enumspb.ResourceExhaustedCause_name {
		err := serviceerror.NewResourceExhausted(enumspb.ResourceExhaustedCause(cause), "too much")
		require.Equal(t, cause == int32(enumspb.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT), rateLimited(err), "cause %d", cause)
	}
	require.False(t, rateLimited(serviceerror.NewUnavailable("down")))
}

// What the server refuses since it was asked too much is asked again, unless asking again would not help.
func TestBusyServersAreAskedAgain(t *testing.T) {
	for cause := range enumspb.ResourceExhaustedCause_name {
		err := serviceError(serviceerror.NewResourceExhausted(enumspb.ResourceExhaustedCause(cause), "too much").(serviceerror.ServiceError).Status().Err())
		require.Equal(t, cause != int32(enumspb.RESOURCE_EXHAUSTED_CAUSE_WORKER_DEPLOYMENT_LIMITS), errors.Is(err, rollout.ErrBusy), "cause %d", cause)
		require.Equal(t, codes.ResourceExhausted, codeOf(err))
		require.EqualError(t, err, "too much")
	}
	require.ErrorIs(t, &BudgetError{}, rollout.ErrBusy)
	require.NotErrorIs(t, serviceError(status.Error(codes.Unavailable, "down")), rollout.ErrBusy)
}
