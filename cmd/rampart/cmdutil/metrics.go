package cmdutil

import (
	"context"
	"net/http"

	"github.com/rampart-gitops/rampart/internal/metrics"
	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// metricsPort fits a Prometheus to what a cycle asks of metrics.
type metricsPort struct{ client *metrics.Client }

var _ reconcile.Metrics = metricsPort{}

// metrics gives the metrics store of the bot's own configuration, nil if there is none.
func (f TemporalFlags) metrics() (reconcile.Metrics, error) {
	if f.prometheus.Address == "" {
		return nil, nil
	}
	cfg := f.prometheus
	cfg.Proxy = http.ProxyFromEnvironment
	client, err := metrics.New(cfg)
	if err != nil {
		return nil, err
	}
	return metricsPort{client}, nil
}

func (p metricsPort) Read(ctx context.Context, questions []rollout.MetricsQuestion) []map[string]rollout.Fact {
	asks := make([]metrics.Ask, len(questions))
	for i, q := range questions {
		asks[i] = metrics.Ask{Metrics: q.Ask.Metrics,
			Values: metrics.Values{Deployment: q.Snapshot.Deployment, BuildID: q.Ask.Candidate,
				CurrentBuildID: q.Ask.Current, Environment: q.Snapshot.Environment.Name,
				TemporalNamespace: plan.TemporalNamespace(q.Snapshot)}}
	}
	return p.client.Facts(ctx, asks)
}
