package temporal

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

func TestMovingWorkflowsNeedsServer132(t *testing.T) {
	for version, ok := range map[string]bool{
		"1.32.0": true, "1.33.0-150.1": true, "2.0": true, "1.31.9": false, "0.40.0": false, "": false, "dev": false,
	} {
		if err := movable(version); ok {
			require.NoError(t, err, version)
		} else {
			require.ErrorContains(t, err, "needs Temporal 1.32", version)
		}
	}
}

// oldServer is a server of a version that is not at hand, without any batch job.
type oldServer struct {
	workflowservice.WorkflowServiceClient
	version string
	asked   int
}

func (*oldServer) DescribeBatchOperation(context.Context, *workflowservice.DescribeBatchOperationRequest, ...grpc.CallOption) (*workflowservice.DescribeBatchOperationResponse, error) {
	return nil, status.Error(codes.NotFound, "no such job")
}

func (*oldServer) ListBatchOperations(context.Context, *workflowservice.ListBatchOperationsRequest, ...grpc.CallOption) (*workflowservice.ListBatchOperationsResponse, error) {
	return &workflowservice.ListBatchOperationsResponse{}, nil
}

func (s *oldServer) GetSystemInfo(ctx context.Context, _ *workflowservice.GetSystemInfoRequest, _ ...grpc.CallOption) (*workflowservice.GetSystemInfoResponse, error) {
	if md, _ := metadata.FromOutgoingContext(ctx); !slices.Equal(md.Get(namespaceHeader), []string{"shop"}) {
		return nil, status.Error(codes.NotFound, "which namespace's server?")
	}
	s.asked++
	return &workflowservice.GetSystemInfoResponse{ServerVersion: s.version}, nil
}

// A server that cannot move workflows is known before a move is started, and asked only where there is one to start.
func TestOldServerCannotMove(t *testing.T) {
	for _, c := range []struct {
		version, want string
		asks          []rollout.BatchAsk
		asked         int
	}{
		{"1.31.4", "moving workflows needs Temporal 1.32 or later, this server is 1.31.4: upgrade it, or leave moveTo out",
			[]rollout.BatchAsk{{BuildID: "v1", JobID: "a", Stage: v1alpha1.EvacuateByMove}, {BuildID: "v2", JobID: "b", Stage: v1alpha1.EvacuateByMove}}, 1},
		{"1.32.0", "", []rollout.BatchAsk{{BuildID: "v1", JobID: "a", Stage: v1alpha1.EvacuateByMove}}, 1},
		{"1.31.4", "", []rollout.BatchAsk{{BuildID: "v1", JobID: "a", Stage: v1alpha1.EvacuateByCancel}}, 0},
	} {
		server := &oldServer{version: c.version}
		o := &observer{session: &session{pool: New(Config{}), conn: &connection{service: server}, limits: newLimiter("shop", Budget{}), namespace: "shop"},
			ask: rollout.Ask{Batches: c.asks}, log: slog.New(slog.DiscardHandler)}
		o.readBatches(t.Context())
		require.Equal(t, c.want, o.obs.Batches.CannotMove)
		require.Equal(t, rollout.BatchMissing, o.obs.Batches.Job("a").State)
		require.Equal(t, c.asked, server.asked)
	}
}
