package v1alpha1_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// BenchmarkDecode reads a spec of 40 lines; BenchmarkParse is the YAML library's part of it.
func BenchmarkDecode(b *testing.B) {
	data, err := os.ReadFile("testdata/checkout.yaml")
	require.NoError(b, err)
	_, problems := v1alpha1.Decode("checkout.yaml", data)
	require.Empty(b, problems)
	b.ReportAllocs()
	for b.Loop() {
		v1alpha1.Decode("checkout.yaml", data)
	}
}

func BenchmarkParse(b *testing.B) {
	data, err := os.ReadFile("testdata/checkout.yaml")
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		var node yaml.Node
		require.NoError(b, yaml.Unmarshal(data, &node))
	}
}

func BenchmarkDigest(b *testing.B) {
	data, err := os.ReadFile("testdata/checkout.yaml")
	require.NoError(b, err)
	documents, _ := v1alpha1.Decode("checkout.yaml", data)
	w := documents[0].Object.(*v1alpha1.WorkerDeployment)
	b.ReportAllocs()
	for b.Loop() {
		w.Digest()
	}
}
