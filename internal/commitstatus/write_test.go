package commitstatus

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/forge"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/statetable"
)

func (s *said) SetStatus(ctx context.Context, commit string, st forge.Status) error {
	if err := s.answer(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written = append(s.written, fmt.Sprintf("%s %s %s: %s", commit, st.Context, st.State, st.Description))
	if s.statuses == nil {
		s.statuses = map[string][]forge.Status{}
	}
	s.statuses[commit] = append([]forge.Status{st}, s.statuses[commit]...)
	return nil
}

// news are what was written since the last time.
func (s *said) news() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.written
	s.written = nil
	return out
}

// questions are the commits that were asked about.
func (s *said) questions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// scene is an environment whose worker deployments were decided about.
type scene struct {
	*Writer
	t       *testing.T
	on      *said
	env     v1alpha1.Environment
	names   []string
	origins map[string]string
	// changers are the commits that changed the specs, the newest first.
	changers []string
	err      error
}

func (s *scene) Origins(_ context.Context, snapshots []rollout.Snapshot) ([]rollout.GitContext, error) {
	out := make([]rollout.GitContext, len(snapshots))
	for i, of := range snapshots {
		out[i].Commit = s.origins[of.Deployment.Name]
	}
	return out, s.err
}

func (s *scene) Changers(map[string]bool) func(context.Context) ([]string, error) {
	found := s.changers
	return func(context.Context) ([]string, error) { return found, nil }
}

// start begins a Writer anew on the same forge.
func (s *scene) start() {
	s.Writer = NewWriter(WriterConfig{Origins: s, Forge: s.on, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Link: func(_ v1alpha1.Environment, dir string) string { return "https://git.example.com/" + dir }})
}

// stop ends it as if it was killed.
func (s *scene) stop() {
	ctx, cancel := context.WithCancel(s.t.Context())
	cancel()
	s.Close(ctx)
}

// inScene runs a test with worker deployments that one commit, c1, asked for.
func inScene(t *testing.T, names []string, test func(t *testing.T, s *scene)) {
	t.Helper()
	in(t, func(t *testing.T) {
		s := &scene{t: t, on: &said{}, env: v1alpha1.Environment{Name: "prod", Output: v1alpha1.Output{Path: "deploy"}}, names: names, origins: map[string]string{}}
		for _, n := range names {
			s.origins[n] = "c1"
		}
		s.start()
		defer func() { s.stop() }()
		test(t, s)
	})
}

// cycle is one in which worker deployments are at these states, by name, and others are not looked at.
func (s *scene) cycle(at map[string]rollout.State) []string {
	s.t.Helper()
	var decisions []*rollout.Decision
	world := rollout.EnvironmentWorld{Environment: s.env}
	for _, n := range s.names {
		name := rollout.Name{Namespace: "shop", Name: n}
		world.Entries = append(world.Entries, &rollout.IndexEntry{Deployment: name})
		if state, looked := at[n]; looked {
			decisions = append(decisions, &rollout.Decision{Snapshot: rollout.Snapshot{Deployment: name, Environment: s.env, SpecPath: "workers/" + n + ".yaml"},
				Proposal: rollout.Proposal{State: state}, Plan: rollout.Plan{Deployment: name, Dir: "deploy/shop/" + n}})
		}
	}
	s.Decided(s.t.Context(), decisions)
	s.Cycle(rollout.World{Environments: []rollout.EnvironmentWorld{world}})
	synctest.Wait()
	return s.on.news()
}

var (
	ramping    = rollout.State{Reason: rollout.Ramping, Message: "10% of new workflows"}
	atComplete = rollout.State{Reason: rollout.RolloutComplete, Message: "v2 is current"}
	turned     = rollout.State{Reason: rollout.RolledBack, Message: "failure rate 9%", Stalled: true}
	away       = rollout.State{Reason: rollout.TemporalStateFetchFailed, Message: "connection refused"}
)

