package bench

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/internal/gittest"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/webhook"
	"github.com/rampart-gitops/rampart/policy"
)

// namespacesPart is the part of TestScale about Temporal namespaces that are slow, or hang.
const namespacesPart = "namespaces"

// namespaces measures what worker deployments wait for where their own Temporal namespace has little time, or another
// one hangs: rollback under load, fairness and independence. Repository, policies and the Reconciler are those of the
// bot, with its limits of time. Temporal is in memory, and its answers take real time: nearly all that is measured is
// waiting, so that the three run beside each other.
type namespaces struct {
	// pace is 1 as in production; all goes faster in the everyday test.
	pace time.Duration
	// ramping are those beside the failing ones, and those whose turns are looked at.
	failing, others, ramping int
	// each is how many ramp in each of ten Temporal namespaces; cycles is how many are measured without one that
	// hangs, and with it.
	each, cycles int
	// ready is done when all three can begin: making a crowd computes.
	ready *sync.WaitGroup
}

// ideal is the least time in which each of some worker deployments can be counted once, with so many calls. These
// follow each other without a pause, at the rate that the budget allows. No order of turns lets the last one advance
// sooner, but for the few counts that the budget allows at once.
func (n namespaces) ideal(of, calls int) time.Duration {
	return time.Duration(of*calls) * time.Second / countsPerSecond / n.pace
}

// mostCalls is how many calls count what one look asks for, at most. They count what was closed of each of two
// versions, and two kinds of stuck workflows.
const mostCalls = 4

// interval is the default of --interval.
const interval = 10 * time.Second

func (n namespaces) all(t *testing.T) {
	table := table{}
	rows := []struct {
		name string
		run  func(n namespaces, t *testing.T) (what, text string, target target)
	}{{"rollback", namespaces.rollback}, {"fairness", namespaces.fairness}, {"independence", namespaces.independence}}
	notes := make([]func(), len(rows))
	n.ready = &sync.WaitGroup{}
	n.ready.Add(len(rows))
	var beside sync.WaitGroup
	for i, row := range rows { // however few tests may run in parallel
		beside.Go(func() {
			t.Run(row.name, func(t *testing.T) {
				what, text, target := row.run(n, t)
				notes[i] = func() { table.note(what, text, target) }
			})
		})
	}
	beside.Wait()
	for _, note := range notes {
		if note != nil {
			note()
		}
	}
	counts := 0
	if n.pace == 1 {
		counts = manyEnough
	}
	table.print("Temporal namespaces", counts)
}

// rollback measures from the answer that shows that a candidate fails to its traffic lowered. Others ramp in the same
// Temporal namespace, which has time for few, and another one hangs. All candidates fail from the beginning: how long
// they wait for their first look is beside it. What was never lowered counts with the whole time.
func (n namespaces) rollback(t *testing.T) (what, text string, is target) {
	const hung = 10
	all := slices.Concat(many("busy", n.failing+n.others), many("hung", hung))
	c := n.newCrowd(t, answers{n.pace, time.Second, countsPerSecond}, all)
	var failing []string
	for i := range n.failing { // spread over all that there are
		failing = append(failing, c.name(i*(n.failing+n.others)/n.failing))
	}
	for _, name := range failing {
		c.temporal.failing[name] = true
	}
	c.temporal.hangs["hung"] = true
	begin := c.throttle()
	c.run(2*n.ideal(n.failing+n.others, mostCalls)+10*time.Second, func() bool { return len(c.temporal.noted(c.temporal.lowered)) >= n.failing })
	end, lowered, shown := time.Now(), c.temporal.noted(c.temporal.lowered), c.temporal.noted(c.temporal.shown)
	var took, whole []time.Duration
	for _, name := range failing {
		at, from := lowered[name], shown[name]
		if at.IsZero() {
			at, from = end, begin
		}
		took, whole = append(took, at.Sub(from)), append(whole, at.Sub(begin))
	}
	require.Empty(t, slices.DeleteFunc(slices.Collect(maps.Keys(lowered)), func(name string) bool { return slices.Contains(failing, name) }),
		"no other is lowered")
	slices.Sort(took)
	p99 := took[(len(took)*99+99)/100-1]
	return fmt.Sprintf("rollback, %d others ramp", n.others),
		fmt.Sprintf("p99 %s, half of them %s; all %s from the failure itself; %d of %d were shown, %d lowered; of all %s", seconds(p99),
			seconds(took[len(took)/2]), seconds(slices.Max(whole)), len(shown), n.failing, len(lowered), c.temporal.looks()),
		timeMost(p99, (2*interval+5*time.Second)/n.pace)
}

