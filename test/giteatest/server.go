// Package giteatest runs a real Gitea for tests: on loopback, with its own folder, without contact to other servers.
// One server serves all tests of a binary, each with users and repositories of its own, and ends with the binary:
//
//	func TestMain(m *testing.M) { os.Exit(giteatest.Main(m)) }
//
// The binary is made by make gitea; tests are skipped where it is missing. What it shows to browsers lacks scripts and
// styles, which are not in its module, unless make gitea-pages made them: NeedPages.
//
// It may be used by parallel tests.
package giteatest

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rampart-gitops/rampart/internal/logtest"
	"github.com/rampart-gitops/rampart/internal/testneed"
)

// program is what make gitea puts into bin/.
const program = "gitea-v1.25.2"

// pages is where make gitea-pages puts scripts and styles.
const pages = "gitea-pages-v1.25.2"

const (
	// patience is how long a test waits for what should take moments.
	patience = 60 * time.Second
	admin    = "root"
	password = "a-password-of-tests"
)

// Server is a running Gitea.
type Server struct {
	// URL without a slash at its end.
	URL string

	dir   string
	admin string // its token
	names atomic.Int64
	log   logtest.Buffer
	stop  func()
}

var shared struct {
	mu     sync.Mutex
	main   bool // there is somebody to stop it
	once   sync.Once
	server *Server
	err    error
}

// Main runs the tests of a binary, and stops the server if one was started. It gives the exit code.
func Main(m *testing.M) int {
	shared.mu.Lock()
	shared.main = true
	shared.mu.Unlock()
	defer func() {
		if s := shared.server; s != nil {
			s.stop()
			_ = os.RemoveAll(s.dir)
		}
	}()
	return m.Run()
}

// Start gives the server of this test binary, and runs it before if it is the first time. Where its program is missing:
// testneed.Missing.
func Start(tb testing.TB) *Server {
	tb.Helper()
	binary := find(tb)
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if !shared.main {
		tb.Fatal("giteatest.Start needs a TestMain that calls giteatest.Main, which stops the server")
	}
	shared.once.Do(func() { shared.server, shared.err = start(binary) })
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	s, from := shared.server, len(shared.server.log.String())
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("what the server logged meanwhile, of this and of other tests:\n%s", s.log.String()[from:])
		}
	})
	return s
}

// find is the program.
func find(tb testing.TB) string {
	tb.Helper()
	path, err := inBin(program)
	if err != nil {
		testneed.Missing(tb, "bin/"+program+" is needed and not there: make gitea")
	}
	return path
}

// NeedPages is for tests that look at pages with their scripts and styles: testneed.Missing where those are not made.
func NeedPages(tb testing.TB) {
	tb.Helper()
	if _, err := inBin(pages); err != nil {
		testneed.Missing(tb, "bin/"+pages+" is needed and not there: make gitea-pages")
	}
}

// inBin looks in bin/ of the folders above.
func inBin(name string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		path := filepath.Join(dir, "bin", name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("bin/%s: %w", name, os.ErrNotExist)
		}
		dir = up
	}
}

func start(binary string) (*Server, error) {
	dir, err := os.MkdirTemp("", "giteatest")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir}
	if public, err := inBin(pages); err == nil {
		if err := os.Mkdir(s.path("custom"), 0o755); err != nil {
			return nil, err
		}
		if err := os.Symlink(public, s.path("custom/public")); err != nil {
			return nil, err
		}
	}
	if err := s.begin(binary); err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("start gitea: %w", err)
	}
	return s, nil
}

