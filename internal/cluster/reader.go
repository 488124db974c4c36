package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/rampart-gitops/rampart/internal/httpclient"
	"github.com/rampart-gitops/rampart/internal/mask"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// keepWatching is how long a namespace is watched after the last question about it: longer than any worker deployment
// is left alone.
const keepWatching = 15 * time.Minute

// maxText bounds what is kept of a text of the cluster.
const maxText = 200

// Reader reads why pods do not run.
type Reader struct {
	client dynamic.Interface
	masker *mask.Masker
	now    func() time.Time
	// stop ends what watches, and all is done when that has ended.
	ctx  context.Context //nolint:containedctx // of the watches, which outlive the question that began them
	stop context.CancelFunc
	all  sync.WaitGroup
	// changes counts what changed in what is watched.
	changes atomic.Uint64

	mu         sync.Mutex
	namespaces map[string]*namespace
	// cleared is when unused namespaces were looked for last.
	cleared time.Time
}

// OpenReader reads a kubeconfig. Nothing is sent until the first question. Its errors name the file.
func OpenReader(cfg Config, now func() time.Time) (*Reader, error) {
	config, err := load(cfg)
	if err != nil {
		return nil, err
	}
	// A watch of each resource of a namespace is one request in minutes.
	config.QPS, config.Burst, config.WarningHandler = 50, 100, rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("use the kubeconfig: %w", err)
	}
	masker, err := mask.New()
	if err != nil {
		return nil, err
	}
	r := &Reader{client: client, masker: masker, now: now, namespaces: map[string]*namespace{}}
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r, nil
}

// Close ends what the Reader watches.
func (r *Reader) Close() {
	r.stop()
	r.all.Wait()
}

// Changes counts what changed in what is watched: while it is the same, so are the answers, but for their time.
func (r *Reader) Changes() uint64 { return r.changes.Load() }

// Err is what went wrong last with a namespace, with the addresses that answers leave out; nil for nothing.
func (r *Reader) Err(namespace string) error {
	r.mu.Lock()
	n := r.namespaces[namespace]
	r.mu.Unlock()
	if n == nil {
		return nil
	}
	for _, w := range n.watches {
		w.mu.Lock()
		err := w.err
		w.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// Read says of each question, in their order, what is known now. It asks the cluster nothing that it does not watch
// already. A namespace that it is asked about for the first time is waited for, at most for patience, all of them
// together; zero: it is not known yet.
func (r *Reader) Read(ctx context.Context, asks []rollout.ClusterAsk, patience time.Duration) []rollout.Cluster {
	watched := r.watch(asks)
	if patience > 0 {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		for _, n := range watched {
			n.await(ctx)
		}
	}
	out := make([]rollout.Cluster, len(asks))
	now := r.now()
	for i, ask := range asks {
		n := watched[ask.Namespace]
		if n == nil {
			out[i].Problem = "the worker deployment has no namespace: its pods are not looked for"
			continue
		}
		if out[i].Problem = n.problem(time.Now()); out[i].Problem != "" {
			continue
		}
		out[i].At = now
		for _, v := range ask.Versions {
			out[i].Versions = append(out[i].Versions, n.pods(v, now))
		}
		slices.SortFunc(out[i].Versions, func(a, b rollout.VersionPods) int {
			return strings.Compare(a.BuildID, b.BuildID)
		})
	}
	return out
}

// watch gives the namespaces that are asked about, and watches those that are new. It ends the watches of those that
// were not asked about for long.
func (r *Reader) watch(asks []rollout.ClusterAsk) map[string]*namespace {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, out := time.Now(), map[string]*namespace{}
	for _, ask := range asks {
		n := r.namespaces[ask.Namespace]
		if ask.Namespace == "" { // which is all of them in Kubernetes
			continue
		}
		if n == nil {
			n = r.newNamespace(ask.Namespace)
			r.namespaces[ask.Namespace] = n
		}
		n.asked = now
		out[ask.Namespace] = n
	}
	if now.Sub(r.cleared) < keepWatching/15 {
		return out
	}
	r.cleared = now
	for name, n := range r.namespaces {
		if now.Sub(n.asked) > keepWatching {
			n.stop()
			delete(r.namespaces, name)
		}
	}
	return out
}

// problem makes one of a text of the cluster: on one line, cut, and without what looks like a credential.
func (r *Reader) problem(reason rollout.PodReason, message string) *problem {
	return &problem{reason, httpclient.OneLine(r.masker.Text(message), maxText)}
}
