package reconcile

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
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
		out := written{commit: commit, decisions: decisionsOf(parts)}
		if err != nil || len(commit.Changes) == 0 {
			return out, err
		}
		if out.hash, err = r.push(ctx, commit, report); err == nil {
			noteWritten(parts)
			return out, nil
		}
		unwritable := rollout.Unwritable(err)
		left := r.withoutUnwritable(ctx, parts, unwritable, report)
		blocked := env.Environment.CD.Hydrator && inTheWay(unwritable, hydratorPath(env)) != nil
		if blocked { // the same commit without that file
			r.Log.WarnContext(ctx, "commits do not name the commit that asked: remove what is in the way of the file",
				"file", hydratorPath(env), "error", err)
			env.Environment.CD.Hydrator = false
		}
		if len(left) == len(parts) && !blocked {
			if !errors.Is(err, rollout.ErrMoved) { // what moved is decided again
				report.note(out.decisions...)
			}
			return out, err
		}
		decisions = decisionsOf(left)
	}
}

// withoutUnwritable drops the decisions whose files are at a path that a commit could not write, or below it.
func (r *Reconciler) withoutUnwritable(ctx context.Context, parts []Part, unwritable []*rollout.UnwritableError,
	report *Report) []Part {
	var left []Part
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

func decisionsOf(parts []Part) []*rollout.Decision {
	out := make([]*rollout.Decision, len(parts))
	for i, part := range parts {
		out[i] = part.Decision
	}
	return out
}

// compose makes one commit of all decisions, and gives its parts. It drops those that cannot be rendered.
func (r *Reconciler) compose(ctx context.Context, env rollout.EnvironmentWorld, decisions []*rollout.Decision,
	report *Report) (rollout.Commit, []Part, error) {
	commit := rollout.Commit{Environment: env.Environment, Base: env.Base}
	parts := renderEach(decisions)
	root, err := r.rootFiles.change(env, parts)
	if err != nil {
		return commit, nil, err
	}
	var kept, changed []Part
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
			commit.Changes = append(commit.Changes, part.Files...)
		}
	}
	origins := r.originsOf(ctx, env, decisionsOf(changed))
	each := env.Environment.Output.Commits == v1alpha1.CommitPerDeployment
	var last rollout.GitContext
	for i, part := range changed {
		last = laterOrigin(last, origins[i])
		if each {
			of := []*rollout.Decision{part.Decision}
			own := rollout.CommitPart{Changes: part.Files, Message: message(env.Environment.Name, of)}
			commit.Parts = append(commit.Parts, r.withOrigin(env, own, origins[i], last))
		}
	}
	if root != nil {
		commit.Changes = append(commit.Changes, *root)
		if n := len(commit.Parts); n > 0 { // which of its folders are there is true with the last of them
			commit.Parts[n-1].Changes = append(slices.Clip(commit.Parts[n-1].Changes), *root)
		}
	}
	all := rollout.CommitPart{Changes: commit.Changes, Message: message(env.Environment.Name, decisionsOf(changed))}
	all = r.withOrigin(env, all, last, last)
	commit.Changes, commit.Message = all.Changes, all.Message
	return commit, kept, nil
}
