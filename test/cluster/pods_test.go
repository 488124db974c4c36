package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/cluster"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// version is a Deployment as the bot renders one, with a container.
func version(namespace, name, container string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[2]s, namespace: %[1]s, labels: {temporal.io/deployment-name: %[2]s, temporal.io/build-id: v1}}
spec:
  replicas: 2
  selector: {matchLabels: {temporal.io/deployment-name: %[2]s, temporal.io/build-id: v1}}
  template:
    metadata: {labels: {temporal.io/deployment-name: %[2]s, temporal.io/build-id: v1}}
    spec: {terminationGracePeriodSeconds: 1, containers: [%[3]s]}
---
`, namespace, name, container)
}

func askFor(namespace, name string) []rollout.ClusterAsk {
	return []rollout.ClusterAsk{{Namespace: namespace, Versions: []rollout.VersionDeployments{{BuildID: "v1", Deployments: []string{name}}}}}
}

// reader reads the cluster as the user of a kubeconfig.
func reader(t *testing.T, kubeconfig string) *cluster.Reader {
	t.Helper()
	r, err := cluster.OpenReader(cluster.Config{Kubeconfig: kubeconfig}, time.Now)
	require.NoError(t, err)
	t.Cleanup(r.Close)
	return r
}

// readOnly makes the user of docs/operations.md in a namespace, and gives its kubeconfig.
func readOnly(t *testing.T, s *Server, namespace string) string {
	t.Helper()
	s.Kubectl(t, strings.ReplaceAll(documentedIn(t, "operations.md", block{"yaml", "rampart-reader"}), "payments", namespace), "apply", "-f", "-")
	dir := t.TempDir()
	for _, line := range strings.Split(strings.ReplaceAll("\n"+documentedIn(t, "operations.md", block{"console", "create token rampart-reader"}), "\n$ ", "\n"), "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(line, "payments", namespace))
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "KUBECONFIG="+s.Kubeconfig, "PATH="+filepath.Dir(program(t, "kubectl"))+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", line, out)
	}
	return filepath.Join(dir, "readonly.yaml")
}

// says waits until the pods of a version are told in some words.
func says(t *testing.T, r *cluster.Reader, asks []rollout.ClusterAsk, want string) {
	t.Helper()
	eventually(t, func() error {
		got := r.Read(t.Context(), asks, time.Second)[0]
		said := got.Problem
		if pods := got.Version("v1"); pods != nil {
			said = pods.Text()
		}
		if !strings.Contains(said, want) {
			return fmt.Errorf("want %q, got %q", want, said)
		}
		return nil
	})
}

// TestPods checks that a reader says why pods do not start, as the API server, its controllers and a kubelet say it.
// Its user may read the objects that say so, and nothing else.
func TestPods(t *testing.T) {
	t.Parallel()
	s := StartNode(t, map[string]Image{"shell:v1": {Command: []string{"sh", "-c"}}, "shell:fails": {Command: []string{"sh", "-c", "exit 3"}}})
	for _, namespace := range []string{"shop", "tight", "hidden"} {
		s.Kubectl(t, "", "create", "namespace", namespace)
	}
	s.Kubectl(t, "", "create", "-n", "tight", "quota", "small", "--hard=pods=0")
	s.await(t, "0", "get", "-n", "tight", "quota", "small", "-o", "jsonpath={.status.hard.pods}")
	runs := `{name: worker, image: "shell:v1", args: ["while :; do sleep 0.1; done"]}`
	s.Kubectl(t, version("shop", "good", runs)+version("shop", "image", `{name: worker, image: "nowhere:v1"}`)+
		version("shop", "crashes", `{name: worker, image: "shell:fails"}`)+
		version("shop", "config", `{name: worker, image: "shell:v1", env: [{name: KEY, valueFrom: {secretKeyRef: {name: none, key: key}}}]}`)+
		version("shop", "large", `{name: worker, image: "shell:v1", resources: {requests: {cpu: 65}}}`)+version("tight", "quota", runs), "apply", "-f", "-")

	config := readOnly(t, s, "shop")
	r := reader(t, config)
	for name, want := range map[string]string{
		"good": "2 of 2 pods are ready", "image": `2 of 2 pods: ImagePullBackOff: no image "nowhere:v1" on this machine`, "crashes": "2 of 2 pods: CrashLoopBackOff: exit code 3",
		"config": `2 of 2 pods: CreateContainerConfigError: secrets "none" not found`, "large": "2 of 2 pods: Unschedulable: 0/1 nodes are available: 1 Insufficient cpu.",
		"none": "NoDeployment: none is not in namespace shop",
	} {
		says(t, r, askFor("shop", name), want)
	}
	says(t, reader(t, readOnly(t, s, "tight")), askFor("tight", "quota"), "FailedCreate: a pod is forbidden: exceeded quota: small, requested: pods=1, used: pods=0, limited: pods=0")

	t.Run("what it may not do", func(t *testing.T) {
		said, code := kubectlAs(t, config, "delete", "-n", "shop", "deployment", "good")
		require.NotZero(t, code)
		require.Contains(t, said, "Forbidden")
		_, code = kubectlAs(t, config, "get", "-n", "shop", "secrets")
		require.NotZero(t, code)
		require.Regexp(t, "^the kubeconfig's user may not (list|watch) deployments in namespace hidden of the cluster: let it get, list and watch deployments, replicasets, pods and events there$",
			r.Read(t.Context(), askFor("hidden", "good"), time.Minute)[0].Problem)
		says(t, r, askFor("shop", "good"), "2 of 2 pods are ready")
	})
	t.Run("a user who may not list pods", func(t *testing.T) {
		s.Kubectl(t, `[{"op": "replace", "path": "/rules/1/resources", "value": ["events"]}]`, "patch", "-n", "tight", "role", "rampart-reader", "--type=json", "--patch-file=/dev/stdin")
		limited := kubeconfig(t, s.Config.Host, strings.TrimSpace(s.Kubectl(t, "", "create", "token", "-n", "tight", "rampart-reader")))
		says(t, reader(t, limited), askFor("tight", "quota"), "the kubeconfig's user may not list pods in namespace tight of the cluster: ")
	})
	t.Run("a wrong token", func(t *testing.T) {
		says(t, reader(t, kubeconfig(t, s.Config.Host, "wrong")), askFor("shop", "good"), "the cluster does not accept the kubeconfig's credentials")
	})
	t.Run("a cluster that was never there", func(t *testing.T) {
		start := time.Now()
		says(t, reader(t, kubeconfig(t, "https://127.0.0.1:1", admin)), askFor("shop", "good"), "the cluster cannot be reached: dial: connection refused")
		require.Less(t, time.Since(start), 30*time.Second)
	})
	t.Run("what changes is seen", func(t *testing.T) {
		was := r.Changes()
		s.Kubectl(t, "", "scale", "-n", "shop", "deployment", "good", "--replicas=3")
		says(t, r, askFor("shop", "good"), "3 of 3 pods are ready")
		require.Greater(t, r.Changes(), was)
	})
	t.Run("an API server that ends in the middle, and comes back", func(t *testing.T) {
		was := r.Changes()
		s.down(t)
		says(t, r, askFor("shop", "good"), "the cluster cannot be reached: dial: connection refused")
		require.Greater(t, r.Changes(), was, "who goes by it is looked at again")
		start := time.Now()
		require.NotEmpty(t, r.Read(t.Context(), askFor("shop", "good"), 0)[0].Problem)
		require.Less(t, time.Since(start), time.Second, "what is away is not waited for")
		s.up(t)
		says(t, r, askFor("shop", "good"), "3 of 3 pods are ready")
	})
	t.Run("an API server that hangs", func(t *testing.T) {
		fresh := reader(t, config)
		require.NoError(t, s.running.Process.Signal(syscall.SIGSTOP))
		t.Cleanup(func() { _ = s.running.Process.Signal(syscall.SIGCONT) })
		start := time.Now()
		require.Equal(t, rollout.ClusterUnread, fresh.Read(t.Context(), askFor("shop", "good"), time.Second)[0].Problem)
		require.Equal(t, rollout.ClusterUnread, fresh.Read(t.Context(), askFor("shop", "good"), 0)[0].Problem)
		require.Less(t, time.Since(start), 5*time.Second)
		require.NoError(t, s.running.Process.Signal(syscall.SIGCONT))
		says(t, fresh, askFor("shop", "good"), "3 of 3 pods are ready")
	})
}

func kubectlAs(t *testing.T, kubeconfig string, args ...string) (said string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program(t, "kubectl"), append([]string{"--kubeconfig", kubeconfig, "--cache-dir", t.TempDir()}, args...)...)
	out, _ := cmd.CombinedOutput() // the exit code says it
	return string(out), cmd.ProcessState.ExitCode()
}

// The bot says in Git why pods of the next version do not start, once. It goes on while the cluster is away, and
// workers that come make it go on.
func TestPodsInStatus(t *testing.T) {
	t.Parallel()
	testneed.Long(t)
	temporal := temporalenv.Start(t, temporalenv.Options{})
	_, err := temporal.Namespace(t.Context(), "orders")
	require.NoError(t, err)
	s := StartNode(t, map[string]Image{"worker:v1": workerImage(t, "good"), "worker:v3": workerImage(t, "good")})
	repo := gittest.NewBareRepo(t)
	d := &delivery{t: t, server: s, host: host{repo: repo}, clone: filepath.Join(t.TempDir(), "workers"), steps: oneStep}
	s.Kubectl(t, "", "create", "namespace", "payments")
	repo.Commit(gittest.Commit{Write: map[string]string{"workers/connection.yaml": fmt.Sprintf(
		"apiVersion: temporal.io/v1alpha1\nkind: Connection\nmetadata: {name: temporal, namespace: payments}\nspec: {hostPort: %q}\n", temporal.Address())}})
	d.git("clone", "-q", repo.Dir, d.clone)
	d.push("worker:v1")
	r, config := build(t), readOnly(t, s, "payments")
	reads := []string{"--repo", repo.URL(), "--env", "default", "--kubeconfig", config}
	run(t, append(os.Environ(), "XDG_CACHE_HOME="+t.TempDir(), "HOME="+t.TempDir()), r.file, append([]string{"run", "--interval", "250ms"}, reads...)...)

	// What applies the repository knows nothing of the status.
	t.Cleanup(d.pipeline("-R", "-l", "temporal.io/build-id", "-f"))
	status := func(want ...string) {
		t.Helper()
		eventually(t, func() error {
			const file = "deploy/payments/checkout/status.yaml"
			if repo.Git("ls-tree", "-r", "--name-only", "main", file) == "" {
				return errors.New("no status yet")
			}
			said := repo.Git("show", "main:"+file)
			for _, text := range want {
				if !strings.Contains(said, text) {
					return fmt.Errorf("want %q in:\n%s", text, said)
				}
			}
			return nil
		})
	}
	status("v1 is the current version")
	require.NotContains(t, repo.Git("log", "--format=%s"), "failed")

	d.push("worker:v2")
	status("WaitingForPollers", `2 of 2 pods: ImagePullBackOff: no image \"worker:v2\" on this machine`, "- ImagePullBackOff")
	said, code := r.run(t, append([]string{"explain", "payments/checkout"}, reads...)...)
	require.Zero(t, code, said)
	require.Regexp(t, `v1 +2 +2 +2 +-\n`, said)
	require.Regexp(t, `v2 +2 +0 +0 +2 of 2 pods: ImagePullBackOff: no image "worker:v2" on this machine\n`, said)
	said, code = r.run(t, append([]string{"status"}, reads...)...)
	require.Zero(t, code, said)
	require.Contains(t, said, "2 of 2 pods: ImagePullBackOff")
	s.Kubectl(t, "", "create", "namespace", "other")
	said, code = r.run(t, "explain", "payments/checkout", "--repo", repo.URL(), "--env", "default", "--kubeconfig", readOnly(t, s, "other"))
	require.Zero(t, code, said)
	require.Regexp(t, `Pods are not known: the kubeconfig's user may not (list|watch) deployments in namespace payments of the cluster: let it get, list and watch deployments`, said)
	tip := repo.Tip("main")
	for range 10 { // pods that come and go
		s.Kubectl(t, "", "delete", "-n", "payments", "pods", "-l", "temporal.io/build-id=v2", "--grace-period=0", "--wait=false")
		s.await(t, "2", "get", "-n", "payments", "deployment", "checkout-v2", "-o", "jsonpath={.status.unavailableReplicas}")
	}
	eventually(t, func() error { // pods that were just made have nothing to say yet
		said, code := r.run(t, append([]string{"plan"}, reads...)...)
		require.Zero(t, code, said)
		if !strings.Contains(said, "ImagePullBackOff") {
			return errors.New(said)
		}
		return nil
	})
	require.Equal(t, tip, repo.Tip("main"), "pods that come and go make no commit")

	s.down(t)
	d.push("worker:v3")
	status("workers of v3 have to start") // the bot works without the cluster
	said, code = r.run(t, append([]string{"explain", "payments/checkout"}, reads...)...)
	require.Zero(t, code, said)
	require.Contains(t, said, "Pods are not known: the cluster cannot be reached: dial: connection refused")
	s.up(t)
	status("v3 is the current version")
	require.NotContains(t, repo.Git("show", "main:deploy/payments/checkout/status.yaml"), "ImagePullBackOff")
}
