package reconcile

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/resync"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// commit writes what was decided for an environment with one commit, and gives the decisions that it is about. Where
// the branch is protected, the commit is proposed instead, if the environment asks for that.
func (r *Reconciler) commit(ctx context.Context, tip reading, env rollout.EnvironmentWorld,
	decisions []*rollout.Decision, report *Report) ([]*rollout.Decision, error) {
	if env.Unrecorded { // its records cannot be read: nothing is written on top of them
		return decisions, nil
	}
	decisions = r.admit(ctx, env, r.recent(ctx, decisions, report), report)
	release, err := r.repository.take(ctx)
	if err != nil {
		return nil, err
	}
	decisions, dropped, unread := withManifests(ctx, tip, decisions)
	report.note(dropped...)
	wrote, err := r.write(ctx, env, decisions, report)
	if err != nil {
		err = r.proposeInstead(ctx, wrote.commit, err)
	}
	release()
	if err != nil {
		return nil, err
	}
	if wrote.hash != "" {
		report.Commits = append(report.Commits, wrote.hash)
		r.Log.InfoContext(ctx, "committed", "environment", env.Environment.Name, "commit", wrote.hash, "files",
			len(wrote.commit.Changes))
		r.last = withRecords(r.last, env.Environment.Name, wrote.decisions)
	}
	if wrote.hash == "" && slices.ContainsFunc(wrote.decisions, raises) && !r.unmoved(ctx, env, report) {
		return nil, fmt.Errorf("the branch moved since the last commit: traffic not raised: %w", rollout.ErrMoved)
	}
	if unread != nil { // it keeps no other's traffic where it is
		r.Log.WarnContext(ctx, "manifests could not be read", "environment", env.Environment.Name, "error", unread)
	}
	return wrote.decisions, nil
}

// admit lets rollouts of all groups start one after the other. Where a decision that is made again would lower traffic,
// the next cycle does it.
func (r *Reconciler) admit(ctx context.Context, env rollout.EnvironmentWorld, decisions []*rollout.Decision,
	report *Report) []*rollout.Decision {
	var out []*rollout.Decision
	for i, d := range Admit(ctx, r.JudgeFor(env), decisions) {
		if d.Inputs = decisions[i].Inputs; d.Plan.Lower != nil && !d.Acted {
			r.leave(ctx, d, report)
			continue
		}
		out = append(out, d)
	}
	return r.check(ctx, out, report)
}

// recent leaves out the decisions to scale a version down that were made too long ago: it may have traffic by now.
// Where such a decision also raises, the next status says that it was not raised.
func (r *Reconciler) recent(ctx context.Context, decisions []*rollout.Decision,
	report *Report) []*rollout.Decision {
	return slices.DeleteFunc(slices.Clone(decisions), func(d *rollout.Decision) bool {
		scales := func(a rollout.Action) bool { return a.Kind == rollout.ScaleDown }
		old := r.tooOld(d) && slices.ContainsFunc(d.Plan.Actions, scales)
		if !old {
			return false
		}
		if raises(d) {
			if p := report.problems[keyOf(d)]; p == nil || p.Reason != rollout.StaleFacts { // else it is the next try
				r.Log.InfoContext(ctx, "not committed on old facts", "deployment", d.Plan.Deployment.String())
				report.note(d)
			}
			report.problems[keyOf(d)] = r.staleFacts("made")
			r.resync.Wait(keyOf(d), r.Now())
		}
		r.leave(ctx, d, report)
		return true
	})
}

// unmoved reads the output's branch again where nothing was pushed to it, and so nothing compared: what a person
// committed meanwhile counts.
func (r *Reconciler) unmoved(ctx context.Context, env rollout.EnvironmentWorld, report *Report) bool {
	tip, err := r.waitForTip(ctx, report)
	if err != nil {
		r.Log.WarnContext(ctx, "the repository could not be read again: traffic is not raised", "error", err)
		return false
	}
	now, ok := tip.environment(env.Environment.Name)
	return ok && now.Base == env.Base
}

