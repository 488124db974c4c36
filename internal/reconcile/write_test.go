package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// obstructed cannot write at a path, nor below it.
type obstructed struct {
	*scene
	path  string
	tries int
}

func (o *obstructed) Commit(ctx context.Context, c rollout.Commit) (string, error) {
	o.tries++
	for _, f := range c.Changes {
		if f.Path == o.path || strings.HasPrefix(f.Path, o.path+"/") {
			return "", fmt.Errorf("stage: %w", &rollout.UnwritableError{Path: o.path, Err: fmt.Errorf("path %q is a symbolic link", o.path)})
		}
	}
	return o.scene.Commit(ctx, c)
}

// What cannot be put back as it was keeps no other worker deployment from its commit, however many cannot: one more try
// does.
func TestManyAreUnwritable(t *testing.T) {
	s := newScene(t)
	env := &s.world.Environments[0]
	one := env.Deployments[0]
	for _, name := range []string{"a", "b", "c"} {
		spec, other := *one.Spec, one
		spec.Metadata.Name = name
		other.Deployment.Name, other.Spec, other.Record.Dir = name, &spec, "deploy/shop/"+name
		env.Deployments = append(env.Deployments, other)
	}
	slices.SortFunc(env.Deployments, func(a, b rollout.Snapshot) int { return a.Deployment.Compare(b.Deployment) })
	tries := 0
	r := s.reconciler()
	r.Committer = commits(func(ctx context.Context, c rollout.Commit) (string, error) {
		tries++
		var errs []error
		for _, f := range c.Changes {
			if strings.Contains(f.Path, "/a/") || strings.Contains(f.Path, "/c/") {
				errs = append(errs, &rollout.UnwritableError{Path: f.Path, Err: errors.New("it is nowhere")})
			}
		}
		if len(errs) > 0 {
			return "", fmt.Errorf("stage: %w", errors.Join(errs...))
		}
		return s.Commit(ctx, c)
	})
	report, err := r.Cycle(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, tries)
	require.Equal(t, map[string]string{"shop/a": "it is nowhere", "shop/c": "it is nowhere"}, report.Failures)
	require.Len(t, report.Commits, 1)
}

// What somebody put in the way of one worker deployment's files keeps no other's from being written.
func TestObstructedCommit(t *testing.T) {
	for name, c := range map[string]struct {
		path      string
		committed []string
		failed    []string
		tries     int
	}{
		"nothing":                {"elsewhere", []string{"cart", "checkout"}, nil, 1},
		"its folder":             {"deploy/shop/cart", []string{"checkout"}, []string{"shop/cart"}, 2},
		"one of its files":       {"deploy/shop/cart/status.yaml", []string{"checkout"}, []string{"shop/cart"}, 2},
		"the folder of all":      {"deploy/shop", nil, []string{"shop/cart", "shop/checkout"}, 1},
		"a file of no one's own": {"deploy/kustomization.yaml", nil, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			env := &s.world.Environments[0]
			other := env.Deployments[0]
			spec := *other.Spec
			spec.Metadata.Name = "cart"
			other.Deployment.Name, other.Spec, other.Record.Dir = "cart", &spec, "deploy/shop/cart"
			env.Deployments = []rollout.Snapshot{other, env.Deployments[0]}
			o := &obstructed{scene: s, path: c.path}
			r := s.reconciler()
			r.Committer = o
			report, err := r.Cycle(t.Context())
			require.Equal(t, c.failed == nil && c.committed == nil, err != nil, "%v", err)
			require.Equal(t, c.tries, o.tries)
			var failed []string
			for _, d := range env.Deployments {
				if why, ok := report.Failures[d.Deployment.String()]; ok {
					failed = append(failed, d.Deployment.String())
					require.Contains(t, why, "is a symbolic link")
				}
			}
			require.Equal(t, c.failed, failed)
			var decided []string
			for _, d := range report.Decisions {
				decided = append(decided, d.Plan.Deployment.Name)
			}
			require.Equal(t, c.committed, decided)
			for _, f := range s.commits {
				for _, change := range f.Changes {
					require.False(t, strings.HasPrefix(change.Path, c.path), change.Path)
				}
			}
		})
	}
}
