package git

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/gittest"
)

// way is one transport to a repository.
type way struct {
	name string
	url  string
	auth Auth
	// filter are the settings that a server needs to leave blobs out.
	filter []string
	tips   bool // as Config.Tips
}

// ways serves a repository over every transport.
func ways(t *testing.T, r *gittest.Repo) []way {
	t.Helper()
	plain := gittest.ServeHTTP(t, r, gittest.HTTPConfig{})
	basic := gittest.ServeHTTP(t, r, gittest.HTTPConfig{User: DefaultTokenUser, Password: "s3cret"})
	tls := gittest.ServeHTTP(t, r, gittest.HTTPConfig{User: "bot", Password: "s3cret", TLS: true})
	ssh := gittest.ServeSSH(t)
	return []way{
		{name: "file", url: r.URL()},
		{name: "http", url: plain.URL},
		{name: "http with token", url: basic.URL, auth: Auth{Password: SecretValue("s3cret")}},
		{name: "https", url: tls.URL, auth: Auth{User: "bot", Password: SecretValue("s3cret"), CAFile: tls.CAFile}},
		{name: "ssh", url: ssh.URL(r), auth: Auth{SSHKey: SecretFile(ssh.KeyFile), KnownHosts: ssh.KnownHostsFile}},
		{name: "http, partial", url: plain.URL, filter: []string{"allowFilter"}},
		{name: "ssh, partial", url: ssh.URL(r), auth: Auth{SSHKey: SecretFile(ssh.KeyFile), KnownHosts: ssh.KnownHostsFile},
			filter: []string{"allowFilter", "allowReachableSHA1InWant"}},
	}
}

// onEveryWay runs a test over each transport, each with a repository of its own, beside each other: most of their time
// they wait.
func onEveryWay(t *testing.T, test func(t *testing.T, r *gittest.Repo, w way)) {
	for i, name := range []string{"file", "http", "http with token", "https", "ssh", "http, partial", "ssh, partial"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := gittest.NewBareRepo(t)
			w := ways(t, r)[i]
			require.Equal(t, name, w.name)
			for _, setting := range w.filter {
				r.Git("config", "uploadpack."+setting, "true")
			}
			test(t, r, w)
		})
	}
}

// logs collects log lines.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logs) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func openAt(t testing.TB, dir string, w way) *Mirror {
	t.Helper()
	m, err := Open(Config{URL: w.url, Dir: dir, Auth: w.auth, Tips: w.tips, Log: (&logs{}).logger()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = m.Close() }) // the test may have closed it
	return m
}

func openMirror(t testing.TB, w way) *Mirror {
	t.Helper()
	return openAt(t, t.TempDir(), w)
}

func openFile(t testing.TB, r *gittest.Repo) *Mirror {
	t.Helper()
	return openMirror(t, way{name: "file", url: r.URL()})
}

func fetch(t testing.TB, m *Mirror, branch string) Tip {
	t.Helper()
	tip, err := m.Fetch(t.Context(), branch)
	require.NoError(t, err)
	return tip
}

// moveOf says how a tip stands to the one that the mirror knew before.
func moveOf(tip Tip) string {
	switch {
	case tip.Previous.IsZero():
		return "first"
	case tip.Previous == tip.Commit:
		return "none"
	case tip.Rewritten:
		return "rewritten"
	case tip.Before == tip.Previous: // it may be
		return "unknown"
	}
	return "forward"
}

var bot = Signature{Name: "Rampart", Email: "rampart@example.com", When: time.Date(2026, 5, 6, 7, 8, 9, 0, time.FixedZone("", 2*60*60))}

// request commits changes on top of a tip.
func commitOn(tip Tip, changes ...Change) CommitRequest {
	return CommitRequest{
		Branch: tip.Branch, Parent: tip.Commit, BaseTree: tip.Tree, Changes: changes,
		Message: "rampart: change\n\nRampart-Spec: sha256:0", Author: bot, Committer: bot,
	}
}

func stage(t testing.TB, m *Mirror, req CommitRequest) *Staged {
	t.Helper()
	s, err := m.Stage(req)
	require.NoError(t, err)
	return s
}

func put(path, data string) Change { return Change{Path: path, Data: []byte(data)} }

func del(path string) Change { return Change{Path: path, Delete: true} }

// readAll gives every file below a tree in the notation of gittest.Repo.Files.
func readAll(t testing.TB, m *Mirror, tree Hash) map[string]string {
	t.Helper()
	files := map[string]string{}
	var blobs []Hash
	require.NoError(t, m.Diff(Hash{}, tree, func(_ string, e Entry) error {
		if e.Mode != ModeSubmodule {
			blobs = append(blobs, e.Hash)
		}
		return nil
	}))
	require.NoError(t, m.Bring(t.Context(), blobs))
	err := m.Diff(Hash{}, tree, func(path string, e Entry) error {
		if e.Mode == ModeSubmodule {
			files[path] = "@ " + e.Hash.String()
			return nil
		}
		data, err := m.Blob(e.Hash, 1<<20)
		files[path] = map[Mode]string{ModeSymlink: "-> ", ModeExecutable: "* "}[e.Mode] + string(data)
		return err
	})
	require.NoError(t, err)
	return files
}

// diffOf gives what Diff visits, one line each.
func diffOf(t testing.TB, m *Mirror, old, now Hash) []string {
	t.Helper()
	var lines []string
	require.NoError(t, m.Diff(old, now, func(path string, e Entry) error {
		if e.Hash.IsZero() {
			lines = append(lines, "- "+path)
			return nil
		}
		lines = append(lines, fmt.Sprintf("+ %s %06o", path, uint32(e.Mode)))
		return nil
	}))
	return lines
}

func requireSame(t testing.TB, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Staged{})); d != "" {
		require.Fail(t, "different (-want +got)", d)
	}
}

// manyFiles makes a repository as the bot keeps it.
func manyFiles(deployments int) map[string]string {
	files := map[string]string{}
	for i := range deployments {
		dir := fmt.Sprintf("workers/team-%02d/app-%04d/", i%20, i)
		files[dir+"worker.yaml"] = spec(i, 1)
		for v := range 3 {
			files[fmt.Sprintf("%srendered/v%d.yaml", dir, v)] = strings.Repeat(fmt.Sprintf("line of app %d version %d\n", i, v), 80)
		}
	}
	return files
}

func spec(app, version int) string {
	return fmt.Sprintf("kind: TemporalWorkerDeployment\nname: app-%d\nimage: app:v%d\n", app, version) +
		strings.Repeat("some: thing\n", 35)
}

// soon bounds what a test waits for.
func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func hashOf(hex string) Hash { return plumbing.NewHash(hex) }
