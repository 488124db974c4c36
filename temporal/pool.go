package temporal

import (
	"context"
	"errors"
	"log/slog"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Config of a Pool. The zero value connects to what the repository's connections say, without credentials.
type Config struct {
	// Log gets what a person may want to know and no result tells. Nil: discarded. Never credentials.
	Log *slog.Logger
	// Identity that gates are started with, such as rampart@host. Routing is changed with the identity in the call.
	Identity string
	// Limits of calls to each namespace.
	Limits Budget
	// Override is used for every connection.
	Override *Address
	// Connections by the connection's namespace/name or by its host:port; a ClusterConnection's by host:port alone.
	Connections map[string]Address
	// InFull has problems say what the server or the network said. Never where they get into a repository.
	InFull bool
	// Clock gives the time of an observation. Nil: time.Now.
	Clock func() time.Time
	// OnWrite is called right before and right after each change of the server, in the same goroutine. Nil: nothing.
	OnWrite func(Site, Moment)
	// OnCall is told of each request to a server, by any goroutine: the name of the method, how it ended, and what time
	// it took. Nil: nothing.
	OnCall func(method string, code codes.Code, took time.Duration)
}

// Pool holds the connections to Temporal.
type Pool struct {
	cfg Config

	mu       sync.Mutex
	closed   bool
	conns    map[string]*connection
	limiters map[limiterKey]*limiter
	lists    map[limiterKey]*rollout.Listing // the last ones
	warned   map[limiterKey]time.Time        // of a clock that is ahead
	// nearby is what was read last where workers are missing, by address and namespace.
	nearby map[limiterKey]*nearby
	// namespaces are what the namespaces at addresses were, by connection and namespace.
	namespaces map[string]namespaceID
	// versions are those of the servers, by connection.
	versions map[string]serverVersion
}

type limiterKey struct{ hostPort, namespace string }

// New makes a pool without any connection: they are made when they are needed.
func New(cfg Config) *Pool {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Identity == "" {
		cfg.Identity = "rampart"
	}
	if cfg.OnWrite == nil {
		cfg.OnWrite = func(Site, Moment) {}
	}
	if cfg.OnCall == nil {
		cfg.OnCall = func(string, codes.Code, time.Duration) {}
	}
	return &Pool{cfg: cfg, conns: map[string]*connection{}, limiters: map[limiterKey]*limiter{},
		lists:  map[limiterKey]*rollout.Listing{},
		warned: map[limiterKey]time.Time{}, nearby: map[limiterKey]*nearby{}, namespaces: map[string]namespaceID{},
		versions: map[string]serverVersion{}}
}

// clockWarning is how often the log says at most that a namespace's clock is ahead.
const clockWarning = 10 * time.Minute

// warnsOfClock reports whether the log is to say now that a namespace's clock is ahead.
func (p *Pool) warnsOfClock(key limiterKey) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.cfg.Clock()
	if last, ok := p.warned[key]; ok && now.Sub(last) < clockWarning {
		return false
	}
	p.warned[key] = now
	return true
}

// Close closes all connections. Calls after it fail.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for key, c := range p.conns {
		c.client.Close()
		delete(p.conns, key)
	}
}

// connection is a client of one server with its credentials.
type connection struct {
	key     string
	address Address
	// stamp of the files it was made from.
	stamp   string
	client  client.Client
	service workflowservice.WorkflowServiceClient
	// reached says that the server has answered once.
	reached atomic.Bool
}

// session is a connection as one Temporal namespace sees it.
type session struct {
	pool      *Pool
	conn      *connection
	limits    *limiter
	namespace string
	// refused says that a call was not made, since the budget had no room for it.
	refused atomic.Bool
}

func (s *session) service() workflowservice.WorkflowServiceClient { return s.conn.service }

// session connects if need be. Errors are ConnectError or CredentialsError.
func (p *Pool) session(conn v1alpha1.Connection, namespace string) (*session, error) {
	r, err := p.cfg.resolve(conn)
	if err != nil {
		return nil, &ConnectError{err}
	}
	return p.sessionAt(r, namespace)
}

