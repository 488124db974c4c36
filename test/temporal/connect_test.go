package temporal_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/server/common/dynamicconfig"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/temporal"
	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// look observes through a pool with only this address.
func (e *env) look(pool *temporal.Pool, hostPort string) *rollout.Problem {
	e.T.Helper()
	obs := pool.Observe(e.Ctx, connection(hostPort), rollout.Ask{Deployment: name, TemporalNamespace: e.NS.Name()})
	if obs.Problem == nil {
		require.Equal(e.T, rollout.No, obs.Exists)
	}
	return obs.Problem
}

func (e *env) override(a temporal.Address) *temporal.Pool {
	return e.newPool(temporal.Config{Override: &a})
}

func (e *env) requireReason(want rollout.Reason, got *rollout.Problem) {
	e.T.Helper()
	require.NotNil(e.T, got)
	require.Equal(e.T, want, got.Reason, got.Message)
}

func TestTLS(t *testing.T) {
	e := newEnv(t)
	ca := newAuthority(t)
	d := newDoor(t, ca.server(tls.NoClientCert, "127.0.0.1"))
	trusted := temporal.TLS{CAFile: ca.caFile()}
	require.Nil(t, e.look(e.override(temporal.Address{HostPort: d.address, TLS: trusted}), d.address))
	require.Equal(t, []string{e.NS.Name()}, d.last().namespace)
	for _, a := range []temporal.Address{
		{HostPort: d.address, TLS: temporal.TLS{Mode: temporal.TLSOn}}, // not trusted
		{HostPort: d.address}, // no TLS
		{HostPort: d.address, TLS: trusted, ServerName: "temporal.example"},
	} {
		e.requireReason(rollout.TemporalClientCreationFailed, e.look(e.override(a), d.address))
	}
	e.requireReason(rollout.AuthSecretInvalid, e.look(e.override(temporal.Address{
		HostPort: d.address, TLS: temporal.TLS{CAFile: filepath.Join(t.TempDir(), "missing.pem")},
	}), d.address))

	named := newDoor(t, ca.server(tls.NoClientCert, "temporal.example"))
	e.requireReason(rollout.TemporalClientCreationFailed, e.look(e.override(temporal.Address{HostPort: named.address, TLS: trusted}), named.address))
	require.Nil(t, e.look(e.override(temporal.Address{HostPort: named.address, TLS: trusted, ServerName: "temporal.example"}), named.address))
}

func TestMutualTLS(t *testing.T) {
	e := newEnv(t)
	ca := newAuthority(t)
	d := newDoor(t, ca.server(tls.RequireAndVerifyClientCert, "127.0.0.1"))
	files, serial := ca.issue("client", time.Now().Add(time.Hour))
	pool := e.override(temporal.Address{HostPort: d.address, TLS: files})
	require.Nil(t, e.look(pool, d.address))
	require.Equal(t, serial, d.last().serial)
	require.Nil(t, e.look(pool, d.address))
	require.Equal(t, 1, d.connections())

	// The files are replaced, as cert-manager does it: the new certificate is used without a restart.
	_, serial = ca.issue("client", time.Now().Add(time.Hour))
	require.Nil(t, e.look(pool, d.address))
	require.Equal(t, serial, d.last().serial)
	require.Equal(t, 2, d.connections())

	// By one that has expired: said at once, and mended by the next.
	ca.issue("client", time.Now().Add(-time.Hour))
	problem := e.look(pool, d.address)
	e.requireReason(rollout.AuthSecretInvalid, problem)
	require.Contains(t, problem.Message, "the bot's credentials for Temporal cannot be used")
	require.NoError(t, os.WriteFile(files.KeyFile, []byte("no key"), 0o600))
	e.requireReason(rollout.AuthSecretInvalid, e.look(pool, d.address))
	ca.issue("client", time.Now().Add(time.Hour))
	require.Nil(t, e.look(pool, d.address))

	e.requireReason(rollout.TemporalClientCreationFailed,
		e.look(e.override(temporal.Address{HostPort: d.address, TLS: temporal.TLS{CAFile: ca.caFile()}}), d.address))
}

