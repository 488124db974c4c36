package cmdutil

import (
	"bytes"
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/bundle"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdtest"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// bundleOf is an unsigned bundle with one module.
func bundleOf(t *testing.T, revision, module string) []byte {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, bundle.NewWriter(&out).UseModulePath(true).DisableFormat(true).Write(bundle.Bundle{Data: map[string]any{},
		Manifest: bundle.Manifest{Revision: revision}, Modules: []bundle.ModuleFile{{Path: "/org.rego", URL: "/org.rego", Raw: []byte(module)}}}))
	return out.Bytes()
}

// bundleServer serves what it has over TLS; nothing is an error.
type bundleServer struct {
	*httptest.Server
	caFile string
	has    atomic.Pointer[[]byte]
}

func newBundleServer(t *testing.T) *bundleServer {
	t.Helper()
	s := &bundleServer{caFile: filepath.Join(t.TempDir(), "ca.pem")}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		archive := s.has.Load()
		if archive == nil || r.Header.Get("Authorization") != "Bearer s3cret" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write(*archive)
	}))
	t.Cleanup(s.Close)
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	require.NoError(t, os.WriteFile(s.caFile, text, 0o600))
	return s
}

// withBundle is an app with the flags of a command that asks policies, as they are parsed.
func withBundle(t *testing.T, s *bundleServer) *App {
	t.Helper()
	a, _ := testApp(t)
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("s3cret\n"), 0o600))
	cmd := &cobra.Command{}
	AddPolicies(a, cmd)
	require.NoError(t, cmd.ParseFlags([]string{"--policy-bundle", "org=" + s.URL + "/org.tar.gz", "--policy-bundle-unsigned",
		"--policy-bundle-ca-file", s.caFile, "--policy-bundle-token-file", token}))
	a.policies.cacheDir = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(a.Dir, "spec.yaml"), []byte(cmdtest.Spec), 0o644))
	return a
}

// decides makes one decision as a cycle does.
func decides(t *testing.T, p *reconcile.Planner) *rollout.Decision {
	t.Helper()
	_, decided, err := p.Plan(t.Context())
	require.NoError(t, err)
	return decided[0][0]
}

func (j *Judges) plannerFor(t *testing.T, a *App, obs rollout.Observation) *reconcile.Planner {
	t.Helper()
	var reads atomic.Int64
	p, err := a.NewPlanner(PlannerPorts{folder{dir: a.Dir}, cmdtest.Observer{Observation: func(rollout.Ask) rollout.Observation { return obs }, Reads: &reads}, j, nil}, TemporalFlags{})
	require.NoError(t, err)
	return p
}

const (
	denies = "package rampart.rollout\n\ndeny contains {\"rule\": \"org.stop\", \"msg\": \"not today\"} if input.action.kind == \"CreateVersion\"\n"
	asks   = `package rampart.rollout

import data.rampart.facts

warn contains {"rule": "org.revision", "msg": sprintf("decided by %s", [facts.require("bundle.org")])} if input.action.kind == "CreateVersion"
`
)

// messages of what policy found about the actions.
func messages(d *rollout.Decision) []string {
	var out []string
	for _, v := range d.Plan.Verdicts.Actions {
		for _, f := range v.Findings {
			out = append(out, f.Message)
		}
	}
	return out
}

// A bundle is a floor under the repository's policies. A new revision counts from the next reading on, its fact with
// it, and a server that is away takes nothing away, not even across a restart.
func TestABundleInTheCycle(t *testing.T) {
	s := newBundleServer(t)
	a := withBundle(t, s)
	first := bundleOf(t, "r1", denies)
	s.has.Store(&first)
	j, err := a.Judges(t.Context())
	require.NoError(t, err)
	p := j.plannerFor(t, a, rollout.Observation{Exists: rollout.No})
	d := decides(t, p)
	require.NotEmpty(t, d.Plan.Held)
	require.Equal(t, []string{"not today"}, messages(d))
	require.Equal(t, `"r1"`, string(d.Snapshot.Facts["bundle.org"].Value))

	second := bundleOf(t, "r2", asks)
	s.has.Store(&second)
	env := rollout.EnvironmentWorld{}
	was := j.Engine(env)
	j.store.Refresh(t.Context())
	require.Same(t, was, j.Engine(env), "what one decision began with is what it ends with")
	d = decides(t, p)
	require.Empty(t, d.Plan.Held)
	require.Contains(t, messages(d), "decided by r2")
	require.NotEqual(t, was.Digest(), j.Engine(env).Digest(), "what is settled is decided again")

	s.has.Store(nil)
	restarted, err := a.Judges(t.Context())
	require.NoError(t, err)
	d = decides(t, restarted.plannerFor(t, a, rollout.Observation{Exists: rollout.No}))
	require.Contains(t, messages(d), "decided by r2")
	late := cmdtest.Now.Add(25 * time.Hour)
	a.Now = func() time.Time { return late }
	restarted.pin()
	d = decides(t, restarted.plannerFor(t, a, rollout.Observation{Exists: rollout.No}))
	require.NotEmpty(t, d.Plan.Held, "the fact is too old for the policy that asks for it")
}

// A bundle that was never had holds every raise, and says why; it does not keep the bot from taking traffic back.
func TestWithoutTheBundle(t *testing.T) {
	s := newBundleServer(t)
	a := withBundle(t, s)
	j, err := a.Judges(t.Context())
	require.NoError(t, err)
	d := decides(t, j.plannerFor(t, a, rollout.Observation{Exists: rollout.No}))
	require.NotEmpty(t, d.Plan.Held)
	require.Contains(t, messages(d), "there is no policy bundle org, so every raise waits: "+s.URL+"/org.tar.gz: the server answers HTTP 503 Service Unavailable")

	d = decides(t, j.plannerFor(t, a, rollout.Observation{Exists: rollout.Yes, ManagerIdentity: "rampart/default", ConflictToken: []byte{1},
		Routing: rollout.RoutingConfig{Current: "v1", HasRamp: true, Ramping: "v9", Percentage: 10}}))
	require.NotNil(t, d.Plan.Lower, d.Proposal.State.Message)
	require.Nil(t, d.Plan.Raise)
}

// The loop waits for a bundle that it never had, not for longer than it has to, and asks again beside the cycles.
func TestKeepUp(t *testing.T) {
	s := newBundleServer(t)
	a := withBundle(t, s)
	a.policies.interval = time.Millisecond
	archive := bundleOf(t, "r1", denies)
	s.has.Store(&archive)
	j, err := a.OpenJudges()
	require.NoError(t, err)
	require.Equal(t, []string{"org"}, j.store.Missing())
	stop := j.Poll(t.Context())
	j.pin()
	require.Equal(t, `"r1"`, string(j.Facts()["bundle.org"].Value), "the first cycle has it")
	newer := bundleOf(t, "r2", denies)
	s.has.Store(&newer)
	require.Eventually(t, func() bool { j.pin(); return string(j.Facts()["bundle.org"].Value) == `"r2"` }, 30*time.Second, time.Millisecond)
	stop()
	j.Close()

	// Without any of its own there is nothing to wait for.
	plain, err := (&App{}).OpenJudges()
	require.NoError(t, err)
	plain.Poll(context.Background())()
	plain.Close()
}
