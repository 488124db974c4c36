package render

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/statetable"
)

// The annotation says for each state what the table of docs/cd.md says, and Healthy for a ramp that counts
// as such.
func TestHealthAnnotationIsAsTheTableSays(t *testing.T) {
	for _, row := range statetable.Rows(t) {
		for _, ramp := range []v1alpha1.RampHealth{v1alpha1.RampProgressing, v1alpha1.RampHealthy} {
			want := row.ArgoCD
			if row.Reason == rollout.Ramping && ramp == v1alpha1.RampHealthy {
				want = "Healthy"
			}
			s := newScene(t, checkoutSpec, noAuth())
			s.plan.Environment.CD.RampHealth, s.plan.Status = ramp, row.Status(epoch)
			s.commit()
			require.Contains(t, s.record.Files[layout.Status].Data, "rampart.dev/health: "+want+"\n", "%s, %s", row.State, ramp)
		}
	}
	require.Equal(t, Progressing, HealthOf(rollout.State{}, "", v1alpha1.RampHealthy), "no conditions yet")
}

// The objects of a version that only drains do not count for the health of ArgoCD's Application. This begins with the
// commit that makes another one the target and current. They count again once traffic comes back. Nothing is written
// for that alone, and a manifest that a person edited is left as it is.
func TestDrainingVersionsDoNotCount(t *testing.T) {
	s := newScene(t, with(checkoutSpec, "checkout:v2.3.0", "checkout:v1"), noAuth())
	first := s.target()
	file := layout.VersionFile(first, layout.Deployment)
	s.plan.Environment.CD.Tool = v1alpha1.ArgoCD
	s.plan.Record.Desired.Current = first
	s.commit()
	plain := s.record.Files[file].Data
	require.NotContains(t, plain, rollout.AnnotationArgoIgnoreHealth)

	s.ask(with(checkoutSpec, "checkout:v2.3.0", "checkout:v2"))
	s.commit()
	require.Equal(t, plain, s.record.Files[file].Data, "it is current still")

	s.plan.Record.Desired.Current = s.target()
	changed := paths(s, s.commit())
	require.Contains(t, changed, file)
	require.Contains(t, changed, layout.Routing)
	require.Contains(t, s.record.Files[file].Data, "argocd.argoproj.io/ignore-healthcheck: \"true\"")
	require.Equal(t, s.record.Files[file].Hash, s.record.Routing.Spec.Versions[0].Files[layout.Deployment])
	require.Empty(t, s.commit())

	s.plan.Record.Desired.Current = first
	s.commit()
	require.Equal(t, plain, s.record.Files[file].Data)

	// A person merges the proposal to promote the other one: what is desired moves before the bot decides.
	decide := func(current string) { s.plan.Record.Decided = &v1alpha1.DesiredRouting{Current: current} }
	decide(first)
	s.commit()
	s.record.Routing.Spec.Desired.Current = s.target()
	s.plan.Record.Desired.Current = s.target()
	require.NotContains(t, paths(s, s.commit()), file, "not answered yet")
	decide(s.target())
	require.Contains(t, paths(s, s.commit()), file)
	require.Contains(t, s.record.Files[file].Data, rollout.AnnotationArgoIgnoreHealth)
	s.plan.Record.Desired.Current = first
	decide(first)
	s.commit()
	require.Equal(t, plain, s.record.Files[file].Data)
	s.plan.Record.Decided = nil
	s.commit()

	s.put(file, plain+"# edited\n")
	s.plan.Record.Desired.Current = s.target()
	require.NotContains(t, paths(s, s.commit()), file)

	s.plan.Environment.CD.Tool = v1alpha1.Flux
	s.put(file, plain)
	s.plan.Record.Desired.Current = first
	s.commit()
	s.plan.Record.Desired.Current = s.target()
	require.NotContains(t, paths(s, s.commit()), file, "Flux has no such annotation")
}

// So do objects of its templates, be they written before or after: an autoscaler without metrics of pods that are
// gone is Degraded for ArgoCD.
func TestScalersOfDrainingVersionsDoNotCount(t *testing.T) {
	s := newScene(t, with(checkoutSpec, "checkout:v2.3.0", "checkout:v1"), noAuth())
	first := s.target()
	hpa, pdb := layout.VersionFile(first, "hpa.yaml"), layout.VersionFile(first, "pdb.yaml")
	s.plan.Environment.CD.Tool = v1alpha1.ArgoCD
	s.plan.Record.Desired.Current = first
	s.change(s.plan.Versions[0], templateWrite(t, "hpa"))
	s.commit()
	plain := s.record.Files[hpa].Data
	require.NotContains(t, plain, rollout.AnnotationArgoIgnoreHealth)

	s.ask(with(checkoutSpec, "checkout:v2.3.0", "checkout:v2"))
	s.commit()
	s.plan.Record.Desired.Current = s.target()
	s.commit()
	ignored := s.record.Files[hpa].Data
	require.Contains(t, ignored, "argocd.argoproj.io/ignore-healthcheck: \"true\"")
	require.Equal(t, s.record.Files[hpa].Hash, s.record.Routing.Spec.Versions[0].Files["hpa.yaml"])

	own := templateWrite(t, "pdb")
	own.Object = append([]byte(`{"metadata":{"annotations":{"argocd.argoproj.io/ignore-healthcheck":"true"}},`), own.Object[1:]...)
	s.change(rollout.VersionWrite{BuildID: first, Op: rollout.WriteResources, Guard: v1alpha1.GuardOn},
		templateWrite(t, "hpa"), own)
	s.commit()
	require.Equal(t, ignored, s.record.Files[hpa].Data)
	require.Contains(t, s.record.Files[pdb].Data, rollout.AnnotationArgoIgnoreHealth)

	s.plan.Record.Desired.Current = first
	s.commit()
	require.Equal(t, plain, s.record.Files[hpa].Data)
	require.Contains(t, s.record.Files[pdb].Data, rollout.AnnotationArgoIgnoreHealth, "the template has it")
}
