package temporal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
	deploymentpb "go.temporal.io/api/deployment/v1"
	"go.temporal.io/api/workflowservice/v1"
)

// Observe reads a worker deployment: one describe of the deployment, and beyond it only what ask names. It gives no
// error: without the deployment's describe the observation is a Problem; any other read that fails leaves its facts
// "not known". A second read in the same cycle is another Observe.
func (p *Pool) Observe(ctx context.Context, conn v1alpha1.Connection, ask rollout.Ask) rollout.Observation {
	at := p.cfg.Clock()
	failed := func(err error) rollout.Observation {
		what := "read worker deployment " + ask.Deployment.String()
		if !errors.Is(err, rollout.ErrBusy) && !errors.Is(err, context.Canceled) {
			p.cfg.Log.WarnContext(ctx, "Temporal not read", "deployment", ask.Deployment.String(), "connection",
				nameOf(conn), "error", err)
		}
		return rollout.Observation{At: at, Problem: p.problem(what, err)}
	}
	s, err := p.session(conn, ask.TemporalNamespace)
	if err != nil {
		return failed(err)
	}
	o := observer{
		session: s, ask: ask, deployment: ask.Deployment.String(), queues: map[string][]rollout.TaskQueue{},
		obs: rollout.Observation{At: at},
		log: p.cfg.Log.With("deployment", ask.Deployment.String(), "temporalNamespace", ask.TemporalNamespace),
	}
	if err := o.describe(ctx); err != nil {
		out := failed(err)
		out.CutShort = s.refused.Load()
		return out
	}
	o.readVersion(ctx)
	o.readNamespace(ctx)
	o.describeVersions(ctx)
	o.readPollers(ctx)
	o.readBatches(ctx)
	o.countOpen(ctx)
	o.countInUse(ctx)
	o.countClosed(ctx)
	o.countStuck(ctx)
	o.readGates(ctx)
	o.readMissing(ctx)
	o.obs.CutShort = s.refused.Load()
	return o.obs
}

// Slot waits until a worker deployment of a Temporal namespace may be read, at most until the context ends. The error
// is a BudgetError. Where the server allows few calls there are few slots, so that each worker deployment gets all that
// is asked about it. free gives the slot back.
func (p *Pool) Slot(ctx context.Context, conn v1alpha1.Connection, temporalNamespace string) (free func(), err error) {
	return p.slot(ctx, conn, temporalNamespace, describing)
}

// CountSlot waits until the workflows of a worker deployment may be counted, as Slot does. There are fewer of these
// slots, since the server allows fewer counts.
func (p *Pool) CountSlot(ctx context.Context, conn v1alpha1.Connection,
	temporalNamespace string) (free func(), err error) {
	return p.slot(ctx, conn, temporalNamespace, visibility)
}

func (p *Pool) slot(ctx context.Context, conn v1alpha1.Connection, temporalNamespace string,
	kind bucket) (free func(), err error) {
	s, err := p.session(conn, temporalNamespace)
	if err != nil {
		return func() {}, nil //nolint:nilerr // Observe says why
	}
	return s.limits.slot(ctx, kind)
}

// observer gathers one observation.
type observer struct {
	*session
	ask        rollout.Ask
	deployment string
	log        *slog.Logger
	obs        rollout.Observation
	// queues of the versions that were described and could be read, by build ID.
	queues map[string][]rollout.TaskQueue
	// ahead is by how much the latest poll that was seen is ahead of our clock, beyond what is tolerated.
	ahead time.Duration
}

// describe reads the deployment itself.
func (o *observer) describe(ctx context.Context) error {
	resp, err := o.describeDeployment(ctx, o.deployment)
	if notFound(err) {
		o.obs.Exists = rollout.No
		return nil
	}
	if err != nil {
		return err
	}
	info := resp.GetWorkerDeploymentInfo()
	o.obs.Exists = rollout.Yes
	if o.obs.Routing, err = routingOf(info.GetRoutingConfig()); err != nil {
		return err
	}
	if o.obs.Versions, err = versionsOf(info.GetVersionSummaries()); err != nil {
		return err
	}
	o.obs.ConflictToken = resp.GetConflictToken()
	o.obs.ManagerIdentity = info.GetManagerIdentity()
	o.obs.LastModifier = info.GetLastModifierIdentity()
	o.obs.Propagating = propagatingOf(info.GetRoutingConfigUpdateState())
	return nil
}

// describeDeployment is the one call that gives nearly everything. An empty answer is an error.
func (s *session) describeDeployment(ctx context.Context,
	deployment string) (*workflowservice.DescribeWorkerDeploymentResponse, error) {
	resp, err := read(ctx, reading{s, describing}, s.service().DescribeWorkerDeployment,
		&workflowservice.DescribeWorkerDeploymentRequest{Namespace: s.namespace, DeploymentName: deployment})
	if err != nil {
		return nil, fmt.Errorf("describe worker deployment: %w", err)
	}
	if resp.GetWorkerDeploymentInfo() == nil {
		return nil, errors.New("describe worker deployment: the answer is empty")
	}
	return resp, nil
}

// version is a version of the deployment as calls name it.
func version(deployment, build string) *deploymentpb.WorkerDeploymentVersion {
	return &deploymentpb.WorkerDeploymentVersion{DeploymentName: deployment, BuildId: build}
}

// uncheckedDrainage is how long after the server's last look at a draining version its summary is not believed any
// more. The server looks every three minutes, and says so to the summary once: it can miss that (the signal that it
// loses is one that arrives while its own workflow begins a new run, temporalio/temporal#11842), and then a version
// would drain for ever.
const uncheckedDrainage = 10 * time.Minute

