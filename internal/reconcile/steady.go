package reconcile

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"hash/fnv"
	"strings"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// resync is how long a settled worker deployment is left alone at most: a change of owner, or of drainage, shows only in a
// describe of its own.
const resync = 5 * time.Minute

// inTurn is how long one settled worker deployment is left alone: each for another time, so that those that were looked at together are
// not for long.
func inTurn(n rollout.Name) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(n.String()))
	return resync - time.Duration(h.Sum32())%(resync/2)
}

// keep keeps what was read of worker deployments that are about to be looked at: once for all tries of a cycle.
func (s *steadiness) keep(env string, snapshots []rollout.Snapshot) {
	if s.open == nil {
		s.open = map[string]map[rollout.Name]content{}
	}
	open := make(map[rollout.Name]content, len(snapshots))
	for i := range snapshots {
		if c, ok := contentIn(&snapshots[i]); ok {
			open[snapshots[i].Deployment] = c
		}
	}
	s.open[env] = open
}

// steadiness remembers worker deployments that are settled. It only saves work: without it they are all looked at.
type steadiness struct {
	settled map[steadyKey]*settled
	// passes are the readings that were compared last, by environment.
	passes map[string]*pass
	// roots are the outputs' own files that were found to be as they should be, by environment.
	roots map[string]roots
	// open is what files say of those that are looked at, by environment. Those that are not settled then are looked at in each cycle.
	open map[string]map[rollout.Name]content
	// turns are those of environments in which more have to be looked at than are at once, in this cycle.
	turns map[string]*turn
	// first are those that had no turn yet in this cycle, by environment, as it found them: what it had to read of their files need not be
	// read again once others were committed.
	first map[string][]*rollout.Known
}

// begin begins a cycle by what it found.
func (s *steadiness) begin(world rollout.World) {
	s.turns, s.first = map[string]*turn{}, make(map[string][]*rollout.Known, len(world.Environments))
	for _, env := range world.Environments {
		s.first[env.Environment.Name] = env.Known
	}
}

// content is what a snapshot has beside what a survey gives, and of which files.
type content struct {
	record, path, blob string
	spec               *v1alpha1.WorkerDeployment
	says               rollout.Record
}

// known fills in snapshots of an environment that are brief by what was read of them the last time.
func (s *steadiness) known(env string, snapshots []rollout.Snapshot) []rollout.Snapshot {
	for i := range snapshots {
		d := &snapshots[i]
		if c, ok := s.contentOf(env, d.Deployment); d.Brief && ok && c.record == d.Record.Tree && c.path == d.SpecPath && c.blob == d.Git.SpecBlob &&
			c.says.Dir == d.Record.Dir {
			d.Brief, d.Spec, d.Record = false, c.spec, c.says
		}
	}
	return snapshots
}

// contentOf is what was read of a worker deployment the last time, or by the first reading of a cycle in which it had no turn yet.
func (s *steadiness) contentOf(env string, n rollout.Name) (content, bool) {
	if c, ok := s.open[env][n]; ok {
		return c, true
	}
	if at, ok := rollout.KnownAt(s.first[env], n); ok && s.first[env][at].Full != nil {
		return contentIn(s.first[env][at].Full)
	}
	return content{}, false
}

// contentIn is what the files say that a complete snapshot was made of.
func contentIn(d *rollout.Snapshot) (content, bool) {
	return content{record: d.Record.Tree, path: d.SpecPath, blob: d.Git.SpecBlob, spec: d.Spec, says: d.Record}, d.Spec != nil
}

// steadyKey is a worker deployment in an environment.
type steadyKey struct {
	Env  string
	Name rollout.Name
}

// settled is what a decision to do nothing was made on, and until when it holds.
type settled struct {
	inputs inputs
	// until is when it is looked at again, due when the decision changes by itself (zero: never).
	until, due time.Time
	routing    rollout.RoutingConfig
	// temporalNamespace it is listed in, and as what.
	temporalNamespace, listed string
	// pods is what the cluster said, where policies look at that; nil: they do not, or it is of an earlier run.
	pods *seenPods
}

// inputs stand for all that a decision depends on beside Temporal and the time: a hash of it.
type inputs [sha256.Size]byte