func TestAPIKey(t *testing.T) {
	e := newEnv(t)
	ca := newAuthority(t)
	d := newDoor(t, ca.server(tls.NoClientCert, "127.0.0.1"))
	d.set(func() { d.key = "k1-s3cret" })
	file := filepath.Join(t.TempDir(), "key")
	address := temporal.Address{HostPort: d.address, TLS: temporal.TLS{CAFile: ca.caFile()}, APIKeyFile: file}
	pool := e.override(address)
	e.requireReason(rollout.AuthSecretInvalid, e.look(pool, d.address)) // no file yet
	require.NoError(t, os.WriteFile(file, []byte("k1-s3cret\n"), 0o600))
	require.Nil(t, e.look(pool, d.address))
	require.Equal(t, visit{authorization: []string{"Bearer k1-s3cret"}, namespace: []string{e.NS.Name()}}, d.last())

	d.set(func() { d.key = "k2-s3cret" })
	problem := e.look(pool, d.address)
	e.requireReason(rollout.AuthSecretInvalid, problem)
	require.NoError(t, os.WriteFile(file, []byte("k2-s3cret\n"), 0o600))
	require.Nil(t, e.look(pool, d.address), "a new key needs no restart")

	address.APIKeyFile, address.APIKey = "", func() (string, error) { return "k2-s3cret", nil }
	require.Nil(t, e.look(e.override(address), d.address))
	address.APIKey = func() (string, error) { return "wrong-s3cret", nil }
	refused := e.look(e.override(address), d.address)
	e.requireReason(rollout.AuthSecretInvalid, refused)
	for _, text := range []string{problem.Message, refused.Message, e.log.String()} {
		require.NotContains(t, text, "s3cret")
	}

	// Never without TLS.
	address.TLS = temporal.TLS{Mode: temporal.TLSOff}
	e.requireReason(rollout.AuthSecretInvalid, e.look(e.override(address), d.address))
}

// A profile of Temporal's CLI brings its address, certificates, API key and headers.
func TestProfileOfTheCLIConnects(t *testing.T) {
	e := newEnv(t)
	ca := newAuthority(t)
	d := newDoor(t, ca.server(tls.RequireAndVerifyClientCert, "127.0.0.1"))
	d.set(func() { d.key = "s3cret" })
	files, serial := ca.issue("client", time.Now().Add(time.Hour))
	config := filepath.Join(t.TempDir(), "temporal.toml")
	read := func(file string) string {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		return string(text)
	}
	for name, certificates := range map[string]string{
		"paths": fmt.Sprintf("client_cert_path = %q\nclient_key_path = %q\nserver_ca_cert_path = %q\n", files.CertFile, files.KeyFile, ca.caFile()),
		"texts": fmt.Sprintf("client_cert_data = %q\nclient_key_data = %q\nserver_ca_cert_data = %q\n", read(files.CertFile), read(files.KeyFile), read(ca.caFile())),
	} {
		require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, "[profile.prod]\naddress = %q\napi_key = \"s3cret\"\n[profile.prod.tls]\n%s[profile.prod.grpc_meta]\nteam = \"payments\"\n",
			d.address, certificates), 0o600))
		address, err := temporal.Profile(config, "prod")
		require.NoError(t, err)
		require.Nil(t, e.look(e.override(address), d.address), name)
		require.Equal(t, visit{authorization: []string{"Bearer s3cret"}, namespace: []string{e.NS.Name()}, team: []string{"payments"}, serial: serial}, d.last())
	}
}

// A connection in the repository cannot send the bot's credentials elsewhere.
func TestCredentialsStayHome(t *testing.T) {
	e := newEnv(t)
	ca := newAuthority(t)
	home := newDoor(t, ca.server(tls.NoClientCert, "127.0.0.1"))
	home.set(func() { home.key = "k" })
	evil := newDoor(t, nil)
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte("k"), 0o600))
	secret := temporal.Address{TLS: temporal.TLS{CAFile: ca.caFile()}, APIKeyFile: file}

	pool := e.newPool(temporal.Config{Connections: map[string]temporal.Address{home.address: secret}})
	require.Nil(t, e.look(pool, home.address))
	require.Nil(t, e.look(pool, evil.address))
	require.Nil(t, evil.last().authorization)

	// By name, the configured address is used, whatever the repository says.
	at := secret
	at.HostPort = home.address
	pool = e.newPool(temporal.Config{Connections: map[string]temporal.Address{"shop/main": at}})
	visits := evil.visits()
	require.Nil(t, e.look(pool, evil.address))
	require.Equal(t, visits, evil.visits())

	pool = e.newPool(temporal.Config{Connections: map[string]temporal.Address{"shop/main": secret}})
	e.requireReason(rollout.TemporalClientCreationFailed, e.look(pool, evil.address))
	require.Equal(t, visits, evil.visits())

	e.requireReason(rollout.TemporalClientCreationFailed, e.look(e.newPool(temporal.Config{}), "unix:///tmp/x"))
}

func TestOneConnection(t *testing.T) {
	e := newEnv(t)
	d := newDoor(t, nil)
	pool := e.newPool(temporal.Config{})
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() {
			obs := pool.Observe(e.Ctx, connection(d.address), rollout.Ask{Deployment: name, TemporalNamespace: e.NS.Name()})
			if obs.Problem != nil {
				t.Error(obs.Problem.Message)
			}
		})
	}
	calls.Wait()
	require.Equal(t, 1, d.connections())

	// Refused credentials are read again for the next call, on a connection of its own.
	for _, code := range []codes.Code{codes.PermissionDenied, codes.Unauthenticated} {
		before := d.connections()
		d.set(func() { d.deny = code })
		require.NotNil(t, e.look(pool, d.address))
		d.set(func() { d.deny = codes.OK })
		require.Nil(t, e.look(pool, d.address))
		require.Equal(t, before+1, d.connections())
	}

	pool.Close()
	e.requireReason(rollout.TemporalClientCreationFailed, e.look(pool, d.address))
}

