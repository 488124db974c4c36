package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The chart refuses values that are misspelt or missing, and all that it can render an API server takes where pods have to be restricted. Running it is part of each delivery.
func TestChart(t *testing.T) {
	s := Start(t)
	template := func(values string) (string, error) {
		file := filepath.Join(t.TempDir(), "values.yaml")
		require.NoError(t, os.WriteFile(file, []byte(values), 0o600))
		cmd := exec.CommandContext(t.Context(), program(t, "helm"), "template", "rampart", filepath.Join("..", "..", "install", "chart"), "-n", "rampart", "--values", file)
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for values, want := range map[string]string{
		"{}":                                              "repo",
		"settings: {repo: ''}":                            "repo",
		"settings: {repo: a, Branch: b}":                  "Branch",
		"{settings: {repo: a}, healthport: 1}":            "healthport",
		"{settings: {repo: a}, healthPort: http}":         "healthPort",
		"{settings: {repo: a}, secretEnv: {TOKEN: a}}":    "TOKEN",
		"{settings: {repo: a}, image: {pullPolicy: Now}}": "pullPolicy",
		"settings: {repo: a, cache-dir: b}":               "cache-dir",
		"{settings: {repo: a}, webhook: {enabled: true}}": "webhook.enabled needs RAMPART_WEBHOOK_SECRET",
		"{settings: {repo: a, git-user: b}, secretEnv: {RAMPART_GIT_USER: {name: c, key: d}}}": "git-user is in settings and in secretEnv",
	} {
		out, err := template(values)
		require.Error(t, err, values)
		require.Contains(t, out, want, values)
	}
	s.Kubectl(t, "", "create", "namespace", "rampart")
	s.Kubectl(t, "", "label", "namespace", "rampart", "pod-security.kubernetes.io/enforce=restricted", "pod-security.kubernetes.io/warn=restricted")
	for _, values := range []string{"settings: {repo: a}", `
settings: {repo: a, allowed-namespaces: ["prod=payments", "prod={orders,stock}"], interval: 30s, skip-ci: true, max-versions: 20000000}
secretName: rampart
secretEnv: {RAMPART_WEBHOOK_SECRET: {name: rampart, key: hook}}
webhook: {enabled: true, port: 8090}
cacheClaim: cache
imagePullSecrets: [{name: registry}]
podAnnotations: {team: platform}
podLabels: {team: platform, app.kubernetes.io/name: other}
env: [{name: HTTPS_PROXY, value: "http://proxy:3128"}]
nodeSelector: {kubernetes.io/os: linux}
tolerations: [{key: a, operator: Exists}]
affinity: {nodeAffinity: {}}
`} {
		out, err := template(values)
		require.NoError(t, err, out)
		applied := s.Kubectl(t, out, "apply", "--server-side", "--dry-run=server", "-f", "-")
		require.Contains(t, applied, "deployment.apps/rampart serverside-applied")
		require.NotContains(t, applied, "Warning", "of pod security, or of a field that is not known")
		if values != "settings: {repo: a}" {
			require.Contains(t, out, `value: "\"prod=payments\",\"prod={orders,stock}\""`)
			require.Contains(t, out, `value: "20000000"`)
			require.Contains(t, applied, "service/rampart serverside-applied")
		}
	}
}
