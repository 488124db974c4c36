package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/testneed"
)

const guides = "../../docs/guides"

// inCluster are the guides that need a cluster: test/cluster follows them.
var inCluster = []string{"from-plain-deployments", "from-the-controller", "to-the-controller"}

// TestGuides does what a reader of each guide does, in an empty folder, from top to bottom:
//
//	```LANGUAGE file=NAME   the block is saved under that name, which the text before it says
//	```console              each line after "$ " is run by sh; what follows it is what has to be printed, on both streams. A line
//	                        "..." stands for any lines. A command fails only where "$ echo $?" comes next
//	```diff                 a change of spec in a routing.yaml: both sides have to be fine
//	anything else           has to be a piece of a file of the guide
//
// Then it runs what the CI workflows among the files run of rampart. With -update what is printed is written into the
// guide, where nothing is left out.
func TestGuides(t *testing.T) {
	testneed.Plain(t)
	pages, err := filepath.Glob(filepath.Join(guides, "*.md"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(pages), 6)
	for _, page := range pages {
		name := strings.TrimSuffix(filepath.Base(page), ".md")
		if slices.Contains(inCluster, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(page)
			require.NoError(t, err)
			r := &reader{t: t, page: page, dir: t.TempDir(), lines: strings.Split(string(text), "\n"), files: map[string]string{}}
			r.read()
			r.runWorkflows()
			if *update {
				require.NoError(t, os.WriteFile(page, []byte(strings.Join(r.out, "\n")), 0o644))
			}
		})
	}
}

// reader is somebody who follows a guide.
type reader struct {
	t         *testing.T
	page, dir string
	lines     []string
	// out is the guide as it should be.
	out   []string
	files map[string]string
	// workflows are the names of files with CI workflows.
	workflows []string
	code      int
}

// block is a fenced code block: its content is lines[from:to].
type block struct {
	info     string
	from, to int
}

var fence = regexp.MustCompile("^```([^`]*)$")

func (r *reader) read() {
	prose := 0
	for i := 0; i < len(r.lines); i++ {
		r.out = append(r.out, r.lines[i])
		open := fence.FindStringSubmatch(r.lines[i])
		if open == nil {
			require.False(r.t, strings.HasPrefix(strings.TrimSpace(r.lines[i]), "```"), "%s:%d: a block that is not read: %s", r.page, i+1, r.lines[i])
			continue
		}
		b := block{info: open[1], from: i + 1}
		for b.to = b.from; ; b.to++ {
			require.Less(r.t, b.to, len(r.lines), "%s:%d: the block has no end", r.page, i+1)
			if r.lines[b.to] == "```" {
				break
			}
		}
		r.follow(b, strings.Join(r.lines[prose:i], "\n"))
		r.out = append(r.out, "```")
		i, prose = b.to, b.to+1
	}
}

// follow does what a block says.
func (r *reader) follow(b block, before string) {
	content := r.lines[b.from:b.to]
	language, name, isFile := strings.Cut(b.info, " file=")
	switch {
	case isFile:
		require.Contains(r.t, before, "`"+name+"`", "%s:%d: the text before the block does not say where to save it", r.page, b.from)
		r.save(name, strings.Join(content, "\n")+"\n")
		r.out = append(r.out, content...)
	case language == "console":
		r.console(b)
	case language == "diff":
		r.edit(b)
		r.out = append(r.out, content...)
	default:
		found := slices.ContainsFunc(slicesOf(r.files), func(text string) bool { return holds(text, content) })
		require.True(r.t, found, "%s:%d: the block is no piece of a file above it", r.page, b.from)
		r.out = append(r.out, content...)
	}
}

// edit checks a change of what the bot wrote: the reader cannot have it, so it is not applied.
func (r *reader) edit(b block) {
	for _, side := range []string{"-", "+"} {
		routing := "apiVersion: rampart.dev/v1alpha1\nkind: Routing\nmetadata: {name: checkout, namespace: payments}\nspec:\n" +
			"  workerDeployment: payments/checkout\n  temporalNamespace: payments\n  specPath: workers/checkout.yaml\n  versions: []\n"
		for _, line := range r.lines[b.from:b.to] {
			if rest, ok := strings.CutPrefix(line, " "); ok {
				routing += rest + "\n"
			} else if rest, ok := strings.CutPrefix(line, side); ok {
				routing += rest + "\n"
			}
		}
		_, problems := v1alpha1.Decode("routing.yaml", []byte(routing))
		require.Empty(r.t, problems, "%s:%d: the %s side of the change:\n%s", r.page, b.from, side, routing)
	}
}

