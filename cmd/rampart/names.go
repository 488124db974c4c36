package main

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/rollout"
)

// deployments are the snapshots of a world that have one of the names, all without names, in the world's order. A name
// is namespace/name, or the name alone where that is enough to tell.
func deployments(world rollout.World, names []string) ([]rollout.Snapshot, error) {
	var all []rollout.Snapshot
	var known, short []string
	for _, env := range world.Environments {
		for _, d := range env.Deployments {
			all = append(all, d)
			known, short = append(known, d.Deployment.String()), append(short, d.Deployment.Name)
		}
	}
	if len(names) == 0 {
		return all, nil
	}
	var out []rollout.Snapshot
	for _, name := range names {
		found := slices.DeleteFunc(slices.Clone(all), func(s rollout.Snapshot) bool {
			return s.Deployment.String() != name && (strings.Contains(name, "/") || s.Deployment.Name != name)
		})
		if len(found) == 0 {
			if !strings.Contains(name, "/") && nearest(name, short) != "" {
				known = short
			}
			return nil, notFound("worker deployment", name, known)
		}
		out = append(out, found...)
	}
	return out, nil
}

// deployment is the one snapshot of that name.
func deployment(world rollout.World, name string) (rollout.Snapshot, error) {
	found, err := deployments(world, []string{name})
	if err != nil {
		return rollout.Snapshot{}, err
	}
	if len(found) > 1 {
		var which []string
		for _, s := range found {
			which = append(which, fmt.Sprintf("%s in environment %s", s.Deployment, s.Environment.Name))
		}
		return rollout.Snapshot{}, fmt.Errorf("%q names %s: write the namespace, or choose with --env", name, strings.Join(which, " and "))
	}
	return found[0], nil
}

// noDeployments reports whether the world has no worker deployment, though its environments could be read.
func noDeployments(world rollout.World) bool {
	return len(world.Environments) > 0 && !slices.ContainsFunc(world.Environments, func(e rollout.EnvironmentWorld) bool { return len(e.Deployments)+len(e.Known) > 0 })
}

// sayNoSpecs says where specs were looked for in vain, and what one is.
func (a *app) sayNoSpecs(world rollout.World, where string) {
	a.say("no worker deployments found in %s", where)
	for _, env := range world.Environments {
		e := env.Environment
		beside := ""
		if e.Output.Branch == "" {
			beside = fmt.Sprintf(", but for those below %s, where the bot writes", path.Clean(e.Output.Path))
		}
		a.say("  environment %s has specs in %s%s", e.Name, strings.Join(e.Specs, ", "), beside)
	}
	a.say("  a spec is a YAML file with kind: %s and apiVersion: %s", v1alpha1.KindTemporalWorkerDeployment, v1alpha1.TemporalAPIVersion)
}

func joinSome(names []string, most int) string {
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// completeNames completes worker deployments of the folder -C.
func (a *app) completeNames(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var out []string
	if world, ok := a.completionWorld(cmd); ok {
		for _, env := range world.Environments {
			for _, d := range env.Deployments {
				if name := d.Deployment.String(); !slices.Contains(args, name) {
					out = append(out, name)
				}
			}
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completeName completes the only argument of a command.
func (a *app) completeName(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeNames(cmd, args, typed)
}

// completeEnvironments completes environments of the folder -C.
func (a *app) completeEnvironments(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	a.env = ""
	var out []string
	if world, ok := a.completionWorld(cmd); ok {
		for _, env := range world.Environments {
			out = append(out, env.Environment.Name)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completionWorld reads the folder -C; nothing is said of what is wrong with it while someone types.
func (a *app) completionWorld(cmd *cobra.Command) (rollout.World, bool) {
	if a.applySettings(cmd) != nil {
		return rollout.World{}, false
	}
	world, err := gitops.ReadFolder(a.dir)
	if err != nil {
		return world, false
	}
	world, err = onlyEnvironment(world, a.env)
	return world, err == nil
}

// notFound says that something is not there, and what is.
func notFound(what, name string, known []string) error {
	slices.Sort(known)
	known = slices.Compact(known)
	if near := nearest(name, known); near != "" {
		return fmt.Errorf("there is no %s %q (did you mean %s?)", what, name, near)
	}
	const most = 10
	list := cmp.Or(joinSome(known, most), "none")
	return fmt.Errorf("there is no %s %q; there is: %s", what, name, list)
}

// oneName wants a command to be given the name of one worker deployment.
func oneName(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return fmt.Errorf("%s NAME: name one worker deployment, such as payments/checkout; given were %d", cmd.CommandPath(), len(args))
}
