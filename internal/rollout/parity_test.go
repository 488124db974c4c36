package rollout_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/parity"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

var _ = flag.Bool("update", false, "write the tables of docs/parity.md anew")

// TestParity goes through the in-cluster controller's scenarios about build IDs, names and hashes.
func TestParity(t *testing.T) {
	for section, cases := range map[string][]parity.Case{"build-id": buildIDParity(), "names": namesParity(), "hashes": hashParity()} {
		t.Run(section, func(t *testing.T) { parity.Compare(t, section, cases) })
	}
}

func buildIDOf(spec v1alpha1.WorkerDeploymentSpec) func(*testing.T) string {
	return func(*testing.T) string {
		id, _ := rollout.BuildIDFor(spec, nil)
		return id
	}
}

// both gives the build IDs of two specs.
func both(a, b v1alpha1.WorkerDeploymentSpec) func(*testing.T) string {
	return func(t *testing.T) string { return buildIDOf(a)(t) + " and " + buildIDOf(b)(t) }
}

// withEnv is a template of the same image with a variable.
func withEnv(image, value string) v1alpha1.WorkerDeploymentSpec {
	raw := fmt.Sprintf(`{"spec":{"containers":[{"env":[{"name":"A","value":%q}],"image":%q,"name":"worker"}]}}`, value, image)
	return v1alpha1.WorkerDeploymentSpec{Template: v1alpha1.PodTemplate{Raw: []byte(raw), FirstImage: image}}
}

func otherOptions(image string) v1alpha1.WorkerDeploymentSpec {
	s := spec(image)
	s.WorkerOptions.TemporalNamespace, s.Rollout.Strategy, s.MinReadySeconds = "other", v1alpha1.Manual, 5
	return s
}

const wider = "the hash is eight digits of SHA-256 over the template as it is written, not one of 10000"