// stillHold gives the decisions that hold on another tip than they were made on. Decisions whose spec, policies or
// neighbors moved are made again on the same observation. Decisions whose record moved, or that were carried out at
// least in part, are left to the next cycle, which observes their worker deployments anew.
func (r *Reconciler) stillHold(ctx context.Context, tip reading, a assessed, report *Report) assessed {
	env, ok := tip.environment(a.environment)
	if !ok {
		report.note(a.decisions...)
		a.decisions = nil
		return a
	}
	shared, hash := r.shared(env), resync.NewConnectionHash()
	var kept, moved []*rollout.Decision
	for _, d := range a.decisions {
		row := tip.row(keyOf(d))
		switch {
		case row == nil, recordOf(row) != d.Snapshot.Record.Tree:
			r.leave(ctx, d, report)
		case resync.InputsOfEntry(row, *shared, hash) == d.Inputs && (d.Acted || !isNewcomer(d)):
			kept = append(kept, d)
		case d.Acted:
			r.leave(ctx, d, report)
		default:
			moved = append(moved, d)
		}
	}
	a.decisions = inOrder(kept, r.decideAgain(ctx, tip, env, moved, report))
	return a
}

// isNewcomer reports whether a decision depends on what other worker deployments do: it starts a rollout or names
// Deployments.
func isNewcomer(d *rollout.Decision) bool {
	_, starts := starting(d)
	return starts || slices.ContainsFunc(d.Plan.Versions, func(w rollout.VersionWrite) bool {
		return w.Op == rollout.RenderVersion
	})
}

// decideAgain makes decisions again on another tip, on the same observations. Where another question would have to be
// asked, and where traffic would be lowered, the next cycle does it.
func (r *Reconciler) decideAgain(ctx context.Context, tip reading, env rollout.EnvironmentWorld,
	moved []*rollout.Decision, report *Report) []*rollout.Decision {
	var rows []*rollout.IndexEntry
	for _, d := range moved {
		rows = append(rows, tip.row(keyOf(d)))
	}
	loaded, err := r.load(ctx, tip, env, rows)
	if err != nil {
		r.Log.WarnContext(ctx, "worker deployments could not be read again", "environment", env.Environment.Name,
			"error", err)
	}
	judge, shared, hash := r.JudgeFor(env), r.shared(env), resync.NewConnectionHash()
	var out []*rollout.Decision
	for _, d := range moved {
		at := slices.IndexFunc(loaded, func(s rollout.Snapshot) bool { return s.Deployment == d.Snapshot.Deployment })
		if at < 0 {
			r.leave(ctx, d, report)
			continue
		}
		s := withObservation(loaded[at], d.Snapshot)
		same := keyOfGroup(s, hash) == keyOfGroup(d.Snapshot, hash) &&
			reflect.DeepEqual(plan.Look(s).Ask(), plan.Look(d.Snapshot).Ask())
		again := Decide(ctx, judge, s)
		again.Inputs = resync.InputsOf(&loaded[at], *shared, hash)
		hurried := s.Observation.CutShort && raises(again)
		if !same || hurried || again.Plan.Lower != nil || len(again.Plan.Deletions) > 0 || again.Plan.SecondRead {
			r.leave(ctx, d, report)
			continue
		}
		out = append(out, again)
	}
	return out
}

// leave leaves a worker deployment to the next cycle.
func (r *Reconciler) leave(ctx context.Context, d *rollout.Decision, report *Report) {
	r.Log.DebugContext(ctx, "decided again in the next cycle", "deployment", d.Plan.Deployment.String())
	r.resync.Drop(keyOf(d))
	report.more(r.Now())
}

// withObservation is a snapshot of the repository with what another one knows from elsewhere.
func withObservation(s, seen rollout.Snapshot) rollout.Snapshot {
	s.Now, s.Limits, s.Facts, s.Cluster, s.GateInputs = seen.Now, seen.Limits, seen.Facts, seen.Cluster, seen.GateInputs
	s.Observation, s.FirstRead, s.NamespaceThere, s.Lost = seen.Observation, seen.FirstRead, seen.NamespaceThere,
		seen.Lost
	s.Uncounted = seen.Uncounted
	return s
}

func recordOf(k *rollout.IndexEntry) string {
	if k.Full != nil {
		return k.Full.Record.Tree
	}
	return k.Tree
}
