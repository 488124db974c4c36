package cluster

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/rampart-gitops/rampart/internal/testneed"
)

// published is what a release publishes, in a registry of the test.
type published struct {
	t *testing.T
	// host is the registry's address.
	host string
	// version is that of the charts.
	version string
	// charts are what a release signs of them: references with digests.
	charts []string
}

// publishing keeps tests from building in dist at the same time.
var publishing sync.Mutex

// platforms are those that the image is built for: this machine's, or those of RAMPART_TEST_PLATFORMS.
func platforms() []string {
	if all := os.Getenv("RAMPART_TEST_PLATFORMS"); all != "" {
		return strings.Split(all, ",")
	}
	return []string{runtime.GOOS + "/" + runtime.GOARCH}
}

// publish builds the image and packages the charts as a release does, and pushes them to a registry of the test. The
// image's base is the test's: certificates, and nothing else.
func publish(t *testing.T) published {
	t.Helper()
	ko, err := filepath.Glob(filepath.Join("..", "..", "bin", "ko-*", "ko"))
	require.NoError(t, err)
	if len(ko) == 0 {
		testneed.Missing(t, "no ko: make release-tools builds it")
	}
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	p := published{t: t, host: strings.TrimPrefix(server.URL, "http://")}
	var chart struct{ AppVersion string }
	text, err := os.ReadFile(filepath.Join("..", "..", "install", "chart", "Chart.yaml"))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &chart))
	p.version = chart.AppVersion
	p.pushBase()
	publishing.Lock()
	defer publishing.Unlock()
	for _, args := range [][]string{
		{"image", "IMAGE=" + p.host + "/rampart", "TAG=" + p.version, "GOFLAGS=" + os.Getenv("GOFLAGS")}, // as the binary that it is compared with
		{"charts", "CHARTS=oci://" + p.host + "/charts", "HELM=" + program(t, "helm"), "HELMFLAGS=--plain-http"},
	} {
		cmd := exec.CommandContext(t.Context(), "make", args...)
		cmd.Dir = filepath.Join("..", "..")
		cmd.Env = append(os.Environ(), "KO_DEFAULTBASEIMAGE="+p.host+"/base:nonroot",
			"KO_DEFAULTPLATFORMS="+strings.Join(platforms(), ","), "HELM_REGISTRY_CONFIG="+filepath.Join(t.TempDir(), "none"))
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	pushed, err := os.ReadFile(filepath.Join("..", "..", "dist", "charts", "pushed"))
	require.NoError(t, err)
	p.charts = strings.Fields(string(pushed))
	return p
}

// pushBase pushes what stands in for the distroless base.
func (p published) pushBase() {
	p.t.Helper()
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	text := "none\n"
	require.NoError(p.t, w.WriteHeader(&tar.Header{Name: "etc/ssl/certs/ca-certificates.crt", Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}))
	_, err := io.WriteString(w, text)
	require.NoError(p.t, err)
	require.NoError(p.t, w.Close())
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, architecture := range []string{"amd64", "arm64", "s390x"} {
		image, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), static.NewLayer(layer.Bytes(), types.OCIUncompressedLayer))
		require.NoError(p.t, err)
		config, err := image.ConfigFile()
		require.NoError(p.t, err)
		config.OS, config.Architecture, config.Config.User = "linux", architecture, "0"
		image, err = mutate.ConfigFile(image, config)
		require.NoError(p.t, err)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}}})
	}
	require.NoError(p.t, remote.WriteIndex(p.reference("base:nonroot"), index, remote.WithContext(p.t.Context())))
}

func (p published) reference(path string) name.Reference {
	p.t.Helper()
	ref, err := name.ParseReference(p.host + "/" + path)
	require.NoError(p.t, err)
	return ref
}

// images are the image of each platform.
func (p published) images() map[string]v1.Image {
	p.t.Helper()
	said, err := remote.Get(p.reference("rampart:"+p.version), remote.WithContext(p.t.Context()))
	require.NoError(p.t, err)
	if !said.MediaType.IsIndex() {
		image, err := said.Image()
		require.NoError(p.t, err)
		return map[string]v1.Image{platforms()[0]: image}
	}
	index, err := said.ImageIndex()
	require.NoError(p.t, err)
	manifest, err := index.IndexManifest()
	require.NoError(p.t, err)
	out := map[string]v1.Image{}
	for _, m := range manifest.Manifests {
		out[m.Platform.OS+"/"+m.Platform.Architecture], err = index.Image(m.Digest)
		require.NoError(p.t, err)
	}
	return out
}

// unpack writes the files of an image into a folder, as root's and not to be written by others. It lists those that are
// not folders.
func unpack(t *testing.T, image v1.Image, dir string) (files []string) {
	t.Helper()
	layers := mutate.Extract(image)
	defer func() { require.NoError(t, layers.Close()) }()
	for archive := tar.NewReader(layers); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			slices.Sort(files)
			return files
		}
		require.NoError(t, err)
		file := filepath.Join(dir, filepath.Clean("/"+h.Name))
		if h.Typeflag == tar.TypeDir {
			require.NoError(t, os.MkdirAll(file, 0o755))
			continue
		}
		files = append(files, filepath.Clean("/"+h.Name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		out, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, h.FileInfo().Mode())
		require.NoError(t, err)
		_, err = io.Copy(out, archive)
		require.NoError(t, errors.Join(err, out.Close()))
	}
}

