// Command demo plays three rollouts on a real Temporal server and a real Git repository. One of them goes well, one is
// turned back by its gate, and one by its failure rate. It plays the part that ArgoCD and the kubelet have in
// production: it runs a real worker for every Deployment and replica that it finds in Git.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/rampart-gitops/rampart/test/temporalenv"
)

// limit ends a demo that hangs: about a minute is what it takes, and more on a busy machine.
const limit = 10 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "\ndemo failed: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	s, err := newStage(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	for _, act := range []func(context.Context) error{s.first, s.second, s.gateFails, s.workflowsFail} {
		if err := act(ctx); err != nil {
			return errors.Join(err, s.broken())
		}
	}
	s.end()
	return nil
}

func (s *stage) first(ctx context.Context) error {
	s.title("A person pushes a spec: image v1.0.0")
	if err := s.push("Add checkout", "v1.0.0"); err != nil {
		return err
	}
	if err := s.await(ctx, "v1.0.0 is current", func(st state) bool { return st.ready("v1.0.0") }); err != nil {
		return err
	}
	return s.startTraffic()
}

func (s *stage) second(ctx context.Context) error {
	s.title("A new image tag is pushed: v2.0.0. Its gate passes, it ramps step by step, and v1.0.0 drains")
	if err := s.push("Checkout v2.0.0", "v2.0.0"); err != nil {
		return err
	}
	for _, want := range []struct {
		what string
		is   func(state) bool
	}{
		{"v2.0.0 gets 10% of new workflows", func(st state) bool { return st.ramp("v2.0.0") == 10 }},
		{"v2.0.0 gets 50% of new workflows", func(st state) bool { return st.ramp("v2.0.0") == 50 }},
		{"v2.0.0 is current", func(st state) bool { return st.ready("v2.0.0") }},
		{"v1.0.0 has drained and is scaled down", func(st state) bool { return st.retired("v1.0.0") }},
		{"v1.0.0 is removed", func(st state) bool { return st.gone("v1.0.0") }},
	} {
		if err := s.await(ctx, want.what, want.is); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) gateFails(ctx context.Context) error {
	s.title("A bad image is pushed: v3.0.0. Its gate, the workflow Smoke, fails: it never gets traffic")
	if err := s.push("Checkout v3.0.0", "v3.0.0"); err != nil {
		return err
	}
	return s.await(ctx, "v3.0.0 is turned back by its gate", func(st state) bool {
		return st.reason() == "RolledBack" && st.barred("v3.0.0") && st.current("v2.0.0")
	})
}

func (s *stage) workflowsFail(ctx context.Context) error {
	s.title("Another bad image: v4.0.0. Its gate passes, but its workflows fail: a policy takes the traffic back")
	if err := s.push("Checkout v4.0.0", "v4.0.0"); err != nil {
		return err
	}
	if err := s.await(ctx, "v4.0.0 gets 10% of new workflows",
		func(st state) bool { return st.ramp("v4.0.0") == 10 }); err != nil {
		return err
	}
	return s.await(ctx, "v4.0.0 is turned back by its failure rate", func(st state) bool {
		return st.reason() == "RolledBack" && st.barred("v4.0.0") && st.current("v2.0.0")
	})
}

// images are what the tags hold.
func images() map[string]temporalenv.Image {
	const repository = "registry.example.com/shop/checkout:"
	return map[string]temporalenv.Image{
		repository + "v1.0.0": temporalenv.DefaultImage(queue),
		repository + "v2.0.0": temporalenv.DefaultImage(queue),
		repository + "v3.0.0": smokeFails(queue),
		repository + "v4.0.0": temporalenv.FailingImage(queue),
	}
}

// quickstart is the example that the demo starts from.
func quickstart() (string, error) {
	dir, err := filepath.Abs(filepath.Join("..", "examples", "quickstart"))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(dir, "rampart.yaml")); err != nil {
		return "", fmt.Errorf("run this in the folder test of the repository: %w", err)
	}
	return dir, nil
}
