package crds

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// definition is the part of a custom resource definition that tests look at.
type definition struct {
	Metadata struct{ Annotations map[string]string } `json:"metadata"`

	Spec struct {
		Group    string                                        `json:"group"`
		Scope    string                                        `json:"scope"`
		Names    struct{ Kind, Plural string }                 `json:"names"`
		Versions []struct{ Subresources struct{ Status any } } `json:"versions"`
	} `json:"spec"`
}

// What applies Git applies the status too: no definition has the subresource that would keep it out.
func TestDefinitionsHaveNoStatusSubresource(t *testing.T) {
	kinds := map[string]string{}
	var chart struct{ AppVersion string }
	text, err := os.ReadFile("../chart-crds/Chart.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &chart))
	for _, doc := range bytes.Split(All(), []byte("\n---\n"))[1:] {
		var d definition
		require.NoError(t, yaml.Unmarshal(doc, &d))
		require.Equal(t, "temporal.io", d.Spec.Group)
		require.Equal(t, chart.AppVersion, d.Metadata.Annotations[Release], "the release: in test/definitions as in the chart")
		scope := "Namespaced"
		if d.Spec.Names.Kind == "ClusterConnection" {
			scope = "Cluster"
		}
		require.Equal(t, scope, d.Spec.Scope)
		require.Len(t, d.Spec.Versions, 1)
		require.Nil(t, d.Spec.Versions[0].Subresources.Status)
		kinds[d.Spec.Names.Kind] = d.Spec.Names.Plural
	}
	require.Equal(t, map[string]string{
		"WorkerDeployment": "workerdeployments", "TemporalWorkerDeployment": "temporalworkerdeployments", "Connection": "connections",
		"ClusterConnection": "clusterconnections", "TemporalConnection": "temporalconnections", "WorkerResourceTemplate": "workerresourcetemplates",
	}, kinds)
	require.Contains(t, string(All()[:300]), "in-cluster worker controller's")
}
