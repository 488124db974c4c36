package temporal

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// namespaces is a server that knows what its namespaces are, and nothing else.
type namespaces struct {
	workflowservice.UnimplementedWorkflowServiceServer
	ids   map[string]string
	asked atomic.Int64
	keys  atomic.Value // the credentials that came last
}

func (n *namespaces) DescribeNamespace(ctx context.Context, req *workflowservice.DescribeNamespaceRequest) (*workflowservice.DescribeNamespaceResponse, error) {
	n.asked.Add(1)
	md, _ := metadata.FromIncomingContext(ctx)
	n.keys.Store(md.Get("authorization"))
	return &workflowservice.DescribeNamespaceResponse{NamespaceInfo: &namespacepb.NamespaceInfo{Name: req.GetNamespace(), Id: n.ids[req.GetNamespace()]}}, nil
}

func (n *namespaces) serve(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	workflowservice.RegisterWorkflowServiceServer(server, n)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return l.Addr().String()
}

// TestNamespaceAt: the namespace at a connection's own address is asked for, once for all worker deployments that are
// there.
func TestNamespaceAt(t *testing.T) {
	there := &namespaces{ids: map[string]string{"prod": "the-id"}}
	elsewhere := &namespaces{ids: map[string]string{"prod": "another"}}
	conn, own := connectionTo(there.serve(t)), elsewhere.serve(t)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	p := New(Config{Connections: map[string]Address{"shop/main": {HostPort: own}}, Clock: func() time.Time { return now }})
	t.Cleanup(p.Close)
	want := rollout.NamespaceThere{HostPort: conn.Spec.HostPort, TemporalNamespace: "prod", ID: "the-id"}
	for range 3 {
		require.Equal(t, want, p.NamespaceAt(t.Context(), conn, "prod"), "not at the address that the bot has for its name")
	}
	require.EqualValues(t, 1, there.asked.Load())
	now = now.Add(2 * time.Minute)
	require.Equal(t, want, p.NamespaceAt(t.Context(), conn, "prod"))
	require.EqualValues(t, 2, there.asked.Load())
	require.EqualValues(t, 0, elsewhere.asked.Load())
	require.Equal(t, "describe Temporal namespace dev at "+conn.Spec.HostPort+": describe namespace: the answer has no ID", p.NamespaceAt(t.Context(), conn, "dev").Problem)
	require.Contains(t, p.NamespaceAt(t.Context(), connectionTo(refusing(t)), "prod").Problem, "describe Temporal namespace prod at ")
	require.Contains(t, p.NamespaceAt(t.Context(), connectionTo("no port"), "prod").Problem, "Temporal cannot be reached")
}

// TestResolveThere: credentials that the bot's configuration has for a connection's name, or for all, go to no other
// address of the repository.
func TestResolveThere(t *testing.T) {
	secret := Address{HostPort: "bot:1", APIKeyFile: "/key"}
	for name, c := range map[string]struct {
		cfg  Config
		conn v1alpha1.Connection
		want Address
	}{
		"nothing configured":       {Config{}, connectionTo("repo:7233"), Address{HostPort: "repo:7233"}},
		"by name":                  {Config{Connections: map[string]Address{"shop/main": secret}}, connectionTo("repo:7233"), Address{HostPort: "repo:7233"}},
		"by name, that address":    {Config{Connections: map[string]Address{"shop/main": secret}}, connectionTo("bot:1"), secret},
		"for all":                  {Config{Override: &secret}, connectionTo("repo:7233"), Address{HostPort: "repo:7233"}},
		"for all, that address":    {Config{Override: &secret}, connectionTo("bot:1"), secret},
		"without an address":       {Config{Connections: map[string]Address{"shop/main": {APIKeyFile: "/key"}}}, connectionTo("repo:7233"), Address{HostPort: "repo:7233"}},
		"by address":               {Config{Connections: map[string]Address{"repo:7233": {APIKeyFile: "/key"}}}, connectionTo("repo:7233"), Address{HostPort: "repo:7233", APIKeyFile: "/key"}},
		"by address, over another": {Config{Connections: map[string]Address{"repo:7233": secret}}, connectionTo("repo:7233"), secret},
		"by name and address": {Config{Connections: map[string]Address{"shop/main": secret, "repo:7233": {ServerName: "x"}}}, connectionTo("repo:7233"),
			Address{HostPort: "repo:7233", ServerName: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, c.cfg.resolveThere(c.conn).Address)
		})
	}
}
