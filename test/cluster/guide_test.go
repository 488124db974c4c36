package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// guide is somebody who follows a guide in docs, block by block, in a folder.
type guide struct {
	t      *testing.T
	name   string
	blocks []step
	dir    string
	env    []string
	// elsewhere replaces what a guide has by what the test has, such as the repository's address.
	elsewhere *strings.Replacer
}

// step is a block of a guide: commands, or with a name a file.
type step struct{ file, text string }

var steps = regexp.MustCompile("(?s)```(?:console|yaml file=(\\S+))\n(.*?)```")

func readGuide(t *testing.T, name string) []step {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	require.NoError(t, err)
	var out []step
	for _, block := range steps.FindAllStringSubmatch(string(page), -1) {
		out = append(out, step{block[1], block[2]})
	}
	require.NotEmpty(t, out)
	return out
}

// follow writes the files that come next, runs the commands of the block after them, and compares what they print with
// what the block has. Each line of it has to come, in that order, and a line "..." stands for any lines. A command
// fails only where "$ echo $?" comes next; cd counts for all that follow.
func (g *guide) follow() {
	g.t.Helper()
	for ; len(g.blocks) > 0 && g.blocks[0].file != ""; g.blocks = g.blocks[1:] {
		file := filepath.Join(g.dir, g.blocks[0].file)
		require.NoError(g.t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(g.t, os.WriteFile(file, []byte(g.elsewhere.Replace(g.blocks[0].text)), 0o600))
	}
	require.NotEmpty(g.t, g.blocks, "%s has no more blocks", g.name)
	block := g.blocks[0].text
	g.blocks = g.blocks[1:]
	code := 0
	commands := strings.Split("\n"+block, "\n$ ")[1:]
	for i, part := range commands {
		command, want, _ := strings.Cut(part, "\n")
		if command == "echo $?" {
			require.Equal(g.t, strings.TrimSpace(want), map[int]string{0: "0", 1: "1", 2: "2"}[code], command)
			continue
		}
		if dir, ok := strings.CutPrefix(command, "cd "); ok {
			g.dir = filepath.Join(g.dir, dir)
			continue
		}
		var said string
		said, code = g.run(g.elsewhere.Replace(command))
		if i+1 == len(commands) || !strings.HasPrefix(commands[i+1], "echo $?") {
			require.Zero(g.t, code, "%s: %s\n%s", g.name, command, said)
		}
		g.compare(command, g.elsewhere.Replace(want), said)
	}
}

func (g *guide) compare(command, want, said string) {
	g.t.Helper()
	spaces := regexp.MustCompile(` +`) // of columns, which are as wide as what is in them
	rest := spaces.ReplaceAllString(said, " ")
	for line := range strings.Lines(want) {
		line = strings.TrimSpace(spaces.ReplaceAllString(line, " "))
		if line == "..." || line == "" {
			continue
		}
		at := strings.Index(rest, line)
		require.GreaterOrEqual(g.t, at, 0, "%s: after %s:\nwant %s\nin   %s", g.name, command, line, said)
		rest = rest[at+len(line):]
	}
}

func (g *guide) run(command string) (said string, code int) {
	g.t.Helper()
	cmd := exec.CommandContext(g.t.Context(), "bash", "-c", "set -o pipefail; "+command)
	cmd.Dir, cmd.Env = g.dir, g.env
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		require.NoError(g.t, err)
	}
	g.t.Logf("$ %s\n%s", command, out)
	return string(out), cmd.ProcessState.ExitCode()
}

// done says that the guide is over.
func (g *guide) done() {
	g.t.Helper()
	require.Empty(g.t, g.blocks, "%s was not followed to its end", g.name)
}

// guide is a reader in a clone of the delivery's repository.
func (d *delivery) guide(name string) *guide {
	d.t.Helper()
	home := d.t.TempDir()
	g := &guide{t: d.t, name: name, blocks: readGuide(d.t, filepath.Join("guides", name)), dir: filepath.Join(home, "workers"),
		elsewhere: strings.NewReplacer("https://git.example.com/platform/workers.git", d.host.authenticated()),
		env: append(os.Environ(), "HOME="+home, "KUBECONFIG="+d.server.Kubeconfig, "XDG_CACHE_HOME="+filepath.Join(home, "cache"),
			"PATH="+filepath.Dir(d.file)+":"+filepath.Dir(program(d.t, "kubectl"))+":"+os.Getenv("PATH"),
			"GIT_AUTHOR_NAME=Ada Park", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_COMMITTER_NAME=Ada Park", "GIT_COMMITTER_EMAIL=ada@example.com", "RAMPART_AUTHOR=Ada Park", "RAMPART_EMAIL=ada@example.com")}
	d.git("clone", "-q", d.host.authenticated(), g.dir)
	return g
}
