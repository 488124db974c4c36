package bundle

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/bundle"

	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// Bounds of a bundle and of a directory.
const (
	// MaxDownload is the size of an archive in bytes.
	MaxDownload = 8 << 20
	// MaxExpanded is the size of all files together in bytes.
	MaxExpanded = 32 << 20
	// MaxFiles is how many files and folders there may be.
	MaxFiles = 2000
)

// content is a bundle of the right shape, signed as it has to be. Whether it compiles is for settle to say.
type content struct {
	layer policy.Layer
	// revision as the manifest names it, else the start of the archive's hash.
	revision string
	// digest of the archive.
	digest string
}

// reading is how a bundle is read.
type reading struct {
	name string
	// verify is nil where bundles need not be signed.
	verify *bundle.VerificationConfig
}

// read reads an archive: its shape first, then its signature, then what is in it, which has to parse.
func (r reading) read(archive []byte) (content, error) {
	if err := inspect(archive); err != nil {
		return content{}, err
	}
	reader := bundle.NewCustomReader(bundle.NewTarballLoaderWithBaseURL(bytes.NewReader(archive), "")).
		WithRegoVersion(ast.RegoV1).WithSizeLimitBytes(MaxExpanded)
	if r.verify == nil {
		reader.WithSkipBundleVerification(true)
	} else {
		reader.WithBundleVerificationConfig(r.verify)
	}
	b, err := reader.Read()
	if err != nil {
		return content{}, err
	}
	if err := onlyV1(b.Manifest); err != nil {
		return content{}, err
	}
	layer, err := layerOf(r.name, b)
	if err != nil {
		return content{}, err
	}
	digest := sha256Of(archive)
	return content{layer, cmp.Or(b.Manifest.Revision, "sha256:"+digest[:12]), digest}, nil
}

// sha256Of is a hash in hexadecimal digits.
func sha256Of(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func more(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d more)", n)
}

// inspect looks at an archive's shape before anything reads it as a whole: its size, and what its entries are.
func inspect(archive []byte) error {
	gz, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return fmt.Errorf("it is not a gzipped tar: %w", err)
	}
	bounded := &io.LimitedReader{R: gz, N: MaxExpanded + 1}
	entries := &entries{seen: map[string]bool{}}
	for tr := tar.NewReader(bounded); err == nil; {
		var h *tar.Header
		if h, err = tr.Next(); err == nil {
			err = entries.add(h)
		}
	}
	if errors.Is(err, io.EOF) {
		// To the very end, where gzip has its checksum.
		_, err = io.Copy(io.Discard, bounded)
	}
	switch refused := (*entryError)(nil); {
	case errors.As(err, &refused):
		return err
	case bounded.N <= 0:
		return errTooLarge
	case err != nil:
		return fmt.Errorf("the archive is damaged: %w", err)
	}
	return nil
}

var errTooLarge = fmt.Errorf("it expands to more than %d MiB", MaxExpanded>>20)

// entryError is an entry of an archive that is refused.
type entryError struct{ message string }

func (e *entryError) Error() string { return e.message }

func refuse(format string, args ...any) error { return &entryError{fmt.Sprintf(format, args...)} }

// entries are the entries of an archive that were seen.
type entries struct {
	seen map[string]bool
	// size that all of them say they have, which for a sparse file is more than is read.
	size int64
}

func (e *entries) add(h *tar.Header) error {
	name, ok := plainPath(h.Name)
	base := path.Base(name)
	e.size += h.Size
	switch {
	case h.Typeflag == tar.TypeXGlobalHeader:
		return nil
	case len(e.seen) >= MaxFiles:
		return refuse("it has more than %d files", MaxFiles)
	case h.Size > MaxExpanded || e.size > MaxExpanded:
		return refuse("%s", errTooLarge)
	case h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir:
		return refuse("%q is a link or a special file: only plain files are read", h.Name)
	case !ok:
		return refuse("%q: want a plain path inside the bundle", h.Name)
	case h.Typeflag == tar.TypeReg && e.seen[name]:
		return refuse("%q is in it twice", h.Name)
	case base == "patch.json":
		return refuse("it is a delta bundle (%s): expected a whole one", h.Name)
	case strings.HasSuffix(base, ".wasm") || base == "plan.json" || base == "plan.pb":
		return refuse("it holds compiled policies (%s): expected Rego, as opa build makes it with --target rego",
			h.Name)
	}
	e.seen[name] = true
	return nil
}

// plainPath is the path of an entry from the bundle's root, which OPA writes with a slash before it.
func plainPath(name string) (string, bool) {
	name = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(name, "/"), "./"), "/")
	if name == "" {
		return ".", true
	}
	return name, fs.ValidPath(name) && !strings.Contains(name, "\\")
}

// onlyV1 refuses a bundle of the older language.
func onlyV1(m bundle.Manifest) error {
	if m.RegoVersion != nil && *m.RegoVersion != 1 {
		return fmt.Errorf("its manifest says Rego v%d: expected v1", *m.RegoVersion)
	}
	for _, file := range slices.Sorted(maps.Keys(m.FileRegoVersions)) {
		if version := m.FileRegoVersions[file]; version != 1 {
			return fmt.Errorf("its manifest says Rego v%d for %s: expected v1", version, file)
		}
	}
	return nil
}

// Prefix of a bundle's name in messages and in the paths of its files.
const Prefix = "bundle:"

func layerOf(name string, b bundle.Bundle) (policy.Layer, error) {
	out := policy.Layer{Name: Prefix + name}
	for _, m := range b.Modules {
		out.Modules = append(out.Modules, parse.Module{Path: path.Join(out.Name, m.Path), Source: string(m.Raw)})
	}
	slices.SortFunc(out.Modules, func(a, b parse.Module) int { return strings.Compare(a.Path, b.Path) })
	if len(b.Data) > 0 {
		text, err := json.MarshalIndent(b.Data, "", "  ")
		if err != nil {
			return out, fmt.Errorf("its data: %w", err)
		}
		out.Data = []parse.DataFile{{Path: path.Join(out.Name, "data.json"), Content: string(text)}}
	}
	if len(out.Modules)+len(out.Data) == 0 {
		return out, errors.New("it holds no policy and no data")
	}
	return out, nil
}
