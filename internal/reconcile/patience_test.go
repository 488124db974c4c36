package reconcile

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/resync"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// apart gives each worker deployment an environment of its own, named as it.
func (s *spread) apart() {
	all := s.world.Environments[0]
	s.world.Environments = nil
	for _, d := range all.Deployments {
		env := all
		d.Environment.Name = d.Deployment.Name
		env.Environment.Name, env.Deployments = d.Deployment.Name, []rollout.Snapshot{d}
		s.world.Environments = append(s.world.Environments, env)
	}
}

// slowPushes is a Committer whose pushes take a while. It keeps the environments that it pushed for.
type slowPushes struct {
	*spread
	takes  func(environment string) time.Duration
	pushed []string
}

func (c *slowPushes) Commit(ctx context.Context, commit rollout.Commit) (string, error) {
	time.Sleep(c.takes(commit.Environment.Name))
	c.pushed = append(c.pushed, commit.Environment.Name)
	return c.spread.Commit(ctx, commit)
}

// ends is a desk that keeps the environments whose commits were made.
type ends struct {
	*desk
	told []string
}

func (e *ends) Propose(_ context.Context, env rollout.EnvironmentWorld, _ []*rollout.Decision) bool {
	e.told = append(e.told, env.Environment.Name)
	return false
}

// A commit that may be proposed has with it also those who were lowered while the repository was away. Before they are
// decided with it, nothing is committed, and a pull request that is open stays the same.
func TestUndividedCommitAfterTheRepositoryWasAway(t *testing.T) {
	for pause := range 12 {
		synctest.Test(t, func(t *testing.T) {
			s := newSpread(t, "slow", "well")
			s.world.Environments[0].Environment.PullRequests.OnProtectedBranch = v1alpha1.ProposeCommits
			r, people := s.reconciler(), &ends{desk: &desk{}}
			defer r.Close()
			r.Proposer = people
			cycle := func() {
				_, err := r.Cycle(t.Context())
				require.NoError(t, err)
			}
			cycle()
			s.readErr, s.delays["slow"] = context.DeadlineExceeded, 4*time.Second // for each of two questions
			_, err := r.Cycle(t.Context())
			require.Error(t, err)
			s.mu.Lock()
			s.readErr, s.delays["well"] = nil, time.Second
			s.mu.Unlock()
			time.Sleep(time.Duration(pause) * time.Second)
			synctest.Wait()
			for i := range 12 {
				if i == 3 && pause > 3 {
					require.Equal(t, 2, len(s.commits), "those who were done after %d s are decided with the others", pause)
				}
				cycle()
				time.Sleep(3 * time.Second)
				synctest.Wait()
			}
			require.Greater(t, len(s.commits), 2)
			for _, c := range s.commits {
				require.Equal(t, "w000 w001", committed(c), "after %d s", pause)
			}
			require.Len(t, people.told, len(s.commits), "after %d s", pause)
		})
	}
}

// A commit that may be proposed has with it also those whose traffic is still raised.
func TestUndividedCommitWhileTrafficIsRaised(t *testing.T) {
	for pause := range 5 {
		synctest.Test(t, func(t *testing.T) {
			c := newCrowd(t, "w0", "w1")
			c.most, c.now = 2, time.Now()
			env := &c.world.Environments[0]
			env.Environment.PullRequests.OnProtectedBranch = v1alpha1.ProposeCommits
			env.Deployments[0].Spec.Spec.WorkerOptions.TemporalNamespace = "slow"
			r := c.reconciler()
			defer r.Close()
			r.Observer = &delayed{c, time.Second}
			r.Router = slowRaises{c, func(_ context.Context, on rollout.Subject) error {
				if on.Deployment == env.Deployments[0].Deployment {
					time.Sleep(8 * time.Second)
				}
				return nil
			}}
			r.Proposer, r.Groups = &desk{}, DefaultGroupLimits()
			later := func(by time.Duration) time.Time {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.now = c.now.Add(by)
				return c.now
			}
			r.Now = func() time.Time { return later(0) }
			for range 12 {
				_, err := r.Cycle(t.Context())
				require.NoError(t, err)
				later(2 * time.Minute)
				time.Sleep(time.Duration(pause) * time.Second)
				synctest.Wait()
			}
			time.Sleep(10 * time.Second)
			synctest.Wait()
			require.Subset(t, c.calls, []string{"w0 SetCurrent", "w1 SetCurrent"})
			for _, commit := range c.commits {
				require.Equal(t, "w0 w1", committed(commit), "with pauses of %d s", pause)
			}
		})
	}
}

