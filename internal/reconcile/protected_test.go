package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// desk is a Proposer that takes commits.
type desk struct {
	commits  []rollout.Commit
	proposed int
	err      error
}

func (d *desk) Reviews(string) (map[rollout.Name]rollout.Review, map[rollout.Name]rollout.Approver) {
	return nil, nil
}

func (d *desk) Propose(context.Context, rollout.EnvironmentWorld, []*rollout.Decision) bool {
	d.proposed++
	return false
}

func (d *desk) ProposeCommit(_ context.Context, c rollout.Commit) error {
	d.commits = append(d.commits, c)
	return d.err
}

// What a protected branch does not take is proposed, where the environment asks for that, and nothing is raised before
// it is merged.
func TestCommitToAProtectedBranch(t *testing.T) {
	refused, other := fmt.Errorf("push: %w", rollout.ErrProtected), errors.New("the disk is full")
	for name, c := range map[string]struct {
		on         v1alpha1.OnProtectedBranch
		refused    error
		deskErr    error
		want       int
		wantErrors []error
	}{
		"proposed":                {v1alpha1.ProposeCommits, refused, nil, 1, nil},
		"not asked for":           {"", refused, nil, 0, []error{rollout.ErrProtected}},
		"refused for another why": {v1alpha1.ProposeCommits, other, nil, 0, []error{other}},
		"not taken there either":  {v1alpha1.ProposeCommits, refused, other, 1, []error{rollout.ErrProtected, other}},
	} {
		t.Run(name, func(t *testing.T) {
			s, d := newScene(t), &desk{err: c.deskErr}
			s.world.Environments[0].Environment.PullRequests.OnProtectedBranch = c.on
			s.commitErr = c.refused
			r := s.reconciler()
			r.Proposer = d
			report, err := r.Cycle(t.Context())
			for _, want := range c.wantErrors {
				require.ErrorIs(t, err, want)
			}
			require.Equal(t, len(c.wantErrors) == 0, err == nil, err)
			require.Len(t, d.commits, c.want)
			require.Zero(t, d.proposed, "what was not committed is not there to be proposed")
			require.Empty(t, report.Commits)
			require.Empty(t, s.calls, "nothing is raised")
		})
	}
}

// What a protected branch refused is proposed in each cycle, and pushed again only when something is another, or after
// a while.
func TestRefusedCommitIsNotPushedAgain(t *testing.T) {
	s, d := newScene(t), &desk{}
	env := &s.world.Environments[0]
	set := func(on v1alpha1.OnProtectedBranch) {
		env.Environment.PullRequests.OnProtectedBranch = on
		env.Deployments[0].Environment = env.Environment
	}
	set(v1alpha1.ProposeCommits)
	s.commitErr = fmt.Errorf("push: %w", rollout.ErrProtected)
	r := s.reconciler()
	r.Proposer = d
	pushed, proposed := 0, 0
	cycle := func(pushes int, why string) {
		t.Helper()
		_, err := r.Cycle(t.Context())
		require.Equal(t, proposed == len(d.commits), err != nil, "proposed or told: %v", err)
		require.Equal(t, pushes, s.pushes-pushed, why)
		pushed, proposed = s.pushes, len(d.commits)
		s.now = s.now.Add(time.Minute)
	}
	cycle(1, "nobody knows yet")
	for range 9 {
		cycle(0, "it was refused")
	}
	cycle(1, "the protection may be gone by now")
	cycle(0, "it is not")
	env.Base = "merged"
	cycle(1, "another base")
	cycle(0, "it was refused too")
	replicas := int32(3)
	spec := *env.Deployments[0].Spec
	spec.Spec.Replicas = &replicas
	env.Deployments[0].Spec = &spec
	cycle(1, "another content")
	cycle(0, "it was refused too")
	set("")
	cycle(1, "not proposed any more")
	set(v1alpha1.ProposeCommits)
	cycle(1, "nothing is remembered of before")
	s.now = s.now.Add(refusedFor)
	s.commitErr = nil
	report, err := r.Cycle(t.Context())
	require.NoError(t, err)
	require.Len(t, report.Commits, 1, "the protection is gone")
	require.Empty(t, r.refused)
}

