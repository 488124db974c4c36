package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/rampart-gitops/rampart/internal/httpclient"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// selection is what of a resource is watched: of the objects of versions those with their label.
type selection struct {
	resource       schema.GroupVersionResource
	labels, fields string
	indexers       cache.Indexers
}

// byOwner and byPod index objects.
const (
	byOwner = "owner"
	byPod   = "pod"
)

// selections are those of a namespace.
func selections() []selection {
	apps := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: resource}
	}
	core := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Version: "v1", Resource: resource}
	}
	return []selection{
		{resource: apps("deployments"), labels: rollout.LabelBuildID},
		{resource: apps("replicasets"), labels: rollout.LabelBuildID,
			indexers: cache.Indexers{byOwner: func(o any) ([]string, error) {
				return []string{string(o.(*replicaSet).owner)}, nil
			}}},
		{resource: core("pods"), labels: rollout.LabelBuildID,
			indexers: cache.Indexers{byOwner: func(o any) ([]string, error) {
				return []string{string(o.(*pod).owner)}, nil
			}}},
		{resource: core("events"), fields: "type=Warning,involvedObject.kind=Pod",
			indexers: cache.Indexers{byPod: func(o any) ([]string, error) {
				return []string{string(o.(*event).pod)}, nil
			}}},
	}
}

// stores hold what is known of a namespace.
type stores struct{ deployments, replicaSets, pods, events cache.Indexer }

type namespace struct {
	name string
	stores
	watches []*watching
	stop    context.CancelFunc
	// asked is when it was asked about last.
	asked time.Time
}

func (r *Reader) newNamespace(name string) *namespace {
	ctx, stop := context.WithCancel(r.ctx)
	n := &namespace{name: name, stop: stop}
	var indexers []cache.Indexer
	for _, s := range selections() {
		w := &watching{reader: r, namespace: name, selection: s, failed: make(chan struct{})}
		informer := w.informer()
		w.synced = informer.HasSyncedChecker().Done()
		n.watches, indexers = append(n.watches, w), append(indexers, informer.GetIndexer())
		r.all.Go(func() { informer.RunWithContext(ctx) })
	}
	n.stores = stores{indexers[0], indexers[1], indexers[2], indexers[3]}
	return n
}

// await waits until the namespace was read, or it is known that it cannot be.
func (n *namespace) await(ctx context.Context) {
	for _, w := range n.watches {
		select {
		case <-w.synced:
		case <-w.failed:
			return
		case <-ctx.Done():
			return
		}
	}
}

// problem says why what is known of the namespace is not to be relied on, "" if it is.
func (n *namespace) problem(now time.Time) string {
	for _, w := range n.watches {
		if p := w.problem(now); p != "" {
			return p
		}
	}
	return ""
}

type watching struct {
	reader    *Reader
	namespace string
	selection selection
	// synced is closed when all was read once, failed when that went wrong for the first time.
	synced <-chan struct{}
	failed chan struct{}

	mu sync.Mutex
	// list and watch are what went wrong with the last request of each kind, "" for nothing.
	list, watch string
	// err is the last thing that went wrong, as it is.
	err error
	// begun is when a request began that has no answer yet.
	begun time.Time
	once  sync.Once
}

func (w *watching) informer() cache.SharedIndexInformer {
	of := w.reader.client.Resource(w.selection.resource).Namespace(w.namespace)
	informer := cache.NewSharedIndexInformerWithOptions(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			w.begin()
			found, err := of.List(ctx, w.options(o))
			w.listed(err)
			return found, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w.begin()
			events, err := of.Watch(ctx, w.options(o))
			w.watched(o, err)
			return events, err
		},
	}, &unstructured.Unstructured{}, cache.SharedIndexInformerOptions{Indexers: w.selection.indexers})
	// None of these fails before the informer runs. What goes wrong is told by the answers, not by the library's own
	// log.
	_ = informer.SetTransform(w.reader.strip)
	_ = informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {})
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { w.reader.changes.Add(1) },
		UpdateFunc: func(was, is any) {
			if !reflect.DeepEqual(was, is) {
				w.reader.changes.Add(1)
			}
		},
		DeleteFunc: func(any) { w.reader.changes.Add(1) },
	})
	return informer
}

func (w *watching) options(o metav1.ListOptions) metav1.ListOptions {
	o.LabelSelector, o.FieldSelector = w.selection.labels, w.selection.fields
	return o
}

func (w *watching) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun = time.Now()
}

// listed notes what became of a list.
func (w *watching) listed(err error) {
	w.note(err, func() { w.list = w.words("list", err) })
}

// watched notes what became of a watch. One that works says that lists would too.
func (w *watching) watched(o metav1.ListOptions, err error) {
	if o.SendInitialEvents != nil && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)) {
		err = nil // an older API server wants a list first, which follows
	}
	w.note(err, func() {
		if w.watch = w.words("watch", err); w.watch == "" {
			w.list = ""
		}
	})
}

// note changes what is known of the last requests.
func (w *watching) note(err error, change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	was := w.list + w.watch
	w.begun = time.Time{}
	change()
	if err != nil {
		w.err = err
	}
	if w.list+w.watch != was {
		w.reader.changes.Add(1)
	}
	if w.list+w.watch != "" {
		w.once.Do(func() { close(w.failed) })
	}
}

func (w *watching) problem(now time.Time) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch said := cmp.Or(w.list, w.watch); {
	case said != "":
		return said
	case !w.begun.IsZero() && now.Sub(w.begun) > patience:
		return w.silent()
	}
	select {
	case <-w.synced:
		return ""
	default:
		return rollout.ClusterUnread
	}
}

func (w *watching) silent() string {
	return fmt.Sprintf("the cluster gave no answer within %s", patience)
}

// words say what went wrong, in the same words as long as the same is wrong, and without addresses, since they get into
// Git. "" for nothing, and for what was cut off.
func (w *watching) words(verb string, err error) string {
	resource := w.selection.resource.Resource
	var answered apierrors.APIStatus
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return ""
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("the kubeconfig's user may not %s %s in namespace %s of the cluster: let it get, list and "+
			"watch deployments, replicasets, pods and events there",
			verb, resource, w.namespace)
	case apierrors.IsUnauthorized(err):
		return "the cluster does not accept the kubeconfig's credentials"
	case errors.Is(err, context.DeadlineExceeded):
		return w.silent()
	case errors.As(err, &answered):
		return fmt.Sprintf("%s %s in namespace %s of the cluster: %s", verb, resource, w.namespace,
			httpclient.OneLine(err.Error(), maxText))
	}
	return "the cluster cannot be reached: " + cmp.Or(httpclient.Failure(err), "the log says why")
}
