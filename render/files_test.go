package render

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

func TestNoRecordWritesNothing(t *testing.T) {
	s := newScene(t, checkoutSpec, noAuth())
	s.plan.Record = nil
	changes, err := Files(s.plan, s.record)
	require.NoError(t, err)
	require.Nil(t, changes)
}

func TestFilesRefuses(t *testing.T) {
	write := func(w rollout.VersionWrite) func(*scene) { return func(s *scene) { s.write(w) } }
	on := func(op rollout.WriteOp) rollout.VersionWrite {
		return rollout.VersionWrite{Op: op, Guard: v1alpha1.GuardOn}
	}
	blob := strings.Repeat("0a", 20)
	for name, tt := range map[string]struct {
		change func(*scene)
		want   string
	}{
		"folder above":      {func(s *scene) { s.plan.Dir = "../x" }, "cannot be a folder for output"},
		"root":              {func(s *scene) { s.plan.Dir = "." }, "cannot be a folder for output"},
		"absolute":          {func(s *scene) { s.plan.Dir = "/deploy" }, "cannot be a folder for output"},
		"no folder":         {func(s *scene) { s.plan.Dir = "" }, "cannot be a folder for output"},
		"build ID above":    {write(rollout.VersionWrite{BuildID: "..", Op: rollout.RemoveVersion}), "cannot be the name of a folder"},
		"build ID a path":   {write(rollout.VersionWrite{BuildID: "a/../../b", Op: rollout.RemoveVersion}), "cannot be the name of a folder"},
		"no build ID":       {func(s *scene) { s.plan.Versions = []rollout.VersionWrite{{Op: rollout.RemoveVersion}} }, "cannot be the name of a folder"},
		"not recorded":      {write(rollout.VersionWrite{BuildID: "v9", Op: rollout.RenderVersion}), "Render: not in the record"},
		"no op":             {write(on("")), `TakeOver, got ""`},
		"twice":             {func(s *scene) { s.plan.Versions = append(s.plan.Versions, s.plan.Versions...) }, "written twice"},
		"no guard":          {write(rollout.VersionWrite{Op: rollout.RenderVersion}), "guard"},
		"no spec":           {func(s *scene) { s.plan.Spec = nil }, "the plan has no spec"},
		"no connection":     {func(s *scene) { s.plan.Connection = nil }, "the plan has no connection"},
		"nothing to edit":   {write(on(rollout.EditVersion)), "deployment.yaml is not in the record"},
		"blob above":        {write(rollout.VersionWrite{Op: rollout.RestoreFiles, Blobs: map[string]string{"../../x": blob}}), "expected a path below"},
		"blob at the top":   {write(rollout.VersionWrite{Op: rollout.RestoreFiles, Blobs: map[string]string{".": blob}}), "expected a path below"},
		"no blob":           {write(rollout.VersionWrite{Op: rollout.RestoreFiles, Blobs: map[string]string{"a.yaml": "main"}}), `expected a blob hash of 40 hex digits, got "main"`},
		"template no JSON":  {func(s *scene) { s.spec().Template.Raw = []byte("{") }, "pod template: read JSON"},
		"template a list":   {func(s *scene) { s.spec().Template.Raw = []byte("[]") }, "pod template: not an object"},
		"strategy no JSON":  {func(s *scene) { s.spec().Strategy = []byte("{} {}") }, "strategy: read JSON: more than one value"},
		"template in parts": {func(s *scene) { s.spec().Template.Raw = []byte(`{"metadata":[]}`) }, "metadata is not an object"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, checkoutSpec, noAuth())
			tt.change(s)
			changes, err := Files(s.plan, s.record)
			require.ErrorContains(t, err, tt.want)
			require.ErrorContains(t, err, "render payments/checkout: ")
			require.Nil(t, changes)
		})
	}
}

func (s *scene) spec() *v1alpha1.WorkerDeploymentSpec { return &s.plan.Spec.Spec }

// TestRoutingKeepsItsBytes: nothing changed means no change, be the file as a newer Rampart would not write it.
func TestRoutingKeepsItsBytes(t *testing.T) {
	s := newScene(t, checkoutSpec, noAuth())
	s.commit()
	s.put(layout.Routing, "# a comment\n"+s.record.Files[layout.Routing].Data)
	s.read()
	require.Empty(t, s.commit())

	s.record.Routing.Spec.Desired.Current = "edited by hand"
	require.Equal(t, []string{"routing.yaml"}, paths(s, must(Files(s.plan, s.record))), "edited, and not what the plan says")
	edited := *s.plan.Record
	edited.Desired.Current = "edited by hand"
	s.plan.Record = &edited
	s.put(layout.Routing, strings.Replace(s.record.Files[layout.Routing].Data, `current: ""`, "current: edited by hand", 1))
	require.Equal(t, []string{"routing.yaml"}, paths(s, must(Files(s.plan, s.record))), "adopted, and sealed anew")
}