func (r *reader) save(name, text string) {
	r.files[name] = text
	file := filepath.Join(r.dir, name)
	require.NoError(r.t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(r.t, os.WriteFile(file, []byte(text), 0o644))
	if strings.Contains(name, "workflows/") || strings.Contains(name, "gitlab-ci") {
		r.workflows = append(r.workflows, name)
	}
}

func slicesOf(files map[string]string) []string {
	var out []string
	for _, text := range files {
		out = append(out, text)
	}
	return out
}

// holds reports whether lines follow each other in a text, all indented by the same.
func holds(text string, lines []string) bool {
	all := strings.Split(text, "\n")
	for i := 0; i+len(lines) <= len(all); i++ {
		indent, same := "", true
		for j, want := range lines {
			if j == 0 {
				var ok bool
				if indent, ok = strings.CutSuffix(all[i], want); !ok || strings.TrimSpace(indent) != "" {
					same = false
					break
				}
			}
			if want != "" && all[i+j] != indent+want {
				same = false
				break
			}
		}
		if same {
			return true
		}
	}
	return false
}

// console runs the commands of a block.
func (r *reader) console(b block) {
	for i := b.from; i < b.to; {
		command, ok := strings.CutPrefix(r.lines[i], "$ ")
		require.True(r.t, ok, "%s:%d: a command begins with $", r.page, i+1)
		at := i + 1
		r.out = append(r.out, r.lines[i])
		for i++; strings.HasSuffix(command, "\\"); i++ {
			require.Less(r.t, i, b.to, "%s:%d: the command has no end", r.page, at)
			command += "\n" + r.lines[i]
			r.out = append(r.out, r.lines[i])
		}
		var want []string
		for ; i < b.to && !strings.HasPrefix(r.lines[i], "$ "); i++ {
			want = append(want, r.lines[i])
		}
		asked := i < b.to && r.lines[i] == "$ echo $?"
		r.out = append(r.out, r.command(at, command, want, asked)...)
	}
}

// command runs one command, and gives what is to be shown of what it prints.
func (r *reader) command(line int, command string, want []string, asked bool) []string {
	printed := r.sh(command)
	require.True(r.t, r.code == 0 || asked, "%s:%d: %s: exit code %d, which the guide does not ask for:\n%s", r.page, line, command, r.code, printed)
	got := strings.Split(strings.TrimSuffix(printed, "\n"), "\n")
	if printed == "" {
		got = nil
	}
	if *update && !slices.Contains(want, "...") {
		return got
	}
	require.True(r.t, shows(want, got), "%s:%d: %s\nis to print\n%s\nand prints\n%s", r.page, line, command, strings.Join(want, "\n"), printed)
	return want
}

// sh runs a command as a reader does.
func (r *reader) sh(command string) string {
	cmd := exec.CommandContext(r.t.Context(), "sh", "-c", fmt.Sprintf("(exit %d)\n%s", r.code, command))
	cmd.Dir = r.dir
	cmd.Env = append(gittest.Env(), "PATH="+os.Getenv("PATH"), "HOME="+r.dir, "GITHUB_BASE_REF=main", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME=main")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var ended *exec.ExitError
	r.code = 0
	if errors.As(err, &ended) {
		r.code = ended.ExitCode()
	} else {
		require.NoError(r.t, err)
	}
	return out.String()
}

// shows reports whether what is shown is what is printed; "..." stands for any lines.
func shows(shown, printed []string) bool {
	if len(shown) == 0 {
		return len(printed) == 0
	}
	if shown[0] != "..." {
		return len(printed) > 0 && shown[0] == printed[0] && shows(shown[1:], printed[1:])
	}
	for i := range len(printed) + 1 {
		if shows(shown[1:], printed[i:]) {
			return true
		}
	}
	return false
}

// runWorkflows runs the lines of CI workflows that are about rampart. They have to work in a fresh checkout of a
// change.
func (r *reader) runWorkflows() {
	if len(r.workflows) > 0 {
		r.sh("git init -q -b main && git add -A && git commit -q -m base && git update-ref refs/remotes/origin/main HEAD && git checkout -q -b change")
		require.Zero(r.t, r.code)
	}
	for _, name := range r.workflows {
		var workflow yaml.Node
		require.NoError(r.t, yaml.Unmarshal([]byte(r.files[name]), &workflow))
		var ran int
		for _, command := range scripts(&workflow, nil) {
			if !strings.HasPrefix(command, "rampart ") {
				continue
			}
			printed := r.sh(command)
			require.Zero(r.t, r.code, "%s: %s: %s:\n%s", r.page, name, command, printed)
			ran++
		}
		require.Positive(r.t, ran, "%s: %s runs nothing of rampart", r.page, name)
	}
}

// scripts are the lines below the keys run and script.
func scripts(n *yaml.Node, out []string) []string {
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 && slices.Contains([]string{"run", "script"}, n.Content[i-1].Value) {
			items := child.Content
			if child.Kind == yaml.ScalarNode {
				items = []*yaml.Node{child}
			}
			for _, item := range items {
				out = append(out, strings.Split(strings.TrimSpace(item.Value), "\n")...)
			}
			continue
		}
		out = scripts(child, out)
	}
	return out
}

var link = regexp.MustCompile(`\]\(([^):]+)\)`)

// TestGuideLinks: what the documents link to is there.
func TestGuideLinks(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(guides, "*.md"))
	require.NoError(t, err)
	documents, err := filepath.Glob(filepath.Join(guides, "..", "*.md"))
	require.NoError(t, err)
	decisions, err := filepath.Glob(filepath.Join(guides, "..", "decisions", "*.md"))
	require.NoError(t, err)
	rest, err := filepath.Glob(filepath.Join(guides, "..", "..", "*.md"))
	require.NoError(t, err)
	documents = slices.Concat(documents, decisions, rest)
	for _, page := range append(pages, documents...) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, found := range link.FindAllStringSubmatch(string(text), -1) {
			name, heading, _ := strings.Cut(found[1], "#")
			target := page
			if name != "" {
				target = filepath.Join(filepath.Dir(page), name)
			}
			info, err := os.Stat(target)
			require.NoError(t, err, page)
			if heading == "" || info.IsDir() {
				continue
			}
			there, err := os.ReadFile(target)
			require.NoError(t, err)
			require.Contains(t, headings(string(there)), heading, "%s links to %s", page, found[1])
		}
	}
}