// begin makes the database and its administrator, and runs the server.
func (s *Server) begin(binary string) error {
	port, err := testneed.FreePort()
	if err != nil {
		return err
	}
	if err := s.configure(port); err != nil {
		return err
	}
	if _, err := s.call(binary, "migrate"); err != nil {
		return err
	}
	out, err := s.call(binary, "admin", "user", "create", "--admin", "--username", admin, "--password", password,
		"--email", "root@example.com",
		"--must-change-password=false", "--access-token", "--access-token-name", "kit", "--access-token-scopes", "all")
	if err != nil {
		return err
	}
	_, after, found := strings.Cut(out, "successfully created... ")
	if !found {
		return fmt.Errorf("no token in: %s", out)
	}
	s.admin, _, _ = strings.Cut(after, "\n")
	return s.run(binary)
}

// configuration leaves out everything that asks somebody else, sends something, or works in the background.
const configuration = `
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = %[1]d
ROOT_URL = http://127.0.0.1:%[1]d/
DISABLE_SSH = true
OFFLINE_MODE = true
[repository]
ROOT = %[2]s
[database]
DB_TYPE = sqlite3
SQLITE_JOURNAL_MODE = WAL
SQLITE_TIMEOUT = 20000
[security]
INSTALL_LOCK = true
SECRET_KEY = tests-have-no-secrets
PASSWORD_HASH_ALGO = pbkdf2$1$8
PASSWORD_COMPLEXITY = off
[service]
DISABLE_REGISTRATION = true
[api]
MAX_RESPONSE_ITEMS = 50
[queue]
TYPE = channel
; In these each item is once. Of a channel one can be taken out before it is noted as being in, and is then never in
; again: a pull request is never found mergeable.
[queue.pr_patch_checker]
TYPE = level
[queue.pr_auto_merge]
TYPE = level
[indexer]
ISSUE_INDEXER_TYPE = db
[session]
PROVIDER = memory
[picture]
DISABLE_GRAVATAR = true
[webhook]
ALLOWED_HOST_LIST = loopback
[mailer]
ENABLED = false
[actions]
ENABLED = false
[packages]
ENABLED = false
[cron]
ENABLED = false
[cron.update_checker]
ENABLED = false
[log]
MODE = console
LEVEL = Warn
`

func (s *Server) configure(port int) error {
	s.URL = fmt.Sprintf("http://127.0.0.1:%d", port)
	return os.WriteFile(s.path("app.ini"), fmt.Appendf(nil, configuration, port, s.path("repositories")), 0o600)
}

func (s *Server) path(name string) string { return filepath.Join(s.dir, name) }

// command has nothing of the environment but what finds git. A proxy at an address where nothing listens shows if it
// asked another server.
func (s *Server) command(binary string, args ...string) *exec.Cmd {
	cmd := exec.Command(binary, append(args, "--config", s.path("app.ini"), "--work-path", s.dir)...)
	cmd.Dir = s.dir
	nobody := "http://127.0.0.1:1"
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "USER=root", "TMPDIR=" + s.dir, "GOGC=" + os.Getenv("GOGC"),
		"HTTP_PROXY=" + nobody, "HTTPS_PROXY=" + nobody, "NO_PROXY=127.0.0.1,localhost",
	}
	return cmd
}

func (s *Server) call(binary string, args ...string) (string, error) {
	out, err := s.command(binary, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(args[:1], " "), err, out)
	}
	return string(out), nil
}

func (s *Server) run(binary string) error {
	cmd := s.command(binary, "web")
	cmd.Stdout, cmd.Stderr = &s.log, &s.log
	cmd.WaitDelay = 10 * time.Second // for what it started, and holds its output open
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // stopped, or its log says why
		close(ended)
	}()
	s.stop = func() {
		_ = cmd.Process.Kill()
		<-ended
	}
	if err := s.ready(ended); err != nil {
		s.stop()
		return fmt.Errorf("%w\n%s", err, s.log.String())
	}
	return nil
}

func (s *Server) ready(ended <-chan struct{}) error {
	for deadline := time.Now().Add(patience); ; {
		select {
		case <-ended:
			return errors.New("it ended")
		default:
		}
		resp, err := http.Get(s.URL + "/api/healthz")
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
			err = errors.New(resp.Status)
		}
		if time.Now().After(deadline) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}