func must(changes []rollout.FileChange, err error) []rollout.FileChange {
	if err != nil {
		panic(err)
	}
	return changes
}

func paths(s *scene, changes []rollout.FileChange) []string {
	var out []string
	for _, c := range changes {
		out = append(out, strings.TrimPrefix(c.Path, s.plan.Dir+"/"))
	}
	return out
}

// TestUntouchedVersionsKeepTheirHashes: a file that someone edited by hand is drift, and a plan about something else
// must not make it the record.
func TestUntouchedVersionsKeepTheirHashes(t *testing.T) {
	s := newScene(t, checkoutSpec, noAuth())
	s.commit()
	before := s.record.Routing.Spec.Versions[0].Files
	s.put(layout.VersionFile(s.target(), layout.Deployment), "kind: Deployment\n")
	s.ask(with(checkoutSpec, "checkout:v2.3.0", "checkout:v2.4.0"))
	s.commit()
	require.Equal(t, before, s.record.Routing.Spec.Versions[0].Files)
	require.Equal(t, BlobHash(s.manifest()), s.record.Routing.Spec.Versions[1].Files[layout.Deployment])
}

func TestRenderDropsFilesOfBefore(t *testing.T) {
	s := newScene(t, checkoutSpec, noAuth())
	s.commit()
	dir := layout.Version(s.target()) + "/"
	s.put(dir+"pool.yaml", "kind: Deployment\n")
	s.put(dir+"notes.txt", "not ours")
	versions := slices.Clone(s.record.Routing.Spec.Versions)
	versions[0].Files = maps.Clone(versions[0].Files)
	versions[0].Files["pool.yaml"] = s.record.Files[dir+"pool.yaml"].Hash
	s.record.Routing.Spec.Versions = versions
	s.record.Routing.Seal()
	s.write(rollout.VersionWrite{Op: rollout.RenderVersion, Replicas: replicas(3), Guard: v1alpha1.GuardOn})
	changes := must(Files(s.plan, s.record))
	require.Equal(t, []rollout.FileChange{{Path: s.plan.Dir + "/" + dir + "pool.yaml", Delete: true}}, manifestOnly(changes))

	s.write(rollout.VersionWrite{Op: rollout.RemoveVersion})
	s.plan.Record.Versions = nil
	got := paths(s, manifestOnly(must(Files(s.plan, s.record))))
	require.Equal(t, []string{dir + "deployment.yaml", dir + "pool.yaml"}, got, "the file of someone else stays")
}

// TestLostRecordKeepsWorkers: the manifests that a lost routing.yaml knew are applied as before.
func TestLostRecordKeepsWorkers(t *testing.T) {
	s := newScene(t, checkoutSpec, noAuth())
	s.commit()
	first := s.target()
	s.ask(with(checkoutSpec, "checkout:v2.3.0", "checkout:v2.4.0"))
	s.commit()
	listed := s.record.Files[layout.Kustomization]
	require.Contains(t, listed.Data, first)
	delete(s.record.Files, layout.Routing)
	s.read()
	s.plan.Record.Versions = s.plan.Record.Versions[1:]
	s.commit()
	require.Equal(t, listed, s.record.Files[layout.Kustomization])
}

// People read a status: its times are to the second.
func TestStatusTimesAreToTheSecond(t *testing.T) {
	s := newScene(t, checkoutSpec, noAuth())
	at := v1alpha1.NewTime(time.Date(2026, 1, 31, 12, 0, 59, 999_999_999, time.UTC))
	s.plan.Status = &v1alpha1.WorkerDeploymentStatus{Conditions: []v1alpha1.Condition{{Type: "Ready", Status: v1alpha1.True, Reason: "x", Message: "at 2026-01-31T12:00:59.5Z",
		LastTransitionTime: at}}, Decision: &v1alpha1.Decision{NextStepAt: &at}}
	s.commit()
	second := v1alpha1.NewTime(at.Truncate(time.Second))
	require.Equal(t, second, s.record.Status.Status.Conditions[0].LastTransitionTime)
	require.Equal(t, "at 2026-01-31T12:00:59.5Z", s.record.Status.Status.Conditions[0].Message)
	require.Equal(t, &second, s.record.Status.Status.Decision.NextStepAt)
	require.Empty(t, s.commit())
}

