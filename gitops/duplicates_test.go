package gitops

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/index"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// another is a connection of the same name that leads to another server.
var another = strings.Replace(connectionYAML, "localhost", "another", 1)

// anotherCluster is a ClusterConnection of the same name that leads to another server.
var anotherCluster = strings.Replace(clusterConnectionYAML, "cluster:", "another:", 1)

// ofCluster lets a routing.yaml record a ClusterConnection.
func ofCluster(routing string) string {
	return strings.Replace(routing, "connection: {name", "connection: {kind: ClusterConnection, name", 1)
}

// recordedConnection adds a connection to a routing.yaml; path "": the record does not say where it was.
func recordedConnection(routing, path, hostPort string) string {
	line := "  connection: {name: temporal, spec: {hostPort: \"" + hostPort + "\"}"
	if path != "" {
		line += ", path: " + path
	}
	return strings.Replace(routing, "  desired:", line+"}\n  desired:", 1)
}

const pdbYAML = `apiVersion: temporal.io/v1alpha1
kind: WorkerResourceTemplate
metadata: {name: pdb, namespace: shop}
spec:
  workerDeploymentRef: {name: x}
  template: {apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {maxUnavailable: 1, selector: {matchLabels: {}}}}
`

// recordedTemplate lets the record's version have the object of a template.
func recordedTemplate(routing, path, hash string) string {
	line := "resources: [{template: pdb, hash: \"" + hash + "\""
	if path != "" {
		line += ", path: " + path
	}
	return strings.Replace(routing, "files: {}", line+"}], files: {}", 1)
}

const waiverYAML = `apiVersion: rampart.dev/v1alpha1
kind: Waiver
metadata: {name: launch, namespace: shop}
spec: {rule: rollout.freeze, reason: launch, approver: ann, expiresAt: "2030-01-01T00:00:00Z"}
`

