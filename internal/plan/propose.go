package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// Decide says what the rollout rules would do next, asks judge about that, and gives what is done now. judge gets the
// snapshot as policy sees it.
func (v *View) Decide(judge func(rollout.Snapshot, rollout.Proposal) rollout.Verdicts) (
	rollout.Proposal, rollout.Plan) {
	p := v.Propose()
	return p, v.Resolve(p, judge(v.JudgedBy(), p))
}

// Propose says what the rollout rules would do next, and why, before policy is asked.
func (v *View) Propose() rollout.Proposal {
	p := rollout.Proposal{Target: v.target}
	v.proposeTarget(&p)
	v.proposeLowering(&p)
	broken := v.s.Record.RoutingProblem != nil
	if v.readable() && (!broken || v.unreadable()) {
		p.Canary = v.candidate
		v.proposeContinue(&p)
	}
	if v.readable() && !broken {
		v.proposeOthers(&p)
		v.proposeConnections(&p)
		v.proposeResources(&p)
		v.proposeEvacuations(&p)
	}
	for i := range p.Actions {
		a := &p.Actions[i]
		a.ID = actionID(*a)
		a.Approved = a.Approved || v.approves(*a) || slices.Contains(v.s.Approved, a.ID)
	}
	return p
}

// Rows are the names of all rows of the rules, sorted: those of the tables, and of what is decided beside them.
func Rows() []string {
	names := []string{"owned-by-another", "continue", "manifest", "resources", "evacuate"}
	for _, r := range targetRows() {
		names = append(names, r.name)
	}
	for _, r := range otherRows() {
		names = append(names, r.name)
	}
	slices.Sort(names)
	return names
}

// proposeTarget walks the rows. When the worker deployment is owned by someone else its routing does not move, but
// files still render.
func (v *View) proposeTarget(p *rollout.Proposal) {
	for _, r := range targetRows() {
		foreign := r.about != aboutInput && v.foreign()
		if foreign && (r.about == aboutRouting || r.about == aboutRetreat) {
			continue
		}
		o, fits := r.fits(v)
		if !fits {
			continue
		}
		p.Row, p.State, p.Due = r.name, o.state, o.due
		if foreign {
			o.actions = slices.DeleteFunc(o.actions, rollout.Action.Routes)
		}
		propose(p, r.name, o)
		if !foreign {
			return
		}
		break
	}
	if v.foreign() && v.readable() && p.Row != "retire" {
		if p.Row == "" {
			p.Row = "owned-by-another"
		}
		p.State = rollout.State{Reason: rollout.OwnedByAnother, Stalled: true,
			Message: v.ownership() + ": files are rendered, routing does not move"}
	}
}

// ownership says whose the routing is, and how to take it.
func (v *View) ownership() string {
	name := v.s.Deployment
	switch h := v.rec.Hold; {
	case v.released():
		return fmt.Sprintf("the routing of %s was released by %s (%s; to take it back: rampart adopt %[1]s)", name,
			h.By, h.Reason)
	case v.s.Environment.ManagerIdentity == "":
		return fmt.Sprintf("environment %s has no manager identity, so the routing of %s is not its own",
			v.s.Environment.Name, name)
	}
	return fmt.Sprintf("the routing of %s belongs to %q, not to %q (to take it over: rampart adopt %[1]s)",
		name, v.obs.ManagerIdentity, v.s.Environment.ManagerIdentity)
}

// proposeContinue asks policy about everything that has traffic, in every cycle: a rollback does not wait for a pause
// to end.
func (v *View) proposeContinue(p *rollout.Proposal) {
	if v.foreign() {
		return
	}
	for _, id := range []string{v.actual.Current, v.actual.Ramping} {
		if id == "" {
			continue
		}
		share := rollout.AsWritten(v.actual.Share(id))
		p.Actions = append(p.Actions, rollout.Action{Kind: rollout.Continue, BuildID: id, From: share, To: share,
			Row: "continue", Reason: fmt.Sprintf("%s has %s of new workflows", id, rollout.Percent(share))})
	}
}

// proposeOthers looks at every version with files: first at its files themselves, then at what comes next for it.
func (v *View) proposeOthers(p *rollout.Proposal) {
	for i := range v.rec.Versions {
		r := &v.rec.Versions[i]
		if drift := v.manifestDrift(r); len(drift) > 0 {
			v.proposeManifests(p, r, drift)
			continue
		}
		if v.isTarget(r.BuildID) && v.unusable == nil {
			if !slices.ContainsFunc(p.Actions, rewrites(r.BuildID)) &&
				(!equal(r.Replicas, v.wantedReplicas(r)) || !samePools(r.Pools, v.wantedPools(r))) {
				propose(p, "replicas", outcome{actions: []rollout.Action{v.scale(r)}})
			}
			continue
		}
		row, o := v.otherRow(r)
		if row == "" {
			continue
		}
		if p.Others == nil {
			p.Others = map[string]string{}
		}
		p.Others[r.BuildID] = row
		propose(p, row, o)
	}
}

// proposeManifests answers drift of a version's files before anything else is done to them: an edit needs the manifest
// that was written. A new rendering does not.
func (v *View) proposeManifests(p *rollout.Proposal, r *v1alpha1.RecordedVersion, drift []rollout.Drift) {
	written := func(a rollout.Action) bool {
		return a.BuildID == r.BuildID && a.Kind == rollout.UpdateVersion && a.Update == rollout.UpdateTemplate
	}
	if slices.ContainsFunc(p.Actions, written) {
		return
	}
	p.Actions = slices.DeleteFunc(p.Actions, rewrites(r.BuildID))
	for _, d := range drift {
		p.Actions = append(p.Actions, rollout.Action{Kind: rollout.DriftAction, BuildID: r.BuildID, Row: "manifest",
			Drift: &d, Reason: fmt.Sprintf("%s is not what was written", d.Path)})
	}
}

// rewrites are the actions for the target that write files which it has already.
func rewrites(buildID string) func(rollout.Action) bool {
	return func(a rollout.Action) bool {
		return a.BuildID == buildID && (a.Kind == rollout.UpdateVersion || a.Kind == rollout.Restore)
	}
}

func propose(p *rollout.Proposal, row string, o outcome) {
	for _, a := range o.actions {
		a.Row = row
		p.Actions = append(p.Actions, a)
	}
	p.NextDue = earlier(p.NextDue, o.due)
}

// earlier is the earlier of two times; a zero time means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func actionID(a rollout.Action) string {
	id := string(a.Kind) + "/" + a.BuildID
	if a.Kind == rollout.Ramp {
		id += "@" + rollout.Percent(a.To)
	}
	if a.Drift != nil {
		id += "#" + string(a.Drift.Kind) + a.Drift.Path
	}
	if a.Reconnects() { // beside a changed template of the same version
		id += "#" + string(a.Update)
	}
	return id
}