func buildIDParity() []parity.Case {
	noContainer := v1alpha1.WorkerDeploymentSpec{Template: v1alpha1.PodTemplate{Raw: []byte(`{"spec":{"containers":[]}}`)}}
	customs := func(id string) v1alpha1.WorkerDeploymentSpec { return custom("app:v1", id) }
	return []parity.Case{
		{Scenario: "same image, different template", Controller: "another suffix, or by chance (1 in 10000) the same", Got: both(withEnv("app:v1", "1"), withEnv("app:v1", "2")), Want: "v1-4ad30408 and v1-2df6c200",
			Why: wider},
		{Scenario: "same template, another worker deployment", Controller: "the same build ID", Got: both(spec("app:v1"), otherOptions("app:v1")), Want: "v1-02de6a69 and v1-02de6a69", Why: wider},
		{Scenario: "no container", Controller: "`444444` and four characters", Got: buildIDOf(noContainer), Want: "f00de3f0", Why: wider},
		{Scenario: "empty image", Controller: "ten characters of the hash", Got: buildIDOf(spec("")), Want: "4f874674", Why: wider},
		{Scenario: "tag and digest", Controller: "the tag", Got: buildIDOf(spec("repo/app:v1@sha256:" + digest)), Want: "v1-1a43cea6", Why: wider},
		{Scenario: "tag", Controller: "`latest-9479`", Got: buildIDOf(spec("busybox:latest")), Want: "latest-7ba8fe17", Why: wider},
		{Scenario: "tag, registry with a port", Controller: "`v1.2.3-f95c`", Got: buildIDOf(spec("registry.example.com:5000/team/app:v1.2.3")), Want: "v1.2.3-e1445af6", Why: wider},
		{Scenario: "digest", Controller: "58 characters of the digest's hex", Got: buildIDOf(spec("repo/app@sha256:" + digest)), Want: "a428de44a9059f31a59237a5881c2d2cffa93757d99026156e4ea5-82ab0f72", Why: "54 of them, since the suffix is longer"},
		{Scenario: "digest that is too short", Controller: "no reference: the whole text", Got: buildIDOf(spec("repo/app@sha256:short")), Want: "repo-app-sha256-short-d915a5d4", Why: wider},
		{Scenario: "name", Controller: "`busybox-dd88`", Got: buildIDOf(spec("busybox")), Want: "busybox-0a1734b1", Why: wider},
		{Scenario: "name with registry", Controller: "`library-busybox-f47c`", Got: buildIDOf(spec("docker.io/library/busybox")), Want: "library-busybox-97742cfa", Why: wider},
		{Scenario: "name, localhost with a port", Controller: "`foo-df9f`", Got: buildIDOf(spec("localhost:5000/foo")), Want: "foo-e4f12d3c", Why: wider},
		{Scenario: "no reference, upper case", Controller: "`MyRepo-App-V1_rc.1-c8f6`", Got: buildIDOf(spec("MyRepo/App:V1_rc.1")), Want: "MyRepo-App-V1_rc.1-6dbbedaf", Why: wider},
		{Scenario: "separator first", Controller: "`under-f94b`", Got: buildIDOf(spec("app:_under")), Want: "under-e11d216e", Why: wider},
		{Scenario: "illegal characters", Controller: "`foo-bar-cbc9`", Got: buildIDOf(spec("foo bar")), Want: "foo-bar-60b690ac", Why: wider},
		{Scenario: "nothing legal", Controller: "`7b76`", Got: buildIDOf(spec(":::")), Want: "acd17f53", Why: wider},
		{Scenario: "long tag", Controller: "cut to 63 characters, the suffix kept", Got: buildIDOf(spec("app:" + strings.Repeat("x", 80))), Want: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-8d3c8274", Why: wider},
		{Scenario: "custom", Controller: "used", Got: buildIDOf(customs("wf-1.0_a")), Want: "wf-1.0_a"},
		{Scenario: "custom, stable over templates", Controller: "the same", Got: both(customs("wf-1"), custom("app:v2", "wf-1")), Want: "wf-1 and wf-1"},
		{Scenario: "custom, long", Controller: "cut to 63 characters, whatever comes last", Got: buildIDOf(customs(strings.Repeat("x", 62) + "-yy")), Want: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
			Why: "what is left at the end after the cut would be no label value: it is trimmed"},
		{Scenario: "custom, empty", Controller: "by image and template", Got: buildIDOf(customs("")), Want: "v1-02de6a69", Why: wider},
		{Scenario: "custom, nothing legal", Controller: "`v1-bcf4`", Got: buildIDOf(customs("###")), Want: "v1-02de6a69", Why: wider},
		{Scenario: "custom, trimmed", Controller: "`x`", Got: buildIDOf(customs("---x---")), Want: "x"},
		{Scenario: "custom, illegal characters", Controller: "`a-b`", Got: buildIDOf(customs("a b")), Want: "a-b"},
		{Scenario: "a build ID that another template has already", Controller: "the target's Deployment exists: the change is never deployed", Want: "v1-02de6a697a67700c",
			Got: func(*testing.T) string {
				s := spec("app:v1")
				short, _ := rollout.BuildIDFor(s, nil)
				id, _ := rollout.BuildIDFor(s, []v1alpha1.RecordedVersion{{BuildID: short, TemplateHash: "another"}})
				return id
			}, Why: "more of the hash is taken"},
		{Scenario: "a template that was computed otherwise before", Controller: "a new version with each change of the algorithm", Want: "v1-bcf4",
			Got: func(*testing.T) string {
				s := spec("app:v1")
				id, _ := rollout.BuildIDFor(s, []v1alpha1.RecordedVersion{{BuildID: "v1-bcf4", TemplateHash: rollout.TemplateHash(s)}})
				return id
			}, Why: "a recorded version of the same template keeps its build ID"},
	}
}

func nameOf(name, build string, taken ...string) func(*testing.T) string {
	return func(*testing.T) string { return rollout.DeploymentName(name, build, taken) }
}

func labelsOf(name, build string) func(*testing.T) string {
	return func(*testing.T) string {
		l := rollout.SelectorLabels(name, build)
		return fmt.Sprintf("%s=%s %s=%s", rollout.LabelDeploymentName, l[rollout.LabelDeploymentName], rollout.LabelBuildID, l[rollout.LabelBuildID])
	}
}

func namesParity() []parity.Case {
	n38 := strings.Repeat("n", 38)
	const never = "creating it fails for ever"
	return []parity.Case{
		{Scenario: "short", Controller: "`hello-world-latest-9479`", Got: nameOf("hello-world", "latest-9479"), Want: "hello-world-latest-9479"},
		{Scenario: "dots, underscores and upper case", Controller: "`hello-world-myrepo-app-v1-rc-1-c8f6`", Got: nameOf("hello-world", "MyRepo-App-V1_rc.1-c8f6"), Want: "hello-world-myrepo-app-v1-rc-1-c8f6"},
		{Scenario: "runs of separators", Controller: "`hello-world-v1--89d8`", Got: nameOf("hello-world", "v1__-89d8"), Want: "hello-world-v1--89d8"},
		{Scenario: "47 characters", Controller: "stays as it is", Got: nameOf(n38, "12345678"), Want: "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn-12345678"},
		{Scenario: "48 characters", Controller: "ten of each and ten digits of a hash", Got: nameOf(n38, "123456789"), Want: "nnnnnnnnnn-123456789-70ccf30d41"},
		{Scenario: "taken by another version", Controller: never, Got: nameOf("app", "1.0", "app-1-0"), Want: "app-1-0-41fd04e97a", Why: "the hashed form is free"},
		{Scenario: "taken by another worker deployment", Controller: never, Got: nameOf("foo", "bar-1", "foo-bar-1"), Want: "foo-bar-1-0d2ae85555", Why: "the hashed form is free"},
		{Scenario: "labels", Controller: "the worker deployment's name and the build ID", Got: labelsOf("hello-world", "v1.2.3-f95c"), Want: "temporal.io/deployment-name=hello-world temporal.io/build-id=v1.2.3-f95c"},
		{Scenario: "labels of a name that a label cannot hold", Controller: "cleaned, in lower case", Got: labelsOf("Hello.World", "v1"), Want: "temporal.io/deployment-name=hello-world temporal.io/build-id=v1"},
		{Scenario: "name in Temporal", Controller: "`demo/hello-world`", Got: func(*testing.T) string { return rollout.Name{Namespace: "demo", Name: "hello-world"}.String() }, Want: "demo/hello-world"},
	}
}

func hashParity() []parity.Case {
	hash := func(s v1alpha1.WorkerDeploymentSpec) func(*testing.T) string {
		return func(*testing.T) string { return rollout.TemplateHash(s) }
	}
	same := func(a, b v1alpha1.WorkerDeploymentSpec) func(*testing.T) string {
		return func(*testing.T) string {
			if rollout.TemplateHash(a) == rollout.TemplateHash(b) {
				return "the same hash"
			}
			return "another hash"
		}
	}
	decoded := func(template string) v1alpha1.WorkerDeploymentSpec {
		var s v1alpha1.WorkerDeploymentSpec
		if err := s.Template.UnmarshalJSON([]byte(template)); err != nil {
			panic(err)
		}
		return s
	}
	const one = `{"spec":{"containers":[{"name":"worker","image":"app:v1"}]}}`
	short := func(n int) func(*testing.T) string {
		return func(t *testing.T) string {
			id, _ := rollout.BuildIDFor(spec("app:v1"), nil)
			require.True(t, strings.HasSuffix(id, rollout.TemplateHash(spec("app:v1"))[:n]))
			return id
		}
	}
	const asWritten = "no library's types and no server's defaults are in it, so that no upgrade changes it"
	return []parity.Case{
		{Scenario: "short form", Controller: "four characters, 10000 values", Got: short(8), Want: "v1-02de6a69", Why: "118 templates under one tag would share one with a chance of one half"},
		{Scenario: "long form", Controller: "ten characters, 10000 values all the same", Got: hash(spec("app:v1")), Want: "02de6a697a67700c4f2ede71ce78eb69be38a515976e90a50f2b9d92d63e2548", Why: "SHA-256 in hex, kept whole in the record"},
		{Scenario: "collision count", Controller: "there is a parameter, nothing sets it", Want: "more digits of the hash until no other version has the build ID",
			Tests: []string{"internal/rollout TestBuildIDCollision"}, Why: "a collision would leave a change undeployed"},
		{Scenario: "empty template", Controller: "a hash", Got: hash(v1alpha1.WorkerDeploymentSpec{}), Want: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", Why: asWritten},
		{Scenario: "deterministic: other order of keys", Controller: "the same", Got: same(decoded(one), decoded(`{"spec":{"containers":[{"image":"app:v1","name":"worker"}]}}`)), Want: "the same hash"},
		{Scenario: "another image", Controller: "differs", Got: same(spec("app:v1"), spec("app:v2")), Want: "another hash"},
		{Scenario: "another environment variable", Controller: "differs", Got: same(withEnv("app:v1", "1"), withEnv("app:v1", "2")), Want: "another hash"},
		{Scenario: "other replicas, strategy, options", Controller: "the same", Got: same(spec("app:v1"), otherOptions("app:v1")), Want: "the same hash"},
		{Scenario: "another pod annotation", Controller: "differs", Want: "another hash",
			Got: same(decoded(one), decoded(`{"metadata":{"annotations":{"a":"b"}},"spec":{"containers":[{"name":"worker","image":"app:v1"}]}}`))},
		{Scenario: "the same quantity in other words", Controller: "the same: the API server has rewritten it", Want: "another hash",
			Got: same(decoded(`{"spec":{"containers":[{"name":"w","resources":{"limits":{"cpu":"1000m"}}}]}}`), decoded(`{"spec":{"containers":[{"name":"w","resources":{"limits":{"cpu":"1"}}}]}}`)), Why: asWritten},
		{Scenario: "pools", Controller: "no counterpart there", Want: "the hash is over all of them", Tests: []string{"internal/rollout TestTemplateHash"}, Why: "a version is all of its pools"},
	}
}
