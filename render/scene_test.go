package render

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

const checkoutSpec = `
apiVersion: temporal.io/v1alpha1
kind: TemporalWorkerDeployment
metadata:
  name: checkout
  namespace: payments
  labels: {team: payments}
spec:
  replicas: 3
  rollout:
    strategy: Progressive
    steps:
    - {rampPercentage: 10, pauseDuration: 10m}
    - {rampPercentage: 50, pauseDuration: 10m}
  sunset: {}
  workerOptions:
    connectionRef: {name: temporal}
    temporalNamespace: payments-prod
  template:
    metadata:
      labels: {app: checkout}
    spec:
      containers:
      - name: worker
        image: registry.example.com/payments/checkout:v2.3.0
        args: [--queue, checkout, "--verbose"]
        env:
        - {name: LOG_LEVEL, value: "on"}
        resources:
          requests: {cpu: 500m, memory: 256Mi}
`

// decodeSpec reads a worker deployment as the bot does.
func decodeSpec(t testing.TB, text string) *v1alpha1.WorkerDeployment {
	t.Helper()
	docs, problems := v1alpha1.Decode("worker.yaml", []byte(text))
	require.False(t, v1alpha1.HasErrors(problems), "%v", problems)
	require.Len(t, docs, 1)
	return docs[0].Object.(*v1alpha1.WorkerDeployment)
}

var epoch = v1alpha1.NewTime(time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC))

func at(minutes int) v1alpha1.Time {
	return v1alpha1.NewTime(epoch.Add(time.Duration(minutes) * time.Minute))
}

// The connections of the tests.
func connection(spec v1alpha1.ConnectionSpec) *v1alpha1.Connection {
	return &v1alpha1.Connection{
		APIVersion: v1alpha1.TemporalAPIVersion, Kind: v1alpha1.KindConnection,
		Metadata: v1alpha1.ObjectMeta{Name: "temporal", Namespace: "payments"}, Spec: spec,
	}
}

func noAuth() v1alpha1.ConnectionSpec {
	return v1alpha1.ConnectionSpec{HostPort: "temporal.example.com:7233"}
}

func mutualTLS(secret string) v1alpha1.ConnectionSpec {
	return v1alpha1.ConnectionSpec{HostPort: "temporal.example.com:7233", MutualTLSSecretRef: &v1alpha1.SecretReference{Name: secret}}
}

func apiKey(secret, key string) v1alpha1.ConnectionSpec {
	return v1alpha1.ConnectionSpec{HostPort: "temporal.example.com:7233", APIKeySecretRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: key,
	}}
}

func withServerName(c v1alpha1.ConnectionSpec, name string) v1alpha1.ConnectionSpec {
	c.TLS = &v1alpha1.ConnectionTLS{ServerName: name}
	return c
}

func withCA(c v1alpha1.ConnectionSpec, secret string) v1alpha1.ConnectionSpec {
	tls := v1alpha1.ConnectionTLS{CACertSecretRef: &v1alpha1.SecretReference{Name: secret}}
	if c.TLS != nil {
		tls.ServerName = c.TLS.ServerName
	}
	c.TLS = &tls
	return c
}

// scene is one worker deployment in Git: a plan to start from, and what was written so far.
type scene struct {
	t      testing.TB
	plan   rollout.Plan
	record rollout.Record
	blobs  map[string]string // all contents that there ever were
	last   []rollout.FileChange
}

// newScene stands before the first plan, which creates the spec's version.
func newScene(t testing.TB, spec string, c v1alpha1.ConnectionSpec) *scene {
	t.Helper()
	s := &scene{t: t, blobs: map[string]string{}, record: rollout.Record{Dir: "deploy/prod/payments/checkout", Files: map[string]rollout.File{}}}
	s.plan = rollout.Plan{
		Dir:         "deploy/prod/payments/checkout",
		Environment: v1alpha1.Environment{Name: "prod", CD: v1alpha1.CD{Tool: v1alpha1.Flux}, WorkerEnv: v1alpha1.EnvCurrent, Status: v1alpha1.StatusOn},
		Connection:  connection(c),
		Record:      &v1alpha1.RoutingSpec{SpecPath: "workers/checkout.yaml"},
	}
	s.ask(spec)
	s.plan.Status = statusOf(s.plan.Spec, "WaitingForPollers", v1alpha1.False, 0)
	return s
}

