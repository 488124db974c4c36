package temporalenv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// Image is what a container image holds.
type Image struct {
	// TaskQueues are the queues that its worker polls.
	TaskQueues []string
	// Register registers its workflows and activities with the worker of one queue.
	Register func(worker.Registry)
	// DefaultBehavior is for workflows registered without a versioning behavior of their own.
	DefaultBehavior workflow.VersioningBehavior
	// ActivitiesOnly says that its workers poll for activities alone, WorkflowsOnly for workflows.
	ActivitiesOnly, WorkflowsOnly bool
	// Command is run as a process of its own in place of all that, with the container's variables and nothing else in
	// its environment. It is asked to end by SIGTERM.
	Command []string
}

// FleetConfig is what a Fleet needs to know of the cluster beside the manifests.
type FleetConfig struct {
	// Images by name, as written in manifests. A pod of an image that is missing here never starts.
	Images map[string]Image
	// Secrets by "namespace/name", then key, for environment variables taken from them.
	Secrets map[string]map[string]string
	// Root is the folder under which the files mounted into pods are found, "/etc/temporal/tls/tls.crt" for one.
	Root string
	// Log receives the warnings of workers. Default: discarded.
	Log *slog.Logger
}

// EventKind is what happened to an object.
type EventKind string

// The kinds of events.
const (
	Applied      EventKind = "Applied"      // created or changed
	Scaled       EventKind = "Scaled"       // another number of replicas
	Restarted    EventKind = "Restarted"    // another pod template
	Pruned       EventKind = "Pruned"       // gone from the manifests, and removed
	PruneRefused EventKind = "PruneRefused" // gone from the manifests, but guarded: an orphan
	ImageMissing EventKind = "ImageMissing" // no such image
	Crashed      EventKind = "Crashed"      // a pod could not start or failed, and is started again
	SyncFailed   EventKind = "SyncFailed"   // a commit could not be built or read: nothing of it is applied
)

// Event is one thing that the fleet did or met.
type Event struct {
	Time time.Time
	Kind EventKind
	// Object is an Object.ID, or the source that could not be synced.
	Object string
	Detail string
}

// Fleet runs the Deployments it is given.
type Fleet struct {
	cfg FleetConfig

	// applying keeps whole syncs apart; mu guards what follows.
	applying sync.Mutex
	mu       sync.Mutex
	objects  map[string]*live
	events   []Event
	closed   bool
	stopping sync.WaitGroup
	leaving  int
	podCount int
}

// live is an object in the cluster.
type live struct {
	applied  Object
	orphan   bool
	replicas int
	pods     []*pod
}

// NewFleet makes a fleet that runs nothing yet.
func NewFleet(cfg FleetConfig) *Fleet {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Fleet{cfg: cfg, objects: map[string]*live{}}
}

// Apply makes the cluster what manifests say, as a sync with pruning does. What is missing starts, what changed
// restarts, what is gone stops unless its last applied copy is guarded. It does not wait for pods to be ready. Invalid
// manifests change nothing.
func (f *Fleet) Apply(manifests []byte) error {
	objects, err := ParseManifests(manifests)
	if err != nil {
		return fmt.Errorf("read manifests: %w", err)
	}
	return f.Reconcile(objects)
}

// Reconcile is Apply for manifests already read.
func (f *Fleet) Reconcile(desired []Object) error {
	f.applying.Lock()
	defer f.applying.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return errors.New("fleet is closed")
	}
	wanted := map[string]Object{}
	for _, o := range desired {
		if _, ok := wanted[o.ID()]; ok {
			return fmt.Errorf("%s is there twice", o.ID())
		}
		wanted[o.ID()] = o
	}
	for _, id := range slices.Sorted(maps.Keys(wanted)) {
		f.apply(wanted[id])
	}
	for _, id := range slices.Sorted(maps.Keys(f.objects)) {
		if _, ok := wanted[id]; !ok {
			f.prune(id, f.objects[id])
		}
	}
	return nil
}

func (f *Fleet) apply(o Object) {
	l, known := f.objects[o.ID()]
	if !known {
		l = &live{}
		f.objects[o.ID()] = l
	}
	before := l.applied
	l.applied, l.orphan = o, false
	if before.canonical == o.canonical {
		return
	}
	f.noteLocked(Event{Kind: Applied, Object: o.ID()})
	if o.Deployment == nil {
		return
	}
	replicas := replicasAfter(before.Deployment, *o.Deployment, l.replicas)
	restart := before.Deployment != nil && before.Deployment.template != o.Deployment.template
	if restart {
		f.noteLocked(Event{Kind: Restarted, Object: o.ID()})
		f.roll(l)
	}
	f.scale(l, replicas)
}

// replicasAfter is the number of replicas after applying. A manifest that never said a number leaves what an autoscaler
// chose alone; one that stops saying it falls back to the cluster's default of 1.
func replicasAfter(before *Deployment, after Deployment, now int) int {
	switch {
	case after.ReplicasSet:
		return after.Replicas
	case before == nil || before.ReplicasSet:
		return 1
	default:
		return now
	}
}

