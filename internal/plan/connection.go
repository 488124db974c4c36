package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// A change of a connection is one of credentials as long as the connection leads to the server that the versions are
// on: then all of them follow. It leads there if its address stays, or if the Temporal namespace at the new address has
// the ID that the record has. Any other change would take the workers away from the workflows that are pinned to their
// versions.

// AskNamespace gives the connection whose Temporal namespace has to be asked for its ID before anything is decided. It
// gives the namespace too. Nil: the address of the connection in Git is the one that the record has.
func (v *View) AskNamespace() (*v1alpha1.Connection, string) {
	c, routing := v.s.Connection, v.s.Record.Routing
	if !v.sound() || c == nil || routing == nil {
		return nil, ""
	}
	rec, namespace := routing.Spec, v.s.Spec.Spec.WorkerOptions.TemporalNamespace
	if rec.Connection == nil || sameAddress(c.Spec, rec.Connection.Spec) || rec.TemporalNamespace != namespace {
		return nil, ""
	}
	return c, namespace
}

func sameAddress(a, b v1alpha1.ConnectionSpec) bool { return strings.EqualFold(a.HostPort, b.HostPort) }

// sameServer reports whether a connection leads to the server that the versions are on.
func (v *View) sameServer(c *v1alpha1.Connection) bool {
	last := v.rec.Connection
	return c == nil || last == nil || len(v.rec.Versions) == 0 || sameAddress(c.Spec, last.Spec) || v.proven(c)
}

// proven reports whether the Temporal namespace at a connection's address is known to be the one that the versions are
// in.
func (v *View) proven(c *v1alpha1.Connection) bool {
	there, id := v.s.NamespaceThere, v.namespaceID()
	return there.About(c, v.rec.TemporalNamespace) && id != "" && there.ID == id
}

// namespaceID is the ID of the Temporal namespace that the versions are in: the recorded one, or what the server that
// they are on said.
func (v *View) namespaceID() string { return cmp.Or(v.rec.TemporalNamespaceID, v.obs.NamespaceID) }

// movesServer reports whether the connection in Git leads to another server than the versions are on, and no person
// retires these.
func (v *View) movesServer() bool {
	return v.retire == nil && v.sound() && !v.away() && !v.sameServer(v.s.Connection)
}

// anotherServer reports whether a record without versions is known to be about another server than the connection in
// Git leads to.
func (v *View) anotherServer() bool {
	c, last, there := v.s.Connection, v.rec.Connection, v.s.NamespaceThere
	if c == nil || last == nil || sameAddress(c.Spec, last.Spec) || !there.About(c, v.rec.TemporalNamespace) {
		return false
	}
	return there.ID != "" && there.ID != v.rec.TemporalNamespaceID
}

// serverMoved says why a connection that leads to another server cannot be used, and what to do.
func (v *View) serverMoved() rollout.State {
	c := v.s.Connection
	return stalled(rollout.InvalidSpec, "%[1]s leads to %[5]s, and %[2]s is at %[3]s: %[4]s. A version stays on its "+
		"server, or its workflows would lose their workers. "+
		"To move: rampart retire %[2]s; start no more workflows at %[3]s; rampart retire %[2]s --unroute. Once "+
		"nothing of it is left there, it is made anew at %[5]s by itself",
		c.Ref().In(v.s.Deployment.Namespace), v.s.Deployment, v.rec.Connection.Spec.HostPort, v.notProven(c),
		c.Spec.HostPort).state
}

// notProven says why it is not known that an address leads to the server that the versions are on.
func (v *View) notProven(c *v1alpha1.Connection) string {
	there, namespace, address := v.s.NamespaceThere, v.rec.TemporalNamespace, c.Spec.HostPort
	switch id := v.namespaceID(); {
	case !there.About(c, namespace):
		return fmt.Sprintf("which Temporal namespace %s has at %s was not asked", namespace, address)
	case there.ID == "":
		return fmt.Sprintf("the ID of Temporal namespace %s at %s is not known: %s", namespace, address, there.Problem)
	case id == "":
		return fmt.Sprintf("the record has no ID of Temporal namespace %s that the one at %s could be compared with",
			namespace, address)
	default:
		return fmt.Sprintf("Temporal namespace %s has the ID %s at %s, expected %s", namespace, there.ID, address, id)
	}
}

// proposeConnections lets all versions follow changed credentials, also where a row that fits before keeps the rollout
// where it is: certificates expire whatever is held.
func (v *View) proposeConnections(p *rollout.Proposal) {
	if v.unusable != nil || v.connection == nil {
		return
	}
	for i := range v.rec.Versions {
		r := &v.rec.Versions[i]
		follows := slices.ContainsFunc(p.Actions, func(a rollout.Action) bool {
			return a.BuildID == r.BuildID && a.Reconnects()
		})
		if o, fits := needsConnection(v, r); fits && !follows && len(v.manifestDrift(r)) == 0 {
			propose(p, "connection", o)
		}
	}
}

// sortReconnect takes an action that lets a version follow its connection, unless policy holds just that action. It
// needs no approval, and what the spec asks for besides does not matter.
func (r *resolver) sortReconnect(a rollout.Action, verdict rollout.Verdict) {
	if verdict.Effect.Strictness() >= rollout.HoldEffect.Strictness() {
		_, why := strictest(verdict)
		r.holds(a, verdict, rollout.PolicyHold, why)
		return
	}
	r.taken = append(r.taken, a)
}

// oneWrite leaves out that versions follow their connection where something else writes their files. That write does it
// too, or it is done in the next cycle.
func (r *resolver) oneWrite() {
	written := map[string]bool{}
	for _, a := range r.taken {
		switch a.Kind {
		case rollout.CreateVersion, rollout.UpdateVersion, rollout.Restore, rollout.ScaleVersion, rollout.ScaleDown,
			rollout.RemoveFiles, rollout.DriftAction:
			written[a.BuildID] = written[a.BuildID] || !a.Reconnects()
		}
	}
	r.taken = slices.DeleteFunc(r.taken, func(a rollout.Action) bool { return a.Reconnects() && written[a.BuildID] })
}