// describeVersions reads the queues and the mark of every listed version whose queues were asked for, or are needed for
// something else that was. That is the stuck workflows, the gates. It reads the drainage of versions whose summary is
// not believed, too.
func (o *observer) describeVersions(ctx context.Context) {
	builds := slices.Clone(o.ask.Queues)
	for _, v := range o.obs.Versions {
		if v.Drainage == rollout.Draining && o.obs.At.Sub(v.DrainageCheckedAt) > uncheckedDrainage {
			builds = append(builds, v.BuildID)
		}
	}
	if o.ask.Stuck != nil {
		builds = append(builds, counted(o.ask)...)
	}
	if o.ask.Gate != nil {
		builds = append(builds, o.ask.Gate.BuildID)
	}
	slices.Sort(builds)
	for _, build := range slices.Compact(builds) {
		v := o.obs.Version(build)
		if v == nil {
			continue
		}
		resp, err := o.describeVersion(ctx, o.deployment, build)
		if err != nil {
			o.log.WarnContext(ctx, "version not read", "buildID", build, "error", err)
			continue
		}
		if is := resp.GetWorkerDeploymentVersionInfo().GetDrainageInfo(); instant(is.GetLastCheckedTime()).
			After(v.DrainageCheckedAt) {
			v.Drainage = drainageOf(is.GetStatus())
			v.DrainageChangedAt, v.DrainageCheckedAt = instant(is.GetLastChangedTime()),
				instant(is.GetLastCheckedTime())
		}
		found, err := queuesOf(resp)
		if err != nil {
			o.log.WarnContext(ctx, "task queues not understood", "buildID", build, "error", err)
			continue
		}
		o.queues[build] = found
		if slices.Contains(o.ask.Queues, build) {
			v.Queues, v.QueuesKnown = slices.Clone(found), rollout.Yes
			v.TurnedBack = markOf(resp.GetWorkerDeploymentVersionInfo().GetMetadata())
			if len(resp.GetWorkerDeploymentVersionInfo().GetComputeConfig().GetScalingGroups()) > 0 {
				v.Scaled = true
			}
		}
	}
}

func (s *session) describeVersion(ctx context.Context, deployment,
	build string) (*workflowservice.DescribeWorkerDeploymentVersionResponse, error) {
	resp, err := read(ctx, reading{s, describing}, s.service().DescribeWorkerDeploymentVersion,
		&workflowservice.DescribeWorkerDeploymentVersionRequest{Namespace: s.namespace,
			DeploymentVersion: version(deployment, build)})
	if err != nil {
		return nil, fmt.Errorf("describe version %s: %w", build, err)
	}
	if resp.GetWorkerDeploymentVersionInfo() == nil {
		return nil, fmt.Errorf("describe version %s: the answer is empty", build)
	}
	return resp, nil
}

// pageSize of lists; maxPages stops a server that never ends.
const (
	pageSize = 1000
	maxPages = 1000
)

// List gives the routing of the worker deployments that the namespace's visibility shows, by name. It finds what
// moved; a deployment that is missing may exist all the same. While no routing is moved, be it there and back, the
// same list is given again.
func (p *Pool) List(ctx context.Context, conn v1alpha1.Connection, temporalNamespace string) (*rollout.Listing, error) {
	fail := func(err error) (*rollout.Listing, error) {
		return nil, fmt.Errorf("list worker deployments of namespace %q: %w", temporalNamespace, err)
	}
	s, err := p.session(conn, temporalNamespace)
	if err != nil {
		return fail(err)
	}
	out := map[string]rollout.RoutingConfig{}
	if err := s.eachDeployment(ctx, func(d *deploymentSummary) error {
		routing, err := routingOf(d.GetRoutingConfig())
		if err != nil {
			return fmt.Errorf("%s: %w", d.GetName(), err)
		}
		out[d.GetName()] = routing
		return nil
	}); err != nil {
		return fail(err)
	}
	return s.listed(out), nil
}

// deploymentSummary is what a list says of a worker deployment.
type deploymentSummary = workflowservice.ListWorkerDeploymentsResponse_WorkerDeploymentSummary

// eachDeployment lists the worker deployments of the namespace, page by page, until visit gives an error.
func (s *session) eachDeployment(ctx context.Context, visit func(*deploymentSummary) error) error {
	var token []byte
	for range maxPages {
		resp, err := read(ctx, reading{s, visibility}, s.service().ListWorkerDeployments,
			&workflowservice.ListWorkerDeploymentsRequest{Namespace: s.namespace, PageSize: pageSize,
				NextPageToken: token})
		if err != nil {
			return err
		}
		for _, d := range resp.GetWorkerDeployments() {
			if err := visit(d); err != nil {
				return err
			}
		}
		if token = resp.GetNextPageToken(); len(token) == 0 {
			return nil
		}
	}
	return fmt.Errorf("more than %d pages", maxPages)
}

// listed gives the list before, if that shows the same.
func (s *session) listed(routing map[string]rollout.RoutingConfig) *rollout.Listing {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	key := limiterKey{s.conn.address.HostPort, s.namespace}
	if was := s.pool.lists[key]; was != nil && maps.EqualFunc(was.Routing, routing, rollout.RoutingConfig.Same) {
		return was
	}
	s.pool.lists[key] = &rollout.Listing{Routing: routing}
	return s.pool.lists[key]
}

// sortedKeys are the keys of a map in their order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
