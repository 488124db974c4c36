package cluster

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/testneed"
)

// argoConfig are the objects that Argo CD looks for, beside its own ConfigMap.
const argoConfig = `
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-rbac-cm, labels: {app.kubernetes.io/name: argocd-rbac-cm, app.kubernetes.io/part-of: argocd}}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: argocd-tls-certs-cm
  labels: {app.kubernetes.io/name: argocd-tls-certs-cm, app.kubernetes.io/part-of: argocd}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: argocd-ssh-known-hosts-cm
  labels: {app.kubernetes.io/name: argocd-ssh-known-hosts-cm, app.kubernetes.io/part-of: argocd}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: argocd-gpg-keys-cm
  labels: {app.kubernetes.io/name: argocd-gpg-keys-cm, app.kubernetes.io/part-of: argocd}
---
apiVersion: v1
kind: Secret
metadata: {name: argocd-secret, labels: {app.kubernetes.io/name: argocd-secret, app.kubernetes.io/part-of: argocd}}
stringData: {server.secretkey: of a test}
---
apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: default}
spec:
  sourceRepos: ["*"]
  destinations: [{server: "*", namespace: "*"}]
  clusterResourceWhitelist: [{group: "*", kind: "*"}]
`

// argoCD starts further programs of an Argo CD that runs.
type argoCD struct {
	start func(name string, args ...string) *exec.Cmd
	// controller is the process that compares and syncs.
	controller *exec.Cmd
	repo       string // the port of its repo-server
	redis      string // and that of its Redis
}

// server runs Argo CD's API server, which its pages and its command ask, and gives its URL. It asks for no login.
func (a argoCD) server(t testing.TB, kubeconfig string) string {
	t.Helper()
	port := freePort(t)
	a.start("argocd-server", "--kubeconfig", kubeconfig, "--namespace", "argocd", "--address", "127.0.0.1", "--port",
		port, "--metrics-address", "127.0.0.1", "--metrics-port", freePort(t), "--repo-server", "127.0.0.1:"+a.repo,
		"--redis", "127.0.0.1:"+a.redis,
		"--repo-server-plaintext", "--insecure", "--disable-auth", "--staticassets", t.TempDir())
	url := "http://127.0.0.1:" + port
	eventually(t, func() error { return healthy(url + "/healthz") })
	return url
}

// ArgoCD runs Argo CD's application-controller, applicationset-controller and repo-server, with Redis, until the test
// ends.
func (s *Server) ArgoCD(t testing.TB) argoCD {
	t.Helper()
	argocd := program(t, "argocd")
	bin := filepath.Dir(argocd)
	redis, err := exec.LookPath("redis-server")
	if err != nil {
		testneed.Missing(t, "no Redis: install redis-server")
	}
	s.Kubectl(t, "", "create", "namespace", "argocd")
	s.Kubectl(t, "", "apply", "--server-side", "-f", filepath.Join(bin, "argocd-manifests", "crds"))
	s.established(t)
	s.Kubectl(t, "", "apply", "--server-side", "-n", "argocd", "-f",
		filepath.Join(bin, "argocd-manifests", "argocd-cm.yaml"))
	s.Kubectl(t, argoConfig, "apply", "--server-side", "-n", "argocd", "-f", "-")

	dir := t.TempDir()
	env := []string{"KUBECONFIG=" + s.Kubeconfig, "ARGOCD_FAKE_IN_CLUSTER=true", "ARGOCD_GPG_ENABLED=false",
		"TMPDIR=" + dir, "HOSTNAME=argocd-application-controller-0", "PATH=" + bin + ":" + os.Getenv("PATH")}
	for variable, name := range map[string]string{"ARGOCD_TLS_DATA_PATH": "tls", "ARGOCD_SSH_DATA_PATH": "ssh",
		"ARGOCD_GPG_DATA_PATH": "gpg", "ARGOCD_GNUPGHOME": "keys", "ARGOCD_PLUGINSOCKFILEPATH": "plugins"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o700))
		env = append(env, variable+"="+filepath.Join(dir, name))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ssh", "ssh_known_hosts"), nil, 0o600))
	cache, repo, repoMetrics, metrics := freePort(t), freePort(t), freePort(t), freePort(t)
	run(t, nil, redis, "--bind", "127.0.0.1", "--port", cache, "--save", "", "--appendonly", "no", "--dir", dir)
	start := func(name string, args ...string) *exec.Cmd {
		args = append(args, "--loglevel", "info", "--logformat", "text")
		return run(t, append(env, "ARGOCD_BINARY_NAME="+name), argocd, args...)
	}
	start("argocd-repo-server", "--redis", "127.0.0.1:"+cache, "--address", "127.0.0.1", "--port", repo,
		"--metrics-address", "127.0.0.1", "--metrics-port", repoMetrics, "--disable-tls", "--client-ca-path", "",
		"--revision-cache-expiration", "1s")
	controller := start("argocd-application-controller", "--redis", "127.0.0.1:"+cache, "--kubeconfig", s.Kubeconfig,
		"--namespace", "argocd", "--repo-server", "127.0.0.1:"+repo, "--repo-server-plaintext",
		"--metrics-port", metrics, "--app-resync", "1", "--app-resync-jitter", "0")
	start("argocd-applicationset-controller", "--kubeconfig", s.Kubeconfig, "--namespace", "argocd",
		"--argocd-repo-server", "127.0.0.1:"+repo, "--repo-server-plaintext",
		"--metrics-addr", "127.0.0.1:"+freePort(t), "--webhook-addr", "127.0.0.1:"+freePort(t), "--probe-addr",
		"127.0.0.1:"+freePort(t))
	eventually(t, func() error {
		conn, err := net.Dial("tcp", "127.0.0.1:"+repo) //nolint:noctx // of a process beside the test
		if err != nil {
			return err
		}
		return conn.Close()
	})
	eventually(t, func() error { return healthy("http://127.0.0.1:" + metrics + "/healthz") })
	return argoCD{start, controller, repo, cache}
}
