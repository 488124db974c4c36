package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/stretchr/testify/require"
	"go.temporal.io/server/common/dynamicconfig"
	"google.golang.org/grpc/codes"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/test/giteatest"
	"github.com/rampart-gitops/rampart/test/promtest"
	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// A spec names a connection without a namespace, moves to another one, and back to one of its own; doctor finds nothing
// wrong.
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

// Doctor warns of a namespace that takes no heartbeats.
func TestDoctorWithoutHeartbeats(t *testing.T) {
	w := newWorld(t, withSetting(dynamicconfig.WorkerHeartbeatsEnabled, false))
	w.pushSpec("add checkout", specText{image: "app:v1"})
	out, err := w.doctor().CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "warning  Temporal "+w.server.Address()+", namespace "+w.ns.Name()+", by connection "+kubeNamespace+
		"/temporal: namespace "+w.ns.Name()+" takes no heartbeats of workers")
	require.Contains(t, string(out), "frontend.WorkerHeartbeatsEnabled")
}

func (w *world) doctor(more ...string) *exec.Cmd {
	args := slices.Concat([]string{"doctor", "--repo", w.url, "--cache-dir", w.t.TempDir()}, w.access, more)
	return w.command(binary, args...)
}

// Health checks are answered at once, and the bot is ready once it has read Git and Temporal. A Prometheus reads how it
// does.
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