// With a commit for each worker deployment what is committed is the same, in parts; one that changed alone needs none.
func TestCommitForEachDeployment(t *testing.T) {
	compose := func(per v1alpha1.CommitsPer, names ...string) rollout.Commit {
		s := newScene(t)
		env := &s.world.Environments[0]
		env.Environment.Output.Commits = per
		first := env.Deployments[0]
		env.Deployments = nil
		for _, name := range names {
			d := first
			d.Deployment.Name, d.Record.Dir = name, "deploy/shop/"+name
			spec := *d.Spec
			spec.Metadata.Name = name
			d.Spec, d.Environment = &spec, env.Environment
			env.Deployments = append(env.Deployments, d)
		}
		_, err := s.reconciler().Cycle(t.Context())
		require.NoError(t, err)
		require.Len(t, s.commits, 1)
		return s.commits[0]
	}
	require.Nil(t, compose("", "cart", "checkout").Parts)
	require.Nil(t, compose(v1alpha1.CommitPerCycle, "cart", "checkout").Parts)
	whole, c := compose("", "cart", "checkout"), compose(v1alpha1.CommitPerDeployment, "cart", "checkout")
	require.Len(t, c.Parts, 2)
	var all []rollout.FileChange
	for i, name := range []string{"cart", "checkout"} {
		require.Contains(t, c.Parts[i].Message, "rampart(default): shop/"+name+": create ")
		for _, f := range c.Parts[i].Changes {
			require.True(t, strings.HasPrefix(f.Path, "deploy/shop/"+name+"/") || i == 1 && f.Path == "deploy/kustomization.yaml", f.Path)
		}
		all = append(all, c.Parts[i].Changes...)
	}
	require.Equal(t, whole.Changes, c.Changes)
	require.ElementsMatch(t, whole.Changes, all)
	require.Len(t, compose(v1alpha1.CommitPerDeployment, "cart").Parts, 1)
}

// A protected branch refused a commit that left out what cannot be written: it is not pushed in each cycle, either.
func TestRefusedCommitWithoutWhatCannotBeWritten(t *testing.T) {
	for name, path := range map[string]string{
		"hydrator.metadata": "deploy/hydrator.metadata", "the files of another": "deploy/shop/cart",
	} {
		t.Run(name, func(t *testing.T) {
			s, d := newScene(t), &desk{}
			env := &s.world.Environments[0]
			env.Environment.PullRequests.OnProtectedBranch, env.Environment.CD.Hydrator = v1alpha1.ProposeCommits, true
			one := env.Deployments[0]
			one.Environment = env.Environment
			cart, spec := one, *one.Spec
			spec.Metadata.Name = "cart"
			cart.Deployment.Name, cart.Spec, cart.Record.Dir = "cart", &spec, "deploy/shop/cart"
			env.Deployments = []rollout.Snapshot{cart, one}
			s.commitErr = fmt.Errorf("push: %w", rollout.ErrProtected)
			r := s.reconciler()
			r.Source, r.History = s, &history{scene: s, origins: map[string]rollout.GitContext{"cart": ada, "checkout": ada}}
			r.Committer, r.Proposer = &obstructed{scene: s, path: path}, d
			for cycle := range 4 {
				_, err := r.Cycle(t.Context())
				require.NoError(t, err)
				require.Equal(t, 1, s.pushes, "it was refused")
				require.Len(t, d.commits, cycle+1, "it is proposed")
				s.now = s.now.Add(time.Minute)
			}
			s.now = s.now.Add(refusedFor)
			_, err := r.Cycle(t.Context())
			require.NoError(t, err)
			require.Equal(t, 2, s.pushes, "the protection may be gone by now")
		})
	}
}
