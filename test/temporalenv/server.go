package temporalenv

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/temporal"
	"go.temporal.io/server/temporaltest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"
)

// maxMessage is the largest gRPC message in bytes that the proxy and the direct connection take.
const maxMessage = 64 << 20

// Options are the settings of a Server. The zero value suits most tests.
type Options struct {
	// Address is the host:port to listen on. Default: a free port on 127.0.0.1.
	Address string
	// TLS is what clients of Address have to speak, client certificates included. Default: plain text.
	TLS *tls.Config
	// Drainage is both the grace period before a draining version is looked at and the time between two looks.
	// Default 2 s (a real server: 3 min each).
	Drainage time.Duration
	// PollerTTL is for how long a poller stays listed after its last poll began. Default 2 s (a real server: 5 min).
	PollerTTL time.Duration
	// LongPoll is how long the server holds a poll without work. It has to be shorter than PollerTTL, or idle workers
	// drop off the list between two polls. Default 1 s (a real server: 60 s).
	LongPoll time.Duration
	// VisibilityRPS is the limit of counts and lists per second and namespace. Default 1000 (a real server: 10).
	VisibilityRPS int
	// Log receives the warnings of proxy and workers. Default: discarded.
	Log *slog.Logger
	// CLI is a binary of the temporal CLI, whose development server is run in place of the one in this process: another
	// release of Temporal. Its settings cannot be changed while it runs. Default: none.
	CLI string
}

func (o Options) withDefaults() Options {
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}
	if o.Drainage == 0 {
		o.Drainage = 2 * time.Second
	}
	if o.PollerTTL == 0 {
		o.PollerTTL = 2 * time.Second
	}
	if o.LongPoll == 0 {
		o.LongPoll = time.Second
	}
	if o.VisibilityRPS == 0 {
		o.VisibilityRPS = 1000
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Server is a running Temporal server behind its proxy.
type Server struct {
	opts   Options
	config *dynamicconfig.MemoryClient
	real   *temporaltest.TestServer // nil with a CLI
	cli    *cliServer               // nil without one
	direct *grpc.ClientConn
	proxy  *proxyServer

	closeOnce sync.Once
	closeErr  error
}

// TB is the part of testing.TB that Start needs, so that programs do not link the testing package.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
	Cleanup(func())
}

// Start is New for a test: a failure ends the test, and the server ends with it.
func Start(t TB, opts Options) *Server {
	t.Helper()
	s, err := New(context.Background(), opts)
	if err != nil {
		t.Fatalf("start temporal: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close temporal: %v", err)
		}
	})
	return s
}