// Two objects of one kind, namespace and name: what is recorded wins, and a copy that comes later never does.
func TestDuplicates(t *testing.T) {
	spec, other := specYAML("shop", "x", "i:1"), specYAML("shop", "x", "i:2")
	routing, status := routingYAML("x", "team/x.yaml"), spec+"status: {}\n"
	hash := templateHash(t, pdbYAML)
	const record, recordStatus = "deploy/shop/x/routing.yaml", "deploy/shop/x/status.yaml"
	broken := "apiVersion: temporal.io/v1alpha1\nkind: [\n"
	cases := map[string]struct {
		files    map[string]string
		problems []string // each is a part of one problem, in order
		check    func(t *testing.T, d rollout.Snapshot)
	}{
		"connections: the recorded path wins": {files: map[string]string{"team/x.yaml": spec, "team/c.yaml": connectionYAML, "z/c.yaml": another,
			record: recordedConnection(routing, "team/c.yaml", "was:7233")},
			problems: []string{"z/c.yaml:1: metadata.name: shop/temporal is already the name of the connection in team/c.yaml"},
			check:    usesConnection("localhost:7233", "team/c.yaml")},
		"connections: the path wins over the content": {files: map[string]string{"team/x.yaml": spec, "team/c.yaml": connectionYAML, "z/c.yaml": another,
			record: recordedConnection(routing, "team/c.yaml", "another:7233")},
			problems: []string{"z/c.yaml:1: metadata.name: shop/temporal is already the name of the connection in team/c.yaml"},
			check:    usesConnection("localhost:7233", "team/c.yaml")},
		"connections: the content that was rendered last wins where no path is recorded": {files: map[string]string{"team/x.yaml": spec, "a/c.yaml": another, "team/c.yaml": connectionYAML,
			record: recordedConnection(routing, "", "localhost:7233")},
			problems: []string{"a/c.yaml:1: metadata.name: shop/temporal is already the name of the connection in team/c.yaml"},
			check:    usesConnection("localhost:7233", "team/c.yaml")},
		"connections: nothing is recorded": {files: map[string]string{"team/x.yaml": spec, "a/c.yaml": another, "team/c.yaml": connectionYAML},
			problems: []string{"a/c.yaml:1: metadata.name: shop/temporal is also the name of the connection in team/c.yaml", "team/c.yaml:1: metadata.name: shop/temporal is also the name of the connection in a/c.yaml"},
			check: func(t *testing.T, d rollout.Snapshot) {
				require.Nil(t, d.Connection)
				require.Len(t, d.Problems, 1)
				require.Contains(t, d.Problems[0].Message, "a/c.yaml and team/c.yaml")
			}},
		"connections: neither is what the record has": {files: map[string]string{"team/x.yaml": spec, "a/c.yaml": another, "team/c.yaml": connectionYAML,
			record: recordedConnection(routing, "gone.yaml", "was:7233")},
			problems: []string{"a/c.yaml:1: metadata.name: shop/temporal is also the name", "team/c.yaml:1: metadata.name: shop/temporal is also the name"},
			check: func(t *testing.T, d rollout.Snapshot) {
				require.Nil(t, d.Connection)
				require.Nil(t, d.LastConnection)
				require.NotEmpty(t, d.Problems)
			}},
		"connections: equal copies": {files: map[string]string{"team/x.yaml": spec, "a/c.yaml": connectionYAML, "team/c.yaml": connectionYAML,
			record: recordedConnection(routing, "team/c.yaml", "was:7233")},
			problems: []string{"team/c.yaml:1: metadata.name: shop/temporal is the same as the connection in a/c.yaml"},
			check:    usesConnection("localhost:7233", "team/c.yaml")},
		"connections: which of equal copies is the one that others copied is not known": {files: map[string]string{"team/x.yaml": spec, "a/c.yaml": connectionYAML, "team/c.yaml": connectionYAML},
			problems: []string{"team/c.yaml:1: metadata.name: shop/temporal is the same as the connection in a/c.yaml"},
			check:    usesConnection("localhost:7233", "")},
		"connections: the recorded file is broken": {files: map[string]string{"team/x.yaml": spec, "team/c.yaml": broken, "z/c.yaml": another,
			record: recordedConnection(routing, "team/c.yaml", "localhost:7233")},
			problems: []string{"team/c.yaml:2", "z/c.yaml:1: metadata.name: shop/temporal is the name of the connection in team/c.yaml, which cannot be read"},
			check: func(t *testing.T, d rollout.Snapshot) {
				require.Nil(t, d.Connection)
				require.Contains(t, d.Problems[0].Message, "team/c.yaml")
			}},
		"connections: the recorded file has something else now": {files: map[string]string{"team/x.yaml": spec, "team/c.yaml": "kind: temporalconnection\n", "z/c.yaml": another,
			record: recordedConnection(routing, "team/c.yaml", "localhost:7233")},
			problems: []string{"z/c.yaml:1: metadata.name: shop/temporal is the name of the connection in team/c.yaml, which is there and does not have it now"},
			check: func(t *testing.T, d rollout.Snapshot) {
				require.Nil(t, d.Connection)
				require.Contains(t, d.Problems[0].Message, "team/c.yaml")
			}},
		"connections: it is empty, and what was rendered last is elsewhere": {files: map[string]string{"team/x.yaml": spec, "team/c.yaml": "", "z/c.yaml": another, "b/c.yaml": connectionYAML,
			record: recordedConnection(routing, "team/c.yaml", "localhost:7233")},
			problems: []string{"z/c.yaml:1: metadata.name: shop/temporal is already the name of the connection in b/c.yaml"},
			check:    usesConnection("localhost:7233", "b/c.yaml")},
		"connections: a spec that is broken, too": {files: map[string]string{"team/x.yaml": broken, "a/c.yaml": another, "team/c.yaml": connectionYAML,
			record: recordedConnection(routing, "team/c.yaml", "was:7233"), recordStatus: status},
			problems: []string{"team/x.yaml:2", "a/c.yaml:1: metadata.name: shop/temporal is already the name of the connection in team/c.yaml"},
			check:    usesConnection("localhost:7233", "team/c.yaml")},
		"cluster connections: the recorded path wins": {files: map[string]string{"team/x.yaml": byCluster(spec), "team/c.yaml": clusterConnectionYAML, "z/c.yaml": anotherCluster,
			"n/c.yaml": connectionYAML, record: ofCluster(recordedConnection(routing, "team/c.yaml", "was:7233"))},
			problems: []string{"z/c.yaml:1: metadata.name: temporal is already the name of the ClusterConnection in team/c.yaml"},
			check:    usesConnection("cluster:7233", "team/c.yaml")},
		"cluster connections: a record of the namespace's connection says nothing of them": {files: map[string]string{"team/x.yaml": byCluster(spec), "team/c.yaml": clusterConnectionYAML,
			"z/c.yaml": anotherCluster, record: recordedConnection(routing, "team/c.yaml", "was:7233")},
			problems: []string{"team/c.yaml:1: metadata.name: temporal is also the name of the ClusterConnection in z/c.yaml", "z/c.yaml:1: metadata.name: temporal is also the name of the ClusterConnection in team/c.yaml"},
			check: func(t *testing.T, d rollout.Snapshot) {
				require.Nil(t, d.Connection)
				require.Len(t, d.Problems, 1)
				require.Equal(t, "ClusterConnection temporal is in team/c.yaml and z/c.yaml, which say different things, and neither is recorded: neither is used; keep one of them", d.Problems[0].Message)
			}},
		"cluster connections: the recorded file has something else now": {files: map[string]string{"team/x.yaml": byCluster(spec), "team/c.yaml": connectionYAML, "z/c.yaml": clusterConnectionYAML,
			record: ofCluster(recordedConnection(routing, "team/c.yaml", "was:7233"))},
			problems: []string{"z/c.yaml:1: metadata.name: temporal is the name of the ClusterConnection in team/c.yaml, which is there and does not have it now"},
			check: func(t *testing.T, d rollout.Snapshot) {
				require.Nil(t, d.Connection)
				require.Contains(t, d.Problems[0].Message, "temporal is the name of the ClusterConnection in team/c.yaml")
			}},
		"cluster connections: equal copies": {files: map[string]string{"team/x.yaml": byCluster(spec), "a/c.yaml": clusterConnectionYAML, "team/c.yaml": clusterConnectionYAML,
			record: ofCluster(recordedConnection(routing, "team/c.yaml", "was:7233"))},
			problems: []string{"team/c.yaml:1: metadata.name: temporal is the same as the ClusterConnection in a/c.yaml"},
			check:    usesConnection("cluster:7233", "team/c.yaml")},
		"cluster connections: the namespace's is another one": {files: map[string]string{"team/x.yaml": spec, "team/c.yaml": connectionYAML, "z/c.yaml": clusterConnectionYAML, record: routing},
			check: usesConnection("localhost:7233", "team/c.yaml")},
		"specs: the recorded path wins": {files: map[string]string{"a/x.yaml": other, "team/x.yaml": spec, "team/c.yaml": connectionYAML, record: routing},
			problems: []string{"a/x.yaml:1: metadata.name: shop/x is already the name of the spec in team/x.yaml"}, check: usesSpec("i:1", "team/x.yaml")},
		"specs: the content that was rendered last wins": {files: map[string]string{"a/x.yaml": other, "team/y.yaml": spec, "team/c.yaml": connectionYAML, record: routing, recordStatus: status},
			problems: []string{"a/x.yaml:1: metadata.name: shop/x is already the name of the spec in team/y.yaml"}, check: usesSpec("i:1", "team/y.yaml")},
		"specs: the recorded file is empty": {files: map[string]string{"evil/x.yaml": other, "team/x.yaml": "", "team/c.yaml": connectionYAML, record: routing, recordStatus: status},
			problems: []string{"evil/x.yaml:1: metadata.name: shop/x is the name of the spec in team/x.yaml, which is there and does not have it now: this one is not used"}, check: func(t *testing.T, d rollout.Snapshot) {
				require.Nil(t, d.Spec)
				require.Contains(t, d.Problems[0].Message, "team/x.yaml")
			}},
		"specs: the recorded file has another kind": {files: map[string]string{"evil/x.yaml": other, "team/x.yaml": strings.NewReplacer("temporal.io/", "example.com/", "TemporalWorkerDeployment", "Other").Replace(spec), "team/c.yaml": connectionYAML, record: routing, recordStatus: status},
			problems: []string{"evil/x.yaml:1: metadata.name: shop/x is the name of the spec in team/x.yaml, which is there and does not have it now: this one is not used"}, check: func(t *testing.T, d rollout.Snapshot) {
				require.Nil(t, d.Spec)
				require.Contains(t, d.Problems[0].Message, "team/x.yaml")
			}},
		"specs: the recorded file misspells its API version": {files: map[string]string{"evil/x.yaml": other, "team/x.yaml": strings.Replace(spec, "temporal.io/", "temporalio/", 1), "team/c.yaml": connectionYAML, record: routing, recordStatus: status},
			problems: []string{`team/x.yaml:1: apiVersion: "temporalio/v1alpha1" has no kind TemporalWorkerDeployment`, "evil/x.yaml:1: metadata.name: shop/x is already the name of the spec in team/x.yaml"}, check: func(t *testing.T, d rollout.Snapshot) {
				require.Nil(t, d.Spec)
				require.Contains(t, d.Problems[0].Message, "has no kind")
			}},
		"specs: the recorded file is a pointer": {files: map[string]string{"evil/x.yaml": other, "team/x.yaml": "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "team/c.yaml": connectionYAML, record: routing, recordStatus: status},
			problems: []string{"team/x.yaml:1: the file is in Git LFS", "evil/x.yaml:1: metadata.name: shop/x is the name of the spec in team/x.yaml, which is there and does not have it now: this one is not used"}, check: func(t *testing.T, d rollout.Snapshot) {
				require.Nil(t, d.Spec)
				require.Contains(t, d.Problems[0].Message, "team/x.yaml")
			}},
		"specs: another name stands in the recorded file": {files: map[string]string{"evil/x.yaml": other, "team/x.yaml": specYAML("shop", "xx", "i:1"), "team/c.yaml": connectionYAML, record: routing, recordStatus: status},
			problems: []string{"evil/x.yaml:1: metadata.name: shop/x is the name of the spec in team/x.yaml, which is there"}, check: func(t *testing.T, d rollout.Snapshot) {
				require.Nil(t, d.Spec)
				require.Contains(t, d.Problems[0].Message, "team/x.yaml")
			}},
		"specs: nothing is recorded": {files: map[string]string{"a/x.yaml": other, "team/x.yaml": spec, "team/c.yaml": connectionYAML},
			problems: []string{"a/x.yaml:1: metadata.name: shop/x is also the name of the spec in team/x.yaml", "team/x.yaml:1: metadata.name: shop/x is also the name of the spec in a/x.yaml"},
			check: func(t *testing.T, d rollout.Snapshot) {
				require.Nil(t, d.Spec)
				require.Contains(t, d.Problems[0].Message, "a/x.yaml")
				require.Contains(t, d.Problems[0].Message, "team/x.yaml")
			}},
		"specs: equal copies, one of them recorded": {files: map[string]string{"a/x.yaml": spec, "team/x.yaml": spec, "team/c.yaml": connectionYAML, record: routing},
			problems: []string{"a/x.yaml:1: metadata.name: shop/x is the same as the spec in team/x.yaml"}, check: usesSpec("i:1", "team/x.yaml")},
		"specs: equal copies, none of them recorded": {files: map[string]string{"a/x.yaml": spec, "b/x.yaml": spec, "team/c.yaml": connectionYAML, record: routing},
			problems: []string{"b/x.yaml:1: metadata.name: shop/x is the same as the spec in a/x.yaml"}, check: func(t *testing.T, d rollout.Snapshot) {
				usesSpec("i:1", "a/x.yaml")(t, d)
				require.True(t, d.SpecCopied)
			}},
		"specs: another annotation is another spec": {files: map[string]string{"a/x.yaml": strings.Replace(spec, "namespace: shop}", "namespace: shop, annotations: {rampart.dev/retire: \"true\"}}", 1),
			"team/x.yaml": spec, "team/c.yaml": connectionYAML, record: routing},
			problems: []string{"a/x.yaml:1: metadata.name: shop/x is already the name of the spec in team/x.yaml"}, check: usesSpec("i:1", "team/x.yaml")},
		"specs: the recorded file is broken": {files: map[string]string{"a/x.yaml": other, "team/x.yaml": broken, "team/c.yaml": connectionYAML, record: routing, recordStatus: status},
			problems: []string{"team/x.yaml:2", "a/x.yaml:1: metadata.name: shop/x is the name of the spec in team/x.yaml, which cannot be read"},
			check: func(t *testing.T, d rollout.Snapshot) {
				require.Nil(t, d.Spec)
				require.Contains(t, d.Problems[0].Message, "team/x.yaml:2")
			}},
		"templates: the recorded path wins": {files: map[string]string{"a/t.yaml": strings.Replace(pdbYAML, "maxUnavailable: 1", "maxUnavailable: 9", 1), "team/t.yaml": pdbYAML,
			"team/x.yaml": spec, "team/c.yaml": connectionYAML, record: recordedTemplate(routing, "team/t.yaml", "00")},
			problems: []string{"a/t.yaml:1: metadata.name: shop/pdb is already the name of the template in team/t.yaml"}, check: usesTemplate("team/t.yaml", hash)},
		"templates: the content that was rendered last wins": {files: map[string]string{"a/t.yaml": strings.Replace(pdbYAML, "maxUnavailable: 1", "maxUnavailable: 9", 1), "team/t.yaml": pdbYAML,
			"team/x.yaml": spec, "team/c.yaml": connectionYAML, record: recordedTemplate(routing, "", hash)},
			problems: []string{"a/t.yaml:1: metadata.name: shop/pdb is already the name of the template in team/t.yaml"}, check: usesTemplate("team/t.yaml", hash)},
		"templates: equal copies": {files: map[string]string{"a/t.yaml": pdbYAML, "team/t.yaml": pdbYAML, "team/x.yaml": spec, "team/c.yaml": connectionYAML,
			record: recordedTemplate(routing, "team/t.yaml", "00")},
			problems: []string{"a/t.yaml:1: metadata.name: shop/pdb is the same as the template in team/t.yaml"}, check: usesTemplate("team/t.yaml", hash)},
		"templates: nothing is recorded": {files: map[string]string{"a/t.yaml": strings.Replace(pdbYAML, "maxUnavailable: 1", "maxUnavailable: 9", 1), "team/t.yaml": pdbYAML,
			"team/x.yaml": spec, "team/c.yaml": connectionYAML, record: routing},
			problems: []string{"a/t.yaml:1: metadata.name: shop/pdb is also the name of the template in team/t.yaml", "team/t.yaml:1: metadata.name: shop/pdb is also the name"},
			check: func(t *testing.T, d rollout.Snapshot) {
				require.Len(t, d.Resources, 1)
				require.Contains(t, d.Resources[0].Problem.Message, "shop/pdb is also the name of the template in")
			}},
		"templates: another worker deployment's comes later": {files: map[string]string{"a/t.yaml": strings.Replace(pdbYAML, "{name: x}", "{name: y}", 1), "a/y.yaml": specYAML("shop", "y", "i:1"),
			"team/t.yaml": pdbYAML, "team/x.yaml": spec, "team/c.yaml": connectionYAML, record: recordedTemplate(routing, "team/t.yaml", hash)},
			problems: []string{"a/t.yaml:1: metadata.name: shop/pdb is already the name of the template in team/t.yaml"}, check: usesTemplate("team/t.yaml", hash)},
		"waivers: none of two has an effect": {files: map[string]string{"team/x.yaml": spec, "team/c.yaml": connectionYAML, "team/w.yaml": waiverYAML, "z/w.yaml": strings.Replace(waiverYAML, "2030", "2040", 1)},
			problems: []string{"team/w.yaml:1: metadata.name: shop/launch is also the name of the waiver in z/w.yaml", "z/w.yaml:1: metadata.name: shop/launch is also the name of the waiver in team/w.yaml"},
			check:    func(t *testing.T, d rollout.Snapshot) { require.Empty(t, d.Waivers) }},
		"waivers: equal copies are one": {files: map[string]string{"team/x.yaml": spec, "team/c.yaml": connectionYAML, "team/w.yaml": waiverYAML, "z/w.yaml": waiverYAML},
			problems: []string{"z/w.yaml:1: metadata.name: shop/launch is the same as the waiver in team/w.yaml"},
			check:    func(t *testing.T, d rollout.Snapshot) { require.Len(t, d.Waivers, 1) }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := gittest.NewBareRepo(t)
			r.Commit(gittest.Commit{Write: c.files})
			repo := open(t, r)
			w := read(t, repo)
			got := problems(w)
			require.Len(t, got, len(c.problems), "%v", got)
			for i, want := range c.problems {
				require.Contains(t, got[i], want)
			}
			for _, p := range slices.Concat(w.Problems, w.Environments[0].Problems) {
				if strings.Contains(p.Path, "metadata.name") {
					require.Equal(t, strings.Contains(p.Message, "is the same as the "), p.Severity == v1alpha1.Warning, "a copy is a warning, a loser is an error: %s", p)
				}
			}
			c.check(t, w.Environments[0].Deployments[0])

			// A survey that remembers says the same, also the second time.
			for range 2 {
				survey, load, err := repo.Survey(t.Context())
				require.NoError(t, err)
				env := survey.World.Environments[0]
				all, err := load(t.Context(), survey.Snapshots(env.Environment.Name, env.Entries))
				require.NoError(t, err)
				require.Equal(t, w.Environments[0].Deployments, all)
				require.Equal(t, got, problems(survey.World))
			}
		})
	}
}

