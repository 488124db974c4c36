package rollout

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFirstTemplateOfANameCounts(t *testing.T) {
	s := Snapshot{Resources: []ResourceTemplate{
		{Name: "pdb", Object: []byte(`{"first":1}`), Hash: "1"}, {Name: "pdb", Object: []byte(`{"second":1}`), Hash: "2"},
	}}
	writes := s.ResourceWrites(ResourceSubject{Pods: PodsWanted})
	require.Len(t, writes, 1)
	require.Equal(t, "1", writes[0].Hash)
}
