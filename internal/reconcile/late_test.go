package reconcile

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/resync"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// allows is a policy that holds nothing.
type allows = Judge

// frozen is a policy whose answer another one takes the place of while a group is late.
type frozen struct {
	allows
	digest string
	hold   bool
}

func (f frozen) Digest() string { return f.digest }

func (f frozen) Judge(ctx context.Context, s rollout.Snapshot, p rollout.Proposal) rollout.Verdicts {
	v := f.allows.Judge(ctx, s, p)
	for _, a := range p.Actions {
		if f.hold && a.Raises() {
			v.Actions[a.ID] = rollout.Verdict{Effect: rollout.HoldEffect, Findings: []rollout.Finding{{Package: "acme", Rule: "acme.freeze",
				Effect: rollout.HoldEffect, Message: "frozen"}}}
		}
	}
	return v
}

// delayed is an Observer that answers after a delay.
type delayed struct {
	Observer
	delay time.Duration
}

func (d *delayed) Observe(ctx context.Context, conn v1alpha1.Connection, ask rollout.Ask) rollout.Observation {
	time.Sleep(d.delay)
	return d.Observer.Observe(ctx, conn, ask)
}

// What a late group decided is judged by the policies of when it is committed: a freeze that came meanwhile holds it.
func TestFreezeThatComesWhileAGroupIsLate(t *testing.T) {
	for _, freeze := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := newCrowd(t, "a")
			c.now = time.Now()
			r := c.reconciler()
			r.Groups = DefaultGroupLimits()
			f, o := frozen{allows: r.JudgeFor(rollout.EnvironmentWorld{}), digest: "before"}, &delayed{Observer: r.Observer}
			r.Observer, r.JudgeFor = o, func(rollout.EnvironmentWorld) Judge { return f }
			c.once(r)
			c.once(r)
			require.Equal(t, []string{"a SetRamp"}, c.calls)
			c.now = c.now.Add(2 * time.Minute)
			o.delay = 4 * time.Second // for each of two questions
			require.Empty(t, c.once(r).Decisions, "it is late")
			if freeze {
				f.digest, f.hold = "after", true
			}
			time.Sleep(10 * time.Second)
			synctest.Wait()
			c.once(r)
			if freeze {
				require.Len(t, c.calls, 1)
			} else {
				require.Equal(t, []string{"a SetRamp", "a SetCurrent"}, c.calls)
			}
			r.Close()
		})
	}
}

// A late group that raises nothing on old facts says so in the status that the next cycle commits. That cycle raises,
// and the one after it says that nothing is wrong any more.
func TestLateGroupSaysThatFactsWereOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, "a", "b")
		c.most, c.now = 2, time.Now()
		r := c.reconciler()
		hung := make(chan struct{})
		r.Groups, r.Router = DefaultGroupLimits(), slowRaises{r.Router, func(context.Context, rollout.Subject) error {
			<-hung
			return nil
		}}
		status := func() string { return c.world.Environments[0].Deployments[1].Record.Files[layout.Status].Data }
		c.once(r)
		c.once(r)
		require.NotEmpty(t, r.running.groups, "it is late")
		synctest.Wait()
		c.now = c.now.Add(2 * time.Minute)
		close(hung)
		synctest.Wait()
		require.Equal(t, []string{"a SetRamp"}, c.calls)
		require.NotContains(t, status(), rollout.StaleFacts)
		c.once(r)
		require.Contains(t, c.calls, "b SetRamp")
		require.Contains(t, status(), "not raised: when its commit was pushed, what was seen of Temporal was more than")
		c.once(r)
		require.NotContains(t, status(), rollout.StaleFacts)
		r.Close()
	})
}

// TestStatusesOfThisCycleSayWhatLateRaisesFailedWith: groups that lowered without the repository are decided again in
// the same cycle, and what they failed with may be healed by that.
func TestStatusesOfThisCycleSayWhatLateRaisesFailedWith(t *testing.T) {
	for _, raises := range []bool{true, false} {
		s := newScene(t)
		r, key := s.reconciler(), resync.KeyOf(&s.world.Environments[0].Deployments[0])
		g := &group{groupKey: groupKey{raises: raises}, blind: !raises, env: s.world.Environments[0], report: newReport()}
		g.report.problems[key] = &rollout.Problem{Reason: rollout.StaleFacts}
		report := newReport()
		report.merge(assessed{groups: []*group{g}}, r)
		_, said := r.failures[key]
		require.Equal(t, raises, said)
		r.end(t.Context(), &report)
		require.Contains(t, r.failures, key, "at the end of the cycle both are kept")
	}
}

// What takes traffic back has time of its own, however long it took to observe.
func TestObservingTakesNoTimeFromLowering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpread(t, "half", "half")
		s.verdicts[s.name(1)] = rollback("rollout.canary")
		r := s.reconciler()
		hung := s.name(0)
		r.Observer = halfHung{s, hung}
		router := &needsTime{Router: s}
		r.Router = router
		_, err := r.Cycle(t.Context())
		require.NoError(t, err)
		time.Sleep(2 * r.Groups.Time)
		synctest.Wait()
		require.Equal(t, []string{"lower w001"}, s.happened())
		r.Close()
	})
}

// halfHung does not answer about one worker deployment.
type halfHung struct {
	*spread
	hung rollout.Name
}

func (h halfHung) Observe(ctx context.Context, conn v1alpha1.Connection, ask rollout.Ask) rollout.Observation {
	if ask.Deployment == h.hung {
		<-ctx.Done()
		return rollout.Observation{At: time.Now(), Problem: &rollout.Problem{Reason: rollout.TemporalStateFetchFailed, Message: "no answer"}}
	}
	return h.spread.Observe(ctx, conn, ask)
}

// needsTime is a Router whose calls take a second.
type needsTime struct{ Router }

func (n *needsTime) Lower(ctx context.Context, on rollout.Subject, call rollout.RoutingCall) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Second):
		return n.Router.Lower(ctx, on, call)
	}
}

// A raise that hangs does not take the place of a look at its namespace, nor the other way round.
func TestRaisesAndLooksDoNotTakeEachOthersPlace(t *testing.T) {
	r := &running{groups: map[groupKey]*group{}}
	key := groupKey{environment: "prod", namespace: "shop"}
	require.False(t, r.busy(key))
	for _, raises := range []bool{false, true} {
		is := key
		is.raises = raises
		r.groups = map[groupKey]*group{is: {}}
		require.True(t, r.busy(key))
		require.True(t, r.busy(is))
	}
}

// What a group decided without the repository lowered, and is not committed.
func TestBlindDecisionsAreNotCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpread(t, "slow")
		r := s.reconciler()
		_, err := r.Cycle(t.Context())
		require.NoError(t, err)
		before := len(s.commits)
		s.readErr, s.delays["slow"] = context.DeadlineExceeded, 4*time.Second
		_, err = r.Cycle(t.Context())
		require.Error(t, err)
		s.readErr = nil
		time.Sleep(10 * time.Second)
		synctest.Wait()
		report, err := r.Cycle(t.Context())
		require.NoError(t, err)
		require.Empty(t, report.Decisions)
		require.Len(t, s.commits, before)
		require.True(t, report.More, "it is decided again")
		r.Close()
	})
}
