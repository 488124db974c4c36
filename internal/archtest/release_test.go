package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

const releaseWorkflow = ".github/workflows/release.yaml"

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
	require.NoError(t, err)
	return string(text)
}

// TestOneRelease: the charts, the manifests and the documents are of one release, and name the image and the workflow
// that it comes from.
func TestOneRelease(t *testing.T) {
	type chart struct{ Version, AppVersion string }
	var bot, crds chart
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "install/chart/Chart.yaml")), &bot))
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "install/chart-crds/Chart.yaml")), &crds))
	require.Equal(t, bot, crds)
	require.Equal(t, bot.Version, bot.AppVersion)

	var values struct {
		Image struct{ Repository, Tag string }
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "install/chart/values.yaml")), &values))
	require.Empty(t, values.Image.Tag, "the chart's appVersion")
	require.Contains(t, read(t, "install/kustomize/rampart.yaml"), `image: "`+values.Image.Repository+":"+bot.Version+`"`)
	require.Contains(t, read(t, "Makefile"), "\nIMAGE := "+values.Image.Repository+"\n")

	require.Contains(t, read(t, "docs/install.md"), "?ref=v"+bot.Version+`"`)
	security := read(t, "SECURITY.md")
	require.Contains(t, security, "--certificate-identity https://github.com/rampart-gitops/rampart/"+releaseWorkflow+"@refs/tags/v"+bot.Version+"\n")
	require.Contains(t, security, "$ cosign verify "+values.Image.Repository+":"+bot.Version+" ")
	for _, m := range regexp.MustCompile(`rampart_([0-9.]+[0-9])_`).FindAllStringSubmatch(security, -1) {
		require.Equal(t, bot.Version, m[1])
	}
}

// TestReleaseWorkflow: the workflow that publishes runs on tags alone, may do nothing but what its one job needs, and
// pins each action to a commit.
func TestReleaseWorkflow(t *testing.T) {
	var workflow struct {
		On          map[string]struct{ Tags []string }
		Permissions map[string]string
		Jobs        map[string]struct {
			Permissions map[string]string
			Steps       []struct{ Uses, Run string }
		}
	}
	text := strings.Replace(read(t, releaseWorkflow), "\non:\n", "\n\"on\":\n", 1) // on is true in YAML 1.1
	require.NoError(t, yaml.Unmarshal([]byte(text), &workflow))
	require.Len(t, workflow.On, 1)
	require.Equal(t, []string{"v*"}, workflow.On["push"].Tags)
	require.Empty(t, workflow.Permissions)
	require.Len(t, workflow.Jobs, 1)
	job := workflow.Jobs["release"]
	require.Equal(t, map[string]string{"contents": "write", "packages": "write", "id-token": "write"}, job.Permissions)
	released := false
	for _, step := range job.Steps {
		released = released || step.Run == "make release"
		if step.Uses != "" {
			require.Regexp(t, `^actions/[a-z-]+@[0-9a-f]{40}$`, step.Uses)
		}
	}
	require.True(t, released, "it runs what the Makefile says")
}
