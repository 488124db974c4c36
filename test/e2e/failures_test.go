package e2e

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/testneed"
	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// Temporal refuses a raise, and later a lowering, as it does where the bot may only read. The status says so, nothing
// moves and nothing is committed again and again. Once the call is taken the rollout goes on, and the reason is gone.
func TestTemporalRefusesTheCall(t *testing.T) {
	w := newWorld(t)
	w.start()
	spec := func(image string) specText { return specText{image: image, strategy: slowSteps} }
	w.pushSpec("add checkout", spec("app:v1"))
	w.awaitReady("app:v1")
	for _, c := range []struct {
		push, said string
		before     []string
		after      string
		reason     string
	}{
		{"app:v2", "raise traffic: ", []string{"current v1"}, "ramp v2 10", "Ramping"},
		{"app:v1", "take traffic back: ", []string{"current v1", "ramp v2 10"}, "ramp none", "RolloutComplete"},
	} {
		allow := w.ns.Inject(temporalenv.Fault{Method: "SetWorkerDeploymentRampingVersion", Point: temporalenv.BeforeForwarding,
			Code: codes.PermissionDenied, Message: "Request unauthorized."})
		w.pushSpec("on to "+c.push, spec(c.push))
		w.awaitReason("PlanExecutionFailed")
		require.Contains(t, w.message(), c.said)
		require.Contains(t, w.message(), "Request unauthorized.")
		require.True(t, w.stalled())
		w.eventually("it is told once, but for a late read that says something else for a moment", func() bool {
			tip := w.repo.Tip("main")
			w.settle()
			return w.reason() == "PlanExecutionFailed" && tip == w.repo.Tip("main")
		})
		require.Equal(t, c.before, w.calls())
		allow()
		w.awaitReason(c.reason)
		require.False(t, w.stalled())
		require.Equal(t, append(c.before, c.after), w.calls())
	}
	w.repo.Fsck()
}

// stalled reports whether the condition Stalled is true.
func (w *world) stalled() bool {
	return slices.ContainsFunc(w.status().Conditions, func(c v1alpha1.Condition) bool {
		return c.Type == v1alpha1.ConditionStalled && c.Status == v1alpha1.True
	})
}

// A connection leads to where no Temporal answers: the status says that, and no more of what is there. With the right
// address the rollout goes on.
func TestConnectionLeadsNowhere(t *testing.T) {
	w := newWorld(t, withImages(map[string]temporalenv.Image{"cart:v1": temporalenv.DefaultImage("cart")}))
	w.start()
	port, err := testneed.FreePort()
	require.NoError(t, err)
	nowhere := fmt.Sprintf("127.0.0.1:%d", port)
	w.pushSpec("add checkout", specText{image: "app:v1"})
	w.awaitReady("app:v1")
	w.push("another one", map[string]string{
		"workers/nowhere.yaml": strings.NewReplacer(w.server.Address(), nowhere, "name: temporal", "name: nowhere").Replace(w.connection()),
		"workers/cart.yaml": strings.ReplaceAll(specText{name: "cart", image: "cart:v1"}.String(),
			"connectionRef: {name: temporal}", "connectionRef: {name: nowhere}"),
	})
	cart := w.named("cart")
	cart.awaitReason("TemporalClientCreationFailed")
	require.Contains(t, cart.message(), "Temporal cannot be reached")
	require.NotContains(t, cart.message(), "refused", "others' ports are not told to who may push")
	require.True(t, cart.stalled())
	require.Equal(t, "RolloutComplete", w.reason(), "the other one's is right")
	w.push("the right address", map[string]string{
		"workers/nowhere.yaml": strings.ReplaceAll(w.connection(), "name: temporal", "name: nowhere"),
	})
	cart.awaitReady("cart:v1")
	require.Equal(t, []string{"current v1"}, cart.calls())
	w.repo.Fsck()
}

// keyed is a Temporal that lets in one API key alone: a proxy that ends TLS stands before the server.
type keyed struct {
	key             atomic.Value
	address, caFile string
}

func (w *world) keyed(key string) *keyed {
	w.t.Helper()
	k := &keyed{caFile: filepath.Join(w.t.TempDir(), "ca.pem")}
	k.key.Store(key)
	behind := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: w.server.Address()})
		},
		Transport:     &http.Transport{Protocols: new(http.Protocols)},
		FlushInterval: -1,
	}
	behind.Transport.(*http.Transport).Protocols.SetUnencryptedHTTP2(true)
	front := httptest.NewUnstartedServer(http.HandlerFunc(func(answer http.ResponseWriter, asked *http.Request) {
		if asked.Header.Get("Authorization") == "Bearer "+k.key.Load().(string) {
			behind.ServeHTTP(answer, asked)
			return
		}
		answer.Header().Set("Content-Type", "application/grpc")
		answer.Header().Set("Grpc-Status", fmt.Sprint(int(codes.Unauthenticated)))
		answer.Header().Set("Grpc-Message", "unknown key")
	}))
	front.EnableHTTP2 = true
	front.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	front.StartTLS()
	w.t.Cleanup(front.Close)
	k.address = front.Listener.Addr().String()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
	require.NoError(w.t, os.WriteFile(k.caFile, authority, 0o600))
	return k
}

