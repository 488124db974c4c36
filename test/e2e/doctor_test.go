package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/giteatest"
	"github.com/rampart-gitops/rampart/internal/promtest"
)

// A spec names a connection without a namespace, moves to another one, and back to one of its own; doctor finds nothing wrong.
func TestClusterConnection(t *testing.T) {
	w := newWorld(t)
	w.start()
	cluster := func(name string) string {
		return "apiVersion: temporal.io/v1alpha1\nkind: ClusterConnection\nmetadata: {name: " + name + "}\nspec: {hostPort: \"" + w.server.Address() + "\"}\n"
	}
	spec := func(ref string) string {
		return "apiVersion: temporal.io/v1alpha1\nkind: WorkerDeployment\nmetadata: {name: checkout, namespace: " + kubeNamespace + "}\nspec:\n" +
			"  replicas: 1\n  workerOptions: {connectionRef: " + ref + ", temporalNamespace: NAMESPACE}\n  rollout: {strategy: AllAtOnce}\n" +
			"  template: {spec: {containers: [{name: worker, image: \"app:v1\"}]}}\n"
	}
	w.push("add checkout", map[string]string{"workers/connections.yaml": cluster("eu") + "---\n" + cluster("us"),
		"workers/checkout.yaml": spec("{kind: ClusterConnection, name: eu}")})
	w.awaitReady("app:v1")
	require.Equal(t, v1alpha1.ConnectionKind("ClusterConnection"), w.routing().Connection.Kind)
	require.Equal(t, &v1alpha1.ConnectionRef{Kind: "ClusterConnection", Name: "eu"}, w.status().ObservedConnectionRef)

	w.push("another one", map[string]string{"workers/checkout.yaml": spec("{kind: ClusterConnection, name: us}")})
	w.eventually("recorded", func() bool { return w.status().ObservedConnectionRef.Name == "us" })
	w.push("its own", map[string]string{"workers/checkout.yaml": spec("{name: temporal}")})
	w.eventually("recorded", func() bool {
		return *w.status().ObservedConnectionRef == v1alpha1.ConnectionRef{Kind: "Connection", Name: "temporal"}
	})
	require.Equal(t, []string{"current v1"}, w.calls(), "traffic stays")

	out, err := w.doctor().CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "ok       Temporal "+w.server.Address()+", namespace "+w.ns.Name()+", by connection "+kubeNamespace+"/temporal: answers, release ")
	w.push("nowhere", map[string]string{"workers/checkout.yaml": spec("{kind: ClusterConnection, name: moon}")})
	w.eventually("said", func() bool { return w.reason() == "ConnectionNotFound" })
	out, err = w.doctor().CombinedOutput()
	require.ErrorContains(t, err, "exit status 1", "%s", out)
	require.Contains(t, string(out), "failed   "+w.id()+": ClusterConnection moon is not in the repository")
}

func (w *world) doctor() *exec.Cmd {
	return w.command(w.t.Context(), binary, append([]string{"doctor", "--repo", w.url, "--cache-dir", w.t.TempDir()}, w.access...)...)
}

// Health checks are answered at once, and the bot is ready once it has read Git and Temporal. A Prometheus reads how it does.
func TestHealthChecks(t *testing.T) {
	w := newWorld(t)
	b := w.start("--metrics-address", "127.0.0.1:0")
	var address string
	w.eventually("an address", func() bool {
		at := regexp.MustCompile(`msg="answering health checks and metrics" address=(\S+)`).FindStringSubmatch(b.log.String())
		if at != nil {
			address = at[1]
		}
		return at != nil
	})
	status := func(path string) int {
		answer, err := http.Get("http://" + address + path) //nolint:noctx // of a process beside the test
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		return answer.StatusCode
	}
	require.Equal(t, 200, status("/healthz"))
	require.Equal(t, 503, status("/readyz"), "the repository is empty")
	prometheus := promtest.StartOn(t, address)
	prometheus.Await(t, `rampart_last_success_timestamp_seconds == 0`)
	w.pushSpec("v1", specText{image: "app:v1"})
	w.eventually("ready", func() bool { return status("/readyz") == 200 })
	require.Equal(t, 200, status("/healthz"))
	w.awaitReady("app:v1")
	for _, query := range []string{
		`rampart_worker_deployments{reason="RolloutComplete"} == 1`,
		`absent(rampart_worker_deployment_not_ready_since_timestamp_seconds)`,
		`time() - rampart_last_success_timestamp_seconds < 60`,
		`rampart_cycle_duration_seconds_count{result="ok"} > 0`,
		`rampart_git_pushes_total{result="pushed"} > 0`,
		`rampart_routing_changes_total{direction="raise",result="done"} == 1`,
		`rampart_temporal_request_duration_seconds_count{method="DescribeWorkerDeployment",code="OK"} > 0`,
		`rampart_temporal_request_duration_seconds_count{method="SetWorkerDeploymentCurrentVersion",code="OK"} == 1`,
		`count(rampart_build_info) == 1`,
		`process_resident_memory_bytes > 1e6`,
	} {
		prometheus.Await(t, query)
	}
	w.pushSpec("without workers", specText{image: "app:nowhere"})
	prometheus.Await(t, `time() - rampart_worker_deployment_not_ready_since_timestamp_seconds{worker_deployment="shop/checkout",reason="WaitingForPollers"} < 60`)
	prometheus.Await(t, `rampart_worker_deployments{reason="WaitingForPollers"} == 1 unless rampart_worker_deployments{reason="RolloutComplete"}`)
}

// On a Gitea doctor tells whether the branch is protected and takes the bot's pushes, and which scope a token lacks.
func TestDoctorOnGitea(t *testing.T) {
	r := new(review)
	w := newWorld(t, onGitea(r))
	doctor := func(more ...string) (string, error) {
		args := append([]string{"doctor", "--repo", w.url, "--cache-dir", t.TempDir()}, append(append(w.access, w.forge...), more...)...)
		out, err := w.command(t.Context(), binary, args...).CombinedOutput()
		return string(out), err
	}
	protect := func(who giteatest.User) {
		by := r.person.Client(t)
		_, _ = by.DeleteBranchProtection(r.Owner, r.Name, "main") // there is none at first
		r.Protect(t, sdk.CreateBranchProtectionOption{RuleName: "main", EnablePush: true, EnablePushWhitelist: true, PushWhitelistUsernames: []string{who.Login}})
	}
	w.push("an environment", map[string]string{"rampart.yaml": environmentWith("")})
	said, err := doctor()
	require.NoError(t, err, said)
	require.Contains(t, said, "ok       forge: accepts the token of "+r.bot.Login+", for all that the bot does there")
	require.Contains(t, said, "warning  branch main: is not protected")
	require.Contains(t, said, "ok       clock: agrees with that of 127.0.0.1:")

	protect(r.person)
	said, err = doctor()
	require.NoError(t, err, said)
	require.Contains(t, said, "warning  branch main: is protected, and the forge does not let this account push to it")
	protect(r.bot)
	said, err = doctor()
	require.NoError(t, err, said)
	require.Contains(t, said, "ok       branch main: is protected, and lets this account push")

	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte(r.bot.NewToken(t, "write:repository", "read:user")), 0o600))
	said, err = doctor("--forge-token-file", token)
	require.ErrorContains(t, err, "exit status 1", said)
	require.Contains(t, said, "failed   forge: comment on pull requests, and label them at ")
	require.Contains(t, said, "scope write:issue")
}
