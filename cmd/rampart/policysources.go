package main

import (
	"errors"
	"reflect"
	"slices"

	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy"
)

// policyGroup is policies that some environments have in common, or that were given by their paths.
type policyGroup struct {
	// environments that have these policies, in the order of rampart.yaml; none for what was given.
	environments []string
	cfg          policy.Config
}

// policyGroups are the policies of some paths; without paths those of the environments of the folder -C, equal ones once.
func (a *app) policyGroups(paths []string) ([]policyGroup, error) {
	if len(paths) > 0 {
		sets, err := givenPolicies(paths)
		if err != nil {
			return nil, err
		}
		return []policyGroup{{cfg: sets[0].cfg}}, nil
	}
	sets, problems, err := a.environmentPolicies()
	if err != nil {
		return nil, err
	}
	for _, p := range problems {
		a.say("%s", p)
	}
	if len(sets) == 0 {
		return nil, errors.New("the repository's configuration cannot be used")
	}
	var out []policyGroup
	for _, s := range sets {
		same := slices.IndexFunc(out, func(g policyGroup) bool { return reflect.DeepEqual(g.cfg, s.cfg) })
		if same < 0 {
			out = append(out, policyGroup{cfg: s.cfg})
			same = len(out) - 1
		}
		out[same].environments = append(out[same].environments, s.name)
	}
	return out, nil
}

// soundWorld is the folder -C, whose configuration has to be right.
func (a *app) soundWorld() (rollout.World, error) {
	s, err := a.loadSpecs(nil)
	if err != nil {
		return s.world, err
	}
	if len(s.world.Environments) == 0 {
		return s.world, a.because(s.world, errors.New("the repository's configuration cannot be used"))
	}
	return onlyEnvironment(s.world, a.env)
}