// The commit of another environment may take so long that decisions are dropped meanwhile. Of a commit that may be
// proposed, no part is taken for the whole then.
func TestUndividedCommitAfterASlowPush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpread(t, "one", "other", "third")
		first, second := s.divide()
		s.world.Environments[1].Environment.PullRequests.OnProtectedBranch = v1alpha1.ProposeCommits
		r, people := s.reconciler(), &ends{desk: &desk{}}
		defer r.Close()
		c := &slowPushes{spread: s, takes: func(environment string) time.Duration {
			if environment == first {
				return 2*DefaultPatience + 5*time.Second
			}
			return 0
		}}
		r.Proposer, r.Committer = people, c
		for range 6 {
			_, err := r.Cycle(t.Context())
			require.NoError(t, err)
		}
		require.Greater(t, len(c.pushed), 6)
		for i, commit := range s.commits {
			if c.pushed[i] == second {
				require.Equal(t, "w001 w002", committed(commit))
			}
		}
		require.Equal(t, c.pushed, people.told)
	})
}

// What a slow Temporal namespace decides while the push of its environment takes long is committed in the next cycle.
func TestLateGroupsDuringSlowPushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpread(t, "well", "slow")
		s.delays["slow"] = 4 * time.Second // for each of two questions
		r := s.reconciler()
		defer r.Close()
		r.Committer = &slowPushes{spread: s, takes: func(string) time.Duration { return DefaultPatience + 5*time.Second }}
		for range 6 {
			_, err := r.Cycle(t.Context())
			require.NoError(t, err)
		}
		require.True(t, slices.ContainsFunc(s.commits, func(c rollout.Commit) bool {
			return strings.Contains(committed(c), "w001")
		}))
	})
}

// Environments whose decisions were dropped for the slow pushes of others take turns: those first that wait longest.
func TestSlowPushesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpread(t, "a", "b", "c")
		s.apart()
		r := s.reconciler()
		defer r.Close()
		c := &slowPushes{spread: s, takes: func(string) time.Duration { return DefaultPatience + 5*time.Second }}
		r.Committer = c
		for range 8 {
			_, err := r.Cycle(t.Context())
			require.NoError(t, err)
		}
		for _, env := range s.world.Environments {
			n := 0
			for _, p := range c.pushed {
				if p == env.Environment.Name {
					n++
				}
			}
			require.GreaterOrEqual(t, n, 2, "%s of %v", env.Environment.Name, c.pushed)
		}
	})
}

// What late groups did is in the decision log, also where the bot ends before the next cycle, or their environment is
// removed.
func TestLateGroupsAreLogged(t *testing.T) {
	for name, end := range map[string]func(*spread, *Reconciler){
		"the bot ends": func(_ *spread, r *Reconciler) { r.Close() },
		"their environment is removed": func(s *spread, r *Reconciler) {
			time.Sleep(DefaultGroupLimits().Time)
			synctest.Wait()
			s.world.Environments = s.world.Environments[:1]
			_, err := r.Cycle(s.t.Context())
			require.NoError(s.t, err)
			r.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSpread(t, "well", "slow")
				s.verdicts[s.name(1)] = rollback("rollout.canary")
				s.divide()
				r, m := s.reconciler(), &memo{}
				r.Decisions = m
				s.delays["slow"] = 4 * time.Second // for each of two questions
				_, err := r.Cycle(t.Context())
				require.NoError(t, err)
				require.Empty(t, s.happened())
				end(s, r)
				require.Equal(t, []string{"lower w001"}, s.happened())
				var done []string
				for _, made := range m.cycles {
					for _, d := range made {
						if d.Done {
							done = append(done, d.Snapshot.Deployment.Name)
						}
					}
				}
				require.Contains(t, done, "w001")
				require.Empty(t, r.running.groups)
			})
		})
	}
}

// The worker deployments of a group can be asked for while it works.
func TestMembersOfAGroupAtWork(t *testing.T) {
	s := newScene(t)
	g := &group{snapshots: s.world.Environments[0].Deployments}
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.decisions = []*rollout.Decision{{}}
	}()
	require.Len(t, slices.Collect(g.members()), 1)
	<-done
	require.Equal(t, []resync.Key{resync.KeyOf(&g.snapshots[0])}, slices.Collect(g.members()))
}
