package temporalenv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/proxy"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
)

// mutationTimeout bounds a forwarded mutating call, whatever its caller allowed.
const mutationTimeout = time.Minute

// proxyServer stands before the real frontend.
type proxyServer struct {
	address  string
	listener *cutListener
	grpc     *grpc.Server
	served   chan error
	backend  *grpc.ClientConn

	recorder recorder
	faults   faults
	hooks    hooks
}

func startProxy(opts Options, backend *grpc.ClientConn) (*proxyServer, error) {
	inner, err := net.Listen("tcp", opts.Address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", opts.Address, err)
	}
	handler, err := proxy.NewWorkflowServiceProxyServer(proxy.WorkflowServiceProxyOptions{
		Client: workflowservice.NewWorkflowServiceClient(backend),
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make proxy: %w", err), inner.Close())
	}
	p := &proxyServer{
		address:  inner.Addr().String(),
		listener: &cutListener{Listener: inner, conns: map[net.Conn]struct{}{}},
		backend:  backend,
		served:   make(chan error, 1),
	}
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage),
		// The SDK pings more often than gRPC allows by default; the real frontend allows it too.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second,
			PermitWithoutStream: true}),
		grpc.UnaryInterceptor(p.intercept),
		grpc.UnknownServiceHandler(p.passOn),
	}
	if opts.TLS != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(opts.TLS)))
	}
	p.grpc = grpc.NewServer(options...)
	workflowservice.RegisterWorkflowServiceServer(p.grpc, handler)
	go func() { p.served <- p.grpc.Serve(p.listener) }()
	return p, nil
}

func (p *proxyServer) stop() {
	p.grpc.Stop()
	<-p.served //nolint:errcheck // that it ended is all there is to know
}

// intercept serves every call of the workflow service: hooks, faults, forwarding, recording.
func (p *proxyServer) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo,
	forward grpc.UnaryHandler) (any, error) {
	method := info.FullMethod[strings.LastIndexByte(info.FullMethod, '/')+1:]
	call := Call{Method: method, Namespace: namespaceOf(req), Time: time.Now()}
	request, _ := req.(proto.Message)
	for _, hook := range p.hooks.of(call.Namespace) {
		hook(method, request)
	}
	fault, faulty := p.faults.take(call.Namespace, method)
	if faulty && fault.Point == BeforeForwarding {
		err := fault.status()
		p.recorder.add(call.answered(request, nil, err))
		return nil, err
	}
	caller := ctx
	if !reading(method) {
		// A caller that gives up, or is cut off, must not leave it open whether the server accepted.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), mutationTimeout)
		defer cancel()
	}
	resp, err := forward(ctx, req)
	response, _ := resp.(proto.Message)
	if err != nil {
		response = nil
	}
	call.Forwarded, call.Accepted, call.Left = true, err == nil, caller.Err() != nil
	if faulty && fault.Point == AfterForwarding && err == nil {
		err = fault.status()
	}
	p.recorder.add(call.answered(request, response, err))
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// passOn forwards the unary calls of any other service without looking into them: an empty message keeps all fields
// that it does not know.
func (p *proxyServer) passOn(_ any, stream grpc.ServerStream) error {
	method, ok := grpc.MethodFromServerStream(stream)
	if !ok {
		return status.Error(codes.Internal, "stream without a method")
	}
	var in, out emptypb.Empty
	if err := stream.RecvMsg(&in); err != nil {
		return err
	}
	ctx := stream.Context()
	if md, ok := metadata.FromIncomingContext(ctx); ok {
		ctx = metadata.NewOutgoingContext(ctx, md.Copy())
	}
	if err := p.backend.Invoke(ctx, method, &in, &out); err != nil {
		return err
	}
	return stream.SendMsg(&out)
}

func namespaceOf(req any) string {
	if r, ok := req.(interface{ GetNamespace() string }); ok {
		return r.GetNamespace()
	}
	return ""
}

// cutListener keeps its port while it is cut, so that no other process can take it.
type cutListener struct {
	net.Listener

	mu    sync.Mutex
	down  bool
	conns map[net.Conn]struct{}
}

// Accept gives the next connection, and closes at once those that arrive during an outage.
func (l *cutListener) Accept() (net.Conn, error) {
	for {
		inner, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c, ok := l.keep(inner); ok {
			return c, nil
		}
		_ = inner.Close()
	}
}

func (l *cutListener) keep(inner net.Conn) (net.Conn, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return nil, false
	}
	c := &trackedConn{Conn: inner, listener: l}
	l.conns[c] = struct{}{}
	return c, true
}

func (l *cutListener) cut() {
	l.mu.Lock()
	l.down = true
	open := make([]net.Conn, 0, len(l.conns))
	for c := range l.conns {
		open = append(open, c)
	}
	l.mu.Unlock()
	for _, c := range open {
		_ = c.Close()
	}
}

func (l *cutListener) restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = false
}

type trackedConn struct {
	net.Conn
	listener *cutListener
}

// Close closes the connection and forgets it.
func (c *trackedConn) Close() error {
	c.listener.mu.Lock()
	delete(c.listener.conns, c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}
