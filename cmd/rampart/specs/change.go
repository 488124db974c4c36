package specs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/gitops/layout"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// validateChange checks the folder -C as a change on top of a commit. Its files count as they are, judged by the
// environments, policies, data and waivers of the commit. So a change that loosens a policy is not judged by what it
// makes of it.
func validateChange(ctx context.Context, a *cmdutil.App, base string, judges *cmdutil.Judges) (validation, error) {
	head, err := a.LoadSpecs(nil)
	if err != nil {
		return validation{}, err
	}
	if err := head.LoadWaivers(); err != nil {
		return validation{}, err
	}
	world, err := gitops.ReadChange(a.Dir, base, a.ReadOptions(judges.LocateReferences())...)
	if err != nil {
		return validation{}, err
	}
	if len(world.Environments) == 0 {
		return validation{}, fmt.Errorf("%s of %s cannot be used: %w", layout.Config, base, firstOf(world.Problems))
	}
	change := cmdutil.Specs{World: world, WholeRepository: true, Base: a.Dir, BasePrefix: base + ":"}
	for _, s := range []*cmdutil.Specs{&head, &change} {
		s.Environments = cmdutil.EnvironmentNames(s.World)
		if s == &change && slices.Contains(head.Environments, a.Env) && !slices.Contains(s.Environments, a.Env) {
			s.World.Environments = nil // it is new with the change
		} else if s.World, err = cmdutil.OnlyEnvironment(s.World, a.Env); err != nil {
			return validation{}, err
		}
	}
	return judgeChange(ctx, a, changedSpecs{head: head, judged: change, all: world, base: base}, judges)
}

// changedSpecs are the specs of a change, by themselves and as its base judges them.
type changedSpecs struct {
	head, judged cmdutil.Specs
	// all is what the base judges, of all environments.
	all  rollout.World
	base string
}

// judgeChange checks a change by itself for errors, and has its base judge it. The error is the context's.
func judgeChange(ctx context.Context, a *cmdutil.App, c changedSpecs, judges *cmdutil.Judges) (validation, error) {
	out, err := validate(ctx, a, c.head, judges)
	if err != nil {
		return out, err
	}
	judged, err := validate(ctx, a, c.judged, judges)
	if err != nil {
		return out, err
	}
	out.Deployments, out.Findings = judged.Deployments, judged.Findings
	out.Problems = append(out.Problems, strangers(c.head, c.all, c.base)...)
	for _, p := range judged.Problems {
		switch ofBase := strings.HasPrefix(p.File, c.judged.BasePrefix); {
		case ofBase && p.Severity == v1alpha1.Error:
			p.Severity = v1alpha1.Warning // it is in force already, and this change may be the one that mends it
			out.Problems = append(out.Problems, p)
		case !ofBase:
			out.Problems = append(out.Problems, p)
		}
	}
	out.conclude()
	return out, nil
}

func firstOf(problems []v1alpha1.Problem) error {
	if len(problems) == 0 {
		return errors.New("it has no environment")
	}
	return problems[0]
}

// strangers are specs of a change that are in no environment of its base: nothing there judges them.
func strangers(head cmdutil.Specs, base rollout.World, revision string) []v1alpha1.Problem {
	var known []string
	for _, env := range base.Environments {
		for _, d := range env.Deployments {
			known = append(known, d.SpecPath)
		}
	}
	var out []v1alpha1.Problem
	for _, env := range head.World.Environments {
		for _, d := range env.Deployments {
			if d.SpecPath != "" && !slices.Contains(known, d.SpecPath) {
				out = append(out, v1alpha1.Problem{Severity: v1alpha1.Error, File: head.DisplayPath(d.SpecPath),
					Message: fmt.Sprintf(
						"%s is in no environment of %s, so none of its policies judges it: add the environment "+
							"first, in "+
							"a change of its own",
						d.Deployment, revision)})
			}
		}
	}
	return out
}
