package cmdutil

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/internal/cluster"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// ClusterFlags say which cluster a command reads or changes.
type ClusterFlags struct {
	kubeconfig, context string
}

// Add adds --kubeconfig, with the given help text, and --context.
func (f *ClusterFlags) Add(cmd *cobra.Command, kubeconfig string) {
	cmd.Flags().StringVar(&f.kubeconfig, "kubeconfig", "", kubeconfig)
	cmd.Flags().StringVar(&f.context, "context", "", "context of the kubeconfig (default: its current one)")
}

// Open opens the cluster of the kubeconfig, or the one that kubectl uses without --kubeconfig.
func (f *ClusterFlags) Open() (*cluster.Cluster, error) {
	return cluster.Open(cluster.Config{Kubeconfig: f.kubeconfig, Context: f.context})
}

// podsPatience is how long a command that ends, or runs one cycle, waits for the cluster.
const podsPatience = 10 * time.Second

// AddPods adds the flags of a command that may read pods.
func (f *ClusterFlags) AddPods(cmd *cobra.Command) {
	f.Add(cmd, "kubeconfig of the environment's cluster, to say why pods do not run; needs --env (default: no "+
		"cluster is read)")
}

// PodReader reads pods of a cluster, and logs why it cannot: once for each reason.
type PodReader struct {
	*cluster.Reader
	log *slog.Logger

	mu sync.Mutex
	// told is the problem of each namespace that was logged last.
	told map[string]string
}

var _ reconcile.Cluster = (*PodReader)(nil)

// OpenPods opens the cluster that the flags name, and returns nil without --kubeconfig.
func (a *App) OpenPods(f ClusterFlags) (*PodReader, error) {
	switch {
	case f.kubeconfig == "" && f.context != "":
		return nil, errors.New("--context needs --kubeconfig: without it no cluster is read")
	case f.kubeconfig == "":
		return nil, nil
	case a.Env == "":
		return nil, errors.New("--kubeconfig needs --env: a cluster belongs to one environment, and namespaces of " +
			"the others would be looked for in it too")
	}
	reader, err := cluster.OpenReader(cluster.Config{Kubeconfig: f.kubeconfig, Context: f.context}, a.Now)
	if err != nil {
		return nil, err
	}
	return &PodReader{Reader: reader, log: a.Log, told: map[string]string{}}, nil
}

// port is nil for no reader.
func (p *PodReader) port() reconcile.Cluster {
	if p == nil {
		return nil
	}
	return p
}

// Close ends the connection to the cluster. It does nothing on a nil PodReader.
func (p *PodReader) Close() {
	if p != nil {
		p.Reader.Close()
	}
}

// Read reads, and logs when the pods of a namespace cannot be read any more, and when they are read again.
func (p *PodReader) Read(ctx context.Context, asks []rollout.ClusterAsk, patience time.Duration) []rollout.Cluster {
	out := p.Reader.Read(ctx, asks, patience)
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, ask := range asks {
		now, was := out[i].Problem, p.told[ask.Namespace]
		switch now {
		case was, rollout.ClusterUnread:
			continue
		case "":
			p.log.InfoContext(ctx, "the cluster's pods are read again", "namespace", ask.Namespace)
		default:
			p.log.WarnContext(ctx, "the cluster's pods cannot be read", "namespace", ask.Namespace, "error", now,
				"detail", p.Err(ask.Namespace))
		}
		p.told[ask.Namespace] = now
	}
	return out
}

// FillPods sets in each snapshot what the cluster says of its pods. It does nothing on a nil PodReader.
func (p *PodReader) FillPods(ctx context.Context, snapshots []rollout.Snapshot) {
	if p == nil {
		return
	}
	asks := make([]rollout.ClusterAsk, len(snapshots))
	for i := range snapshots {
		asks[i] = snapshots[i].ClusterAsk()
	}
	for i, said := range p.Read(ctx, asks, podsPatience) {
		snapshots[i].Cluster = &said
	}
}