func TestStatusFollowsTheUsersMetadata(t *testing.T) {
	s := newScene(t, checkoutSpec, noAuth())
	s.plan.Environment.CD.Tool = v1alpha1.Both
	s.commit()
	s.plan.Spec = decodeSpec(t, with(checkoutSpec, "{team: payments}", "{team: shop}"))
	require.Equal(t, []string{"status.yaml"}, paths(s, s.commit()))
	s.plan.Spec = decodeSpec(t, with(checkoutSpec, "{team: payments}", "{team: shop}", "kind: TemporalWorkerDeployment", "kind: WorkerDeployment"))
	require.Equal(t, []string{"status.yaml"}, paths(s, s.commit()))
	require.Empty(t, s.commit())
	require.Equal(t, "WorkerDeployment", s.record.Status.Kind)
}

func TestStatusNeedsAnObject(t *testing.T) {
	s := newScene(t, checkoutSpec, noAuth())
	s.plan.Spec, s.plan.Versions, s.plan.Record.Versions = nil, nil, nil
	require.Equal(t, []string{"kustomization.yaml", "routing.yaml"}, paths(s, s.commit()))
}

func TestTransitionKey(t *testing.T) {
	percent := func(p float64) *float64 { return &p }
	base := func() *v1alpha1.WorkerDeploymentStatus {
		return &v1alpha1.WorkerDeploymentStatus{
			TargetVersion: &v1alpha1.VersionStatus{BuildID: "b", Status: "Ramping", RampPercent: percent(10)},
			Conditions:    []v1alpha1.Condition{{Type: "Ready", Status: "False", Reason: "Ramping"}, {Type: "Stalled", Status: "False", Reason: "x"}},
			Decision:      &v1alpha1.Decision{Action: "Ramp", From: "10", To: "50", Verdict: "allow", Rules: []string{"r"}, SpecDigest: "d"},
		}
	}
	same := map[string]func(*v1alpha1.WorkerDeploymentStatus){
		"nothing":         func(*v1alpha1.WorkerDeploymentStatus) {},
		"message":         func(s *v1alpha1.WorkerDeploymentStatus) { s.Conditions[0].Message = "m" },
		"time":            func(s *v1alpha1.WorkerDeploymentStatus) { s.Conditions[0].LastTransitionTime = at(1) },
		"order":           func(s *v1alpha1.WorkerDeploymentStatus) { slices.Reverse(s.Conditions) },
		"words":           func(s *v1alpha1.WorkerDeploymentStatus) { s.Decision.Reasons = []string{"3 of 1000"} },
		"next step":       func(s *v1alpha1.WorkerDeploymentStatus) { next := at(1); s.Decision.NextStepAt = &next },
		"server's status": func(s *v1alpha1.WorkerDeploymentStatus) { s.TargetVersion.Status = "Inactive" },
	}
	for name, change := range same {
		s := base()
		change(s)
		require.Equal(t, TransitionKey(base()), TransitionKey(s), name)
	}
	other := map[string]func(*v1alpha1.WorkerDeploymentStatus){
		"reason":    func(s *v1alpha1.WorkerDeploymentStatus) { s.Conditions[0].Reason = "PolicyHold" },
		"condition": func(s *v1alpha1.WorkerDeploymentStatus) { s.Conditions[1].Status = "True" },
		"target":    func(s *v1alpha1.WorkerDeploymentStatus) { s.TargetVersion.BuildID = "c" },
		"no target": func(s *v1alpha1.WorkerDeploymentStatus) { s.TargetVersion = nil },
		"deprecated version": func(s *v1alpha1.WorkerDeploymentStatus) {
			s.DeprecatedVersions = []v1alpha1.VersionStatus{{BuildID: "a"}}
		},
		"step":         func(s *v1alpha1.WorkerDeploymentStatus) { s.TargetVersion.RampPercent = percent(50) },
		"no step":      func(s *v1alpha1.WorkerDeploymentStatus) { s.TargetVersion.RampPercent = nil },
		"rules":        func(s *v1alpha1.WorkerDeploymentStatus) { s.Decision.Rules = nil },
		"action":       func(s *v1alpha1.WorkerDeploymentStatus) { s.Decision.Action = "Promote" },
		"to":           func(s *v1alpha1.WorkerDeploymentStatus) { s.Decision.To = "100" },
		"verdict":      func(s *v1alpha1.WorkerDeploymentStatus) { s.Decision.Verdict = "hold" },
		"spec":         func(s *v1alpha1.WorkerDeploymentStatus) { s.Decision.SpecDigest = "e" },
		"pull request": func(s *v1alpha1.WorkerDeploymentStatus) { s.Decision.PullRequest = "https://x/1" },
		"no decision":  func(s *v1alpha1.WorkerDeploymentStatus) { s.Decision = nil },
	}
	for name, change := range other {
		s := base()
		change(s)
		require.NotEqual(t, TransitionKey(base()), TransitionKey(s), name)
	}
	require.Empty(t, TransitionKey(nil))

	// What is wrong in Git is said as it is.
	s, another := base(), base()
	s.Conditions[0].Reason, another.Conditions[0].Reason = "InvalidSpec", "InvalidSpec"
	require.Equal(t, TransitionKey(s), TransitionKey(another))
	another.Decision.Meanwhile = "v2 is turned back"
	another.Conditions[0].Message = rollout.Beside("", another.Decision.Meanwhile)
	require.Equal(t, TransitionKey(s), TransitionKey(another), "what else happens is no more than words")
	another.Conditions[0].Message = "line 4"
	require.NotEqual(t, TransitionKey(s), TransitionKey(another))
}

