package temporal_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/proxy"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/rampart-gitops/rampart/temporal"
)

// door is a way to the shared server with a lock of its own: it terminates TLS, checks the API key and notes who came.
type door struct {
	t       *testing.T
	address string
	tls     *tls.Config
	server  *grpc.Server

	mu    sync.Mutex
	key   string // the API key that is let in; "" for everybody
	deny  codes.Code
	conns int
	seen  []visit
}

// visit is one call that came to a door.
type visit struct {
	authorization, namespace, team []string
	serial                         string // of the client's certificate
}

func newDoor(t *testing.T, config *tls.Config) *door {
	t.Helper()
	d := &door{t: t, address: "127.0.0.1:0", tls: config}
	d.open()
	t.Cleanup(func() { d.server.Stop() })
	return d
}

// open listens, again on the same address after a close.
func (d *door) open() {
	d.t.Helper()
	listener, err := net.Listen("tcp", d.address)
	require.NoError(d.t, err)
	d.address = listener.Addr().String()
	handler, err := proxy.NewWorkflowServiceProxyServer(proxy.WorkflowServiceProxyOptions{Client: shared.Service()})
	require.NoError(d.t, err)
	options := []grpc.ServerOption{grpc.UnaryInterceptor(d.guard)}
	if d.tls != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(d.tls)))
	}
	d.server = grpc.NewServer(options...)
	workflowservice.RegisterWorkflowServiceServer(d.server, handler)
	server := d.server
	go func() { _ = server.Serve(&countingListener{listener, d}) }()
}

func (d *door) close() { d.server.Stop() }

func (d *door) guard(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	v := visit{authorization: md.Get("authorization"), namespace: md.Get("temporal-namespace"), team: md.Get("team")}
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(credentials.TLSInfo); ok && len(info.State.PeerCertificates) > 0 {
			v.serial = info.State.PeerCertificates[0].SerialNumber.String()
		}
	}
	d.mu.Lock()
	d.seen = append(d.seen, v)
	key, deny := d.key, d.deny
	d.mu.Unlock()
	if deny != codes.OK {
		return nil, status.Error(deny, "not you")
	}
	if key != "" && (len(v.authorization) != 1 || v.authorization[0] != "Bearer "+key) {
		return nil, status.Error(codes.Unauthenticated, "unknown key")
	}
	return next(ctx, req)
}

func (d *door) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

func (d *door) last() visit {
	d.mu.Lock()
	defer d.mu.Unlock()
	require.NotEmpty(d.t, d.seen)
	return d.seen[len(d.seen)-1]
}

func (d *door) visits() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.seen)
}

func (d *door) connections() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.conns
}

type countingListener struct {
	net.Listener
	door *door
}

func (l *countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.door.set(func() { l.door.conns++ })
	}
	return c, err
}

// authority signs certificates and keeps them as files.
type authority struct {
	t      *testing.T
	dir    string
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	serial int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir(), serial: 1}
	var err error
	a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	require.NoError(t, err)
	a.cert, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	a.write("ca.pem", "CERTIFICATE", der)
	return a
}

func (a *authority) write(file, kind string, der []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, file)
	require.NoError(a.t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	return path
}

func (a *authority) caFile() string { return filepath.Join(a.dir, "ca.pem") }

// issue writes a certificate and its key, and gives the serial number. Files of an earlier one are replaced.
func (a *authority) issue(file string, until time.Time, names ...string) (files temporal.TLS, serial string) {
	a.t.Helper()
	a.serial++
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.serial), Subject: pkix.Name{CommonName: file}, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: until,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, n)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	require.NoError(a.t, err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	require.NoError(a.t, err)
	files = temporal.TLS{
		CertFile: a.write(file+".crt", "CERTIFICATE", der), KeyFile: a.write(file+".key", "EC PRIVATE KEY", keyDER), CAFile: a.caFile(),
	}
	return files, template.SerialNumber.String()
}

// server is a TLS configuration with a certificate for names.
func (a *authority) server(clients tls.ClientAuthType, names ...string) *tls.Config {
	a.t.Helper()
	files, _ := a.issue("server", time.Now().Add(time.Hour), names...)
	cert, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile)
	require.NoError(a.t, err)
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	return &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: clients, ClientCAs: roots}
}
