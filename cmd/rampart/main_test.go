package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/testneed"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) {
	if serve := cmdutil.Confined(); serve != nil { // of a test that is the program itself
		testneed.Main(m, serve)
		return
	}
	testscript.Main(m, map[string]func(){"rampart": main})
}

// TestScripts runs the built-in command. Beside testscript's own commands there are:
//
//	code N COMMAND ARG...            runs a command, which has to exit with code N
//	repo DIR REPO                    commits a folder to branch main of a bare repository, which it makes if need be
//	tree REPO DIR                    makes DIR what branch main of a repository has
//	signal NAME REGEXP N COMMAND...  runs a command, signals it once its standard error matches, and wants exit code N
func TestScripts(t *testing.T) {
	testneed.Plain(t)
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Vars = append(e.Vars, gittest.Env()...)
			e.Setenv("PATH", os.Getenv("PATH"))
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("XDG_CACHE_HOME", filepath.Join(e.WorkDir, ".cache"))
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name != "faults" {
				return false, fmt.Errorf("unknown condition %s", name)
			}
			return writeHooks().Push != nil, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": runForCode, "repo": commitFolder, "tree": checkOut, "signal": runAndSignal,
		},
	})
}

func runForCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N COMMAND ARG...")
	}
	wantCode(ts, args[0], ts.Exec(args[1], args[2:]...))
}

func wantCode(ts *testscript.TestScript, want string, err error) {
	code := 0
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended):
		code = ended.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(code) != want {
		ts.Fatalf("exit code %d, not %s", code, want)
	}
}

func runGit(ts *testscript.TestScript, args ...string) {
	ts.Check(ts.Exec("git", args...))
}

func commitFolder(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: repo DIR REPO")
	}
	dir, repo := ts.MkAbs(args[0]), ts.MkAbs(args[1])
	if _, err := os.Stat(repo); err != nil {
		runGit(ts, "init", "-q", "--bare", "--initial-branch=main", repo)
	}
	work := []string{"--git-dir", repo, "--work-tree", dir}
	runGit(ts, append(work, "add", "-A", ".")...)
	runGit(ts, append(work, "commit", "-q", "--allow-empty", "-m", "change")...)
}

func checkOut(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: tree REPO DIR")
	}
	repo, dir := ts.MkAbs(args[0]), ts.MkAbs(args[1])
	ts.Check(os.RemoveAll(dir))
	ts.Check(os.MkdirAll(dir, 0o755))
	runGit(ts, "--git-dir", repo, "--work-tree", dir, "checkout", "-q", "-f", "main", "--", ".")
}

// watched is the output of a process, and says when it matches.
type watched struct {
	mu     sync.Mutex
	buf    bytes.Buffer
	match  *regexp.Regexp
	found  chan struct{}
	closed bool
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.buf.Write(p)
	if !w.closed && w.match.Match(w.buf.Bytes()) {
		w.closed = true
		close(w.found)
	}
	return n, err
}

func runAndSignal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 {
		ts.Fatalf("usage: signal NAME REGEXP N COMMAND ARG...")
	}
	signals := map[string]os.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM}
	name, err := exec.LookPath(args[3])
	if args[3] == "rampart" {
		name, err = findCommand(ts, "rampart")
	}
	ts.Check(err)
	cmd := exec.Command(name, args[4:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = environ(ts)
	out := &watched{match: regexp.MustCompile("(?s)" + args[1]), found: make(chan struct{})}
	cmd.Stderr = out
	ts.Check(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-out.found:
		ts.Check(cmd.Process.Signal(signals[args[0]]))
	case err := <-ended:
		ts.Fatalf("it ended by itself (%v):\n%s", err, out.buf.String())
	case <-time.After(time.Minute):
		_ = cmd.Process.Kill()
		<-ended
		ts.Fatalf("standard error never matched %s:\n%s", args[1], out.buf.String())
	}
	err = <-ended
	ts.Logf("[stderr]\n%s", out.buf.String())
	wantCode(ts, args[2], err)
}

func findCommand(ts *testscript.TestScript, name string) (string, error) {
	for dir := range strings.SplitSeq(ts.Getenv("PATH"), string(os.PathListSeparator)) {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			return file, nil
		}
	}
	return "", fmt.Errorf("%s is nowhere in PATH", name)
}

// environ is what a script's commands see, as far as rampart looks.
func environ(ts *testscript.TestScript) []string {
	var out []string
	for _, name := range []string{"PATH", "HOME", "XDG_CACHE_HOME", "RAMPART_LOG_FORMAT", "RAMPART_FAULT", "RAMPART_WEBHOOK_SECRET"} {
		if v := ts.Getenv(name); v != "" {
			out = append(out, name+"="+v)
		}
	}
	return out
}
