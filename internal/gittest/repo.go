// Package gittest runs real Git servers on loopback for tests: bare repositories on disk, git
// http-backend behind net/http, and sshd. It needs git, and sshd (Debian: openssh-server) for ServeSSH;
// a test that cannot have them fails and says so.
//
// Everything lives in the test's temporary directory and ends with the test. Git runs without the
// user's and the system's configuration. A Repo may be used by several goroutines.
package gittest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
)

// Repo is a bare repository that refuses bad objects.
type Repo struct {
	Dir string
	tb  testing.TB
}

// Epoch is the time of the first commit that Commit makes unless told otherwise.
var Epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// NewBareRepo makes an empty bare repository with default branch main, in a directory "repo.git".
func NewBareRepo(tb testing.TB) *Repo {
	tb.Helper()
	dir := filepath.Join(tb.TempDir(), "repo.git")
	r := &Repo{Dir: dir, tb: tb}
	run(tb, nil, "git", "init", "--quiet", "--bare", "--template=", "--initial-branch=main", dir)
	if err := os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o600); err != nil {
		tb.Fatal(err)
	}
	return r
}

// config is that of each repository: a file, since git would start once for each line of it.
const config = `[core]
	repositoryformatversion = 0
	filemode = true
	bare = true
	logAllRefUpdates = true
[http]
	receivepack = true
[receive]
	fsckObjects = true
	autogc = false
[gc]
	auto = 0
`

// OpenRepo looks at a bare repository that is there already.
func OpenRepo(tb testing.TB, dir string) *Repo { return &Repo{Dir: dir, tb: tb} }

// URL is the repository's file:// URL.
func (r *Repo) URL() string { return "file://" + r.Dir }

// Git runs git on the repository and gives its output without line ends at its end. A failure ends the test.
func (r *Repo) Git(args ...string) string {
	r.tb.Helper()
	return r.GitInput(nil, args...)
}

// GitInput is Git with something on standard input.
func (r *Repo) GitInput(input []byte, args ...string) string {
	r.tb.Helper()
	return run(r.tb, input, "git", append([]string{"--git-dir", r.Dir}, args...)...)
}

// Try is Git where a failure is an answer: what it wrote to its output, and whether it succeeded.
func (r *Repo) Try(args ...string) (string, bool) {
	out, err := command("git", append([]string{"--git-dir", r.Dir}, args...)...).Output()
	return strings.TrimRight(string(out), "\n"), err == nil
}

// Fsck fails the test when git finds anything wrong with the repository.
func (r *Repo) Fsck() {
	r.tb.Helper()
	r.Git("fsck", "--strict", "--full", "--no-dangling")
}

// Tip is the commit that a branch points to.
func (r *Repo) Tip(branch string) string {
	r.tb.Helper()
	tip := r.TipOrNone(branch)
	if tip == "" {
		r.tb.Fatalf("read branch %q of %s: there is no such branch", branch, r.Dir)
	}
	return tip
}

// TipOrNone is the commit that a branch points to, "" for a branch that does not exist.
func (r *Repo) TipOrNone(branch string) string {
	r.tb.Helper()
	tip, err := Tip(r.Dir, branch)
	if err != nil {
		r.tb.Fatal(err)
	}
	return tip
}

// Tip is the commit that a branch of the bare repository in dir points to, "" for a branch that does not exist. It
// starts no process, so that a test can ask many times a second while it waits.
func Tip(dir, branch string) (string, error) {
	if _, err := os.Stat(filepath.Join(dir, "HEAD")); err != nil {
		return "", fmt.Errorf("read branch %q: %w", branch, err)
	}
	ref, err := dotgit.New(osfs.New(dir)).Ref(plumbing.NewBranchReferenceName(branch))
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read branch %q of %s: %w", branch, dir, err)
	}
	return ref.Hash().String(), nil
}

// Files gives the content of every file at a commit or branch, by path. Symbolic links give their
// target with "-> " before it, submodules their commit with "@ ", executable files are marked with "* ".
func (r *Repo) Files(rev string) map[string]string {
	r.tb.Helper()
	files := map[string]string{}
	var paths, hashes, marks []string
	for line := range strings.SplitSeq(r.Git("ls-tree", "-r", "-z", rev), "\x00") {
		if line == "" {
			continue
		}
		meta, path, _ := strings.Cut(line, "\t")
		fields := strings.Fields(meta)
		mark, submodule := map[string]string{"120000": "-> ", "100755": "* "}[fields[0]], fields[0] == "160000"
		if submodule {
			files[path] = "@ " + fields[2]
			continue
		}
		paths, hashes, marks = append(paths, path), append(hashes, fields[2]), append(marks, mark)
	}
	for i, data := range r.Blobs(hashes...) {
		files[paths[i]] = marks[i] + data
	}
	return files
}

