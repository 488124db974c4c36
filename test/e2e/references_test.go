package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/gittest"
)

// named lets a spec's pods name a ConfigMap.
func (s specText) named(configMap string) string {
	return strings.Replace(s.String(), `image: "`, `envFrom: [{configMapRef: {name: `+configMap+`}}], image: "`, 1)
}

// Each version that a bot rolled out names a ConfigMap of its own. A change that removes the one that the draining
// version still needs is warned of before it is merged; once the version has drained there is no warning.
func TestReferencesOfDrainingVersionsAreWarnedOf(t *testing.T) {
	w := newWorld(t)
	w.start()
	configMap := func(name string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: " + kubeNamespace + "}\n"
	}
	w.push("add checkout", map[string]string{
		"rampart.yaml": "apiVersion: rampart.dev/v1alpha1\nkind: Config\nspec:\n  environments:\n" +
			"    - {name: default, specs: [\"workers/**\"], output: {path: deploy}, data: [data.yaml]}\n",
		"data.yaml":          "rampart: {config: {spec: {references: {warnEnvironments: [\"*\"]}}}}\n",
		specFile:             specText{image: "app:v1"}.named("settings-v1"),
		"config/v1.yaml":     configMap("settings-v1"),
		"config/shared.yaml": configMap("settings-v2"),
	})
	w.awaitReady("app:v1")
	slow := w.startSlow("slow")
	next := specText{image: "app:v2", sunset: "scaledownDelay: 1h, deleteDelay: 2h"}
	w.push("v2", map[string]string{specFile: next.named("settings-v2")})
	w.awaitReady("app:v2")
	v1, v2 := w.build("app:v1"), w.build("app:v2")
	w.eventually("v1 drains", func() bool { return w.stateOf(v1) == "Draining" })

	clone := filepath.Join(t.TempDir(), "clone")
	w.repo.Git("clone", "-q", w.repo.Dir, clone)
	run := func(args ...string) string {
		out, err := w.command(binary, append(args, "-C", clone)...).Output()
		require.NoError(t, err, "rampart %v", args)
		return string(out)
	}
	var listed struct {
		Versions []struct {
			BuildID, State string
			Objects        []struct {
				Kind, Name string
				Files      []string
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(run("references", deployment, "-o", "json")), &listed))
	require.Len(t, listed.Versions, 2)
	for i, want := range [][]string{
		{v1, "Draining", "settings-v1", "config/v1.yaml"}, {v2, "Current", "settings-v2", "config/shared.yaml"},
	} {
		is := listed.Versions[i]
		require.Len(t, is.Objects, 1)
		require.Equal(t, want[:3], []string{is.BuildID, is.State, is.Objects[0].Name})
		require.Equal(t, want[3:], is.Objects[0].Files)
	}

	git := func(args ...string) {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", clone}, args...)...)
		cmd.Env = append(gittest.Env(), "HOME="+w.cache)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "git %v: %s", args, out)
	}
	git("checkout", "-q", "-b", "change")
	require.NoError(t, os.Remove(filepath.Join(clone, "config", "v1.yaml")))
	const said = "ConfigMap shop/settings-v1 is removed (it was in config/v1.yaml), and still needed by "
	require.Contains(t, run("validate", "--base", "origin/main"), said+v1+" (draining)")
	git("-c", "user.name=p", "-c", "user.email=p@example.com", "commit", "-q", "-a", "-m", "remove settings-v1")
	require.Contains(t, run("preview", "--base", "origin/main"), said+v1+" (draining)")

	w.finish(slow)
	w.eventually("v1 has drained", func() bool { return w.stateOf(v1) == "Drained" })
	git("fetch", "-q", "origin")
	require.NotContains(t, run("preview", "--base", "origin/main"), "settings-v1")
}
