package temporal

import (
	"net"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// refusing gives an address that refuses connections.
func refusing(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	return l.Addr().String()
}

func TestPoolIsSafeForConcurrentUse(t *testing.T) {
	p := New(Config{})
	conn := connectionTo(refusing(t))
	var calls sync.WaitGroup
	for i := range 20 {
		calls.Go(func() {
			obs := p.Observe(t.Context(), conn, rollout.Ask{TemporalNamespace: "ns"})
			if obs.Problem == nil || obs.Problem.Reason != rollout.TemporalClientCreationFailed {
				t.Errorf("problem is %+v", obs.Problem)
			}
			s, err := p.session(conn, "ns")
			if err != nil {
				t.Error(err)
				return
			}
			s.limits.exhausted(day)
			if i%3 == 0 {
				p.evict(s.conn)
			}
		})
	}
	calls.Wait()
	require.Len(t, p.limiters, 1)
	p.Close()
	p.Close()
	obs := p.Observe(t.Context(), conn, rollout.Ask{Deployment: rollout.Name{Namespace: "a", Name: "b"}})
	require.Empty(t, cmp.Diff(rollout.Observation{At: obs.At, Problem: &rollout.Problem{
		Reason: rollout.TemporalClientCreationFailed, Message: "read worker deployment a/b: Temporal cannot be reached: the bot's log has the details",
	}}, obs))
}

func TestProblemsByCodeOfTheServer(t *testing.T) {
	for code, want := range map[codes.Code]rollout.Reason{
		codes.Unauthenticated: rollout.AuthSecretInvalid, codes.PermissionDenied: rollout.TemporalStateFetchFailed,
		codes.Unavailable: rollout.TemporalStateFetchFailed, codes.NotFound: rollout.TemporalStateFetchFailed,
	} {
		err := serviceError(status.Error(code, "x"))
		require.Equal(t, code, codeOf(err))
		require.Equal(t, want, problem("read", err).Reason, "%v", code)
		require.False(t, problem("read", err).Busy, "%v", code)
	}
	require.True(t, problem("read", serviceError(status.Error(codes.ResourceExhausted, "x"))).Busy)
	require.True(t, problem("read", &BudgetError{}).Busy)
}
