package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// never is a delay of a Temporal namespace that does not answer.
const never = time.Hour

// spread is a fleet whose worker deployments are in Temporal namespaces that answer after a delay.
type spread struct {
	*fleet
	mu     sync.Mutex
	delays map[string]time.Duration
}

// newSpread makes a worker deployment in each of the namespaces, which may be the same. All ramp, and are healthy.
func newSpread(t *testing.T, namespaces ...string) *spread {
	s := &spread{fleet: newFleet(t, len(namespaces)), delays: map[string]time.Duration{}}
	for i, namespace := range namespaces {
		s.world.Environments[0].Deployments[i].Spec.Spec.WorkerOptions.TemporalNamespace = namespace
	}
	s.now = time.Now()
	return s
}

func (s *spread) Observe(ctx context.Context, conn v1alpha1.Connection, ask rollout.Ask) rollout.Observation {
	s.mu.Lock()
	delay := s.delays[ask.TemporalNamespace]
	s.mu.Unlock()
	if delay > 0 { // The race detector of Go 1.26 crashes where goroutines of a bubble read timers that are due when they are made.
		select {
		case <-ctx.Done():
			return rollout.Observation{At: time.Now(), Problem: &rollout.Problem{Reason: rollout.TemporalStateFetchFailed, Message: "no answer"}}
		case <-time.After(delay):
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.fleet.Observe(ctx, conn, ask)
	o.At = time.Now()
	return o
}

func (s *spread) Judge(ctx context.Context, snapshot rollout.Snapshot, p rollout.Proposal) rollout.Verdicts {
	if ctx.Err() != nil {
		s.t.Error("policies have no time to judge")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fleet.Judge(ctx, snapshot, p)
}

func (s *spread) Lower(ctx context.Context, on rollout.Subject, call rollout.RoutingCall) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fleet.Lower(ctx, on, call)
}

// happened are the events so far. Late groups may add to them.
func (s *spread) happened() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

func (s *spread) reconciler() *Reconciler {
	r := s.fleet.reconciler()
	r.Observer, r.Router, r.Metrics, r.Parallel, r.Now = s, s, nil, 16, time.Now
	r.JudgeFor = func(rollout.EnvironmentWorld) Judge { return s }
	r.Groups = DefaultGroupLimits()
	return r
}

// committed are the worker deployments that a commit is about, by their names.
func committed(c rollout.Commit) string {
	names := map[string]bool{}
	var out []string
	for _, f := range c.Changes {
		name, _, _ := strings.Cut(strings.TrimPrefix(f.Path, "deploy/shop/"), "/")
		if strings.HasPrefix(name, "w") && !names[name] {
			names[name], out = true, append(out, name)
		}
	}
	return strings.Join(out, " ")
}

// A Temporal namespace that does not answer costs those of other namespaces neither a rollback nor a commit, and time
// only once. When it answers again, its worker deployments are committed by the next cycle, which is rung for.
func TestHangingNamespaceHoldsNoOtherUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpread(t, "well", "hung", "well")
		s.delays["hung"] = never
		s.verdicts[s.name(2)] = rollback("rollout.canary")
		r := s.reconciler()
		var rung atomic.Int32
		r.Groups.Done = func() { rung.Add(1) }
		cycle := func() time.Duration {
			begin := time.Now()
			_, err := r.Cycle(t.Context())
			require.NoError(t, err)
			return time.Since(begin)
		}
		require.Equal(t, r.Groups.Wait, cycle(), "it is waited for once")
		require.Equal(t, []string{"lower w002"}, s.happened())
		require.Len(t, s.commits, 1)
		require.Equal(t, "w000 w002", committed(s.commits[0]))
		require.Zero(t, cycle(), "and not again")

		time.Sleep(r.Groups.Time)
		synctest.Wait()
		require.EqualValues(t, 1, rung.Load())
		s.delays["hung"] = time.Second
		require.Zero(t, cycle(), "what it could not read is decided")
		require.Zero(t, cycle(), "and asked again")
		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.EqualValues(t, 2, rung.Load())
		before := len(s.commits)
		require.Zero(t, cycle())
		require.Contains(t, committed(s.commits[before]), "w001")
		require.Equal(t, 2*time.Second, cycle(), "it is waited for again, since it is quick")
		r.Close()
	})
}