// Scale sets the replicas of a Deployment as an autoscaler does. id is an Object.ID.
func (f *Fleet) Scale(id string, replicas int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return errors.New("fleet is closed")
	}
	l, ok := f.objects[id]
	if !ok || l.applied.Deployment == nil {
		return fmt.Errorf("no such deployment: %s", id)
	}
	f.scale(l, replicas)
	return nil
}

func (f *Fleet) scale(l *live, replicas int) {
	if l.replicas != replicas {
		f.noteLocked(Event{Kind: Scaled, Object: l.applied.ID(), Detail: fmt.Sprintf("%d -> %d", l.replicas, replicas)})
	}
	l.replicas = replicas
	image, ok := f.cfg.Images[l.applied.Deployment.Image]
	if !ok {
		if replicas > 0 {
			f.noteLocked(Event{Kind: ImageMissing, Object: l.applied.ID(), Detail: l.applied.Deployment.Image})
		}
		f.retire(l.pods)
		l.pods = nil
		return
	}
	for len(l.pods) < replicas {
		l.pods = append(l.pods, f.newPod(l, image))
	}
	f.retire(l.pods[replicas:])
	l.pods = l.pods[:replicas]
}

// roll replaces each pod by one of the present template; the old one stops once the new one is ready.
func (f *Fleet) roll(l *live) {
	image, ok := f.cfg.Images[l.applied.Deployment.Image]
	if !ok {
		return
	}
	old := l.pods
	l.pods = nil
	for _, p := range old {
		next := f.newPod(l, image)
		l.pods = append(l.pods, next)
		f.leave(func() {
			next.awaitReady()
			p.stop()
		})
	}
}

func (f *Fleet) newPod(l *live, image Image) *pod {
	f.podCount++
	p := &pod{
		name:       fmt.Sprintf("%s-%d", l.applied.Name, f.podCount),
		deployment: *l.applied.Deployment,
		image:      image,
		fleet:      f,
		object:     l.applied.ID(),
	}
	p.start()
	return p
}

// retire stops pods in the background, since a worker may take a while.
func (f *Fleet) retire(pods []*pod) {
	for _, p := range pods {
		f.leave(p.stop)
	}
}

func (f *Fleet) leave(stop func()) {
	f.leaving++
	f.stopping.Go(func() {
		stop()
		f.mu.Lock()
		defer f.mu.Unlock()
		f.leaving--
	})
}

func (f *Fleet) prune(id string, l *live) {
	if l.applied.Guarded {
		if !l.orphan {
			f.noteLocked(Event{Kind: PruneRefused, Object: id})
		}
		l.orphan = true
		return
	}
	f.noteLocked(Event{Kind: Pruned, Object: id})
	f.retire(l.pods)
	delete(f.objects, id)
}

// Status is how an object in the cluster is.
type Status struct {
	// Object is the Object.ID.
	Object string
	// Replicas is how many are wanted, Ready how many run. Both are 0 for an object that is not a Deployment.
	Replicas, Ready int
	Image           string
	// Orphan is whether it stays only because of its guard.
	Orphan bool
}

// Status lists what is in the cluster, by object.
func (f *Fleet) Status() []Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := []Status{}
	for id, l := range f.objects {
		s := Status{Object: id, Replicas: l.replicas, Orphan: l.orphan}
		if l.applied.Deployment != nil {
			s.Image = l.applied.Deployment.Image
		}
		for _, p := range l.pods {
			if p.ready.Load() {
				s.Ready++
			}
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Status) int { return cmp.Compare(a.Object, b.Object) })
	return out
}

// Orphans are the objects that are gone from the manifests and stay because of their guard.
func (f *Fleet) Orphans() []string {
	out := []string{}
	for _, s := range f.Status() {
		if s.Orphan {
			out = append(out, s.Object)
		}
	}
	return out
}

// Events is the log so far, oldest first.
func (f *Fleet) Events() []Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.events)
}

// WaitReady returns once every Deployment has as many ready replicas as it wants and every other pod has ended.
func (f *Fleet) WaitReady(ctx context.Context) error {
	return until(ctx, func(context.Context) error {
		for _, s := range f.Status() {
			if s.Ready != s.Replicas {
				return fmt.Errorf("%s has %d of %d replicas ready", s.Object, s.Ready, s.Replicas)
			}
		}
		if leaving := f.ending(); leaving > 0 {
			return fmt.Errorf("%d pods are still ending", leaving)
		}
		return nil
	})
}

func (f *Fleet) ending() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.leaving
}

// Close stops all pods, guarded or not, and waits for them.
func (f *Fleet) Close() {
	f.mu.Lock()
	f.closed = true
	for _, l := range f.objects {
		f.retire(l.pods)
		l.pods = nil
	}
	f.mu.Unlock()
	f.stopping.Wait()
}

func (f *Fleet) note(e Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.noteLocked(e)
}

func (f *Fleet) noteLocked(e Event) {
	e.Time = time.Now()
	f.events = append(f.events, e)
}
