package cluster

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// StartNode runs a whole cluster of one node until the test ends. It has the API server with all of its admission, the
// controllers that Deployments need, and a kubelet with these images. Its namespaces have to be created.
func StartNode(t testing.TB, images map[string]Image) *Server {
	t.Helper()
	s := start(t)
	run(t, nil, program(t, "kube-controller-manager"), "--kubeconfig", s.Kubeconfig, "--authentication-kubeconfig",
		s.Kubeconfig, "--authorization-kubeconfig", s.Kubeconfig,
		"--bind-address", "127.0.0.1", "--secure-port", freePort(t), "--cert-dir", t.TempDir(), "--leader-elect=false",
		"--service-account-private-key-file", s.signing,
		"--concurrent-deployment-syncs", "2", "--controllers",
		"deployment-controller,replicaset-controller,garbage-collector-controller,namespace-controller,"+
			"resourcequota-controller,serviceaccount-controller,root-ca-certificate-publisher-controller,"+
			"horizontal-pod-autoscaler-controller,disruption-controller",
		"--horizontal-pod-autoscaler-sync-period", "1s")
	s.Logs, s.RemoveImage = StartKubelet(t, s.Config, images)
	return s
}

// Flux runs Flux's source-controller and the controller that applies what it gives, which is kustomize-controller or
// helm-controller, until the test ends.
func (s *Server) Flux(t testing.TB, applies string) {
	t.Helper()
	s.Kubectl(t, "", "create", "namespace", "flux-system")
	s.Kubectl(t, "", "apply", "--server-side", "-f",
		filepath.Join(filepath.Dir(program(t, "source-controller")), "flux"))
	s.established(t)
	env := []string{"KUBECONFIG=" + s.Kubeconfig, "RUNTIME_NAMESPACE=flux-system", "TMPDIR=" + t.TempDir()}
	common := func(health string) []string {
		return []string{"--enable-leader-election=false", "--watch-all-namespaces", "--requeue-dependency", "2s",
			"--metrics-addr", "127.0.0.1:" + freePort(t), "--health-addr", health}
	}
	store := "127.0.0.1:" + freePort(t)
	for name, more := range map[string][]string{
		"source-controller": {"--storage-path", t.TempDir(), "--storage-addr", store, "--storage-adv-addr", store},
		// Without this gate a health check of one revision waits, up to its time-out, for what only the next revision
		// brings.
		applies: {"--feature-gates=CancelHealthCheckOnNewRevision=true"},
	} {
		health := "127.0.0.1:" + freePort(t)
		run(t, env, program(t, name), append(common(health), more...)...)
		eventually(t, func() error { return healthy("http://" + health + "/readyz") })
	}
}

// established waits until the server serves every custom resource definition that it has.
func (s *Server) established(t testing.TB) {
	t.Helper()
	eventually(t, func() error { // it fails for a definition without conditions yet
		out, err := s.kubectl(t, "", "wait", "--for=condition=Established", "crd", "--all", "--timeout=20s")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

func healthy(url string) error {
	answer, err := http.Get(url) //nolint:noctx // of a process beside the test
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, answer.Status)
	}
	return nil
}

// await waits until kubectl prints what is wanted.
func (s *Server) await(t testing.TB, want string, args ...string) {
	t.Helper()
	eventually(t, func() error {
		out, err := s.kubectl(t, "", args...)
		if err == nil && strings.TrimSpace(out) != want {
			err = fmt.Errorf("kubectl %s: want %q, got %q", strings.Join(args, " "), want, out)
		}
		return err
	})
}

// Helm runs helm on the cluster, and gives what it prints; it has to succeed.
func (s *Server) Helm(t testing.TB, args ...string) string {
	t.Helper()
	return s.helm(t, "helm", args...)
}

// helm runs one of the versions of Helm.
func (s *Server) helm(t testing.TB, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program(t, name), append(args, "--kubeconfig", s.Kubeconfig)...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// Kubectl runs kubectl on the cluster, with an input, and gives what it prints; it has to succeed.
func (s *Server) Kubectl(t testing.TB, input string, args ...string) string {
	t.Helper()
	out, err := s.kubectl(t, input, args...)
	require.NoError(t, err, out)
	return out
}