// Blobs gives the content of blobs, in their order.
func (r *Repo) Blobs(hashes ...string) []string {
	r.tb.Helper()
	cmd := command("git", "--git-dir", r.Dir, "cat-file", "--batch")
	cmd.Stdin = strings.NewReader(strings.Join(hashes, "\n"))
	read, err := cmd.Output()
	if err != nil {
		r.tb.Fatalf("git cat-file --batch: %v", err)
	}
	rest := string(read)
	var out []string
	for _, hash := range hashes {
		head, after, _ := strings.Cut(rest, "\n") // HASH blob SIZE
		fields := strings.Fields(head)
		size, err := strconv.Atoi(fields[len(fields)-1])
		if err != nil || size >= len(after) {
			r.tb.Fatalf("git cat-file --batch: %s: %q", hash, head)
		}
		out, rest = append(out, after[:size]), after[size+1:]
	}
	return out
}

// Commit is what to commit with plain git. The zero value of a field means its default.
type Commit struct {
	Branch  string            // main
	Parent  string            // any revision; the branch's tip. "none" for a commit without parents
	Write   map[string]string // content by path
	Exec    map[string]string // the same, executable
	Links   map[string]string // link target by path
	Modules map[string]string // submodule commit by path
	Delete  []string
	Message string // "change"
	By      string // A Person <person@example.com>
	For     string // who commits it, if that is not who wrote it
	When    time.Time
}

// Commit adds one commit with git fast-import and moves the branch to it, whatever it was. It returns
// the commit's hash.
func (r *Repo) Commit(c Commit) string {
	r.tb.Helper()
	return r.Commits(1, func(int) Commit { return c })
}

// Commits is Commit for each of n commits of one branch, each on top of the one before: the parent is the first one's.
// It starts no more processes than Commit does.
func (r *Repo) Commits(n int, nth func(i int) Commit) string {
	r.tb.Helper()
	first := nth(0)
	branch := orElse(first.Branch, "main")
	ref := "refs/heads/" + branch
	before, from := 0, ""
	if first.When.IsZero() {
		before = r.commits()
	}
	switch tip := r.TipOrNone(branch); first.Parent {
	case "":
		from = tip
	case "none":
		if tip != "" {
			r.Git("update-ref", "-d", ref)
		}
	default:
		from = r.resolve(first.Parent)
	}
	var in bytes.Buffer
	for i := range n {
		c := nth(i)
		if c.When.IsZero() {
			c.When = Epoch.Add(time.Duration(before+i) * time.Minute)
		}
		c.write(&in, ref, from)
		from = "" // the others go on from there
	}
	r.GitInput(in.Bytes(), "fast-import", "--quiet", "--force")
	return r.Tip(branch)
}

// write adds the commit to the input of git fast-import, on top of a commit; from "": of what the branch has by then.
func (c Commit) write(in *bytes.Buffer, ref, from string) {
	author, message := orElse(c.By, "A Person <person@example.com>"), orElse(c.Message, "change")
	fmt.Fprintf(in, "commit %s\nauthor %s %d +0000\ncommitter %s %d +0000\ndata %d\n%s\n", ref, author, c.When.Unix(),
		orElse(c.For, author), c.When.Unix(), len(message), message)
	if from != "" {
		fmt.Fprintf(in, "from %s\n", from)
	}
	for _, path := range c.Delete {
		fmt.Fprintf(in, "D %s\n", path)
	}
	for _, kind := range []struct {
		mode  string
		files map[string]string
	}{{"100644", c.Write}, {"100755", c.Exec}, {"120000", c.Links}} {
		for _, path := range slices.Sorted(maps.Keys(kind.files)) {
			data := kind.files[path]
			fmt.Fprintf(in, "M %s inline %s\ndata %d\n%s\n", kind.mode, path, len(data), data)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(c.Modules)) {
		fmt.Fprintf(in, "M 160000 %s %s\n", c.Modules[path], path)
	}
}

// resolve gives the commit of a revision, or "" for a revision that the repository does not have.
func (r *Repo) resolve(rev string) string {
	out, err := command("git", "--git-dir", r.Dir, "rev-parse", "--quiet", "--verify", rev+"^{commit}").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

func (r *Repo) commits() int {
	return strings.Count(r.Git("rev-list", "--all"), "\n") + 1
}

// Hook installs a server-side hook, a shell script without its first line.
func (r *Repo) Hook(name, script string) {
	r.tb.Helper()
	file := filepath.Join(r.Dir, "hooks", name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		r.tb.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		r.tb.Fatal(err)
	}
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func run(tb testing.TB, input []byte, name string, args ...string) string {
	tb.Helper()
	cmd := command(name, args...)
	cmd.Stdin = bytes.NewReader(input)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, stderr.Bytes())
	}
	return strings.TrimRight(string(out), "\n")
}

// command runs in an environment that does not depend on who runs the tests.
func command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = Env()
	return cmd
}

// Env is the environment that git runs in.
func Env() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C", "TZ=UTC",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=A Person", "GIT_AUTHOR_EMAIL=person@example.com",
		"GIT_COMMITTER_NAME=A Person", "GIT_COMMITTER_EMAIL=person@example.com",
	}
}