// An environment whose commits may be proposed waits for all of its groups. Commits of other environments do not wait
// for it.
func TestUndividedCommitHoldsNoOtherUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpread(t, "hung", "well")
		s.delays["hung"] = never
		first := &s.world.Environments[0]
		second := *first
		second.Environment.Name = "second"
		second.Deployments = slices.Clone(first.Deployments[1:])
		second.Deployments[0].Environment.Name = "second"
		first.Deployments = first.Deployments[:1]
		first.Environment.PullRequests.OnProtectedBranch = v1alpha1.ProposeCommits
		s.world.Environments = append(s.world.Environments, second)
		r := s.reconciler()
		r.Proposer = &desk{}
		begin, at := time.Now(), map[string]time.Duration{}
		r.Committer = commits(func(ctx context.Context, c rollout.Commit) (string, error) {
			at[c.Environment.Name] = time.Since(begin)
			return s.Commit(ctx, c)
		})
		_, err := r.Cycle(t.Context())
		require.NoError(t, err)
		require.Equal(t, map[string]time.Duration{"second": 0, s.world.Environments[0].Environment.Name: r.Groups.Time}, at)
		r.Close()
	})
}

// An environment whose groups are done is committed, whatever another one waits for. What a late group decided is
// committed before anything is waited for.
func TestEnvironmentsAreCommittedAsTheyAreDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpread(t, "slow", "slower", "well")
		s.delays["slow"], s.delays["slower"] = time.Second, 3*time.Second // for each of two questions
		first := &s.world.Environments[0]
		second := *first
		second.Environment.Name = "second"
		second.Deployments = slices.Clone(first.Deployments[2:])
		second.Deployments[0].Environment.Name = "second"
		first.Deployments = first.Deployments[:2]
		s.world.Environments = append(s.world.Environments, second)
		r := s.reconciler()
		var begin time.Time
		var at []string
		r.Committer = commits(func(ctx context.Context, c rollout.Commit) (string, error) {
			at = append(at, fmt.Sprint(time.Since(begin), " ", committed(c)))
			return s.Commit(ctx, c)
		})
		cycle := func() {
			begin, at = time.Now(), nil
			_, err := r.Cycle(t.Context())
			require.NoError(t, err)
		}
		cycle()
		require.Equal(t, []string{"0s w002", "5s w000"}, at, "the one is done at once, the other waits for its groups")
		time.Sleep(time.Second)
		synctest.Wait()
		s.mu.Lock()
		s.delays["well"], s.delays["slow"] = 4*time.Second, 4*time.Second
		s.mu.Unlock()
		cycle()
		require.Equal(t, "0s w001", append(at, "no commit")[0], "the late one")
		r.Close()
	})
}

// A late group lowers at once, whatever the cycles do meanwhile.
func TestLateGroupLowersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpread(t, "well", "slow")
		s.delays["slow"] = 4 * time.Second // for each of two questions
		s.verdicts[s.name(1)] = rollback("rollout.canary")
		r := s.reconciler()
		_, err := r.Cycle(t.Context())
		require.NoError(t, err)
		require.Empty(t, s.happened())
		time.Sleep(8 * time.Second)
		synctest.Wait()
		require.Equal(t, []string{"lower w001"}, s.happened())
		_, err = r.Cycle(t.Context())
		require.NoError(t, err)
		require.Contains(t, committed(s.commits[1]), "w001", "what it did is recorded")
		r.Close()
	})
}

// Ten namespaces take the time of the slowest, not the sum.
func TestNamespacesAreReadBesideEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var namespaces []string
		for i := range 10 {
			namespaces = append(namespaces, fmt.Sprint("n", i))
		}
		s := newSpread(t, namespaces...)
		for i, n := range namespaces {
			s.delays[n] = time.Duration(i) * 200 * time.Millisecond
		}
		begin := time.Now()
		report, err := s.reconciler().Cycle(t.Context())
		require.NoError(t, err)
		require.Len(t, report.Decisions, 10)
		require.Equal(t, 2*1800*time.Millisecond, time.Since(begin), "two questions of the slowest")

		begin = time.Now()
		_, decided, err := s.reconciler().Plan(t.Context())
		require.NoError(t, err)
		require.Len(t, decided[0], 10)
		require.Equal(t, 2*1800*time.Millisecond, time.Since(begin), "the command plan does the same")
		world, err := s.reconciler().Observe(t.Context())
		require.NoError(t, err)
		require.Len(t, world.Environments[0].Deployments, 10)
		require.True(t, slices.IsSortedFunc(world.Environments[0].Deployments, func(a, b rollout.Snapshot) int { return a.Deployment.Compare(b.Deployment) }))
	})
}

