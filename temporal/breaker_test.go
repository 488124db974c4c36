package temporal

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	deploymentpb "go.temporal.io/api/deployment/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// A namespace that does not answer is not read for a while. Then one read tries. Its answer, also a refusal, ends that.
func TestBreakerOpensAfterReadsWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker()
		read := func(err error) error {
			done, refused := b.allow()
			if refused == nil {
				done(err)
			}
			return refused
		}
		silent := status.Error(codes.DeadlineExceeded, "no answer")
		for range unansweredReads - 1 {
			require.NoError(t, read(silent))
		}
		require.NoError(t, read(status.Error(codes.NotFound, "an answer")))
		for range unansweredReads {
			require.NoError(t, read(errCallerGone), "says nothing of the server")
		}
		for range unansweredReads {
			require.NoError(t, read(silent))
		}
		require.Equal(t, silent, read(nil))
		time.Sleep(breakerPause + time.Millisecond)
		require.NoError(t, read(silent))
		require.Equal(t, silent, read(nil), "it is open again")
		time.Sleep(breakerPause + time.Millisecond)
		require.NoError(t, read(status.Error(codes.PermissionDenied, "an answer")))
		require.NoError(t, read(errors.New("whatever")))
	})
}

// silent is a server that does not answer for one of its namespaces.
type silent struct {
	workflowservice.UnimplementedWorkflowServiceServer
	asked atomic.Int64
}

func (s *silent) DescribeWorkerDeployment(_ context.Context,
	req *workflowservice.DescribeWorkerDeploymentRequest) (*workflowservice.DescribeWorkerDeploymentResponse, error) {
	if req.GetNamespace() == "silent" {
		s.asked.Add(1)
		return nil, status.Error(codes.DeadlineExceeded, "no answer")
	}
	return &workflowservice.DescribeWorkerDeploymentResponse{WorkerDeploymentInfo: &deploymentpb.WorkerDeploymentInfo{}}, nil
}

// Each Temporal namespace has a circuit breaker of its own.
func TestNamespaceThatDoesNotAnswerIsLeftAlone(t *testing.T) {
	s := &silent{}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	workflowservice.RegisterWorkflowServiceServer(server, s)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	p := New(Config{})
	t.Cleanup(p.Close)
	well := func() {
		require.Nil(t, p.Observe(t.Context(), connectionTo(l.Addr().String()), rollout.Ask{TemporalNamespace: "well"}).Problem)
	}
	well()
	for range 10 {
		o := p.Observe(t.Context(), connectionTo(l.Addr().String()), rollout.Ask{TemporalNamespace: "silent"})
		require.Equal(t, rollout.TemporalStateFetchFailed, o.Problem.Reason)
		require.False(t, o.Problem.Busy)
	}
	require.EqualValues(t, unansweredReads, s.asked.Load())
	well()
}
