package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/internal/rollout"
)

// contest says which environments claim the worker deployment, and what a person can do.
func (v *View) contest() string {
	own := v.s.Environment
	names := make([]string, 0, len(v.s.Rivals))
	shared := false
	for _, r := range v.s.Rivals {
		names = append(names, r.Environment)
		shared = shared || r.ManagerIdentity == own.ManagerIdentity
	}
	others := strings.Join(names, ", ")
	claimed := fmt.Sprintf("the environments %s and %s both claim %s in Temporal namespace %s", own.Name, others,
		v.s.Deployment, TemporalNamespace(*v.s))
	switch manager := v.obs.ManagerIdentity; {
	case shared:
		return fmt.Sprintf("%s with the manager identity %q: give each environment a managerIdentity of its own, and "+
			"take the spec out of one of them", claimed, own.ManagerIdentity)
	case manager == "":
		return claimed + ", and it has no manager there yet: take the spec out of one of them"
	default:
		return fmt.Sprintf("%s, where it belongs to %q, not to %q: take the spec out of environment %s, or hand the "+
			"worker deployment over (rampart release %[5]s in the other one, then "+
			"rampart adopt %[5]s)", claimed, manager, own.ManagerIdentity, own.Name, v.s.Deployment)
	}
}

// contested reports whether another environment claims the worker deployment, and Temporal does not say that it is this
// one's alone. The view goes by Snapshot.Contested.
func (n *never) contested() bool {
	o, own := n.s.Observation, n.s.Environment.ManagerIdentity
	if len(n.s.Rivals) == 0 || o.Problem != nil || o.Exists == "" || o.At.IsZero() {
		return false
	}
	alike := slices.ContainsFunc(n.s.Rivals, func(r rollout.Rival) bool { return r.ManagerIdentity == own })
	return alike || own == "" || o.ManagerIdentity != own
}
