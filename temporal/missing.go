package temporal

import (
	"context"
	"slices"
	"time"

	deploymentpb "go.temporal.io/api/deployment/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// nearbyKeptFor is how long an answer about a namespace is used again: a rollout that waits for workers asks in each
// cycle.
const nearbyKeptFor = time.Minute

// nearby is what a namespace has beside the versions that are looked for.
type nearby struct {
	at time.Time
	// builds are the worker deployments that have a build as their latest, current or ramping version.
	builds map[string][]string
	// unversioned are workers without versioning, as far as they tell of themselves.
	unversioned []unversionedWorker
}

// unversionedWorker is the host of a worker without versioning, and a task queue that it polls.
type unversionedWorker struct{ host, queue string }

// readMissing reads where the workers are that were asked for. It costs two lists for each namespace and minute. What
// fails is not known.
func (o *observer) readMissing(ctx context.Context) {
	if o.ask.Missing == nil {
		return
	}
	near, err := o.nearby(ctx)
	if err != nil {
		o.log.DebugContext(ctx, "missing workers not looked for", "error", err)
		return
	}
	out := &rollout.Missing{}
	for _, name := range near.builds[o.ask.Missing.BuildID] {
		if name != o.deployment {
			out.Deployments = append(out.Deployments, name)
		}
	}
	for _, w := range near.unversioned {
		if podOf(w.host, o.ask.Missing.Workers) != "" {
			out.Unversioned = append(out.Unversioned, w.queue)
		}
	}
	slices.Sort(out.Deployments)
	slices.Sort(out.Unversioned)
	out.Deployments, out.Unversioned = slices.Compact(out.Deployments), slices.Compact(out.Unversioned)
	o.obs.Missing = out
}

// nearby reads a namespace, at most once in a while.
func (s *session) nearby(ctx context.Context) (*nearby, error) {
	key, now := limiterKey{s.conn.address.HostPort, s.namespace}, s.pool.cfg.Clock()
	s.pool.mu.Lock()
	known := s.pool.nearby[key]
	s.pool.mu.Unlock()
	if known != nil && young(known.at, now, nearbyKeptFor) {
		return known, nil
	}
	builds, err := s.buildsOfDeployments(ctx)
	if err != nil {
		return nil, err
	}
	workers, err := s.unversionedWorkers(ctx)
	if err != nil {
		// servers before 1.30 cannot
		s.pool.cfg.Log.DebugContext(ctx, "workers not listed", "temporalNamespace", s.namespace, "error", err)
	}
	known = &nearby{at: now, builds: builds, unversioned: workers}
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.pool.nearby[key] = known
	return known, nil
}

// buildsOfDeployments lists the builds that the worker deployments of the namespace have as their latest, current or
// ramping version.
func (s *session) buildsOfDeployments(ctx context.Context) (map[string][]string, error) {
	out := map[string][]string{}
	err := s.eachDeployment(ctx, func(d *deploymentSummary) error {
		for _, v := range []*deploymentpb.WorkerDeploymentInfo_WorkerDeploymentVersionSummary{
			d.GetLatestVersionSummary(), d.GetCurrentVersionSummary(), d.GetRampingVersionSummary(),
		} {
			if build := v.GetDeploymentVersion().GetBuildId(); build != "" {
				out[build] = append(out[build], d.GetName())
			}
		}
		return nil
	})
	return out, err
}

// unversionedWorkers lists workers without versioning by their heartbeats: one page of them, since a namespace may have
// many.
func (s *session) unversionedWorkers(ctx context.Context) ([]unversionedWorker, error) {
	resp, err := read(ctx, reading{s, queues}, s.service().ListWorkers,
		&workflowservice.ListWorkersRequest{Namespace: s.namespace, PageSize: pageSize,
			Query: "DeploymentName IS NULL"})
	if err != nil {
		return nil, err
	}
	var out []unversionedWorker
	for _, w := range resp.GetWorkers() {
		if w.GetDeploymentVersion().GetDeploymentName() == "" && w.GetTaskQueue() != "" {
			out = append(out, unversionedWorker{host: hostOf(w.GetWorkerIdentity()), queue: w.GetTaskQueue()})
		}
	}
	return out, nil
}
