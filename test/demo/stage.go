package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/rampart-gitops/rampart/test/temporalenv"
)

const (
	queue     = "checkout"
	namespace = "default"
	recordDir = "deploy/demo/shop/checkout"
)

// stage is everything that the demo runs.
type stage struct {
	began   time.Time
	dir     string // holds the repository and the person's clone
	bare    string
	clone   string
	server  *temporalenv.Server
	client  client.Client
	fleet   *temporalenv.Fleet
	bot     *exec.Cmd
	botLog  string
	traffic *temporalenv.Traffic
	stop    context.CancelFunc
	wait    sync.WaitGroup
	mu      sync.Mutex
}

func newStage(ctx context.Context) (*stage, error) {
	s := &stage{began: time.Now()}
	if err := s.setUp(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *stage) setUp(ctx context.Context) error {
	source, err := quickstart()
	if err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp("", "rampart-demo-"); err != nil {
		return err
	}
	s.title("Setting up: a Temporal server in this process, a bare Git repository, a stand-in for ArgoCD and " +
		"the kubelet")
	if s.server, err = temporalenv.New(ctx, temporalenv.Options{}); err != nil {
		return fmt.Errorf("start Temporal: %w", err)
	}
	ns, err := s.server.Namespace(ctx, namespace)
	if err != nil {
		return err
	}
	if s.client, err = ns.Client(ctx); err != nil {
		return err
	}
	if err := s.makeRepository(source); err != nil {
		return err
	}
	s.say("temporal", "listens on %s", s.server.Address())
	s.say("git", "%s", s.bare)
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	s.fleet = temporalenv.NewFleet(temporalenv.FleetConfig{Images: images()})
	s.wait.Go(func() {
		_ = s.fleet.Watch(inner, temporalenv.Source{Repo: s.bare, Branch: "main", Path: "deploy/demo"})
	})
	s.wait.Go(func() { s.tellEvents(inner) })
	s.wait.Go(func() { s.tellCommits(inner) })
	return s.startBot()
}

// makeRepository copies the example into a bare repository, with the address of the server that was just started.
func (s *stage) makeRepository(source string) error {
	s.bare, s.clone = filepath.Join(s.dir, "repository.git"), filepath.Join(s.dir, "clone")
	if err := s.git(s.dir, "init", "-q", "--bare", "-b", "main", s.bare); err != nil {
		return err
	}
	if err := s.git(s.dir, "clone", "-q", s.bare, s.clone); err != nil {
		return err
	}
	return filepath.WalkDir(source, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(source, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		to := filepath.Join(s.clone, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		return os.WriteFile(to, []byte(strings.ReplaceAll(string(text), "localhost:7233", s.server.Address())), 0o644)
	})
}

func (s *stage) git(dir string, args ...string) error {
	_, err := s.gitOut(dir, args...)
	return err
}

func (s *stage) gitOut(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=Dana Developer", "-c",
		"user.email=dana@example.com"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

var imageTag = regexp.MustCompile(`(checkout:)v[0-9.]+`)

// push changes the image's tag in the spec, as a person would; again if the bot was quicker.
func (s *stage) push(message, tag string) error {
	spec := filepath.Join(s.clone, "workers", "shop", "checkout.yaml")
	for try := 0; ; try++ {
		if _, err := s.gitOut(s.bare, "rev-parse", "-q", "--verify", "main"); err == nil {
			if err := s.git(s.clone, "pull", "-q", "--rebase", "--autostash", "origin", "main"); err != nil {
				return err
			}
		}
		text, err := os.ReadFile(spec)
		if err != nil {
			return err
		}
		if err := os.WriteFile(spec, imageTag.ReplaceAll(text, []byte("${1}"+tag)), 0o644); err != nil {
			return err
		}
		if err := s.git(s.clone, "add", "-A"); err != nil {
			return err
		}
		if _, err := s.gitOut(s.clone, "diff", "--cached", "--quiet"); err != nil {
			if err := s.git(s.clone, "commit", "-q", "-m", message); err != nil {
				return err
			}
		}
		if err := s.git(s.clone, "push", "-q", "origin", "HEAD:main"); err == nil {
			return nil
		} else if try == 20 {
			return err
		}
	}
}

func (s *stage) startBot() error {
	binary, err := filepath.Abs(filepath.Join("..", "bin", "rampart"))
	if err != nil {
		return err
	}
	s.botLog = filepath.Join(s.dir, "bot.log")
	log, err := os.Create(s.botLog)
	if err != nil {
		return err
	}
	s.bot = exec.Command(binary, "run", "--repo", "file://"+s.bare, "--branch", "main", "--interval", "500ms",
		"--cache-dir", filepath.Join(s.dir, "cache"))
	s.bot.Stdout, s.bot.Stderr = log, log
	if err := s.bot.Start(); err != nil {
		return fmt.Errorf("start the bot (make build makes it): %w", err)
	}
	s.say("bot", "rampart run --repo file://%s --interval 500ms", s.bare)
	return log.Close()
}

func (s *stage) startTraffic() error {
	s.say("traffic", "thirty workflows a second from now on")
	var err error
	s.traffic, err = temporalenv.StartTraffic(s.client,
		temporalenv.Load{TaskQueue: queue, Workflow: temporalenv.Checkout, Every: 33 * time.Millisecond})
	return err
}

// await polls what Git says until it is what is waited for.
func (s *stage) await(ctx context.Context, what string, is func(state) bool) error {
	err := temporalenv.Until(ctx, func(context.Context) error {
		if st, err := s.state(); err != nil {
			return err
		} else if !is(st) {
			return fmt.Errorf("reason %s", st.reason())
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("waited for %q: %w", what, err)
	}
	s.say("✓", "%s", what)
	return nil
}

// tellCommits prints the bot's commits as they come.
func (s *stage) tellCommits(ctx context.Context) {
	seen := map[string]bool{}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		out, err := s.gitOut(s.bare, "log", "--reverse", "--format=%h%x09%an%x09%s", "main")
		for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
			part := strings.SplitN(line, "\t", 3)
			if err != nil || len(part) != 3 || seen[part[0]] {
				continue
			}
			seen[part[0]] = true
			s.say("commit", "%s %s: %s", part[0], part[1], part[2])
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// tellEvents prints what the stand-in for the cluster does.
func (s *stage) tellEvents(ctx context.Context) {
	told := 0
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		events := s.fleet.Events()
		for _, e := range events[told:] {
			if strings.HasPrefix(e.Object, "Deployment ") || e.Kind == temporalenv.SyncFailed {
				s.say("cluster", "%s %s %s", strings.ToLower(string(e.Kind)),
					strings.TrimPrefix(e.Object, "Deployment "), e.Detail)
			}
		}
		told = len(events)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (s *stage) say(who, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Printf("%5.1fs  %-9s %s\n", time.Since(s.began).Seconds(), who, strings.TrimSpace(fmt.Sprintf(format, args...)))
}

func (s *stage) title(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Printf("\n── %s\n", text)
}

// broken shows the end of the bot's log.
func (s *stage) broken() error {
	f, err := os.Open(s.botLog)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	var lines []string
	for scan := bufio.NewScanner(io.Reader(f)); scan.Scan(); {
		if lines = append(lines, scan.Text()); len(lines) > 20 {
			lines = lines[1:]
		}
	}
	return errors.New("the end of the bot's log:\n" + strings.Join(lines, "\n"))
}

func (s *stage) end() {
	s.close()
	out, err := s.gitOut(s.bare, "log", "--format=%an", "main")
	if err != nil {
		out = ""
	}
	fmt.Printf("\nDone in %.0f s: %d commits of the bot. Look at them:\n\n  git -C %s log --stat main\n  git -C %s "+
		"show main:%s/status.yaml\n",
		time.Since(s.began).Seconds(), strings.Count(out, "rampart"), s.bare, s.bare, recordDir)
}

func (s *stage) close() {
	if s.traffic != nil {
		s.traffic.Stop()
		s.traffic = nil
	}
	if s.bot != nil && s.bot.Process != nil {
		_ = s.bot.Process.Signal(syscall.SIGTERM)
		_ = s.bot.Wait()
		s.bot = nil
	}
	if s.stop != nil {
		s.stop()
		s.wait.Wait()
		s.stop = nil
	}
	if s.fleet != nil {
		s.fleet.Close()
		s.fleet = nil
	}
	if s.client != nil {
		s.client.Close()
		s.client = nil
	}
	if s.server != nil {
		_ = s.server.Close()
		s.server = nil
	}
}

// smokeFails is an image whose gate workflow fails.
func smokeFails(queues ...string) temporalenv.Image {
	return temporalenv.Image{TaskQueues: queues, Register: func(w worker.Registry) {
		w.RegisterWorkflowWithOptions(func(workflow.Context) error {
			return errors.New("the payment provider does not answer")
		}, workflow.RegisterOptions{Name: temporalenv.Smoke, VersioningBehavior: workflow.VersioningBehaviorPinned})
	}}
}
