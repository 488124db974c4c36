package operator

import (
	"fmt"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Owner says whose the routing is to be after a command; Change.Record goes into Git before Temporal is asked for it.
type Owner struct {
	Change
	// From is who has it now, as it was read; To is who shall have it, "" for no owner. If both are the same, Temporal
	// is not asked.
	From, To string
}

// Adopt takes the routing over from its owner, and takes it as it is for what is wanted. from is who the person
// believes has it; nil: the person did not say, which is enough where it has no owner, or the bot has it.
func Adopt(s rollout.Snapshot, p Person, from *string) (Owner, error) {
	rec, err := recordOf(s)
	if err != nil {
		return Owner{}, err
	}
	own := s.Environment.ManagerIdentity
	obs := &s.Observation
	switch has := obs.ManagerIdentity; {
	case own == "":
		return Owner{}, fmt.Errorf("environment %s has no managerIdentity in rampart.yaml to take the routing with",
			s.Environment.Name)
	case obs.Problem != nil:
		return Owner{}, fmt.Errorf("read Temporal: %s", obs.Problem.Message)
	case obs.Exists != rollout.Yes:
		return Owner{}, fmt.Errorf("the worker deployment %s does not exist in Temporal: there is nothing to take over",
			s.Deployment)
	case from != nil && *from != has:
		return Owner{}, fmt.Errorf("the routing of %s belongs to %s, not to %s: nothing was taken over", s.Deployment,
			orNobody(has), orNobody(*from))
	case from == nil && rollout.BelongsToOther(has, own):
		return Owner{}, fmt.Errorf("the routing of %s belongs to %s. To take it from there: rampart adopt %[1]s "+
			"--from %[3]q", s.Deployment, orNobody(has), has)
	}
	out := Owner{Change: Change{Record: rec}, From: obs.ManagerIdentity, To: own}
	released := rec.Hold != nil && rec.Hold.Kind == v1alpha1.HoldReleased
	if out.From == own && !released {
		out.Change = unchanged(rec, "it belongs to %q already", own)
		return out, nil
	}
	if released {
		out.Record.Hold = nil
	}
	desired, basis := plan.AsIs(obs.Routing)
	out.Record.Desired, out.Record.Decided, out.Record.Basis = desired, &desired, basis
	out.Did = fmt.Sprintf("adopt: the routing belongs to %q from now on, and was %s; it is kept as it is: %s", own,
		owned(out.From), plan.Describe(obs.Routing))
	if h := out.Record.Hold; h != nil {
		out.Notes = append(out.Notes, fmt.Sprintf("still held by %s (%s): rampart resume %s", h.By, h.Reason,
			s.Deployment))
	}
	return out, nil
}

// Release hands the routing to someone else, or leaves it without an owner (to ""), and makes the bot leave it alone.
func Release(s rollout.Snapshot, p Person, to string) (Owner, error) {
	rec, err := recordOf(s)
	if err != nil {
		return Owner{}, err
	}
	own := s.Environment.ManagerIdentity
	obs := &s.Observation
	switch has := obs.ManagerIdentity; {
	case obs.Problem != nil:
		return Owner{}, fmt.Errorf("read Temporal: %s", obs.Problem.Message)
	case to == own && own != "":
		return Owner{}, fmt.Errorf("%q is the environment's own identity: name another one with --to, or none", to)
	case rollout.BelongsToOther(has, own) && has != to:
		return Owner{}, fmt.Errorf("the routing of %s belongs to %s, not to %q: it is not ours to release",
			s.Deployment, orNobody(has), own)
	}
	out := Owner{Change: Change{Record: rec}, From: obs.ManagerIdentity, To: to}
	if obs.Exists != rollout.Yes {
		out.To = out.From
	}
	if h := rec.Hold; h != nil && h.Kind == v1alpha1.HoldReleased && out.From == out.To {
		out.Change = unchanged(rec, "released already, by %s: %s", h.By, h.Reason)
		return out, nil
	}
	out.Record.Hold = &v1alpha1.Hold{Kind: v1alpha1.HoldReleased, By: p.Name, Reason: p.why(),
		At: v1alpha1.NewTime(p.At)}
	if t := rec.Target; t != nil {
		out.Record.Hold.BuildID = t.BuildID
	}
	out.Did = fmt.Sprintf("release: the routing belongs to %s from now on", orNobody(to))
	out.Notes = []string{"files are still rendered; to take the routing back: rampart adopt " + s.Deployment.String()}
	return out, nil
}

func orNobody(identity string) string {
	if identity == "" {
		return "nobody"
	}
	return fmt.Sprintf("%q", identity)
}

func owned(identity string) string {
	if identity == "" {
		return "nobody's"
	}
	return fmt.Sprintf("%q's", identity)
}
