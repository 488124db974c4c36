package policies

import (
	"reflect"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/policy/bundle"
)

// givenSources are what a person says to look at: files and folders, and directories as --policy-dir of the bot.
type givenSources struct {
	paths, dirs []string
}

// addTo adds the flag for directories of the bot's own policies.
func (g *givenSources) addTo(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&g.dirs, "policy-dir", nil,
		"directory of the bot's own policies, read as the bot reads it, in place of the environments'; repeatable")
	cmdutil.CompleteFlag(cmd, "policy-dir", cmdutil.CompleteFolders)
}

// sets are what was given; false: nothing was.
func (g givenSources) sets() (sets []policySet, given bool, err error) {
	if len(g.paths) > 0 {
		if sets, err = givenPolicies(g.paths); err != nil {
			return nil, true, err
		}
	}
	var floor policySet
	for _, dir := range g.dirs {
		layer, err := bundle.ReadDir(dir)
		if err != nil {
			return nil, true, err
		}
		floor.cfg.Floor = append(floor.cfg.Floor, layer)
	}
	if len(g.dirs) > 0 {
		sets = append(sets, floor)
	}
	return sets, len(sets) > 0, nil
}

// policySets are the policies that were given, or else those of the environments of the folder -C, equal ones once.
func policySets(a *cmdutil.App, g givenSources) (out []policySet, err error) {
	if given, ok, err := g.sets(); ok || err != nil {
		return given, err
	}
	sets, problems, err := environmentPolicies(a)
	if err != nil {
		return nil, err
	}
	for _, p := range problems {
		a.Say("%s", p)
	}
	if len(sets) == 0 {
		return nil, cmdutil.ErrConfiguration
	}
	for _, s := range sets {
		same := slices.IndexFunc(out, func(g policySet) bool { return reflect.DeepEqual(g.cfg, s.cfg) })
		if same < 0 {
			out = append(out, policySet{cfg: s.cfg})
			same = len(out) - 1
		}
		out[same].environments = append(out[same].environments, s.environments...)
	}
	return out, nil
}

// soundWorld is the folder -C, whose configuration has to be right.
func soundWorld(a *cmdutil.App) (rollout.World, error) {
	s, err := a.LoadRepository()
	if err != nil {
		return s.World, err
	}
	if len(s.World.Environments) == 0 {
		return s.World, a.SayWorldProblems(s.World, cmdutil.ErrConfiguration)
	}
	return cmdutil.OnlyEnvironment(s.World, a.Env)
}
