package temporal

import (
	"context"
	"errors"
	"log/slog"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
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
	// Clock gives the time of an observation. Nil: time.Now.
	Clock func() time.Time
	// OnWrite is called right before and right after each change of the server, in the same goroutine. Nil: nothing.
	OnWrite func(Site, Moment)
	// OnCall is told of each request to a server, by any goroutine: the name of the method, how it ended, and what time it took. Nil: nothing.
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
	return &Pool{cfg: cfg, conns: map[string]*connection{}, limiters: map[limiterKey]*limiter{}, lists: map[limiterKey]*rollout.Listing{},
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
func (p *Pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	var errs []error
	for key, c := range p.conns {
		errs = append(errs, c.grpc.Close())
		delete(p.conns, key)
	}
	return errors.Join(errs...)
}

// connection is one gRPC connection with its credentials.
type connection struct {
	key, hostPort string
	// stamp of the files it was made from.
	stamp   string
	grpc    *grpc.ClientConn
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
	g, err := dial(r.Address, p.cfg.Clock(), p.cfg.OnCall)
	if err != nil {
		return nil, err
	}
	c := &connection{
		key: key, hostPort: r.HostPort, stamp: stamp, grpc: g, service: workflowservice.NewWorkflowServiceClient(g),
	}
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
	time.AfterFunc(2*callTimeout, func() { _ = c.grpc.Close() })
}

// Bounds of a connection. Reconnecting is tried often, so that an outage's end is noticed within a cycle.
const (
	reconnectBase = 200 * time.Millisecond
	reconnectMax  = 3 * time.Second
	maxMessage    = 64 << 20
)

func dial(a Address, now time.Time, onCall func(string, codes.Code, time.Duration)) (*grpc.ClientConn, error) {
	config, err := a.tlsConfig(now)
	if err != nil {
		return nil, &CredentialsError{err}
	}
	transport := insecure.NewCredentials()
	if config != nil {
		transport = credentials.NewTLS(config)
	}
	g, err := grpc.NewClient("dns:///"+a.HostPort,
		grpc.WithTransportCredentials(transport),
		grpc.WithChainUnaryInterceptor(headers(a), observed(onCall)),
		// Neither the resolver nor gRPC may retry: what is tried again is decided here.
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableRetry(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: reconnectBase, Multiplier: 1.6, Jitter: 0.2, MaxDelay: reconnectMax},
			MinConnectTimeout: callTimeout / 2,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 15 * time.Second}),
	)
	if err != nil {
		return nil, &ConnectError{err}
	}
	return g, nil
}

// young reports whether what was read at a time may still be used. After a clock that was set back nothing may.
func young(at, now time.Time, keptFor time.Duration) bool {
	return now.Sub(at) < keptFor && !now.Before(at)
}

// namespaceHeader says which namespace a call is about: Temporal Cloud routes it by that.
const namespaceHeader = "temporal-namespace"

// headers adds the namespace and the API key.
func headers(a Address) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if r, ok := req.(interface{ GetNamespace() string }); ok && r.GetNamespace() != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, namespaceHeader, r.GetNamespace())
		}
		key, err := a.apiKey()
		if err != nil {
			return &CredentialsError{err}
		}
		if key != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+key)
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	}
}

// observed tells of each call.
func observed(onCall func(method string, code codes.Code, took time.Duration)) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		start := time.Now()
		err := invoke(ctx, method, req, reply, cc, opts...)
		onCall(path.Base(method), status.Code(err), time.Since(start))
		return err
	}
}
