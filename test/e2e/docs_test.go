package e2e

import (
	"bytes"
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/logtest"
	"github.com/rampart-gitops/rampart/test/temporalenv"
)

const repositoryRoot = "../.."

// pages are all documents for users.
func pages(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, pattern := range []string{"README.md", "docs/*.md", "examples/*/README.md"} {
		names, err := filepath.Glob(filepath.Join(repositoryRoot, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, names, pattern)
		for _, name := range names {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			out[strings.TrimPrefix(name, repositoryRoot+"/")] = string(text)
		}
	}
	return out
}

var (
	prompt = regexp.MustCompile(`(?m)^ *\$ ((?:.*\\\n)*.*)$`)
	inline = regexp.MustCompile("`(rampart [^`]+)`")
	// said are the command lines by which a person says something: each leaves the world another one.
	said = regexp.MustCompile(`^rampart (rollback|hold|resume|retry|approve|reject|retire|adopt|release) `)
	// clustered are those that need a Kubernetes cluster: test/cluster runs them.
	clustered = regexp.MustCompile(`^rampart (crds --install|doctor --kubeconfig)|\| kubectl |--kubeconfig `)
	pending   = regexp.MustCompile(`^rampart (plan|wait|simulate)\b`)
	yaml      = regexp.MustCompile("(?s)```yaml\n(.*?)```")
)

// commandLines are the command lines of a page that begin with rampart, once each.
func commandLines(page string) []string {
	var out []string
	seen := map[string]bool{}
	for _, pattern := range []*regexp.Regexp{prompt, inline} {
		for _, m := range pattern.FindAllStringSubmatch(page, -1) {
			line := strings.Join(strings.Fields(strings.ReplaceAll(m[1], "\\\n", " ")), " ")
			if strings.HasPrefix(line, "rampart ") && !seen[line] {
				seen[line] = true
				out = append(out, line)
			}
		}
	}
	return out
}

// A newcomer follows the README in a repository of their own; then every command line of every page is run there.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	documents := pages(t)
	repo := gittest.NewBareRepo(t)
	_, err := server.Namespace(t.Context(), "payments")
	require.NoError(t, err)
	fleet := temporalenv.NewFleet(temporalenv.FleetConfig{Images: map[string]temporalenv.Image{
		"registry.example.com/checkout:v1.0.0": temporalenv.DefaultImage("checkout")}})
	t.Cleanup(fleet.Close)
	watching, stop := context.WithCancel(context.Background())
	watched := make(chan error, 1)
	go func() {
		watched <- fleet.Watch(watching, temporalenv.Source{Repo: repo.Dir, Branch: "main", Path: "deploy"})
	}()
	t.Cleanup(func() { stop(); <-watched })

	specs := map[string]string{}
	for _, m := range yaml.FindAllStringSubmatch(dedent(documents["README.md"]), -1) {
		if strings.Contains(m[1], "temporal.io/v1alpha1") {
			specs["workers/all.yaml"] = strings.ReplaceAll(m[1], "temporal-frontend.temporal:7233", server.Address())
		}
	}
	require.Contains(t, specs["workers/all.yaml"], "kind: TemporalWorkerDeployment")
	repo.Commit(gittest.Commit{Write: specs, Message: "as the README has it"})

	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "token"), []byte("none"), 0o600))
	replace := strings.NewReplacer(
		"https://git.example.com/platform/workers.git", repo.URL(), "temporal.example.com:7233", server.Address(),
		"…", repo.URL(), "-C clone", "-C "+filepath.Join(dir, "clone"), "NAMESPACE/NAME", "payments/checkout",
		"examples/", absolute(t, filepath.Join(repositoryRoot, "examples"))+"/")
	shell := func(ctx context.Context, line string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "sh", "-c", "exec "+replace.Replace(line))
		cmd.WaitDelay = 10 * time.Second
		cmd.Env = append(os.Environ(), "HOME="+dir, "NO_COLOR=1", "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"),
			"RAMPART_TEMPORAL_ADDRESS="+server.Address(), "RAMPART_INTERVAL=250ms")
		cmd.Dir = dir
		return cmd
	}

	var log logtest.Buffer
	bot := shell(t.Context(), theOnly(t, commandLines(documents["README.md"]), "rampart run "))
	bot.Stdout, bot.Stderr = &log, &log
	require.NoError(t, bot.Start())
	t.Cleanup(func() {
		_ = bot.Process.Signal(syscall.SIGTERM)
		_ = bot.Wait()
		if t.Failed() {
			t.Logf("bot:\n%s", &log)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, temporalenv.Until(ctx, func(context.Context) error {
		clone := filepath.Join(dir, "clone")
		if err := os.RemoveAll(clone); err != nil {
			return err
		}
		repo.Git("clone", "-q", repo.Dir, clone)
		out, err := shell(ctx, "rampart wait -C clone payments/checkout --for=condition=Ready --timeout 1s").CombinedOutput()
		if err != nil {
			return &exec.Error{Name: string(out), Err: err}
		}
		return nil
	}))

	ran := 0
	for page, text := range documents {
		for _, line := range commandLines(text) {
			if strings.HasPrefix(line, "rampart run") && !strings.Contains(line, "--once") {
				continue // the bot that runs all the while
			}
			if said.MatchString(line) || clustered.MatchString(line) {
				continue // after the others, or elsewhere
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			t.Cleanup(cancel)
			cmd := shell(ctx, line)
			cmd.Env = append(cmd.Env, "RAMPART_CACHE_DIR="+t.TempDir())
			if !strings.Contains(line, " -C ") {
				cmd.Dir = filepath.Join(dir, "clone")
			}
			if strings.HasPrefix(line, "rampart run --once") || strings.HasPrefix(line, "rampart observe") && !strings.Contains(line, "--repo") {
				cmd.Args[2] += " --repo " + repo.URL()
			}
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			err := cmd.Run()
			if pending.MatchString(line) && cmd.ProcessState.ExitCode() == 2 {
				err = nil
			}
			require.NoError(t, err, "%s: %s\n%s", page, line, &out)
			ran++
		}
	}
	require.Greater(t, ran, 8)

	spoken := 0
	for _, page := range slices.Sorted(maps.Keys(documents)) {
		for _, line := range commandLines(documents[page]) {
			if !said.MatchString(line) {
				continue
			}
			line = strings.ReplaceAll(line, "BUILD", "v0.9.0-00000000")
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			t.Cleanup(cancel)
			cmd := shell(ctx, line)
			cmd.Env = append(cmd.Env, "RAMPART_CACHE_DIR="+t.TempDir(), "RAMPART_REPO="+repo.URL(), "RAMPART_AUTHOR=ada")
			cmd.Dir = filepath.Join(dir, "clone")
			out, err := cmd.CombinedOutput()
			switch {
			case strings.HasPrefix(line, "rampart rollback"):
				require.Regexp(t, "can take its traffic|names no build now", string(out), "%s: %s", page, line) // the pages before had it retired
			case strings.HasPrefix(line, "rampart approve"), strings.HasPrefix(line, "rampart reject"):
				require.Contains(t, string(out), "waits for approval", "%s: %s", page, line)
			case strings.Contains(line, "--version"):
				require.Contains(t, string(out), "has no version", "%s: %s", page, line)
			default:
				require.NoError(t, err, "%s: %s\n%s", page, line, out)
			}
			spoken++
		}
	}
	require.Greater(t, spoken, 8)
}

// dedent moves fenced blocks within lists to the left.
func dedent(text string) string { return regexp.MustCompile(`(?m)^ {3}`).ReplaceAllString(text, "") }

func theOnly(t *testing.T, lines []string, prefix string) string {
	t.Helper()
	for _, line := range lines {
		if strings.HasPrefix(line, prefix) {
			return line
		}
	}
	t.Fatalf("no command line begins with %q", prefix)
	return ""
}

func absolute(t *testing.T, name string) string {
	t.Helper()
	out, err := filepath.Abs(name)
	require.NoError(t, err)
	return out
}