// budget is a Temporal whose answers take a second. It allows only so many counts in one second.
type budget struct {
	*spread
	limiter           *rate.Limiter
	slots, countSlots chan struct{}
	// counted is how often worker deployments were counted.
	counted map[string]int
}

// newBudget has many worker deployments that ramp in one Temporal namespace, which are read by so many at a time.
func newBudget(t *testing.T, many, slots, countsPerSecond int) *budget {
	s := newSpread(t, strings.Fields(strings.Repeat("busy ", many))...)
	s.delays["busy"] = time.Second
	return &budget{spread: s, limiter: rate.NewLimiter(rate.Limit(countsPerSecond), countsPerSecond), slots: make(chan struct{}, slots),
		countSlots: make(chan struct{}, 2*countsPerSecond), counted: map[string]int{}}
}

func (b *budget) Slot(ctx context.Context, _ v1alpha1.Connection, _ string) (func(), error) {
	return taken(ctx, b.slots)
}

func (b *budget) CountSlot(ctx context.Context, _ v1alpha1.Connection, _ string) (func(), error) {
	return taken(ctx, b.countSlots)
}

func taken(ctx context.Context, slots chan struct{}) (func(), error) {
	select { // one that is free can be had late, too
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	default:
	}
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-ctx.Done():
		return nil, errors.New("no slot")
	}
}

func (b *budget) Observe(ctx context.Context, conn v1alpha1.Connection, ask rollout.Ask) rollout.Observation {
	if ask.Counts() && ask.CountsRefused == "" && b.limiter.Wait(ctx) == nil {
		b.mu.Lock()
		b.counted[ask.Deployment.Name]++
		b.mu.Unlock()
	}
	return b.spread.Observe(ctx, conn, ask)
}

// run runs cycles for a time, and gives the least and the most often that one of the worker deployments was counted.
func (b *budget) run(t *testing.T, long time.Duration) (least, most int) {
	r, late := b.reconciler(), make(chan struct{}, 1)
	r.Observer, r.Slots, r.SlotPatience, r.Groups.Done = b, b, DefaultSlotPatience, func() { late <- struct{}{} }
	for begin := time.Now(); time.Since(begin) < long; { // as the bot does
		report, err := r.Cycle(t.Context())
		require.NoError(t, err)
		pause := 10 * time.Second
		if report.More {
			pause = 0
		}
		select {
		case <-late:
		case <-time.After(pause):
		}
	}
	r.Close()
	require.Len(t, b.counted, len(b.world.Environments[0].Deployments))
	counts := slices.Collect(maps.Values(b.counted))
	return slices.Min(counts), slices.Max(counts)
}

// With 150 worker deployments in motion in a namespace that has time for few, all are counted in turn. After three
// times the time that one look at each takes, each was counted, and none more than once more often than others. Where
// many are read at a time, one can also come before another one that is read at the same time.
func TestEachOfManyHasItsTurn(t *testing.T) {
	for slots, apart := range map[int]int{4: 1, 40: 2} {
		t.Run(fmt.Sprint(slots, " are read at a time"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const many, each = 150, 4                                                        // per second
				least, most := newBudget(t, many, slots, each).run(t, 3*many/each*2*time.Second) // two questions each
				require.LessOrEqual(t, most-least, apart, "each has its turn before any has another one")
				require.GreaterOrEqual(t, least, 2)
			})
		})
	}
}

// While the repository is away, a namespace that hangs costs the others no rollback, and its own traffic is lowered
// once it answers.
func TestHangingNamespaceWithoutTheRepository(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpread(t, "hung", "well")
		r := s.reconciler()
		_, err := r.Cycle(t.Context())
		require.NoError(t, err)
		s.delays["hung"], s.readErr, s.events = never, errors.New("away"), nil
		s.verdicts[s.name(0)], s.verdicts[s.name(1)] = rollback("rollout.canary"), rollback("rollout.canary")
		_, err = r.Cycle(t.Context())
		require.ErrorContains(t, err, "away")
		require.Equal(t, []string{"lower w001"}, s.happened())
		time.Sleep(r.Groups.Time)
		s.delays["hung"] = 0
		for range 3 {
			time.Sleep(time.Second)
			_, err = r.Cycle(t.Context())
			require.ErrorContains(t, err, "away")
			synctest.Wait()
		}
		require.Contains(t, s.events, "lower w000")
		r.Close()
	})
}

