package index

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// ApprovalFloor is what the bot's own configuration demands of the approval of environments. A repository can be
// stricter, and cannot be less.
type ApprovalFloor struct {
	// Environments is a glob of names; after a "!" all others are meant, also those that do not exist yet.
	Environments string
	// Scope is Step where one approval may cover one step only; else "".
	Scope v1alpha1.ApprovalScope
	// ByOther says that who approves has to be somebody else than who asked.
	ByOther bool
}

// flag is the one that such a demand is given by.
func (f ApprovalFloor) flag() string {
	if f.ByOther {
		return "--require-approval-by-other"
	}
	return "--require-approval"
}

// ParseApprovalFloor reads GLOB or GLOB=SCOPE, such as prod*, !dev or *=Step.
func ParseApprovalFloor(text string) (ApprovalFloor, error) {
	glob, scope, scoped := strings.Cut(text, "=")
	f := ApprovalFloor{Environments: glob}
	if name := strings.TrimPrefix(glob, "!"); name == "" || !doublestar.ValidatePattern(name) {
		return f, fmt.Errorf("%q: want a glob of names of environments, such as prod, prod-*, * or !dev", glob)
	}
	switch v1alpha1.ApprovalScope(scope) {
	case v1alpha1.ScopeStep:
		f.Scope = v1alpha1.ScopeStep
	case v1alpha1.ScopeRollout: // the widest
	default:
		if scoped {
			return f, fmt.Errorf("scope %q is neither %s nor %s", scope, v1alpha1.ScopeStep, v1alpha1.ScopeRollout)
		}
	}
	return f, nil
}

func (f ApprovalFloor) covers(environment string) bool {
	glob, others := strings.CutPrefix(f.Environments, "!")
	ok, err := doublestar.Match(glob, environment)
	return err != nil || ok != others // what cannot be matched is covered
}

// RequireApproval says which environments have to want raises approved. All code that reads their approval reads
// the tightened one.
func RequireApproval(floors []ApprovalFloor) Option {
	return func(o *options) { o.approval = floors }
}

// tightened is an environment as the bot's configuration has it at least, without its files: what was changed for that
// is in its problems.
func (o options) tightened(env v1alpha1.Environment) rollout.EnvironmentWorld {
	was, out, flag := env.Approval, rollout.EnvironmentWorld{}, ""
	for _, f := range o.approval {
		if !f.covers(env.Name) {
			continue
		}
		env.Approval.Mode = v1alpha1.PullRequest
		if f.Scope != "" {
			env.Approval.Scope = f.Scope
		}
		out.PeopleMerge, out.ByOther = true, out.ByOther || f.ByOther
		if flag == "" || f.Scope != "" {
			flag = f.flag()
		}
	}
	out.Environment = env
	if o.partial {
		return out
	}
	say := func(format string, args ...any) {
		out.Problems = append(out.Problems, v1alpha1.Problem{Severity: v1alpha1.Warning, File: layout.Config,
			Message: "environment " + env.Name + ": " + fmt.Sprintf(format, args...)})
	}
	if env.Approval != was {
		say("approval is %s with scope %s, tightened from %s with scope %s by the bot's configuration (%s)",
			env.Approval.Mode, env.Approval.Scope, was.Mode, was.Scope, flag)
	}
	if out.PeopleMerge && env.PullRequests.AutoMerge != "" {
		say("pullRequests.autoMerge is not for raises, which people approve by the bot's configuration (%s)", flag)
	}
	return out
}

// unmet are demands that are about none of the environments: a name that changed would be without them.
func (o options) unmet(environments []v1alpha1.Environment) []v1alpha1.Problem {
	var out []v1alpha1.Problem
	if o.partial {
		return nil
	}
	for _, f := range o.approval {
		if !slices.ContainsFunc(environments, func(env v1alpha1.Environment) bool { return f.covers(env.Name) }) {
			out = append(out, v1alpha1.Problem{Severity: v1alpha1.Warning, File: layout.Config,
				Message: fmt.Sprintf("%s %q is about none of its environments", f.flag(), f.Environments)})
		}
	}
	return out
}
