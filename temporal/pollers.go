package temporal

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/internal/rollout"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
)

// readPollers fills in who polls the task queues of the versions that were asked for, one queue name after another. If
// a read about a queue fails, nothing about its pollers is known.
func (o *observer) readPollers(ctx context.Context) {
	names := map[string]bool{}
	polls := polls{versions: map[string][]*taskqueuepb.PollerInfo{}}
	var builds []string
	for i := range o.obs.Versions {
		v := &o.obs.Versions[i]
		if v.QueuesKnown != rollout.Yes {
			continue
		}
		builds = append(builds, v.BuildID)
		for _, q := range v.Queues {
			names[q.Name] = true
		}
	}
	for _, name := range sortedKeys(names) {
		r := queueReader{session: o.session, deployment: o.deployment, name: name, builds: builds,
			types: o.typesOf(name)}
		seen, err := r.read(ctx)
		if err != nil {
			o.log.WarnContext(ctx, "pollers not read", "taskQueue", name, "error", err)
		}
		o.fillPollers(name, seen, err)
		polls.add(seen, err)
	}
	o.fillWorkers(polls)
	o.warnOfClock(ctx)
}

// warnOfClock says by how much the clocks differ.
func (o *observer) warnOfClock(ctx context.Context) {
	if o.ahead > 0 && o.pool.warnsOfClock(limiterKey{o.conn.address.HostPort, o.namespace}) {
		o.log.WarnContext(ctx, "Temporal's clock is ahead of ours: pollers count as unknown", "ahead",
			o.ahead.Round(time.Second).String(), "tolerated", rollout.ClockTolerance.String())
	}
}

// polls are all polls of versions, on whichever queue.
type polls struct {
	versions map[string][]*taskqueuepb.PollerInfo
	// err is why some could not be read.
	err error
}

func (p *polls) add(seen map[rollout.QueueType]queuePollers, err error) {
	if err != nil {
		p.err = err
	}
	for _, at := range seen {
		for build, infos := range at.versions {
			p.versions[build] = append(p.versions[build], infos...)
		}
	}
}

// fillWorkers says which of the Kubernetes Deployments that were asked for have pods that poll.
func (o *observer) fillWorkers(seen polls) {
	for i := range o.obs.Versions {
		v := &o.obs.Versions[i]
		if v.QueuesKnown != rollout.Yes || len(o.ask.Workers) == 0 {
			continue
		}
		v.Workers = map[string]rollout.Pollers{}
		for _, name := range o.ask.Workers {
			own := o.judged(pollersOf(slices.DeleteFunc(slices.Clone(seen.versions[v.BuildID]),
				func(p *taskqueuepb.PollerInfo) bool {
					return podOf(hostOf(p.GetIdentity()), o.ask.Workers) != name
				})))
			if own.Count == 0 && seen.err != nil {
				own = rollout.Pollers{Reason: seen.err.Error()}
			}
			v.Workers[name] = own
		}
	}
}

// judged makes pollers unknown that polled in the future of our clock: how old their polls are, is not known. The
// answer has just arrived.
func (o *observer) judged(p rollout.Pollers) rollout.Pollers {
	ahead := p.Ahead(o.pool.cfg.Clock())
	if ahead == 0 {
		return p
	}
	o.ahead = max(o.ahead, ahead)
	return rollout.Pollers{Reason: fmt.Sprintf("Temporal's clock is %s ahead of ours, so that it is not known how "+
		"old a poll is: set the clock of the bot's machine, or of Temporal's",
		ahead.Round(time.Second))}
}

// podOf is the Deployment, of some, whose pod a host is; "" for none: <Deployment>-<ReplicaSet>-<pod>, cut to 63
// characters. The longest name that fits counts, since one may begin with another.
func podOf(host string, deployments []string) string {
	best := ""
	for _, name := range deployments {
		rest, ok := strings.CutPrefix(host, name+"-")
		if ok && strings.Count(rest, "-") <= 1 && len(name) > len(best) {
			best = name
		}
	}
	return best
}

// hostOf is the host in a worker's identity: process@host by default, with more behind it in some SDKs. In a pod the
// host is the pod's name.
func hostOf(identity string) string {
	_, rest, _ := strings.Cut(identity, "@")
	host, _, _ := strings.Cut(rest, "@")
	return host
}

// typesOf are the types under which any of the versions that were asked for has the queue.
func (o *observer) typesOf(name string) []enumspb.TaskQueueType {
	var out []enumspb.TaskQueueType
	for _, t := range queueTypes {
		for _, v := range o.obs.Versions {
			if slices.ContainsFunc(v.Queues, func(q rollout.TaskQueue) bool {
				return q.Name == name && q.Type == t.name
			}) {
				out = append(out, t.pb)
				break
			}
		}
	}
	return out
}

func (o *observer) fillPollers(name string, seen map[rollout.QueueType]queuePollers, err error) {
	for i := range o.obs.Versions {
		v := &o.obs.Versions[i]
		for j := range v.Queues {
			q := &v.Queues[j]
			switch {
			case q.Name != name:
			case err != nil:
				q.Pollers = rollout.Pollers{Reason: err.Error()}
			default:
				at := seen[q.Type]
				q.Pollers, q.Backlog = o.judged(pollersOf(at.versions[v.BuildID])), at.backlogs[v.BuildID]
				q.Unversioned, q.OtherDeployments = rollout.No, sortedKeys(at.others)
				if at.unversioned {
					q.Unversioned = rollout.Yes
				}
			}
		}
	}
}