func templateHash(t *testing.T, text string) string {
	t.Helper()
	w, err := index.ReadFolder(writeFolder(t, map[string]string{"x.yaml": specYAML("shop", "x", "i:1"), "c.yaml": connectionYAML, "t.yaml": text}))
	require.NoError(t, err)
	return w.Environments[0].Deployments[0].Resources[0].Hash
}

func usesConnection(hostPort, path string) func(*testing.T, rollout.Snapshot) {
	return func(t *testing.T, d rollout.Snapshot) {
		require.NotNil(t, d.Connection)
		require.Equal(t, hostPort, d.Connection.Spec.HostPort)
		require.Equal(t, path, d.ConnectionPath)
	}
}

func usesSpec(image, path string) func(*testing.T, rollout.Snapshot) {
	return func(t *testing.T, d rollout.Snapshot) {
		require.NotNil(t, d.Spec)
		require.Equal(t, image, d.Spec.Spec.Template.FirstImage)
		require.Equal(t, path, d.SpecPath)
		require.Empty(t, d.Problems)
		require.NotNil(t, d.Connection)
	}
}

func usesTemplate(path, hash string) func(*testing.T, rollout.Snapshot) {
	return func(t *testing.T, d rollout.Snapshot) {
		require.Len(t, d.Resources, 1)
		require.Nil(t, d.Resources[0].Problem)
		require.Equal(t, []string{path, hash}, []string{d.Resources[0].Path, d.Resources[0].Hash})
	}
}

// A symbolic link at the recorded path is a file that is there without the spec.
func TestALinkInPlaceOfASpec(t *testing.T) {
	r := gittest.NewBareRepo(t)
	r.Commit(gittest.Commit{Write: map[string]string{"evil/x.yaml": specYAML("shop", "x", "i:2"), "team/c.yaml": connectionYAML, "deploy/shop/x/routing.yaml": routingYAML("x", "team/x.yaml")},
		Links: map[string]string{"team/x.yaml": "../evil/x.yaml"}})
	w := read(t, open(t, r))
	require.Nil(t, w.Environments[0].Deployments[0].Spec)
	require.Contains(t, w.Environments[0].Deployments[0].Problems[0].Message, "team/x.yaml, which is there and does not have it now")
}
