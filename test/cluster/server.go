// Package cluster runs a real Kubernetes API server for tests, on loopback: etcd, which Debian has as etcd-server, and the kube-apiserver that make
// kubernetes builds. There is no controller and no kubelet. Tests are skipped where one of the two programs is missing.
package cluster

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/rampart-gitops/rampart/internal/testneed"
)

// program is what make kubernetes puts into bin/.
const program = "kube-apiserver-v1.36.3"

// patience is how long a test waits for what should take seconds.
const patience = time.Minute

// token is that of the one user, who may do everything.
const token = "a-token-of-tests"

// Start runs an API server until the test ends, and gives how to reach it.
func Start(t testing.TB) *rest.Config {
	t.Helper()
	dir := t.TempDir()
	apiserver, err := filepath.Abs(filepath.Join("..", "..", "bin", program))
	require.NoError(t, err)
	if _, err := os.Stat(apiserver); err != nil {
		testneed.Missing(t, "no Kubernetes API server: make kubernetes builds it")
	}
	if _, err := exec.LookPath("etcd"); err != nil {
		testneed.Missing(t, "no etcd: install etcd-server")
	}
	store, peers, port := freePort(t), freePort(t), freePort(t)
	at := func(port string) string { return "http://127.0.0.1:" + port }
	run(t, "etcd", "--data-dir", filepath.Join(dir, "etcd"), "--listen-client-urls", at(store), "--advertise-client-urls", at(store),
		"--listen-peer-urls", at(peers), "--initial-advertise-peer-urls", at(peers), "--initial-cluster", "default="+at(peers), "--unsafe-no-fsync")

	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	signing, tokens := filepath.Join(dir, "sa.key"), filepath.Join(dir, "tokens")
	require.NoError(t, os.WriteFile(signing, pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}), 0o600))
	require.NoError(t, os.WriteFile(tokens, []byte(token+",admin,admin,system:masters\n"), 0o600))
	run(t, apiserver, "--etcd-servers", at(store), "--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1", "--secure-port", port,
		"--endpoint-reconciler-type", "none", "--cert-dir", filepath.Join(dir, "certificates"), "--token-auth-file", tokens, "--authorization-mode", "RBAC",
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", signing, "--service-account-signing-key-file", signing,
		"--service-cluster-ip-range", "10.0.0.0/24", "--disable-admission-plugins", "NamespaceLifecycle", "--shutdown-delay-duration", "0s")

	config := &rest.Config{Host: "https://127.0.0.1:" + port, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, QPS: -1}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	require.NoError(t, err)
	eventually(t, func() error {
		_, err := client.RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context())
		return err
	})
	return config
}

// eventually waits until a check passes.
func eventually(t testing.TB, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			require.NoError(t, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return port
}

// run starts a program that ends with the test; what it said is shown if the test failed.
func run(t testing.TB, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	out := &bytes.Buffer{} // read once the process has ended
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // an API server takes ten seconds to end otherwise, and its data goes with the test
		_ = cmd.Wait()
		if t.Failed() {
			text := out.Bytes()
			t.Logf("%s said:\n%s", filepath.Base(name), text[max(0, len(text)-8000):])
		}
	})
}