// queuePollers is who polls a task queue of one type.
type queuePollers struct {
	// versions of the deployment, by build ID.
	versions map[string][]*taskqueuepb.PollerInfo
	// backlogs of these versions.
	backlogs map[string]rollout.Backlog
	// others are the other deployments.
	others      map[string]bool
	unversioned bool
}

// queueReader reads who polls one task queue.
type queueReader struct {
	*session
	deployment, name string
	builds           []string
	types            []enumspb.TaskQueueType
}

// read asks in two ways and believes what either saw.
//
// The enhanced mode asks all partitions, but answers from a cache of five seconds whose key leaves out what was asked
// for: after somebody else asked for statistics alone (an autoscaler; the server itself, when it checks for missing
// task queues) it shows no pollers. The default mode is never cached and tells which deployment a poller belongs to,
// but sees the root partition alone, where most workers are seen too, since other partitions forward their polls to it.
func (r queueReader) read(ctx context.Context) (map[rollout.QueueType]queuePollers, error) {
	out := map[rollout.QueueType]queuePollers{}
	all, err := r.allPartitions(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range queueTypes {
		if !slices.Contains(r.types, t.pb) {
			continue
		}
		at := queuePollers{versions: map[string][]*taskqueuepb.PollerInfo{}, backlogs: map[string]rollout.Backlog{},
			others: map[string]bool{}}
		for _, build := range r.builds {
			name := versionName(r.deployment, build)
			at.versions[build], at.backlogs[build] = pollersIn(all, name, t.pb), backlogIn(all, name, t.pb)
		}
		at.unversioned = len(pollersIn(all, "", t.pb)) > 0
		if err := r.rootPartition(ctx, t.pb, &at); err != nil {
			return nil, err
		}
		out[t.name] = at
	}
	return out, nil
}

// versionName is how version strings name a version.
func versionName(deployment, build string) string { return deployment + ":" + build }

func pollersIn(resp *workflowservice.DescribeTaskQueueResponse, name string,
	kind enumspb.TaskQueueType) []*taskqueuepb.PollerInfo {
	//nolint:staticcheck // deprecated: see allPartitions.
	return resp.GetVersionsInfo()[name].GetTypesInfo()[int32(kind)].GetPollers()
}

func backlogIn(resp *workflowservice.DescribeTaskQueueResponse, name string,
	kind enumspb.TaskQueueType) rollout.Backlog {
	//nolint:staticcheck // deprecated: see allPartitions.
	s := resp.GetVersionsInfo()[name].GetTypesInfo()[int32(kind)].GetStats()
	if s == nil {
		return rollout.Backlog{}
	}
	return rollout.Backlog{Known: true, Count: s.GetApproximateBacklogCount(),
		Age:     s.GetApproximateBacklogAge().AsDuration(),
		AddRate: float64(s.GetTasksAddRate()), DispatchRate: float64(s.GetTasksDispatchRate())}
}

// allPartitions uses the enhanced mode. It is deprecated, and what the server itself uses before it deletes a version;
// nothing else asks all partitions at once. Statistics are asked for too, not just for the backlog: an answer
// without them in the server's cache would switch its own check for missing task queues off for five seconds.
func (r queueReader) allPartitions(ctx context.Context) (*workflowservice.DescribeTaskQueueResponse, error) {
	names := make([]string, len(r.builds))
	for i, build := range r.builds {
		names[i] = versionName(r.deployment, build)
	}
	//nolint:staticcheck // deprecated: see above.
	resp, err := read(ctx, reading{r.session, queues}, r.service().DescribeTaskQueue,
		&workflowservice.DescribeTaskQueueRequest{
			Namespace:      r.namespace,
			TaskQueue:      &taskqueuepb.TaskQueue{Name: r.name, Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
			ApiMode:        enumspb.DESCRIBE_TASK_QUEUE_MODE_ENHANCED,
			Versions:       &taskqueuepb.TaskQueueVersionSelection{BuildIds: names, Unversioned: true},
			TaskQueueTypes: r.types,
			ReportPollers:  true,
			ReportStats:    true,
		})
	if err != nil {
		return nil, fmt.Errorf("describe all partitions of task queue %q: %w", r.name, err)
	}
	return resp, nil
}

// rootPartition adds who polls the root partition.
func (r queueReader) rootPartition(ctx context.Context, kind enumspb.TaskQueueType, at *queuePollers) error {
	resp, err := read(ctx, reading{r.session, queues}, r.service().DescribeTaskQueue,
		&workflowservice.DescribeTaskQueueRequest{
			Namespace:     r.namespace,
			TaskQueue:     &taskqueuepb.TaskQueue{Name: r.name, Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
			TaskQueueType: kind,
		})
	if err != nil {
		return fmt.Errorf("describe task queue %q: %w", r.name, err)
	}
	for _, p := range resp.GetPollers() {
		switch deployment, build := versionOf(p); deployment {
		case "":
			at.unversioned = true
		case r.deployment:
			at.versions[build] = append(at.versions[build], p)
		default:
			at.others[deployment] = true
		}
	}
	return nil
}
