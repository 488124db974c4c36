package index

import (
	"fmt"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Two environments may ask for one worker deployment: the same name in the same Temporal namespace of the same server.
// Whose it is Temporal says, by the manager identity. Here it is only found out.

// claim is where an environment has a worker deployment in Temporal.
type claim struct {
	name   rollout.Name
	server string // as its connection says
	// namespace in Temporal.
	namespace string
	file      string
}

// same reports whether two claims are for one worker deployment in Temporal.
func (c claim) same(o claim) bool {
	return c.name == o.name && strings.EqualFold(c.server, o.server) && c.namespace == o.namespace && c.server != ""
}

// find finds worker deployments that several environments claim, and says so in their snapshots.
func (w *rivals) find() {
	for i := range w.envs {
		for k := range w.envs {
			if i != k {
				w.between(i, k)
			}
		}
	}
}

// rivals are the environments of one reading, in the order of the world.
type rivals struct {
	world *rollout.World
	envs  []*environment
}

// between tells an environment of another one that claims what it claims. Both are sorted by name.
func (w *rivals) between(mine, other int) {
	a, b := w.envs[mine], w.envs[other]
	n, m := a.claims(&w.world.Environments[mine]), b.claims(&w.world.Environments[other])
	for i, k := 0, 0; i < n.len && k < m.len; {
		switch c := n.name(i).Compare(m.name(k)); {
		case c < 0:
			i++
		case c > 0:
			k++
		default:
			if is, ok := n.at(i); ok {
				if has, ok := m.at(k); ok && is.same(has) {
					w.tell(mine, other, is)
					n.set(i, a.rivals[is.name])
				}
			}
			i, k = i+1, k+1
		}
	}
}

// tell notes that another environment claims a worker deployment, too.
func (w *rivals) tell(mine, other int, is claim) {
	a, env := w.envs[mine], &w.world.Environments[mine]
	rival := w.world.Environments[other].Environment
	if a.rivals == nil {
		a.rivals = map[rollout.Name][]rollout.Rival{}
	}
	a.rivals[is.name] = append(a.rivals[is.name], rollout.Rival{Environment: rival.Name,
		ManagerIdentity: rival.ManagerIdentity})
	env.Problems = append(env.Problems, v1alpha1.Problem{Severity: v1alpha1.Error, File: is.file, Message: fmt.Sprintf(
		"the environments %s and %s both claim worker deployment %s in Temporal namespace %s at %s: the one that "+
			"manages it there keeps it, and the other one "+
			"raises and creates nothing; take it out of one of them", env.Environment.Name, rival.Name, is.name,
		is.namespace, is.server)})
}

// claims are the worker deployments of an environment, sorted by name, as a reading has them.
type claims struct {
	len  int
	name func(i int) rollout.Name
	// at gives one; false: it is not claimed, or not known where.
	at func(i int) (claim, bool)
	// set fills in the environments that claim one, too.
	set func(i int, all []rollout.Rival)
}

func (e *environment) claims(env *rollout.EnvironmentWorld) claims {
	if e.index == nil {
		return claims{len(env.Deployments), func(i int) rollout.Name { return env.Deployments[i].Deployment },
			func(i int) (claim, bool) { return claimOf(&env.Deployments[i]) },
			func(i int, all []rollout.Rival) { env.Deployments[i].Rivals = all }}
	}
	return claims{len(env.Entries), func(i int) rollout.Name { return env.Entries[i].Deployment },
		func(i int) (claim, bool) { return e.entryClaim(env.Entries[i]) },
		func(i int, all []rollout.Rival) {
			env.Entries[i].Rivals = rollout.SayRivals(all)
			if full := env.Entries[i].Full; full != nil {
				full.Rivals = all
			}
		}}
}

// claimOf is what a snapshot claims: by its spec, or, where that is gone or broken, by its record.
func claimOf(s *rollout.Snapshot) (claim, bool) {
	c := claim{name: s.Deployment, file: s.SpecPath}
	r := s.Record.Routing
	switch {
	case r != nil && r.Spec.Hold != nil && r.Spec.Hold.Kind == v1alpha1.HoldReleased:
		return claim{}, false
	case s.Spec != nil:
		c.namespace = s.Spec.Spec.WorkerOptions.TemporalNamespace
	case r != nil:
		c.namespace = r.Spec.TemporalNamespace
	}
	if c.file == "" {
		c.file = s.Record.Dir
	}
	switch {
	case s.Connection != nil:
		c.server = s.Connection.Spec.HostPort
	case r != nil && r.Spec.Connection != nil:
		c.server = r.Spec.Connection.Spec.HostPort
	}
	return c, c.server != "" && c.namespace != ""
}

// entryClaim is what a worker deployment of a survey claims.
func (e *environment) entryClaim(k *rollout.IndexEntry) (claim, bool) {
	if k.Full != nil {
		return claimOf(k.Full)
	}
	specs := e.specsOf(k.Deployment)
	if len(specs) != 1 || specs[0].entry == nil || k.Connection == nil || k.Released {
		return claim{}, false
	}
	return claim{k.Deployment, k.Connection.Spec.HostPort, specs[0].entry.TemporalNamespace, k.SpecPath}, true
}
