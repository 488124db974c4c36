package rollout_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// What the in-cluster controller's own functions gave for a template with one container of an image.
func TestControllerBuildID(t *testing.T) {
	for image, want := range map[string]string{
		"busybox": "busybox-dd88", "busybox:latest": "latest-9479", "docker.io/library/busybox": "library-busybox-f47c",
		"registry.example.com:5000/team/app:v1.2.3": "v1.2.3-f95c", "registry.example.com:5000/team/app": "team-app-8f8f", "localhost:5000/foo": "foo-df9f",
		"MyRepo/App:V1_rc.1": "MyRepo-App-V1_rc.1-c8f6", "app:_under": "under-f94b", "app:v1__": "v1__-89d8", "foo bar": "foo-bar-cbc9", ":::": "7b76",
		"my.app/test/foo_bar:v1.0": "v1.0-cf7d", "": "444444",
	} {
		raw, err := json.Marshal(map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "worker", "image": image}}}})
		require.NoError(t, err)
		var spec v1alpha1.WorkerDeploymentSpec
		require.NoError(t, json.Unmarshal(raw, &spec.Template))
		got := rollout.ControllerBuildID(spec)
		if image == "" { // without an image: ten digits
			require.Len(t, got, 10)
			got = got[:6]
		}
		require.Equal(t, want, got, image)
		spec.WorkerOptions.UnsafeCustomBuildID = "---x---"
		require.Equal(t, "x", rollout.ControllerBuildID(spec))
	}
}
