package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

// fileRemote runs the installed git on a repository of this machine.
type fileRemote struct {
	addr  address
	watch *watch
}

func (r *fileRemote) close() {}

func (r *fileRemote) hide(said string) string { return said }

// killDelay is how long a killed command's pipes are waited for: a hook may have left a child that
// holds them.
const killDelay = 2 * time.Second

func (r *fileRemote) open(ctx context.Context, s service) (session, *packp.AdvRefs, error) {
	fail := func(reason Reason, hint string, err error) error {
		return &AccessError{Op: s.op(), URL: r.addr.display, Reason: reason, Detail: cleanText(err.Error()), Hint: hint,
			Err: err}
	}
	if ctx.Err() != nil {
		return nil, nil, interrupted(ctx, s, r.addr)
	}
	if _, err := os.Stat(r.addr.path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fail(ReasonNotFound, "check the path", err)
	}
	// It outlives the context of open: the session ends it, with its whole process group.
	cmd := exec.Command("git", strings.TrimPrefix(string(s), "git-"), r.addr.path) //nolint:noctx
	cmd.Env = cleanEnv(cmd.Environ())
	cmd.WaitDelay = killDelay
	isolate(cmd)
	stderr := &head{}
	cmd.Stderr = stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, fail(ReasonServer, "", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, fail(ReasonServer, "", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, fail(ReasonServer, "file URLs need git to be installed", err)
	}
	return openStream(ctx, &command{
		addr: r.addr, service: s, watch: r.watch, stdin: watchedWriter{stdin, r.watch},
		stdout: watchedReader{stdout, r.watch}, stderr: stderr,
		wait: func() { _ = cmd.Wait() }, // the exit code says nothing that the conversation has not said
		kill: func() { killGroup(cmd) },
		access: &AccessError{
			Reason: ReasonNotFound, Hint: "check that the path is a Git repository that this user may " + s.right(),
		},
	})
}

// repoVariables point git at a particular repository or protocol; a bot started from a hook or an alias
// has some of them set. (git rev-parse --local-env-vars, and the two that are about conversations.)
var repoVariables = []string{
	"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_CONFIG", "GIT_DIR", "GIT_GRAFT_FILE",
	"GIT_IMPLICIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_INTERNAL_SUPER_PREFIX", "GIT_NO_REPLACE_OBJECTS",
	"GIT_OBJECT_DIRECTORY", "GIT_PREFIX", "GIT_REPLACE_REF_BASE", "GIT_SHALLOW_FILE", "GIT_WORK_TREE",
	"GIT_PROTOCOL", "GIT_QUARANTINE_PATH",
}

func cleanEnv(env []string) []string {
	return slices.DeleteFunc(env, func(line string) bool {
		name, _, _ := strings.Cut(line, "=")
		return slices.Contains(repoVariables, name)
	})
}
