package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/testneed"
)

// mostExposed is how exposed systemd may find the service, in tenths: 100 is a service without any protection. What is
// left is that it talks to the network.
const mostExposed = "15"

// The unit of systemd is one without warnings, with the settings of the page beside it, and is hardly exposed. The
// variables of its environment file are those of flags, and doctor runs by them as the page says.
func TestSystemdUnitIsAsThePageSays(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		testneed.Missing(t, "no systemd-analyze: install systemd")
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "install.md"))
	require.NoError(t, err)
	unit, err := os.ReadFile(filepath.Join("..", "..", "install", "systemd", "rampart.service"))
	require.NoError(t, err)
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	analyze := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), "systemd-analyze", append([]string{"--no-pager"}, args...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	require.Contains(t, string(unit), "ExecStart=/usr/local/bin/rampart run\n")
	program, err := exec.LookPath("rampart")
	require.NoError(t, err)
	file := write("rampart.service", strings.Replace(string(unit), "/usr/local/bin/rampart", program, 1)) // which has to be there
	require.Empty(t, analyze("verify", "--man=no", "--recursive-errors=no", file))
	analyze("security", "--offline=true", "--threshold="+mostExposed, file)

	calls := map[string]bool{}
	for _, line := range regexp.MustCompile(`(?m)^SystemCallFilter=(~?)(.*)$`).FindAllStringSubmatch(string(unit), -1) {
		for _, name := range strings.Fields(line[2]) {
			for _, call := range systemCalls(name, analyze) {
				calls[call] = line[1] == ""
			}
		}
	}
	require.True(t, calls["prlimit64"], "the processes of policies bound their own memory")
	require.True(t, calls["execve"])
	require.False(t, calls["setpriority"])

	dropIn := regexp.MustCompile("(?s)```ini\n(.*?)```").FindSubmatch(page)
	require.NotNil(t, dropIn)
	write("rampart.service.d/override.conf", string(dropIn[1]))
	require.Empty(t, analyze("verify", "--man=no", "--recursive-errors=no", file))

	environment, err := os.ReadFile(filepath.Join("..", "..", "install", "systemd", "rampart.env"))
	require.NoError(t, err)
	secrets := []string{"RAMPART_TEMPORAL_API_KEY", "RAMPART_GIT_TOKEN", "RAMPART_WEBHOOK_SECRET"} // which have no flags
	flags := map[string]bool{}
	run, _, err := newRoot(&cmdutil.App{}).Find([]string{"run"})
	require.NoError(t, err)
	run.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) { flags[cmdutil.VariableOf(f.Name)] = true })
	for _, f := range []string{"allowed-namespaces"} { // of all commands
		require.NotNil(t, newRoot(&cmdutil.App{}).PersistentFlags().Lookup(f))
		flags[cmdutil.VariableOf(f)] = true
	}
	for _, secret := range secrets {
		flags[secret] = true
	}
	variables := regexp.MustCompile(`(?m)^#?(RAMPART_\w+)=`).FindAllStringSubmatch(string(environment), -1)
	require.GreaterOrEqual(t, len(variables), 8)
	for _, v := range variables {
		require.True(t, flags[v[1]], "%s is the variable of no flag of rampart run", v[1])
	}

	repo := gittest.NewBareRepo(t)
	repo.Commit(gittest.Commit{Write: map[string]string{"README.md": "no specs yet"}})
	env := write("rampart.env", strings.Replace(string(environment), "https://git.example.com/platform/workers.git", repo.URL(), 1))
	script := ""
	for lines := bufio.NewScanner(strings.NewReader(string(page))); lines.Scan(); {
		if command, ok := strings.CutPrefix(lines.Text(), "$ sudo sh -c"); ok {
			script = "sh -c" + strings.ReplaceAll(command, "/etc/rampart/rampart.env", env)
		}
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", script)
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+dir)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "can be read")
}

// systemCalls are those of a set such as @system-service, or the one of that name.
func systemCalls(name string, analyze func(...string) string) (calls []string) {
	if !strings.HasPrefix(name, "@") {
		return []string{name}
	}
	for _, line := range strings.Split(analyze("syscall-filter", name), "\n")[1:] {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			calls = append(calls, systemCalls(line, analyze)...)
		}
	}
	return calls
}
