package reconcile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/rampart-gitops/rampart/internal/resync"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// settle notes which worker deployments need no look for a while. After a commit their records have another hash, so
// they get one more look.
func (r *Reconciler) settle(env rollout.EnvironmentWorld, decisions []*rollout.Decision, report *Report) {
	for _, d := range decisions {
		report.NextDue = earlier(report.NextDue, d.Plan.NextDue)
		key := keyOf(d)
		r.resync.Drop(key)
		if !d.Plan.Settled || d.Snapshot.Record.Tree == "" || d.Snapshot.Connection == nil || d.Snapshot.Spec == nil ||
			inReview(d) {
			continue
		}
		r.resync.Settle(key, resync.Row{Inputs: d.Inputs, Due: d.Plan.NextDue, Routing: d.Snapshot.Observation.Routing,
			Pods:              r.podsSeen(env, &d.Snapshot),
			TemporalNamespace: strings.Clone(d.Snapshot.Spec.Spec.WorkerOptions.TemporalNamespace)}, d.Snapshot.Now)
	}
}

// inReview reports whether people may say something about a worker deployment that no file shows.
func inReview(d *rollout.Decision) bool {
	if routing := d.Snapshot.Record.Routing; routing != nil &&
		(routing.Spec.Proposal != nil || len(rollout.ReviewedProposals(&routing.Spec)) > 0) {
		return true
	}
	return d.Snapshot.Review != nil || d.Plan.Review != nil || d.Plan.Approving != nil
}

// shared are the inputs that all worker deployments of an environment share: the same pointer while they are the same.
func (r *Reconciler) shared(env rollout.EnvironmentWorld) *resync.Shared {
	shared := resync.Shared{Policies: r.JudgeFor(env).Digest(), Facts: said(r.withOwn(nil))}
	if b, err := json.Marshal([]any{env.Environment, env.Waivers, env.PolicyProblems, env.Unusable,
		env.Unrecorded}); err == nil {
		sum := sha256.Sum256(b)
		shared.Environment = hex.EncodeToString(sum[:])
	}
	return r.resync.Share(env.Environment.Name, shared)
}

// said is what facts say, whatever their age, which always grows.
func said(facts map[string]rollout.Fact) string {
	if len(facts) == 0 {
		return ""
	}
	all := make(map[string][]string, len(facts))
	for name, f := range facts {
		all[name] = []string{string(f.Value), f.Error}
	}
	b, err := json.Marshal(all)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// CacheData gives which worker deployments are settled, and on what. Those with which something went wrong are not
// among them.
func (r *Reconciler) CacheData() any {
	return r.resync.CacheData(r.Now(), func(key resync.Key) bool { return r.failures[key] != nil })
}

// LoadCacheData takes which worker deployments were settled in an earlier run.
func (r *Reconciler) LoadCacheData(decode func(into any) error) error {
	var cached resync.CacheData
	if err := decode(&cached); err != nil {
		return err
	}
	return r.resync.LoadCacheData(cached, r.Now())
}
