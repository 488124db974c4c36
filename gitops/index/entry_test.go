package index

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// TestRecordedConnectionKeepsItsKind: a record says what kind the connection was. One that is older than such names
// says it by the spec in its status.
func TestRecordedConnectionKeepsItsKind(t *testing.T) {
	ref := v1alpha1.ConnectionRef{Kind: v1alpha1.KindClusterConnection, Name: "temporal"}
	r := &recordAt{}
	r.Routing = &v1alpha1.Routing{Spec: v1alpha1.RoutingSpec{Connection: &v1alpha1.RecordedConnection{Kind: ref.Kind, Name: ref.Name}}}
	require.Equal(t, ref, recordEntryOf(&r.Record, r.of).Connection)
	r.Routing.Spec.Connection = nil
	require.Zero(t, recordEntryOf(&r.Record, r.of).Connection)
	r.Status = &v1alpha1.WorkerDeployment{Spec: v1alpha1.WorkerDeploymentSpec{WorkerOptions: v1alpha1.WorkerOptions{ConnectionRef: ref}}}
	require.Equal(t, ref, recordEntryOf(&r.Record, r.of).Connection, "a record that is older than such names")
}
