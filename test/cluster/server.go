// Package cluster runs a real Kubernetes for tests, on loopback and without containers. It runs etcd, which Debian has
// as etcd-server, and the API server, the controllers and Flux, which make kubernetes builds. A kubelet of its own
// starts each container as a process. Tests are skipped where a program is missing.
package cluster

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/rampart-gitops/rampart/internal/keytest"
	"github.com/rampart-gitops/rampart/internal/testneed"
)

// release is that of the programs which make kubernetes puts into bin/.
const release = "v1.37.2"

// patience is how long a test waits for what should take seconds.
const patience = time.Minute

// The users: one who may do everything, and one who may do nothing.
const (
	admin  = "a-token-of-tests"
	nobody = "another-token-of-tests"
)

// Server is an API server that runs until the test ends.
type Server struct {
	// Config reaches it as a user who may do everything, and so does the file Kubeconfig.
	Config     *rest.Config
	Kubeconfig string
	// Logs is the folder with what containers print; "" without a kubelet.
	Logs string
	// RemoveImage takes an image away from containers that start later; nil without a kubelet.
	RemoveImage func(name string)
	// signing is the file with the key of service accounts.
	signing string
	// begin starts the API server, and is how it starts again after it was stopped.
	begin func() *exec.Cmd
	// running is the API server's process.
	running *exec.Cmd
}

// Start runs an API server until the test ends. Objects may be in namespaces that do not exist, as nothing else runs.
func Start(t testing.TB) *Server {
	t.Helper()
	return start(t, "--disable-admission-plugins", "NamespaceLifecycle,ServiceAccount")
}

func start(t testing.TB, flags ...string) *Server {
	t.Helper()
	dir := t.TempDir()
	apiserver := program(t, "kube-apiserver")
	if _, err := exec.LookPath("etcd"); err != nil {
		testneed.Missing(t, "no etcd: install etcd-server")
	}
	store, peers, port := freePort(t), freePort(t), freePort(t)
	at := func(port string) string { return "http://127.0.0.1:" + port }
	run(t, nil, "etcd", "--data-dir", filepath.Join(dir, "etcd"), "--listen-client-urls", at(store),
		"--advertise-client-urls", at(store),
		"--listen-peer-urls", at(peers), "--initial-advertise-peer-urls", at(peers), "--initial-cluster",
		"default="+at(peers), "--unsafe-no-fsync")

	_, key := keytest.RSA(t)
	signing, tokens := filepath.Join(dir, "sa.key"), filepath.Join(dir, "tokens")
	require.NoError(t, os.WriteFile(signing, []byte(key), 0o600))
	require.NoError(t, os.WriteFile(tokens, []byte(admin+",admin,admin,system:masters\n"+nobody+",nobody,nobody\n"),
		0o600))
	arguments := append([]string{"--etcd-servers", at(store), "--bind-address", "127.0.0.1", "--advertise-address",
		"127.0.0.1", "--secure-port", port,
		"--endpoint-reconciler-type", "none", "--cert-dir", filepath.Join(dir, "certificates"), "--token-auth-file",
		tokens, "--authorization-mode", "RBAC",
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", signing,
		"--service-account-signing-key-file", signing,
		"--service-cluster-ip-range", "10.0.0.0/24", "--shutdown-delay-duration", "0s"}, flags...)

	s := &Server{signing: signing, begin: func() *exec.Cmd { return run(t, nil, apiserver, arguments...) },
		Config: &rest.Config{Host: "https://127.0.0.1:" + port, BearerToken: admin,
			TLSClientConfig: rest.TLSClientConfig{Insecure: true}, QPS: -1}}
	s.Kubeconfig = kubeconfig(t, s.Config.Host, admin)
	s.up(t)
	return s
}

// up starts the API server, and waits until it is ready.
func (s *Server) up(t testing.TB) {
	t.Helper()
	s.running = s.begin()
	client, err := discovery.NewDiscoveryClientForConfig(s.Config)
	require.NoError(t, err)
	eventually(t, func() error {
		_, err := client.RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context())
		return err
	})
}

// down ends the API server at once, as a machine that is switched off does.
func (s *Server) down(t testing.TB) {
	t.Helper()
	require.NoError(t, s.running.Process.Kill())
	_ = s.running.Wait() // it was killed
}

// program is the path of a program of Kubernetes.
func program(t testing.TB, name string) string {
	t.Helper()
	file, err := filepath.Abs(filepath.Join("..", "..", "bin", "kubernetes-"+release, name))
	require.NoError(t, err)
	if _, err := os.Stat(file); err != nil {
		testneed.Missing(t, "no "+name+": make kubernetes builds it")
	}
	return file
}

// kubectl runs kubectl on the cluster, and gives what it prints on both streams.
func (s *Server) kubectl(t testing.TB, input string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program(t, "kubectl"), append([]string{"--kubeconfig", s.Kubeconfig,
		"--cache-dir", filepath.Join(filepath.Dir(s.Kubeconfig), "cache")}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// kubeconfig is a file that leads a user to a server.
func kubeconfig(t testing.TB, server, token string) string {
	t.Helper()
	config := api.NewConfig()
	config.Clusters["test"] = &api.Cluster{Server: server, InsecureSkipTLSVerify: true}
	config.AuthInfos["test"] = &api.AuthInfo{Token: token}
	config.Contexts["test"] = &api.Context{Cluster: "test", AuthInfo: "test"}
	config.CurrentContext = "test"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, file))
	return file
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
	port, err := testneed.FreePort()
	require.NoError(t, err)
	return strconv.Itoa(port)
}

// run starts a program that ends with the test; what it said is shown if the test failed.
func run(t testing.TB, env []string, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(name, args...)
	if env != nil {
		cmd.Env = append(os.Environ(), env...)
	}
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
	return cmd
}
