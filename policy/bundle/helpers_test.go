package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/bundle"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/keytest"
	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/policy/parse"
)

// rule is a module that denies every raise with a message.
func rule(message string) string {
	return fmt.Sprintf("package rampart.rollout\n\ndeny contains {\"rule\": \"org.test\", \"msg\": %q} if input.action.raises\n", message)
}

// signer signs bundles as somebody.
type signer struct{ private, public, algorithm string }

func pemOf(t testing.TB, kind string, der []byte, err error) string {
	t.Helper()
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func rsaSigner(t testing.TB) signer {
	t.Helper()
	key, private := keytest.RSA(t)
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	return signer{private, pemOf(t, "PUBLIC KEY", public, err), "RS256"}
}

func curveSigner(t testing.TB) signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	require.NoError(t, err)
	private, err := x509.MarshalECPrivateKey(key)
	return signer{pemOf(t, "EC PRIVATE KEY", private, err), pemOf(t, "PUBLIC KEY", public, nil), "ES256"}
}

func (s signer) file(t testing.TB) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(name, []byte(s.public), 0o600))
	return name
}

func (s signer) key(t testing.TB, id string) Key {
	t.Helper()
	algorithm := ""
	if s.algorithm == algorithmSecret {
		algorithm = algorithmSecret
	}
	k, err := ReadKey(KeyFile{ID: id, Path: s.file(t), Algorithm: algorithm})
	require.NoError(t, err)
	require.Equal(t, s.algorithm, k.algorithm)
	return k
}

// made is a bundle to make with OPA's own writer.
type made struct {
	modules  map[string]string
	data     map[string]any
	manifest bundle.Manifest
	by       *signer
	keyID    string
	scope    string
	wasm     []byte
	patch    bundle.Patch
	// after changes the bundle once it is signed.
	after func(*bundle.Bundle)
}

func (m made) archive(t testing.TB) []byte {
	t.Helper()
	b := bundle.Bundle{Data: m.data, Manifest: m.manifest, Patch: m.patch}
	if b.Data == nil {
		b.Data = map[string]any{}
	}
	for _, name := range sorted(m.modules) {
		b.Modules = append(b.Modules, bundle.ModuleFile{Path: name, URL: name, Raw: []byte(m.modules[name]),
			Parsed: ast.MustParseModuleWithOpts("package x", ast.ParserOptions{RegoVersion: ast.RegoV1})})
	}
	if m.wasm != nil {
		b.WasmModules = []bundle.WasmModuleFile{{Path: "/policy.wasm", URL: "/policy.wasm", Raw: m.wasm}}
	}
	if m.by != nil {
		config := bundle.NewSigningConfig(m.by.private, m.by.algorithm, "")
		if m.scope != "" {
			config.ClaimsPath = filepath.Join(t.TempDir(), "claims.json")
			require.NoError(t, os.WriteFile(config.ClaimsPath, []byte(fmt.Sprintf(`{"scope": %q}`, m.scope)), 0o600))
		}
		require.NoError(t, b.GenerateSignature(config, m.keyID, true))
		b.Signatures.Plugin = ""
	}
	if m.after != nil {
		m.after(&b)
	}
	var out bytes.Buffer
	require.NoError(t, bundle.NewWriter(&out).UseModulePath(true).DisableFormat(true).Write(b))
	return out.Bytes()
}

// good is an unsigned bundle with one rule.
func good(t testing.TB, revision string) []byte {
	t.Helper()
	return made{modules: map[string]string{"/policies/org.rego": rule(revision)}, manifest: bundle.Manifest{Revision: revision}}.archive(t)
}

// tarOf is an archive of entries as they are.
func tarOf(t testing.TB, entries ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	gz := gzip.NewWriter(&out)
	w := tar.NewWriter(gz)
	for _, h := range entries {
		text := rule(h.Name)
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		h.Mode = 0o644
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(text))
		}
		require.NoError(t, w.WriteHeader(&h))
		if h.Typeflag == tar.TypeReg {
			_, err := w.Write([]byte(text))
			require.NoError(t, err)
		}
	}
	require.NoError(t, w.Close())
	require.NoError(t, gz.Close())
	return out.Bytes()
}

// server serves what it is told to over TLS.
type server struct {
	*httptest.Server
	caFile string

	mu      sync.Mutex
	handler http.HandlerFunc
	// asked are the requests.
	asked []*http.Request
}

func newServer(t testing.TB) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, r)
		h := s.handler
		s.mu.Unlock()
		h(w, r)
	}))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	t.Cleanup(s.Close)
	s.caFile = filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	require.NoError(t, os.WriteFile(s.caFile, text, 0o600))
	return s
}

func (s *server) does(h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handler = h
}

// has serves an archive with an ETag, which it heeds.
func (s *server) has(archive []byte, etag string) {
	s.does(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", etag)
		if etag != "" && r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write(archive)
	})
}

func (s *server) says(code int) {
	s.does(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
}

// bench is a store with its clock and its log.
type bench struct {
	t      testing.TB
	config Config
	store  *Store
	clock  time.Time
	log    *bytes.Buffer
}

// newBench has one unsigned bundle "org" at a server.
func newBench(t testing.TB, s *server, change func(*Config)) *bench {
	t.Helper()
	b := &bench{t: t, clock: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC), log: &bytes.Buffer{}}
	b.config = Config{Bundles: []Bundle{{Name: "org", URL: s.URL + "/org.tar.gz"}}, Signatures: Unsigned, CAFile: s.caFile, CacheDir: t.TempDir(),
		Timeout: 5 * time.Second, Now: func() time.Time { return b.clock }, Log: slog.New(slog.NewTextHandler(b.log, nil))}
	if change != nil {
		change(&b.config)
	}
	b.start()
	return b
}

// start opens the store anew, as after a restart.
func (b *bench) start() {
	b.t.Helper()
	store, err := Open(b.config)
	require.NoError(b.t, err)
	b.t.Cleanup(store.Close)
	b.store = store
}

func (b *bench) refresh() Floor {
	b.t.Helper()
	b.store.Refresh(context.Background())
	return b.store.Floor()
}

// revision is the one in force by the fact, "" if it has an error.
func revision(f Floor) string { return string(f.Facts["bundle.org"].Value) }

// holds are the problems of the policies in force: none, or every raise waits.
func holds(f Floor) []parse.Problem {
	return policy.Compile(policy.Config{Floor: f.Layers}).Problems()
}

func sorted(m map[string]string) []string {
	return slices.Sorted(maps.Keys(m))
}

func inProcess(cfg policy.Config) []parse.Problem { return policy.Compile(cfg).Problems() }
