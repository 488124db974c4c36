package render

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
)

// What is decided again a minute later, with nothing changed, has the same fingerprint in all files.
func TestFingerprintIgnoresTimes(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	files := func(at time.Time, change func(s *scene)) map[string]string {
		s := newScene(t, checkoutSpec, noAuth())
		when, rec := v1alpha1.NewTime(at), *s.plan.Record
		rec.Target = &v1alpha1.RoutingTarget{BuildID: s.target(), Attempt: 1, Since: when}
		rec.Basis = &v1alpha1.RoutingBasis{Current: "a", CurrentChangedAt: v1alpha1.NewTime(noon)}
		for i := range rec.Versions {
			rec.Versions[i].CreatedAt = when
		}
		status := *s.plan.Status
		status.Conditions = []v1alpha1.Condition{{Type: "Ready", Status: v1alpha1.False, Reason: "Ramping", Message: "since " + at.String(), LastTransitionTime: when}}
		s.plan.Record, s.plan.Status = &rec, &status
		change(s)
		out := map[string]string{}
		for _, c := range must(Files(s.plan, s.record)) {
			out[strings.TrimPrefix(c.Path, s.plan.Dir+"/")] = c.Data
		}
		require.Contains(t, out, layout.Routing)
		require.Contains(t, out, layout.Status)
		return out
	}
	before, later := files(noon, func(*scene) {}), files(noon.Add(time.Minute), func(*scene) {})
	require.NotEqual(t, before[layout.Routing], later[layout.Routing])
	require.NotEqual(t, before[layout.Status], later[layout.Status])
	for name := range before {
		require.Equal(t, Fingerprint("deploy/"+name, before[name]), Fingerprint("deploy/"+name, later[name]), name)
	}
	for name, c := range map[string]struct {
		file   string
		change func(s *scene)
	}{
		"routing":             {layout.Routing, func(s *scene) { s.plan.Record.Desired.Current = "b" }},
		"when traffic moved":  {layout.Routing, func(s *scene) { s.plan.Record.Basis.CurrentChangedAt = v1alpha1.NewTime(noon.Add(1)) }},
		"an attempt":          {layout.Routing, func(s *scene) { s.plan.Record.Target.Attempt = 2 }},
		"a condition":         {layout.Status, func(s *scene) { s.plan.Status.Conditions[0].Reason = "Stalled" }},
		"the user's metadata": {layout.Status, func(s *scene) { s.plan.Spec = decodeSpec(t, with(checkoutSpec, "{team: payments}", "{team: shop}")) }},
	} {
		require.NotEqual(t, Fingerprint(c.file, before[c.file]), Fingerprint(c.file, files(noon, c.change)[c.file]), name)
	}
	for _, text := range []string{"", "kind: [", `since: "2026-03-01T12:00:00Z"`} {
		require.Equal(t, text, Fingerprint("deploy/deployment.yaml", text))
		require.Equal(t, text, Fingerprint("deploy/status.yaml", text), "no status")
	}
}
