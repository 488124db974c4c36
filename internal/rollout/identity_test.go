package rollout_test

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// spec has a template with one container of an image.
func spec(image string) v1alpha1.WorkerDeploymentSpec {
	raw := fmt.Sprintf(`{"spec":{"containers":[{"image":%q,"name":"worker"}]}}`, image)
	return v1alpha1.WorkerDeploymentSpec{Template: v1alpha1.PodTemplate{Raw: []byte(raw), FirstImage: image}}
}

func custom(image, id string) v1alpha1.WorkerDeploymentSpec {
	s := spec(image)
	s.WorkerOptions.UnsafeCustomBuildID = id
	return s
}

const digest = "a428de44a9059f31a59237a5881c2d2cffa93757d99026156e4ea544577ab7f3"

func TestBuildIDPrefix(t *testing.T) {
	for image, want := range map[string]string{
		"busybox":                   "busybox",
		"busybox:latest":            "latest",
		"docker.io/library/busybox": "library-busybox",
		"registry.example.com:5000/team/app:v1.2.3": "v1.2.3",
		"registry.example.com:5000/team/app":        "team-app",
		"localhost:5000/foo":                        "foo",
		"localhost/foo":                             "foo",
		"team/app":                                  "team-app",
		"MyRepo/App:V1_rc.1":                        "MyRepo-App-V1_rc.1",
		"app:_under":                                "under",
		"app:v1__":                                  "v1__",
		"foo bar":                                   "foo-bar",
		":::":                                       "",
		"":                                          "",
		"my.app/test/foo_bar:v1.0":                  "v1.0",
		"repo/app:v1@sha256:" + digest:              "v1",
		"repo/app@sha256:" + digest:                 digest[:54],
		"app:" + strings.Repeat("x", 80):            strings.Repeat("x", 54),
		"registry.example.com/team/app@sha256:short": "registry.example.com-team-app-sha256-short",
	} {
		t.Run(image, func(t *testing.T) {
			s := spec(image)
			id, from := rollout.BuildIDFor(s, nil)
			suffix := rollout.TemplateHash(s)[:8]
			require.Equal(t, strings.TrimPrefix(want+"-"+suffix, "-"), id)
			require.Equal(t, v1alpha1.BuildIDTemplate, from)
		})
	}
}

// TestBuildIDIsRemembered, whatever computed it.
func TestBuildIDIsRemembered(t *testing.T) {
	v1, v2 := spec("app:v1"), spec("app:v2")
	recorded := []v1alpha1.RecordedVersion{
		{BuildID: "theirs-4444", TemplateHash: rollout.TemplateHash(v1), BuildIDFrom: v1alpha1.BuildIDTemplate},
		{BuildID: "mine", TemplateHash: rollout.TemplateHash(v2), BuildIDFrom: v1alpha1.BuildIDCustom},
	}
	id, _ := rollout.BuildIDFor(v1, recorded)
	require.Equal(t, "theirs-4444", id)
	id, _ = rollout.BuildIDFor(v2, recorded)
	require.Equal(t, "v2-"+rollout.TemplateHash(v2)[:8], id, "a custom one is not the template's")
	id, from := rollout.BuildIDFor(custom("app:v1", "---x---"), recorded)
	require.Equal(t, "x", id)
	require.Equal(t, v1alpha1.BuildIDCustom, from)
	id, from = rollout.BuildIDFor(custom("app:v1", "###"), recorded)
	require.Equal(t, "theirs-4444", id)
	require.Equal(t, v1alpha1.BuildIDTemplate, from)
	id, _ = rollout.BuildIDFor(v1, append(recorded, v1alpha1.RecordedVersion{BuildID: "again", TemplateHash: rollout.TemplateHash(v1)}))
	require.Equal(t, "again", id, "the newest")
}

// TestBuildIDCollision: more of the hash is taken until no recorded version has the build ID.
func TestBuildIDCollision(t *testing.T) {
	s := spec("app:v1")
	hash := rollout.TemplateHash(s)
	var recorded []v1alpha1.RecordedVersion
	seen := map[string]bool{}
	for n := 8; n < 64; n += 8 {
		id, _ := rollout.BuildIDFor(s, recorded)
		require.True(t, strings.HasSuffix(id, hash[:n]), id)
		require.False(t, seen[id])
		seen[id] = true
		recorded = append(recorded, v1alpha1.RecordedVersion{BuildID: id, TemplateHash: "another"})
	}
	id, _ := rollout.BuildIDFor(s, recorded)
	require.Equal(t, hash[:63], id)
}

