package cluster

import (
	"archive/tar"
	"compress/gzip"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A newcomer follows docs/quickstart.md, from the download to the second version. The bot is the published image by the
// published chart: its own files alone, as the chart's user. Addresses of the page are replaced, and
// pauses, which would be minutes.
func TestQuickstart(t *testing.T) {
	t.Parallel()
	p := publish(t)
	worker := workerImage(t, "good")
	d := prepare(t, gitea(t), map[string]Image{
		"registry.example.com/checkout:v1.0.0": worker, "registry.example.com/checkout:v1.1.0": worker, "ghcr.io/rampart-gitops/rampart:" + p.version: p.image(),
	})
	d.server.Kubectl(t, "", "delete", "namespace", "payments") // the page creates it
	home := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(home, "token"), []byte(d.host.token+"\n"), 0o600))
	downloads := serveRelease(t, d.file, p.version)
	g := &guide{t: t, name: "quickstart.md", blocks: readGuide(t, "quickstart.md"), dir: home,
		elsewhere: strings.NewReplacer("git clone --quiet https://git.example.com/platform/workers.git", "git clone --quiet "+d.host.authenticated()+" workers",
			"https://git.example.com/platform/workers.git", d.host.url, "temporal.example.com:7233", d.ns.Server().Address(),
			"https://github.com/rampart-gitops/rampart", downloads, "oci://ghcr.io/rampart-gitops", "--plain-http oci://"+p.host,
			"secretName: rampart", "secretName: rampart\nmetrics: {port: "+freePort(t)+"}", "pauseDuration: 1m", "pauseDuration: 2s"),
		env: append(os.Environ(), "HOME="+home, "KUBECONFIG="+d.server.Kubeconfig, "XDG_CACHE_HOME="+filepath.Join(home, "cache"),
			"PATH="+filepath.Join(home, ".local", "bin")+":"+filepath.Dir(program(t, "kubectl"))+":"+os.Getenv("PATH"), "HELM_REGISTRY_CONFIG="+filepath.Join(home, "none"),
			"GIT_AUTHOR_NAME=Ada Park", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_COMMITTER_NAME=Ada Park", "GIT_COMMITTER_EMAIL=ada@example.com")}
	g.follow() // download
	g.follow() // clone
	g.follow() // the two files: validate, push
	g.follow() // doctor
	g.follow() // install
	require.Equal(t, "ghcr.io/rampart-gitops/rampart:"+p.version, d.server.Kubectl(t, "", "get", "-n", "rampart", "pods", "-o", "jsonpath={.items[*].spec.containers[*].image}"))
	g.follow() // the first version
	require.NotEmpty(t, d.served())
	first := d.served()
	g.follow() // the next one
	require.NotEqual(t, first, d.served())
	g.follow() // the status
	require.Contains(t, d.server.Kubectl(t, "", "get", "-n", "payments", "twd"), d.served())
	g.done()
	changes := d.ns.RoutingChanges("payments/checkout")
	require.Len(t, changes, 4, changes)
	require.Equal(t, []string{"current " + first, "ramp " + d.served() + " 10", "ramp " + d.served() + " 50", "current " + d.served()}, changes)
}

// serveRelease serves the archive of a program as GitHub serves that of a release, and gives the address of the
// repository.
func serveRelease(t *testing.T, program, version string) string {
	t.Helper()
	data, err := os.ReadFile(program)
	require.NoError(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/releases/download/v"+version+"/rampart_"+version+"_linux_amd64.tar.gz" {
			http.NotFound(w, r)
			return
		}
		z := gzip.NewWriter(w)
		archive := tar.NewWriter(z)
		if err := archive.WriteHeader(&tar.Header{Name: "rampart", Mode: 0o755, Size: int64(len(data)), Typeflag: tar.TypeReg}); err != nil {
			return // the client is gone
		}
		if _, err := archive.Write(data); err == nil && archive.Close() == nil {
			_ = z.Close()
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}