// fairness measures how long each of many waits until it advances by one step. All steps are due at once, and wait for
// counts. What never advanced has waited all the time.
func (n namespaces) fairness(t *testing.T) (what, text string, is target) {
	c := n.newCrowd(t, answers{n.pace, time.Second, countsPerSecond}, many("busy", n.ramping))
	begin := c.throttle()
	c.run(3*n.ideal(n.ramping, mostCalls)+10*time.Second, func() bool { return len(c.temporal.noted(c.temporal.raised)) == n.ramping })
	end, raised, ideal := time.Now(), c.temporal.noted(c.temporal.raised), n.ideal(n.ramping, c.temporal.calls)
	var took []time.Duration
	for i := range n.ramping {
		at := raised[c.name(i)]
		if at.IsZero() {
			at = end
		}
		took = append(took, at.Sub(begin))
	}
	slices.Sort(took)
	last := took[len(took)-1]
	return fmt.Sprintf("fairness, %d advance", n.ramping),
		fmt.Sprintf("%d did, the last after %s, half of them after %s, ideal %s with %d counts for each: %.2f times; %s", len(raised), seconds(last),
			seconds(took[len(took)/2]), seconds(ideal), c.temporal.calls, ratio(last, ideal), c.temporal.looks()),
		timeMost(last, 3*ideal)
}

// independence measures cycles of ten Temporal namespaces, then the same with one of them that hangs. The first cycle
// waits for it once, and is told beside the others.
func (n namespaces) independence(t *testing.T) (what, text string, is target) {
	const spaces = 10
	var all []string
	for i := range spaces * n.each {
		all = append(all, fmt.Sprintf("space-%d", i%spaces))
	}
	c := n.newCrowd(t, answers{n.pace, 200 * time.Millisecond, 100 * countsPerSecond}, all)
	c.temporal.throttles.Store(true)
	cycles := func(k int) (out []cost, decided int) {
		for range k {
			begin := time.Now()
			report, err := c.bot.Cycle(c.ctx)
			require.NoError(t, err)
			if out = append(out, cost{wall: time.Since(begin)}); report.LookedAt >= (spaces-1)*n.each {
				decided++
			}
		}
		return out, decided
	}
	without, _ := cycles(n.cycles)
	c.temporal.mu.Lock()
	c.temporal.hangs["space-3"] = true
	c.temporal.mu.Unlock()
	first, _ := cycles(1)
	with, decided := cycles(n.cycles)
	than, now := middle(without).wall, middle(with).wall
	return "independence, one of ten hangs",
		fmt.Sprintf("cycle %s, %s without: %.3f times, medians of %d; the first cycle %s; %d decided all of the other nine", seconds(now), seconds(than),
			ratio(now, than), n.cycles, seconds(first[0].wall), decided),
		timeMost(now, than*11/10)
}

func many(namespace string, n int) []string { return slices.Repeat([]string{namespace}, n) }

// crowd is worker deployments that ramp at their first step, in a repository on a server, and the bot for them.
type crowd struct {
	*testing.T
	fleet
	ctx      context.Context
	temporal *throttled
	bot      *reconcile.Reconciler
	bell     *webhook.Bell
	now      func() time.Time
	// skipped is time that did not pass.
	skipped atomic.Int64
}

func (c *crowd) name(i int) string { return c.team(i) + "/" + c.fleet.name(i) }