// image is the image of this machine's platform, unpacked for a kubelet to run. Nothing but its own files is there, and
// the pod's user cannot write one of them.
func (p published) image() Image {
	p.t.Helper()
	if os.Getuid() != 0 {
		testneed.Missing(p.t, "only root may run a process with another root folder, as another user")
	}
	dir := p.t.TempDir()
	image := p.images()[runtime.GOOS+"/"+runtime.GOARCH]
	require.NotNil(p.t, image)
	unpack(p.t, image, dir)
	config, err := image.ConfigFile()
	require.NoError(p.t, err)
	return Image{Command: config.Config.Entrypoint, Env: config.Config.Env, Root: dir}
}

// TestImage checks the image. It is of all architectures that are asked for, and of a user that is not root. It has the
// binary and nothing else beside its base, and an SBOM; built again it is the same, to the byte. The charts are beside
// it, and the bot's names it.
func TestImage(t *testing.T) {
	t.Parallel()
	p := publish(t)
	git := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), "git", args...).Output()
		require.NoError(t, err)
		return strings.TrimSpace(string(out))
	}
	images := p.images()
	require.Len(t, images, len(platforms()))
	for _, platform := range platforms() {
		image := images[platform]
		require.NotNil(t, image, platform)
		config, err := image.ConfigFile()
		require.NoError(t, err)
		require.Equal(t, "65532:65532", config.Config.User)
		require.Equal(t, []string{"/ko-app/rampart"}, config.Config.Entrypoint)
		require.Empty(t, config.Config.Cmd)
		require.Equal(t, git("log", "-1", "--format=%ct"), strconv.FormatInt(config.Created.Unix(), 10), "the commit's time, whenever it is built")
		require.Equal(t, map[string]string{
			"org.opencontainers.image.title": "rampart", "org.opencontainers.image.licenses": "Apache-2.0", "org.opencontainers.image.version": p.version,
			"org.opencontainers.image.source": "https://github.com/rampart-gitops/rampart", "org.opencontainers.image.revision": git("rev-parse", "HEAD"),
		}, config.Config.Labels)
		require.Equal(t, []string{"/etc/ssl/certs/ca-certificates.crt", "/ko-app/rampart"}, unpack(t, image, t.TempDir()))

		digest, err := image.Digest()
		require.NoError(t, err)
		bom, err := remote.Image(p.reference("rampart:"+strings.Replace(digest.String(), ":", "-", 1)+".sbom"), remote.WithContext(t.Context()))
		require.NoError(t, err)
		layers, err := bom.Layers()
		require.NoError(t, err)
		require.Len(t, layers, 1)
		text, err := layers[0].Uncompressed()
		require.NoError(t, err)
		var listed struct {
			SPDXVersion string
			Packages    []struct{ Name string }
		}
		require.NoError(t, errors.Join(json.NewDecoder(text).Decode(&listed), text.Close()))
		require.Equal(t, "SPDX-2.3", listed.SPDXVersion)
		var modules []string
		for _, p := range listed.Packages {
			modules = append(modules, p.Name)
		}
		require.Subset(t, modules, []string{"github.com/rampart-gitops/rampart", "go.temporal.io/api", "github.com/open-policy-agent/opa"})
	}
	dir, built := t.TempDir(), filepath.Join(t.TempDir(), "rampart")
	unpack(t, images["linux/"+runtime.GOARCH], dir)
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=true", "-ldflags", "-s -w", "-o", built, "./cmd/rampart")
	build.Dir, build.Env = filepath.Join("..", ".."), append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	want, err := os.ReadFile(built)
	require.NoError(t, err)
	got, err := os.ReadFile(filepath.Join(dir, "ko-app", "rampart"))
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got), "it is the archive's binary, which is built so")

	again := publish(t).images()
	for platform, image := range images {
		was, err := image.ConfigName() // of the files, too; a manifest names the registry of its base
		require.NoError(t, err)
		is, err := again[platform].ConfigName()
		require.NoError(t, err)
		require.Equal(t, was, is, platform)
	}

	for _, chart := range []string{"rampart", "rampart-crds"} {
		cmd := exec.CommandContext(t.Context(), program(t, "helm"), "template", "rampart", "--plain-http", "oci://"+p.host+"/charts/"+chart, "--version", p.version, "--set", "settings.repo=a")
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		if chart == "rampart" {
			require.Contains(t, string(out), `image: "ghcr.io/rampart-gitops/rampart:`+p.version+`"`)
		} else {
			require.Equal(t, len(kinds), strings.Count(string(out), "\nkind: CustomResourceDefinition\n"))
		}
	}
	require.Len(t, p.charts, 2)
	for _, chart := range p.charts {
		ref, err := name.NewDigest(chart)
		require.NoError(t, err)
		_, err = remote.Head(ref, remote.WithContext(t.Context()))
		require.NoError(t, err)
	}
}