// The bot's credentials for Temporal are missing, wrong, and later withdrawn. The status says so, and the rollout goes
// on with the right ones, without a restart of the bot.
func TestTemporalRefusesTheCredentials(t *testing.T) {
	w := newWorld(t)
	door, dir := w.keyed("first"), t.TempDir()
	file, connections := filepath.Join(dir, "key"), filepath.Join(dir, "connections.yaml")
	put := func(key string) { require.NoError(t, os.WriteFile(file, []byte(key), 0o600)) }
	require.NoError(t, os.WriteFile(connections, fmt.Appendf(nil, "%s/temporal: {address: %q, caFile: %q, apiKeyFile: %q}\n",
		kubeNamespace, door.address, door.caFile, file), 0o600))
	b := w.start("--temporal-connections", connections)

	w.pushSpec("add checkout", specText{image: "app:v1"})
	w.awaitReason("AuthSecretInvalid")
	require.Contains(t, w.message(), "the bot's credentials for Temporal cannot be used")
	require.True(t, w.stalled())
	put("wrong")
	w.eventually("refused", func() bool { return strings.Contains(b.log.String(), "code = Unauthenticated desc = unknown key") })
	require.Equal(t, "AuthSecretInvalid", w.reason())
	require.Empty(t, w.calls())
	put("first")
	w.awaitReady("app:v1")

	door.key.Store("second")
	w.pushSpec("v2", specText{image: "app:v2", strategy: allAtOnce})
	w.awaitReason("AuthSecretInvalid")
	require.Equal(t, []string{"current v1"}, w.calls())
	put("second")
	w.awaitReady("app:v2")
	require.Equal(t, []string{"current v1", "current v2"}, w.calls())
	require.NotContains(t, w.repo.Git("log", "-p", "--all"), door.caFile, "which files the bot has is not told")
	w.repo.Fsck()
}

// Waiting ends with 2 when the time is over, and at once where waiting does not help; with 0 when it is met.
func TestWaitEnds(t *testing.T) {
	w := newWorld(t)
	w.push("two", map[string]string{
		"workers/checkout.yaml": specText{image: "app:nowhere"}.String(),
		"workers/cart.yaml":     strings.ReplaceAll(specText{name: "cart", image: "app:v1"}.String(), "name: temporal", "name: missing"),
	})
	cart := w.named("cart")
	w.eventually("both have a status", func() bool { w.once(); return w.reason() != "" && cart.reason() != "" })
	for _, c := range []struct {
		name, timeout string
		code          int
		said          string
	}{
		{"shop/checkout", "1s", 2, "timed out after 1s waiting for shop/checkout to be Ready: WaitingForPollers: "},
		{"shop/checkout", "0", 2, "timed out after 0s waiting for shop/checkout to be Ready: WaitingForPollers: "},
		{"shop/cart", "2m", 2, "shop/cart does not get Ready by waiting: TemporalConnectionNotFound: "},
		{"shop/nobody", "2m", 1, "shop/nobody"},
	} {
		begun := time.Now()
		cmd := w.command(binary, "wait", c.name, "--repo", w.url, "--cache-dir", t.TempDir(), "--interval", "100ms",
			"--timeout", c.timeout)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit, "%s", out)
		require.Equal(t, c.code, exit.ExitCode(), "%s", out)
		require.Contains(t, string(out), c.said)
		if c.timeout == "1s" {
			require.GreaterOrEqual(t, time.Since(begun), time.Second)
		}
	}
}

// A push hangs at the server, as with a hook that waits for something: a bad build loses its traffic all the same.
func TestPushHangsInMidRamp(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.pushSpec("add checkout", specText{image: "app:v1", strategy: firstStep})
	w.awaitReady("app:v1")
	w.pushSpec("a bad one", specText{image: "app:bad", strategy: firstStep})
	w.eventually("the bad one ramps", func() bool { return slices.Contains(w.calls(), "ramp bad 50") })
	w.awaitReason("Ramping")
	began, hangs := filepath.Join(w.repo.Dir, "began"), filepath.Join(w.repo.Dir, "hangs")
	require.NoError(t, os.WriteFile(hangs, nil, 0o600))
	t.Cleanup(func() { _ = os.Remove(hangs) }) // the bot ends with its push
	w.repo.Hook("pre-receive", `read was is ref; test "$(git log -1 --format=%an $is)" = rampart || exit 0`+"\nwhile test -e "+hangs+"; do touch "+began+"; sleep 0.1; done")
	w.pushSpecs("another one", map[string]specText{"cart": {image: "app:v1", strategy: firstStep}})
	w.eventually("a push hangs", func() bool { _, err := os.Stat(began); return err == nil })
	tip := w.repo.Tip("main")
	w.traffic()
	w.eventually("traffic is taken back", func() bool { return slices.Contains(w.calls(), "ramp none") })
	require.Equal(t, tip, w.repo.Tip("main"))
	require.NoError(t, os.Remove(hangs))
	w.awaitReason("RolledBack")
	require.Equal(t, []string{"an interrupted rollback"}, barredBy(w.routing()), "as after a death between the call and the commit")
	require.Regexp(t, `^\d+ of \d+ workflows of bad-\w+ failed, 0 of \d+ of v1-\w+$`, w.barReason())
	require.Equal(t, []string{"current v1", "ramp bad 50", "ramp none"}, w.calls())
}