// ask makes the spec's version the target: it is recorded, if it is not yet, and rendered.
func (s *scene) ask(spec string) {
	s.t.Helper()
	w := decodeSpec(s.t, spec)
	s.plan.Spec = w
	s.plan.Deployment = rollout.Name{Namespace: w.Metadata.Namespace, Name: w.Metadata.Name}
	r := *s.plan.Record
	r.WorkerDeployment, r.TemporalNamespace = s.plan.Deployment.String(), w.Spec.WorkerOptions.TemporalNamespace
	id, from := rollout.BuildIDFor(w.Spec, r.Versions)
	hash := rollout.TemplateHash(w.Spec)
	r.Target = &v1alpha1.RoutingTarget{BuildID: id, TemplateHash: hash, Attempt: 1, Since: epoch}
	i := slices.IndexFunc(r.Versions, func(v v1alpha1.RecordedVersion) bool { return v.BuildID == id })
	if i < 0 {
		r.Versions = append(slices.Clip(r.Versions), v1alpha1.RecordedVersion{
			BuildID: id, BuildIDFrom: from, Deployment: rollout.DeploymentName(w.Metadata.Name, id, nil), CreatedAt: epoch,
		})
		i = len(r.Versions) - 1
	}
	r.Versions = slices.Clone(r.Versions)
	v := &r.Versions[i]
	v.TemplateHash, v.ConnectionHash = hash, s.plan.Connection.Spec.Hash()
	v.Replicas, v.Guard, v.Pools = w.Spec.Replicas, v1alpha1.GuardOn, nil
	for _, p := range w.Spec.Pools {
		v.Pools = append(v.Pools, v1alpha1.RecordedPool{Name: p.Name, Replicas: p.Replicas,
			Deployment: rollout.PoolDeploymentName(w.Metadata.Name, id, p.Name, nil)})
	}
	s.plan.Record = &r
	s.plan.Versions = []rollout.VersionWrite{{BuildID: id, Op: rollout.RenderVersion, Replicas: w.Spec.Replicas, Guard: v1alpha1.GuardOn, Pools: v.Pools}}
}

// write asks for one write of the target.
func (s *scene) write(w rollout.VersionWrite) {
	if w.BuildID == "" {
		w.BuildID = s.plan.Record.Target.BuildID
	}
	s.plan.Versions = []rollout.VersionWrite{w}
}

// commit renders the plan and brings the record to what Git would hold then.
func (s *scene) commit() []rollout.FileChange {
	s.t.Helper()
	changes, err := Files(s.plan, s.record)
	require.NoError(s.t, err)
	again, err := Files(s.plan, s.record)
	require.NoError(s.t, err)
	require.Equal(s.t, changes, again)
	s.record.Files = maps.Clone(s.record.Files)
	for _, c := range changes {
		name, below := strings.CutPrefix(c.Path, s.plan.Dir+"/")
		require.True(s.t, below, c.Path)
		if c.Delete {
			delete(s.record.Files, name)
			continue
		}
		data := c.Data
		if c.Blob != "" {
			require.Contains(s.t, s.blobs, c.Blob)
			data = s.blobs[c.Blob]
		}
		s.put(name, data)
	}
	s.read()
	s.plan.Record.Versions = s.record.Routing.Spec.Versions
	s.plan.Versions = nil
	s.last = changes
	return changes
}

// put writes a file as anyone may.
func (s *scene) put(name, data string) {
	hash := BlobHash(data)
	s.blobs[hash] = data
	s.record.Files[name] = rollout.File{Hash: hash, Data: data}
}

// read decodes the record's files anew.
func (s *scene) read() {
	s.t.Helper()
	s.record.Routing, s.record.Status = nil, nil
	if f, ok := s.record.Files[layout.Routing]; ok {
		s.record.Routing = &v1alpha1.Routing{}
		require.NoError(s.t, yaml.UnmarshalStrict([]byte(f.Data), s.record.Routing))
		require.False(s.t, s.record.Routing.Edited())
	}
	if f, ok := s.record.Files[layout.Status]; ok {
		s.record.Status = &v1alpha1.WorkerDeployment{}
		require.NoError(s.t, yaml.UnmarshalStrict([]byte(f.Data), s.record.Status))
	}
}

func (s *scene) target() string { return s.plan.Record.Target.BuildID }

// manifest is the Deployment's of the target.
func (s *scene) manifest() string {
	s.t.Helper()
	f, ok := s.record.Files[layout.VersionFile(s.target(), layout.Deployment)]
	require.True(s.t, ok)
	return f.Data
}

// dump gives changes as the files of a txtar archive.
func dump(step string, changes []rollout.FileChange) string {
	var b strings.Builder
	for _, c := range changes {
		name := path.Join(step, c.Path)
		switch {
		case c.Delete:
			fmt.Fprintf(&b, "-- %s (deleted) --\n", name)
		case c.Blob != "":
			fmt.Fprintf(&b, "-- %s (blob %s) --\n", name, c.Blob)
		default:
			fmt.Fprintf(&b, "-- %s --\n%s", name, c.Data)
		}
	}
	if len(changes) == 0 {
		fmt.Fprintf(&b, "-- %s (no change) --\n", step)
	}
	return b.String()
}

func statusOf(spec *v1alpha1.WorkerDeployment, reason rollout.Reason, ready v1alpha1.ConditionStatus, minute int) *v1alpha1.WorkerDeploymentStatus {
	id, _ := rollout.BuildIDFor(spec.Spec, nil)
	return &v1alpha1.WorkerDeploymentStatus{
		TargetVersion: &v1alpha1.VersionStatus{
			BuildID: id, Status: "NotRegistered",
			Deployment: &v1alpha1.ObjectRef{APIVersion: "apps/v1", Kind: "Deployment", Name: rollout.DeploymentName(spec.Metadata.Name, id, nil)},
		},
		Conditions: []v1alpha1.Condition{{
			Type: v1alpha1.ConditionReady, Status: ready, Reason: string(reason), Message: fmt.Sprintf("as of minute %d", minute),
			LastTransitionTime: at(minute),
		}},
		Decision: &v1alpha1.Decision{SpecDigest: spec.Digest(), Reasons: []string{fmt.Sprintf("minute %d", minute)}},
	}
}

func replicas(n int32) *int32 { return &n }