// What policy holds with is said anew when its words are others, and not for what counts or tells the time.
func TestTransitionKeyOfAHold(t *testing.T) {
	held := func(message string, rules ...string) string {
		return TransitionKey(&v1alpha1.WorkerDeploymentStatus{Conditions: []v1alpha1.Condition{{Type: "Ready", Status: "False", Reason: "PolicyHold", Message: message}},
			Decision: &v1alpha1.Decision{Verdict: "hold", Rules: rules, Reasons: []string{"another one", message}}})
	}
	const was = "errors is 3.5% at 2026-03-02T12:00:00Z, for 59m0s (policies/p1.rego:3)"
	for now, same := range map[string]bool{
		was: true,
		"errors is 4% at 2026-03-02T12:00:10Z, for 1h0m0s (policies/p1.rego:3)": true,
		"latency is 4% at 2026-03-02T12:00:00Z, for 59m0s (policies/p1.rego:3)": false,
		"frozen": false,
	} {
		require.Equal(t, same, held(was, "acme") == held(now, "acme"), now)
		require.NotEqual(t, held(was, "acme"), held(now, "other"), "another rule")
		require.Equal(t, held(was, "acme", "policy.timeout"), held(now, "acme", "policy.timeout"), "what it ran out of first is chance")
	}
}

// TestBlobHash compares with what git hash-object prints.
func TestBlobHash(t *testing.T) {
	require.Equal(t, "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391", BlobHash(""))
	require.Equal(t, "ce013625030ba8dba906f756967f9e9ca394464a", BlobHash("hello\n"))
}

// A worker deployment that was retired leaves nothing behind; one that has workers stays.
func TestRecordIsRemoved(t *testing.T) {
	s := newScene(t, checkoutSpec, noAuth())
	s.plan.Remove = true
	for _, name := range []string{"routing.yaml", "status.yaml", "kustomization.yaml"} {
		s.record.Files[name] = rollout.File{Hash: "x", Data: "x"}
	}
	changes, err := Files(s.plan, s.record)
	require.NoError(t, err)
	dir := s.plan.Dir + "/"
	want := []rollout.FileChange{{Path: dir + "kustomization.yaml", Delete: true}, {Path: dir + "routing.yaml", Delete: true}, {Path: dir + "status.yaml", Delete: true}}
	require.Empty(t, cmp.Diff(want, changes))

	s.record.Files["versions/v1/deployment.yaml"] = rollout.File{Hash: "x", Data: "x"}
	_, err = Files(s.plan, s.record)
	require.ErrorContains(t, err, "versions/v1/deployment.yaml is still there")
}

// The age of a decision is that of what it is about: another target is another decision, though its reason is the same.
func TestDecidedSince(t *testing.T) {
	status := func(build, reason string, minute int) *v1alpha1.WorkerDeploymentStatus {
		return &v1alpha1.WorkerDeploymentStatus{
			TargetVersion: &v1alpha1.VersionStatus{BuildID: build}, Decision: &v1alpha1.Decision{Verdict: "allow"},
			Conditions: []v1alpha1.Condition{{Type: v1alpha1.ConditionReady, Reason: reason,
				LastTransitionTime: v1alpha1.NewTime(time.Date(2026, 1, 31, 12, minute, 0, 0, time.UTC))}},
		}
	}
	first := status("v5", "WaitingForPollers", 0)
	first.Decision = decidedSince(nil, first)
	since := func(now *v1alpha1.WorkerDeploymentStatus) int { return decidedSince(first, now).Since.Minute() }
	require.Equal(t, 0, first.Decision.Since.Minute())
	require.Equal(t, 0, since(status("v5", "WaitingForPollers", 7)))
	require.Equal(t, 7, since(status("v5", "Ramping", 7)))
	require.Equal(t, 7, since(status("v6", "WaitingForPollers", 7)))
	none := status("v5", "WaitingForPollers", 7)
	none.TargetVersion = nil
	require.Equal(t, 7, since(none))
}
