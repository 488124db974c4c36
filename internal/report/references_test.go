package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

func TestReferencesText(t *testing.T) {
	var b strings.Builder
	s := rollout.Snapshot{Deployment: rollout.Name{Namespace: "shop", Name: "checkout"}, References: []rollout.VersionReferences{
		{BuildID: "v1", State: rollout.StatusDraining, Objects: []rollout.Reference{
			{Kind: "ConfigMap", Name: "settings", Files: []string{"a.yaml", "b.yaml"}}, {Kind: "Secret", Name: "login", Optional: true}}},
		{BuildID: "v0", State: rollout.StatusDrained, ScaledDown: true, Problem: "versions/v0/deployment.yaml cannot be read: it holds no object"},
	}}
	require.NoError(t, NewReferences(s).WriteText(&b))
	require.Equal(t, `VERSION  STATE                      KIND       NAME              IN GIT
v1       Draining (open workflows)  ConfigMap  settings          a.yaml, b.yaml
v1       Draining (open workflows)  Secret     login (optional)  -
v0       Drained, scaled down       -          -                 -

v0: versions/v0/deployment.yaml cannot be read: it holds no object: what it names is not known
`, b.String())
	require.NotNil(t, NewReferences(rollout.Snapshot{}).Versions)
}