// inputsOfKnown are the inputs of a worker deployment of which no more may be known.
func inputsOfKnown(k *rollout.Known, shared sharedInputs, hash func(*v1alpha1.Connection) string) inputs {
	if k.Full != nil {
		return inputsOf(k.Full, shared, hash)
	}
	return hashOf(k.Tree, k.SpecPath, k.SpecBlob, hash(k.Connection), hash(k.LastConnection), "", k.Rivals, shared.policies, shared.environment, shared.facts)
}

func inputsOf(s *rollout.Snapshot, shared sharedInputs, hash func(*v1alpha1.Connection) string) inputs {
	resources := ""
	if len(s.Resources) > 0 || s.ResourcesProblem != nil {
		if b, err := json.Marshal([]any{s.Resources, s.ResourcesProblem}); err == nil {
			resources = string(b)
		}
	}
	return hashOf(s.Record.Tree, s.SpecPath, s.Git.SpecBlob, hash(s.Connection), hash(s.LastConnection), resources, rollout.SayRivals(s.Rivals), shared.policies, shared.environment,
		shared.facts)
}

// hashOf hashes texts, each by itself.
func hashOf(texts ...string) inputs {
	data := make([]byte, 0, 512)
	for _, t := range texts {
		data = append(binary.AppendUvarint(data, uint64(len(t))), t...)
	}
	return sha256.Sum256(data)
}

// connectionHash gives the hash of connections, which many have in common; "" is that of none.
func connectionHash() func(*v1alpha1.Connection) string {
	known := map[*v1alpha1.Connection]string{nil: ""}
	return func(c *v1alpha1.Connection) string {
		h, ok := known[c]
		if !ok {
			h = c.Spec.Hash()
			known[c] = h
		}
		return h
	}
}

// sharedInputs are those that all worker deployments of an environment have in common.
type sharedInputs struct{ policies, environment, facts string }

func (p *Planner) sharedOf(env rollout.EnvironmentWorld) sharedInputs {
	shared := sharedInputs{policies: p.JudgeFor(env).Digest(), facts: said(p.withOwn(nil))}
	if b, err := json.Marshal([]any{env.Environment, env.Waivers, env.PolicyProblems, env.Unusable, env.Unrecorded}); err == nil {
		sum := sha256.Sum256(b) // it is compared for each
		shared.environment = hex.EncodeToString(sum[:])
	}
	return shared
}

// said is what facts say, whatever their age: that grows all the time, and settled is who goes nowhere.
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

// inReview reports whether people may say something about a worker deployment that is in no file.
func inReview(d *Decision) bool {
	if routing := d.Snapshot.Record.Routing; routing != nil && (routing.Spec.Proposal != nil || len(rollout.ReviewedProposals(&routing.Spec)) > 0) {
		return true
	}
	return d.Snapshot.Review != nil || d.Plan.Review != nil || d.Plan.Approving != nil
}

// remember notes which worker deployments are settled. After a commit their records have another hash: they are looked
// at once more.
func (r *Reconciler) remember(env rollout.EnvironmentWorld, decisions []*Decision) {
	s := &r.steady
	if s.settled == nil {
		s.settled = map[steadyKey]*settled{}
	}
	if pass := s.passes[env.Environment.Name]; pass != nil {
		for _, i := range pass.due {
			pass.same[i] = nil
		}
	}
	if len(decisions) == 0 {
		return
	}
	shared, hash := r.sharedOf(env), connectionHash()
	for _, d := range decisions {
		if d.Plan.Settled {
			delete(s.open[env.Environment.Name], d.Plan.Deployment)
		}
		key := steadyKey{env.Environment.Name, d.Plan.Deployment}
		delete(s.settled, key)
		if !d.Plan.Settled || d.Snapshot.Record.Tree == "" || d.Snapshot.Connection == nil || d.Snapshot.Spec == nil || inReview(d) {
			continue
		}
		until := d.Snapshot.Now.Add(inTurn(d.Plan.Deployment))
		if due := d.Plan.NextDue; !due.IsZero() && due.Before(until) {
			until = due
		}
		s.settled[key] = &settled{inputs: inputsOf(&d.Snapshot, shared, hash), until: until, due: d.Plan.NextDue,
			routing: d.Snapshot.Observation.Routing, temporalNamespace: strings.Clone(d.Snapshot.Spec.Spec.WorkerOptions.TemporalNamespace),
			listed: d.Plan.Deployment.String(), pods: r.podsSeen(env, &d.Snapshot)}
	}
}
