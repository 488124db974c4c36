package gitops

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

func specYAML(namespace, name, image string) string {
	return fmt.Sprintf(`apiVersion: temporal.io/v1alpha1
kind: TemporalWorkerDeployment
metadata: {name: %s, namespace: %s}
spec:
  workerOptions: {connectionRef: {name: temporal}, temporalNamespace: shop}
  rollout: {strategy: AllAtOnce}
  template: {spec: {containers: [{name: worker, image: "%s"}]}}
`, name, namespace, image)
}

const connectionYAML = `apiVersion: temporal.io/v1alpha1
kind: TemporalConnection
metadata: {name: temporal, namespace: shop}
spec: {hostPort: "localhost:7233"}
`

const clusterConnectionYAML = `apiVersion: temporal.io/v1alpha1
kind: ClusterConnection
metadata: {name: temporal}
spec: {hostPort: "cluster:7233"}
`

// byCluster lets a spec name the ClusterConnection, which has the name of the namespace's connection.
func byCluster(spec string) string {
	return strings.Replace(spec, "connectionRef: {name: temporal}", "connectionRef: {kind: ClusterConnection, name: temporal}", 1)
}

func routingYAML(name, specPath string) string {
	return fmt.Sprintf(`apiVersion: rampart.dev/v1alpha1
kind: Routing
metadata: {name: %s, namespace: shop}
spec:
  workerDeployment: shop/%s
  temporalNamespace: shop
  specPath: %s
  desired: {current: ""}
  versions:
    - {buildID: v1, buildIDFrom: Custom, templateHash: aa, connectionHash: bb, deployment: %s-v1, createdAt: "2026-01-01T00:00:00Z", guard: "On", files: {}}
`, name, name, specPath, name)
}

// twoEnvironments keeps staging and prod apart.
const twoEnvironments = `apiVersion: rampart.dev/v1alpha1
kind: Config
spec:
  environments:
    - {name: staging, specs: ["staging/**"], output: {path: out/staging}, namespace: shop}
    - {name: prod, specs: ["prod/**", "shared/*.yaml"], output: {path: out/prod, branch: rendered}, policies: ["policies/*.rego"], data: ["policies/data.yaml"]}
`

func open(t *testing.T, r *gittest.Repo) *Repository {
	t.Helper()
	repo, err := Open(Config{URL: r.URL(), Branch: "main", CacheDir: t.TempDir(), Author: "rampart", Email: "rampart@example.com",
		Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return gittest.Epoch }})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, repo.Close()) })
	return repo
}

func read(t *testing.T, r *Repository) rollout.World {
	t.Helper()
	w, err := r.Read(context.Background())
	require.NoError(t, err)
	return w
}

func problems(w rollout.World) []string {
	var out []string
	for _, p := range w.Problems {
		out = append(out, p.String())
	}
	for _, e := range w.Environments {
		for _, p := range e.Problems {
			out = append(out, p.String())
		}
	}
	return out
}

func names(e rollout.EnvironmentWorld) []string {
	var out []string
	for _, d := range e.Deployments {
		out = append(out, d.Deployment.String())
	}
	return out
}

// ramps lets a routing.yaml desire a ramp.
func ramps(routing string) string {
	return strings.Replace(routing, `desired: {current: ""}`, `desired: {current: v1, ramping: {buildID: v2, percentage: 5}}`, 1)
}

// hashOf is the hash that Git gives a file.
func hashOf(data string) string {
	return plumbing.ComputeHash(plumbing.BlobObject, []byte(data)).String()
}
