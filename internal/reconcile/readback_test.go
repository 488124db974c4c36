package reconcile

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// What the bot could not read again is not written, and nothing is raised on it.
func TestUnreadableIsNotWritten(t *testing.T) {
	for name, spoil := range map[string]func(*scene){
		"a path with a control character": func(s *scene) { s.world.Environments[0].Deployments[0].SpecPath = "team/a\tb.yaml" },
		"a status that is too large": func(s *scene) {
			spec := *s.world.Environments[0].Deployments[0].Spec
			spec.Metadata.Annotations = map[string]string{"example.com/notes": strings.Repeat("x", v1alpha1.MaxFileSize)}
			s.world.Environments[0].Deployments[0].Spec = &spec
		},
		"a label that is none": func(s *scene) {
			spec := *s.world.Environments[0].Deployments[0].Spec
			spec.Metadata.Labels = map[string]string{"a b": "c"}
			s.world.Environments[0].Deployments[0].Spec = &spec
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			sound := s.world.Environments[0].Deployments[0]
			spoil(s)
			r := s.reconciler()
			report := s.once(r)
			require.Empty(t, report.Commits)
			require.Contains(t, report.Failures["shop/checkout"], "could not be read again")
			require.Empty(t, s.calls)

			spoilt := s.world.Environments[0].Deployments[0]
			s.world.Environments[0].Deployments[0] = sound
			require.Len(t, s.once(r).Commits, 1)
			s.ready()
			d := &s.world.Environments[0].Deployments[0]
			d.Spec, d.SpecPath = spoilt.Spec, spoilt.SpecPath
			report = s.once(r)
			require.Empty(t, report.Commits)
			require.Empty(t, s.calls, "nothing is raised that is not in Git")
		})
	}
}

// One that cannot be written keeps no other from its commit.
func TestUnreadableStopsNoOther(t *testing.T) {
	s := newScene(t)
	env := &s.world.Environments[0]
	other, spec := env.Deployments[0], *env.Deployments[0].Spec
	spec.Metadata.Name = "bad"
	other.Deployment.Name, other.Spec, other.Record.Dir, other.SpecPath = "bad", &spec, "deploy/shop/bad", "team/a\tb.yaml"
	env.Deployments = append(env.Deployments, other)
	report := s.once(s.reconciler())
	require.Len(t, report.Commits, 1)
	require.Len(t, report.Failures, 1)
	for _, c := range s.commits[0].Changes {
		require.NotContains(t, c.Path, "/bad/")
		if c.Path == "deploy/kustomization.yaml" {
			require.NotContains(t, c.Data, "bad")
		}
	}
}

// A lowering that was made is written down on the record as it could be read last: what is desired, the bar and the
// hold.
func TestUnreadableLowering(t *testing.T) {
	s, r := ramping(t)
	d := &s.world.Environments[0].Deployments[0]
	d.SpecPath = "team/a\tb.yaml"
	was := d.Record.Routing.Spec
	report := s.once(r)
	require.Equal(t, []string{"lower"}, s.calls)
	require.Len(t, report.Commits, 1)
	require.Contains(t, report.Failures["shop/checkout"], "could not be read again")
	last := s.commits[len(s.commits)-1]
	require.Len(t, last.Changes, 1)
	require.Equal(t, "deploy/shop/checkout/routing.yaml", last.Changes[0].Path)
	is := s.world.Environments[0].Deployments[0].Record.Routing
	require.False(t, is.Edited())
	require.Equal(t, "spec.yaml", is.Spec.SpecPath)
	require.Equal(t, v1alpha1.DesiredRouting{}, is.Spec.Desired)
	require.Equal(t, was.Bars, is.Spec.Bars)
	require.Equal(t, was.Versions, is.Spec.Versions)

	s.obs.Routing.HasRamp, s.obs.Routing.Ramping, s.obs.Routing.Percentage = false, "", 0
	require.Len(t, s.once(r).Commits, 1)
	last = s.commits[len(s.commits)-1]
	require.Len(t, last.Changes, 1)
	require.Equal(t, "deploy/shop/checkout/status.yaml", last.Changes[0].Path, "which could be written by itself")
	require.Empty(t, s.once(r).Commits, "once")
	require.Equal(t, []string{"lower"}, s.calls)
}