// slowRaises is a Router that waits before each raise. An error in place of the wait's end is the answer.
type slowRaises struct {
	Router
	wait func(ctx context.Context, on rollout.Subject) error
}

func (s slowRaises) Raise(ctx context.Context, on rollout.Subject, call rollout.RoutingCall) error {
	if err := s.wait(ctx, on); err != nil {
		return err
	}
	return s.Router.Raise(ctx, on, call)
}

// raisesTake is a Router whose raises take some time, which no context shortens.
func raisesTake(t time.Duration, of Router) Router {
	return slowRaises{of, func(context.Context, rollout.Subject) error {
		time.Sleep(t)
		return nil
	}}
}

// A namespace in which a raise hangs holds up neither the raises of others nor the next cycle for long.
func TestHangingRaiseHoldsNoOtherUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, "a", "b")
		c.most, c.now = 2, time.Now()
		for i, namespace := range []string{"hung", "well"} {
			c.world.Environments[0].Deployments[i].Spec.Spec.WorkerOptions.TemporalNamespace = namespace
		}
		r := c.reconciler()
		r.Groups, r.Router = DefaultGroupLimits(), slowRaises{r.Router,
			func(_ context.Context, on rollout.Subject) error {
				if on.TemporalNamespace != "hung" {
					return nil
				}
				time.Sleep(10 * time.Second)
				return context.DeadlineExceeded
			}}
		var now atomic.Pointer[time.Time] // a late raise looks at it
		first := c.now
		now.Store(&first)
		r.Now = func() time.Time { return *now.Load() }
		begin := time.Now()
		for range 4 {
			next := c.now.Add(time.Minute)
			c.now = next
			now.Store(&next)
			c.once(r)
		}
		require.Less(t, time.Since(begin), 2*r.Groups.Wait)
		require.Contains(t, c.calls, "b SetRamp")
		time.Sleep(2 * r.Groups.Time)
		synctest.Wait()
		report := c.once(r)
		require.Contains(t, report.Failures["shop/a"], "raise traffic")

		r.Close()
		r.Router = c
		c.once(r)
		synctest.Wait()
		c.once(r)
		require.Contains(t, c.calls, "a SetRamp")
		require.Empty(t, r.running.slow, "it is waited for again")
	})
}

// A late group raises nothing of what somebody took back, or put on hold, while it was at work on others.
func TestLateGroupRaisesNothingThatWasTakenBack(t *testing.T) {
	for name, change := range map[string]func(*rollout.Snapshot){
		"nothing": func(*rollout.Snapshot) {},
		"spec":    func(s *rollout.Snapshot) { s.Git.SpecBlob = "another" },
		"record": func(s *rollout.Snapshot) {
			s.Record.Files = maps.Clone(s.Record.Files)
			s.Record.Files["routing.yaml"] = rollout.File{Data: "another", Hash: "another"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrowd(t, "a", "b")
				c.most, c.now = 2, time.Now()
				r := c.reconciler()
				c.once(r)
				r.Groups, r.Router = DefaultGroupLimits(), raisesTake(10*time.Second-time.Millisecond, c)
				c.once(r)
				require.NotEmpty(t, r.running.groups, "it is late")
				change(&c.world.Environments[0].Deployments[1])
				c.once(r)
				time.Sleep(r.Groups.Time)
				synctest.Wait()
				require.Equal(t, name == "nothing", slices.Contains(c.calls, "b SetRamp"), "%q", c.calls)
				require.Contains(t, c.calls, "a SetRamp")
				r.Close()
			})
		})
	}
}

// A group begins no call when its time is over, and gives up none that began: what became of that would not be known.
// What was not begun is raised later.
func TestNoRaiseIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names []string
		for i := range 30 {
			names = append(names, fmt.Sprintf("w%02d", i))
		}
		c := newCrowd(t, names...)
		c.most, c.now = len(names), time.Now()
		r := c.reconciler()
		r.Groups, r.Router = DefaultGroupLimits(), slowRaises{c,
			func(ctx context.Context, _ rollout.Subject) error {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(time.Second):
					return nil
				}
			}}
		c.once(r)
		begin := time.Now()
		for cycle := 0; len(c.calls) < len(names); cycle++ {
			require.Less(t, cycle, 10)
			report := c.once(r)
			require.Empty(t, report.Failures)
			time.Sleep(r.Groups.Time)
			synctest.Wait()
		}
		require.GreaterOrEqual(t, time.Since(begin), r.Groups.Time, "not all in one cycle")
		r.Close()
	})
}
