package resync

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// A settled worker deployment is looked at again when anything changed that its templates say.
func TestTemplatesAreInputs(t *testing.T) {
	with := func(change func(*rollout.Snapshot)) *rollout.Snapshot {
		s := rollout.Snapshot{Resources: []rollout.ResourceTemplate{{Name: "hpa", Object: []byte(`{}`), Hash: "aa"}}}
		change(&s)
		return &s
	}
	same := InputsOf(with(func(*rollout.Snapshot) {}), Shared{}, NewConnectionHash())
	require.Equal(t, same, InputsOf(with(func(*rollout.Snapshot) {}), Shared{}, NewConnectionHash()))
	for name, change := range map[string]func(*rollout.Snapshot){
		"gone":     func(s *rollout.Snapshot) { s.Resources = nil },
		"changed":  func(s *rollout.Snapshot) { s.Resources[0].Hash = "bb" },
		"selected": func(s *rollout.Snapshot) { s.Resources[0].Versions = []v1alpha1.VersionState{v1alpha1.StateCurrent} },
		"unusable": func(s *rollout.Snapshot) { s.Resources[0].Problem = &rollout.Problem{Message: "no"} },
		"missed":   func(s *rollout.Snapshot) { s.ResourcesProblem = &rollout.Problem{Message: "no"} },
	} {
		require.NotEqual(t, same, InputsOf(with(change), Shared{}, NewConnectionHash()), name)
	}
}