// One status for the environment: pending, success; written once each; and asked for once at most.
func TestPendingThenSuccess(t *testing.T) {
	inScene(t, []string{"a", "b"}, func(t *testing.T, s *scene) {
		require.Empty(t, s.cycle(map[string]rollout.State{"a": ramping}), "b was never looked at: nothing can be said of the commit")
		require.Equal(t, []string{"c1 rampart/prod pending: 0 of 2 complete; shop/a: Ramping"}, s.cycle(map[string]rollout.State{"b": ramping}))
		require.Empty(t, s.cycle(map[string]rollout.State{"a": ramping, "b": ramping}))
		require.Empty(t, s.cycle(map[string]rollout.State{"a": atComplete}), "words alone are said later")
		time.Sleep(sayEvery)
		require.Equal(t, []string{"c1 rampart/prod pending: 1 of 2 complete; shop/b: Ramping"}, s.cycle(nil))
		require.Equal(t, []string{"c1 rampart/prod success: 2 worker deployments: rollout complete"}, s.cycle(map[string]rollout.State{"b": atComplete}))
		for range 100 {
			time.Sleep(time.Minute)
			require.Empty(t, s.cycle(map[string]rollout.State{"a": atComplete, "b": atComplete}))
		}
		require.Equal(t, []string{"c1"}, s.on.asked)
		require.Equal(t, "https://git.example.com/deploy", s.on.statuses["c1"][0].URL)
	})
}

// An unknown state, a pause by a person, and drift do not undo a success; a rollback does, and trying again undoes
// that.
func TestWhatUndoesWhat(t *testing.T) {
	inScene(t, []string{"a"}, func(t *testing.T, s *scene) {
		require.Equal(t, []string{"c1 rampart/prod pending: shop/a: TemporalStateFetchFailed"}, s.cycle(map[string]rollout.State{"a": away}))
		require.Len(t, s.cycle(map[string]rollout.State{"a": atComplete}), 1)
		require.Equal(t, "https://git.example.com/deploy/shop/a", s.on.statuses["c1"][0].URL)
		require.Empty(t, s.cycle(map[string]rollout.State{"a": away}))
		require.Empty(t, s.cycle(map[string]rollout.State{"a": {Reason: rollout.ManualHold}}))
		require.Equal(t, []string{"c1 rampart/prod failure: shop/a: RolledBack: failure rate 9%"}, s.cycle(map[string]rollout.State{"a": turned}))
		for _, reason := range []rollout.Reason{rollout.PolicyHold, rollout.AwaitingApproval, rollout.ManualHold} {
			require.Equal(t, []string{"c1 rampart/prod pending: shop/a: " + string(reason)}, s.cycle(map[string]rollout.State{"a": {Reason: reason, Stalled: true}}), "it waits")
			require.Len(t, s.cycle(map[string]rollout.State{"a": turned}), 1)
			time.Sleep(time.Minute)
		}
		require.Empty(t, s.cycle(map[string]rollout.State{"a": away}), "it was not seen to be otherwise")
		require.Equal(t, []string{"c1 rampart/prod pending: shop/a: Ramping"}, s.cycle(map[string]rollout.State{"a": ramping}), "retried")
	})
}

// A failure of one is told at once, beside others that go on.
func TestFailureOfOne(t *testing.T) {
	inScene(t, []string{"a", "b", "c"}, func(t *testing.T, s *scene) {
		require.Equal(t, []string{"c1 rampart/prod failure: 1 of 3 complete; shop/b: RolledBack: failure rate 9%"},
			s.cycle(map[string]rollout.State{"a": ramping, "b": turned, "c": atComplete}))
	})
}

// Where asked for, each worker deployment has its own.
func TestPerWorkerDeployment(t *testing.T) {
	inScene(t, []string{"a", "b"}, func(t *testing.T, s *scene) {
		s.env.CommitStatuses = v1alpha1.StatusPerWorkerDeployment
		require.Equal(t, []string{"c1 rampart/prod/shop/a failure: shop/a: RolledBack: failure rate 9%", "c1 rampart/prod/shop/b success: shop/b: rollout complete"},
			s.cycle(map[string]rollout.State{"a": turned, "b": atComplete}))
		require.Equal(t, []string{"c1"}, s.on.asked, "one question about a commit")
		s.env.CommitStatuses = v1alpha1.NoCommitStatuses
		require.Empty(t, s.cycle(map[string]rollout.State{"a": atComplete, "b": turned}))
	})
}

