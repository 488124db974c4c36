package reconcile

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// servers are what is at two addresses, and the inputs of gates.
type servers struct {
	namespaces map[string]string // IDs by address
	observed   []string
	refuses    error
	digests    int
}

func (s *servers) Observe(_ context.Context, conn v1alpha1.Connection, _ rollout.Ask) rollout.Observation {
	s.observed = append(s.observed, conn.Spec.HostPort)
	return rollout.Observation{At: time.Unix(1, 0), Exists: rollout.No}
}

func (s *servers) NamespaceAt(_ context.Context, conn v1alpha1.Connection, namespace string) rollout.NamespaceThere {
	return rollout.NamespaceThere{HostPort: conn.Spec.HostPort, TemporalNamespace: namespace, ID: s.namespaces[conn.Spec.HostPort]}
}

func (s *servers) TakesSecrets(v1alpha1.Connection) error { return s.refuses }

func (s *servers) Digest(rollout.GateInputRef) (string, error) {
	s.digests++
	return "digest", nil
}

// TestLookElsewhere: where a connection leads to another address, the namespace there is asked for first, and says
// where Temporal is asked.
func TestLookElsewhere(t *testing.T) {
	spec := &v1alpha1.WorkerDeployment{Spec: v1alpha1.WorkerDeploymentSpec{
		WorkerOptions: v1alpha1.WorkerOptions{ConnectionRef: v1alpha1.ConnectionRef{Name: "main"}, TemporalNamespace: "prod"},
		Rollout: v1alpha1.RolloutStrategy{Strategy: v1alpha1.AllAtOnce, Gate: &v1alpha1.Gate{WorkflowType: "Smoke", InputFrom: &v1alpha1.GateInputSource{
			SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "smoke"}, Key: "token"}}}}}}
	s := rollout.Snapshot{Deployment: rollout.Name{Namespace: "shop", Name: "cart"}, Spec: spec,
		Connection: &v1alpha1.Connection{Metadata: v1alpha1.ObjectMeta{Name: "main"}, Spec: v1alpha1.ConnectionSpec{HostPort: "new:7233"}},
		Record: rollout.Record{Status: spec, Routing: &v1alpha1.Routing{Spec: v1alpha1.RoutingSpec{TemporalNamespace: "prod", TemporalNamespaceID: "the-id",
			Connection: &v1alpha1.RecordedConnection{Name: "main", Spec: v1alpha1.ConnectionSpec{HostPort: "old:7233"}},
			Versions:   []v1alpha1.RecordedVersion{{BuildID: "v1"}}}}}}
	for id, asked := range map[string]string{"the-id": "new:7233", "another": "old:7233", "": "old:7233"} {
		at := &servers{namespaces: map[string]string{"new:7233": id}, refuses: errors.New("no TLS")}
		p := Planner{Observer: at, Namespaces: at, Secrets: at, Inputs: at, Now: time.Now, Limits: rollout.DefaultLimits()}
		seen := p.look(t.Context(), p.Observer, s)
		require.Equal(t, &rollout.NamespaceThere{HostPort: "new:7233", TemporalNamespace: "prod", ID: id}, seen.NamespaceThere)
		require.Contains(t, at.observed, asked)
		require.Len(t, at.observed, 1)
		const in = "key token of Secret shop/smoke"
		require.Equal(t, map[string]rollout.GateInput{in: {Problem: in + ": no TLS"}}, seen.GateInputs, "what may not be sent is not known")
		require.Zero(t, at.digests, "nor read")
		at.refuses = nil
		require.Equal(t, map[string]rollout.GateInput{in: {Digest: "digest"}}, p.look(t.Context(), p.Observer, s).GateInputs)
	}
	s.Connection = &v1alpha1.Connection{Metadata: v1alpha1.ObjectMeta{Name: "main"}, Spec: v1alpha1.ConnectionSpec{HostPort: "old:7233"}}
	at := &servers{}
	require.Nil(t, (&Planner{Observer: at, Namespaces: at, Inputs: at, Now: time.Now}).look(t.Context(), at, s).NamespaceThere, "nobody is asked while the address stays")
}