// On a Gitea doctor tells whether the branch is protected and takes the bot's pushes.
func TestDoctorOnGitea(t *testing.T) {
	r := new(review)
	w := newWorld(t, onGitea(r))
	doctor := func() (string, error) {
		out, err := w.doctor(w.forge...).CombinedOutput()
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
}

// found is a line of doctor.
type found struct{ Check, Verdict, Found, Do string }

// What is wrong is found, each line says what to do, and nothing else is left unchecked for it.
func TestDoctorFindsWhatIsWrong(t *testing.T) {
	r := new(review)
	w := newWorld(t, onGitea(r))
	w.push("an environment", map[string]string{"rampart.yaml": environmentWith(""), specFile: specText{image: "app:v1"}.String()})
	at := "Temporal " + w.server.Address() + ", namespace " + w.ns.Name() + ", by connection " + kubeNamespace + "/temporal"
	port, err := testneed.FreePort()
	require.NoError(t, err)
	nowhere := fmt.Sprintf("127.0.0.1:%d", port)
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		return name
	}
	reader := giteatest.Start(t).User(t, "reader")
	r.Collaborator(t, reader, sdk.AccessModeRead)
	both := func(token string) []string {
		name := file(token)
		return []string{"--git-token-file", name, "--forge-token-file", name}
	}
	all := []string{"repository", "push", "specs", "policies", at, "forge", "webhooks", "branch main", "clock"}
	for name, c := range map[string]struct {
		flags []string
		files map[string]string // that are on main meanwhile
		deny  bool              // Temporal takes no changes
		// failed are the failing checks, with what is found and what to do.
		failed []found
		// not are checks that cannot be made.
		not []string
	}{
		"a token that may only read": {flags: both(r.bot.NewToken(t, "read:repository", "read:user")), failed: []found{
			{Check: "push", Found: "the right to write", Do: "write to the repository"},
			{Check: "forge", Found: "scope write:repository", Do: "docs/forges.md"},
			{Check: "forge", Found: "scope write:issue", Do: "docs/forges.md"},
		}},
		// Gitea refuses its pushes later: readers may propose changes by a push.
		"an account that may only read": {flags: append(both(reader.Token), "--git-user", reader.Login), failed: []found{
			{Check: "forge", Found: "make it a collaborator with the right to write", Do: "docs/forges.md"},
			{Check: "forge", Found: "comment on pull requests", Do: "docs/forges.md"},
			{Check: "branch main", Found: "does not let this account push", Do: "make the account a collaborator"},
		}},
		"a token that may not read its account": {flags: []string{"--forge-token-file", file(r.bot.NewToken(t, "write:repository", "write:issue"))},
			failed: []found{{Check: "forge", Found: "scope read:user", Do: "--forge-token-file"}}},
		"a token that is wrong": {flags: []string{"--forge-token-file", file("wrong")}, not: []string{"webhooks", "branch main"},
			failed: []found{{Check: "forge", Found: "unauthorized", Do: "--forge-token-file"}}},
		"a branch that is not there": {flags: []string{"--branch", "nowhere"}, not: []string{"push", "specs", "policies", at, "branch main"},
			failed: []found{{Check: "repository", Found: "nowhere", Do: "name another branch with --branch"}}},
		"a key that is not there": {flags: []string{"--signing-key", "nowhere"},
			failed: []found{{Check: "signing", Found: "read signing key: ", Do: "--signing-key"}}},
		"a key that does not sign": {flags: []string{"--signing-key", file("no key")},
			failed: []found{{Check: "signing", Found: "expected a private key of SSH, or of OpenPGP", Do: "--signing-key"}}},
		"no webhook": {flags: []string{"--forge-token-file", file(r.person.Token)},
			failed: []found{{Check: "webhooks", Found: "none of the repository's webhooks (0) leads to", Do: "docs/webhooks.md"}}},
		"a policy that does not compile": {files: map[string]string{"policies/bad.rego": "package rampart.rollout\ndeny contains {\n"},
			failed: []found{{Check: "policies", Found: "policies/bad.rego:", Do: "rampart policy check"}}},
		"a spec that is wrong": {files: map[string]string{"workers/bad.yaml": specText{name: "bad", image: "app:v1", strategy: "{strategy: Sometimes}"}.String()},
			failed: []found{{Check: "specs", Found: `"Sometimes": want one of`, Do: "rampart validate"}}},
		"a Temporal that is away": {
			files: map[string]string{
				"workers/away.yaml": strings.NewReplacer(w.server.Address(), nowhere, "name: temporal", "name: away").Replace(w.connection()) +
					"---\n" + strings.ReplaceAll(specText{name: "cart", image: "app:v1"}.String(), "{name: temporal}", "{name: away}"),
			},
			failed: []found{{Check: "Temporal " + nowhere, Found: "connection refused", Do: "check the connection's address"}},
		},
		"a Temporal that takes no changes": {deny: true,
			failed: []found{{Check: at, Found: "Request unauthorized.", Do: "the right to write to the namespace"}}},
		"nothing": {},
	} {
		allow := func() {}
		if c.deny {
			allow = w.ns.Inject(temporalenv.Fault{Method: "SetWorkerDeploymentRampingVersion", Point: temporalenv.BeforeForwarding,
				Code: codes.PermissionDenied, Message: "Request unauthorized."})
		}
		if len(c.files) > 0 {
			w.push(name, maps.Clone(c.files))
		}
		cmd := w.doctor(slices.Concat(w.forge, []string{"--webhook-url", "https://rampart.example.com/webhook", "-o", "json"}, c.flags)...)
		out, err := cmd.Output()
		allow()
		require.Equal(t, len(c.failed) > 0, err != nil, "%s: %s", name, out)
		var lines, failed []found
		require.NoError(t, json.Unmarshal(out, &lines), name)
		checked := map[string]bool{}
		for _, line := range lines {
			checked[line.Check] = true
			require.Equal(t, line.Verdict == "ok", line.Do == "", "%s: what to do is said of what is wrong: %v", name, line)
			if line.Verdict == "failed" {
				failed = append(failed, line)
			}
		}
		require.Len(t, failed, len(c.failed), "%s: %v", name, failed)
		for i, want := range c.failed {
			require.Contains(t, failed[i].Check, want.Check, name)
			require.Contains(t, failed[i].Found, want.Found, name)
			require.Contains(t, failed[i].Do, want.Do, name)
		}
		for _, check := range all {
			require.Equal(t, !slices.Contains(c.not, check), checked[check], "%s: %s", name, check)
		}
		if len(c.files) > 0 {
			w.commit(gittest.Commit{Delete: slices.Collect(maps.Keys(c.files)), Message: "without " + name})
		}
	}
}