// A commit that waits for nothing any more is told so; what it asked for beside goes on.
func TestSupersededCommitIsTold(t *testing.T) {
	inScene(t, []string{"a", "b"}, func(t *testing.T, s *scene) {
		require.Len(t, s.cycle(map[string]rollout.State{"a": ramping, "b": ramping}), 1)
		s.origins["a"] = "c2"
		require.Equal(t, []string{"c2 rampart/prod pending: shop/a: Ramping"}, s.cycle(map[string]rollout.State{"a": ramping, "b": ramping}))
		s.origins["b"] = "c2"
		require.Equal(t, []string{"c1 rampart/prod error: superseded: what this commit asked for is not waited for any more"}, s.cycle(map[string]rollout.State{"a": ramping, "b": ramping}))
		require.Len(t, s.cycle(map[string]rollout.State{"a": atComplete, "b": atComplete}), 1)
		s.origins["a"], s.origins["b"] = "c3", "c3"
		require.Equal(t, []string{"c3 rampart/prod pending: 0 of 2 complete; shop/a: Ramping"}, s.cycle(map[string]rollout.State{"a": ramping, "b": ramping}), "what was complete stays so")
	})
}

// A forge that is away, slow, or refuses delays no cycle, and is told later what is so then.
func TestNothingIsLost(t *testing.T) {
	inScene(t, []string{"a"}, func(t *testing.T, s *scene) {
		s.on.fails(&forge.UnavailableError{Op: "set", Where: "git.example.com", Said: "connection refused"})
		began := time.Now()
		require.Empty(t, s.cycle(map[string]rollout.State{"a": ramping}))
		require.Empty(t, s.cycle(map[string]rollout.State{"a": atComplete}))
		require.Zero(t, time.Since(began))
		require.Len(t, s.on.asked, 1, "it is left alone for a minute")
		s.on.fails(nil)
		time.Sleep(rest)
		synctest.Wait()
		require.Equal(t, []string{"c1 rampart/prod success: shop/a: rollout complete"}, s.on.news())

		s.on.fails(&forge.RateLimitError{Where: "git.example.com", Until: time.Now().Add(time.Hour)})
		require.Empty(t, s.cycle(map[string]rollout.State{"a": turned}))
		s.on.fails(nil)
		time.Sleep(59 * time.Minute)
		require.Empty(t, s.cycle(nil))
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, s.on.news(), 1)

		s.on.fails(&forge.RefusedError{Op: "set", Where: "git.example.com", Reason: forge.ReasonForbidden})
		require.Empty(t, s.cycle(map[string]rollout.State{"a": ramping}))
		s.on.fails(nil)
		time.Sleep(again)
		synctest.Wait()
		require.Len(t, s.on.news(), 1)

		s.on.slow(10 * time.Second)
		began = time.Now()
		s.Decided(t.Context(), nil)
		s.cycleNow(map[string]rollout.State{"a": atComplete})
		require.Zero(t, time.Since(began), "a forge that answers slowly keeps nothing waiting")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Len(t, s.on.news(), 1)
	})
}

// cycleNow is cycle without waiting for what is written.
func (s *scene) cycleNow(at map[string]rollout.State) {
	name := rollout.Name{Namespace: "shop", Name: s.names[0]}
	s.Decided(s.t.Context(), []*rollout.Decision{{Snapshot: rollout.Snapshot{Deployment: name, Environment: s.env, SpecPath: "x.yaml"},
		Proposal: rollout.Proposal{State: at[s.names[0]]}, Plan: rollout.Plan{Deployment: name}}})
	s.Cycle(rollout.World{Environments: []rollout.EnvironmentWorld{{Environment: s.env, Entries: []*rollout.IndexEntry{{Deployment: name}}}}})
}

// A Writer that begins anew reads what is there: it repeats nothing, and says what was not said.
func TestAfterAStart(t *testing.T) {
	inScene(t, []string{"a"}, func(t *testing.T, s *scene) {
		require.Len(t, s.cycle(map[string]rollout.State{"a": atComplete}), 1)
		s.stop()
		s.start()
		require.Empty(t, s.cycle(map[string]rollout.State{"a": atComplete}))
		require.Len(t, s.on.asked, 2)
		s.stop()
		s.start()
		require.Equal(t, []string{"c1 rampart/prod failure: shop/a: RolledBack: failure rate 9%"}, s.cycle(map[string]rollout.State{"a": turned}), "it became so, and the bot ended before it said so")

		// What ended its rollout long ago is not asked about at each start.
		s.stop()
		s.start()
		asked := len(s.on.asked)
		d := &rollout.Decision{Snapshot: rollout.Snapshot{Deployment: rollout.Name{Namespace: "shop", Name: "a"}, Environment: s.env, SpecPath: "x.yaml"}}
		d.Plan.Deployment = d.Snapshot.Deployment
		d.Plan.Status = &v1alpha1.WorkerDeploymentStatus{Conditions: []v1alpha1.Condition{{Type: v1alpha1.ConditionReady, Status: v1alpha1.True,
			Reason: string(rollout.RolloutComplete), LastTransitionTime: v1alpha1.NewTime(time.Now().Add(-longAgo - time.Hour))}}}
		s.Decided(t.Context(), []*rollout.Decision{d})
		s.Cycle(rollout.World{Environments: []rollout.EnvironmentWorld{{Environment: s.env, Entries: []*rollout.IndexEntry{{Deployment: d.Plan.Deployment}}}}})
		synctest.Wait()
		require.Empty(t, s.on.news())
		require.Len(t, s.on.asked, asked)
	})
}

