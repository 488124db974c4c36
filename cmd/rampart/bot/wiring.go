package bot

import (
	"context"
	"errors"
	"math"
	"net/url"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/internal/commitstatus"
	"github.com/rampart-gitops/rampart/internal/pullrequest"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/resync"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/internal/telemetry"
	"github.com/rampart-gitops/rampart/temporal"
)

// botFlags say what a bot works on, and on what. settings names them all.
type botFlags struct {
	repository cmdutil.RepositoryFlags
	temporal   cmdutil.TemporalFlags
	forge      forgeFlags
	cluster    cmdutil.ClusterFlags
	once       bool
	settings   string
	metrics    *telemetry.Metrics
}

// cachingBot is a Reconciler, and what keeps what it knows. close gives its mirror and its connections back.
type cachingBot struct {
	*reconcile.Reconciler
	proposals *pullrequest.Manager
	keeper    *keeper
	// says is what says on commits what became of them; nil where there is no forge.
	says  *commitstatus.Writer
	close func() error
}

func newBot(a *cmdutil.App, f botFlags, judges *cmdutil.Judges) (*cachingBot, error) {
	pool, err := a.OpenPool(f.temporal, cmdutil.PoolHooks{
		Call: func(method string, code codes.Code, took time.Duration) {
			f.metrics.Request(method, code.String(), took)
		}})
	if err != nil {
		return nil, err
	}
	repo, err := a.OpenRepository(f.repository)
	if err != nil {
		pool.Close()
		return nil, err
	}
	on, err := locateForge(a, f.forge, f.repository)
	if err != nil {
		pool.Close()
		return nil, errors.Join(err, repo.Close())
	}
	pods, err := a.OpenPods(f.cluster)
	if err != nil {
		pool.Close()
		return nil, errors.Join(err, repo.Close())
	}
	with := &connected{repo, pool, judges, pods}
	bot, err := newReconciler(a, f, with)
	if err != nil {
		return nil, errors.Join(err, with.close())
	}
	bot.RepositoryURL = pageOf(on, f.repository.URL)
	proposals := newProposer(a, on.forge, f.repository, repo, judges)
	bot.Proposer = proposals
	keeper, err := newKeeper(a, f, repo, bot)
	if err != nil {
		return nil, errors.Join(err, with.close())
	}
	statuses, most := newCommitStatuses(a, f, repo, on), leaveTime
	if f.once {
		most = leaveOnceTime
	}
	if statuses.reader != nil {
		bot.Statuses = statuses.reader
	}
	return &cachingBot{bot, proposals, keeper, statuses.writer, func() error {
		statuses.close(most)
		keeper.keep()
		return with.close()
	}}, nil
}

// pageOf gives the address of a repository for people: its page on a forge, else the clone URL without the parts that
// may hold credentials. It is "" if the clone URL has no host.
func pageOf(on located, clone string) string {
	if on.at.Base != "" {
		return on.at.URL()
	}
	u, err := url.Parse(clone)
	if err != nil || u.Host == "" {
		return ""
	}
	u.User, u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment = nil, "", false, "", ""
	return u.String()
}

// connected is what a bot works with. pods is nil where no cluster is read.
type connected struct {
	repo   *gitops.Repository
	pool   *temporal.Pool
	judges *cmdutil.Judges
	pods   *cmdutil.PodReader
}

// close gives back what is open, but for the judges, which others use too.
func (c *connected) close() error {
	c.pods.Close()
	c.pool.Close()
	return c.repo.Close()
}

// newReconciler is a planner with what it writes with.
func newReconciler(a *cmdutil.App, f botFlags, with *connected) (*reconcile.Reconciler, error) {
	planner, err := a.NewPlanner(cmdutil.PlannerPorts{Source: a.NarrowSpecSource(with.repo), Observer: with.pool,
		Judges: with.judges, Pods: with.pods}, f.temporal)
	if err != nil {
		return nil, err
	}
	cmdutil.UsePool(planner, with.pool)
	inputs, err := f.temporal.GateInputs()
	if err != nil {
		return nil, err
	}
	port := cmdutil.TemporalPort{Pool: with.pool, Inputs: inputs}
	bot := &reconcile.Reconciler{Planner: planner, Committer: countedCommitter{with.repo, f.metrics},
		Router: countedRouter{port, f.metrics}, Versions: port, Lister: with.pool, Prefetcher: with.repo}
	if f.once { // no cycle follows that could do the rest
		bot.MaxDue = math.MaxInt
	} else {
		planner.SlotPatience, planner.ClusterPatience = reconcile.DefaultSlotPatience, 0
		bot.Groups = reconcile.DefaultGroupLimits()
	}
	return bot, nil
}

// countedCommitter counts pushes.
type countedCommitter struct {
	reconcile.Committer
	metrics *telemetry.Metrics
}

// Commit counts no commit that changes nothing.
func (c countedCommitter) Commit(ctx context.Context, commit rollout.Commit) (string, error) {
	hash, err := c.Committer.Commit(ctx, commit)
	if hash != "" || err != nil {
		c.metrics.Push(err)
	}
	return hash, err
}

// countedRouter counts changes of traffic.
type countedRouter struct {
	reconcile.Router
	metrics *telemetry.Metrics
}

// Lower counts.
func (c countedRouter) Lower(ctx context.Context, on rollout.Subject, call rollout.RoutingCall) error {
	err := c.Router.Lower(ctx, on, call)
	c.metrics.Change(telemetry.Lower, err)
	return err
}

// Raise counts.
func (c countedRouter) Raise(ctx context.Context, on rollout.Subject, call rollout.RoutingCall) error {
	err := c.Router.Raise(ctx, on, call)
	c.metrics.Change(telemetry.Raise, err)
	return err
}

var (
	_ reconcile.Committer  = (*gitops.Repository)(nil)
	_ reconcile.Prefetcher = (*gitops.Repository)(nil)
	_ resync.Lister        = (*temporal.Pool)(nil)
)
