package bench

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/gittest"
)

// native does with git's plumbing what the bot does, as quickly as a script can: one process for all objects of a kind.
// What the script itself takes is not counted, and the contents are given.
type native struct {
	tb  testing.TB
	url string
	dir string // the bare repository
	cpu time.Duration
	out []string // files with the contents to write
}

// cost is what something took.
type cost struct{ wall, cpu time.Duration }

func (n *native) git(input []byte, args ...string) string {
	n.tb.Helper()
	cmd := exec.Command("git", args...)
	cmd.Env = gittest.Env()
	cmd.Dir = n.dir
	cmd.Stdin = bytes.NewReader(input)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(n.tb, err, "git %s: %s", strings.Join(args, " "), stderr.String())
	n.cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return string(out)
}

// measured runs something and says what git's processes took.
func (n *native) measured(do func()) cost {
	n.cpu = 0
	start := time.Now()
	do()
	return cost{time.Since(start), n.cpu}
}

// clone makes a bare clone of the last commit.
func (n *native) clone() {
	n.tb.Helper()
	n.dir = n.tb.TempDir()
	n.git(nil, "clone", "--quiet", "--bare", "--depth=1", "--single-branch", "--branch=main", n.url, "bare")
	n.dir = filepath.Join(n.dir, "bare")
}

// prepare writes contents to disk, as what renders them would hand them over.
func (n *native) prepare(write map[string]string) {
	n.tb.Helper()
	dir := n.tb.TempDir()
	n.out = n.out[:0]
	for i, p := range sortedKeys(write) {
		name := filepath.Join(dir, fmt.Sprintf("%06d", i))
		require.NoError(n.tb, os.WriteFile(name, []byte(write[p]), 0o600))
		n.out = append(n.out, name)
	}
}

// specs reads all specs at a commit.
func (n *native) specs(rev string) {
	n.tb.Helper()
	var blobs []string
	for line := range strings.Lines(n.git(nil, "ls-tree", "-r", rev, "workers/")) {
		blobs = append(blobs, strings.Fields(line)[2])
	}
	n.git([]byte(strings.Join(blobs, "\n")+"\n"), "cat-file", "--batch")
}

// fetchChanged fetches, and reads what changed.
func (n *native) fetchChanged(old string) (tip string) {
	n.tb.Helper()
	n.git(nil, "fetch", "--quiet", "--no-tags", "origin", "+main:refs/heads/main")
	tip = strings.TrimSpace(n.git(nil, "rev-parse", "refs/heads/main"))
	var blobs []string
	for line := range strings.Lines(n.git(nil, "diff-tree", "-r", old, tip, "--", "workers")) {
		blobs = append(blobs, strings.Fields(line)[3])
	}
	n.git([]byte(strings.Join(blobs, "\n")+"\n"), "cat-file", "--batch")
	return tip
}

// push writes files on top of a commit: prepare has their contents.
func (n *native) push(tip string, write map[string]string) string {
	n.tb.Helper()
	blobs := strings.Fields(n.git([]byte(strings.Join(n.out, "\n")+"\n"), "hash-object", "-w", "--stdin-paths"))
	files := map[string]string{}
	for i, p := range sortedKeys(write) {
		files[p] = blobs[i]
	}
	tree := n.trees(tip, files)
	commit := strings.TrimSpace(n.git([]byte("written\n"), "commit-tree", tree, "-p", tip))
	// What is larger than its buffer git sends in chunks, which CGI has no way to pass on.
	n.git(nil, "-c", "http.postBuffer=1073741824", "push", "--quiet", "origin", commit+":refs/heads/main")
	n.git(nil, "update-ref", "refs/heads/main", commit)
	return commit
}

// follow gives what git does about a change by somebody else on top of a tip, and of what it pushed since.
func (n *native) follow(tip string) func(change, map[string]string) (string, cost) {
	return func(_ change, write map[string]string) (pushed string, took cost) {
		n.prepare(write)
		took = n.measured(func() { pushed = n.push(n.fetchChanged(tip), write) })
		tip = pushed
		return pushed, took
	}
}

// trees makes the trees that hold the blobs: all that exist are read by one process, and those of a level made by one.
func (n *native) trees(tip string, blobs map[string]string) string {
	n.tb.Helper()
	edits := map[string]map[string]string{} // lines of mktree by name, by directory
	add := func(p, line string) {
		dir := path.Dir(p)
		if edits[dir] == nil {
			edits[dir] = map[string]string{}
		}
		edits[dir][path.Base(p)] = line
	}
	dirs := map[string]bool{".": true}
	for p, blob := range blobs {
		add(p, "100644 blob "+blob)
		for d := path.Dir(p); d != "."; d = path.Dir(d) {
			dirs[d] = true
		}
	}
	all := sortedKeys(dirs)
	was := n.readTrees(tip, all)
	byDepth := map[int][]string{}
	deepest := 0
	for _, d := range all {
		depth := 0
		if d != "." {
			depth = 1 + strings.Count(d, "/")
		}
		byDepth[depth] = append(byDepth[depth], d)
		deepest = max(deepest, depth)
	}
	var made []string
	for depth := deepest; depth >= 0; depth-- {
		var in strings.Builder
		for _, d := range byDepth[depth] {
			entries := was[d]
			for name, line := range edits[d] {
				entries[name] = line
			}
			for _, name := range sortedKeys(entries) {
				in.WriteString(entries[name] + "\t" + name + "\n")
			}
			in.WriteString("\n")
		}
		// The objects are there, or on the server.
		made = strings.Fields(n.git([]byte(in.String()), "mktree", "--batch", "--missing"))
		for i, d := range byDepth[depth] {
			if d != "." {
				add(d, "040000 tree "+made[i])
			}
		}
	}
	return made[0]
}

// readTrees gives the entries of directories as lines of mktree, none for those that do not exist.
func (n *native) readTrees(tip string, dirs []string) map[string]map[string]string {
	n.tb.Helper()
	var in strings.Builder
	for _, d := range dirs {
		if d == "." {
			d = ""
		}
		in.WriteString(tip + ":" + d + "\n")
	}
	out := []byte(n.git([]byte(in.String()), "cat-file", "--batch"))
	trees := map[string]map[string]string{}
	for _, d := range dirs {
		head, rest, _ := bytes.Cut(out, []byte("\n"))
		trees[d] = map[string]string{}
		if bytes.HasSuffix(head, []byte(" missing")) {
			out = rest
			continue
		}
		var size int
		_, err := fmt.Sscan(strings.Fields(string(head))[2], &size)
		require.NoError(n.tb, err)
		for data := rest[:size]; len(data) > 0; {
			meta, after, _ := bytes.Cut(data, []byte{0})
			mode, name, _ := strings.Cut(string(meta), " ")
			kind := map[string]string{"40000": "tree", "160000": "commit"}[mode]
			if kind == "" {
				kind = "blob"
			}
			trees[d][name] = fmt.Sprintf("%06s %s %s", mode, kind, hex.EncodeToString(after[:20]))
			data = after[20:]
		}
		out = rest[size+1:]
	}
	return trees
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