// headings are the anchors of a page.
func headings(page string) []string {
	var out []string
	for line := range strings.SplitSeq(page, "\n") {
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			kept := strings.Map(func(c rune) rune {
				switch {
				case c == ' ':
					return '-'
				case strings.ContainsRune("-_", c), unicode.IsLetter(c), unicode.IsDigit(c):
					return unicode.ToLower(c)
				}
				return -1
			}, title)
			out = append(out, kept)
		}
	}
	return out
}

func TestDotsInShownOutputStandForAnything(t *testing.T) {
	for _, c := range []struct {
		shown, printed string
		want           bool
	}{
		{"", "", true}, {"a", "a", true}, {"a", "b", false}, {"a", "a b", false}, {"...", "", true}, {"...", "a b", true},
		{"a ... d", "a b c d", true}, {"a ... d", "a d", true}, {"a ... d", "a b c", false}, {"... c ...", "a b c d c", true},
		{"... x ...", "a b", false}, {"a ...", "b", false}, {"...", "a", true},
	} {
		require.Equal(t, c.want, shows(strings.Fields(c.shown), strings.Fields(c.printed)), "%+v", c)
	}
}

func TestShownYAMLMayBePartOfAFile(t *testing.T) {
	const text = "a:\n  b:\n    c: 1\n\n    d: 2\n  e: 3\n"
	for piece, want := range map[string]bool{
		"b:\n  c: 1\n\n  d: 2": true, "c: 1": true, "a:\n  b:": true, "b:\n  d: 2": false, "c: 1\nd: 2": false, ": 1": false, "e: 3\nf: 4": false,
	} {
		require.Equal(t, want, holds(text, strings.Split(piece, "\n")), piece)
	}
}
