// Package release looks at a release as make test-release leaves it in dist/: signed by a key of the test, and not
// published.
package release

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/testneed"
)

const root = "../.."

var platforms = []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64", "windows_amd64"}

// snapshot is a release, and its version.
type snapshot struct{ dir, version string }

func open(t *testing.T) snapshot {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "dist", "metadata.json"))
	if errors.Is(err, os.ErrNotExist) {
		testneed.Missing(t, "no release in dist/: make test-release makes one")
	}
	require.NoError(t, err)
	var is struct{ Version, Commit string }
	require.NoError(t, json.Unmarshal(text, &is))
	require.Equal(t, command(t, root, "git rev-parse HEAD"), is.Commit, "dist/ is of another commit: make test-release")
	return snapshot{filepath.Join(root, "dist"), is.Version}
}

// command gives what a command prints; it has to succeed.
func command(t *testing.T, dir, line string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-ec", line)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s: %s", line, out)
	return strings.TrimSpace(string(out))
}

func (s snapshot) file(suffix string) string { return "rampart_" + s.version + "_" + suffix }

// documented is the command of SECURITY.md that begins with some words, for this release.
func (s snapshot) documented(t *testing.T, words string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "SECURITY.md"))
	require.NoError(t, err)
	found := regexp.MustCompile(`(?m)^\$ (` + regexp.QuoteMeta(words) + `(?:.*\\\n)*.*)$`).FindSubmatch(page)
	require.NotNil(t, found, words)
	return strings.ReplaceAll(string(found[1]), "rampart_0.1.0", "rampart_"+s.version)
}

// Each platform has an archive with the binary and what belongs to it, and an SBOM. The checksums are of all of them,
// and signed: a reader verifies both as SECURITY.md says, but for who signed, and a file that was changed fails.
func TestArchivesAreCompleteAndSigned(t *testing.T) {
	s := open(t)
	checksums, err := os.ReadFile(filepath.Join(s.dir, s.file("checksums.txt")))
	require.NoError(t, err)
	require.Len(t, strings.Split(strings.TrimSpace(string(checksums)), "\n"), 2*len(platforms))
	for _, platform := range platforms {
		archive, binary := s.file(platform+".tar.gz"), "rampart"
		if strings.HasPrefix(platform, "windows") {
			archive, binary = s.file(platform+".zip"), "rampart.exe"
		}
		require.Contains(t, string(checksums), "  "+archive+"\n")
		require.Contains(t, string(checksums), "  "+s.file(platform+".cdx.json\n"))
		require.ElementsMatch(t, []string{"LICENSE 644", "SECURITY.md 644", "install/systemd/rampart.env 644", "install/systemd/rampart.service 644", binary + " 755"},
			files(t, filepath.Join(s.dir, archive)), archive)
	}
	verified := command(t, s.dir, s.documented(t, "sha256sum"))
	require.Equal(t, 2*len(platforms), strings.Count(verified, ": OK"), verified)

	// A key stands in for the identity of the workflow, which no other machine has.
	cosign := s.documented(t, "cosign verify-blob")
	identity := regexp.MustCompile(`--certificate-[a-z-]+ \S+`)
	require.Len(t, identity.FindAllString(cosign, -1), 2)
	verify := identity.ReplaceAllString(cosign, "--insecure-ignore-tlog --key ../bin/signing/cosign.pub")
	signer, err := filepath.Glob(filepath.Join(root, "bin", "cosign-*", "cosign"))
	require.NoError(t, err)
	require.Len(t, signer, 1)
	verify = strings.Replace(verify, "cosign ", filepath.Join("..", strings.TrimPrefix(signer[0], root))+" ", 1)
	require.Contains(t, command(t, s.dir, verify), "Verified OK")
	changed := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(changed, "checksums"), append(checksums, ' '), 0o600))
	command(t, s.dir, "! "+strings.Replace(verify, " "+s.file("checksums.txt")+" ", " "+filepath.Join(changed, "checksums")+" ", 1))
}

// files lists what is in an archive, with modes; all of it is root's.
func files(t *testing.T, name string) []string {
	t.Helper()
	var out []string
	if strings.HasSuffix(name, ".zip") {
		archive, err := zip.OpenReader(name)
		require.NoError(t, err)
		defer func() { require.NoError(t, archive.Close()) }()
		for _, f := range archive.File {
			out = append(out, f.Name+" "+strconv.FormatInt(int64(f.Mode().Perm()), 8))
		}
		return out
	}
	f, err := os.Open(name)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	for archive := tar.NewReader(z); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		require.Equal(t, "root root", h.Uname+" "+h.Gname)
		out = append(out, h.Name+" "+strconv.FormatInt(h.Mode&0o777, 8))
	}
}

func (s snapshot) binary(t *testing.T, platform string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(s.dir, "rampart_"+platform+"*", "rampart*"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	return found[0]
}

// The SBOM of a binary lists each module that the linker wrote into it, and no other.
func TestSBOM(t *testing.T) {
	s := open(t)
	for _, platform := range platforms {
		text, err := os.ReadFile(filepath.Join(s.dir, s.file(platform+".cdx.json")))
		require.NoError(t, err)
		var bom struct {
			BOMFormat  string
			Components []struct{ Name, Version, Purl string }
		}
		require.NoError(t, json.Unmarshal(text, &bom))
		require.Equal(t, "CycloneDX", bom.BOMFormat)
		listed := map[string]string{}
		for _, c := range bom.Components {
			require.Contains(t, c.Purl, "pkg:golang/")
			listed[c.Name] = c.Version
		}
		info, err := buildinfo.ReadFile(s.binary(t, platform))
		require.NoError(t, err)
		want := map[string]string{"std": info.GoVersion}
		for _, m := range info.Deps {
			want[m.Path] = m.Version
		}
		require.Greater(t, len(want), 30)
		require.Equal(t, want, listed)
	}
}

// The binary says from which commit it is. A build of that commit as SECURITY.md says
// gives the same bytes.
func TestReleasedBinaryIsReproducible(t *testing.T) {
	s := open(t)
	if is, err := os.Stat(filepath.Join(root, ".git")); err != nil || !is.IsDir() {
		testneed.Missing(t, "go build tells no commit in a linked worktree of git: make test-release in a clone")
	}
	binary := s.binary(t, runtime.GOOS+"_"+runtime.GOARCH)
	said := command(t, root, filepath.Join("dist", strings.TrimPrefix(binary, s.dir))+" version")
	require.Contains(t, said, "commit "+command(t, root, "git log -1 --format=%H")+" of ")
	if command(t, root, "git status --porcelain") != "" {
		testneed.Missing(t, "the work tree differs from its commit, and with it the binary")
	}
	require.NotContains(t, said, "modified")
	again := filepath.Join(t.TempDir(), "rampart")
	build := s.documented(t, "CGO_ENABLED=0")
	t.Setenv("GOFLAGS", "") // the Makefile's are those of tests
	command(t, root, strings.Replace(strings.Replace(build, "GOARCH=amd64", "GOARCH="+runtime.GOARCH, 1), "go build", "go build -o "+again, 1))
	require.Equal(t, digest(t, again), digest(t, binary))
}

func digest(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