// Whether the bot may change worker deployments is found out without a change.
func TestMayChange(t *testing.T) {
	e := newEnv(t)
	d := newDoor(t, nil)
	pool := e.newPool(temporal.Config{})
	try := func() error { return pool.MayChange(e.Ctx, connection(d.address), e.NS.Name()) }
	require.NoError(t, try())
	d.set(func() { d.deny = codes.PermissionDenied })
	require.ErrorContains(t, try(), "try to change a worker deployment in namespace "+e.NS.Name()+": not you")
	d.close()
	require.Error(t, try())
	list, err := e.Service.ListWorkerDeployments(e.Ctx, &workflowservice.ListWorkerDeploymentsRequest{Namespace: e.NS.Name()})
	require.NoError(t, err)
	require.Empty(t, list.GetWorkerDeployments())
}

func TestOutage(t *testing.T) {
	e := newEnv(t)
	d := newDoor(t, nil)
	d.close()
	pool := e.newPool(temporal.Config{})
	e.requireReason(rollout.TemporalClientCreationFailed, e.look(pool, d.address))
	back := func() {
		t.Helper()
		d.open()
		e.Eventually(func(context.Context) error {
			if p := e.look(pool, d.address); p != nil {
				return fmt.Errorf("%s", p.Message)
			}
			return nil
		})
	}
	back()
	d.close()
	e.requireReason(rollout.TemporalStateFetchFailed, e.look(pool, d.address))
	back()
}

// A server that accepts and says nothing costs a call its deadline, and no more than the caller allows.
func TestSilentServer(t *testing.T) {
	e := newEnv(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	ctx, cancel := context.WithTimeout(e.Ctx, 300*time.Millisecond)
	defer cancel()
	obs := e.newPool(temporal.Config{}).Observe(ctx, connection(listener.Addr().String()), rollout.Ask{Deployment: name, TemporalNamespace: "x"})
	require.NotNil(t, obs.Problem)
	require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
}

func TestBudgetOfVisibilityIsItsOwn(t *testing.T) {
	e := newEnv(t)
	e.pool = e.newPool(temporal.Config{Limits: temporal.Budget{Visibility: temporal.Rate{PerSecond: 0.001, Burst: 2}}})
	obs := e.observe(rollout.Ask{OpenPinned: []string{"a", "b", "c"}})
	require.Nil(t, obs.Problem)
	require.Equal(t, rollout.Counted(0), obs.Unlisted["a"])
	require.Equal(t, rollout.Counted(0), obs.Unlisted["b"])
	require.False(t, obs.Unlisted["c"].Known)
	require.Contains(t, obs.Unlisted["c"].Reason, "budget for visibility calls")
	require.True(t, obs.CutShort)
	obs = e.observe(rollout.Ask{})
	require.Nil(t, obs.Problem, "describes have a budget of their own")
	require.False(t, obs.CutShort)
	other, err := shared.Namespace(e.Ctx, e.NS.Name()+"-other")
	require.NoError(t, err)
	obs = e.pool.Observe(e.Ctx, e.connection(), rollout.Ask{Deployment: name, TemporalNamespace: other.Name(), OpenPinned: []string{"a"}})
	require.Equal(t, rollout.Counted(0), obs.Unlisted["a"], "and so has every namespace")
}

// The server says that the namespace was asked too much: nothing at all is asked for a second.
func TestRateLimitedByTheServer(t *testing.T) {
	e := newEnv(t, temporalenv.Set(dynamicconfig.FrontendMaxNamespaceVisibilityRPSPerInstance, 1))
	var mu sync.Mutex
	var asked []time.Time
	e.NS.BeforeForward(func(string, proto.Message) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, time.Now())
	})
	e.Eventually(func(context.Context) error {
		obs := e.observe(rollout.Ask{OpenPinned: []string{"a", "b"}})
		require.Nil(t, obs.Problem)
		for _, count := range obs.Unlisted {
			if !count.Known {
				require.Contains(t, count.Reason, "rate limit")
				return nil
			}
		}
		return fmt.Errorf("not refused")
	})
	e.observe(rollout.Ask{})
	mu.Lock()
	defer mu.Unlock()
	longest := time.Duration(0)
	for i := 1; i < len(asked); i++ {
		longest = max(longest, asked[i].Sub(asked[i-1]))
	}
	require.GreaterOrEqual(t, longest, 900*time.Millisecond)
}