// newCrowd makes one worker deployment in each of the Temporal namespaces, which may be the same. The bot itself brings
// them up, with files in memory, before the repository is made of these. It ends when those of the others are made.
func (n namespaces) newCrowd(t *testing.T, a answers, in []string) *crowd {
	t.Helper()
	made := sync.OnceFunc(n.ready.Done)
	t.Cleanup(made) // however it ends
	ctx, cancel := context.WithCancel(t.Context())
	c := &crowd{T: t, fleet: fleet{Deployments: len(in), Seed: 1}, ctx: ctx, bell: webhook.NewBell()}
	c.now = func() time.Time { return time.Now().Add(time.Duration(c.skipped.Load())) }
	c.temporal = newThrottled(c.now, a)
	files := &shelf{files: map[string]string{}}
	engine, groups, log := policy.Compile(policy.Config{}), reconcile.DefaultGroupLimits(), slog.New(slog.DiscardHandler)
	planner := func(source reconcile.Source) *reconcile.Planner {
		return &reconcile.Planner{Source: source, Observer: c.temporal, Slots: c.temporal, Limits: rollout.DefaultLimits(), Now: c.now, Log: log,
			Parallel: 16, JudgeFor: func(rollout.EnvironmentWorld) reconcile.Judge { return engine }}
	}
	c.bot = &reconcile.Reconciler{Planner: planner(files), Committer: files, Router: c.temporal, Versions: c.temporal}
	for build, rollout := range []string{allAtOnce, progressive + "\n    analysis: {minSamples: 100}"} { // steps wait for counts
		for i, namespace := range in {
			spec := c.spec(i, build, rollout)
			files.files[c.specPath(i)] = strings.ReplaceAll(spec, "temporalNamespace: production", "temporalNamespace: "+namespace)
			files.files[connectionPath(c.team(i))] = connectionOf(c.team(i))
		}
		c.quiet()
	}
	for i := range in {
		d := c.temporal.known[c.name(i)]
		require.NotNil(t, d, c.name(i))
		require.True(t, d.Routing.HasRamp, c.name(i))
	}

	server := gittest.NewBareRepo(t)
	server.Commit(gittest.Commit{Write: files.files})
	repo, err := gitops.Open(gitops.Config{URL: served(t, server), Branch: "main", CacheDir: t.TempDir(), Author: "rampart", Email: "rampart@example.com",
		Log: log, Now: c.now})
	require.NoError(t, err)
	c.bot = &reconcile.Reconciler{Planner: planner(repo), Committer: repo, Router: c.temporal, Versions: c.temporal, Lister: c.temporal, Prefetcher: repo,
		Groups: reconcile.GroupLimits{Wait: groups.Wait / a.pace, Time: groups.Time / a.pace, Done: c.bell.Ring}}
	c.bot.Surveyor, c.bot.History, c.bot.Records, c.bot.SlotPatience = repo, repo, repo, reconcile.DefaultSlotPatience/a.pace
	t.Cleanup(func() {
		cancel() // a group that hangs ends
		c.bot.Close()
		require.NoError(t, repo.Close())
	})
	c.quiet()
	made()
	n.ready.Wait()
	return c
}

// quiet has cycles until one commits nothing.
func (c *crowd) quiet() {
	c.Helper()
	require.NoError(c, untilQuiet(func() (bool, error) {
		report, err := c.bot.Cycle(c.ctx)
		return len(report.Commits) == 0 && !report.More, err
	}))
}

// throttle ends the first step of all, and lets answers take time from now on.
func (c *crowd) throttle() (begin time.Time) {
	c.skipped.Add(int64(11 * time.Minute))
	c.temporal.throttles.Store(true)
	return time.Now()
}

// run runs cycles as `rampart run` does, until something is so, or for a time at most.
func (c *crowd) run(most time.Duration, until func() bool) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, most)
	defer cancel()
	for !until() && ctx.Err() == nil {
		report, err := c.bot.Cycle(ctx)
		if ctx.Err() != nil {
			return
		}
		require.NoError(c, err)
		c.bot.Rest(ctx, report)
		_ = c.bell.Wait(ctx, report.Pause(interval/c.temporal.pace, c.now(), err))
	}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