// TestTemplateHash is over what the user wrote, and all of it.
func TestTemplateHash(t *testing.T) {
	s := spec("app:v1")
	require.Equal(t, "02de6a697a67700c4f2ede71ce78eb69be38a515976e90a50f2b9d92d63e2548", rollout.TemplateHash(s), "the hash of a template never changes")
	other := spec("app:v1")
	other.MinReadySeconds, other.WorkerOptions.TemporalNamespace = 5, "prod"
	require.Equal(t, rollout.TemplateHash(s), rollout.TemplateHash(other), "nothing else is in it")
	other.Pools = []v1alpha1.Pool{{Name: "a", Template: s.Template}}
	require.NotEqual(t, rollout.TemplateHash(s), rollout.TemplateHash(other))
	renamed := other
	renamed.Pools = []v1alpha1.Pool{{Name: "b", Template: s.Template}}
	require.NotEqual(t, rollout.TemplateHash(other), rollout.TemplateHash(renamed))
}

func TestDeploymentName(t *testing.T) {
	n38 := strings.Repeat("n", 38)
	require.Len(t, n38+"-12345678", 47)
	hashed := func(short, full string) string {
		return fmt.Sprintf("%s-%x", short, sha256.Sum256([]byte(full)))[:len(short)+11]
	}
	for _, c := range []struct {
		name, build string
		taken       []string
		want        string
	}{
		{"hello-world", "v1.2.3-f95c", nil, "hello-world-v1-2-3-f95c"},
		{"hello-world", "MyRepo-App-V1_rc.1-c8f6", nil, "hello-world-myrepo-app-v1-rc-1-c8f6"},
		{"hello-world", "v1__-89d8", nil, "hello-world-v1--89d8"},
		{n38, "12345678", nil, n38 + "-12345678"},
		{n38, "123456789", nil, hashed("nnnnnnnnnn-123456789", n38+"-123456789")},
		{"hello-world", "V1.b-" + n38, nil, hashed("hello-worl-v1-b-nnnnn", "hello-world-V1.b-"+n38)},
		{"app", "1-0", []string{"app-1-0"}, hashed("app-1-0", "app-1-0")},
		{"app", "1.0", []string{"app-1-0"}, hashed("app-1-0", "app-1.0")},
		{"foo", "bar-1", []string{"foo-bar-1"}, hashed("foo-bar-1", "foo-bar-1")},
		{"foo", "bar-1", []string{"foo-bar"}, "foo-bar-1"},
	} {
		require.Equal(t, c.want, rollout.DeploymentName(c.name, c.build, c.taken))
	}
}

func TestSelectorLabels(t *testing.T) {
	require.Equal(t, map[string]string{"temporal.io/deployment-name": "hello-world", "temporal.io/build-id": "v1.0"}, rollout.SelectorLabels("Hello.World", "v1.0"))
	long := rollout.SelectorLabels(strings.Repeat("n", 62)+"-x", "1")["temporal.io/deployment-name"]
	require.Equal(t, strings.Repeat("n", 62), long)
}

// TestIdentityProperties: a build ID is a label value and comes back cleaned as it is; a name is a DNS label with room.
func TestIdentityProperties(t *testing.T) {
	label := regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9._-]{0,61}[a-zA-Z0-9])?$`)
	rapid.Check(t, func(t *rapid.T) {
		s := custom(rapid.String().Draw(t, "image"), rapid.SampledFrom([]string{"", rapid.String().Draw(t, "text")}).Draw(t, "custom"))
		id, _ := rollout.BuildIDFor(s, nil)
		require.Regexp(t, label, id)
		require.Equal(t, id, rollout.CleanBuildID(id))
		name := rapid.StringMatching(`[a-z]([a-z0-9-]{0,60}[a-z0-9])?`).Draw(t, "name")
		first := rollout.DeploymentName(name, id, nil)
		second := rollout.DeploymentName(name, id, []string{first})
		for _, n := range []string{first, second} {
			require.Regexp(t, regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,45}[a-z0-9]$`), n)
		}
		if len(name)+1+len(id) <= 47 {
			require.NotEqual(t, first, second)
		}
	})
}
