package reconcile

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/internal/compose"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// written is what became of decisions.
type written struct {
	commit rollout.Commit
	// hash of the commit; "": there was nothing to write.
	hash string
	// decisions that the commit has.
	decisions []*rollout.Decision
}

// write commits what decisions come to. Where something is in the way of one worker deployment's files, the others are
// committed without it.
func (r *Reconciler) write(ctx context.Context, env rollout.EnvironmentWorld, decisions []*rollout.Decision,
	report *Report) (written, error) {
	for {
		commit, parts, err := r.compose(ctx, env, decisions, report)
		out := written{commit: commit, decisions: compose.DecisionsOf(parts)}
		if err != nil || len(commit.Changes) == 0 {
			return out, err
		}
		if out.hash, err = r.push(ctx, commit, report); err == nil {
			noteWritten(parts)
			return out, nil
		}
		unwritable := rollout.Unwritable(err)
		left := r.withoutUnwritable(ctx, parts, unwritable, report)
		blocked := env.Environment.CD.Hydrator && inTheWay(unwritable, compose.HydratorPath(env)) != nil
		if blocked { // the same commit without that file
			r.Log.WarnContext(ctx, "commits do not name the commit that asked: remove what is in the way of the file",
				"file", compose.HydratorPath(env), "error", err)
			env.Environment.CD.Hydrator = false
		}
		if len(left) == len(parts) && !blocked {
			if !errors.Is(err, rollout.ErrMoved) { // what moved is decided again
				report.note(out.decisions...)
			}
			return out, err
		}
		decisions = compose.DecisionsOf(left)
	}
}

// withoutUnwritable drops the decisions whose files are at a path that a commit could not write, or below it.
func (r *Reconciler) withoutUnwritable(ctx context.Context, parts []compose.Part, unwritable []*rollout.UnwritableError,
	report *Report) []compose.Part {
	var left []compose.Part
	for _, part := range parts {
		at := slices.IndexFunc(part.Files, func(f rollout.FileChange) bool {
			return inTheWay(unwritable, f.Path) != nil
		})
		if at < 0 {
			left = append(left, part)
			continue
		}
		r.drop(ctx, part.Decision, inTheWay(unwritable, part.Files[at].Path).Error(), report)
	}
	return left
}

// inTheWay gives the error about a path, or about a folder that it is in; nil: there is none.
func inTheWay(unwritable []*rollout.UnwritableError, path string) *rollout.UnwritableError {
	for _, u := range unwritable {
		if path == u.Path || strings.HasPrefix(path, u.Path+"/") {
			return u
		}
	}
	return nil
}

// drop leaves a decision out of the commit, and out of what follows it.
func (r *Reconciler) drop(ctx context.Context, d *rollout.Decision, why string, report *Report) {
	r.fail(ctx, d, report, rollout.Problem{Reason: rollout.PlanGenerationFailed, Message: why})
	report.note(d)
}

// compose makes one commit of all decisions, and gives its parts. It drops those that cannot be rendered.
func (r *Reconciler) compose(ctx context.Context, env rollout.EnvironmentWorld, decisions []*rollout.Decision,
	report *Report) (rollout.Commit, []compose.Part, error) {
	parts := compose.RenderEach(decisions)
	root, err := r.rootFiles.Change(env, parts)
	if err != nil {
		return rollout.Commit{Environment: env.Environment}, nil, err
	}
	var kept, changed []compose.Part
	for _, part := range parts {
		if part.Refused != "" {
			r.drop(ctx, part.Decision, part.Refused, report)
			continue
		}
		if part.Curtailed != "" {
			r.fail(ctx, part.Decision, report, rollout.Problem{Reason: rollout.PlanGenerationFailed,
				Message: part.Curtailed})
		}
		kept = append(kept, part)
		if len(part.Files) > 0 {
			changed = append(changed, part)
		}
	}
	origins := r.originsOf(ctx, env, compose.DecisionsOf(changed))
	return compose.Commit(env, changed, root, origins, r.RepositoryURL), kept, nil
}

// originsOf gives the commits that asked for what was decided, in that order, where the environment wants them. Where
// one is unknown, its Commit is "".
func (r *Reconciler) originsOf(ctx context.Context, env rollout.EnvironmentWorld,
	of []*rollout.Decision) []rollout.GitContext {
	if !env.Environment.CD.Hydrator || r.History == nil || len(of) == 0 {
		return make([]rollout.GitContext, len(of))
	}
	snapshots := make([]rollout.Snapshot, len(of))
	for i, d := range of {
		snapshots[i] = d.Snapshot
	}
	origins, err := r.History.Origins(ctx, snapshots)
	if err != nil {
		r.Log.WarnContext(ctx, "where specs come from could not be read", "error", err)
	}
	return origins
}
