package sim

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/reconcile"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/render"
)

// secondRead is how long after the first read of a cycle the second one is made.
const secondRead = time.Second

// ports are what the bot reads and writes in a simulation.
type ports struct{ *simulation }

var (
	_ reconcile.Source     = ports{}
	_ reconcile.Observer   = ports{}
	_ reconcile.Metrics    = metrics{}
	_ reconcile.Inputs     = inputs{}
	_ reconcile.Committer  = ports{}
	_ reconcile.Router     = ports{}
	_ reconcile.VersionAPI = ports{}
)

func (s *simulation) newBot(in Input) *reconcile.Reconciler {
	limits := s.snapshot.Limits
	if limits == (rollout.Limits{}) {
		limits = rollout.DefaultLimits()
	}
	p := ports{s}
	return &reconcile.Reconciler{
		Planner: &reconcile.Planner{Source: p, Observer: p, Metrics: metrics(p), Inputs: inputs{}, Own: p.own,
			Limits: limits, Now: p.at,
			Log: slog.New(slog.DiscardHandler), JudgeFor: func(rollout.EnvironmentWorld) reconcile.Judge {
				return judge{in.Judge}
			}},
		Committer: p, Router: p, Versions: p,
	}
}

// judge is a Judge as the bot wants it. Where specs come from is not simulated.
type judge struct{ of Judge }

// Judge implements reconcile.Judge.
func (j judge) Judge(ctx context.Context, s rollout.Snapshot, p rollout.Proposal) rollout.Verdicts {
	return j.of.Judge(ctx, s, p)
}

// Digest implements reconcile.Judge.
func (judge) Digest() string { return "" }

// Looks implements reconcile.Judge: at all that is counted. There are no commit statuses in a simulation.
func (judge) Looks() rollout.Looks {
	parts := map[string]bool{}
	for _, phase := range rollout.CanaryPhases() {
		parts[rollout.PartCounts(phase)] = true
	}
	return rollout.Looks{Parts: parts}
}

func (p ports) at() time.Time { return p.now }

// own are facts that the bot knows by itself, which it goes on knowing.
func (p ports) own() map[string]rollout.Fact {
	out := make(map[string]rollout.Fact, len(p.snapshot.Facts))
	for name, f := range p.snapshot.Facts {
		if len(f.Value) > 0 {
			f.ObservedAt = p.now
		}
		out[name] = f
	}
	return out
}

// Read implements reconcile.Source.
func (p ports) Read(context.Context) (rollout.World, error) {
	s := p.snapshot
	s.Approved = nil
	for id, a := range p.asked {
		if a.action.Evacuation == nil && !p.now.Before(a.at) {
			s.Approved = append(s.Approved, id)
		}
	}
	env := rollout.EnvironmentWorld{Environment: s.Environment, Waivers: s.Waivers, Deployments: []rollout.Snapshot{s},
		RootFile: p.root}
	return rollout.World{Environments: []rollout.EnvironmentWorld{env}}, nil
}

// Observe implements reconcile.Observer.
func (p ports) Observe(_ context.Context, _ v1alpha1.Connection, ask rollout.Ask) rollout.Observation {
	if ask.Second {
		return p.temporal.observe(p.now.Add(secondRead), ask)
	}
	return p.temporal.observe(p.now, ask)
}

// metrics are those of the script.
type metrics ports

// Read implements reconcile.Metrics.
func (m metrics) Read(_ context.Context, questions []rollout.MetricsQuestion) []map[string]rollout.Fact {
	out := make([]map[string]rollout.Fact, len(questions))
	for i, q := range questions {
		if q.Snapshot.Observation.Problem == nil {
			out[i] = m.temporal.facts(m.now, &q.Ask)
		}
	}
	return out
}

// inputs of gates are there: the script says how the gates end.
type inputs struct{}

// Digest implements reconcile.Inputs.
func (inputs) Digest(rollout.GateInputRef) (string, error) { return "simulated", nil }

// Commit implements reconcile.Committer.
func (p ports) Commit(_ context.Context, c rollout.Commit) (string, error) {
	var record []rollout.FileChange
	for _, f := range c.Changes {
		if strings.HasPrefix(f.Path, p.snapshot.Record.Dir+"/") {
			record = append(record, f)
		} else {
			p.root = rollout.File{Data: f.Data, Hash: render.BlobHash(f.Data)}
		}
	}
	if len(record) == 0 {
		return "root", nil
	}
	next, err := commit(p.snapshot.Record, record)
	if err != nil {
		return "", err
	}
	p.snapshot.Record, p.acted, p.committed = next, true, true
	if r := next.Routing; r != nil {
		p.temporal.apply(p.now, r.Spec.Versions)
	}
	return fmt.Sprint(len(p.table.Entries)), nil
}

// Confirm implements reconcile.Committer.
func (ports) Confirm(context.Context, map[string]string) (bool, error) { return true, nil }

// Lower implements reconcile.Router. A call that is refused is decided again.
func (p ports) Lower(_ context.Context, _ rollout.Subject, call rollout.RoutingCall) error {
	err := p.temporal.call(p.now, call)
	p.acted = p.acted || err == nil
	return err
}

// Raise implements reconcile.Router. A call that is refused is decided again.
func (p ports) Raise(_ context.Context, _ rollout.Subject, call rollout.RoutingCall) error {
	p.acted = true
	return p.temporal.call(p.now, call)
}

// StartGate implements reconcile.VersionAPI.
func (p ports) StartGate(_ context.Context, _ rollout.Subject, gate rollout.GateStart) error {
	p.acted = true
	p.temporal.startGate(p.now, gate)
	return nil
}

// DeleteVersion implements reconcile.VersionAPI.
func (p ports) DeleteVersion(_ context.Context, _ rollout.Subject, buildID string) (rollout.Deletion, error) {
	p.acted = true
	return rollout.Deletion{BuildID: buildID, Refused: p.temporal.remove(p.now, buildID)}, nil
}

// StartBatch implements reconcile.VersionAPI.
func (p ports) StartBatch(_ context.Context, _ rollout.Subject, start rollout.BatchStart) error {
	p.acted = true
	p.temporal.startBatch(p.now, start)
	return nil
}