// A commit whose status waits, and that others superseded while no bot ran, is told so once a bot runs again. What is
// still waited for, or ended, is left alone.
func TestSupersededWhileNoBotRan(t *testing.T) {
	inScene(t, []string{"a", "b"}, func(t *testing.T, s *scene) {
		s.origins["b"], s.changers = "c0", []string{"c1", "c0"}
		require.Len(t, s.cycle(map[string]rollout.State{"a": ramping, "b": ramping}), 2)
		s.stop()

		s.origins["a"], s.changers = "c3", []string{"c3", "c2", "c1", "c0"}
		s.start()
		require.Equal(t, []string{"c3 rampart/prod pending: shop/a: Ramping",
			"c1 rampart/prod error: superseded: what this commit asked for is not waited for any more"},
			s.cycle(map[string]rollout.State{"a": ramping, "b": ramping}), "not c0, which b still waits for, and not c2, which never had a status")
		s.origins["a"], s.changers = "c4", []string{"c4", "c3", "c2", "c1", "c0"}
		asked := len(s.on.questions())
		time.Sleep(time.Minute)
		require.Len(t, s.cycle(map[string]rollout.State{"a": atComplete}), 2)
		require.Len(t, s.on.questions(), asked+1, "earlier commits are asked about once after a start")
	})
}

// Earlier commits are asked about when all that is new was said, each of them once whatever contexts it has. Statuses
// of others are left alone.
func TestEarlierCommitsComeLast(t *testing.T) {
	var names []string
	for i := range 15 {
		names = append(names, fmt.Sprintf("w%02d", i))
	}
	inScene(t, names, func(t *testing.T, s *scene) {
		s.env.CommitStatuses = v1alpha1.StatusPerWorkerDeployment
		at := map[string]rollout.State{}
		for _, n := range names {
			at[n] = ramping
		}
		s.changers = []string{"c1", "c0"}
		s.on.statuses = map[string][]forge.Status{}
		const own = "rampart/prod/shop/"
		for _, c := range []string{own + "w00", own + "w01", own + "gone", "rampart/production", "ci"} {
			s.on.statuses["c0"] = append(s.on.statuses["c0"], forge.Status{Context: c, State: forge.StatusPending})
		}
		require.Len(t, s.cycle(at), burst-1)
		require.Equal(t, []string{"c1"}, s.on.questions(), "what is new comes first")
		time.Sleep(time.Minute)
		synctest.Wait()
		said := s.on.news()
		require.Len(t, said, len(names)-burst+1+3)
		for i, name := range []string{"gone", "w00", "w01"} {
			require.True(t, strings.HasPrefix(said[len(said)-3+i], "c0 "+own+name+" error: superseded"), "%s", said)
		}
		require.Equal(t, []string{"c1", "c1", "c0"}, s.on.questions())
	})
}