// sessionAt connects to an address if need be.
func (p *Pool) sessionAt(r resolved, namespace string) (*session, error) {
	if err := checkHostPort(r.HostPort); err != nil {
		return nil, &ConnectError{err}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, &ConnectError{errors.New("the pool is closed")}
	}
	c, err := p.connectionLocked(r)
	if err != nil {
		return nil, err
	}
	key := limiterKey{r.HostPort, namespace}
	if p.limiters[key] == nil {
		p.limiters[key] = newLimiter(namespace, p.cfg.Limits)
	}
	return &session{pool: p, conn: c, limits: p.limiters[key], namespace: namespace}, nil
}

// connectionLocked gives the connection for an address; one whose files changed is made anew.
func (p *Pool) connectionLocked(r resolved) (*connection, error) {
	key, stamp := r.key(), r.stamp()
	old := p.conns[key]
	if old != nil && old.stamp == stamp {
		return old, nil
	}
	if old != nil {
		delete(p.conns, key)
		old.retire()
	}
	made, err := newClient(r.Address, p.cfg.Clock(), p.cfg.OnCall)
	if err != nil {
		return nil, err
	}
	c := &connection{key: key, address: r.Address, stamp: stamp, client: made, service: made.WorkflowService()}
	p.conns[key] = c
	return c, nil
}

// evict forgets a connection whose credentials the server refused, so that the next call makes it anew.
func (p *Pool) evict(c *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns[c.key] == c {
		delete(p.conns, c.key)
		c.retire()
	}
}

// retire closes a connection once the calls under way have ended: none lasts longer than its deadline.
func (c *connection) retire() {
	time.AfterFunc(2*callTimeout, c.client.Close)
}

// Bounds of a connection. Reconnecting is tried often, so that an outage's end is noticed within a cycle.
const (
	reconnectBase = 200 * time.Millisecond
	reconnectMax  = 3 * time.Second
	maxMessage    = 64 << 20
)

// newClient makes a client that connects with its first call. Neither it nor gRPC may retry: what is tried again is
// decided here.
func newClient(a Address, now time.Time, onCall func(string, codes.Code, time.Duration)) (client.Client, error) {
	config, err := a.tlsConfig(now)
	if err != nil {
		return nil, &CredentialsError{err}
	}
	made, err := client.NewLazyClient(client.Options{
		HostPort: "dns:///" + a.HostPort,
		Logger:   sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)),
		ConnectionOptions: client.ConnectionOptions{
			TLS: config, Authority: a.Authority, MaxPayloadSize: maxMessage,
			GrpcCompression: &client.GrpcCompressionNone{}, DisableKeepAlivePermitWithoutStream: true,
			DialOptions: []grpc.DialOption{
				grpc.WithChainUnaryInterceptor(observed(onCall)), grpc.WithDisableServiceConfig(),
				grpc.WithDisableRetry(), grpc.WithConnectParams(grpc.ConnectParams{
					Backoff: backoff.Config{BaseDelay: reconnectBase, Multiplier: 1.6, Jitter: 0.2,
						MaxDelay: reconnectMax},
					MinConnectTimeout: callTimeout / 2,
				}),
			},
		},
	})
	if err != nil {
		return nil, &ConnectError{err}
	}
	return made, nil
}

// authorized adds what the address has for each call: headers, and the API key as it is now. It fails with a
// CredentialsError.
func (c *connection) authorized(ctx context.Context) (context.Context, error) {
	for name, value := range c.address.Headers {
		ctx = metadata.AppendToOutgoingContext(ctx, name, value)
	}
	key, err := c.address.apiKey()
	if err != nil {
		return nil, &CredentialsError{err}
	}
	if key == "" {
		return ctx, nil
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+key), nil
}

// young reports whether what was read at a time may still be used. After a clock that was set back nothing may.
func young(at, now time.Time, keptFor time.Duration) bool {
	return now.Sub(at) < keptFor && !now.Before(at)
}

// observed tells of each call.
func observed(onCall func(method string, code codes.Code, took time.Duration)) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
		opts ...grpc.CallOption) error {
		start := time.Now()
		err := invoke(ctx, method, req, reply, cc, opts...)
		onCall(path.Base(method), status.Code(err), time.Since(start))
		return err
	}
}