// New starts a server and returns when its frontend answers. ctx bounds only the start.
func New(ctx context.Context, opts Options) (*Server, error) {
	opts = opts.withDefaults()
	s := &Server{opts: opts, config: settings(opts)}
	var err error
	if opts.CLI != "" {
		s.cli, err = startCLI(opts)
	} else {
		s.real, err = startReal(s.config)
	}
	if err != nil {
		return nil, fmt.Errorf("start temporal server: %w", err)
	}
	s.direct, err = grpc.NewClient(s.frontend(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to temporal server: %w", err), s.Close())
	}
	err = until(ctx, func(ctx context.Context) error {
		_, err := s.Service().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("wait for temporal frontend: %w", err), s.Close())
	}
	if s.proxy, err = startProxy(opts, s.direct); err != nil {
		return nil, errors.Join(fmt.Errorf("start proxy: %w", err), s.Close())
	}
	return s, nil
}

// settings is the dynamic configuration that makes draining, deleting and reading quick enough for tests.
func settings(opts Options) *dynamicconfig.MemoryClient {
	c := dynamicconfig.NewMemoryClient()
	c.OverrideSetting(dynamicconfig.VersionDrainageStatusVisibilityGracePeriod, opts.Drainage)
	c.OverrideSetting(dynamicconfig.VersionDrainageStatusRefreshInterval, opts.Drainage)
	c.OverrideSetting(dynamicconfig.PollerHistoryTTL, opts.PollerTTL)
	c.OverrideSetting(dynamicconfig.MatchingLongPollExpirationInterval, longPolls(opts.LongPoll))
	c.OverrideSetting(dynamicconfig.FrontendMaxNamespaceVisibilityRPSPerInstance, opts.VisibilityRPS)
	c.OverrideSetting(dynamicconfig.EnableDeploymentVersions, true)
	// The enhanced mode of DescribeTaskQueue answers from memory for 5 s, and DeleteVersion believes it.
	c.OverrideSetting(dynamicconfig.TaskQueueInfoByBuildIdTTL, 50*time.Millisecond)
	// One partition of each task queue is enough for a handful of workers.
	c.OverrideSetting(dynamicconfig.MatchingNumTaskqueueReadPartitions, 1)
	c.OverrideSetting(dynamicconfig.MatchingNumTaskqueueWritePartitions, 1)
	// A task queue of activities hears of a new routing by such a poll. Where it misses one, the server's propagation,
	// and with it the look at a draining version, waits for the end of the poll: five minutes by default.
	c.OverrideSetting(dynamicconfig.MatchingGetUserDataLongPollTimeout, 20*time.Second)
	// What temporaltest itself sets; giving it a client of ours replaces it.
	c.OverrideSetting(dynamicconfig.ForceSearchAttributesCacheRefreshOnRead, true)
	// A namespace is usable once every service has read it.
	c.OverrideSetting(dynamicconfig.NamespaceCacheRefreshInterval, 200*time.Millisecond)
	return c
}

// longPolls leaves the server's own workers their minute: every namespace has some, and their polls would add up.
func longPolls(ours time.Duration) []dynamicconfig.ConstrainedValue {
	values := []dynamicconfig.ConstrainedValue{{Value: ours}}
	for _, queue := range []string{primitives.PerNSWorkerTaskQueue, primitives.WorkerControllerPerNSWorkerTaskQueue} {
		values = append(values, dynamicconfig.ConstrainedValue{
			Constraints: dynamicconfig.Constraints{TaskQueueName: queue},
			Value:       time.Minute,
		})
	}
	return values
}

// startReal turns the panics by which temporaltest reports failures outside of a test into errors.
func startReal(config dynamicconfig.Client) (s *temporaltest.TestServer, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return temporaltest.NewServer(temporaltest.WithBaseServerOptions(temporal.WithDynamicConfigClient(config),
		temporal.WithCustomMetricsHandler(metrics.NoopMetricsHandler))), nil
}

// frontend is the host:port of the server past the proxy.
func (s *Server) frontend() string {
	if s.cli != nil {
		return s.cli.address
	}
	return s.real.GetFrontendHostPort()
}

// Close stops proxy and server. Fleets and clients should be closed before. It is safe to call it twice.
func (s *Server) Close() error {
	s.closeOnce.Do(func() {
		if s.proxy != nil {
			s.proxy.stop()
		}
		if s.direct != nil {
			s.closeErr = s.direct.Close()
		}
		if s.cli != nil {
			s.closeErr = errors.Join(s.closeErr, s.cli.stop())
		}
		if s.real != nil {
			s.closeErr = errors.Join(s.closeErr, stopReal(s.real))
		}
	})
	return s.closeErr
}

func stopReal(s *temporaltest.TestServer) (err error) {
	defer func() {
		// temporaltest logs a failed shutdown to the test it does not have.
		if r := recover(); r != nil {
			err = fmt.Errorf("stop temporal server: %v", r)
		}
	}()
	s.Stop()
	return nil
}

// Address is the host:port of the proxy, for everything under test and for the workers.
func (s *Server) Address() string { return s.proxy.address }

// Service reaches the server past the proxy: unrecorded, without faults, and also during an outage. It is for the
// test's own look at the truth.
func (s *Server) Service() workflowservice.WorkflowServiceClient {
	return workflowservice.NewWorkflowServiceClient(s.direct)
}

// Outage makes Address unreachable: open connections are cut, new ones are closed before a byte is answered. The server
// itself goes on and keeps its state.
func (s *Server) Outage() { s.proxy.listener.cut() }

// Restore ends an Outage; clients find the same Address again.
func (s *Server) Restore() { s.proxy.listener.restore() }

// Override changes a setting for every namespace until restore is called.
func (s *Server) Override(setting dynamicconfig.GenericSetting, value any) (restore func()) {
	return s.config.OverrideSetting(setting, value)
}

// Setting is one value of the server's dynamic configuration.
type Setting struct {
	Setting dynamicconfig.GenericSetting
	Value   any
}

// Set makes a Setting.
func Set(setting dynamicconfig.GenericSetting, value any) Setting {
	return Setting{Setting: setting, Value: value}
}

// Namespace creates a Temporal namespace with settings of its own, and returns once workers in it can register and its
// routing can be set. Creating one that exists does not fail.
func (s *Server) Namespace(ctx context.Context, name string, settings ...Setting) (*Namespace, error) {
	n := &Namespace{server: s, name: name}
	for _, o := range settings {
		n.Override(o.Setting, o.Value)
	}
	_, err := s.Service().RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace:                        name,
		WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	var exists *serviceerror.NamespaceAlreadyExists
	if err != nil && !errors.As(serviceerror.FromStatus(statusOf(err)), &exists) {
		return nil, fmt.Errorf("register namespace %q: %w", name, err)
	}
	if err := until(ctx, n.usable); err != nil {
		return nil, fmt.Errorf("wait for namespace %q: %w", name, err)
	}
	return n, nil
}