// A commit that the forge cannot be asked about is passed over.
func TestEarlierCommitsThatFail(t *testing.T) {
	for name, broken := range map[string]error{
		"refused":     &forge.RefusedError{Op: "read", Where: "git.example.com", Reason: forge.ReasonForbidden},
		"unavailable": &forge.UnavailableError{Op: "read", Where: "git.example.com", Said: "HTTP 500"},
	} {
		t.Run(name, func(t *testing.T) {
			inScene(t, []string{"a"}, func(t *testing.T, s *scene) {
				s.changers, s.on.broken = []string{"c0", "b2", "b1"}, map[string]error{"c0": broken}
				s.on.statuses = map[string][]forge.Status{"b1": {{Context: "rampart/prod", State: forge.StatusPending}}}
				require.NotEmpty(t, s.cycle(map[string]rollout.State{"a": ramping}))
				s.cycleNow(map[string]rollout.State{"a": atComplete})
				time.Sleep(rest)
				synctest.Wait()
				s.on.mu.Lock()
				defer s.on.mu.Unlock()
				require.Contains(t, s.on.statuses["c1"][0].Description, "complete", "others are said")
				require.Equal(t, forge.StatusError, s.on.statuses["b1"][0].State)
				require.Equal(t, []string{"c1", "c0", "b2", "b1"}, s.on.asked)
			})
		})
	}
}

// The time that Close has is not spent on earlier commits.
func TestCloseLeavesEarlierCommits(t *testing.T) {
	inScene(t, []string{"a"}, func(t *testing.T, s *scene) {
		s.changers = []string{"c0", "b2", "b1"}
		s.on.slow(3 * time.Second)
		s.cycleNow(map[string]rollout.State{"a": ramping})
		began := time.Now()
		s.Close(t.Context())
		took := time.Since(began)
		s.start()
		require.Equal(t, 6*time.Second, took, "one question and one status")
		require.Len(t, s.on.news(), 1)
		require.Equal(t, []string{"c1"}, s.on.questions())

		s.cycleNow(map[string]rollout.State{"a": ramping})
		time.Sleep(4 * time.Second)
		began = time.Now()
		s.Close(t.Context())
		took = time.Since(began)
		s.start()
		require.Zero(t, took, "the question under way ends")
		require.Equal(t, []string{"c1", "c1", "c0"}, s.on.questions())
	})
}

// What waits when the bot ends is said before, as long as that may take.
func TestCloseSaysTheRest(t *testing.T) {
	inScene(t, []string{"a"}, func(t *testing.T, s *scene) {
		s.on.slow(3 * time.Second)
		s.cycleNow(map[string]rollout.State{"a": atComplete})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		s.Close(ctx)
		require.Len(t, s.on.news(), 1)

		s.start()
		s.on.slow(time.Hour)
		s.cycleNow(map[string]rollout.State{"a": turned})
		began := time.Now()
		ctx, cancel = context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		s.Close(ctx)
		require.Equal(t, 10*time.Second, time.Since(began))
		s.on.slow(0)
		s.start()
	})
}

// A commit that asked and cannot be found yet holds back what would be said without it, for a while.
func TestOriginsThatAreNotKnown(t *testing.T) {
	inScene(t, []string{"a", "b"}, func(t *testing.T, s *scene) {
		delete(s.origins, "b")
		at := map[string]rollout.State{"a": atComplete, "b": ramping}
		require.Empty(t, s.cycle(at))
		time.Sleep(originGrace)
		require.Equal(t, []string{"c1 rampart/prod success: shop/a: rollout complete"}, s.cycle(at))
	})
}

// Many statuses are spread over time.
func TestWithinTheBudget(t *testing.T) {
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprintf("w%03d", i))
	}
	inScene(t, names, func(t *testing.T, s *scene) {
		s.env.CommitStatuses = v1alpha1.StatusPerWorkerDeployment
		at := map[string]rollout.State{}
		for _, n := range names {
			at[n] = atComplete
		}
		at["w050"] = turned
		first := s.cycle(at)
		require.Len(t, first, burst-1, "beside one question")
		require.True(t, strings.HasPrefix(first[0], "c1 rampart/prod/shop/w050 failure"), "what went wrong comes first: %s", first[0])
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, s.on.news(), 60)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, s.on.news(), 100-60-burst+1)
		require.Len(t, s.on.asked, 1)
	})
}

// TestStatesOfTheTable: a commit has the status that the table of docs/cd.md says for each state.
func TestStatesOfTheTable(t *testing.T) {
	for _, row := range statetable.Rows(t) {
		d := &rollout.Decision{Plan: rollout.Plan{Status: row.Status(v1alpha1.Time{})}}
		for _, before := range []forge.StatusState{"", forge.StatusPending, forge.StatusFailure} {
			want := forge.StatusState(row.Commit)
			if want == "as before" {
				want = before
			}
			require.Equal(t, want, standingOf(d, "abc", standing{commit: "abc", state: before}).state, row.State)
		}
	}
}
